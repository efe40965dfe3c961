//! Messages as a store keeps them.

use bytes::Bytes;

/// A message that is to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The message as it was received.
    pub original: Bytes,
    /// What goes into requests, where that differs.
    pub sent: Option<Bytes>,
    /// The digest of the prefix that ends with this message.
    pub digest: [u8; 32],
    /// When it was written, in milliseconds since 1970, where that is known.
    pub at_ms: Option<i64>,
    /// Whose message it is.
    pub role: String,
    /// Its plain text, for search. Secrets are the caller's to take out.
    pub text: String,
    /// Its size in tokens.
    pub tokens: u32,
}

impl NewMessage {
    /// A message that is sent as it was received, at no known time.
    pub fn new(
        original: impl Into<Bytes>,
        digest: [u8; 32],
        role: impl Into<String>,
        text: impl Into<String>,
        tokens: u32,
    ) -> Self {
        Self {
            original: original.into(),
            sent: None,
            digest,
            at_ms: None,
            role: role.into(),
            text: text.into(),
            tokens,
        }
    }
}

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its place in the session, from 0.
    pub position: u64,
    /// The message as it was received.
    pub original: Bytes,
    /// What goes into requests, where that differs.
    pub sent: Option<Bytes>,
    /// The digest of the prefix that ends with this message.
    pub digest: [u8; 32],
    /// When it was written, in milliseconds since 1970, where that is known.
    pub at_ms: Option<i64>,
    /// Whose message it is.
    pub role: String,
    /// Its size in tokens.
    pub tokens: u32,
}

impl StoredMessage {
    /// The bytes that go into requests.
    pub fn request_bytes(&self) -> &Bytes {
        self.sent.as_ref().unwrap_or(&self.original)
    }
}

/// A message that was once part of a session and was cut off by an edit, a rewind or a clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupersededMessage {
    /// Its place among the superseded messages of the session, from 0, in the order in which they were cut off.
    pub sequence: u64,
    /// When it was cut off, in milliseconds since 1970.
    pub superseded_ms: i64,
    /// The message, with the position that it had.
    pub message: StoredMessage,
}
