//! Sessions: their ids, what they begin with, what a list shows of them.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::limits::SESSION_ID_BYTES_MAX;

/// The name of a session: 1 to 128 of `A-Z a-z 0-9 _ -`, not beginning with `-`.
///
/// It can therefore neither escape a folder, nor hide in it, nor be taken for an option of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

/// The text is no session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a session id is 1 to 128 of A-Z, a-z, 0-9, _ and -, and does not begin with -")]
pub struct InvalidSessionId;

impl SessionId {
    /// Takes the text if it is a session id.
    ///
    /// # Errors
    /// [`InvalidSessionId`] if it is not.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidSessionId> {
        let text = text.into();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_id = (1..=SESSION_ID_BYTES_MAX).contains(&text.len())
            && text.bytes().all(is_allowed)
            && !text.starts_with('-');
        if is_id {
            Ok(Self(text))
        } else {
            Err(InvalidSessionId)
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

/// Where a fork left its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoint {
    /// The parent. It may have been deleted since; the fork has its own archive.
    pub session: SessionId,
    /// How many of the parent's first messages the fork began with.
    pub message_count: u64,
}

/// What a session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The id: the caller chooses it.
    pub id: SessionId,
    /// The session that this one is a fork of: its first messages become the first messages of the new one.
    pub parent: Option<ForkPoint>,
    /// The name of the wire that the session speaks.
    pub wire: String,
    /// The name of the model.
    pub model: String,
    /// What people call the session. May be empty.
    pub title: String,
    /// When it begins, in milliseconds since 1970.
    pub created_ms: i64,
    /// The request body without its messages.
    pub head: Bytes,
    /// The session's settings, in a form that is the caller's own.
    pub settings: String,
}

impl NewSession {
    /// A session with no parent, title, head or settings.
    pub fn new(
        id: SessionId,
        wire: impl Into<String>,
        model: impl Into<String>,
        created_ms: i64,
    ) -> Self {
        Self {
            id,
            parent: None,
            wire: wire.into(),
            model: model.into(),
            title: String::new(),
            created_ms,
            head: Bytes::new(),
            settings: String::new(),
        }
    }
}

/// What a list shows of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The id.
    pub id: SessionId,
    /// Where it was forked from.
    pub parent: Option<ForkPoint>,
    /// The name of the wire that the session speaks.
    pub wire: String,
    /// The name of the model.
    pub model: String,
    /// What people call the session.
    pub title: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was last changed, in milliseconds since 1970.
    pub updated_ms: i64,
    /// How many messages it has. Superseded ones do not count.
    pub message_count: u64,
    /// The tokens of these messages.
    pub tokens: u64,
    /// The newest memory version; 0 where there is none.
    pub memory_version: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_cannot_escape_a_folder_or_be_an_option() {
        let long = "x".repeat(128);
        for good in ["a", "0198-ab_C", "_", &long] {
            assert_eq!(
                SessionId::new(good).map(|id| id.to_string()),
                Ok(good.to_owned())
            );
        }
        let too_long = "x".repeat(129);
        for bad in [
            "", "-a", ".", "..", "../a", "a/b", "a\\b", "a.b", "a b", "a\0", "ä", "a\n", "~",
            &too_long,
        ] {
            assert_eq!(SessionId::new(bad), Err(InvalidSessionId), "{bad:?}");
        }
    }
}
