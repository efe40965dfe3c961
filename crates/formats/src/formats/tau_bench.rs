//! Trajectories of tau-bench and tau2-bench: service dialogues between a simulated customer and an agent with tools.
//!
//! A results file holds one conversation for each task and trial. The few-shot files hold conversations that were
//! already flattened to text (`messages_display`); those have lost the tool calls and keep only their results.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Kind, Raw, Text};
use throughline_transcript::message::{Block, Content, Message, Role, ToolResult};
use throughline_transcript::usage::Usage;

use crate::document::{Document, has_any};
use crate::formats::chat_message::{self, string};
use crate::formats::rows::{Rows, rows};
use crate::formats::times;
use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct TauBench;

impl Format for TauBench {
    fn name(&self) -> &'static str {
        "tau-bench"
    }

    fn about(&self) -> &'static str {
        "tau-bench and tau2-bench result files (JSON or JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has_results = glance.has("task_id") && (glance.has("traj") || glance.has("reward"));
        let has_simulations = glance.has_path(&["simulations", "task_id"])
            || (glance.has("tasks") && glance.has_path(&["info", "user_info"]));
        if has_results || has_simulations {
            96
        } else if glance.has("messages_display") {
            90
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        results(source).into_source(
            self.name(),
            "`traj`, `messages` or `messages_display`",
            conversation,
        )
    }
}

/// Where a result has its messages.
const KEYS: &[&str] = &["traj", "messages", "messages_display"];

/// The conversations of a file: rows of their own, or the `simulations` of one object.
fn results(source: &SourceText) -> Rows {
    if source.text.trim_start().starts_with('{')
        && let Ok(whole) = Document::read(source, &[], "", has_any(KEYS))
        && let Some(simulations) = whole.array("simulations")
    {
        return Rows {
            rows: simulations.into_iter().map(|row| (0, row)).collect(),
            skipped: whole.skipped,
        };
    }
    rows(source, KEYS)
}

fn conversation(row: &Raw, line: usize) -> Option<Conversation> {
    let [task, trial, trajectory, messages, display] =
        row.fields(["task_id", "trial", "traj", "messages", "messages_display"]);
    let messages = match (trajectory.or(messages), display) {
        (Some(list), _) if list.kind() == Kind::Array => list
            .array()
            .flat_map(|raw| read_messages(&raw, line))
            .collect(),
        (_, Some(display)) => displayed(&display.as_text()?, line),
        _ => return None,
    };
    let mut id = task.as_ref().map(string).unwrap_or_default().to_string();
    if let Some(trial) = trial.filter(|_| !id.is_empty()) {
        id = format!("task-{id}-trial-{}", string(&trial));
    }
    Some(Conversation {
        id,
        messages: chat_message::without_empty(messages),
        ..Conversation::default()
    })
}

/// One entry of a trajectory; tau2-bench bundles parallel results into one entry.
fn read_messages(raw: &Raw, line: usize) -> Vec<Message> {
    let (message, [id, error, timestamp, usage, bundle]) =
        chat_message::message_with(raw, ["id", "error", "timestamp", "usage", "tool_messages"]);
    if let Some(bundle) = bundle {
        return bundle
            .array()
            .filter(|raw| raw.field("tool_messages").is_none())
            .flat_map(|raw| read_messages(&raw, line))
            .collect();
    }
    let Some(mut message) = message else {
        return Vec::new();
    };
    message.position.line = line;
    message.at_ms = timestamp.as_ref().and_then(times::from_seconds);
    if message.role == Role::Tool
        && let [block] = message.blocks.as_mut_slice()
        && let Content::ToolResult(result) = &mut block.content
    {
        // tau2-bench names the call in `id` and failure in `error`.
        if result.call_id.is_empty() {
            result.call_id = id.as_ref().map(string).unwrap_or_default();
        }
        result.is_error = error.and_then(|raw| raw.as_bool());
    }
    if message.role == Role::Assistant {
        message.usage = usage.and_then(|usage| {
            let [input, output] = usage.fields(["prompt_tokens", "completion_tokens"]);
            Some(Usage {
                uncached: input?.as_u64()?,
                output: output?.as_u64()?,
                ..Usage::default()
            })
        });
    }
    vec![message]
}

/// Splits a flattened conversation at the lines that begin with a role.
fn displayed(text: &Text, line: usize) -> Vec<Message> {
    let decoded = text.decode();
    let mut pieces: Vec<(Role, String)> = Vec::new();
    for entry in decoded.split('\n') {
        let mark = entry.split_once(": ").and_then(|(name, rest)| {
            let is_role = matches!(name, "system" | "user" | "assistant" | "tool");
            is_role
                .then(|| chat_message::role(name))
                .flatten()
                .zip(Some(rest))
        });
        match (mark, pieces.last_mut()) {
            (Some((role, rest)), _) => pieces.push((role, rest.to_owned())),
            (None, Some((_, text))) => {
                text.push('\n');
                text.push_str(entry);
            }
            (None, None) => {}
        }
    }
    pieces
        .into_iter()
        // Python's `None`: the message had nothing but the calls that the flattening lost.
        .filter(|(role, text)| *role != Role::Assistant || text != "None")
        .map(|(role, text)| {
            let block = Block::text(text);
            let block = match role {
                Role::Tool => Block::new(Content::ToolResult(ToolResult {
                    call_id: "".into(),
                    content: vec![block],
                    is_error: None,
                    is_server_side: false,
                })),
                _ => block,
            };
            let mut message = Message::new(role, vec![block]);
            message.position.line = line;
            message
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chat_message::outline;

    fn read(text: &str) -> Source {
        TauBench
            .read(&SourceText {
                text: text.into(),
                skipped: Vec::new(),
            })
            .unwrap()
    }

    const RESULTS: &str = r#"[{"task_id": 4, "reward": 1.0, "info": {}, "traj": [
        {"role": "system", "content": "Follow the policy."},
        {"role": "user", "content": "Cancel my order"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "cancel", "arguments": "{\"order\": 7}"}}]},
        {"role": "tool", "tool_call_id": "c1", "name": "cancel", "content": "done"}], "trial": 2},
        {"task_id": 5, "reward": 0.0, "traj": [{"role": "user", "content": "hi"}], "trial": 2}]"#;

    #[test]
    fn every_trial_is_a_conversation() {
        let source = read(RESULTS);
        let ids: Vec<_> = source.conversations.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["task-4-trial-2", "task-5-trial-2"]);
        insta::assert_snapshot!(outline(&source.conversations[0].messages), @r#"
        System: "Follow the policy."
        User: "Cancel my order"
        Assistant: call[c1 cancel {"order": 7}]
        Tool: result[c1 "done"]
        "#);
    }

    #[test]
    fn a_torn_file_is_read_up_to_the_damage() {
        let source = read(&RESULTS[..RESULTS.len() - 12]);
        let counts = source
            .conversations
            .iter()
            .map(|found| found.messages.len());
        assert_eq!(counts.collect::<Vec<_>>(), [4, 1]);
        assert_eq!(source.skipped.len(), 1);
    }

    #[test]
    fn simulations_of_the_second_version_are_read() {
        let source = read(
            r#"{"info": {}, "tasks": [], "simulations": [{"id": "s", "task_id": "0", "trial": 0, "messages": [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "f", "arguments": {"x": 1}}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}, "timestamp": "1970-01-01T00:00:01"},
            {"role": "tool", "id": "a", "content": "no", "error": true, "requestor": "assistant"},
            {"role": "tool", "tool_messages": [{"role": "tool", "id": "b", "content": "x"}, {"role": "tool", "id": "c", "content": "y"}]}]}]}"#,
        );
        let messages = &source.conversations[0].messages;
        insta::assert_snapshot!(outline(messages), @r#"
        Assistant: call[a f {"x": 1}]
        Tool: result[a! "no"]
        Tool: result[b "x"]
        Tool: result[c "y"]
        "#);
        assert_eq!(messages[0].usage.unwrap().prompt(), 9);
        assert_eq!(messages[0].at_ms, Some(1000));
    }

    #[test]
    fn flattened_conversations_are_split_at_roles() {
        let source = read(
            "{\"messages_display\": \"user: Hi\\nthere: friend\\nassistant: None\\ntool: ok\\nassistant: Done\"}\n\n{\"messages_display\": \"user: x\"}\n",
        );
        assert_eq!(source.conversations.len(), 2);
        assert_eq!(source.conversations[1].messages[0].position.line, 3);
        insta::assert_snapshot!(outline(&source.conversations[0].messages), @r#"
        User: "Hi\nthere: friend"
        Tool: result[ "ok"]
        Assistant: "Done"
        "#);
    }
}
