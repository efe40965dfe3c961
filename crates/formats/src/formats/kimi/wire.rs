//! The events of `wire.jsonl`.

use std::collections::HashMap;

use bytestring::ByteString;
use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::Text;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Message, Role, ToolInput};
use throughline_transcript::usage::Usage;

use super::{call, content, part};
use crate::formats::place::Place;
use crate::formats::{anthropic_content, parts, times};

/// How deep sub-agents may be nested to be told apart.
const AGENT_DEPTH_MAX: usize = 8;

/// Whether a record is an event, or the head of the file.
pub(super) fn is_record(record: View<'_>) -> bool {
    let is_head = record.string_field("type").as_deref() == Some("metadata")
        && record.field("protocol_version").is_some();
    let is_event = record.field("timestamp").is_some()
        && record.field("message").is_some_and(|message| {
            message.field("type").is_some() && message.field("payload").is_some()
        });
    is_head || is_event
}

#[derive(Default)]
pub(super) struct Events {
    main: Agent,
    agents: Vec<Agent>,
    agent_index: HashMap<ByteString, usize>,
}

#[derive(Default)]
struct Agent {
    conversation: Conversation,
    /// The answer that is being written.
    blocks: Vec<Block>,
    place: Place,
    usage: Option<Usage>,
    /// What has come so far of the arguments of the last call.
    arguments: Option<String>,
}

impl Events {
    pub(super) fn add(&mut self, record: View<'_>, line: usize) -> bool {
        if !is_record(record) {
            return false;
        }
        let Some(event) = record.field("message") else {
            return true;
        };
        let place = Place {
            line,
            at_ms: record.field("timestamp").and_then(times::from_number),
            id: None,
        };
        let mut event = event;
        let mut agent = None;
        for _ in 0..AGENT_DEPTH_MAX {
            let (Some("SubagentEvent"), Some(payload)) = (
                event.string_field("type").as_deref(),
                event.field("payload"),
            ) else {
                break;
            };
            let id = ["agent_id", "parent_tool_call_id", "task_tool_call_id"]
                .into_iter()
                .find_map(|key| payload.field(key).and_then(View::to_bytestring));
            agent = id.or(agent);
            match payload.field("event") {
                Some(inner) => event = inner,
                None => return true,
            }
        }
        let (Some(kind), Some(payload)) = (event.string_field("type"), event.field("payload"))
        else {
            return true;
        };
        self.agent(agent).event(&kind, payload, &place);
        true
    }

    fn agent(&mut self, id: Option<ByteString>) -> &mut Agent {
        let Some(id) = id else {
            return &mut self.main;
        };
        let index = *self.agent_index.entry(id.clone()).or_insert_with(|| {
            let mut agent = Agent::default();
            agent.conversation.id = id.to_string();
            self.agents.push(agent);
            self.agents.len() - 1
        });
        &mut self.agents[index]
    }

    /// The main agent first; none if there was no event of it.
    pub(super) fn into_conversations(self) -> Vec<Conversation> {
        std::iter::once(self.main)
            .chain(self.agents)
            .map(Agent::finish)
            .filter(|conversation| !conversation.messages.is_empty())
            .collect()
    }
}

impl Agent {
    fn event(&mut self, kind: &str, payload: View<'_>, place: &Place) {
        match kind {
            "ContentPart" | "ToolCall" => {
                if self.blocks.is_empty() {
                    self.place = place.clone();
                }
                self.end_arguments();
                if kind == "ToolCall" {
                    self.blocks.push(call(payload));
                    let arguments = payload
                        .field("function")
                        .and_then(|function| function.string_field("arguments"));
                    self.arguments = Some(arguments.unwrap_or_default().into_owned());
                } else {
                    self.blocks.extend(part(payload));
                }
            }
            "ToolCallPart" => {
                if let (Some(arguments), Some(more)) =
                    (&mut self.arguments, payload.string_field("arguments_part"))
                {
                    arguments.push_str(&more);
                }
            }
            "StatusUpdate" => {
                self.usage = payload.field("token_usage").and_then(usage).or(self.usage)
            }
            "TurnBegin" | "SteerInput" => {
                self.flush();
                let blocks = content(payload.field("user_input"));
                self.say(Role::User, Author::Role, blocks, place);
            }
            "ToolResult" => {
                self.flush();
                let value = payload
                    .field("return_value")
                    .or_else(|| payload.field("result"));
                let field = |key| value.and_then(|value: View<'_>| value.field(key));
                let mut blocks = content(field("output"));
                blocks.extend(field("message").and_then(parts::text));
                let is_error = field("is_error").and_then(View::as_bool);
                let result = parts::result(parts::name(payload, "tool_call_id"), blocks, is_error);
                self.say(Role::Tool, Author::Role, vec![result], place);
            }
            // The person says why a call is refused.
            "ApprovalResponse" => {
                if let Some(feedback) = payload.field("feedback").and_then(parts::text) {
                    self.flush();
                    self.say(Role::User, Author::Role, vec![feedback], place);
                }
            }
            "CompactionBegin" => {
                self.flush();
                self.conversation.compactions.push(CompactionMark {
                    before_message: self.conversation.messages.len(),
                    tokens_before: None,
                    trigger: None,
                });
            }
            "StepBegin" | "StepInterrupted" | "TurnEnd" => self.flush(),
            // Notices, side questions and whatever comes later.
            _ => {}
        }
    }

    fn say(&mut self, role: Role, author: Author, blocks: Vec<Block>, place: &Place) {
        if !blocks.is_empty() {
            let mut message = Message::new(role, blocks);
            message.author = author;
            self.conversation.messages.push(place.put(message));
        }
    }

    /// Arguments that came in several parts.
    fn end_arguments(&mut self) {
        if let (Some(arguments), Some(block)) = (self.arguments.take(), self.blocks.last_mut())
            && let Content::ToolCall(call) = &mut block.content
        {
            call.input = ToolInput::from_encoded(&Text::plain(arguments));
        }
    }

    fn flush(&mut self) {
        self.end_arguments();
        if self.blocks.is_empty() {
            return;
        }
        let mut message = Message::new(Role::Assistant, std::mem::take(&mut self.blocks));
        message.usage = self.usage.take();
        self.conversation.messages.push(self.place.put(message));
    }

    fn finish(mut self) -> Conversation {
        self.flush();
        self.conversation
    }
}

fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    parts::used(Usage {
        uncached: tokens("input_other"),
        cache_write: tokens("input_cache_creation"),
        cache_write_long: 0,
        cache_read: tokens("input_cache_read"),
        output: tokens("output"),
    })
}

#[cfg(test)]
mod tests {
    use crate::formats::Format;
    use crate::formats::kimi::Kimi;
    use crate::formats::testing::story;
    use crate::source::SourceText;

    fn event(kind: &str, payload: &str) -> String {
        format!(r#"{{"timestamp":1767225600.5,"message":{{"type":"{kind}","payload":{payload}}}}}"#)
    }

    #[test]
    fn events_become_messages() {
        let lines = [
            r#"{"type":"metadata","protocol_version":"1.3"}"#.to_owned(),
            event("TurnBegin", r#"{"user_input":"Paint the buoy."}"#),
            event("StepBegin", r#"{"n":1}"#),
            event(
                "ContentPart",
                r#"{"type":"think","think":"red","encrypted":null}"#,
            ),
            event("ContentPart", r#"{"type":"text","text":"I paint."}"#),
            event(
                "ToolCall",
                r#"{"type":"function","id":"t1","function":{"name":"WriteFile","arguments":"{\"path\""},"extras":null}"#,
            ),
            event("ToolCallPart", r#"{"arguments_part":":\"b\"}"}"#),
            event(
                "StatusUpdate",
                r#"{"token_usage":{"input_other":3,"output":4,"input_cache_read":5,"input_cache_creation":0}}"#,
            ),
            event(
                "ApprovalRequest",
                r#"{"id":"a","tool_call_id":"t1","sender":"WriteFile","action":"edit","description":"x"}"#,
            ),
            event(
                "ApprovalResponse",
                r#"{"request_id":"a","response":"reject","feedback":"Green, not red."}"#,
            ),
            event(
                "ToolResult",
                r#"{"tool_call_id":"t1","return_value":{"is_error":true,"output":"","message":"rejected","display":[]}}"#,
            ),
            event(
                "SubagentEvent",
                r#"{"parent_tool_call_id":"t9","event":{"type":"ContentPart","payload":{"type":"text","text":"I look."}}}"#,
            ),
            event("TurnEnd", "{}"),
        ];
        let source = Kimi.read(&SourceText::from_text(lines.join("\n"))).unwrap();
        assert_eq!(
            story(&source.conversations[0]),
            [
                "user: Paint the buoy.",
                "model: (red) + I paint. + call t1 WriteFile",
                "user: Green, not red.",
                "tool: failed t1 rejected",
            ]
        );
        let answer = &source.conversations[0].messages[1];
        assert_eq!(answer.usage.unwrap().prompt(), 8);
        assert_eq!(answer.at_ms, Some(1_767_225_600_500));
        let input = &answer.tool_calls().next().unwrap().input;
        assert!(
            format!("{input:?}").contains(r#"{"path":"b"}"#),
            "{input:?}"
        );
        assert_eq!(story(&source.conversations[1]), ["model: I look."]);
        assert_eq!(source.skipped, []);
    }
}
