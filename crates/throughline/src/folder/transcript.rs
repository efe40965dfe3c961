//! The transcript as lines of JSON, added to as the session grows.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use throughline_memory::redact::Redactor;
use throughline_store::{SessionId, Store, StoredMessage};
use throughline_transcript::body::read_message;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Content, Message, ToolInput};

use super::{FolderError, files};

pub(super) const TRANSCRIPT: &str = "transcript.jsonl";
/// Messages that were cut off, in the order in which that happened.
pub(super) const SUPERSEDED: &str = "superseded.jsonl";
/// Messages that are read from the store at a time.
const PAGE_MESSAGES: u64 = 100;
/// How much of a message's digest is in its line, bytes.
const DIGEST_BYTES: usize = 8;

/// What the transcript ends with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    messages: u64,
    /// Digest of everything up to the last message.
    digest: String,
}

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    /// From 1, as memories count.
    message: u64,
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// What is said in words, without secrets.
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<ResultLine>,
    /// Tells whether the store still has the same messages.
    digest: String,
    /// The message as it was received, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    input: Box<RawValue>,
}

#[derive(Serialize)]
struct ResultLine {
    text: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

/// What is read of a line.
#[derive(Deserialize)]
struct Known {
    #[serde(default)]
    digest: String,
}

/// Adds the messages of the store that the transcript does not have, after moving aside those that the store no longer
/// has.
pub(super) async fn follow(
    folder: &Path,
    store: &dyn Store,
    id: &SessionId,
    known: Option<End>,
    messages: u64,
) -> Result<End, FolderError> {
    let mut end = match known {
        Some(end) => end,
        None => end_of(folder)?,
    };
    if let Some(last) = end.messages.checked_sub(1) {
        let digests = store.digests(id, last..end.messages).await?;
        if digests.first().map(|digest| hex(digest)).as_ref() != Some(&end.digest) {
            let digests = store.digests(id, 0..end.messages).await?;
            end = cut(folder, &digests)?;
        }
    }
    while end.messages < messages {
        let page = end.messages..messages.min(end.messages + PAGE_MESSAGES);
        let rows = store.messages(id, page).await?;
        if rows.is_empty() {
            break;
        }
        end = append(folder, rows).await?;
    }
    Ok(end)
}

/// Looks where the transcript ends. Half a line at its end, which a killed process left, is removed.
fn end_of(folder: &Path) -> io::Result<End> {
    let path = folder.join(TRANSCRIPT);
    let Some(text) = files::read(&path)? else {
        return Ok(End::default());
    };
    let whole = text.rfind('\n').map_or(0, |last| last + 1);
    if whole < text.len() {
        files::replace(&path, &text.as_bytes()[..whole])?;
    }
    let lines = text[..whole].lines();
    Ok(End {
        messages: lines.clone().count() as u64,
        digest: lines.last().map(digest_of).unwrap_or_default(),
    })
}

/// Keeps the lines of the first messages that have these digests; the others move to the superseded ones.
fn cut(folder: &Path, digests: &[[u8; 32]]) -> io::Result<End> {
    let path = folder.join(TRANSCRIPT);
    let text = files::read(&path)?.unwrap_or_default();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let common = lines
        .iter()
        .zip(digests)
        .take_while(|(line, digest)| digest_of(line) == hex(&digest[..]))
        .count();
    let (kept, gone) = lines.split_at(common);
    add(&folder.join(SUPERSEDED), gone.concat().as_bytes())?;
    files::replace(&path, kept.concat().as_bytes())?;
    Ok(End {
        messages: common as u64,
        digest: kept.last().map(|line| digest_of(line)).unwrap_or_default(),
    })
}

async fn append(folder: &Path, rows: Vec<StoredMessage>) -> Result<End, FolderError> {
    let path = folder.join(TRANSCRIPT);
    let end = rows.last().map(|row| End {
        messages: row.position + 1,
        digest: hex(&row.digest),
    });
    let written = tokio::task::spawn_blocking(move || {
        let lines: String = rows.iter().map(line).collect();
        add(&path, lines.as_bytes())
    });
    written.await.map_err(io::Error::other)??;
    Ok(end.unwrap_or_default())
}

fn add(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = files::open(path)?;
    let end = file.seek(SeekFrom::End(0))?;
    file.write_all(lines).inspect_err(|_| {
        // What a full disk left of it is in no reader's way.
        let _ = fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.set_len(end));
    })
}

fn hex(digest: &[u8]) -> String {
    digest
        .iter()
        .take(DIGEST_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn digest_of(line: &str) -> String {
    let known: Option<Known> = serde_json::from_str(line).ok();
    known.map(|known| known.digest).unwrap_or_default()
}

fn line(row: &StoredMessage) -> String {
    // Outside of strings the end of a line is white space like any other, and within them there is none.
    let original: String = String::from_utf8_lossy(&row.original).replace(['\n', '\r'], " ");
    let message = Raw::parse(original.clone())
        .ok()
        .as_ref()
        .and_then(read_message);
    let mut line = Line {
        message: row.position + 1,
        role: &row.role,
        at: row
            .at_ms
            .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
            .map(|at| at.to_string()),
        text: String::new(),
        calls: Vec::new(),
        results: Vec::new(),
        digest: hex(&row.digest),
        original: None,
    };
    if let Some(message) = &message {
        read(message, &mut line);
    }
    line.original = without_secrets(original);
    // Names, numbers and text: this cannot fail.
    let mut json = serde_json::to_string(&line).unwrap_or_default();
    json.push('\n');
    json
}

fn read<'a>(message: &'a Message, line: &mut Line<'a>) {
    let redactor = Redactor::embedded();
    let mut texts = Vec::new();
    for block in &message.blocks {
        match &block.content {
            Content::Text(text) => texts.push(redactor.redact(&text.decode()).into_owned()),
            Content::ToolCall(call) => {
                let input = match &call.input {
                    ToolInput::Json(input) => redactor.redact(input.as_str()).into_owned(),
                    ToolInput::Text(input) => redactor.redact(&input.decode()).into_owned(),
                };
                line.calls.push(Call {
                    name: &call.name,
                    input: json(input),
                });
            }
            Content::ToolResult(result) => {
                let texts: Vec<String> = result
                    .texts()
                    .map(|text| redactor.redact(&text.decode()).into_owned())
                    .collect();
                line.results.push(ResultLine {
                    text: texts.join("\n"),
                    is_error: result.is_error == Some(true),
                });
            }
            // All of it is in the original.
            _ => {}
        }
    }
    line.text = texts.join("\n");
}

/// A message without secrets. A marker that would break its JSON is set string by string instead.
fn without_secrets(original: String) -> Option<Box<RawValue>> {
    let redactor = Redactor::embedded();
    let redacted = match redactor.redact(&original) {
        Cow::Borrowed(_) => None,
        Cow::Owned(redacted) => Some(redacted),
    };
    let Some(redacted) = redacted else {
        return RawValue::from_string(original).ok();
    };
    RawValue::from_string(redacted).ok().or_else(|| {
        let mut value: Value = serde_json::from_str(&original).ok()?;
        redact_strings(&mut value, redactor);
        serde_json::value::to_raw_value(&value).ok()
    })
}

/// Takes the secrets out of every string. The parser limits how deep values are.
fn redact_strings(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = redactor.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| redact_strings(value, redactor)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| redact_strings(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text as the JSON that it is, or as a string.
fn json(text: String) -> Box<RawValue> {
    let one_line = text.replace(['\n', '\r'], " ");
    RawValue::from_string(one_line)
        .or_else(|_| serde_json::value::to_raw_value(&text))
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
}
