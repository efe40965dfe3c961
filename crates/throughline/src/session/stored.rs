//! Between what is stored and what the engine knows.

use std::str;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use throughline_engine::{
    CompactionSettings, MemoryAdoption, Pin, PreviousEpoch, Snapshot, Time, Version, VersionOrigin,
};
use throughline_memory::document::Memory;
use throughline_memory::notes;
use throughline_memory::redact::Redactor;
use throughline_memory::render::markdown;
use throughline_store::{
    Change, Loaded, MemoryRow, NewMessage, Purpose, SessionId, Store, StoredMessage, UsageRow,
};
use throughline_transcript::body::read_message;
use throughline_transcript::catalogue::Money;
use throughline_transcript::check::{CheckOptions, check_text};
use throughline_transcript::digest::{Chain, Digest};
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Block, Content, Message, Role, ToolCall, ToolInput};
use throughline_transcript::request::message::{self, ToolOutput};
use throughline_transcript::request::{Frame, Marks, Shortened, shorten};
use throughline_transcript::text::head;
use throughline_transcript::tokens::Counter;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;

use super::kept::KeptAdoption;
use crate::error::OpenError;

/// Of a message so much can be searched, bytes.
const SEARCHED_BYTES_MAX: usize = 64 * 1024;

/// What is stored with an adoption for this crate's own use.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct AdoptionState {
    at_messages: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quoted: Option<(usize, usize)>,
}

/// A message that is to be added: as it goes into requests, and its row.
struct Added {
    message: Message,
    row: NewMessage,
}

/// Reads a message that is to be added behind `chain`, and shortens results in it that are too long.
fn added(
    raw: &Raw,
    wire: Wire,
    chain: &mut Chain,
    at: Time,
    index: usize,
    result_bytes_max: usize,
    settings: &CompactionSettings,
) -> Option<Added> {
    // Memories and people count from 1.
    let pointer = format!("all of it is message {} in the archive", index + 1);
    let short = shorten(raw, wire, result_bytes_max, &pointer);
    let sent = short
        .as_ref()
        .map(|Shortened { message, .. }| message.clone());
    let mut message = read_message(sent.as_ref().unwrap_or(raw))?;
    message.at_ms = Some(at.ms());
    let digest = chain.push(throughline_transcript::digest::message_digest(&message));
    let tokens = settings.counter.estimating().message(&message);
    let whole = read_message(raw)?;
    Some(Added {
        row: NewMessage {
            original: raw.as_str().to_owned().into_bytes().into(),
            sent: sent.map(|sent| sent.as_str().to_owned().into_bytes().into()),
            digest: *digest.as_bytes(),
            at_ms: Some(at.ms()),
            role: role(message.role).to_owned(),
            text: searchable(&whole),
            tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
        },
        message,
    })
}

/// The row of a message of a request, which is sent as it was received. `digest` is that of the prefix that ends with
/// it.
#[must_use]
pub fn row(message: &Message, digest: Digest, at: Time, counter: Counter) -> NewMessage {
    let tokens = counter.estimating().message(message);
    let text = message.raw.as_ref().map_or("", Raw::as_str);
    NewMessage {
        original: text.as_bytes().to_vec().into(),
        sent: None,
        digest: *digest.as_bytes(),
        at_ms: Some(at.ms()),
        role: role(message.role).to_owned(),
        text: searchable(message),
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
    }
}

/// The change that adds messages behind the first `count`, and the messages as they go into requests. Results longer
/// than `result_bytes_max` are shortened there.
///
/// # Errors
/// The index of what is no message.
pub fn append(
    raws: &[Raw],
    wire: Wire,
    mut chain: Chain,
    at: Time,
    count: usize,
    result_bytes_max: usize,
    settings: &CompactionSettings,
) -> Result<(Change, Vec<Message>), usize> {
    let mut rows = Vec::with_capacity(raws.len());
    let mut messages = Vec::with_capacity(raws.len());
    for (index, raw) in (count..).zip(raws) {
        let added =
            added(raw, wire, &mut chain, at, index, result_bytes_max, settings).ok_or(index)?;
        rows.push(added.row);
        messages.push(added.message);
    }
    let change = Change::Append {
        expected_count: count as u64,
        messages: rows,
    };
    Ok((change, messages))
}

/// The change with which a session begins behind messages that were said elsewhere; or the rule that they break.
pub(super) fn history(
    raws: &[Raw],
    frame: &Frame,
    at: Time,
    result_bytes_max: usize,
    settings: &CompactionSettings,
) -> Result<Change, String> {
    let wire = frame.wire();
    let (append, messages) = append(raws, wire, Chain::new(), at, 0, result_bytes_max, settings)
        .map_err(|index| format!("message {index} is not a message"))?;
    // With what would be said next, so that calls at the end are answered.
    let open: Vec<String> = open_calls(&messages)
        .iter()
        .map(|call| call.id.to_string())
        .collect();
    let next = user_after(wire, &open, "-");
    let sent = messages.iter().filter_map(|message| message.raw.as_ref());
    let body = frame.compose(None, sent.chain(&next), Marks::default());
    match broken_rule(&body, wire) {
        Some(finding) => Err(finding),
        None => Ok(append),
    }
}

/// What a user says who talks over calls that are open.
pub(super) fn user_after(wire: Wire, open: &[String], text: &str) -> Vec<Raw> {
    if open.is_empty() {
        return vec![message::user(wire, text)];
    }
    let outputs: Vec<ToolOutput> = open
        .iter()
        .map(|id| ToolOutput {
            call_id: id.clone(),
            text: notes::NOT_RUN.to_owned(),
            is_error: true,
        })
        .collect();
    message::tool_outputs(wire, &outputs, Some(text))
}

/// Calls of the turn that nobody has answered.
pub(super) fn open_calls(tail: &[Message]) -> Vec<ToolCall> {
    let mut answered = Vec::new();
    let mut open = Vec::new();
    for message in tail.iter().rev() {
        answered.extend(
            message
                .tool_results()
                .map(|result| result.call_id.to_string()),
        );
        let mut calls: Vec<ToolCall> = message
            .tool_calls()
            .filter(|call| !call.is_server_side)
            .cloned()
            .collect();
        calls.reverse();
        open.extend(calls);
        if message.begins_turn() {
            break;
        }
    }
    open.retain(|call| !answered.iter().any(|id| *id == *call.id));
    open.reverse();
    open
}

/// The first rule of the provider that a request breaks.
pub(super) fn broken_rule(body: &str, wire: Wire) -> Option<String> {
    let report = check_text(body, wire, &CheckOptions::default());
    report
        .errors()
        .next()
        .map(|finding| format!("{}: {}", finding.path, finding.message))
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
pub(super) fn text_of(bytes: &[u8]) -> String {
    raw_of(bytes)
        .as_ref()
        .and_then(read_message)
        .map(|message| {
            let mut text = String::new();
            for block in &message.blocks {
                add_text(block, &mut text);
            }
            text
        })
        .unwrap_or_default()
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
#[must_use]
pub fn memory_change(version: &Version, at: Time) -> Change {
    let memory = &version.memory;
    Change::Memory(MemoryRow {
        version: u64::from(memory.version),
        covered_count: memory.cover.messages as u64,
        // A memory was held against its history before it gets here, and with it the digest.
        digest: *memory.cover.digest.as_bytes(),
        origin: version.origin.name().to_owned(),
        json: memory.to_json(),
        markdown: markdown::render(memory),
        created_ms: at.ms(),
        tokens: u32::try_from(version.tokens).unwrap_or(u32::MAX),
    })
}

/// The change that stores what requests are made with from now on.
#[must_use]
pub fn adoption_change(adoption: &MemoryAdoption, expected_epoch: u64, at: Time) -> Change {
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
#[must_use]
pub fn usage_change(
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

/// What the engine goes on with: what was loaded, and the messages that its adoption quotes ([`quoted_range`]).
///
/// # Errors
/// What of it cannot be read.
pub fn snapshot(
    loaded: &Loaded,
    quoted: &[StoredMessage],
    pins: Vec<Pin>,
    settings: &CompactionSettings,
) -> Result<Snapshot, String> {
    let state = match &loaded.adoption {
        Some(adoption) if !adoption.state.is_empty() => {
            serde_json::from_str::<AdoptionState>(&adoption.state)
                .map_err(|error| format!("the state of the adoption: {error}"))?
        }
        _ => AdoptionState::default(),
    };
    let version = loaded
        .memory
        .as_ref()
        .map(|row| version_of(row, settings))
        .transpose()?;
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
    let ready = loaded
        .newer_memory
        .as_ref()
        .map(|row| version_of(row, settings))
        .transpose()?;
    Ok(Snapshot {
        adoption,
        version,
        chain: loaded
            .covered_digest
            .map_or_else(|| Chain::new().digest(), Digest::from_bytes),
        messages,
        quoted: quoted.iter().filter_map(message_of).collect(),
        ready,
        number: u32::try_from(loaded.counts.memory_version).unwrap_or(u32::MAX),
        last_request_at: Some(Time::from_ms(loaded.session.updated_ms)),
        pins,
        ratio_permille: None,
        savings: None,
    })
}

/// The positions of the messages that the adoption quotes.
#[must_use]
pub fn quoted_range(loaded: &Loaded) -> Option<std::ops::Range<u64>> {
    let adoption = loaded.adoption.as_ref()?;
    let state: AdoptionState = serde_json::from_str(&adoption.state).ok()?;
    let (first, end) = state.quoted?;
    Some(first as u64..end as u64)
}

/// What requests were made with before the memory that now stands for `covered` messages.
///
/// # Errors
/// If it cannot be read.
pub async fn before(
    store: &dyn Store,
    id: &SessionId,
    adoption: KeptAdoption,
    covered: u64,
    settings: &CompactionSettings,
) -> Result<PreviousEpoch, OpenError> {
    let corrupt = |what| OpenError::Corrupt {
        id: id.to_string(),
        what,
    };
    let version = match adoption.version {
        Some(number) => {
            let row = store.memory(id, u64::from(number)).await?;
            Some(version_of(&row, settings).map_err(corrupt)?)
        }
        None => None,
    };
    let first = version.as_ref().map_or(0, Version::cover) as u64;
    let chain = match first.checked_sub(1) {
        Some(last) => Digest::from_bytes(store.message(id, last).await?.digest),
        None => Chain::new().digest(),
    };
    let messages = |stored: Vec<StoredMessage>| stored.iter().filter_map(message_of).collect();
    let quoted = match adoption.quoted {
        Some((first, end)) => {
            let stored = store.messages(id, first as u64..end as u64).await?;
            Some((first, messages(stored)))
        }
        None => None,
    };
    Ok(PreviousEpoch {
        version,
        quoted,
        chain,
        messages: messages(store.messages(id, first..covered).await?),
    })
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
