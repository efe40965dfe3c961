//! Droid, the agent of Factory: JSONL with a head, messages of the Anthropic shape and states of the client.

use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Message, Role};

use crate::formats::place::Place;
use crate::formats::{Format, Probe, anthropic_content, parts, times};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["input", "todos"];

/// Sessions of Droid.
pub(super) struct Droid;

impl Format for Droid {
    fn name(&self) -> &'static str {
        "droid"
    }

    fn about(&self) -> &'static str {
        "Droid session of Factory (JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        probe.best_record(|record| match record.string_field("type").as_deref() {
            Some("session_start") if record.field("id").is_some() => 97,
            Some("todo_state" | "compaction_state") => 85,
            // A session whose head is lost.
            Some("message")
                if record.field("timestamp").is_some()
                    && record.field("sessionId").is_none()
                    && record
                        .field("parentId")
                        .is_none_or(|parent| !parent.is_null())
                    && record
                        .field("message")
                        .is_some_and(|message| message.field("role").is_some()) =>
            {
                55
            }
            _ => 0,
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut conversation = Conversation::default();
        let mut lines = Lines::new(source, OPAQUE);
        let is_found = lines.read_records("not a record of Droid", |record, line| {
            add(&mut conversation, record, line)
        });
        if !is_found {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no record of a session".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped: lines.into_skipped(),
        })
    }
}

fn add(conversation: &mut Conversation, record: View<'_>, line: usize) -> bool {
    let place = Place {
        line,
        at_ms: record.field("timestamp").and_then(times::from_milliseconds),
        id: record.field("id").and_then(View::to_bytestring),
    };
    match record.string_field("type").as_deref() {
        Some("session_start") => {
            conversation.id = parts::string(record, "id").unwrap_or_default();
            conversation.title =
                parts::string(record, "sessionTitle").or_else(|| parts::string(record, "title"));
            conversation.cwd = parts::string(record, "cwd");
            conversation.parent_id = parts::string(record, "callingSessionId");
        }
        Some("message") => {
            let Some(message) = record.field("message") else {
                return false;
            };
            return said(conversation, message, &place);
        }
        Some("compaction_state") => {
            conversation.compactions.push(CompactionMark {
                before_message: conversation.messages.len(),
                tokens_before: None,
                trigger: None,
            });
            let summary = ["summaryText", "summary"]
                .into_iter()
                .find_map(|key| record.field(key).and_then(parts::text));
            if let Some(summary) = summary {
                let mut message = Message::new(Role::User, vec![summary]);
                message.author = Author::Compaction;
                conversation.messages.push(place.put(message));
            }
        }
        Some("todo_state" | "session_end") => {}
        _ => return false,
    }
    true
}

fn said(conversation: &mut Conversation, value: View<'_>, place: &Place) -> bool {
    let role = match value.string_field("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return false,
    };
    if let (Role::Assistant, Some(model)) = (role, parts::string(value, "model")) {
        conversation.model = Some(model);
    }
    let is_clients = value.string_field("visibility").as_deref() == Some("llm_only");
    let blocks = value
        .field("content")
        .map(anthropic_content::content)
        .unwrap_or_default();
    // The client puts its reminders beside the words of the person.
    let (added, said): (Vec<Block>, Vec<Block>) = blocks
        .into_iter()
        .filter(|block| !matches!(&block.content, Content::Text(text) if text.is_blank()))
        .partition(|block| role == Role::User && (is_clients || is_reminder(block)));
    for (author, blocks) in [(Author::Client, added), (Author::Role, said)] {
        if !blocks.is_empty() {
            let mut message = Message::new(role, blocks);
            message.author = author;
            conversation.messages.push(place.put(message));
        }
    }
    true
}

fn is_reminder(block: &Block) -> bool {
    match &block.content {
        Content::Text(text) => text.decode().trim_start().starts_with("<system-reminder>"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    fn read_text(text: &str) -> Source {
        Droid.read(&SourceText::from_text(text.to_owned())).unwrap()
    }

    #[test]
    fn messages_reminders_and_summaries() {
        let source = read_text(
            r#"{"type":"session_start","id":"s1","title":"Tar the hull","owner":"lea","cwd":"/w"}
{"type":"message","id":"m1","timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":[{"type":"text","text":"<system-reminder>rules</system-reminder>"},{"type":"text","text":"Tar the hull"}]}}
{"type":"message","id":"m2","timestamp":"2026-01-01T00:00:02Z","parentId":"m1","message":{"role":"assistant","model":"m-1","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t1","name":"Execute","input":{"command":"ls"}}]}}
{"type":"message","id":"m3","timestamp":"2026-01-01T00:00:03Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"tar","is_error":false}]}}
{"type":"todo_state","id":"t","todos":{"todos":"1. x"}}
{"type":"compaction_state","summaryText":"so far"}
{"type":"message","timestamp":"2026-01-01T00:00:04Z","message":{"role":"assistant","content":"Tarred."}}"#,
        );
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "client: <system-reminder>rules</system-reminder>",
                "user: Tar the hull",
                "model: (hm) + call t1 Execute",
                "user: result t1 tar",
                "compaction: so far",
                "model: Tarred.",
            ]
        );
        assert_eq!(
            (
                conversation.id.as_str(),
                conversation.cwd.as_deref(),
                conversation.model.as_deref()
            ),
            ("s1", Some("/w"), Some("m-1"))
        );
        assert_eq!(conversation.compactions[0].before_message, 4);
        assert_eq!(source.skipped, []);
    }

    #[test]
    fn a_session_without_messages_has_none() {
        let source = read_text(r#"{"type":"session_start","id":"s1","cwd":"/w"}"#);
        assert_eq!(source.conversations[0].messages, []);
        assert!(Droid.read(&SourceText::from_text("{\"a\":1}")).is_err());
    }
}
