//! Trajectories of SWE-agent: `history` is what the model saw, `trajectory` the steps with their observations.
//!
//! The history is read where there is one. Configurations without function calling act by text: their `action` is
//! given as a call of the tool `bash` and the next user message as its result. Those calls have no id in the source;
//! they get `action-1`, `action-2`, ... Demonstrations are the client's.

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{self, Kind, Raw, Text};
use throughline_transcript::message::{
    Author, Block, Content, Message, Role, ToolCall, ToolInput, ToolResult,
};

use crate::document::{Document, has_any};
use crate::formats::chat_message;
use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct SweAgent;

impl Format for SweAgent {
    fn name(&self) -> &'static str {
        "swe-agent"
    }

    fn about(&self) -> &'static str {
        "SWE-agent trajectories (.traj)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has_steps = glance.has_path(&["trajectory", "action"])
            && glance.has_path(&["trajectory", "observation"]);
        let has_history = glance.has_path(&["history", "role"])
            && (glance.has_path(&["history", "agent"])
                || glance.has_path(&["history", "message_type"]));
        // The settings of a replay can be longer than what is looked at.
        let has_settings = glance.has("replay_config") && glance.has("environment");
        if has_steps || has_history {
            97
        } else if has_settings {
            70
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let refusal = |reason: &str| ReadError::NotThatFormat {
            format: self.name(),
            reason: reason.to_owned(),
        };
        let is_element = has_any(&["role", "observation"]);
        let whole = Document::read(source, &[], self.name(), is_element)?;
        if !whole.root().is_object() {
            return Err(refusal("not a JSON object"));
        }
        let steps = whole.array("trajectory").unwrap_or_default();
        let mut reader = Reader::default();
        match whole.array("history").filter(|list| !list.is_empty()) {
            Some(history) => {
                for entry in &history {
                    reader.entry(entry);
                }
                if let Some(last) = steps.last() {
                    reader.last_observation(last);
                }
            }
            None => reader.steps(&steps),
        }
        let messages = chat_message::without_empty(reader.messages);
        if messages.is_empty() {
            return Err(refusal("neither `history` nor `trajectory` has a message"));
        }
        let conversation = Conversation {
            model: whole
                .field("replay_config")
                .as_ref()
                .and_then(configured_model),
            cwd: steps.iter().rev().find_map(working_dir),
            messages,
            ..Conversation::default()
        };
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped: whole.skipped,
        })
    }
}

#[derive(Default)]
struct Reader {
    messages: Vec<Message>,
    /// The calls whose output has not come yet.
    open: Option<ByteString>,
    actions: usize,
    has_task: bool,
}

impl Reader {
    /// One entry of `history`.
    fn entry(&mut self, entry: &Raw) {
        let (message, [thought, action, is_demo, kind, call_ids]) = chat_message::message_with(
            entry,
            [
                "thought",
                "action",
                "is_demo",
                "message_type",
                "tool_call_ids",
            ],
        );
        let Some(mut message) = message else {
            return;
        };
        let is_demo = is_demo.and_then(|raw| raw.as_bool()).unwrap_or(false)
            || kind.is_some_and(|raw| chat_message::string(&raw) == "demonstration");
        match message.role {
            Role::Assistant => {
                let action = action.and_then(|raw| raw.as_text());
                if let Some(call) = message.tool_calls().next() {
                    self.open = Some(call.id.clone());
                } else {
                    self.open = action
                        .filter(|action| !action.is_blank())
                        .map(|action| self.act(&mut message, thought.as_ref(), &action));
                }
            }
            Role::Tool => {
                self.open = None;
                let ids = call_ids.into_iter().flat_map(|ids| ids.array().next());
                for (block, id) in message.blocks.iter_mut().zip(ids) {
                    if let Content::ToolResult(result) = &mut block.content
                        && result.call_id.is_empty()
                    {
                        result.call_id = chat_message::string(&id);
                    }
                }
            }
            Role::User => {
                if let Some(call_id) = self.open.take() {
                    let content = std::mem::take(&mut message.blocks);
                    message.blocks = vec![result(call_id, content)];
                } else if is_demo || self.has_task {
                    // A demonstration, or what the harness says about an answer without an action.
                    message.author = Author::Client;
                } else {
                    self.has_task = true;
                }
            }
            Role::System => {}
        }
        self.messages.push(message);
    }

    /// Puts the action of a text answer in as a call and returns the call's id. The thought replaces the whole text,
    /// which would repeat the action.
    fn act(&mut self, message: &mut Message, thought: Option<&Raw>, action: &Text) -> ByteString {
        if let Some(thought) = thought
            && thought.kind() == Kind::String
        {
            message
                .blocks
                .retain(|block| !matches!(block.content, Content::Text(_)));
            message.blocks.extend(
                chat_message::text_block(thought).filter(
                    |block| !matches!(&block.content, Content::Text(text) if text.is_blank()),
                ),
            );
        }
        self.actions += 1;
        let id = ByteString::from(format!("action-{}", self.actions));
        let mut input = String::from("{\"command\":");
        json::write_string(action.decode().trim_end_matches('\n'), &mut input);
        input.push('}');
        message.blocks.push(Block::new(Content::ToolCall(ToolCall {
            id: id.clone(),
            name: "bash".into(),
            input: match Raw::parse(input) {
                Ok(input) => ToolInput::Json(input),
                Err(_) => ToolInput::Text(action.clone()),
            },
            is_server_side: false,
        })));
        id
    }

    /// The history ends with the last action; only the trajectory has what came of it.
    fn last_observation(&mut self, step: &Raw) {
        let ends_with_action = self
            .messages
            .last()
            .is_some_and(|message| message.role == Role::Assistant);
        if let (true, Some(call_id)) = (ends_with_action, self.open.take()) {
            self.observe(step, call_id);
        }
    }

    fn observe(&mut self, step: &Raw, call_id: ByteString) {
        let observation = step.field("observation");
        let content = observation
            .as_ref()
            .map(chat_message::content_blocks)
            .unwrap_or_default();
        self.messages
            .push(Message::new(Role::User, vec![result(call_id, content)]));
    }

    /// A file without history: the first step knows what was asked, each step what was done.
    fn steps(&mut self, steps: &[Raw]) {
        if let Some(first) = steps.first() {
            let [query, messages] = first.fields(["query", "messages"]);
            for entry in query.or(messages).iter().flat_map(Raw::array) {
                self.entry(&entry);
            }
        }
        for step in steps {
            let [response, thought, action] = step.fields(["response", "thought", "action"]);
            let mut message = Message::new(Role::Assistant, Vec::new());
            message
                .blocks
                .extend(response.as_ref().and_then(chat_message::text_block));
            message.raw = Some(step.clone());
            let action = action.and_then(|raw| raw.as_text());
            let Some(action) = action.filter(|action| !action.is_blank()) else {
                self.messages.push(message);
                continue;
            };
            let call_id = self.act(&mut message, thought.as_ref(), &action);
            self.messages.push(message);
            self.observe(step, call_id);
        }
        self.open = None;
    }
}

fn result(call_id: ByteString, content: Vec<Block>) -> Block {
    Block::new(Content::ToolResult(ToolResult {
        call_id,
        content,
        is_error: None,
        is_server_side: false,
    }))
}

/// `state` is an object, in older files the text of one.
fn working_dir(step: &Raw) -> Option<String> {
    let state = step.field("state")?;
    let state = match state.as_text() {
        Some(text) => Raw::parse(text.decode().into_owned()).ok()?,
        None => state,
    };
    state.string_field("working_dir")
}

/// The settings are an object, in newer files the text of one.
fn configured_model(settings: &Raw) -> Option<String> {
    let settings = match settings.as_text() {
        Some(text) => Raw::parse(text.decode().into_owned()).ok()?,
        None => settings.clone(),
    };
    settings
        .field("agent")?
        .field("model")?
        .string_field("name")
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
        SweAgent.read(&source).unwrap().conversations.remove(0)
    }

    #[test]
    fn actions_in_text_become_calls_and_the_last_observation_is_found() {
        let found = read(
            r#"{"environment":"e","trajectory":[
            {"action":"ls\n","observation":"a.py","response":"Look.\n```\nls\n```","thought":"Look.\n","state":"{\"working_dir\": \"/w\"}"},
            {"action":"submit\n","observation":"bye","response":"Done","thought":"Done","state":{"working_dir":"/w/b"}}],
            "history":[{"role":"system","content":"You are a programmer","agent":"primary"},
            {"role":"user","content":"A worked example","agent":"primary","is_demo":true},
            {"role":"user","content":"Fix the bug","agent":"primary"},
            {"role":"assistant","content":"Look.\n```\nls\n```","thought":"Look.\n","action":"ls\n","agent":"primary"},
            {"role":"user","content":"a.py\n(Open file: n/a)","agent":"primary"},
            {"role":"assistant","content":"Done","thought":"Done","action":"submit\n","agent":"primary"}]}"#,
        );
        insta::assert_snapshot!(outline(&found.messages), @r#"
        System: "You are a programmer"
        User(client): "A worked example"
        User: "Fix the bug"
        Assistant: "Look.\n" call[action-1 bash {"command":"ls"}]
        User: result[action-1 "a.py\n(Open file: n/a)"]
        Assistant: "Done" call[action-2 bash {"command":"submit"}]
        User: result[action-2 "bye"]
        "#);
        assert_eq!(found.cwd.as_deref(), Some("/w/b"));
    }

    #[test]
    fn function_calls_keep_their_ids() {
        let found = read(
            r#"{"history":[{"role":"user","content":[{"type":"text","text":"Go"}],"agent":"main","message_type":"observation"},
            {"role":"assistant","content":"Find","thought":"Find","action":"find_file x","agent":"main","tool_calls":[{"id":"c","type":"function","function":{"name":"find_file","arguments":"{\"file_name\":\"x\"}"}}]},
            {"role":"tool","content":"found","agent":"main","tool_call_ids":["c"]}]}"#,
        );
        insta::assert_snapshot!(outline(&found.messages), @r#"
        User: "Go"
        Assistant: "Find" call[c find_file {"file_name":"x"}]
        Tool: result[c "found"]
        "#);
    }

    #[test]
    fn an_answer_without_action_is_answered_by_the_harness() {
        let found = read(
            r#"{"history":[{"role":"user","content":"Go","agent":"m"},{"role":"assistant","content":"Hm","thought":"Hm","action":"","agent":"m"},
            {"role":"user","content":"Your answer had no command.","agent":"m"}]}"#,
        );
        insta::assert_snapshot!(outline(&found.messages), @r#"
        User: "Go"
        Assistant: "Hm"
        User(client): "Your answer had no command."
        "#);
    }

    #[test]
    fn a_file_of_steps_alone_is_read() {
        let found = read(
            r#"{"trajectory":[{"query":[{"role":"user","content":"Go"}],"action":"ls","observation":"a","response":"x ls","thought":"x"}]}"#,
        );
        insta::assert_snapshot!(outline(&found.messages), @r#"
        User: "Go"
        Assistant: "x" call[action-1 bash {"command":"ls"}]
        User: result[action-1 "a"]
        "#);
    }

    #[test]
    fn a_torn_history_keeps_its_complete_messages() {
        let source = SourceText {
            text: r#"{"history":[{"role":"user","content":"Go","agent":"m"},{"role":"assi"#.into(),
            skipped: Vec::new(),
        };
        let found = SweAgent.read(&source).unwrap();
        assert_eq!(found.conversations[0].messages.len(), 1);
        assert_eq!(found.skipped.len(), 1);
    }
}
