//! Sessions of the pi coding agent: JSONL, one entry per line.
//!
//! Since version 2 of the format, entries form a tree by `parentId`; the last entry of the file is the current one.
//! Version 1 has no ids: the entries are a list. A compaction names the first entry that the model still sees; here all
//! messages stay.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use throughline_transcript::conversation::{CompactionMark, Conversation, Problem};
use throughline_transcript::json::Text;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{
    Author, Block, Content, Media, Message, Position, Role, ToolCall, ToolInput, ToolResult,
};
use throughline_transcript::usage::Usage;

use crate::formats::{Format, Probe, anthropic_content, times};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["arguments", "details", "data", "cost"];

/// Session files of pi.
pub(super) struct Pi;

impl Format for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn about(&self) -> &'static str {
        "pi session (JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        probe.best_record(|record| {
            let is = |kind| record.string_field("type").as_deref() == Some(kind);
            if is("session") && record.field("id").is_some() && record.field("cwd").is_some() {
                95
            } else if is("message")
                && record.field("parentId").is_some()
                && record
                    .field("message")
                    .is_some_and(|message| message.field("role").is_some())
                && record.field("sessionId").is_none()
                && record.field("payload").is_none()
            {
                // A session whose head is lost.
                60
            } else {
                0
            }
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut session = Session::default();
        let mut lines = Lines::new(source, OPAQUE);
        lines.read_records("not an entry of a pi session", |record, line| {
            session.add(record, line)
        });
        if !session.is_found {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no entry with a message".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![session.into_conversation()],
            skipped: lines.into_skipped(),
        })
    }
}

#[derive(Default)]
struct Session {
    conversation: Conversation,
    entries: Vec<Entry>,
    by_id: HashMap<ByteString, usize>,
    is_found: bool,
}

struct Entry {
    /// Index of the entry that this one follows.
    parent: Option<usize>,
    kind: EntryKind,
}

enum EntryKind {
    /// A link of the tree without a message.
    Link,
    Message(Message, Option<ByteString>),
    /// A message that replaces earlier ones.
    Compaction(Message, CompactionMark),
}

impl Session {
    /// Adds an entry; `false` if it is none.
    fn add(&mut self, record: View<'_>, line: usize) -> bool {
        let Some(kind) = record.string_field("type") else {
            return false;
        };
        let at_ms = record.field("timestamp").and_then(times::from_milliseconds);
        let kind = match kind.as_ref() {
            "session" => {
                // A file that went on from another one can repeat the head: the first one counts.
                if self.conversation.id.is_empty() {
                    let text = |key| record.string_field(key).map(|text| text.into_owned());
                    self.conversation.id = text("id").unwrap_or_default();
                    self.conversation.cwd = text("cwd");
                    self.is_found = true;
                }
                return true;
            }
            "message" => {
                let Some(message) = record.field("message") else {
                    return false;
                };
                match read_message(message) {
                    Some(message) => message,
                    None => EntryKind::Link,
                }
            }
            "compaction" => {
                let summary = record.field("summary").and_then(View::as_text);
                let mark = CompactionMark {
                    before_message: 0,
                    tokens_before: record.field("tokensBefore").and_then(View::as_u64),
                    trigger: None,
                };
                EntryKind::Compaction(summary_message(summary), mark)
            }
            "branch_summary" => {
                let summary = record.field("summary").and_then(View::as_text);
                EntryKind::Message(summary_message(summary), None)
            }
            "custom_message" => {
                let blocks = record.field("content").map(content).unwrap_or_default();
                let mut message = Message::new(Role::User, blocks);
                message.author = Author::Client;
                EntryKind::Message(message, None)
            }
            "session_info" => {
                let name = record
                    .string_field("name")
                    .map(|name| name.trim().to_owned());
                if let Some(name) = name.filter(|name| !name.is_empty()) {
                    self.conversation.title = Some(name);
                }
                EntryKind::Link
            }
            "model_change" | "thinking_level_change" | "label" | "custom" => EntryKind::Link,
            // A kind that came later: with an id it is a link of the tree.
            _ if record.field("parentId").is_some() => EntryKind::Link,
            _ => return false,
        };
        let id = record.field("id").and_then(View::to_bytestring);
        let parent = match record.field("parentId") {
            // Version 1: a list. A parent that is not in the file: the entry before it.
            None => self.entries.len().checked_sub(1),
            Some(parent) => match parent.to_bytestring() {
                Some(parent) => self
                    .by_id
                    .get(&parent)
                    .copied()
                    .or(self.entries.len().checked_sub(1)),
                None => None,
            },
        };
        let place = |mut message: Message| {
            message.position = Position { line };
            message.at_ms = at_ms.or(message.at_ms);
            message.id.clone_from(&id);
            message
        };
        let kind = match kind {
            EntryKind::Message(message, model) => EntryKind::Message(place(message), model),
            EntryKind::Compaction(message, mark) => EntryKind::Compaction(place(message), mark),
            EntryKind::Link => EntryKind::Link,
        };
        if let Some(id) = id {
            self.by_id.insert(id, self.entries.len());
        }
        self.entries.push(Entry { parent, kind });
        self.is_found = true;
        true
    }

    fn into_conversation(self) -> Conversation {
        let mut conversation = self.conversation;
        // Parents come before their children, so the walk ends.
        let mut chain = HashSet::new();
        let mut next = self.entries.len().checked_sub(1);
        while let Some(index) = next {
            chain.insert(index);
            next = self.entries[index].parent;
        }
        let mut left_out = 0;
        for (index, entry) in self.entries.into_iter().enumerate() {
            if !chain.contains(&index) {
                left_out += usize::from(matches!(entry.kind, EntryKind::Message(..)));
                continue;
            }
            match entry.kind {
                EntryKind::Link => {}
                EntryKind::Message(message, model) => {
                    if let Some(model) = model {
                        conversation.model = Some(model.to_string());
                    }
                    if !message.blocks.is_empty() {
                        conversation.messages.push(message);
                    }
                }
                EntryKind::Compaction(message, mark) => {
                    conversation.compactions.push(CompactionMark {
                        before_message: conversation.messages.len(),
                        ..mark
                    });
                    if !message.blocks.is_empty() {
                        conversation.messages.push(message);
                    }
                }
            }
        }
        if left_out > 0 {
            conversation.problems.push(Problem {
                code: "abandoned-branch",
                message: conversation.messages.len().saturating_sub(1),
                text: format!(
                    "{left_out} messages on branches that were left are not in the history"
                ),
            });
        }
        conversation
    }
}

fn summary_message(summary: Option<Text>) -> Message {
    let blocks = summary.map(Block::text).into_iter().collect();
    let mut message = Message::new(Role::User, blocks);
    message.author = Author::Compaction;
    message
}

/// A message, with the model that made it. `None` for messages that the model does not see.
fn read_message(value: View<'_>) -> Option<EntryKind> {
    let role = value.string_field("role")?;
    let blocks = || value.field("content").map(content).unwrap_or_default();
    let mut model = None;
    let mut message = match role.as_ref() {
        "user" => Message::new(Role::User, blocks()),
        "assistant" => {
            model = value.field("model").and_then(View::to_bytestring);
            let mut message = Message::new(Role::Assistant, blocks());
            message.usage = value.field("usage").and_then(usage);
            message
        }
        "toolResult" => {
            let result = ToolResult {
                call_id: value
                    .field("toolCallId")
                    .and_then(View::to_bytestring)
                    .unwrap_or_default(),
                content: blocks(),
                is_error: value.field("isError").and_then(View::as_bool),
                is_server_side: false,
            };
            Message::new(Role::Tool, vec![Block::new(Content::ToolResult(result))])
        }
        // The user ran a command in the prompt line.
        "bashExecution" => {
            if value.field("excludeFromContext").is_some_and(View::is_true) {
                return None;
            }
            let command = value.string_field("command").unwrap_or_default();
            let output = value.string_field("output").unwrap_or_default();
            let mut message = Message::new(
                Role::User,
                vec![Block::text(format!("$ {command}\n{output}"))],
            );
            message.author = Author::Client;
            message
        }
        "branchSummary" | "compactionSummary" => {
            summary_message(value.field("summary").and_then(View::as_text))
        }
        _ => {
            let mut message = Message::new(Role::User, blocks());
            message.author = Author::Client;
            message
        }
    };
    message.raw = Some(value.raw());
    message.at_ms = value.field("timestamp").and_then(times::from_milliseconds);
    Some(EntryKind::Message(message, model))
}

fn content(value: View<'_>) -> Vec<Block> {
    if value.decode().is_some() {
        return anthropic_content::content(value);
    }
    value.elements().map(block).collect()
}

fn block(value: View<'_>) -> Block {
    let name = |key| value.field(key).and_then(View::to_bytestring);
    let content = match value.string_field("type").as_deref() {
        Some("toolCall") => Content::ToolCall(ToolCall {
            id: name("id").unwrap_or_default(),
            name: name("name").unwrap_or_default(),
            input: value.field("arguments").map_or_else(
                || ToolInput::Text("".into()),
                |input| ToolInput::Json(input.raw()),
            ),
            is_server_side: false,
        }),
        Some("image") => Content::Image(Media {
            media_type: name("mimeType"),
            data_bytes: value
                .field("data")
                .and_then(View::as_text)
                .map(|data| anthropic_content::base64_bytes(data.encoded_len())),
            name: None,
        }),
        _ => return anthropic_content::block(value),
    };
    Block {
        content,
        raw: Some(value.raw()),
    }
}

/// `input` does not include what was read from or written to the cache.
fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    let usage = Usage {
        uncached: tokens("input"),
        cache_write: tokens("cacheWrite"),
        cache_write_long: 0,
        cache_read: tokens("cacheRead"),
        output: tokens("output"),
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    fn read_text(text: &str) -> Source {
        Pi.read(&SourceText::from_bytes(text.as_bytes().to_vec()))
            .unwrap()
    }

    fn head() -> String {
        r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}"#
            .to_owned()
    }

    fn entry(id: &str, parent: &str, message: &str) -> String {
        let parent = if parent.is_empty() {
            "null".to_owned()
        } else {
            format!("{parent:?}")
        };
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01Z","message":{message}}}"#
        )
    }

    fn said(role: &str, text: &str) -> String {
        format!(r#"{{"role":"{role}","content":[{{"type":"text","text":{text:?}}}],"model":"m"}}"#)
    }

    #[test]
    fn calls_and_results_with_usage() {
        let call = r#"{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"t1","name":"read","arguments":{"path":"a"}}],"usage":{"input":5,"output":6,"cacheRead":7,"cacheWrite":8}}"#;
        let result = r#"{"role":"toolResult","toolCallId":"t1","toolName":"read","content":[{"type":"text","text":"no"}],"isError":true}"#;
        let text = [
            head(),
            entry("a", "", &said("user", "go")),
            entry("b", "a", call),
            entry("c", "b", result),
        ]
        .join("\n");
        let conversation = read_text(&text).conversations.remove(0);
        assert_eq!(
            story(&conversation),
            [
                "user: go",
                "model: (hm) + call t1 read",
                "tool: failed t1 no"
            ]
        );
        let usage = conversation.messages[1].usage.unwrap();
        assert_eq!((usage.prompt(), usage.output), (20, 6));
        assert_eq!(conversation.messages[1].position.line, 3);
        assert_eq!(
            (conversation.id.as_str(), conversation.cwd.as_deref()),
            ("s1", Some("/w"))
        );
    }

    #[test]
    fn the_last_entry_says_which_branch_counts() {
        let text = [
            head(),
            entry("a", "", &said("user", "go")),
            entry("b", "a", &said("assistant", "wrong")),
            entry("c", "a", &said("assistant", "right")),
            r#"{"type":"session_info","id":"d","parentId":"c","name":"A name"}"#.to_owned(),
        ]
        .join("\n");
        let conversation = read_text(&text).conversations.remove(0);
        assert_eq!(story(&conversation), ["user: go", "model: right"]);
        assert_eq!(conversation.problems[0].code, "abandoned-branch");
        assert_eq!(conversation.title.as_deref(), Some("A name"));
    }

    #[test]
    fn compactions_keep_earlier_messages() {
        let text = [
            head(),
            format!(r#"{{"type":"message","message":{}}}"#, said("user", "old")),
            r#"{"type":"compaction","summary":"what was","firstKeptEntryIndex":1,"tokensBefore":99}"#.to_owned(),
            format!(r#"{{"type":"message","message":{}}}"#, said("user", "new")),
            r#"{"type":"message","message":{"role":"bashExecution","command":"ls","output":"a.txt"}}"#.to_owned(),
        ]
        .join("\n");
        let conversation = read_text(&text).conversations.remove(0);
        assert_eq!(
            story(&conversation),
            [
                "user: old",
                "compaction: what was",
                "user: new",
                "client: $ ls\na.txt"
            ]
        );
        assert_eq!(conversation.compactions[0].before_message, 1);
        assert_eq!(conversation.compactions[0].tokens_before, Some(99));
    }

    #[test]
    fn damage_is_reported() {
        let text = [
            head(),
            "noise".to_owned(),
            entry("b", "lost", &said("user", "go")),
            "{\"type".to_owned(),
        ]
        .join("\n");
        let source = read_text(&text);
        assert_eq!(story(&source.conversations[0]), ["user: go"]);
        assert_eq!(
            source
                .skipped
                .iter()
                .map(|piece| piece.line)
                .collect::<Vec<_>>(),
            [2, 4]
        );
        assert!(Pi.read(&SourceText::from_text("{}")).is_err());
    }
}
