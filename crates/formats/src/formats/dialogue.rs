//! Plain-text dialogue: lines that begin with a speaker (`User:`, `Assistant:`, `Q:`, `### Human`, `用户：`), and chat
//! logs whose lines begin with a time and a name.
//!
//! The last resort among the formats: nothing but those marks tells a dialogue from any other text. It asks for marks
//! of both sides, and for the first one near the start. In a log of two people who are neither named as person nor as
//! model, the one who writes first is taken for the user; of more people, all are, with their names in the text.

mod speakers;

use bytestring::ByteString;
use speakers::{Mark, Speaker};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::Text;
use throughline_transcript::message::{Block, Content, Message, Role, ToolResult};

use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct Dialogue;

/// The first mark must be within this number of non-blank lines, so that a text with an example in it is not taken for a
/// dialogue.
const LINES_BEFORE_MAX: usize = 12;

/// So many people at most may speak in a log.
const PEOPLE_MAX: usize = 12;

impl Format for Dialogue {
    fn name(&self) -> &'static str {
        "dialogue"
    }

    fn about(&self) -> &'static str {
        "plain text with a speaker before each turn, and chat logs"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        if probe.glance().is_some_and(|glance| glance.roots > 0) {
            return 0;
        }
        match Kind::of(probe.head()) {
            Some(Kind::Named) => 30,
            Some(Kind::Log(_)) => 20,
            None => 0,
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let Some(kind) = Kind::of(&source.text) else {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "no lines that begin with two speakers, such as `User:` and `Assistant:`"
                    .to_owned(),
            });
        };
        let messages = messages(&source.text, &kind);
        Ok(Source {
            format: self.name(),
            conversations: vec![Conversation {
                messages,
                ..Conversation::default()
            }],
            skipped: Vec::new(),
        })
    }
}

/// How the speakers of a text are distinguished.
enum Kind<'a> {
    /// By words that say who is the person and who is the model.
    Named,
    /// By names behind times, in the order in which they first speak.
    Log(Vec<&'a str>),
}

impl<'a> Kind<'a> {
    /// `None` if the text is no dialogue.
    fn of(text: &'a str) -> Option<Self> {
        let mut roles: Vec<Role> = Vec::new();
        let mut people: Vec<&str> = Vec::new();
        let (mut lines_before, mut log_lines, mut person_changes) = (0, 0, 0);
        let mut last_person = None;
        let mut has_mark = false;
        for (_, line) in lines(text) {
            match Mark::parse(line) {
                Some(mark) => {
                    has_mark = true;
                    if let Speaker::Role(role) = mark.speaker
                        && roles.last() != Some(&role)
                        && roles.len() < 4096
                    {
                        roles.push(role);
                    }
                    if mark.has_time {
                        log_lines += 1;
                        person_changes += usize::from(last_person != Some(mark.name));
                        last_person = Some(mark.name);
                        if people.len() <= PEOPLE_MAX && !people.contains(&mark.name) {
                            people.push(mark.name);
                        }
                    }
                }
                None if !has_mark && !line.trim().is_empty() => {
                    lines_before += 1;
                    if lines_before > LINES_BEFORE_MAX {
                        return None;
                    }
                }
                None => {}
            }
        }
        if roles.contains(&Role::User) && roles.contains(&Role::Assistant) {
            return Some(Self::Named);
        }
        let is_log =
            (2..=PEOPLE_MAX).contains(&people.len()) && log_lines >= 3 && person_changes >= 3;
        is_log.then_some(Self::Log(people))
    }

    fn role(&self, mark: &Mark<'_>) -> Option<Role> {
        match (self, mark.speaker) {
            (_, Speaker::Role(role)) => Some(role),
            (Self::Log(people), Speaker::Name) if mark.has_time => {
                let is_second = people.len() == 2 && people.get(1) == Some(&mark.name);
                Some(if is_second {
                    Role::Assistant
                } else {
                    Role::User
                })
            }
            // In a dialogue of person and model another name is a part of the text.
            _ => None,
        }
    }

    /// Whether the name of the speaker has to stay in the text, because the role does not tell it.
    fn keeps_names(&self) -> bool {
        matches!(self, Self::Log(people) if people.len() > 2)
    }
}

/// The lines outside of code fences, with their byte offsets. The lines of a fence that is closed are not given.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let mut fence: Option<&str> = None;
    // Behind this byte no fence is closed any more.
    let last_fence = memchr::memmem::rfind(text.as_bytes(), b"\n```").map_or(0, |at| at + 1);
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let end = memchr::memchr(b'\n', &text.as_bytes()[at..])
                .map_or(text.len(), |found| at + found);
            at = end + 1;
            let line = &text[start..end];
            match fence {
                Some(mark) => {
                    if line.trim_end() == mark {
                        fence = None;
                    }
                    if start < last_fence {
                        continue;
                    }
                    fence = None;
                }
                None if line.starts_with("```") && start < last_fence => {
                    let length = line.bytes().take_while(|byte| *byte == b'`').count();
                    fence = Some(&line[..length]);
                }
                None => {}
            }
            return Some((start, line));
        }
        None
    })
}

fn messages(source: &ByteString, kind: &Kind<'_>) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut open: Option<(Mark<'_>, Role, usize)> = None;
    for (start, line) in lines(source) {
        let Some(mark) = Mark::parse(line) else {
            continue;
        };
        let Some(role) = kind.role(&mark) else {
            continue;
        };
        if let Some((mark, role, from)) = open.replace((mark, role, start)) {
            push(source, kind, (mark, role, from), start, &mut messages);
        }
    }
    if let Some(last) = open {
        push(source, kind, last, source.len(), &mut messages);
    }
    number_lines(source, &mut messages);
    messages
}

fn push(
    source: &ByteString,
    kind: &Kind<'_>,
    (mark, role, start): (Mark<'_>, Role, usize),
    end: usize,
    messages: &mut Vec<Message>,
) {
    let name_at = start + mark.name_start;
    let text_at = start + mark.text_start;
    let text = source[text_at..end].trim();
    let text = without_rule(text);
    if text.is_empty() {
        return;
    }
    let text = if kind.keeps_names() {
        let named = source[name_at..end].trim();
        source.slice_ref(named)
    } else {
        source.slice_ref(text)
    };
    let mut block = Block::text(Text::plain(text));
    if role == Role::Tool {
        block = Block::new(Content::ToolResult(ToolResult {
            call_id: "".into(),
            content: vec![block],
            is_error: None,
            is_server_side: false,
        }));
    }
    let mut message = Message::new(role, vec![block]);
    message.at_ms = mark.at_ms;
    // A byte offset for now; `number_lines` counts all in one pass.
    message.position.line = start;
    messages.push(message);
}

fn number_lines(text: &str, messages: &mut [Message]) {
    let (mut counted, mut line) = (0, 1);
    for message in messages {
        let start = message.position.line;
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..start]).count();
        counted = start;
        message.position.line = line;
    }
}

/// A rule between turns (`---`) belongs to neither.
fn without_rule(text: &str) -> &str {
    match text.rsplit_once('\n') {
        Some((rest, last)) if is_rule(last) => rest.trim_end(),
        None if is_rule(text) => "",
        _ => text,
    }
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3
        && ["-", "=", "*", "_"]
            .iter()
            .any(|mark| line.trim_matches(|c| mark.contains(c)).is_empty())
}

#[cfg(test)]
mod tests;
