//! A neutral list: one message a line, in the product's own words.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::quoted;
use throughline_transcript::message::{Author, Block, Content, Media, Message, Role, ToolInput};

use super::text::{array, object};

/// Results hold blocks, and those may hold blocks again. Below this level they are left out.
const DEPTH_MAX: usize = 6;

/// Writes each message as one JSON object per line: `role`, `author` unless it is the role's, `id`,
/// `at_ms`, and `blocks` with a `type` each. Blocks of unknown kinds are there as they were written.
#[must_use]
pub fn to_jsonl(conversation: &Conversation) -> String {
    let mut text = String::new();
    if !conversation.system.is_empty() {
        let blocks: Vec<_> = conversation
            .system
            .iter()
            .map(|block| write_block(block, 0))
            .collect();
        text.push_str(&object(&[
            ("role", "\"system\""),
            ("blocks", &array(&blocks)),
        ]));
        text.push('\n');
    }
    for message in &conversation.messages {
        text.push_str(&write_message(message));
        text.push('\n');
    }
    text
}

fn write_message(message: &Message) -> String {
    let role = match message.role {
        Role::System => "\"system\"",
        Role::User => "\"user\"",
        Role::Assistant => "\"assistant\"",
        Role::Tool => "\"tool\"",
    };
    let blocks: Vec<_> = message
        .blocks
        .iter()
        .map(|block| write_block(block, 0))
        .collect();
    let blocks = array(&blocks);
    let id = message.id.as_ref().map(|id| quoted(id));
    let at = message.at_ms.map(|at| at.to_string());
    let mut fields = vec![("role", role)];
    match message.author {
        Author::Role => {}
        Author::Client => fields.push(("author", "\"client\"")),
        Author::Agent => fields.push(("author", "\"agent\"")),
        Author::Compaction => fields.push(("author", "\"compaction\"")),
    }
    if let Some(id) = &id {
        fields.push(("id", id));
    }
    if let Some(at) = &at {
        fields.push(("at_ms", at));
    }
    fields.push(("blocks", &blocks));
    object(&fields)
}

fn write_block(block: &Block, depth: usize) -> String {
    let mut fields: Vec<(&str, String)> = Vec::new();
    let kind = match &block.content {
        Content::Text(text) => {
            fields.push(("text", quoted(&text.decode())));
            "text"
        }
        Content::Thinking(text) => {
            fields.push(("text", quoted(&text.decode())));
            "thinking"
        }
        Content::ToolCall(call) => {
            fields.push(("id", quoted(&call.id)));
            fields.push(("name", quoted(&call.name)));
            fields.push((
                "input",
                match &call.input {
                    // A line must stay one line, however the source lays its JSON out.
                    ToolInput::Json(raw) => one_line(raw.as_str()),
                    ToolInput::Text(text) => quoted(&text.decode()),
                },
            ));
            if call.is_server_side {
                fields.push(("server_side", "true".to_owned()));
            }
            "tool_call"
        }
        Content::ToolResult(result) => {
            fields.push(("call_id", quoted(&result.call_id)));
            if let Some(is_error) = result.is_error {
                fields.push(("is_error", is_error.to_string()));
            }
            if result.is_server_side {
                fields.push(("server_side", "true".to_owned()));
            }
            let content: Vec<String> = if depth < DEPTH_MAX {
                result
                    .content
                    .iter()
                    .map(|block| write_block(block, depth + 1))
                    .collect()
            } else {
                Vec::new()
            };
            fields.push(("content", array(&content)));
            "tool_result"
        }
        Content::Image(media) => {
            write_media(media, &mut fields);
            "image"
        }
        Content::Document(media) => {
            write_media(media, &mut fields);
            "document"
        }
        Content::Compaction(text) => {
            if let Some(text) = text {
                fields.push(("text", quoted(&text.decode())));
            }
            "compaction"
        }
        Content::Other(kind) => {
            fields.push(("kind", quoted(kind)));
            if let Some(raw) = &block.raw {
                fields.push(("raw", one_line(raw.as_str())));
            }
            "other"
        }
    };
    let kind = quoted(kind);
    let mut pairs = vec![("type", kind.as_str())];
    pairs.extend(fields.iter().map(|(key, value)| (*key, value.as_str())));
    object(&pairs)
}

fn write_media(media: &Media, fields: &mut Vec<(&'static str, String)>) {
    if let Some(media_type) = &media.media_type {
        fields.push(("media_type", quoted(media_type)));
    }
    if let Some(bytes) = media.data_bytes {
        fields.push(("data_bytes", bytes.to_string()));
    }
    if let Some(name) = &media.name {
        fields.push(("name", quoted(name)));
    }
}

/// JSON without line breaks. Inside of strings there are none, so those between are white space.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}
