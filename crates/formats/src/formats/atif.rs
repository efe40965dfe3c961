//! ATIF, the Agent Trajectory Interchange Format of Harbor: a JSON object with steps.
//!
//! A step of the agent has its message, its calls and what came of them in one.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::Raw;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Block, Content, Media, Message, Role};
use throughline_transcript::usage::Usage;

use crate::document::{Document, LineCounter};
use crate::formats::parts::{self, Answer};
use crate::formats::place::Place;
use crate::formats::{Format, Probe, anthropic_content, times};
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &[
    "arguments",
    "logprobs",
    "prompt_token_ids",
    "completion_token_ids",
];

/// How deep trajectories of sub-agents may be nested.
const DEPTH_MAX: usize = 8;

/// Trajectories in ATIF.
pub(super) struct Atif;

impl Format for Atif {
    fn name(&self) -> &'static str {
        "atif"
    }

    fn about(&self) -> &'static str {
        "ATIF trajectory of Harbor (JSON)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        if glance.any(&["schema_version"], |version| version.starts_with("ATIF")) {
            98
        } else if has(&["steps", "step_id"])
            && has(&["steps", "source"])
            && has(&["steps", "message"])
        {
            94
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let document = Document::read(source, OPAQUE, self.name(), |value| {
            value.field("step_id").is_some() || value.field("steps").is_some()
        })?;
        let root = document.root();
        let mut lines = LineCounter::default();
        let mut line_of = |view: View<'_>| lines.line(document.text(), view.offset());
        let mut conversations = Vec::new();
        let trajectories: Vec<View<'_>> = match root.is_array() {
            true => root.elements().collect(),
            false => vec![root],
        };
        for trajectory in trajectories {
            read_trajectory(trajectory, None, 0, &mut line_of, &mut conversations);
        }
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no trajectory with `steps`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: document.skipped,
        })
    }
}

fn read_trajectory(
    value: View<'_>,
    parent: Option<&str>,
    depth: usize,
    line_of: &mut impl FnMut(View<'_>) -> usize,
    conversations: &mut Vec<Conversation>,
) {
    let Some(steps) = value.field("steps").filter(|steps| steps.is_array()) else {
        return;
    };
    let agent = value.field("agent");
    let text = |key| agent.and_then(|agent: View<'_>| parts::string(agent, key));
    let id = parts::string(value, "session_id").or_else(|| parts::string(value, "trajectory_id"));
    let tools = agent.and_then(|agent| agent.field("tool_definitions"));
    let mut conversation = Conversation {
        id: id.unwrap_or_default(),
        parent_id: parent.map(str::to_owned),
        title: parent.and(text("name")),
        model: text("model_name"),
        tools: tools.filter(|tools| tools.is_array()).map(View::raw),
        ..Conversation::default()
    };
    for step in steps.elements() {
        let line = line_of(step);
        add(&mut conversation, step, line);
    }
    let own_id = conversation.id.clone();
    conversations.push(conversation);
    if depth < DEPTH_MAX {
        let inner = value.field("subagent_trajectories").into_iter();
        for trajectory in inner.flat_map(View::elements) {
            read_trajectory(trajectory, Some(&own_id), depth + 1, line_of, conversations);
        }
    }
}

fn add(conversation: &mut Conversation, step: View<'_>, line: usize) {
    let place = Place {
        line,
        at_ms: step.field("timestamp").and_then(times::from_number),
        id: Some(parts::name(step, "step_id")).filter(|id| !id.is_empty()),
    };
    let said = step.field("message").map(content).unwrap_or_default();
    let mut answer = Answer::default();
    match step.string_field("source").as_deref() {
        Some("agent") => {
            if let Some(model) = parts::string(step, "model_name") {
                conversation.model = Some(model);
            }
            let thoughts = step.field("reasoning_content").and_then(parts::thinking);
            answer.blocks.extend(thoughts);
            answer.blocks.extend(said);
            for call in step
                .field("tool_calls")
                .into_iter()
                .flat_map(View::elements)
            {
                let raw: Option<Raw> = Some(call.raw());
                let id = parts::name(call, "tool_call_id");
                let name = parts::name(call, "function_name");
                answer
                    .blocks
                    .push(parts::call(id, name, call.field("arguments"), raw));
            }
            answer.usage = step.field("metrics").and_then(usage);
        }
        Some("user") if !said.is_empty() => {
            let message = Message::new(Role::User, said);
            conversation.messages.push(place.put(message));
        }
        Some("system") if conversation.messages.is_empty() && conversation.system.is_empty() => {
            conversation.system = said;
        }
        Some("system") if !said.is_empty() => {
            let message = Message::new(Role::System, said);
            conversation.messages.push(place.put(message));
        }
        _ => {}
    }
    let results = step
        .field("observation")
        .and_then(|observation| observation.field("results"));
    for (index, result) in results.into_iter().flat_map(View::elements).enumerate() {
        let id = parts::name(result, "source_call_id");
        // A result that does not say whose it is belongs to the call at its place.
        let id = if id.is_empty() {
            call_id(&answer.blocks, index)
        } else {
            id
        };
        let content = result.field("content").map(content).unwrap_or_default();
        answer.results.push(parts::result(id, content, None));
    }
    answer.put(&mut conversation.messages, &place);
}

fn call_id(blocks: &[Block], index: usize) -> bytestring::ByteString {
    let mut calls = blocks.iter().filter_map(|block| match &block.content {
        Content::ToolCall(call) => Some(call.id.clone()),
        _ => None,
    });
    calls.nth(index).unwrap_or_default()
}

/// A text, or parts of text and pictures.
fn content(value: View<'_>) -> Vec<Block> {
    if !value.is_array() {
        return parts::text(value).into_iter().collect();
    }
    value
        .elements()
        .filter_map(|part| match part.string_field("type").as_deref() {
            Some("image") => {
                let source = part.field("source")?;
                let media = Media {
                    media_type: source.field("media_type").and_then(View::to_bytestring),
                    data_bytes: None,
                    name: source.field("path").and_then(View::to_bytestring),
                };
                Some(Block {
                    content: Content::Image(media),
                    raw: Some(part.raw()),
                })
            }
            _ => part.field("text").and_then(parts::text),
        })
        .collect()
}

fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    let cached = tokens("cached_tokens");
    parts::used(Usage {
        uncached: tokens("prompt_tokens").saturating_sub(cached),
        cache_write: 0,
        cache_write_long: 0,
        cache_read: cached,
        output: tokens("completion_tokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    #[test]
    fn steps_become_messages() {
        let text = r#"{"schema_version":"ATIF-v1.7","session_id":"s1","agent":{"name":"gull","version":"1","model_name":"m-1"},"steps":[
{"step_id":1,"source":"system","message":"Be brief."},
{"step_id":2,"timestamp":"2026-01-01T00:00:01Z","source":"user","message":"Count the gulls."},
{"step_id":3,"source":"agent","message":"I look.","reasoning_content":"hm","tool_calls":[{"tool_call_id":"c1","function_name":"bash","arguments":{"command":"ls"}},{"tool_call_id":"c2","function_name":"look","arguments":{}}],"observation":{"results":[{"source_call_id":"c1","content":"nine"},{"content":[{"type":"image","source":{"media_type":"image/png","path":"g.png"}}]}]},"metrics":{"prompt_tokens":10,"completion_tokens":3,"cached_tokens":4}},
{"step_id":4,"source":"agent","message":"Nine."}],
"subagent_trajectories":[{"trajectory_id":"s2","agent":{"name":"chick","version":"1"},"steps":[{"step_id":1,"source":"user","message":"Look."}]}]}"#;
        let source = Atif.read(&SourceText::from_text(text)).unwrap();
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "user: Count the gulls.",
                "model: (hm) + I look. + call c1 bash + call c2 look",
                "tool: result c1 nine + result c2 image g.png",
                "model: Nine.",
            ]
        );
        assert_eq!(conversation.system.len(), 1);
        assert_eq!(conversation.model.as_deref(), Some("m-1"));
        let usage = conversation.messages[1].usage.unwrap();
        assert_eq!((usage.prompt(), usage.cache_read, usage.output), (10, 4, 3));
        assert_eq!(conversation.messages[1].position.line, 4);
        let agent = &source.conversations[1];
        assert_eq!(
            (agent.parent_id.as_deref(), agent.title.as_deref()),
            (Some("s1"), Some("chick"))
        );
        assert!(Atif.read(&SourceText::from_text("{}")).is_err());
    }
}
