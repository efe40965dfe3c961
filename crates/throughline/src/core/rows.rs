//! Messages, memories and adoptions as the store has them.

use std::str;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use throughline_engine::{
    CompactionSettings, MemoryAdoption, Snapshot, Time, Version, VersionOrigin,
};
use throughline_memory::document::Memory;
use throughline_memory::redact::Redactor;
use throughline_memory::render::markdown;
use throughline_store::{Change, Loaded, MemoryRow, NewMessage, Purpose, StoredMessage, UsageRow};
use throughline_transcript::body::read_message;
use throughline_transcript::catalogue::Money;
use throughline_transcript::digest::{Chain, Digest, message_digest};
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Block, Content, Message, Role, ToolInput};
use throughline_transcript::request::{ShortenedMessage, shorten};
use throughline_transcript::text::head;
use throughline_transcript::tokens::Counter;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;

use super::SessionRow;

/// The part of a message that can be searched, bytes.
const SEARCHED_BYTES_MAX: usize = 64 * 1024;

/// What is stored with an adoption for the core's own use.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct AdoptionState {
    at_messages: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quoted: Option<(usize, usize)>,
}

/// A message to add.
#[derive(Clone, Debug)]
pub struct ReadMessage {
    /// As it goes into requests.
    pub message: Message,
    /// The whole message, where requests have a shortened one.
    pub original: Option<Raw>,
}

impl From<Message> for ReadMessage {
    fn from(message: Message) -> Self {
        Self {
            message,
            original: None,
        }
    }
}

/// Something to store.
#[derive(Clone, Debug)]
pub enum PendingChange {
    /// A change that is ready.
    Change(Change),
    /// A message whose row is not made yet: redacting its searchable text takes time.
    Message {
        /// Messages before it.
        expected_count: u64,
        /// The message, as it goes into requests.
        message: Box<Message>,
        /// The whole message, where requests have a shortened one.
        original: Option<Raw>,
        /// Digest of everything up to it.
        chain: Digest,
        /// When it was added.
        at: Time,
        /// Counts its tokens.
        counter: Counter,
    },
}

impl From<Change> for PendingChange {
    fn from(change: Change) -> Self {
        Self::Change(change)
    }
}

impl PendingChange {
    /// The change, with its row made.
    #[must_use]
    pub fn into_change(self) -> Change {
        match self {
            Self::Change(change) => change,
            Self::Message {
                expected_count,
                message,
                original,
                chain,
                at,
                counter,
            } => Change::Append {
                expected_count,
                messages: vec![row(&message, original.as_ref(), chain, at, counter)],
            },
        }
    }

    /// The bytes that it holds in memory, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Change(Change::Append { messages, .. }) => messages
                .iter()
                .map(|message| message.original.len() + message.text.len() + 200)
                .sum(),
            Self::Change(Change::Memory(row)) => row.json.len() + row.markdown.len(),
            Self::Change(Change::Head(head)) => head.len(),
            Self::Change(Change::Settings(text)) => text.len(),
            Self::Change(_) => 200,
            Self::Message { message, .. } => 200 + message.raw.as_ref().map_or(0, |raw| raw.len()),
        }
    }
}

/// Reads messages that follow the first `count`. Results of tools longer than `result_bytes_max` are shortened.
///
/// # Errors
/// The index of what is not a message.
pub(crate) fn read(
    raws: &[Raw],
    wire: Wire,
    count: usize,
    result_bytes_max: usize,
) -> Result<Vec<ReadMessage>, usize> {
    let read = |(index, raw): (usize, &Raw)| {
        // Memories and people count from 1.
        let pointer = format!("all of it is message {} in the archive", index + 1);
        let read = match shorten(raw, wire, result_bytes_max, &pointer) {
            Some(ShortenedMessage { message, .. }) => ReadMessage {
                message: read_message(&message).ok_or(index)?,
                original: Some(raw.clone()),
            },
            None => read_message(raw).ok_or(index)?.into(),
        };
        Ok(read)
    };
    (count..).zip(raws).map(read).collect()
}

/// The change that adds messages behind the first `count`, whose digest is `chain`.
pub(crate) fn append(
    messages: &[ReadMessage],
    count: usize,
    mut chain: Chain,
    at: Time,
    counter: Counter,
) -> Change {
    let rows = messages.iter().map(|read| {
        let digest = chain.push(message_digest(&read.message));
        row(&read.message, read.original.as_ref(), digest, at, counter)
    });
    Change::Append {
        expected_count: count as u64,
        messages: rows.collect(),
    }
}

/// The row of a message. `digest` is that of the prefix that ends with it; `at` is now, for a message without a time.
fn row(
    message: &Message,
    original: Option<&Raw>,
    digest: Digest,
    at: Time,
    counter: Counter,
) -> NewMessage {
    let tokens = counter.estimating().message(message);
    let sent = message.raw.as_ref().map_or("", Raw::as_str);
    let whole = original.and_then(read_message);
    NewMessage {
        original: original
            .map_or(sent, Raw::as_str)
            .as_bytes()
            .to_vec()
            .into(),
        sent: original.map(|_| sent.as_bytes().to_vec().into()),
        digest: *digest.as_bytes(),
        at_ms: message.at_ms.or(Some(at.ms())),
        role: role(message.role).to_owned(),
        text: searchable(whole.as_ref().unwrap_or(message)),
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// What can be searched of a message: its texts, without secrets.
fn searchable(message: &Message) -> String {
    let mut text = String::new();
    for block in &message.blocks {
        add_text(block, &mut text);
        if text.len() > SEARCHED_BYTES_MAX {
            text.truncate(head(&text, SEARCHED_BYTES_MAX).len());
            break;
        }
    }
    Redactor::embedded().redact(&text).into_owned()
}

fn add_text(block: &Block, text: &mut String) {
    let mut add = |part: &str| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(part);
    };
    match &block.content {
        Content::Text(said) => add(&said.decode()),
        Content::ToolCall(call) => {
            add(&call.name);
            match &call.input {
                ToolInput::Json(input) => add(input.as_str()),
                ToolInput::Text(input) => add(&input.decode()),
            }
        }
        Content::ToolResult(result) => {
            for part in result.texts() {
                add(&part.decode());
            }
        }
        _ => {}
    }
}

/// The texts of a stored message.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let message = raw_of(bytes).as_ref().and_then(read_message);
    let mut text = String::new();
    for block in message.iter().flat_map(|message| &message.blocks) {
        add_text(block, &mut text);
    }
    text
}

fn raw_of(bytes: &[u8]) -> Option<Raw> {
    Raw::parse(ByteString::from(str::from_utf8(bytes).ok()?)).ok()
}

/// A stored message, as it goes into requests.
#[must_use]
pub fn message_of(stored: &StoredMessage) -> Option<Message> {
    let mut message = read_message(&raw_of(stored.request_bytes())?)?;
    message.at_ms = stored.at_ms;
    Some(message)
}

/// The change that stores a memory version.
pub(crate) fn memory_change(version: &Version, at: Time) -> Change {
    let memory = &version.memory;
    Change::Memory(MemoryRow {
        version: u64::from(memory.version),
        covered_count: memory.cover.messages as u64,
        digest: *memory.cover.digest.as_bytes(),
        origin: version.origin.name().to_owned(),
        json: memory.to_json(),
        markdown: markdown::render(memory),
        created_ms: at.ms(),
        tokens: u32::try_from(version.tokens).unwrap_or(u32::MAX),
    })
}

/// The change that stores what requests are made with from now on.
pub(crate) fn adoption_change(adoption: &MemoryAdoption, expected_epoch: u64, at: Time) -> Change {
    let state = AdoptionState {
        at_messages: adoption.at_messages,
        quoted: adoption.quoted,
    };
    Change::Adopt {
        expected_epoch,
        adoption: throughline_store::Adoption {
            epoch: adoption.epoch,
            memory_version: adoption.version.map(u64::from),
            covered_count: adoption.cover as u64,
            // Numbers only: this cannot fail.
            state: serde_json::to_string(&state).unwrap_or_default(),
            at_ms: at.ms(),
        },
    }
}

/// The change that stores what a call used, and what it cost where that is known.
pub(super) fn usage_change(
    at: Time,
    purpose: Purpose,
    model: &str,
    usage: &Usage,
    price: Option<Money>,
    request_id: Option<String>,
) -> Change {
    Change::Usage(UsageRow {
        at_ms: at.ms(),
        purpose,
        model: model.to_owned(),
        uncached: usage.uncached,
        cache_write: usage.cache_write,
        cache_write_long: usage.cache_write_long,
        cache_read: usage.cache_read,
        output: usage.output,
        cost_nanodollars: price.and_then(|price| i64::try_from(price.nano_dollars()).ok()),
        request_id,
    })
}

/// What an engine resumes with: what was loaded, and the messages that its adoption quotes ([`quoted_range`]).
///
/// # Errors
/// What of it cannot be read.
pub(super) fn snapshot(
    loaded: &Loaded,
    quoted: &[StoredMessage],
    session: &SessionRow,
    settings: &CompactionSettings,
) -> Result<Snapshot, String> {
    let state = match &loaded.adoption {
        Some(adoption) if !adoption.state.is_empty() => {
            serde_json::from_str::<AdoptionState>(&adoption.state)
                .map_err(|error| format!("the state of the adoption: {error}"))?
        }
        _ => AdoptionState::default(),
    };
    let version = |row: &MemoryRow| version_of(row, settings);
    let adoption = loaded.adoption.as_ref().map(|adoption| MemoryAdoption {
        epoch: adoption.epoch,
        version: adoption
            .memory_version
            .and_then(|number| u32::try_from(number).ok()),
        cover: adoption.covered_count as usize,
        at_messages: state.at_messages,
        quoted: state.quoted,
    });
    let messages = loaded
        .tail
        .iter()
        .map(|stored| {
            message_of(stored).ok_or_else(|| format!("message {} is no message", stored.position))
        })
        .collect::<Result<_, _>>()?;
    // A version that was undone is not swapped in again.
    let newer = loaded.newer_memory.as_ref();
    let ready = newer.filter(|row| row.version > session.undone_versions);
    Ok(Snapshot {
        adoption,
        version: loaded.memory.as_ref().map(version).transpose()?,
        chain: loaded
            .covered_digest
            .map_or_else(|| Chain::new().digest(), Digest::from_bytes),
        messages,
        quoted: quoted.iter().filter_map(message_of).collect(),
        ready: ready.map(version).transpose()?,
        number: u32::try_from(loaded.counts.memory_version).unwrap_or(u32::MAX),
        last_request_at: Some(Time::from_ms(loaded.session.updated_ms)),
        pins: session.pins.iter().map(|row| row.0.clone()).collect(),
        ratio_permille: session.ratio_permille,
        savings: session.savings.map(|row| row.0),
    })
}

/// The positions of the messages that the adoption quotes.
pub(super) fn quoted_range(loaded: &Loaded) -> Option<std::ops::Range<u64>> {
    let adoption = loaded.adoption.as_ref()?;
    let state: AdoptionState = serde_json::from_str(&adoption.state).ok()?;
    let (first, end) = state.quoted?;
    Some(first as u64..end as u64)
}

/// A stored memory version.
///
/// # Errors
/// What of it cannot be read.
pub fn version_of(row: &MemoryRow, settings: &CompactionSettings) -> Result<Version, String> {
    let mut memory = Memory::from_json(&row.json)
        .map_err(|error| format!("memory version {}: {error}", row.version))?;
    memory.version = u32::try_from(row.version).unwrap_or(u32::MAX);
    let origin = VersionOrigin::from_name(&row.origin).unwrap_or(VersionOrigin::Given);
    Ok(Version::new(memory, origin, settings))
}
