//! A client's request body, parsed only as far as necessary.
//!
//! The body of a long conversation has megabytes, and all but its end was in the previous request. A [`Reader`]
//! walks the list of messages: an element whose bytes are known is passed over by its length, without a look at its
//! grammar ([`Reader::skip`]); any other is walked and checked ([`Reader::next`]). At the end, [`Reader::finish`] gives
//! the [`Outline`]: the fields of the request and the positions of its messages in the body. [`Outline::replaced`]
//! replaces some of the messages and keeps every other byte that the client sent.
//!
//! ```
//! use throughline_transcript::outline::Reader;
//! use throughline_transcript::wire::Wire;
//!
//! let body = r#"{"model":"m","messages":[{"role":"user","content":"a"}, {"role":"user","content":"b"}]}"#;
//! let mut reader = Reader::new(Wire::Anthropic, body.into())?;
//! let first = reader.next()?.unwrap();
//! let second = reader.next()?.unwrap();
//! assert!(reader.next()?.is_none());
//! let outline = reader.finish()?;
//! assert_eq!(
//!     outline.replaced(&[], &[r#"{"role":"user","content":"memory"}"#], &[second.into()]),
//!     r#"{"model":"m","messages":[{"role":"user","content":"memory"},{"role":"user","content":"b"}]}"#
//! );
//! # assert_eq!(&body[first.start..first.end], r#"{"role":"user","content":"a"}"#);
//! # Ok::<(), throughline_transcript::outline::OutlineError>(())
//! ```

use std::ops::Range;

use bytestring::ByteString;

use crate::body::{list_name, read_message};
use crate::json::{JsonError, Raw};
use crate::message::Message;
use crate::wire::Wire;

/// The most fields that a request has beside its messages.
const FIELDS_MAX: usize = 256;

/// Type of an item of the input that has tools.
const ITEM_OF_TOOLS: &str = "additional_tools";

/// Why a body cannot be taken apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutlineError {
    /// It is no JSON, as far as it was looked at.
    #[error("the body is not JSON: {0}")]
    NotJson(#[from] JsonError),
    /// It is something else than an object.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// It has no list of messages, or something else in its place.
    #[error("the body has no list {name:?}")]
    NoList {
        /// Name of the field.
        name: &'static str,
    },
    /// A field that must be unique occurs twice.
    #[error("the field {name:?} occurs twice")]
    Twice {
        /// Name of the field.
        name: &'static str,
    },
    /// More than a request ever has.
    #[error("the body has more than {FIELDS_MAX} fields")]
    TooManyFields,
}

/// The position of a message in the body, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

/// What replaces a message in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The message itself.
    Kept(Span),
    /// This JSON.
    Other(Raw),
}

impl From<Span> for Piece {
    fn from(span: Span) -> Self {
        Self::Kept(span)
    }
}

/// A body in the reading: everything before its messages is read, and the messages so far.
#[derive(Clone, Debug)]
pub struct Reader {
    wire: Wire,
    body: ByteString,
    fields: Vec<(String, Raw)>,
    /// The byte after the bracket that opens the list.
    list_start: usize,
    at: usize,
    is_first: bool,
    /// The bracket that closes the list.
    list_end: Option<usize>,
}

/// A body that was read.
#[derive(Clone, Debug)]
pub struct Outline {
    wire: Wire,
    body: ByteString,
    /// The body without white space around it.
    value: Raw,
    fields: Vec<(String, Raw)>,
    list: Range<usize>,
}

impl Reader {
    /// Reads a body up to the first of its messages.
    ///
    /// # Errors
    /// If it is no object with such a list.
    pub fn new(wire: Wire, body: ByteString) -> Result<Self, OutlineError> {
        let mut reader = Self {
            wire,
            body,
            fields: Vec::new(),
            list_start: 0,
            at: 0,
            is_first: true,
            list_end: None,
        };
        reader.space();
        if reader.peek() != Some(b'{') {
            // What is no JSON at all is said to be none.
            Raw::parse(reader.body.clone())?;
            return Err(OutlineError::NotAnObject);
        }
        reader.at += 1;
        reader.space();
        if reader.peek() == Some(b'}') || !reader.fields_until_list()? {
            let name = list_name(wire);
            return Err(OutlineError::NoList { name });
        }
        reader.list_start = reader.at;
        Ok(reader)
    }

    /// Passes over the next message if it has `len` bytes and they are the ones that are meant.
    ///
    /// What follows it must be a comma or the end of the list, so that a message is never taken for a part of one.
    pub fn skip(&mut self, len: usize, is_known: impl FnOnce(&[u8]) -> bool) -> Option<Span> {
        let start = self.element_start()?;
        let end = start.checked_add(len)?;
        let bytes = self.body.as_bytes().get(start..end)?;
        let after = behind_space(self.body.as_bytes(), end);
        let is_whole = matches!(self.body.as_bytes().get(after), Some(b',' | b']'));
        if !is_whole || !self.body.is_char_boundary(end) || !is_known(bytes) {
            return None;
        }
        self.at = end;
        self.is_first = false;
        Some(Span { start, end })
    }

    /// Walks over the next message; `None` when there is no further one.
    ///
    /// # Errors
    /// If what follows is no JSON.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would hide that it fails"
    )]
    pub fn next(&mut self) -> Result<Option<Span>, OutlineError> {
        if self.list_end.is_some() {
            return Ok(None);
        }
        self.space();
        if self.peek() == Some(b']') {
            self.list_end = Some(self.at);
            self.at += 1;
            return Ok(None);
        }
        if !self.is_first {
            self.expect(b',')?;
        }
        let start = self.space();
        self.value()?;
        self.is_first = false;
        let end = self.at;
        Ok(Some(Span { start, end }))
    }

    /// The message that was read.
    #[must_use]
    pub fn message(&self, span: Span) -> &str {
        self.body.get(span.start..span.end).unwrap_or_default()
    }

    /// Reads a message that was walked over, from a copy of its text, so that the body can be freed. `None` if it is no
    /// message.
    #[must_use]
    pub fn read(&self, span: Span) -> Option<Message> {
        read_at(&self.body, span)
    }

    /// Reads what is left, messages and fields.
    ///
    /// # Errors
    /// If what follows is no JSON, or the list is there twice.
    pub fn finish(mut self) -> Result<Outline, OutlineError> {
        while self.next()?.is_some() {}
        let list = self.list_start..self.list_end.unwrap_or(self.at);
        self.space();
        if self.peek() != Some(b'}') {
            self.expect(b',')?;
            if self.fields_until_list()? {
                return Err(OutlineError::Twice {
                    name: list_name(self.wire),
                });
            }
        } else {
            self.at += 1;
        }
        let end = self.at;
        self.space();
        if self.at < self.body.len() {
            self.trailing()?;
        }
        Ok(Outline {
            wire: self.wire,
            value: Raw::checked(&self.body, end),
            body: self.body,
            fields: self.fields,
            list,
        })
    }

    /// Reads fields. True: the value of the list has begun. False: the object has ended.
    fn fields_until_list(&mut self) -> Result<bool, OutlineError> {
        let name = list_name(self.wire);
        loop {
            let start = self.space();
            let key = self.value()?.as_text();
            let Some(key) = key.map(|key| key.decode().into_owned()) else {
                self.at = start;
                return Err(self.unexpected().into());
            };
            self.space();
            self.expect(b':')?;
            self.space();
            if key == name {
                if self.peek() != Some(b'[') {
                    self.value()?;
                    return Err(OutlineError::NoList { name });
                }
                self.at += 1;
                return Ok(true);
            }
            let value = self.value()?;
            if self.fields.len() == FIELDS_MAX {
                return Err(OutlineError::TooManyFields);
            }
            self.fields.push((key, value));
            self.space();
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(false);
            }
            self.expect(b',')?;
        }
    }

    /// Where the next message begins, behind the comma before it.
    fn element_start(&self) -> Option<usize> {
        let bytes = self.body.as_bytes();
        let mut at = behind_space(bytes, self.at);
        if !self.is_first {
            if bytes.get(at) != Some(&b',') {
                return None;
            }
            at = behind_space(bytes, at + 1);
        }
        (self.list_end.is_none() && bytes.get(at) == Some(&b'{')).then_some(at)
    }

    /// Walks over a value.
    fn value(&mut self) -> Result<Raw, OutlineError> {
        let rest = self.body.get(self.at..).unwrap_or_default();
        let (value, len) = Raw::parse_prefix(&self.body.slice_ref(rest)).map_err(|mut error| {
            error.offset += self.at;
            error
        })?;
        self.at += len;
        Ok(value)
    }

    fn expect(&mut self, byte: u8) -> Result<(), OutlineError> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected().into());
        }
        self.at += 1;
        Ok(())
    }

    fn unexpected(&self) -> JsonError {
        JsonError {
            offset: self.at,
            kind: if self.at < self.body.len() {
                crate::json::JsonErrorKind::UnexpectedCharacter
            } else {
                crate::json::JsonErrorKind::UnexpectedEnd
            },
        }
    }

    fn trailing(&self) -> Result<(), OutlineError> {
        Err(JsonError {
            offset: self.at,
            kind: crate::json::JsonErrorKind::TrailingText,
        }
        .into())
    }

    fn peek(&self) -> Option<u8> {
        self.body.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) -> usize {
        self.at = behind_space(self.body.as_bytes(), self.at);
        self.at
    }
}

fn read_at(body: &ByteString, span: Span) -> Option<Message> {
    read_message(&Raw::copied(body.get(span.start..span.end)?))
}

/// The first byte from `at` on that is no white space.
fn behind_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

impl Outline {
    /// The format of the request.
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The whole body.
    #[must_use]
    pub fn body(&self) -> &ByteString {
        &self.body
    }

    /// The body as a value.
    #[must_use]
    pub fn value(&self) -> &Raw {
        &self.value
    }

    /// Reads a message of the body, from a copy of its text. `None` if it is no message.
    #[must_use]
    pub fn read(&self, span: Span) -> Option<Message> {
        read_at(&self.body, span)
    }

    /// The last field of this name; never the messages.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&Raw> {
        self.fields
            .iter()
            .rfind(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// All fields but the messages, in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    /// Whether the model is given tools, wherever the format has a place for them: a list of their own, servers that have
    /// them (Anthropic), the list of earlier days (Chat), items of the input (Responses, as Codex sends them).
    #[must_use]
    pub fn offers_tools(&self) -> bool {
        let is_filled = |name: &str| {
            self.field(name)
                .is_some_and(|tools| tools.array().next().is_some())
        };
        match self.wire {
            Wire::Anthropic => is_filled("tools") || is_filled("mcp_servers"),
            Wire::OpenAiChat => is_filled("tools") || is_filled("functions"),
            Wire::OpenAiResponses => is_filled("tools") || self.has_item_of_tools(),
        }
    }

    fn has_item_of_tools(&self) -> bool {
        let list = self.body.get(self.list.clone()).unwrap_or_default();
        // Most requests have none, and are not walked for it.
        if !list.contains(ITEM_OF_TOOLS) {
            return false;
        }
        let Ok(mut reader) = Reader::new(self.wire, self.body.clone()) else {
            return false;
        };
        while let Ok(Some(span)) = reader.next() {
            let text = reader.message(span);
            if !text.contains(ITEM_OF_TOOLS) {
                continue;
            }
            let Ok(item) = Raw::parse(text.to_owned()) else {
                continue;
            };
            let [kind, tools] = item.fields(["type", "tools"]);
            let is_it = kind
                .and_then(|kind| kind.as_text())
                .is_some_and(|kind| kind.decode() == ITEM_OF_TOOLS);
            if is_it && tools.is_some_and(|tools| tools.array().next().is_some()) {
                return true;
            }
        }
        false
    }

    /// The body with other messages: `lead`, `inserted`, `rest`. Adjacent messages that are kept are copied together
    /// with the bytes between them, so that they are the bytes that the client sent; so is everything outside of the
    /// list.
    #[must_use]
    pub fn replaced(&self, lead: &[Span], inserted: &[&str], rest: &[Piece]) -> String {
        let body: &str = &self.body;
        let added: usize = inserted.iter().map(|text| text.len() + 1).sum();
        let mut out = String::with_capacity(body.len().min(rest.len() * 4096 + 65_536) + added);
        out.push_str(body.get(..self.list.start).unwrap_or_default());
        let mut is_first = true;
        let mut comma = |out: &mut String| {
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
        };
        if let (Some(first), Some(last)) = (lead.first(), lead.last()) {
            comma(&mut out);
            out.push_str(body.get(first.start..last.end).unwrap_or_default());
        }
        for text in inserted {
            comma(&mut out);
            out.push_str(text);
        }
        let mut at = 0;
        while let Some(piece) = rest.get(at) {
            comma(&mut out);
            match piece {
                Piece::Other(raw) => {
                    out.push_str(raw.as_str());
                    at += 1;
                }
                Piece::Kept(first) => {
                    let (mut count, mut last) = (1, *first);
                    while let Some(Piece::Kept(next)) = rest.get(at + count) {
                        let between = body.get(last.end..next.start).unwrap_or_default();
                        // A message that is left out lies between them.
                        if !between
                            .bytes()
                            .all(|b| b == b',' || b.is_ascii_whitespace())
                        {
                            break;
                        }
                        (count, last) = (count + 1, *next);
                    }
                    out.push_str(body.get(first.start..last.end).unwrap_or_default());
                    at += count;
                }
            }
        }
        // The bytes between the last message and the bracket carry no meaning.
        out.push_str(body.get(self.list.end..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests;
