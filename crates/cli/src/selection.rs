//! Which conversation of an input is meant.
//!
//! An input with one conversation needs no choice, and one whose other conversations were all started by the first (the
//! sub-agents of a coding agent) means the first. Everything else is asked for by `--session`.

use std::path::Path;

use throughline_formats::source::Source;
use throughline_transcript::conversation::Conversation;

use crate::error::{Failure, Kind};
use crate::input::Input;
use crate::output::Console;
use crate::progress::Progress;
use crate::{arguments, input, words};

/// How many conversations an error lists.
const LISTED_MAX: usize = 50;

const TITLE_CHARACTERS: usize = 48;

/// The header of [`rows`].
pub(crate) const HEADER: [&str; 5] = ["no", "id", "title", "messages", "last"];

/// Reads the conversations of the input.
pub(crate) fn read(
    source: &arguments::Source,
    console: &Console,
    progress: &Progress,
) -> Result<(Source, Input), Failure> {
    input::conversations(&source.file, &source.from, console, progress)
}

/// The conversation that is meant. It has messages.
pub(crate) fn choose_begun<'a>(
    source: &'a Source,
    input: &Input,
    session: Option<&str>,
    console: &Console,
) -> Result<&'a Conversation, Failure> {
    let (_, conversation) = choose(source, &input.name, session, "", console)?;
    match conversation.messages.is_empty() {
        true => {
            Err(Failure::new(Kind::NothingToDo, "the conversation has no messages").at(&input.name))
        }
        false => Ok(conversation),
    }
}

/// The conversation that is meant, with its number.
pub(crate) fn choose<'a>(
    source: &'a Source,
    file: &str,
    session: Option<&str>,
    advice: &str,
    console: &Console,
) -> Result<(usize, &'a Conversation), Failure> {
    let chosen = match session {
        Some(wanted) => find(source, file, wanted, console)?,
        None => match roots(source)[..] {
            [only] => {
                let others = source.conversations.len() - 1;
                if others > 0 {
                    console.note(&format!(
                        "{} started by it left out; --session takes one, `throughline inspect {file}` lists them",
                        words::counted(others, "conversation"),
                    ));
                }
                only
            }
            [] => {
                return Err(Failure::new(
                    Kind::NothingToDo,
                    format!("{file}: there is no message in it"),
                )
                .hint("give a session with messages"));
            }
            _ => {
                let count = words::counted(source.conversations.len(), "conversation");
                return Err(Failure::new(
                    Kind::Arguments,
                    format!("{file} has {count}:\n{}", list(source, |_| true, console)),
                )
                .hint(format!(
                    "choose one with --session ID (or its number){advice}"
                )));
            }
        },
    };
    Ok((chosen + 1, &source.conversations[chosen]))
}

/// The conversations with messages that no other one of the source has started.
pub(crate) fn roots(source: &Source) -> Vec<usize> {
    let is_here = |id: &str| {
        source
            .conversations
            .iter()
            .any(|other| !other.id.is_empty() && other.id == id)
    };
    source
        .conversations
        .iter()
        .enumerate()
        .filter(|(_, conversation)| !conversation.messages.is_empty())
        .filter(|(_, conversation)| {
            conversation
                .parent_id
                .as_deref()
                .is_none_or(|parent| parent == conversation.id || !is_here(parent))
        })
        .map(|(index, _)| index)
        .collect()
}

fn find(source: &Source, file: &str, wanted: &str, console: &Console) -> Result<usize, Failure> {
    let wanted = wanted.trim();
    let conversations = &source.conversations;
    if let Some(exact) = conversations
        .iter()
        .position(|conversation| conversation.id == wanted)
    {
        return Ok(exact);
    }
    if let Ok(number) = wanted.parse::<usize>()
        && (1..=conversations.len()).contains(&number)
    {
        return Ok(number - 1);
    }
    let begins =
        |conversation: &Conversation| !wanted.is_empty() && conversation.id.starts_with(wanted);
    let found: Vec<usize> = (0..conversations.len())
        .filter(|index| begins(&conversations[*index]))
        .collect();
    match found[..] {
        [only] => Ok(only),
        [] => Err(Failure::new(
            Kind::Arguments,
            format!(
                "{file} has no conversation {wanted:?}; it has:\n{}",
                list(source, |_| true, console)
            ),
        )
        .hint("give an id, the beginning of one, or a number of the list")),
        _ => Err(Failure::new(
            Kind::Arguments,
            format!(
                "the id of several conversations of {file} begins with {wanted:?}:\n{}",
                list(source, begins, console)
            ),
        )
        .hint("give more of the id, or the number")),
    }
}

fn list(source: &Source, is_listed: impl Fn(&Conversation) -> bool, console: &Console) -> String {
    let mut rows = rows(source, is_listed);
    let count = rows.len();
    rows.truncate(LISTED_MAX);
    let mut text = console.error_table(&HEADER, rows);
    if count > LISTED_MAX {
        text.push_str(&format!(
            "... and {} more\n",
            words::number((count - LISTED_MAX) as u64)
        ));
    }
    text.truncate(text.trim_end().len());
    text
}

/// One row for each conversation: number, id, title, messages, when it was last written to.
pub(crate) fn rows(source: &Source, is_listed: impl Fn(&Conversation) -> bool) -> Vec<Vec<String>> {
    source
        .conversations
        .iter()
        .enumerate()
        .filter(|(_, conversation)| is_listed(conversation))
        .map(|(index, conversation)| {
            let last = conversation
                .messages
                .iter()
                .filter_map(|message| message.at_ms)
                .max();
            vec![
                (index + 1).to_string(),
                conversation.id.clone(),
                words::title(conversation, TITLE_CHARACTERS),
                words::number(conversation.messages.len() as u64),
                last.and_then(words::minute).unwrap_or_default(),
            ]
        })
        .collect()
}

/// A name for the file of a conversation: what of its id is safe in a name, or its number.
pub(crate) fn file_stem(number: usize, conversation: &Conversation) -> String {
    let mut stem: String = conversation
        .id
        .chars()
        .take(80)
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '-'
            }
        })
        .collect();
    stem = stem.trim_matches(['.', '-']).to_owned();
    if stem.is_empty() {
        return format!("conversation-{number:03}");
    }
    // Ids that differ in other characters must not meet in one name.
    if stem != conversation.id {
        stem = format!("{stem}-{number:03}");
    }
    stem
}

/// The folder for several files, made if it is not there.
pub(crate) fn folder(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(path).map_err(|error| Failure::writing(path.display(), &error))
}

#[cfg(test)]
mod tests {
    use throughline_transcript::message::{Block, Message, Role};

    use super::*;

    fn conversation(id: &str, parent_id: Option<&str>) -> Conversation {
        Conversation {
            id: id.to_owned(),
            parent_id: parent_id.map(str::to_owned),
            messages: vec![Message::new(Role::User, vec![Block::text("hello")])],
            ..Conversation::default()
        }
    }

    fn source(conversations: Vec<Conversation>) -> Source {
        Source {
            format: "test",
            conversations,
            skipped: Vec::new(),
        }
    }

    #[test]
    fn the_one_that_started_the_others_is_meant() {
        let check =
            |conversations, expected: &[usize]| assert_eq!(roots(&source(conversations)), expected);
        check(vec![conversation("a", None)], &[0]);
        check(
            vec![conversation("a", None), conversation("b", Some("a"))],
            &[0],
        );
        check(
            vec![conversation("a", None), conversation("b", None)],
            &[0, 1],
        );
        // Started by a conversation that is not in the file.
        check(vec![conversation("b", Some("elsewhere"))], &[0]);
        check(
            vec![conversation("", None), conversation("", Some(""))],
            &[0, 1],
        );
        check(vec![Conversation::default()], &[]);
    }

    #[test]
    fn names_of_files_are_safe_and_do_not_meet() {
        let check =
            |id: &str, expected: &str| assert_eq!(file_stem(7, &conversation(id, None)), expected);
        check("ses_01", "ses_01");
        check("", "conversation-007");
        check("../../etc/passwd", "etc-passwd-007");
        check("a/b", "a-b-007");
        check("..", "conversation-007");
    }
}
