//! The conformance suite: what every store must do, for those who write one.
//!
//! [`conforms`] checks what can be said one by one; [`agrees_with_model`] does random things to a store and to a plain
//! model of it, reopens the store in between, and compares everything that can be read.

mod conformance;
mod model;
mod random;

use std::sync::Arc;

use async_trait::async_trait;

use crate::change::Change;
use crate::memory::{Adoption, MemoryRow};
use crate::message::NewMessage;
use crate::session::{NewSession, SessionId};
use crate::store::Store;
use crate::usage::{Purpose, UsageRow};

pub use conformance::conforms;
pub use random::agrees_with_model;

/// Where a store lives.
#[async_trait]
pub trait Home: Send + Sync {
    /// Opens the store once more: what was stored before is there.
    async fn open(&self) -> Arc<dyn Store>;
}

/// Texts that a store might take for something else.
pub const HOSTILE_TEXTS: [&str; 24] = [
    "",
    " ",
    "\"",
    "'",
    "\"\"",
    "*",
    "a*",
    "NEAR(a b)",
    "a OR b",
    "AND",
    "NOT",
    "(",
    ")",
    "col:a",
    "^a",
    "-a",
    "{a}",
    "%",
    "_",
    "\\",
    "a\0b",
    "🦀🦀🦀",
    "'; DROP TABLE session; --",
    "\u{feff}\u{202e}é\u{301}",
];

/// The id that is written like this.
///
/// # Panics
/// If this is no session id.
#[expect(clippy::expect_used, reason = "a test gives an id")]
pub fn id(id: &str) -> SessionId {
    SessionId::new(id).expect("a session id")
}

/// A session of this id.
///
/// # Panics
/// If this is no session id.
pub fn session(name: &str, created_ms: i64) -> NewSession {
    let id = id(name);
    NewSession {
        title: format!("Session {id}"),
        head: format!(r#"{{"model":"m","session":"{id}"}}"#).into(),
        settings: r#"{"mode":"instant"}"#.into(),
        ..NewSession::new(id, "anthropic-messages", "m", created_ms)
    }
}

/// The message with this number and text.
pub fn message(number: u64, text: &str) -> NewMessage {
    let role = if number.is_multiple_of(2) {
        "user"
    } else {
        "assistant"
    };
    let json = serde_json::json!({"role": role, "content": text, "number": number}).to_string();
    NewMessage {
        at_ms: (!number.is_multiple_of(3)).then_some(1_000 + number as i64),
        sent: number.is_multiple_of(5).then(|| format!("{json} ").into()),
        ..NewMessage::new(json, digest(number), role, text, 1 + (number % 7) as u32)
    }
}

/// Appends a message with each of these texts to a session of `expected_count` messages.
pub fn append(expected_count: u64, texts: &[&str]) -> Change {
    let messages = (expected_count..)
        .zip(texts)
        .map(|(number, text)| message(number, text))
        .collect();
    Change::Append {
        expected_count,
        messages,
    }
}

/// A digest that is this number's own.
pub fn digest(number: u64) -> [u8; 32] {
    *blake3::hash(&number.to_le_bytes()).as_bytes()
}

/// A memory that says this text.
pub fn memory(version: u64, covered_count: u64, text: &str) -> MemoryRow {
    MemoryRow {
        version,
        covered_count,
        digest: digest(covered_count),
        origin: "extractive".into(),
        json: serde_json::json!({"task": text, "version": version}).to_string(),
        markdown: format!("# User Intent\n{text}\n"),
        created_ms: 5_000 + version as i64,
        tokens: 11,
    }
}

/// An adoption of this memory.
pub fn adoption(epoch: u64, memory_version: Option<u64>, covered_count: u64) -> Adoption {
    Adoption {
        epoch,
        memory_version,
        covered_count,
        state: format!(r#"{{"epoch":{epoch}}}"#),
        at_ms: 7_000 + epoch as i64,
    }
}

/// What the call with this number used.
pub fn usage(number: u64, purpose: Purpose) -> UsageRow {
    UsageRow {
        at_ms: 9_000 + number as i64,
        purpose,
        model: "m".into(),
        uncached: 1 + number,
        cache_write: 20 + number,
        cache_write_long: 300 + number,
        cache_read: 4_000 + number,
        output: 50_000 + number,
        cost_nanodollars: (!number.is_multiple_of(4)).then_some(600_000 + number as i64),
        request_id: number.is_multiple_of(2).then(|| format!("req_{number}")),
    }
}
