//! Request bodies as sources: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses.
//!
//! A source is one body, a bare array of messages or items, or lines of either. It is split into slices, never turned
//! into a tree. What is broken is left out and said; the rest is read. Whether a provider would take the request is
//! not asked here: that is the wire checker's business.

mod blocks;
mod messages;
mod signs;

use bytestring::ByteString;

use self::signs::Signs;
use super::{Format, Probe};
use crate::conversation::{
    CompactionMark, Conversation, Problem, ReadError, Skipped, Source, SourceText,
};
use crate::document::LineCounter;
use crate::json::{JsonError, Kind, Raw};
use crate::message::{Author, Block, Message, Role};
use crate::wire::Wire;

/// Requests of the Anthropic Messages format.
pub static ANTHROPIC: Request = Request(Wire::Anthropic);
/// Requests of the OpenAI Chat Completions format.
pub static OPENAI_CHAT: Request = Request(Wire::OpenAiChat);
/// Requests of the OpenAI Responses format.
pub static OPENAI_RESPONSES: Request = Request(Wire::OpenAiResponses);

/// The format whose sources are requests in a wire format.
pub struct Request(Wire);

impl Format for Request {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Wire::Anthropic => "request of the Anthropic Messages API",
            Wire::OpenAiChat => "request of the OpenAI Chat Completions API",
            Wire::OpenAiResponses => "request of the OpenAI Responses API",
        }
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        Signs::of(probe.text).score(self.0)
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        if source.text.trim().is_empty() {
            return Err(ReadError::Empty);
        }
        let mut reader = Reader {
            wire: self.0,
            conversations: Vec::new(),
            loose: Conversation::default(),
            skipped: Vec::new(),
            skipped_until: 0,
            first_error: None,
        };
        reader.source(&source.text);
        let Reader {
            mut conversations,
            loose,
            skipped,
            first_error,
            ..
        } = reader;
        if !loose.messages.is_empty() {
            conversations.push(loose);
        }
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: match first_error {
                    Some(error) => format!("not JSON: {error}"),
                    None => format!("there are no {}", list_name(self.0)),
                },
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped,
        })
    }
}

/// Reads a request body of the wire format; `None` if it is not an object with messages or input.
///
/// Messages that are not objects are left out and named in the problems.
#[must_use]
pub fn read_body(body: &Raw, wire: Wire) -> Option<Conversation> {
    let mut skipped = Vec::new();
    let mut conversation = body_at(body, wire, 0, &mut skipped)?;
    conversation
        .problems
        .extend(skipped.into_iter().map(|skipped| Problem {
            code: "unreadable-message",
            message: 0,
            text: skipped.reason,
        }));
    Some(conversation)
}

/// Reads one message or item of a request; `None` if it is not an object.
#[must_use]
pub fn read_message(raw: &Raw) -> Option<Message> {
    messages::read(raw).map(|read| read.message)
}

/// Reads the content of a message: a string, an array of blocks or one block.
#[must_use]
pub fn read_content(content: &Raw) -> Vec<Block> {
    blocks::content(content)
}

/// Reads one content block.
#[must_use]
pub fn read_block(block: &Raw) -> Block {
    blocks::block(block.clone())
}

/// The field of a body that holds the messages.
#[must_use]
pub fn list_name(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic | Wire::OpenAiChat => "messages",
        Wire::OpenAiResponses => "input",
    }
}

struct Reader {
    wire: Wire,
    conversations: Vec<Conversation>,
    /// Messages that stand in no body.
    loose: Conversation,
    skipped: Vec<Skipped>,
    /// Line of the last piece that was skipped.
    skipped_until: usize,
    first_error: Option<JsonError>,
}

impl Reader {
    fn source(&mut self, text: &ByteString) {
        // Values one after the other, however they are laid out, for as long as they are whole.
        let mut at = 0;
        let mut lines = LineCounter::default();
        while !text[at..].trim_start().is_empty() {
            let rest = text.slice_ref(&text[at..]);
            match Raw::parse_prefix(&rest) {
                Ok((value, end)) => {
                    let start = at + end - value.len();
                    let is_alone = at == 0
                        && text[at + end..].trim_start().is_empty()
                        && value.kind() != Kind::String;
                    let number = lines.line(text, start);
                    self.value(&value, if is_alone { 0 } else { number }, number);
                    at += end;
                }
                Err(error) => {
                    let start = at + rest.len() - rest.trim_start().len();
                    self.broken(text, start, at + error.offset, lines);
                    self.first_error.get_or_insert(error);
                    return;
                }
            }
        }
    }

    /// Reads on from a value that is broken. Lines are read each for itself from here on, so that the time stays
    /// linear whatever follows.
    fn broken(&mut self, text: &ByteString, start: usize, error_at: usize, mut lines: LineCounter) {
        let line_end =
            |at: usize| memchr::memchr(b'\n', text[at..].as_bytes()).map(|found| at + found);
        // A value that runs over several lines: the text is torn, not a line.
        let first_end = match line_end(start) {
            Some(end) if error_at <= end => end,
            _ => text.len(),
        };
        let number = lines.line(text, start);
        self.torn(&text.slice_ref(&text[start..first_end]), number);
        let mut at = first_end;
        while at < text.len() {
            let end = line_end(at).unwrap_or(text.len());
            let number = lines.line(text, at);
            let piece = text.slice_ref(&text[at..end]);
            at = end + 1;
            if piece.trim().is_empty() {
                continue;
            }
            match Raw::parse(piece.clone()) {
                Ok(value) => self.value(&value, number, number),
                Err(_) => self.torn(&piece, number),
            }
        }
    }

    /// A whole value. `position` is the line that its messages get, `line` where it stands.
    fn value(&mut self, value: &Raw, position: usize, line: usize) {
        match value.kind() {
            Kind::Object => {
                if let Some(body) = body_at(value, self.wire, position, &mut self.skipped) {
                    self.conversations.push(body);
                } else if is_message(value) {
                    push(&mut self.loose, value, position, &mut self.skipped);
                } else {
                    self.skip(
                        line,
                        value.len(),
                        "neither a request nor a message".to_owned(),
                    );
                }
            }
            Kind::Array => {
                let mut list = Conversation::default();
                for element in value.array() {
                    if element.kind() != Kind::Object || is_message(&element) {
                        push(&mut list, &element, position, &mut self.skipped);
                    } else if let Some(body) =
                        body_at(&element, self.wire, position, &mut self.skipped)
                    {
                        self.conversations.push(body);
                    } else {
                        self.skip(
                            line,
                            element.len(),
                            "neither a request nor a message".to_owned(),
                        );
                    }
                }
                if !list.messages.is_empty() {
                    self.conversations.push(list);
                }
            }
            _ => self.skip(line, value.len(), "not an object".to_owned()),
        }
    }

    fn skip(&mut self, line: usize, bytes: usize, reason: String) {
        if let Some(last) = self.skipped.last_mut()
            && last.reason == reason
            && (self.skipped_until..=self.skipped_until + 1).contains(&line)
        {
            // A run of such lines is one piece.
            last.bytes += bytes;
        } else {
            self.skipped.push(Skipped {
                line,
                bytes,
                reason,
            });
        }
        self.skipped_until = line;
    }

    /// Takes from a value that breaks off what is whole in it.
    fn torn(&mut self, text: &ByteString, line: usize) {
        let mut walk = Walk { text, at: 0 };
        let mut found = Conversation::default();
        match walk.peek() {
            Some(b'[') => walk.elements(&mut found, &mut self.skipped),
            Some(b'{') => {
                walk.at += 1;
                while let Some(key) = walk.key() {
                    if let Some(value) = walk.value() {
                        setting(&mut found, &key, &value);
                        if key == list_name(self.wire) {
                            fill(&mut found, &value, 0, &mut self.skipped);
                        }
                    } else {
                        if key == list_name(self.wire) && walk.peek() == Some(b'[') {
                            walk.elements(&mut found, &mut self.skipped);
                        }
                        break;
                    }
                }
            }
            _ => {}
        }
        if found.messages.is_empty() {
            self.skip(line, text.len(), "not JSON".to_owned());
        } else {
            let lines_before = memchr::memchr_iter(b'\n', text[..walk.at].as_bytes()).count();
            self.skip(
                line + lines_before,
                text.len() - walk.at,
                "the text breaks off here".to_owned(),
            );
            self.conversations.push(found);
        }
    }
}

/// Walks over JSON that breaks off somewhere.
struct Walk<'a> {
    text: &'a ByteString,
    at: usize,
}

impl Walk<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text.as_bytes().get(self.at).copied()
    }

    fn value(&mut self) -> Option<Raw> {
        self.peek()?;
        let rest = self.text.slice_ref(&self.text[self.at..]);
        let (value, end) = Raw::parse_prefix(&rest).ok()?;
        self.at += end;
        Some(value)
    }

    fn key(&mut self) -> Option<String> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        if self.peek()? != b'"' {
            return None;
        }
        let key = self.value()?.as_text()?.decode().into_owned();
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        Some(key)
    }

    fn elements(&mut self, found: &mut Conversation, skipped: &mut Vec<Skipped>) {
        self.at += 1;
        while let Some(next) = self.peek() {
            if next == b',' {
                self.at += 1;
            }
            let Some(element) = self.value() else { return };
            push(found, &element, 0, skipped);
        }
    }
}

fn is_message(value: &Raw) -> bool {
    let mut has_kind = false;
    for (key, value) in value.object() {
        match key.decode().as_ref() {
            "role" if value.kind() == Kind::String => return true,
            "messages" => return false,
            // A body's `input` is not a call's: only bodies go without a type.
            "type" => has_kind = value.kind() == Kind::String,
            _ => {}
        }
    }
    has_kind
}

fn body_at(
    body: &Raw,
    wire: Wire,
    position: usize,
    skipped: &mut Vec<Skipped>,
) -> Option<Conversation> {
    let mut conversation = Conversation::default();
    let mut list = None;
    let mut is_typed = false;
    for (key, value) in body.object() {
        let key = key.decode();
        if key == list_name(wire) {
            list = Some(value);
        } else {
            is_typed |= key == "type" || key == "role";
            setting(&mut conversation, &key, &value);
        }
    }
    let list = list?;
    let is_list = match wire {
        Wire::Anthropic | Wire::OpenAiChat => list.kind() == Kind::Array,
        // Calls of tools have an `input` as well.
        Wire::OpenAiResponses => !is_typed && matches!(list.kind(), Kind::Array | Kind::String),
    };
    if !is_list {
        return None;
    }
    fill(&mut conversation, &list, position, skipped);
    conversation.body = Some(body.clone());
    Some(conversation)
}

/// Takes over a field of the body that is not the list of messages.
fn setting(conversation: &mut Conversation, key: &str, value: &Raw) {
    match key {
        "model" => {
            conversation.model = value.as_text().map(|model| model.decode().into_owned());
        }
        "system" | "instructions" => conversation.system = blocks::content(value),
        "tools" if value.kind() == Kind::Array => conversation.tools = Some(value.clone()),
        _ => {}
    }
}

fn fill(conversation: &mut Conversation, list: &Raw, position: usize, skipped: &mut Vec<Skipped>) {
    if let Some(text) = list.as_text() {
        let message = Message::new(Role::User, vec![Block::text(text)]);
        conversation.messages.push(message);
        return;
    }
    for element in list.array() {
        push(conversation, &element, position, skipped);
    }
}

fn push(conversation: &mut Conversation, raw: &Raw, position: usize, skipped: &mut Vec<Skipped>) {
    let Some(read) = messages::read(raw) else {
        skipped.push(Skipped {
            line: position,
            bytes: raw.len(),
            reason: format!("message {} is not an object", conversation.messages.len()),
        });
        return;
    };
    let mut message = read.message;
    message.position.line = position;
    let index = conversation.messages.len();
    if let Some((code, text)) = read.oddity {
        conversation.problems.push(Problem {
            code,
            message: index,
            text,
        });
    }
    if message.author == Author::Compaction {
        conversation.compactions.push(CompactionMark {
            before_message: index,
            tokens_before: None,
            trigger: None,
        });
    }
    conversation.messages.push(message);
}

#[cfg(test)]
mod tests;
