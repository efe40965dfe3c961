//! The position and time of a record in its file, for the messages that are made of it.

use bytestring::ByteString;
use throughline_transcript::message::{Message, Position};

/// What all messages of one record have in common.
#[derive(Clone, Default)]
pub(crate) struct Place {
    /// Line, counted from 1.
    pub(crate) line: usize,
    /// Milliseconds since 1970 UTC.
    pub(crate) at_ms: Option<i64>,
    /// The record's id.
    pub(crate) id: Option<ByteString>,
}

impl Place {
    /// Writes it down in a message.
    pub(crate) fn put(&self, mut message: Message) -> Message {
        message.position = Position { line: self.line };
        message.at_ms = self.at_ms;
        message.id.clone_from(&self.id);
        message
    }
}
