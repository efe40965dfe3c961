//! The commands of a chat.

use std::path::PathBuf;

/// A line that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// Nothing.
    Blank,
    /// To be said to the model.
    Message(String),
    Command(Command),
    /// A command that is none, and why.
    Mistake(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Memory,
    Compact(Option<String>),
    Preview(Option<String>),
    Undo,
    Pin(String),
    Unpin(Option<usize>),
    Search(String),
    Fork(Option<usize>),
    Edit(Option<String>),
    Retry,
    Model(Option<String>),
    Cost,
    Save(Option<PathBuf>),
    Help,
    Quit,
}

/// Name, arguments, and what it does: what `/help`, the completion and the parser know.
pub(crate) const ALL: [(&str, &str, &str); 15] = [
    ("/memory", "", "show the memory that requests are made with"),
    (
        "/compact",
        "[FOCUS]",
        "make a memory now, about FOCUS, and swap it in",
    ),
    (
        "/preview",
        "[FOCUS]",
        "make one, show what it would change; /compact swaps it in",
    ),
    ("/undo", "", "take the last swap back"),
    ("/pin", "TEXT", "keep a fact in every memory from now on"),
    ("/unpin", "[N]", "list the pinned facts, or unpin number N"),
    (
        "/search",
        "TEXT",
        "look for words in all messages and memories",
    ),
    (
        "/fork",
        "[TURN]",
        "a new session that ends before turn TURN; without, here",
    ),
    (
        "/edit",
        "[TEXT]",
        "edit your last message and send it again",
    ),
    ("/retry", "", "request a missing answer again"),
    (
        "/model",
        "[NAME]",
        "show the model, or change to another of this provider",
    ),
    ("/cost", "", "what the session has cost"),
    (
        "/save",
        "[FILE]",
        "write the conversation to a .md or .jsonl file",
    ),
    ("/help", "", "show this"),
    ("/quit", "", "exit; resume with --continue"),
];

/// What a line means. What begins with two slashes is a message that begins with one.
pub(crate) fn parse(line: &str) -> InputLine {
    let text = line.trim();
    if text.is_empty() {
        return InputLine::Blank;
    }
    if let Some(rest) = text.strip_prefix("//") {
        return InputLine::Message(format!("/{rest}"));
    }
    if !text.starts_with('/') {
        return InputLine::Message(text.to_owned());
    }
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    command(name, rest.trim()).map_or_else(InputLine::Mistake, InputLine::Command)
}

fn command(name: &str, rest: &str) -> Result<Command, String> {
    let optional = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
    let needed =
        |what: &str| optional().ok_or_else(|| format!("give the text to be {what}: {name} TEXT"));
    let number = |what: &str| match optional() {
        None => Ok(None),
        Some(text) => match text.trim_start_matches('#').parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(format!("{text} is not the number of a {what}")),
        },
    };
    let name = match name {
        "/exit" | "/q" => "/quit",
        "/?" => "/help",
        name => name,
    };
    let takes_nothing = ALL
        .iter()
        .any(|(known, arguments, _)| *known == name && arguments.is_empty());
    if takes_nothing && !rest.is_empty() {
        return Err(format!("{name} takes no arguments"));
    }
    Ok(match name {
        "/memory" => Command::Memory,
        "/compact" => Command::Compact(optional()),
        "/preview" => Command::Preview(optional()),
        "/undo" => Command::Undo,
        "/pin" => Command::Pin(needed("pinned")?),
        "/unpin" => Command::Unpin(number("pinned fact; /unpin lists them")?),
        "/search" => Command::Search(needed("looked for")?),
        "/fork" => Command::Fork(number("turn")?),
        "/edit" => Command::Edit(optional()),
        "/retry" => Command::Retry,
        "/model" => Command::Model(optional()),
        "/cost" => Command::Cost,
        "/save" => Command::Save(optional().map(PathBuf::from)),
        "/help" => Command::Help,
        "/quit" => Command::Quit,
        _ => return Err(unknown(name)),
    })
}

fn unknown(name: &str) -> String {
    let meant = ALL
        .iter()
        .map(|(known, ..)| *known)
        .find(|known| known.starts_with(name) || is_near(known, name));
    match meant {
        Some(meant) => format!("there is no command {name}; {meant} is one"),
        None => format!(
            "there is no command {name}; /help lists them, and // begins a message with a slash"
        ),
    }
}

/// Whether one character more, less, other or two in the wrong order make one out of the other.
fn is_near(known: &str, typed: &str) -> bool {
    let (known, typed): (Vec<char>, Vec<char>) = (known.chars().collect(), typed.chars().collect());
    let same = known.iter().zip(&typed).take_while(|(a, b)| a == b).count();
    let end = |text: &[char], skip: usize| text.get(same + skip..).map(<[char]>::to_vec);
    let swapped = match (end(&known, 0).as_deref(), end(&typed, 0).as_deref()) {
        (Some([a, b, rest @ ..]), Some([c, d, others @ ..])) => a == d && b == c && rest == others,
        _ => false,
    };
    let is_same = |a: Option<Vec<char>>, b: Option<Vec<char>>| a.is_some() && a == b;
    swapped
        || is_same(end(&known, 1), end(&typed, 1))
        || is_same(end(&known, 1), end(&typed, 0))
        || is_same(end(&known, 0), end(&typed, 1))
}

/// What `/help` shows.
pub(crate) fn help() -> String {
    let mut help = String::new();
    for (name, arguments, about) in ALL {
        let usage = format!("{name} {arguments}");
        help.push_str(&format!("  {usage:<17} {about}\n"));
    }
    help.push_str(
        "\n  Alt-Enter, or a \\ at the end, begins another line. Ctrl-C stops the answer.\n  \
         Ctrl-D leaves. // begins a message with a slash.\n",
    );
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        let check = |line: &str, expected: InputLine| assert_eq!(parse(line), expected, "{line}");
        let text = |text: &str| Some(text.to_owned());
        check("  ", InputLine::Blank);
        check(
            " Hello\nthere ",
            InputLine::Message("Hello\nthere".to_owned()),
        );
        check(
            "//usr/bin is a folder",
            InputLine::Message("/usr/bin is a folder".to_owned()),
        );
        check("/memory", InputLine::Command(Command::Memory));
        check("/compact", InputLine::Command(Command::Compact(None)));
        check(
            "/compact  the port ",
            InputLine::Command(Command::Compact(text("the port"))),
        );
        check(
            "/preview x",
            InputLine::Command(Command::Preview(text("x"))),
        );
        check(
            "/pin\tthe port is 9",
            InputLine::Command(Command::Pin("the port is 9".to_owned())),
        );
        check("/unpin", InputLine::Command(Command::Unpin(None)));
        check("/unpin 2", InputLine::Command(Command::Unpin(Some(2))));
        check("/fork #3", InputLine::Command(Command::Fork(Some(3))));
        check("/edit", InputLine::Command(Command::Edit(None)));
        check(
            "/save a b.md",
            InputLine::Command(Command::Save(Some("a b.md".into()))),
        );
        check("/q", InputLine::Command(Command::Quit));
    }

    #[test]
    fn mistakes_say_what_was_meant() {
        let check = |line: &str, part: &str| match parse(line) {
            InputLine::Mistake(said) => assert!(said.contains(part), "{line}: {said}"),
            other => panic!("{line}: {other:?}"),
        };
        check("/pin", "give the text to be pinned: /pin TEXT");
        check("/search ", "give the text to be looked for");
        check("/unpin x", "x is not the number of a pinned fact");
        check("/fork 0", "0 is not the number of a turn");
        check("/memory now", "/memory takes no arguments");
        check("/mem", "/memory is one");
        check("/memroy", "/memory is one");
        check("/saves", "/save is one");
        check("/cst", "/cost is one");
        check("/halp", "/help is one");
        check("/usr/bin is a folder", "// begins a message with a slash");
    }

    #[test]
    fn every_command_is_in_the_table_and_the_help_fits() {
        for (name, arguments, _) in ALL {
            let line = if arguments == "TEXT" {
                format!("{name} x")
            } else {
                name.to_owned()
            };
            assert!(matches!(parse(&line), InputLine::Command(_)), "{name}");
        }
        for line in help().lines() {
            assert!(line.chars().count() < 80, "{line}");
        }
    }
}
