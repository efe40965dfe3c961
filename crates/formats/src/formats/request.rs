//! Request bodies as files: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses.
//!
//! A source is one body, a bare array of messages or items, or lines of either. What is broken is left out and
//! reported; the rest is read. The bodies themselves are read by [`throughline_transcript::body`].

pub(super) mod signs;

use bytestring::ByteString;
use throughline_transcript::body::{BodyReader, list_name};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{JsonError, Kind, Raw};
use throughline_transcript::wire::Wire;

use self::signs::Signs;
use super::{Format, Probe};
use crate::document::LineCounter;
use crate::source::{ReadError, SkippedPart, Source, SourceText};

/// Requests of the Anthropic Messages format.
pub(crate) static ANTHROPIC: Request = Request(Wire::Anthropic);
/// Requests of the OpenAI Chat Completions format.
pub(crate) static OPENAI_CHAT: Request = Request(Wire::OpenAiChat);
/// Requests of the OpenAI Responses format.
pub(crate) static OPENAI_RESPONSES: Request = Request(Wire::OpenAiResponses);

/// The format whose sources are requests in a wire format.
pub(crate) struct Request(Wire);

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
        Signs::of(probe.text()).score(self.0)
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        if source.text.trim().is_empty() {
            return Err(ReadError::Empty);
        }
        let mut reader = Reader {
            wire: self.0,
            conversations: Vec::new(),
            loose: BodyReader::new(self.0, 0),
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
        if !loose.is_empty() {
            conversations.push(loose.finish().0);
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

struct Reader {
    wire: Wire,
    conversations: Vec<Conversation>,
    /// Messages outside of any body.
    loose: BodyReader,
    skipped: Vec<SkippedPart>,
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

    /// Continues after a broken value. From here on each line is read separately, so that the time stays linear.
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

    /// A complete value. `position` is the line that its messages get, `line` the line of the value.
    fn value(&mut self, value: &Raw, position: usize, line: usize) {
        match value.kind() {
            Kind::Object => {
                if let Some(body) = BodyReader::body(value, self.wire, position) {
                    self.add(body, position);
                } else if is_message(value) {
                    self.loose.set_line(position);
                    self.loose.message(value);
                } else {
                    self.skip(
                        line,
                        value.len(),
                        "neither a request nor a message".to_owned(),
                    );
                }
            }
            Kind::Array => {
                let mut list = BodyReader::new(self.wire, position);
                for element in value.array() {
                    if element.kind() != Kind::Object || is_message(&element) {
                        list.message(&element);
                    } else if let Some(body) = BodyReader::body(&element, self.wire, position) {
                        self.add(body, position);
                    } else {
                        self.skip(
                            line,
                            element.len(),
                            "neither a request nor a message".to_owned(),
                        );
                    }
                }
                let is_empty = list.is_empty();
                let list = self.finish(list, position);
                if !is_empty {
                    self.conversations.push(list);
                }
            }
            _ => self.skip(line, value.len(), "not an object".to_owned()),
        }
    }

    fn add(&mut self, body: BodyReader, line: usize) {
        let conversation = self.finish(body, line);
        self.conversations.push(conversation);
    }

    fn finish(&mut self, reader: BodyReader, line: usize) -> Conversation {
        let (conversation, unreadable) = reader.finish();
        self.skipped
            .extend(unreadable.iter().map(|unreadable| SkippedPart {
                line,
                bytes: unreadable.bytes,
                reason: unreadable.to_string(),
            }));
        conversation
    }

    fn skip(&mut self, line: usize, bytes: usize, reason: String) {
        if let Some(last) = self.skipped.last_mut()
            && last.reason == reason
            && (self.skipped_until..=self.skipped_until + 1).contains(&line)
        {
            // A run of such lines is one piece.
            last.bytes += bytes;
        } else {
            self.skipped.push(SkippedPart {
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
        let mut found = BodyReader::new(self.wire, 0);
        match walk.peek() {
            Some(b'[') => walk.elements(&mut found),
            Some(b'{') => {
                walk.at += 1;
                while let Some(key) = walk.key() {
                    if let Some(value) = walk.value() {
                        found.field(&key, &value);
                    } else {
                        if key == list_name(self.wire) && walk.peek() == Some(b'[') {
                            walk.elements(&mut found);
                        }
                        break;
                    }
                }
            }
            _ => {}
        }
        let is_empty = found.is_empty();
        let found = self.finish(found, 0);
        if is_empty {
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

    fn elements(&mut self, found: &mut BodyReader) {
        self.at += 1;
        while let Some(next) = self.peek() {
            if next == b',' {
                self.at += 1;
            }
            let Some(element) = self.value() else { return };
            found.message(&element);
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

#[cfg(test)]
mod tests;
