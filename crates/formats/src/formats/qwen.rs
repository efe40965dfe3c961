//! Qwen Code: JSONL, one record a line, with the contents of the Gemini API.
//!
//! Records form a tree by `parentUuid`; the last record of the main agent is the current one. A compression writes down
//! what the model sees from then on; here the originals stay.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Message, Role};
use throughline_transcript::usage::Usage;

use crate::formats::gemini::part;
use crate::formats::place::Place;
use crate::formats::rollback::note_left_out;
use crate::formats::{Format, Probe, anthropic_content, parts, times};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["args", "toolCallResult", "uiEvent", "snapshots", "snapshot"];

/// Sessions of Qwen Code.
pub(super) struct Qwen;

impl Format for Qwen {
    fn name(&self) -> &'static str {
        "qwen-code"
    }

    fn about(&self) -> &'static str {
        "Qwen Code session (JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        // Claude Code has the same fields around other messages.
        probe.best_record(|record| {
            let has = |key| record.field(key).is_some();
            let has_parts = record
                .field("message")
                .is_some_and(|message| message.field("parts").is_some());
            if !has("sessionId") || !has("uuid") {
                0
            } else if has_parts || has("systemPayload") {
                98
            } else {
                0
            }
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut session = Session::default();
        let mut lines = Lines::new(source, OPAQUE);
        lines.read_records("not a record of Qwen Code", |record, line| {
            session.add(record, line)
        });
        if session.main.is_empty() && session.agents.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no record with `uuid` and `sessionId`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: session.into_conversations(),
            skipped: lines.into_skipped(),
        })
    }
}

#[derive(Default)]
struct Session {
    head: Conversation,
    main: Vec<Entry>,
    by_id: HashMap<ByteString, usize>,
    /// The messages of sub-agents, each of which has records of its own.
    agents: Vec<Conversation>,
    agent_index: HashMap<ByteString, usize>,
}

struct Entry {
    /// Index of the record that this one follows.
    parent: Option<usize>,
    message: Option<Message>,
    model: Option<String>,
    mark: Option<CompactionMark>,
}

impl Session {
    fn add(&mut self, record: View<'_>, line: usize) -> bool {
        let id = record.field("uuid").and_then(View::to_bytestring);
        let (Some(kind), Some(id)) = (record.string_field("type"), id) else {
            return false;
        };
        let place = Place {
            line,
            at_ms: record.field("timestamp").and_then(times::from_milliseconds),
            id: Some(id.clone()),
        };
        if self.head.id.is_empty() {
            self.head.id = parts::string(record, "sessionId").unwrap_or_default();
            self.head.cwd = parts::string(record, "cwd");
        }
        let subtype = record.string_field("subtype").unwrap_or_default();
        let payload = record.field("systemPayload");
        let field = |key| payload.and_then(|payload: View<'_>| payload.field(key));
        let mut mark = None;
        match subtype.as_ref() {
            "custom_title" => {
                let title = payload.and_then(|payload| parts::string(payload, "customTitle"));
                self.head.title = title.or(self.head.title.take());
            }
            "parent_session" => {
                let parent = payload.and_then(|payload| parts::string(payload, "parentSessionId"));
                self.head.parent_id = parent;
            }
            "chat_compression" => {
                mark = Some(CompactionMark {
                    before_message: 0,
                    tokens_before: field("info")
                        .and_then(|info| info.field("originalTokenCount"))
                        .and_then(View::as_u64),
                    trigger: None,
                });
            }
            _ => {}
        }
        let message = message(&kind, &subtype, record).map(|message| place.put(message));
        let model = parts::string(record, "model").filter(|_| kind == "assistant");
        let agent = record.field("agentId").and_then(View::to_bytestring);
        if record.field("isSidechain").is_some_and(View::is_true) || agent.is_some() {
            let conversation = self.agent(agent.unwrap_or_default(), record);
            conversation.messages.extend(message);
            return true;
        }
        let parent = match record.field("parentUuid").and_then(View::to_bytestring) {
            Some(parent) => self
                .by_id
                .get(&parent)
                .copied()
                .or(self.main.len().checked_sub(1)),
            None => None,
        };
        self.by_id.insert(id, self.main.len());
        self.main.push(Entry {
            parent,
            message,
            model,
            mark,
        });
        true
    }

    fn agent(&mut self, id: ByteString, record: View<'_>) -> &mut Conversation {
        let index = *self.agent_index.entry(id.clone()).or_insert_with(|| {
            self.agents.push(Conversation {
                id: id.to_string(),
                title: parts::string(record, "agentName"),
                ..Conversation::default()
            });
            self.agents.len() - 1
        });
        &mut self.agents[index]
    }

    fn into_conversations(self) -> Vec<Conversation> {
        let mut conversation = self.head;
        // Parents come before their children, so the walk ends.
        let mut chain = HashSet::new();
        let mut next = self.main.len().checked_sub(1);
        while let Some(index) = next {
            chain.insert(index);
            next = self.main[index].parent;
        }
        let mut left_out = 0;
        for (index, entry) in self.main.into_iter().enumerate() {
            if !chain.contains(&index) {
                left_out += usize::from(entry.message.is_some());
                continue;
            }
            if let Some(mark) = entry.mark {
                conversation.compactions.push(CompactionMark {
                    before_message: conversation.messages.len(),
                    ..mark
                });
            }
            conversation.model = entry.model.or(conversation.model);
            conversation.messages.extend(entry.message);
        }
        note_left_out(&mut conversation, left_out, "rewound");
        let parent = (!conversation.id.is_empty()).then(|| conversation.id.clone());
        let mut conversations = vec![conversation];
        for mut agent in self.agents {
            agent.parent_id.clone_from(&parent);
            if !agent.messages.is_empty() {
                conversations.push(agent);
            }
        }
        conversations
    }
}

fn message(kind: &str, subtype: &str, record: View<'_>) -> Option<Message> {
    let role = match kind {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool_result" => Role::Tool,
        _ => return None,
    };
    let pieces = record.field("message")?.field("parts")?;
    let blocks: Vec<Block> = pieces
        .elements()
        .map(part)
        .filter(|block| !matches!(&block.content, Content::Text(text) if text.is_blank()))
        .collect();
    if blocks.is_empty() {
        return None;
    }
    let mut message = Message::new(role, blocks);
    // Notices of background tasks, timers, and goals that the client pursues.
    let provenance = record.string_field("provenance");
    let is_clients = matches!(
        subtype,
        "notification" | "background_task_completed" | "cron" | "goal_runtime"
    ) || matches!(
        provenance.as_deref(),
        Some("goal_control" | "goal_runtime" | "system")
    );
    if role == Role::User && is_clients {
        message.author = Author::Client;
    }
    if role == Role::Assistant {
        message.usage = record.field("usageMetadata").and_then(usage);
    }
    message.raw = Some(record.raw());
    Some(message)
}

fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    let cached = tokens("cachedContentTokenCount");
    parts::used(Usage {
        uncached: tokens("promptTokenCount").saturating_sub(cached),
        cache_write: 0,
        cache_write_long: 0,
        cache_read: cached,
        output: tokens("candidatesTokenCount") + tokens("thoughtsTokenCount"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    fn record(id: &str, parent: &str, kind: &str, rest: &str) -> String {
        let parent = match parent {
            "" => "null".to_owned(),
            parent => format!("{parent:?}"),
        };
        format!(
            r#"{{"uuid":"{id}","parentUuid":{parent},"sessionId":"s1","timestamp":"2026-01-01T00:00:01Z","type":"{kind}","cwd":"/w","version":"0.9.0"{rest}}}"#
        )
    }

    fn said(id: &str, parent: &str, text: &str) -> String {
        record(
            id,
            parent,
            "user",
            &format!(r#","message":{{"role":"user","parts":[{{"text":"{text}"}}]}}"#),
        )
    }

    fn read_lines(lines: &[String]) -> Source {
        Qwen.read(&SourceText::from_text(lines.join("\n"))).unwrap()
    }

    #[test]
    fn calls_and_results_with_usage() {
        let source = read_lines(&[
            said("a", "", "Count the cranes."),
            record(
                "b",
                "a",
                "assistant",
                r#","model":"qwen3-coder","message":{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"id":"c1","name":"glob","args":{"pattern":"*"}}}]},"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"cachedContentTokenCount":4}"#,
            ),
            record(
                "c",
                "b",
                "tool_result",
                r#","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"glob","response":{"output":"two"}}}]},"toolCallResult":{"callId":"c1","status":"success"}"#,
            ),
            record(
                "d",
                "c",
                "system",
                r#","subtype":"custom_title","systemPayload":{"customTitle":"Cranes"}"#,
            ),
            record(
                "e",
                "d",
                "user",
                r#","subtype":"notification","message":{"role":"user","parts":[{"text":"a task ended"}]}"#,
            ),
            record(
                "f",
                "e",
                "assistant",
                r#","message":{"role":"model","parts":[{"text":"Two."}]}"#,
            ),
        ]);
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "user: Count the cranes.",
                "model: (hm) + call c1 glob",
                "tool: result c1 two",
                "client: a task ended",
                "model: Two.",
            ]
        );
        assert_eq!(conversation.title.as_deref(), Some("Cranes"));
        assert_eq!(conversation.cwd.as_deref(), Some("/w"));
        assert_eq!(conversation.model.as_deref(), Some("qwen3-coder"));
        let usage = conversation.messages[1].usage.unwrap();
        assert_eq!((usage.prompt(), usage.cache_read, usage.output), (10, 4, 3));
        assert_eq!(source.skipped, []);
    }

    #[test]
    fn rewound_records_compressions_and_sub_agents() {
        let source = read_lines(&[
            said("a", "", "one"),
            said("b", "a", "wrong"),
            record(
                "s",
                "a",
                "user",
                r#","isSidechain":true,"agentId":"scout-1","agentName":"scout","message":{"role":"user","parts":[{"text":"look"}]}"#,
            ),
            record(
                "c",
                "a",
                "system",
                r#","subtype":"chat_compression","systemPayload":{"info":{"originalTokenCount":900,"newTokenCount":90},"compressedHistory":[]}"#,
            ),
            said("d", "c", "two"),
        ]);
        let main = &source.conversations[0];
        assert_eq!(story(main), ["user: one", "user: two"]);
        assert_eq!(main.problems[0].code, "rolled-back");
        assert_eq!(main.compactions[0].before_message, 1);
        assert_eq!(main.compactions[0].tokens_before, Some(900));
        assert_eq!(story(&source.conversations[1]), ["user: look"]);
        assert_eq!(source.conversations[1].parent_id.as_deref(), Some("s1"));
    }
}
