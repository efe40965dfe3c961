//! The neutral list that [`crate::convert::to_jsonl`] writes: one message per line, in the product's own terms.

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Raw, Text};
use throughline_transcript::message::{
    Author, Block, Content, Media, Message, Role, ToolCall, ToolInput, ToolResult,
};

use crate::formats::chat_message::string;
use crate::formats::rows::rows;
use crate::formats::{Format, Probe};
use crate::source::add_skipped;
use crate::source::{ReadError, Source, SourceText};

/// Results hold blocks, and those may hold blocks again. Below this level they are left out, as in writing.
const DEPTH_MAX: usize = 6;

pub(crate) struct Neutral;

impl Format for Neutral {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn about(&self) -> &'static str {
        "messages as `convert --to jsonl` writes them"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        match probe.glance() {
            Some(glance) if glance.has("role") && glance.has_path(&["blocks", "type"]) => 97,
            _ => 0,
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let found = rows(source, &["blocks"]);
        let mut skipped = found.skipped;
        let mut conversation = Conversation::default();
        for (line, raw) in found.rows {
            match message(&raw) {
                // The system prompt comes first, with nothing but its blocks.
                Some(message)
                    if message.role == Role::System
                        && message.id.is_none()
                        && conversation.messages.is_empty()
                        && conversation.system.is_empty() =>
                {
                    conversation.system = message.blocks;
                }
                Some(mut message) => {
                    message.position.line = line;
                    conversation.messages.push(message);
                }
                None => add_skipped(
                    &mut skipped,
                    line,
                    raw.len(),
                    "not a message with `role` and `blocks`",
                ),
            }
        }
        if conversation.messages.is_empty() && conversation.system.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no message with `role` and `blocks`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped,
        })
    }
}

fn message(raw: &Raw) -> Option<Message> {
    let [role, author, id, at, blocks] = raw.fields(["role", "author", "id", "at_ms", "blocks"]);
    let role = match role.as_ref().map(string).as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => return None,
    };
    let blocks: Vec<Block> = blocks?
        .array()
        .filter_map(|block| self::block(&block, 0))
        .collect();
    if blocks.is_empty() {
        return None;
    }
    let mut message = Message::new(role, blocks);
    message.author = match author.as_ref().map(string).as_deref() {
        Some("client") => Author::Client,
        Some("agent") => Author::Agent,
        Some("compaction") => Author::Compaction,
        _ => Author::Role,
    };
    message.id = id.as_ref().map(string).filter(|id| !id.is_empty());
    message.at_ms = at.and_then(|at| at.as_str().parse().ok());
    Some(message)
}

fn block(raw: &Raw, depth: usize) -> Option<Block> {
    let text = || raw.text_field("text");
    let name = |key: &str| raw.field(key).as_ref().map(string).unwrap_or_default();
    let is_server_side =
        || raw.field("server_side").and_then(|value| value.as_bool()) == Some(true);
    let content = match raw.string_field("type")?.as_str() {
        "text" => Content::Text(text()?),
        "thinking" => Content::Thinking(text().unwrap_or_else(|| Text::plain(""))),
        "tool_call" => Content::ToolCall(ToolCall {
            id: name("id"),
            name: name("name"),
            input: match raw.field("input") {
                None => ToolInput::Text(Text::plain("")),
                Some(input) => match input.as_text() {
                    Some(text) => ToolInput::Text(text),
                    None => ToolInput::Json(input),
                },
            },
            is_server_side: is_server_side(),
        }),
        "tool_result" => Content::ToolResult(ToolResult {
            call_id: name("call_id"),
            content: match raw.field("content") {
                Some(content) if depth < DEPTH_MAX => content
                    .array()
                    .filter_map(|inner| block(&inner, depth + 1))
                    .collect(),
                _ => Vec::new(),
            },
            is_error: raw.field("is_error").and_then(|value| value.as_bool()),
            is_server_side: is_server_side(),
        }),
        "image" => Content::Image(media(raw)),
        "document" => Content::Document(media(raw)),
        "compaction" => Content::Compaction(text()),
        "other" => {
            return Some(Block {
                content: Content::Other(name("kind")),
                raw: raw.field("raw"),
            });
        }
        // Written by a later version.
        other => {
            return Some(Block {
                content: Content::Other(ByteString::from(other)),
                raw: Some(raw.clone()),
            });
        }
    };
    Some(Block::new(content))
}

fn media(raw: &Raw) -> Media {
    let name = |key: &str| raw.field(key).as_ref().map(string);
    Media {
        media_type: name("media_type"),
        data_bytes: raw
            .field("data_bytes")
            .and_then(|bytes| bytes.as_u64())
            .and_then(|bytes| usize::try_from(bytes).ok()),
        name: name("name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::to_jsonl;
    use crate::read::read;

    #[test]
    fn written_lists_are_read_back() {
        let lines = r#"{"role":"system","blocks":[{"type":"text","text":"Be brief."}]}
{"role":"user","id":"m1","at_ms":-5,"blocks":[{"type":"text","text":"Look \"here\"\n"},{"type":"image","media_type":"image/png","data_bytes":9,"name":"a"}]}
{"role":"user","author":"client","blocks":[{"type":"text","text":"A reminder"}]}
{"role":"assistant","blocks":[{"type":"thinking","text":"hm"},{"type":"tool_call","id":"c1","name":"read","input":{"path": 1e3}},{"type":"tool_call","id":"c2","name":"search","input":"free text","server_side":true}]}
{"role":"tool","blocks":[{"type":"tool_result","call_id":"c1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"document"}]}]}
{"role":"assistant","author":"compaction","blocks":[{"type":"compaction","text":"so far"},{"type":"compaction"},{"type":"other","kind":"novel","raw":{"type":"novel"}}]}
"#;
        let source = read(&SourceText::from_text(lines), None).unwrap();
        assert_eq!(source.format, "jsonl");
        assert_eq!(source.skipped, []);
        assert_eq!(to_jsonl(&source.conversations[0]), lines);
    }

    #[test]
    fn lines_that_are_not_messages_are_reported() {
        let lines = r#"{"role":"user","blocks":[{"type":"text","text":"a"}]}
{"role":"nobody","blocks":[]}
{"role":"assistant","blocks":[{"type":"text","text":"b"}]}"#;
        let source = read(&SourceText::from_text(lines), None).unwrap();
        assert_eq!(source.conversations[0].messages.len(), 2);
        assert_eq!(source.skipped[0].line, 2);
        let refused = Neutral.read(&SourceText::from_text("{\"role\":\"user\"}"));
        assert!(matches!(refused, Err(ReadError::NotThatFormat { .. })));
    }
}
