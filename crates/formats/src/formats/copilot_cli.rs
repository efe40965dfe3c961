//! GitHub Copilot CLI: `events.jsonl`, one event a line.
//!
//! An answer lists the calls of tools; each result is an event of its own. Events of sub-agents are among those of the
//! main agent and name the call that started them; they become conversations of their own.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Media, Message, Role};
use throughline_transcript::usage::Usage;

use crate::formats::place::Place;
use crate::formats::rollback::note_left_out;
use crate::formats::{Format, Probe, anthropic_content, parts, times};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["arguments", "toolTelemetry", "modelMetrics"];

/// Whose messages with the role of the user are not the person's.
const CLIENT_SOURCES: &[&str] = &[
    "skill",
    "system",
    "jit-",
    "snippy",
    "thinking-",
    "autopilot",
    "schedule",
    "agent",
];

/// Sessions of GitHub Copilot CLI.
pub(super) struct CopilotCli;

impl Format for CopilotCli {
    fn name(&self) -> &'static str {
        "copilot-cli"
    }

    fn about(&self) -> &'static str {
        "GitHub Copilot CLI session (events.jsonl)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        probe.best_record(|record| {
            let has_data = record.field("data").is_some_and(View::is_object);
            match record.string_field("type").as_deref() {
                Some("session.start" | "session.resume") if has_data => 97,
                Some(
                    "user.message"
                    | "assistant.message"
                    | "assistant.turn_start"
                    | "tool.execution_start"
                    | "tool.execution_complete",
                ) if has_data => 92,
                _ => 0,
            }
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut session = Session::default();
        let mut lines = Lines::new(source, OPAQUE);
        lines.read_records("not an event of GitHub Copilot CLI", |record, line| {
            session.add(record, line)
        });
        if !session.is_found {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no event with `type` and `data`".to_owned(),
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
    main: Conversation,
    /// Sub-agents, by the call that started them.
    agents: Vec<Conversation>,
    agent_index: HashMap<ByteString, usize>,
    /// Number of messages of the main agent before each event.
    messages_before: HashMap<ByteString, usize>,
    /// Calls that an answer has listed.
    known_calls: HashSet<ByteString>,
    /// Reasoning that belongs to the next answer.
    reasoning: Option<Block>,
    rewound: usize,
    is_found: bool,
}

impl Session {
    fn add(&mut self, record: View<'_>, line: usize) -> bool {
        let (Some(kind), Some(data)) = (record.string_field("type"), record.field("data")) else {
            return false;
        };
        if !data.is_object()
            || !kind
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || "._-".contains(one))
        {
            return false;
        }
        let place = Place {
            line,
            at_ms: record.field("timestamp").and_then(times::from_milliseconds),
            id: record.field("id").and_then(View::to_bytestring),
        };
        self.is_found = true;
        let agent = data
            .field("parentToolCallId")
            .or_else(|| record.field("agentId"))
            .and_then(View::to_bytestring);
        if let (None, Some(id)) = (&agent, &place.id) {
            self.messages_before
                .insert(id.clone(), self.main.messages.len());
        }
        match kind.as_ref() {
            "session.start" | "session.resume" | "session.context_changed" => self.head(data),
            "session.model_change" => {
                if let Some(model) = parts::string(data, "newModel") {
                    self.main.model = Some(model);
                }
            }
            "session.title_changed" => {
                if let Some(title) = parts::string(data, "title") {
                    self.main.title = Some(title);
                }
            }
            "session.snapshot_rewind" => self.rewind(&parts::name(data, "upToEventId")),
            "subagent.started" => {
                let id = parts::name(data, "toolCallId");
                let title = parts::string(data, "agentDisplayName")
                    .or_else(|| parts::string(data, "agentName"));
                if !id.is_empty() {
                    self.conversation(Some(&id)).title = title;
                }
            }
            "assistant.reasoning" => {
                self.reasoning = data.field("content").and_then(parts::thinking);
            }
            "assistant.message" => self.answer(data, agent.as_ref(), &place),
            _ => self.message(&kind, data, agent.as_ref(), &place),
        }
        true
    }

    fn message(&mut self, kind: &str, data: View<'_>, agent: Option<&ByteString>, place: &Place) {
        let is_new = kind == "tool.execution_start"
            && self.known_calls.insert(parts::name(data, "toolCallId"));
        let conversation = self.conversation(agent);
        let messages = &mut conversation.messages;
        match kind {
            "system.message" => {
                conversation.system = data
                    .field("content")
                    .and_then(parts::text)
                    .into_iter()
                    .collect();
            }
            "user.message" => {
                let mut blocks: Vec<Block> = data
                    .field("content")
                    .and_then(parts::text)
                    .into_iter()
                    .collect();
                let attachments = data.field("attachments").into_iter();
                blocks.extend(attachments.flat_map(View::elements).map(attachment));
                let mut message = Message::new(Role::User, blocks);
                let is_clients = data.string_field("source").is_some_and(|source| {
                    CLIENT_SOURCES.iter().any(|start| source.starts_with(start))
                });
                if is_clients {
                    message.author = Author::Client;
                }
                if !message.blocks.is_empty() {
                    messages.push(place.put(message));
                }
            }
            // A call that no answer has listed.
            "tool.execution_start" if is_new => {
                let call = parts::call(
                    parts::name(data, "toolCallId"),
                    parts::name(data, "toolName"),
                    data.field("arguments"),
                    Some(data.raw()),
                );
                messages.push(place.put(Message::new(Role::Assistant, vec![call])));
            }
            "tool.execution_complete" => {
                messages.push(place.put(Message::new(Role::Tool, vec![result(data)])));
            }
            "assistant.usage" => {
                let last = messages
                    .iter_mut()
                    .rev()
                    .find(|message| message.role == Role::Assistant);
                if let (Some(message), Some(usage)) = (last, usage(data)) {
                    message.usage = Some(usage);
                }
            }
            "session.compaction_complete"
                if data.field("success").and_then(View::as_bool) != Some(false) =>
            {
                conversation.compactions.push(CompactionMark {
                    before_message: messages.len(),
                    tokens_before: data.field("preCompactionTokens").and_then(View::as_u64),
                    trigger: None,
                });
                if let Some(summary) = data.field("summaryContent").and_then(parts::text) {
                    let mut message = Message::new(Role::User, vec![summary]);
                    message.author = Author::Compaction;
                    messages.push(place.put(message));
                }
            }
            "session.truncation" => conversation.compactions.push(CompactionMark {
                before_message: messages.len(),
                tokens_before: data
                    .field("preTruncationTokensInMessages")
                    .and_then(View::as_u64),
                trigger: Some("truncation".to_owned()),
            }),
            // Notices, permissions, hooks and whatever comes later.
            _ => {}
        }
    }

    fn answer(&mut self, data: View<'_>, agent: Option<&ByteString>, place: &Place) {
        let earlier = self.reasoning.take();
        let mut blocks: Vec<Block> = data
            .field("reasoningText")
            .and_then(parts::thinking)
            .or(earlier)
            .into_iter()
            .collect();
        blocks.extend(data.field("content").and_then(parts::text));
        let requests = data.field("toolRequests").into_iter();
        for request in requests.flat_map(View::elements) {
            let id = parts::name(request, "toolCallId");
            self.known_calls.insert(id.clone());
            let name = parts::name(request, "name");
            blocks.push(parts::call(
                id,
                name,
                request.field("arguments"),
                Some(request.raw()),
            ));
        }
        let model = parts::string(data, "model");
        let conversation = self.conversation(agent);
        if model.is_some() {
            conversation.model = model;
        }
        if blocks.is_empty() {
            return;
        }
        let mut message = Message::new(Role::Assistant, blocks);
        message.usage = usage(data);
        message.raw = Some(data.raw());
        conversation.messages.push(place.put(message));
    }

    fn head(&mut self, data: View<'_>) {
        if self.main.id.is_empty()
            && let Some(id) = parts::string(data, "sessionId")
        {
            self.main.id = id;
        }
        let context = data.field("context").unwrap_or(data);
        if let Some(folder) = parts::string(context, "cwd") {
            self.main.cwd = Some(folder);
        }
        if let Some(model) = parts::string(data, "selectedModel") {
            self.main.model = Some(model);
        }
    }

    /// Takes back the event and everything after it.
    fn rewind(&mut self, event: &ByteString) {
        let Some(count) = self.messages_before.get(event).copied() else {
            return;
        };
        let count = count.min(self.main.messages.len());
        self.rewound += self.main.messages.len() - count;
        self.main.messages.truncate(count);
        self.main
            .compactions
            .retain(|mark| mark.before_message <= count);
    }

    fn conversation(&mut self, agent: Option<&ByteString>) -> &mut Conversation {
        let Some(id) = agent else {
            return &mut self.main;
        };
        let index = *self.agent_index.entry(id.clone()).or_insert_with(|| {
            self.agents.push(Conversation {
                id: id.to_string(),
                ..Conversation::default()
            });
            self.agents.len() - 1
        });
        &mut self.agents[index]
    }

    fn into_conversations(self) -> Vec<Conversation> {
        let mut main = self.main;
        note_left_out(&mut main, self.rewound, "rewound");
        let parent = (!main.id.is_empty()).then(|| main.id.clone());
        let mut conversations = vec![main];
        for mut agent in self.agents {
            agent.parent_id.clone_from(&parent);
            if !agent.messages.is_empty() {
                conversations.push(agent);
            }
        }
        conversations
    }
}

fn attachment(value: View<'_>) -> Block {
    let name = ["path", "filePath", "displayName", "url"]
        .into_iter()
        .find_map(|key| value.field(key).and_then(View::to_bytestring));
    let media = Media {
        media_type: value.field("mimeType").and_then(View::to_bytestring),
        data_bytes: value
            .field("data")
            .and_then(View::as_text)
            .map(|data| anthropic_content::base64_bytes(data.encoded_len())),
        name,
    };
    Block {
        content: media.into_content(),
        raw: Some(value.raw()),
    }
}

fn result(data: View<'_>) -> Block {
    let is_error = data
        .field("success")
        .and_then(View::as_bool)
        .map(|success| !success);
    let content = data
        .field("result")
        .map(|result| result.field("content").unwrap_or(result))
        .and_then(parts::text);
    let error = data
        .field("error")
        .map(|error| error.field("message").unwrap_or(error))
        .and_then(parts::text);
    let content = content.into_iter().chain(error).collect();
    parts::result(parts::name(data, "toolCallId"), content, is_error)
}

fn usage(data: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(data, key);
    let cached = tokens("cacheReadTokens");
    parts::used(Usage {
        uncached: tokens("inputTokens").saturating_sub(cached),
        cache_write: tokens("cacheWriteTokens"),
        cache_write_long: 0,
        cache_read: cached,
        output: tokens("outputTokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    fn read_lines(lines: &[String]) -> Source {
        CopilotCli
            .read(&SourceText::from_text(lines.join("\n")))
            .unwrap()
    }

    fn event(id: &str, kind: &str, data: &str) -> String {
        format!(
            r#"{{"type":"{kind}","id":"{id}","parentId":null,"timestamp":"2026-02-01T10:00:00.000Z","data":{data}}}"#
        )
    }

    fn start() -> String {
        event(
            "e0",
            "session.start",
            r#"{"sessionId":"s1","version":1,"producer":"copilot-agent","copilotVersion":"1.0.67","context":{"cwd":"/w/quay"}}"#,
        )
    }

    #[test]
    fn answers_have_their_calls_and_results() {
        let source = read_lines(&[
            start(),
            event(
                "e1",
                "system.message",
                r#"{"content":"Be brief.","role":"system"}"#,
            ),
            event(
                "e2",
                "user.message",
                r#"{"content":"Count the ferries","transformedContent":"<now/> Count","attachments":[{"type":"file","path":"/w/a.md"}]}"#,
            ),
            event("e3", "assistant.turn_start", r#"{"turnId":"0"}"#),
            event(
                "e4",
                "assistant.message",
                r#"{"messageId":"m","content":"","reasoningText":"hm","outputTokens":9,"model":"gpt-5","toolRequests":[{"toolCallId":"c1","name":"bash","arguments":{"command":"ls"}}]}"#,
            ),
            event(
                "e5",
                "tool.execution_start",
                r#"{"toolCallId":"c1","toolName":"bash","arguments":{"command":"ls"}}"#,
            ),
            event(
                "e6",
                "tool.execution_complete",
                r#"{"toolCallId":"c1","success":true,"result":{"content":"two"}}"#,
            ),
            event(
                "e7",
                "tool.execution_start",
                r#"{"toolCallId":"c2","toolName":"view","arguments":{"path":"b"}}"#,
            ),
            event(
                "e8",
                "tool.execution_complete",
                r#"{"toolCallId":"c2","success":false,"error":{"message":"no such file"}}"#,
            ),
            event(
                "e9",
                "user.message",
                r#"{"content":"Rules of the skill","source":"skill-quay"}"#,
            ),
            event(
                "e10",
                "assistant.message",
                r#"{"content":"Two.","toolRequests":[]}"#,
            ),
        ]);
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "user: Count the ferries + document /w/a.md",
                "model: (hm) + call c1 bash",
                "tool: result c1 two",
                "model: call c2 view",
                "tool: failed c2 no such file",
                "client: Rules of the skill",
                "model: Two.",
            ]
        );
        assert_eq!(conversation.cwd.as_deref(), Some("/w/quay"));
        assert_eq!(conversation.model.as_deref(), Some("gpt-5"));
        assert_eq!(conversation.messages[1].usage.unwrap().output, 9);
        assert_eq!(conversation.messages[0].at_ms, Some(1_769_940_000_000));
        assert_eq!(conversation.system.len(), 1);
        assert_eq!(source.skipped, []);
    }

    #[test]
    fn sub_agents_compactions_and_rewinds() {
        let said =
            |id, text: &str| event(id, "user.message", &format!(r#"{{"content":"{text}"}}"#));
        let source = read_lines(&[
            start(),
            said("e1", "one"),
            event(
                "e2",
                "subagent.started",
                r#"{"toolCallId":"t","agentName":"scout"}"#,
            ),
            event(
                "e3",
                "assistant.message",
                r#"{"content":"I look.","parentToolCallId":"t"}"#,
            ),
            event(
                "e4",
                "session.compaction_complete",
                r#"{"success":true,"preCompactionTokens":900,"summaryContent":"so far"}"#,
            ),
            said("e5", "wrong"),
            event(
                "e6",
                "session.snapshot_rewind",
                r#"{"upToEventId":"e5","eventsRemoved":1}"#,
            ),
            said("e7", "two"),
        ]);
        let main = &source.conversations[0];
        assert_eq!(
            story(main),
            ["user: one", "compaction: so far", "user: two"]
        );
        assert_eq!(main.compactions[0].before_message, 1);
        assert_eq!(main.problems[0].code, "rolled-back");
        let agent = &source.conversations[1];
        assert_eq!(story(agent), ["model: I look."]);
        assert_eq!(
            (agent.parent_id.as_deref(), agent.title.as_deref()),
            (Some("s1"), Some("scout"))
        );
    }

    #[test]
    fn a_session_without_messages_has_none() {
        assert_eq!(read_lines(&[start()]).conversations[0].messages, []);
        assert!(
            CopilotCli
                .read(&SourceText::from_text("{\"type\":\"x\"}"))
                .is_err()
        );
    }
}
