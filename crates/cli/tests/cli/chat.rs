//! `throughline chat`, in a terminal and in a pipe.

use std::path::Path;
use std::process::Output;

use crate::pty::Terminal;
use crate::{command, fed, stderr, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_throughline");
const SIMULATED: [&str; 5] = ["chat", "--model", "simulated", "--window", "20000"];

/// A place for sessions, gone with the test.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn variables(&self) -> [(&str, &str); 3] {
        ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, self.path()))
    }

    /// The configuration says this.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.0.path().join("throughline");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// A chat in a terminal of this size, with whom the arguments say.
    pub(crate) fn plain_terminal(
        &self,
        arguments: &[&str],
        more: &[(&str, &str)],
        size: (u16, u16),
    ) -> Terminal {
        let all: Vec<&str> = std::iter::once("chat")
            .chain(arguments.iter().copied())
            .collect();
        let variables: Vec<(&str, &str)> = self.variables().iter().chain(more).copied().collect();
        Terminal::start(Path::new(PROGRAM), &all, &variables, size)
    }

    /// A chat with the simulated model in a terminal.
    pub(crate) fn terminal(&self, arguments: &[&str], more: &[(&str, &str)]) -> Terminal {
        let latency = if arguments.contains(&"--latency") {
            &[][..]
        } else {
            &["--latency", "none"]
        };
        let all: Vec<&str> = SIMULATED
            .iter()
            .chain(latency)
            .chain(arguments)
            .copied()
            .skip(1)
            .collect();
        self.plain_terminal(&all, more, (80, 24))
    }

    pub(crate) fn pipe(&self, arguments: &[&str], input: &str) -> Output {
        let latency = ["--latency", "none"];
        let all: Vec<&str> = SIMULATED
            .iter()
            .chain(&latency)
            .chain(arguments)
            .copied()
            .collect();
        fed(command(&all).envs(self.variables()), input.as_bytes())
    }

    /// A chat with whom the arguments say, without a terminal.
    pub(crate) fn piped(&self, arguments: &[&str]) -> Output {
        let all: Vec<&str> = std::iter::once("chat")
            .chain(arguments.iter().copied())
            .collect();
        command(&all).envs(self.variables()).output().unwrap()
    }

    #[track_caller]
    pub(crate) fn answered(&self, arguments: &[&str], input: &str) -> String {
        let output = self.pipe(arguments, input);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
        stdout(&output).to_owned()
    }
}

#[test]
fn a_terminal_shows_the_whole_surface() {
    let home = Home::new();
    let terminal = home.terminal(&[], &[]);
    terminal.until_prompt_after("/help for commands");
    terminal.line("/help");
    terminal.until_prompt_after("Ctrl-D leaves.");

    // Before anything is said there is nothing to show, and no session.
    for (typed, said) in [
        ("/memory", "nothing has been said yet"),
        ("/retry", "everything is answered"),
        ("/memroy", "there is no command /memroy; /memory is one"),
        ("/unpin x", "x is not the number of a pinned fact"),
    ] {
        terminal.line(typed);
        terminal.until_prompt_after(said);
    }

    terminal.line("Remember: the deploy region is eu-north-3.");
    let text = terminal.until_prompt_after("soft");
    assert!(
        text.contains("On \"Remember: the deploy region is eu-north-3\":"),
        "{text}"
    );
    terminal.line("What is the deploy region?");
    terminal.until("the answer", |text| {
        text.contains("The deploy region is eu-north-3.\n")
    });
    terminal.until_prompt_after("cached");

    terminal.line("/pin The port is 8443.");
    terminal.until_prompt_after("pinned: it is in every memory");
    terminal.line("/unpin");
    terminal.until_prompt_after("1  The port is 8443.");
    terminal.line("/search region");
    terminal.until_prompt_after("message 1 ");
    terminal.line("/cost");
    terminal.until_prompt_after("without compaction: $");
    terminal.line("/model");
    terminal.until_prompt_after("prompts of up to");
    terminal.line("/model gpt-5.1");
    terminal.until_prompt_after("is not a model of this provider");

    for turn in 0..4 {
        terminal.line(&format!(
            "Step {turn}: {}",
            "look at the module again, please. ".repeat(12)
        ));
        terminal.until_prompt_after(&format!("On \"Step {turn}"));
    }
    terminal.line("/preview the port");
    terminal.until_prompt_after("/compact swaps it in");
    terminal.line("/compact");
    terminal.until_prompt_after("memory swapped in: ");
    terminal.line("/memory");
    let text = terminal.until_prompt_after("represents messages 1 to ");
    assert!(text.contains("The port is 8443."), "{text}");
    terminal.line("/undo");
    terminal.until_prompt_after("the last swap is undone");
    terminal.line("/unpin 1");
    terminal.until_prompt_after("no longer pinned: The port is 8443.");

    // The last message comes back into the line, and is said in other words.
    terminal.line("What is the owner?");
    terminal.until_prompt_after("I do not know the owner");
    terminal.line("/edit");
    terminal.until_shown("> What is the owner?");
    terminal.until("the line", |text| text.ends_with("\n> What is the owner?"));
    terminal.press("\u{17}");
    terminal.line("deploy region?");
    terminal.until("the answer", |text| {
        text.matches("The deploy region is eu-north-3.").count() > 1
    });
    terminal.until_prompt_after("> What is the deploy region?");

    terminal.line("/fork 2");
    terminal.until_prompt_after("with the first 2 messages");
    terminal.line("/fork 9");
    terminal.until_prompt_after("the session has 1 turn");
    let file = home.0.path().join("talk.md");
    std::fs::write(&file, "mine").unwrap();
    terminal.line(&format!("/save {}", file.display()));
    terminal.until_shown("/save FILE takes another name");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    std::fs::remove_file(&file).unwrap();
    terminal.line(&format!("/save {}", file.display()));
    terminal.until("the file", |_| file.exists());
    terminal.line("/quit");
    let (code, text) = terminal.ended();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("throughline chat --resume "), "{text}");
    let saved = std::fs::read_to_string(file).unwrap();
    assert!(
        saved.starts_with(
            "## User\n\nRemember: the deploy region is eu-north-3.\n\n## Assistant\n\n"
        ),
        "{saved}"
    );
    assert_eq!(saved.matches("## User").count(), 1, "{saved}");
}

#[test]
fn lines_are_edited_and_completed() {
    let home = Home::new();
    let terminal = home.terminal(&[], &[]);
    terminal.until_prompt_after("/help");
    // A backslash, Alt-Enter and a paste make messages of several lines.
    terminal.press(
        "Remember:\\\rthe port is 1.\u{1b}\rAnd \u{1b}[200~the owner is Tom.\nThat is all.\u{1b}[201~",
    );
    terminal.until_shown("\n  That is all.");
    terminal.line("");
    terminal.until_prompt_after("soft");
    terminal.line("What is the owner?");
    terminal.until_prompt_after("The owner is Tom.");
    // What was said before comes back.
    terminal.press("\u{1b}[A");
    terminal.until("the last line", |text| {
        text.ends_with("> What is the owner?")
    });
    terminal.press("\u{3}");
    terminal.until("an empty line", |text| text.ends_with("\n>"));
    terminal.press("/mem\t");
    terminal.until("the command", |text| text.contains("> /memory"));
    terminal.press("\u{3}");
    terminal.until("an empty line", |text| text.ends_with("\n>"));
    // Ctrl-C on an empty line: once to be told, twice to leave.
    terminal.press("\u{3}");
    terminal.until_prompt_after("Ctrl-C once more, or Ctrl-D, to leave");
    terminal.press("\u{3}");
    let (code, _) = terminal.ended();
    assert_eq!(code, 0);
    let history = home.0.path().join("throughline/history");
    let lines = std::fs::read_to_string(&history).unwrap();
    assert!(lines.contains("What is the owner?"), "{lines}");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        history.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn it_goes_past_its_window_and_still_knows_the_first_correction() {
    let home = Home::new();
    let terminal = home.terminal(&[], &[]);
    terminal.until_prompt_after("/help");
    terminal.line("The deploy region is eu-north-3.");
    terminal.until_prompt_after("soft");
    terminal.line("No, that was wrong: the deploy region is eu-south-1, not eu-north-3.");
    terminal.until_prompt_after("not eu-north-3");
    let swaps = |text: &str| text.matches("memory swapped in").count();
    let mut turn = 0;
    while swaps(&terminal.until_shown(">")) < 3 {
        turn += 1;
        assert!(turn < 200, "no three swaps");
        terminal.line(&format!(
            "Step {turn}: {}",
            "what does this module do? ".repeat(60)
        ));
        terminal.until_prompt_after(&format!("On \"Step {turn}:"));
    }
    terminal.line("What is the deploy region?");
    terminal.until_prompt_after("The deploy region is eu-south-1");
    let text = terminal.until_shown("nothing waited");
    assert!(!text.contains("error:"), "{text}");
    terminal.press("\u{4}");
    assert_eq!(terminal.ended().0, 0);

    // And after a restart.
    let terminal = home.terminal(&["--continue"], &[]);
    terminal.until_prompt_after("you: What is the deploy region?");
    terminal.line("What is our deploy region?");
    terminal.until_prompt_after("The deploy region is eu-south-1");
}

#[test]
fn ctrl_c_stops_the_answer_and_not_the_program() {
    let home = Home::new();
    // With the time that a real model takes.
    let terminal = home.terminal(&["--latency", "real"], &[]);
    terminal.until_prompt_after("/help");
    terminal.line("Remember: the owner is Tom. And write a lot about it.");
    terminal.until("the beginning of the answer", |text| {
        text.contains("On \"Remember")
    });
    terminal.press("\u{3}");
    terminal.until_prompt_after("stopped; /retry asks again");
    let screen = terminal.screen();
    let row = screen
        .rows(0, 80)
        .position(|row| row.starts_with("stopped;"));
    let row = u16::try_from(row.unwrap()).unwrap();
    assert!(screen.cell(row, 0).unwrap().dim(), "notes are quiet");
    terminal.line("/retry");
    terminal.until_prompt_after("soft");
    terminal.line("/retry");
    terminal.until_prompt_after("everything is answered");
    terminal.press("\u{4}");
    assert_eq!(terminal.ended().0, 0);
}

#[test]
fn without_colours_and_without_a_cursor_the_text_is_plain() {
    let home = Home::new();
    let plain = home.terminal(&[], &[("NO_COLOR", "1"), ("LANG", "C")]);
    plain.until_prompt_after("/help");
    plain.line("Remember: the owner is Tom.");
    let text = plain.until_prompt_after("soft");
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains("[#"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let bytes = String::from_utf8(plain.bytes()).unwrap();
    let colours: Vec<&str> = bytes
        .split("\u{1b}[")
        .skip(1)
        .filter_map(|code| {
            code.split_once(|c: char| c.is_ascii_alphabetic())
                .map(|(start, _)| (start, code))
        })
        .filter(|(start, code)| {
            code.as_bytes().get(start.len()) == Some(&b'm') && !matches!(*start, "" | "0")
        })
        .map(|(start, _)| start)
        .collect();
    assert!(colours.is_empty(), "{colours:?}");
}

#[test]
fn in_a_pipe_the_answers_alone_come_out() {
    let home = Home::new();
    let text = home.answered(
        &[],
        "Remember: the owner is Tom.\nWhat is the owner?\n\n//etc is the owner of \\\nwhat?\n/unpin\n",
    );
    assert!(text.contains("\nThe owner is Tom.\n"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains("soft"), "{text}");
    let text = home.answered(&["--continue"], "What is the owner?\n");
    assert_eq!(text, "The owner is Tom.\n");
    // What goes wrong ends a script.
    let output = home.pipe(&["--continue"], "/undo\nWhat is the owner?\n");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output).contains("there is no swap to take back"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn print_answers_one_question() {
    let home = Home::new();
    let text = home.answered(
        &["--print", "Remember: the owner is Tom. What is the owner?"],
        "",
    );
    assert_eq!(text, "The owner is Tom.\n");
    let text = home.answered(
        &["--print", "What is the port?", "--continue"],
        "The port is 99.\n",
    );
    assert_eq!(text, "The port is 99.\n");
    let text = home.answered(&["--continue", "--json", "--print"], "What is the owner?");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["text"], "The owner is Tom.");
    assert_eq!(report["messages"], 6);
    assert_eq!(report["outcome"], "done");
    let id = report["session"].as_str().unwrap();
    let output = home.pipe(
        &[
            "--resume",
            &id[..30],
            "--show-id",
            "--print",
            "What is the port?",
        ],
        "",
    );
    assert_eq!(stderr(&output), format!("note: session {id}\n"));
    assert_eq!(stdout(&output), "The port is 99.\n");
    for (arguments, part) in [
        (&["--print"][..], "there is no question"),
        (
            &["--print", "x", "--resume", "nothing"],
            "there is no session nothing",
        ),
        (&["--print", "x", "--tools", "fly"], "there is no tool fly"),
        (
            &["--print", "x", "--system", "nowhere.md"],
            "there is no file nowhere.md",
        ),
    ] {
        let output = home.pipe(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}

#[test]
fn calls_that_change_something_are_asked_about() {
    let home = Home::new();
    let arguments = ["--tools", "run_command", "--root", home.path()];
    let terminal = home.terminal(&arguments, &[]);
    terminal.until_prompt_after("/help");
    let is_question = |text: &str| text.ends_with("[y/n/a]");
    terminal.line("Please run the tests.");
    let text = terminal.until("a question", is_question);
    assert!(
        text.contains("Allow it? yes, no, or always for run_command"),
        "{text}"
    );
    // Ctrl-C is no answer: the call waits.
    terminal.press("\u{3}");
    terminal.until_prompt_after("for your approval; /retry asks again");
    terminal.line("/retry");
    let mut asked = 1;
    loop {
        let text = terminal.until("another question, or the end", |text| {
            is_question(text) && text.matches("[y/n/a]").count() > asked
                || text
                    .rsplit_once("soft")
                    .is_some_and(|(_, rest)| rest.ends_with("\n>"))
                    && text.contains("not now")
        });
        if !is_question(&text) {
            break;
        }
        asked = text.matches("[y/n/a]").count();
        terminal.line("not now");
    }
    let text = terminal.until_shown("run_command");
    assert!(text.contains("failed: "), "{text}");
    terminal.press("\u{4}");
    assert_eq!(terminal.ended().0, 0);
    // Without anybody to ask it is not run.
    let output = home.pipe(
        &["--tools", "run_command", "--root", home.path()],
        "Please run the tests.\n",
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_session_has_files_to_read_and_edit() {
    let home = Home::new();
    home.configure("session_folder = \"~/sessions\"\n");
    home.answered(&[], "Good morning.\n");
    let root = Path::new(home.path()).join("sessions");
    let mut folders = std::fs::read_dir(&root).unwrap();
    let folder = folders.next().unwrap().unwrap();
    assert!(folders.next().is_none());
    let lines = |folder: &Path| {
        let text = std::fs::read_to_string(folder.join("transcript.jsonl")).unwrap();
        text.lines().count()
    };
    assert_eq!(lines(&folder.path()), 2);
    let memory = "## Errors & Corrections\n- The owner is Tom.\n";
    std::fs::write(folder.path().join("session-memory.md"), memory).unwrap();
    let text = home.answered(&["--continue"], "What is the owner?\n");
    assert_eq!(text, "The owner is Tom.\n");
    assert_eq!(lines(&folder.path()), 4);

    let other = Path::new(home.path()).join("other");
    let arguments = ["--continue", "--folder", other.to_str().unwrap()];
    home.answered(&arguments, "Good night.\n");
    assert_eq!(lines(&other), 6);
    assert!(other.join("session-memory.md").is_file());

    let id = folder.file_name().into_string().unwrap();
    let deleted = command(&["sessions", "delete", &id, "--yes"])
        .envs(home.variables())
        .output()
        .unwrap();
    assert_eq!(stderr(&deleted), "");
    assert!(root.is_dir() && !folder.path().exists());
}
