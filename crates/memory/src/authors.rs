//! Decides who wrote each piece of a message that came in the user's name.
//!
//! Readers of session files say what the file says ([`Author`](throughline_transcript::message::Author)). The rest is
//! text: what clients, other agents and tools put into user messages, and what the user said in the results of tools.
//! The wording is data (`data/authors.toml`).

mod answers;
mod wording;

use std::borrow::Cow;

use throughline_transcript::command::slash_command;
use throughline_transcript::text_result;

use crate::notes;
pub(crate) use answers::{Questions, answers};
pub(crate) use wording::wording;
use wording::{After, Wording};

/// Who wrote a piece of a user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Writer {
    /// The person.
    Person,
    /// A tool: its result, as text.
    Tool,
    /// Another agent or session.
    Agent,
    /// The client or a hook.
    Client,
}

/// What the piece of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// A text.
    Words,
    /// A slash command, as the person typed it.
    Command,
    /// What the person said about a call, inside of its result.
    Feedback,
}

/// A piece of a user message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'t> {
    pub(crate) writer: Writer,
    pub(crate) kind: PieceKind,
    pub(crate) text: Cow<'t, str>,
}

/// What came before a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before<'t> {
    /// Whether there are messages before it.
    pub(crate) has_messages: bool,
    /// Whether the model has called a tool since the person spoke.
    pub(crate) has_called: bool,
    /// The model's last text, if it is known.
    pub(crate) said: Option<&'t str>,
}

impl Before<'_> {
    fn fits(self, after: After, wording: &Wording) -> bool {
        match after {
            After::Nothing => true,
            After::Model => self.has_messages,
            After::Action => {
                let acts = |said: &str| {
                    wording
                        .actions
                        .iter()
                        .any(|mark| said.contains(mark.as_str()))
                };
                self.has_messages && (self.has_called || self.said.is_none_or(acts))
            }
        }
    }
}

/// The pieces of a message that came in the user's name, in order, without blanks between them.
pub(crate) fn pieces<'t>(text: &'t str, before: Before<'_>) -> Vec<Piece<'t>> {
    let trimmed = text.trim();
    let one = |writer, kind, text: Cow<'t, str>| vec![Piece { writer, kind, text }];
    if trimmed.is_empty() {
        return Vec::new();
    }
    if notes::is_note(trimmed) {
        return one(Writer::Client, PieceKind::Words, trimmed.into());
    }
    if let Some(command) = slash_command(trimmed) {
        let writer = if command.is_local {
            Writer::Client
        } else {
            Writer::Person
        };
        return one(writer, PieceKind::Command, command.text.into());
    }
    if before.has_messages
        && let Some((tool, output)) = text_result::heading(trimmed)
    {
        return result_in_text(tool, output, trimmed);
    }
    let wording = wording();
    let begins = wording.texts.iter().find(|begins| {
        begins
            .starts
            .iter()
            .any(|start| trimmed.starts_with(start.as_str()))
            && before.fits(begins.after, wording)
    });
    if let Some(begins) = begins {
        return one(begins.author, PieceKind::Words, trimmed.into());
    }
    let own = wording.preface.iter().find_map(|preface| {
        let rest = trimmed.strip_prefix(preface.start.as_str())?;
        let (state, own) = rest.split_once(preface.request.as_str())?;
        Some((state.trim(), own.trim()))
    });
    match own {
        Some((state, own)) => {
            let mut pieces = one(Writer::Client, PieceKind::Words, state.into());
            pieces.extend(elements(own, wording));
            pieces
        }
        None => elements(text, wording),
    }
}

/// The words of the person among pieces, as one text.
pub(crate) fn words<'t>(pieces: &[Piece<'t>]) -> Cow<'t, str> {
    let mut own = pieces.iter().filter(|piece| piece.writer == Writer::Person);
    match (own.next(), own.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(piece), None) => piece.text.clone(),
        (Some(first), Some(second)) => {
            let rest = own.map(|piece| &piece.text);
            let texts: Vec<&str> = [&first.text, &second.text]
                .into_iter()
                .chain(rest)
                .map(AsRef::as_ref)
                .collect();
            Cow::Owned(texts.join("\n\n"))
        }
    }
}

/// A result of Cline, Roo Code or Kilo Code: the tool's, and what the user said about the call.
fn result_in_text<'t>(tool: &str, output: &'t str, whole: &'t str) -> Vec<Piece<'t>> {
    /// What the editor's state begins with, which the client adds behind the result.
    const STATE: &str = "\n<environment_details>";
    let output = output.split(STATE).next().unwrap_or(output).trim();
    let mut pieces = vec![Piece {
        writer: Writer::Tool,
        kind: PieceKind::Words,
        text: whole.into(),
    }];
    if let Some(said) = text_result::words(tool, output) {
        pieces.push(Piece {
            writer: Writer::Person,
            kind: PieceKind::Feedback,
            text: said.into(),
        });
    }
    pieces
}

/// Divides a text at the elements that are not the person's.
fn elements<'t>(text: &'t str, wording: &Wording) -> Vec<Piece<'t>> {
    let mut pieces = Vec::new();
    let mut push = |writer, text: &'t str| {
        let text = text.trim();
        if !text.is_empty() {
            pieces.push(Piece {
                writer,
                kind: PieceKind::Words,
                text: text.into(),
            });
        }
    };
    let mut from = 0;
    let mut line = 0;
    // Whether the line has nothing but white space up to here.
    let mut is_blank = true;
    // A name whose closing tag is missing once is missing for the rest of the text.
    let mut unclosed = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + found;
        let passed = &text[at..start];
        if let Some(end) = passed.rfind('\n') {
            line = at + end + 1;
            is_blank = true;
        }
        is_blank &= text[line.max(at)..start].trim().is_empty();
        let is_first = text[..start].trim().is_empty();
        let element = is_blank.then(|| element(&text[start..], is_first, wording, &mut unclosed));
        let Some((writer, end)) = element.flatten() else {
            at = start + 1;
            is_blank = false;
            continue;
        };
        let before = &text[from..line.max(from)];
        push(
            Writer::Person,
            &before[..before.len() - wording.heading(before)],
        );
        push(writer, &text[start..start + end]);
        at = start + end;
        from = at;
        line = at;
    }
    push(Writer::Person, &text[from..]);
    pieces
}

/// Who wrote the element that `text` begins with, and where it ends.
fn element<'w>(
    text: &str,
    is_first: bool,
    wording: &'w Wording,
    unclosed: &mut Vec<&'w str>,
) -> Option<(Writer, usize)> {
    /// Attributes are no longer; bytes.
    const ATTRIBUTES_MAX: usize = 1000;
    if text.starts_with(notes::CUT_OFF) {
        return Some((Writer::Client, notes::CUT_OFF.len()));
    }
    let inner = text.strip_prefix('<')?;
    let (writer, name, rest) = wording.elements.iter().find_map(|elements| {
        elements.names.iter().find_map(|name| {
            let rest = inner.strip_prefix(name.as_str())?;
            if let Some(rest) = rest.strip_prefix('>') {
                return Some((elements.author, name.as_str(), rest));
            }
            let head = &rest[..rest.floor_char_boundary(ATTRIBUTES_MAX)];
            let end = head
                .starts_with([' ', '\n'])
                .then(|| head.find('>'))
                .flatten()?;
            Some((elements.author, name.as_str(), &rest[end + 1..]))
        })
    })?;
    if unclosed.contains(&name) {
        return None;
    }
    let closing = format!("</{name}>");
    match rest.find(&closing) {
        Some(inside) => Some((writer, text.len() - rest.len() + inside + closing.len())),
        // A result or a message that was cut off has no end.
        None if is_first && matches!(writer, Writer::Tool | Writer::Agent) => {
            Some((writer, text.len()))
        }
        None => {
            unclosed.push(name);
            None
        }
    }
}

#[cfg(test)]
mod tests;
