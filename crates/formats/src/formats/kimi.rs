//! Kimi CLI: `context.jsonl`, what the model sees, and `wire.jsonl`, what happened.
//!
//! The context has messages of the chat shape, and records of the client in between (`_system_prompt`, `_checkpoint`,
//! `_usage`). After a compaction the client begins a new file with the summary. The wire has events: the begin of a
//! turn with what the person said, parts of answers, calls, results.

mod wire;

use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Message, Role};

use crate::formats::place::Place;
use crate::formats::{Format, Probe, parts};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

/// How the message begins that replaces what was compacted.
const COMPACTION: &str = "<system>Previous context has been compacted";

/// Sessions of Kimi CLI.
pub(super) struct Kimi;

impl Format for Kimi {
    fn name(&self) -> &'static str {
        "kimi"
    }

    fn about(&self) -> &'static str {
        "Kimi CLI session (context.jsonl, wire.jsonl)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        probe.best_record(|record| {
            let is_own_record = matches!(
                record.string_field("role").as_deref(),
                Some("_system_prompt" | "_checkpoint" | "_usage")
            );
            if is_own_record || wire::is_record(record) {
                97
            } else if record.field("role").is_some()
                && record.field("content").is_some_and(|content| {
                    content
                        .elements()
                        .any(|part| part.string_field("type").as_deref() == Some("think"))
                })
            {
                90
            } else {
                0
            }
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut context = Context::default();
        let mut events = wire::Events::default();
        let mut is_found = false;
        let mut lines = Lines::new(source, &[]);
        while let Some(line) = lines.advance() {
            let record = lines.record();
            if context.add(record, line) || events.add(record, line) {
                is_found = true;
            } else {
                lines.reject("not a record of Kimi CLI");
            }
        }
        if !is_found {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no message and no event".to_owned(),
            });
        }
        let mut conversations = events.into_conversations();
        if !context.conversation.messages.is_empty() || conversations.is_empty() {
            conversations.insert(0, context.conversation);
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: lines.into_skipped(),
        })
    }
}

#[derive(Default)]
struct Context {
    conversation: Conversation,
}

impl Context {
    fn add(&mut self, record: View<'_>, line: usize) -> bool {
        let place = Place {
            line,
            ..Place::default()
        };
        let blocks = || content(record.field("content"));
        let (role, blocks) = match record.string_field("role").as_deref() {
            Some("_system_prompt") => {
                self.conversation.system = blocks();
                return true;
            }
            Some(own) if own.starts_with('_') => return true,
            Some("system" | "developer") => (Role::System, blocks()),
            Some("user") => (Role::User, blocks()),
            Some("assistant") => {
                let mut blocks = blocks();
                let calls = record.field("tool_calls").into_iter();
                blocks.extend(calls.flat_map(View::elements).map(call));
                (Role::Assistant, blocks)
            }
            Some("tool") => {
                let content = blocks();
                let is_error = content.first().and_then(|block| match &block.content {
                    Content::Text(text) => Some(text.decode().starts_with("<system>ERROR")),
                    _ => None,
                });
                let id = parts::name(record, "tool_call_id");
                (Role::Tool, vec![parts::result(id, content, is_error)])
            }
            _ => return false,
        };
        let mut message = Message::new(role, blocks);
        message.raw = Some(record.raw());
        message.author = author(&message);
        if message.author == Author::Compaction {
            self.conversation.compactions.push(CompactionMark {
                before_message: self.conversation.messages.len(),
                tokens_before: None,
                trigger: None,
            });
            // The tags say only that it is a summary.
            message.blocks.remove(0);
        }
        if !message.blocks.is_empty() {
            self.conversation.messages.push(place.put(message));
        }
        true
    }
}

/// The client speaks in `<system>` and `<system-reminder>`, with the role of the user.
fn author(message: &Message) -> Author {
    let texts: Vec<_> = message.texts().map(|text| text.decode()).collect();
    let is_clients = |text: &str| {
        let text = text.trim();
        text.starts_with("<system>") && text.ends_with("</system>")
            || text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>")
    };
    if message.role != Role::User || texts.is_empty() {
        Author::Role
    } else if texts[0].starts_with(COMPACTION) && message.blocks.len() > 1 {
        Author::Compaction
    } else if texts.iter().all(|text| is_clients(text)) {
        Author::Client
    } else {
        Author::Role
    }
}

/// What a message or result holds: a text, or a list of parts.
fn content(value: Option<View<'_>>) -> Vec<Block> {
    match value {
        Some(value) if value.is_array() => value.elements().filter_map(part).collect(),
        Some(value) if value.is_object() => part(value).into_iter().collect(),
        Some(value) => parts::text(value).into_iter().collect(),
        None => Vec::new(),
    }
}

fn part(value: View<'_>) -> Option<Block> {
    let kind = value.string_field("type").unwrap_or_default();
    let address = |key| value.field(key).and_then(|inner| inner.string_field("url"));
    let content = match kind.as_ref() {
        "text" => return value.field("text").and_then(parts::text),
        "think" => return value.field("think").and_then(parts::thinking),
        "image_url" => Content::Image(parts::media(address("image_url").as_deref(), None)),
        "audio_url" | "video_url" => {
            Content::Document(parts::media(address(kind.as_ref()).as_deref(), None))
        }
        other => Content::Other(other.into()),
    };
    Some(Block {
        content,
        raw: Some(value.raw()),
    })
}

fn call(value: View<'_>) -> Block {
    let function = value.field("function").unwrap_or(value);
    parts::call(
        parts::name(value, "id"),
        parts::name(function, "name"),
        function.field("arguments"),
        Some(value.raw()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    fn read_text(text: &str) -> Source {
        Kimi.read(&SourceText::from_text(text.to_owned())).unwrap()
    }

    #[test]
    fn records_of_the_client_are_no_messages() {
        let source = read_text(
            r#"{"role":"_system_prompt","content":"You are Kimi."}
{"role":"_checkpoint","id":0}
{"role":"user","content":[{"type":"text","text":"<system>CHECKPOINT 0</system>"}]}
{"role":"user","content":"Paint the buoy red."}
{"role":"assistant","content":[{"type":"think","think":"red","encrypted":null},{"type":"text","text":"I paint."}],"tool_calls":[{"type":"function","id":"t1","function":{"name":"WriteFile","arguments":"{\"path\":\"/w/b.svg\"}"}}]}
{"role":"tool","content":[{"type":"text","text":"<system>ERROR: read only</system>"}],"tool_call_id":"t1"}
{"role":"_usage","token_count":100}
{"role":"assistant","content":"It cannot be written."}"#,
        );
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "client: <system>CHECKPOINT 0</system>",
                "user: Paint the buoy red.",
                "model: (red) + I paint. + call t1 WriteFile",
                "tool: failed t1 <system>ERROR: read only</system>",
                "model: It cannot be written.",
            ]
        );
        assert_eq!(conversation.system.len(), 1);
        assert_eq!(conversation.messages[1].position.line, 4);
        assert_eq!(source.skipped, []);
    }

    #[test]
    fn a_compaction_is_not_the_users() {
        let source = read_text(
            r#"{"role":"_checkpoint","id":0}
{"role":"user","content":[{"type":"text","text":"<system>Previous context has been compacted. Here is the compaction output:</system>"},{"type":"text","text":"The buoy is red."}]}
{"role":"user","content":"Now the mast."}"#,
        );
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            ["compaction: The buoy is red.", "user: Now the mast."]
        );
        assert_eq!(conversation.compactions[0].before_message, 0);
    }

    #[test]
    fn a_context_without_messages_has_none() {
        let source = read_text(r#"{"role":"_system_prompt","content":"You are Kimi."}"#);
        assert_eq!(source.conversations[0].messages, []);
        assert!(Kimi.read(&SourceText::from_text("{\"a\":1}")).is_err());
    }
}
