//! Fine-tuning files: JSON Lines of `{messages}` as OpenAI takes them, and the rows of preference training.
//!
//! Each row is a conversation. Of a preference row the preferred answer is read. Rows of a batch file
//! (`{custom_id, body}`) are read as well.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{Message, Role};

use crate::formats::chat_message::{self, string};
use crate::formats::request::signs::Signs;
use crate::formats::rows::rows;
use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct FineTune;

impl Format for FineTune {
    fn name(&self) -> &'static str {
        "finetune"
    }

    fn about(&self) -> &'static str {
        "OpenAI fine-tuning JSONL, preference (DPO) and batch rows"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has_preference = glance.has_path(&["input", "messages"])
            && (glance.has("preferred_output") || glance.has("non_preferred_output"));
        let is_batch = glance.has("custom_id") && glance.has_path(&["body", "messages"]);
        let has_choice =
            glance.has_path(&["chosen", "role"]) && glance.has_path(&["rejected", "role"]);
        if has_preference || is_batch || has_choice {
            return 95;
        }
        let has_messages =
            glance.has_path(&["messages", "role"]) && !Signs::of(probe.head()).has_odd_messages();
        // What a request has and a training row has not.
        let is_request = [
            "model",
            "max_tokens",
            "max_completion_tokens",
            "stream",
            "info",
        ]
        .into_iter()
        .any(|key| glance.has(key));
        if has_messages && !is_request {
            if glance.has_path(&["messages", "weight"]) || glance.roots > 1 {
                90
            } else {
                30
            }
        } else if glance.has("prompt") && glance.has("completion") && !is_request {
            70
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let found = rows(source, &["messages", "input", "body", "prompt", "chosen"]);
        found.into_source(self.name(), "messages", conversation)
    }
}

fn conversation(row: &Raw, line: usize) -> Option<Conversation> {
    let [
        messages,
        tools,
        input,
        preferred,
        body,
        custom_id,
        id,
        prompt,
        completion,
        chosen,
    ] = row.fields([
        "messages",
        "tools",
        "input",
        "preferred_output",
        "body",
        "custom_id",
        "id",
        "prompt",
        "completion",
        "chosen",
    ]);
    let inner = body.or(input).filter(|inner| inner.kind() == Kind::Object);
    let [inner_messages, inner_tools, model] = inner
        .map(|inner| inner.fields(["messages", "tools", "model"]))
        .unwrap_or_default();
    let mut list: Vec<Message> = Vec::new();
    if let Some(messages) = messages.or(inner_messages) {
        add(&mut list, &messages, Role::User);
        if let Some(preferred) = preferred {
            add(&mut list, &preferred, Role::Assistant);
        }
    } else {
        if let Some(prompt) = prompt {
            add(&mut list, &prompt, Role::User);
        }
        if let Some(answer) = completion.or(chosen) {
            add(&mut list, &answer, Role::Assistant);
        }
    }
    let mut list = chat_message::without_empty(list);
    if list.is_empty() {
        return None;
    }
    for message in &mut list {
        message.position.line = line;
    }
    Some(Conversation {
        id: custom_id
            .or(id)
            .as_ref()
            .map(string)
            .unwrap_or_default()
            .to_string(),
        model: model
            .and_then(|model| model.as_text())
            .map(|model| model.decode().into_owned()),
        tools: tools
            .or(inner_tools)
            .filter(|tools| tools.kind() == Kind::Array),
        messages: list,
        ..Conversation::default()
    })
}

/// Adds a list of messages, or a text that `role` says.
fn add(list: &mut Vec<Message>, value: &Raw, role: Role) {
    if value.kind() == Kind::Array {
        list.extend(value.array().filter_map(|raw| chat_message::message(&raw)));
    } else if let Some(block) = chat_message::text_block(value) {
        list.push(Message::new(role, vec![block]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chat_message::outline;

    fn read(text: &str) -> Source {
        FineTune
            .read(&SourceText {
                text: text.into(),
                skipped: Vec::new(),
            })
            .unwrap()
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(outline(&read(text).conversations[0].messages), expected);
    }

    #[test]
    fn each_row_is_a_conversation() {
        let found = read(
            "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[]}\n{\"messages\":[{\"role\":\"user\",\"content\":\"b\"},{\"role\":\"assistant\",\"content\":\"c\",\"weight\":0}]}\n{\"messages\"",
        );
        assert_eq!(found.conversations.len(), 2);
        assert_eq!(found.conversations[1].messages[0].position.line, 2);
        assert_eq!(found.skipped[0].line, 3);
    }

    #[test]
    fn of_a_preference_the_preferred_answer_is_read() {
        check(
            r#"{"input":{"messages":[{"role":"user","content":"Hi"}],"tools":[],"parallel_tool_calls":true},"preferred_output":[{"role":"assistant","content":"Hello"}],"non_preferred_output":[{"role":"assistant","content":"What?"}]}"#,
            "User: \"Hi\"\nAssistant: \"Hello\"\n",
        );
        check(
            r#"{"chosen":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}],"rejected":[{"role":"user","content":"Hi"}]}"#,
            "User: \"Hi\"\nAssistant: \"Hello\"\n",
        );
    }

    #[test]
    fn prompts_and_batches_are_read() {
        check(
            r#"{"prompt":"Hi","completion":"Hello"}"#,
            "User: \"Hi\"\nAssistant: \"Hello\"\n",
        );
        let found = read(
            r#"{"custom_id":"r1","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"Hi"}]}}"#,
        );
        assert_eq!(found.conversations[0].id, "r1");
        assert_eq!(found.conversations[0].model.as_deref(), Some("m"));
    }
}
