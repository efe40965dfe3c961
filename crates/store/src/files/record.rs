//! The lines of a session's commit log. One line is one commit: a checksum, a space, JSON.

use serde::{Deserialize, Serialize};

use crate::change::Counts;
use crate::error::StoreError;
use crate::session::{ForkPoint, NewSession, SessionId, SessionInfo};
use crate::usage::{Purpose, UsageRow};

/// The format that this program writes.
pub(super) const FORMAT: i64 = 1;

/// How many hexadecimal characters of a digest stand before a line.
const CHECK_CHARS: usize = 16;

/// Where some bytes are in a file: offset and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span(pub(super) u64, pub(super) u64);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Commit {
    pub(super) at_ms: i64,
    /// The lengths of the two other files once this commit is done.
    pub(super) transcript_bytes: u64,
    pub(super) parts_bytes: u64,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    Created(Created),
    Message(MessageEntry),
    Truncate {
        to_count: u64,
    },
    Memory(MemoryEntry),
    Adopt {
        epoch: u64,
        memory_version: Option<u64>,
        covered_count: u64,
        state: Span,
        at_ms: i64,
    },
    Head(Span),
    Settings(Span),
    Title(String),
    Model(String),
    Event {
        kind: String,
        json: Span,
    },
    Usage(UsageEntry),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Created {
    pub(super) format: i64,
    /// Tells a session from one of the same id that was deleted before.
    pub(super) birth: String,
    pub(super) id: String,
    pub(super) parent: Option<(String, u64)>,
    pub(super) wire: String,
    pub(super) model: String,
    pub(super) title: String,
    pub(super) created_ms: i64,
    pub(super) head: Span,
    pub(super) settings: Span,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MessageEntry {
    /// The line of the transcript, without its end.
    pub(super) line: Span,
    /// The message as it was received, where that is not one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) original: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent: Option<Span>,
    pub(super) text: Span,
    pub(super) digest: Hex,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at_ms: Option<i64>,
    pub(super) role: Box<str>,
    pub(super) tokens: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MemoryEntry {
    pub(super) version: u64,
    pub(super) covered_count: u64,
    pub(super) digest: Hex,
    pub(super) origin: String,
    pub(super) created_ms: i64,
    pub(super) tokens: u32,
    pub(super) json: Span,
    pub(super) markdown: Span,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct UsageEntry {
    at_ms: i64,
    purpose: String,
    model: String,
    uncached: u64,
    cache_write: u64,
    cache_write_long: u64,
    cache_read: u64,
    output: u64,
    cost_nanodollars: Option<i64>,
    request_id: Option<String>,
}

/// A digest, written as hexadecimal characters.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Hex(pub(super) [u8; 32]);

impl From<Hex> for String {
    fn from(hex: Hex) -> Self {
        blake3::Hash::from_bytes(hex.0).to_hex().to_string()
    }
}

impl TryFrom<String> for Hex {
    type Error = blake3::HexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Ok(Self(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}

impl Commit {
    /// The line, with its end.
    pub(super) fn to_line(&self) -> Result<Vec<u8>, StoreError> {
        let json = serde_json::to_string(self).map_err(|error| StoreError::Unavailable {
            source: error.into(),
        })?;
        Ok(format!("{} {json}\n", check(json.as_bytes())).into_bytes())
    }

    /// The commit of a line without its end, if the line is whole.
    pub(super) fn from_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(whole(line)?).ok()
    }
}

/// The JSON of a line whose checksum holds.
pub(super) fn whole(line: &[u8]) -> Option<&[u8]> {
    let (found, rest) = line.split_at_checked(CHECK_CHARS)?;
    let json = rest.strip_prefix(b" ")?;
    (check(json).as_bytes() == found).then_some(json)
}

fn check(json: &[u8]) -> String {
    let mut check = blake3::hash(json).to_hex().to_string();
    check.truncate(CHECK_CHARS);
    check
}

impl Created {
    pub(super) fn new(new: &NewSession, birth: String, head: Span, settings: Span) -> Self {
        Self {
            format: FORMAT,
            birth,
            id: new.id.to_string(),
            parent: new
                .parent
                .as_ref()
                .map(|fork| (fork.session.to_string(), fork.message_count)),
            wire: new.wire.clone(),
            model: new.model.clone(),
            title: new.title.clone(),
            created_ms: new.created_ms,
            head,
            settings,
        }
    }

    /// What a list shows of the session before its first message. None if it names no session.
    pub(super) fn info(&self) -> Option<SessionInfo> {
        let parent = match &self.parent {
            Some((id, message_count)) => Some(ForkPoint {
                session: SessionId::new(id.clone()).ok()?,
                message_count: *message_count,
            }),
            None => None,
        };
        Some(SessionInfo {
            id: SessionId::new(self.id.clone()).ok()?,
            parent,
            wire: self.wire.clone(),
            model: self.model.clone(),
            title: self.title.clone(),
            created_ms: self.created_ms,
            updated_ms: self.created_ms,
            message_count: 0,
            tokens: 0,
            memory_version: 0,
        })
    }
}

impl From<&UsageRow> for UsageEntry {
    fn from(row: &UsageRow) -> Self {
        Self {
            at_ms: row.at_ms,
            purpose: row.purpose.as_str().to_owned(),
            model: row.model.clone(),
            uncached: row.uncached,
            cache_write: row.cache_write,
            cache_write_long: row.cache_write_long,
            cache_read: row.cache_read,
            output: row.output,
            cost_nanodollars: row.cost_nanodollars,
            request_id: row.request_id.clone(),
        }
    }
}

impl UsageEntry {
    /// None if the purpose is one that this program does not know.
    pub(super) fn into_row(self) -> Option<UsageRow> {
        Some(UsageRow {
            at_ms: self.at_ms,
            purpose: Purpose::named(&self.purpose)?,
            model: self.model,
            uncached: self.uncached,
            cache_write: self.cache_write,
            cache_write_long: self.cache_write_long,
            cache_read: self.cache_read,
            output: self.output,
            cost_nanodollars: self.cost_nanodollars,
            request_id: self.request_id,
        })
    }
}

/// What is written beside the log, so that a list needs not read logs. Valid while the log has this length.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Summary {
    pub(super) log_bytes: u64,
    session: SummaryRow,
}

#[derive(Debug, Serialize, Deserialize)]
struct SummaryRow {
    id: String,
    parent: Option<(String, u64)>,
    wire: String,
    model: String,
    title: String,
    created_ms: i64,
    updated_ms: i64,
    message_count: u64,
    tokens: u64,
    memory_version: u64,
    epoch: u64,
    covered_count: u64,
}

impl Summary {
    pub(super) fn new(log_bytes: u64, info: &SessionInfo, counts: Counts) -> Self {
        let session = SummaryRow {
            id: info.id.to_string(),
            parent: info
                .parent
                .as_ref()
                .map(|fork| (fork.session.to_string(), fork.message_count)),
            wire: info.wire.clone(),
            model: info.model.clone(),
            title: info.title.clone(),
            created_ms: info.created_ms,
            updated_ms: info.updated_ms,
            message_count: info.message_count,
            tokens: info.tokens,
            memory_version: info.memory_version,
            epoch: counts.epoch,
            covered_count: counts.covered_count,
        };
        Self { log_bytes, session }
    }

    pub(super) fn into_info(self) -> Option<SessionInfo> {
        let row = self.session;
        let parent = match row.parent {
            Some((id, message_count)) => Some(ForkPoint {
                session: SessionId::new(id).ok()?,
                message_count,
            }),
            None => None,
        };
        Some(SessionInfo {
            id: SessionId::new(row.id).ok()?,
            parent,
            wire: row.wire,
            model: row.model,
            title: row.title,
            created_ms: row.created_ms,
            updated_ms: row.updated_ms,
            message_count: row.message_count,
            tokens: row.tokens,
            memory_version: row.memory_version,
        })
    }
}
