//! Canonical digests: the same message has the same digest in every spelling that a client uses.
//!
//! Clients move their cache markers, write a lone text as a string or as a block, and add or leave out ids and states
//! of their own. None of this changes the content, so none of it is in the digest. White space, escapes and the
//! field names of the wire format are not in it either. The order of fields is.
//!
//! Digests are chained: the one of a prefix says which messages came before, all of them and in order.

use std::fmt;

use crate::json::{Kind, Raw, Text, closing_quote};
use crate::message::{Block, Content, Message, Role, ToolInput};

/// Digest of a message or of a prefix of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(blake3::Hash);

impl Digest {
    /// A digest that is not known. It equals the digest of no message and of no prefix.
    pub const UNKNOWN: Self = Self(blake3::Hash::from_bytes([0; 32]));

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// The digest with these bytes, as they were kept.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(blake3::Hash::from_bytes(bytes))
    }

    /// The digest that is displayed as `hex`, if one is.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        blake3::Hash::from_hex(hex).ok().map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Digest of one message.
#[must_use]
pub fn message_digest(message: &Message) -> Digest {
    let mut hasher = Hasher::default();
    hasher.tag(match message.role {
        Role::System => b's',
        Role::User => b'u',
        Role::Assistant => b'a',
        Role::Tool => b't',
    });
    for block in &message.blocks {
        hasher.block(block);
    }
    hasher.finish()
}

/// Digest of a growing prefix of a conversation.
#[derive(Clone, Debug)]
pub struct Chain(Digest);

impl Default for Chain {
    fn default() -> Self {
        Self(Hasher::default().finish())
    }
}

impl Chain {
    /// The empty prefix.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The prefix that has this digest.
    #[must_use]
    pub fn at(digest: Digest) -> Self {
        Self(digest)
    }

    /// Adds a message and gives the digest of the prefix that ends with it.
    pub fn push(&mut self, message: Digest) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.0.as_bytes());
        hasher.update(message.as_bytes());
        self.0 = Digest(hasher.finalize());
        self.0
    }

    /// Digest of the prefix so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0
    }
}

/// Digest of each prefix: element `n` is that of the first `n + 1` messages.
#[must_use]
pub fn prefix_digests(messages: &[Message]) -> Vec<Digest> {
    let mut chain = Chain::new();
    messages
        .iter()
        .map(|message| chain.push(message_digest(message)))
        .collect()
}

/// Fields that change from one request to the next without changing the content.
const VOLATILE: [&str; 4] = [
    "cache_control",
    "status",
    "index",
    "prompt_cache_breakpoint",
];

/// Hashes values with a tag before and a byte after each that no text holds, so that no two sequences of values run
/// together to the same bytes.
#[derive(Default)]
struct Hasher {
    hasher: blake3::Hasher,
    /// Short pieces are gathered before they are hashed; decoded texts pass through here as well.
    buffer: String,
    bytes: Vec<u8>,
}

const END: u8 = 0xff;
/// How much is gathered before it is hashed.
const BUFFER_BYTES: usize = 4096;

impl Hasher {
    fn tag(&mut self, tag: u8) {
        self.bytes.push(tag);
    }

    fn put(&mut self, text: &str) {
        if self.bytes.len() + text.len() > BUFFER_BYTES {
            self.flush();
        }
        if text.len() > BUFFER_BYTES {
            self.hasher.update(text.as_bytes());
        } else {
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    fn flush(&mut self) {
        self.hasher.update(&self.bytes);
        self.bytes.clear();
    }

    fn string(&mut self, tag: u8, text: &str) {
        self.tag(tag);
        self.put(text);
        self.tag(END);
    }

    fn text(&mut self, tag: u8, text: &Text) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        match text.as_plain() {
            Some(plain) => self.string(tag, plain),
            None => {
                text.decode_into(&mut buffer);
                self.string(tag, &buffer);
            }
        }
        self.buffer = buffer;
    }

    fn block(&mut self, block: &Block) {
        match &block.content {
            // An empty text is sent or left out as the client likes.
            Content::Text(text) if text.encoded_len() == 0 => {}
            Content::Text(text) => self.text(b'T', text),
            Content::ToolCall(call) => {
                self.string(b'C', &call.id);
                self.string(b'n', &call.name);
                match &call.input {
                    ToolInput::Json(input) => self.json(input),
                    ToolInput::Text(input) => self.text(b'x', input),
                }
            }
            Content::ToolResult(result) if !result.is_server_side => {
                self.string(b'R', &result.call_id);
                self.tag(if result.is_error == Some(true) {
                    b'!'
                } else {
                    b'.'
                });
                for block in &result.content {
                    self.block(block);
                }
                self.tag(b'r');
            }
            content => {
                // The signature, the data, unknown fields: all of it counts.
                self.tag(match content {
                    Content::Thinking(_) => b'H',
                    Content::ToolResult(_) => b'S',
                    Content::Image(_) => b'I',
                    Content::Document(_) => b'D',
                    Content::Compaction(_) => b'K',
                    _ => b'O',
                });
                match &block.raw {
                    Some(raw) => self.fields(raw),
                    None => self.typed(content),
                }
            }
        }
    }

    /// A block without JSON.
    fn typed(&mut self, content: &Content) {
        match content {
            Content::Thinking(text) | Content::Compaction(Some(text)) => self.text(b'T', text),
            Content::Image(media) | Content::Document(media) => {
                for part in [&media.media_type, &media.name] {
                    self.string(b'm', part.as_deref().unwrap_or_default());
                }
                self.string(b'm', &media.data_bytes.unwrap_or_default().to_string());
            }
            Content::ToolResult(result) => {
                self.string(b'R', &result.call_id);
                for block in &result.content {
                    // Not `block`: what a server tool sends is flat, and the depth stays bounded.
                    if let Content::Text(text) = &block.content {
                        self.text(b'T', text);
                    }
                }
            }
            Content::Other(kind) => self.string(b'k', kind),
            _ => {}
        }
    }

    /// The fields of a block, without the volatile ones and those that say nothing.
    fn fields(&mut self, raw: &Raw) {
        if raw.kind() != Kind::Object {
            self.json(raw);
            return;
        }
        let is_item = raw
            .text_field("type")
            .is_some_and(|kind| has_volatile_id(&kind.decode()));
        for (key, value) in raw.object() {
            let name = key.decode();
            let says_nothing =
                value.is_null() || (value.kind() == Kind::Array && value.array().next().is_none());
            if says_nothing || VOLATILE.contains(&name.as_ref()) || (is_item && name == "id") {
                continue;
            }
            self.string(b'f', &name);
            self.json(&value);
        }
        self.tag(b'e');
    }

    /// A value without its white space and with its strings decoded.
    fn json(&mut self, raw: &Raw) {
        let text = raw.as_str();
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    // The JSON is well formed, so the quote is there.
                    let end = closing_quote(bytes, at).unwrap_or(bytes.len() - 1);
                    let literal = text.get(at..=end).unwrap_or_default();
                    match raw_text(literal) {
                        Some(text) => self.text(b'"', &text),
                        None => self.string(b'"', literal.trim_matches('"')),
                    }
                    at = end + 1;
                }
                b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                _ => {
                    self.tag(*byte);
                    at += 1;
                    if self.bytes.len() > BUFFER_BYTES {
                        self.flush();
                    }
                }
            }
        }
        self.tag(END);
    }

    fn finish(mut self) -> Digest {
        self.flush();
        Digest(self.hasher.finalize())
    }
}

/// The text of a literal that holds an escape; `None` for one that is its own text.
fn raw_text(literal: &str) -> Option<Text> {
    memchr::memchr(b'\\', literal.as_bytes())?;
    Raw::parse(literal.to_owned()).ok()?.as_text()
}

/// Items of a Responses request whose `id` is the server's own and is not what other items refer to.
fn has_volatile_id(kind: &str) -> bool {
    matches!(
        kind,
        "message" | "reasoning" | "compaction" | "file_search_call" | "image_generation_call"
    )
}

#[cfg(test)]
mod tests;
