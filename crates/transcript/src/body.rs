//! Reads request bodies and their messages: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses.
//!
//! A body is split into slices, never turned into a tree. [`read_body`] reads a whole one, [`read_message`] one message
//! or item, [`BodyReader`] the parts of a body that is not whole. What is broken is left out and reported; the rest is
//! read. Whether a provider accepts the request is the business of [`crate::check`].
//!
//! ```
//! use throughline_transcript::body::read_body;
//! use throughline_transcript::json::Raw;
//! use throughline_transcript::wire::Wire;
//!
//! let body = Raw::parse(r#"{"model":"m","messages":[{"role":"user","content":"Is it done?"}]}"#)?;
//! let conversation = read_body(&body, Wire::OpenAiChat).unwrap();
//! assert_eq!(conversation.model.as_deref(), Some("m"));
//! assert_eq!(conversation.messages[0].texts().next().unwrap().decode(), "Is it done?");
//! # Ok::<(), throughline_transcript::json::JsonError>(())
//! ```

mod blocks;
mod messages;

use crate::conversation::{CompactionMark, Conversation, Problem};
use crate::json::{Kind, Raw};
use crate::message::{Author, Block, Message, Role};
use crate::wire::Wire;

/// Reads a request body of the wire format; `None` if it is not an object with messages or input.
///
/// Messages that are not objects are left out and named in the problems.
#[must_use]
pub fn read_body(body: &Raw, wire: Wire) -> Option<Conversation> {
    let (mut conversation, unreadable) = BodyReader::body(body, wire, 0)?.finish();
    conversation
        .problems
        .extend(unreadable.into_iter().map(|unreadable| Problem {
            code: "unreadable-message",
            message: 0,
            text: unreadable.to_string(),
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

/// An element of the list of messages that is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {index} is not an object")]
pub struct UnreadableMessage {
    /// Number of messages before it.
    pub index: usize,
    /// Its length, bytes.
    pub bytes: usize,
}

/// Reads a request body part by part, for bodies that are torn and for lists of messages without a body.
#[derive(Debug)]
pub struct BodyReader {
    wire: Wire,
    line: usize,
    conversation: Conversation,
    unreadable: Vec<UnreadableMessage>,
}

impl BodyReader {
    /// Starts with nothing. The messages get `line` as their position.
    #[must_use]
    pub fn new(wire: Wire, line: usize) -> Self {
        Self {
            wire,
            line,
            conversation: Conversation::default(),
            unreadable: Vec::new(),
        }
    }

    /// Reads a whole body; `None` if it is not an object with messages or input.
    #[must_use]
    pub fn body(body: &Raw, wire: Wire, line: usize) -> Option<Self> {
        let mut reader = Self::new(wire, line);
        let mut list = None;
        let mut is_typed = false;
        for (key, value) in body.object() {
            let key = key.decode();
            if key == list_name(wire) {
                list = Some(value);
            } else {
                is_typed |= key == "type" || key == "role";
                reader.setting(&key, &value);
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
        reader.list(&list);
        reader.conversation.body = Some(body.clone());
        Some(reader)
    }

    /// Reads a field of the body.
    pub fn field(&mut self, key: &str, value: &Raw) {
        if key == list_name(self.wire) {
            self.list(value);
        } else {
            self.setting(key, value);
        }
    }

    /// Reads a message or an item.
    pub fn message(&mut self, raw: &Raw) {
        let conversation = &mut self.conversation;
        let index = conversation.messages.len();
        let Some(read) = messages::read(raw) else {
            self.unreadable.push(UnreadableMessage {
                index,
                bytes: raw.len(),
            });
            return;
        };
        let mut message = read.message;
        message.position.line = self.line;
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

    /// Sets the position of the messages that follow.
    pub fn set_line(&mut self, line: usize) {
        self.line = line;
    }

    /// Whether no message has been read so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conversation.messages.is_empty()
    }

    /// The conversation, and the elements that are no messages.
    #[must_use]
    pub fn finish(self) -> (Conversation, Vec<UnreadableMessage>) {
        (self.conversation, self.unreadable)
    }

    fn setting(&mut self, key: &str, value: &Raw) {
        let conversation = &mut self.conversation;
        match key {
            "model" => {
                conversation.model = value.as_text().map(|model| model.decode().into_owned());
            }
            "system" | "instructions" => conversation.system = blocks::content(value),
            "tools" if value.kind() == Kind::Array => conversation.tools = Some(value.clone()),
            _ => {}
        }
    }

    fn list(&mut self, list: &Raw) {
        if let Some(text) = list.as_text() {
            let message = Message::new(Role::User, vec![Block::text(text)]);
            self.conversation.messages.push(message);
            return;
        }
        for element in list.array() {
            self.message(&element);
        }
    }
}

#[cfg(test)]
mod tests;
