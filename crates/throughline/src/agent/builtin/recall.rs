//! The archive of the session, for the model.

use schemars::JsonSchema;
use serde::Deserialize;
use throughline_store::{Hit, Place};
use throughline_transcript::body::read_message;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Block, Content, Message, Role, ToolInput};
use throughline_transcript::text::head;

use crate::agent::tool::{CallContext, Tool, ToolError};
use crate::error::SessionError;
use crate::session::{Session, SessionSearch};

/// Hits that are shown.
const HITS_MAX: u32 = 10;
/// Words that are looked for one by one if no message has all of them.
const WORDS_MAX: usize = 6;
/// Of a message this much is shown at a time; bytes.
const PART_BYTES_MAX: usize = 16_000;
/// Length of the text before a part, in bytes.
const PART_HEAD_BYTES: usize = 100;

/// The tool `recall`.
#[derive(Clone, Copy, Debug)]
pub struct Recall;

/// Lets the model search everything that was said in its session, and read any message of it, whether a memory has taken
/// its place or not.
#[must_use]
pub fn recall() -> Recall {
    Recall
}

/// What is to be recalled.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct RecallInput {
    /// Words to look for: messages that have all of them are found.
    search: Option<String>,
    /// The number of a message to read, from 1.
    message: Option<usize>,
    /// Which part of a long message, from 1.
    part: Option<usize>,
}

impl Tool for Recall {
    type Input = RecallInput;

    fn name(&self) -> &str {
        "recall"
    }

    fn description(&self) -> &str {
        "Looks things up in the archive of this conversation, which has every message and every result as it was, also \
         those that are no longer shown. Give search to find messages by words, or message to read one by its number: \
         search gives such numbers, and so does the place where a long result was shortened."
    }

    async fn call(&self, input: RecallInput, context: CallContext) -> Result<String, ToolError> {
        match (input.message, input.search) {
            (Some(number), _) => read(&context.session, number, input.part.unwrap_or(1)).await,
            (None, Some(words)) if !words.trim().is_empty() => {
                search(&context.session, words.trim()).await
            }
            (None, _) => Err(ToolError::new("give search or message")),
        }
    }
}

async fn read(session: &Session, number: usize, part: usize) -> Result<String, ToolError> {
    let last = session.status().messages;
    if number == 0 || number > last {
        return Err(ToolError::new(format!(
            "there is no message {number}; they are numbered from 1 to {last}"
        )));
    }
    let message = message(session, number - 1).await?;
    let text = shown(&message);
    // A result that is shortened itself would be no help.
    let unshortened = session.result_bytes_max().saturating_sub(PART_HEAD_BYTES);
    let part_bytes = unshortened.clamp(PART_HEAD_BYTES, PART_BYTES_MAX);
    let parts = parts(&text, part_bytes);
    let Some(shown) = part.checked_sub(1).and_then(|part| parts.get(part)) else {
        return Err(ToolError::new(format!(
            "message {number} has {} parts",
            parts.len()
        )));
    };
    let which = match parts.len() {
        1 => String::new(),
        parts => format!(", part {part} of {parts}"),
    };
    Ok(format!(
        "Message {number} ({}{which}):\n{shown}",
        speaker(&message)
    ))
}

async fn search(session: &Session, words: &str) -> Result<String, ToolError> {
    let hits = hits(session, words).await?;
    if !hits.is_empty() {
        return Ok(hits.join("\n"));
    }
    let mut found = Vec::new();
    for word in words.split_whitespace().take(WORDS_MAX) {
        for hit in self::hits(session, word).await? {
            if !found.contains(&hit) && found.len() < HITS_MAX as usize {
                found.push(hit);
            }
        }
    }
    Ok(if found.is_empty() {
        "Nothing was found. Try fewer or other words; parts of words are found too.".to_owned()
    } else {
        format!(
            "No message has all of these words. With one of them:\n{}",
            found.join("\n")
        )
    })
}

async fn hits(session: &Session, words: &str) -> Result<Vec<String>, SessionError> {
    let search = SessionSearch {
        text: words.to_owned(),
        in_all_sessions: false,
        // Some of them are calls of this tool.
        limit: HITS_MAX * 3,
    };
    let mut shown = Vec::new();
    for hit in session.search(&search).await? {
        if shown.len() == HITS_MAX as usize {
            break;
        }
        shown.extend(line(session, hit).await?);
    }
    Ok(shown)
}

/// A hit in a line; `None` for what is no help.
async fn line(session: &Session, hit: Hit) -> Result<Option<String>, SessionError> {
    Ok(match hit.place {
        Place::Message { position } => {
            let index = usize::try_from(position).unwrap_or(usize::MAX);
            let message = message(session, index).await?;
            // What was looked for is in the words of the search itself.
            if message.tool_calls().any(|call| &*call.name == "recall") {
                return Ok(None);
            }
            let role = speaker(&message);
            Some(format!("Message {} ({role}): {}", index + 1, hit.snippet))
        }
        Place::Superseded { .. } => Some(format!("Taken back by the user: {}", hit.snippet)),
        // They say what messages say, once for each version.
        Place::Memory { .. } => None,
    })
}

async fn message(session: &Session, index: usize) -> Result<Message, SessionError> {
    let stored = session.message_at(index).await?;
    let raw = std::str::from_utf8(&stored.original).ok();
    let message = raw
        .and_then(|raw| Raw::parse(raw.to_owned()).ok())
        .and_then(|raw| read_message(&raw));
    // The session itself has read it before it was stored.
    message.ok_or(SessionError::NoSuchMessage {
        asked: index,
        messages: session.status().messages,
    })
}

fn speaker(message: &Message) -> &'static str {
    match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        _ => "system",
    }
}

/// What a message says, as text.
fn shown(message: &Message) -> String {
    let mut text = String::new();
    for block in &message.blocks {
        push(block, &mut text);
    }
    text
}

fn push(block: &Block, text: &mut String) {
    match &block.content {
        Content::Text(said) => text.push_str(&said.decode()),
        Content::ToolCall(call) => {
            let input = match &call.input {
                ToolInput::Json(raw) => raw.as_str().to_owned(),
                ToolInput::Text(input) => input.decode().into_owned(),
            };
            text.push_str(&format!("[called {}: {input}]", call.name));
        }
        Content::ToolResult(result) => {
            let failed = if result.is_error == Some(true) {
                ", an error"
            } else {
                ""
            };
            text.push_str(&format!("[result{failed}]\n"));
            // Results hold no results.
            for text_of_result in result.texts() {
                text.push_str(&text_of_result.decode());
            }
        }
        Content::Image(_) => text.push_str("[an image]"),
        Content::Document(_) => text.push_str("[a document]"),
        // Thinking is not kept over swaps either, and what is not known cannot be shown as text.
        _ => return,
    }
    text.push('\n');
}

/// The text in parts, none of them empty unless it is.
fn parts(text: &str, bytes_max: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > bytes_max {
        let part = head(rest, bytes_max);
        // At the end of a line, if there is one not far from it.
        let end = part
            .rfind('\n')
            .filter(|end| *end > bytes_max / 2)
            .map_or(part.len(), |end| end + 1);
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts.push(rest);
    parts
}
