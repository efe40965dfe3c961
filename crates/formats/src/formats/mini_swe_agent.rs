//! Trajectories of mini-swe-agent: a bare list of chat messages, or an object with that list and run information.
//!
//! The agent acts by one fenced shell command in its answer, newer versions by tool calls. A command in the text is
//! given as a call of the tool `bash`, and the user message with its output as the result. Those calls have no id in
//! the source; they get `action-1`, `action-2`, ...

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{self, Kind, Raw};
use throughline_transcript::message::{
    Author, Block, Content, Message, Role, ToolCall, ToolInput, ToolResult,
};
use throughline_transcript::usage::Usage;

use crate::document::{Document, has_any};
use crate::formats::chat_message;
use crate::formats::times;
use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct MiniSweAgent;

impl Format for MiniSweAgent {
    fn name(&self) -> &'static str {
        "mini-swe-agent"
    }

    fn about(&self) -> &'static str {
        "mini-swe-agent trajectories (.traj.json)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let names_itself = glance.any(&["trajectory_format"], |value| {
            value.starts_with("mini-swe-agent")
        }) || glance.has_path(&["info", "mini_version"]);
        if names_itself {
            return 98;
        }
        let has_messages = glance.has("role") || glance.has_path(&["messages", "role"]);
        let head = probe.head();
        let has_actions = head.contains("```mswea_bash_command") || head.contains("<returncode>");
        if has_messages && has_actions { 92 } else { 0 }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        // Beside messages with a role there are items of the Responses API.
        let is_element = has_any(&["role", "call_id", "object"]);
        let whole = Document::read(source, &[], self.name(), is_element)?;
        let list = whole.elements().or_else(|| whole.array("messages"));
        let Some(list) = list else {
            return Err(self.refusal("neither a list nor an object with `messages`"));
        };
        let messages = read_messages(&list);
        if messages.is_empty() {
            return Err(self.refusal("no message in it"));
        }
        let mut conversation = Conversation {
            id: whole
                .field("instance_id")
                .as_ref()
                .map(chat_message::string)
                .unwrap_or_default()
                .to_string(),
            messages,
            ..Conversation::default()
        };
        if let Some(configuration) = whole.field("info").and_then(|info| info.field("config")) {
            let [model, environment] = configuration.fields(["model", "environment"]);
            conversation.model = model.and_then(|model| model.string_field("model_name"));
            conversation.cwd = environment.and_then(|place| place.string_field("cwd"));
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped: whole.skipped,
        })
    }
}

impl MiniSweAgent {
    fn refusal(&self, reason: &str) -> ReadError {
        ReadError::NotThatFormat {
            format: self.name(),
            reason: reason.to_owned(),
        }
    }
}

fn read_messages(list: &[Raw]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // The call whose output the next message is.
    let mut open: Option<ByteString> = None;
    let mut actions = 0usize;
    let mut has_task = false;
    for raw in list {
        if let Some(result) = response_item(raw) {
            messages.extend(result);
            continue;
        }
        let Some(mut message) = chat_message::message(raw) else {
            continue; // `exit` and other marks of the run
        };
        if let Some(extra) = raw.field("extra") {
            let [timestamp, response] = extra.fields(["timestamp", "response"]);
            message.at_ms = timestamp.as_ref().and_then(times::from_seconds);
            message.usage = response.and_then(|response| usage(&response));
        }
        match message.role {
            Role::Assistant if message.tool_calls().next().is_none() => {
                open = split_action(&mut message, &mut actions);
            }
            Role::User => {
                if let Some(call_id) = open.take() {
                    into_result(&mut message, call_id);
                } else if has_task {
                    // What the harness answers to an answer without a command.
                    message.author = Author::Client;
                }
                has_task = true;
            }
            _ => {}
        }
        messages.push(message);
    }
    chat_message::without_empty(messages)
}

/// Entries of the Responses API, which newer versions write as they are.
fn response_item(raw: &Raw) -> Option<Vec<Message>> {
    let [kind, object, output, call_id] = raw.fields(["type", "object", "output", "call_id"]);
    let named = |raw: Option<Raw>, name: &str| {
        raw.and_then(|raw| raw.as_text())
            .is_some_and(|text| text.decode() == name)
    };
    if named(object, "response") {
        let mut message = Message::new(Role::Assistant, Vec::new());
        for item in output?.array() {
            let [kind, content] = item.fields(["type", "content"]);
            if named(kind, "function_call") {
                message.blocks.extend(chat_message::tool_call(&item));
            } else if let Some(content) = content {
                message
                    .blocks
                    .extend(chat_message::content_blocks(&content));
            }
        }
        message.raw = Some(raw.clone());
        return Some(vec![message]);
    }
    if named(kind, "function_call_output") {
        let block = Block {
            content: Content::ToolResult(ToolResult {
                call_id: call_id
                    .as_ref()
                    .map(chat_message::string)
                    .unwrap_or_default(),
                content: output
                    .as_ref()
                    .map(chat_message::content_blocks)
                    .unwrap_or_default(),
                is_error: None,
                is_server_side: false,
            }),
            raw: Some(raw.clone()),
        };
        return Some(vec![Message::new(Role::Tool, vec![block])]);
    }
    None
}

/// Splits the command off an answer and returns the id of the call that it became.
fn split_action(message: &mut Message, actions: &mut usize) -> Option<ByteString> {
    let place = message
        .blocks
        .iter()
        .rposition(|block| matches!(block.content, Content::Text(_)))?;
    let Content::Text(text) = &message.blocks[place].content else {
        return None;
    };
    let text = text.decode().into_owned();
    let (start, command, end) = fenced_command(&text)?;
    *actions += 1;
    let id = ByteString::from(format!("action-{actions}"));
    let mut input = String::from("{\"command\":");
    json::write_string(command, &mut input);
    input.push('}');
    let mut blocks = Vec::new();
    for part in [text[..start].trim(), text[end..].trim()] {
        if !part.is_empty() {
            blocks.push(Block::text(part));
        }
    }
    blocks.push(Block::new(Content::ToolCall(ToolCall {
        id: id.clone(),
        name: "bash".into(),
        input: Raw::parse(input).ok().map(ToolInput::Json)?,
        is_server_side: false,
    })));
    message.blocks.splice(place..=place, blocks);
    Some(id)
}

/// The one fenced command of an answer: where the fence begins, the command, where the fence ends.
fn fenced_command(text: &str) -> Option<(usize, &str, usize)> {
    ["```mswea_bash_command\n", "```bash\n"]
        .into_iter()
        .find_map(|opening| {
            let start = text.find(opening)?;
            let inside = start + opening.len();
            let length = text[inside..].find("\n```")?;
            Some((start, &text[inside..inside + length], inside + length + 4))
        })
}

fn into_result(message: &mut Message, call_id: ByteString) {
    let content = std::mem::take(&mut message.blocks);
    let is_error = content.iter().find_map(|block| match &block.content {
        Content::Text(text) => {
            let text = text.decode();
            let (code, _) = text
                .strip_prefix("<returncode>")?
                .split_once("</returncode>")?;
            Some(code.trim() != "0")
        }
        _ => None,
    });
    message.blocks = vec![Block::new(Content::ToolResult(ToolResult {
        call_id,
        content,
        is_error,
        is_server_side: false,
    }))];
}

fn usage(response: &Raw) -> Option<Usage> {
    let usage = response
        .field("usage")
        .filter(|usage| usage.kind() == Kind::Object)?;
    let [input, output, details] = usage.fields([
        "prompt_tokens",
        "completion_tokens",
        "prompt_tokens_details",
    ]);
    let cached = details
        .and_then(|details| details.field("cached_tokens"))
        .and_then(|count| count.as_u64())
        .unwrap_or(0);
    Some(Usage {
        uncached: input?.as_u64()?.saturating_sub(cached),
        cache_read: cached,
        output: output?.as_u64()?,
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chat_message::outline;

    fn read(text: &str) -> Conversation {
        let source = SourceText {
            text: text.into(),
            skipped: Vec::new(),
        };
        MiniSweAgent.read(&source).unwrap().conversations.remove(0)
    }

    #[test]
    fn commands_in_text_become_calls_and_outputs_results() {
        let found = read(
            r#"[{"role":"system","content":"One command."},{"role":"user","content":"Fix it"},
            {"role":"assistant","content":"THOUGHT: look\n\n```mswea_bash_command\nls -a\n```"},
            {"role":"user","content":"<returncode>2</returncode>\n<output>\nno\n</output>"},
            {"role":"assistant","content":"I forgot the command"},
            {"role":"user","content":"Please give one command."}]"#,
        );
        insta::assert_snapshot!(outline(&found.messages), @r#"
        System: "One command."
        User: "Fix it"
        Assistant: "THOUGHT: look" call[action-1 bash {"command":"ls -a"}]
        User: result[action-1! "<returncode>2</returncode>\n<output>\nno\n</output>"]
        Assistant: "I forgot the command"
        User(client): "Please give one command."
        "#);
        assert_eq!(found.messages.iter().filter(|m| m.begins_turn()).count(), 1);
    }

    #[test]
    fn an_object_gives_model_folder_and_usage() {
        let found = read(
            r#"{"trajectory_format":"mini-swe-agent-1","instance_id":"i","info":{"config":{"model":{"model_name":"m"},"environment":{"cwd":"/w"}}},"messages":[
            {"role":"user","content":"Go"},
            {"role":"assistant","content":"ok","tool_calls":[{"id":"t","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}],"extra":{"timestamp":1.5,"response":{"usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}}},
            {"role":"tool","tool_call_id":"t","content":"a"},{"role":"exit","content":""}]}"#,
        );
        assert_eq!(
            (found.model.as_deref(), found.cwd.as_deref()),
            (Some("m"), Some("/w"))
        );
        let usage = found.messages[1].usage.unwrap();
        assert_eq!((usage.uncached, usage.cache_read, usage.output), (6, 4, 3));
        assert_eq!(found.messages[1].at_ms, Some(1500));
        assert_eq!(found.messages.len(), 3);
    }

    #[test]
    fn entries_of_the_responses_api_are_read() {
        let found = read(
            r#"{"info":{"mini_version":"2"},"messages":[{"role":"user","content":"Go"},
            {"object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"on it"}]},{"type":"function_call","call_id":"k","id":"fc","name":"bash","arguments":"{}"}]},
            {"type":"function_call_output","call_id":"k","output":"fine"}]}"#,
        );
        insta::assert_snapshot!(outline(&found.messages), @r#"
        User: "Go"
        Assistant: "on it" call[k bash {}]
        Tool: result[k "fine"]
        "#);
    }
}
