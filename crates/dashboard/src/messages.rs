//! Original messages for people: blocks as text, without secrets.

use schemars::JsonSchema;
use serde::Serialize;
use throughline_memory::document::Memory;
use throughline_memory::redact::Redactor;
use throughline_store::StoredMessage;
use throughline_transcript::body::read_message;
use throughline_transcript::json::{Raw, Text};
use throughline_transcript::message::{Block, Content, Media, ToolInput};

use crate::view::ItemView;

/// Longest text of a block, bytes.
const SHOWN_BYTES_MAX: usize = 256 * 1024;
/// Longest text of a block in a list, bytes.
const BRIEF_BYTES_MAX: usize = 600;
/// Shorter texts are not marked: they occur everywhere.
const MARKED_BYTES_MIN: usize = 3;

/// A message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Message")]
pub(crate) struct MessageView {
    /// Index of the message, from 0.
    pub(crate) position: u64,
    pub(crate) role: String,
    pub(crate) at_ms: Option<i64>,
    pub(crate) tokens: u32,
    pub(crate) blocks: Vec<BlockView>,
}

/// A block of a message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Block")]
pub(crate) struct BlockView {
    /// `text`, `thinking`, `tool call`, `tool result`, `image`, `document`, or the name on the wire.
    pub(crate) kind: String,
    /// Name of the tool, of a media file, or `failed`.
    pub(crate) name: String,
    pub(crate) text: String,
    /// Whether more of it is stored.
    pub(crate) is_cut: bool,
    /// The text in parts; those that an item of a memory quotes are marked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<Part>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) is_marked: bool,
}

/// How much of a message is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    Brief,
}

impl MessageView {
    pub(crate) fn of(stored: &StoredMessage, extent: Extent) -> Self {
        let message = std::str::from_utf8(&stored.original)
            .ok()
            .and_then(|text| Raw::parse(text.to_owned()).ok())
            .and_then(|raw| read_message(&raw));
        let bytes_max = match extent {
            Extent::Whole => SHOWN_BYTES_MAX,
            Extent::Brief => BRIEF_BYTES_MAX,
        };
        let mut blocks = Vec::new();
        for block in message.iter().flat_map(|message| &message.blocks) {
            push(block, bytes_max, &mut blocks);
        }
        Self {
            position: stored.position,
            role: stored.role.clone(),
            at_ms: stored.at_ms,
            tokens: stored.tokens,
            blocks,
        }
    }

    /// Marks what an item quotes.
    pub(crate) fn mark(&mut self, item: &ItemView) {
        for block in &mut self.blocks {
            let mut needles = Vec::new();
            for text in &item.texts {
                needles.extend(text.text.lines().map(str::trim));
            }
            block.parts = parts(&block.text, &needles);
        }
    }
}

/// An item of a memory, by its id.
pub(crate) fn item_of(memory: &Memory, id: &str) -> Option<ItemView> {
    memory
        .items
        .iter()
        .find(|item| item.id == id)
        .map(ItemView::of)
}

fn push(block: &Block, bytes_max: usize, out: &mut Vec<BlockView>) {
    let mut add = |kind: &str, name: String, text: &str| {
        let redacted = Redactor::embedded().redact(text);
        let end = redacted.floor_char_boundary(bytes_max);
        out.push(BlockView {
            kind: kind.to_owned(),
            name,
            text: redacted[..end].to_owned(),
            is_cut: end < redacted.len(),
            parts: Vec::new(),
        });
    };
    let decode = |text: &Text| text.decode().into_owned();
    let media = |media: &Media| {
        let parts = [
            media.media_type.as_deref().unwrap_or_default().to_owned(),
            media.name.as_deref().unwrap_or_default().to_owned(),
            media
                .data_bytes
                .map(|bytes| format!("{bytes} bytes"))
                .unwrap_or_default(),
        ];
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match &block.content {
        Content::Text(text) => add("text", String::new(), &decode(text)),
        Content::Thinking(text) => add("thinking", String::new(), &decode(text)),
        Content::ToolCall(call) => {
            let input = match &call.input {
                ToolInput::Json(raw) => indented(raw.as_str()),
                ToolInput::Text(text) => decode(text),
            };
            add("tool call", call.name.to_string(), &input);
        }
        Content::ToolResult(result) => {
            let failed = if result.is_error == Some(true) {
                "failed"
            } else {
                ""
            };
            let texts: Vec<String> = result.texts().map(decode).collect();
            add("tool result", failed.to_owned(), &texts.join("\n"));
            let others = result
                .content
                .iter()
                .filter(|block| !matches!(block.content, Content::Text(_)));
            others.for_each(|block| push(block, bytes_max, out));
        }
        Content::Image(found) => add("image", media(found), ""),
        Content::Document(found) => add("document", media(found), ""),
        Content::Compaction(text) => add(
            "compaction",
            String::new(),
            &text.as_ref().map(decode).unwrap_or_default(),
        ),
        Content::Other(name) => add(name, String::new(), ""),
    }
}

fn indented(json: &str) -> String {
    serde_json::from_str::<serde_json::Value>(json)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| json.to_owned())
}

/// The text in parts; those that are one of the needles are marked.
fn parts(text: &str, needles: &[&str]) -> Vec<Part> {
    let mut found: Vec<(usize, usize)> = needles
        .iter()
        .filter(|needle| needle.len() >= MARKED_BYTES_MIN)
        .flat_map(|needle| {
            text.match_indices(needle)
                .map(|(at, found)| (at, at + found.len()))
        })
        .collect();
    found.sort_unstable();
    let mut out = Vec::new();
    let mut add = |text: &str, is_marked: bool| {
        if !text.is_empty() {
            out.push(Part {
                text: text.to_owned(),
                is_marked,
            });
        }
    };
    let mut done = 0;
    for (start, end) in found {
        let start = start.max(done);
        if end > start {
            add(&text[done..start], false);
            add(&text[start..end], true);
            done = end;
        }
    }
    add(&text[done..], false);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_marked() {
        let check = |text: &str, needles: &[&str], expected: &[(&str, bool)]| {
            let parts = parts(text, needles);
            let parts: Vec<(&str, bool)> = parts
                .iter()
                .map(|part| (part.text.as_str(), part.is_marked))
                .collect();
            assert_eq!(parts, expected);
        };
        check("plain", &["other"], &[("plain", false)]);
        check(
            "say <b>it</b> now",
            &["<b>it</b>"],
            &[("say ", false), ("<b>it</b>", true), (" now", false)],
        );
        check("abcdef", &["abcd", "cdef"], &[("abcd", true), ("ef", true)]);
        check("äää", &["äää", "ä"], &[("äää", true)]);
        check("", &["abc"], &[]);
    }
}
