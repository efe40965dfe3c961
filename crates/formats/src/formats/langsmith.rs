//! Runs of LangSmith: exported as a list, as lines, or as one run with its children.
//!
//! A trace is a tree of runs. An agent calls the model again and again, each time with all that was said before: the
//! run with the most messages is the conversation, its output is what follows.

use std::collections::HashMap;

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{Block, Message, Role};

use crate::formats::rows::rows;
use crate::formats::{Format, Probe, chat_message, langchain, times};
use crate::source::{ReadError, Source, SourceText, add_skipped};

/// How deep runs are looked for inside of runs.
const DEPTH_MAX: usize = 32;

/// Runs of LangSmith.
pub(super) struct LangSmith;

impl Format for LangSmith {
    fn name(&self) -> &'static str {
        "langsmith"
    }

    fn about(&self) -> &'static str {
        "LangSmith runs (JSON, JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |key| glance.has(key);
        if has("run_type") && has("inputs") && (has("id") || has("trace_id")) {
            96
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let found = rows(source, &["run_type"]);
        let mut skipped = found.skipped;
        let mut traces = Traces::default();
        for (line, row) in &found.rows {
            if !traces.add(row, *line, 0) {
                add_skipped(&mut skipped, *line, row.len(), "not a run");
            }
        }
        if traces.list.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no run with `run_type`".to_owned(),
            });
        }
        let mut conversations: Vec<Conversation> = traces
            .list
            .into_iter()
            .filter(|conversation| !conversation.messages.is_empty())
            .collect();
        if conversations.is_empty() {
            return Err(ReadError::Misread {
                format: self.name(),
                reason: "no run has messages in its inputs or outputs".to_owned(),
            });
        }
        for conversation in &mut conversations {
            chat_message::pair_by_order(&mut conversation.messages, "call-");
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped,
        })
    }
}

/// The conversation of each trace.
#[derive(Default)]
struct Traces {
    list: Vec<Conversation>,
    index: HashMap<String, usize>,
}

impl Traces {
    fn add(&mut self, run: &Raw, line: usize, depth: usize) -> bool {
        let [
            kind,
            id,
            trace,
            name,
            start,
            end,
            inputs,
            outputs,
            extra,
            children,
        ] = run.fields([
            "run_type",
            "id",
            "trace_id",
            "name",
            "start_time",
            "end_time",
            "inputs",
            "outputs",
            "extra",
            "child_runs",
        ]);
        if kind.is_none() {
            return false;
        }
        let owned = |raw: &Option<Raw>| {
            raw.as_ref()
                .map(|raw| chat_message::string(raw).to_string())
        };
        let key = owned(&trace).or_else(|| owned(&id)).unwrap_or_default();
        let index = *self.index.entry(key.clone()).or_insert_with(|| {
            self.list.push(Conversation {
                id: key,
                ..Conversation::default()
            });
            self.list.len() - 1
        });
        let mut messages = Vec::new();
        said(inputs.as_ref(), Role::User, &mut messages);
        place(&mut messages, 0, line, start.as_ref());
        let known = messages.len();
        let mut answers = Vec::new();
        said(outputs.as_ref(), Role::Assistant, &mut answers);
        // A graph's output repeats its input.
        if answers.len() > known
            && known > 0
            && answers[..known]
                .iter()
                .zip(&messages)
                .all(|(a, b)| a.blocks == b.blocks)
        {
            answers.drain(..known);
        }
        messages.append(&mut answers);
        place(&mut messages, known, line, end.or(start).as_ref());
        let conversation = &mut self.list[index];
        if trace == id || conversation.title.is_none() {
            conversation.title = owned(&name);
        }
        if let Some(model) = extra.as_ref().and_then(model) {
            conversation.model = Some(model);
        }
        let messages = chat_message::without_empty(messages);
        if messages.len() >= conversation.messages.len() {
            conversation.messages = messages;
        }
        if depth < DEPTH_MAX {
            for child in children.iter().flat_map(Raw::array) {
                self.add(&child, line, depth + 1);
            }
        }
        true
    }
}

fn place(messages: &mut [Message], from: usize, line: usize, at: Option<&Raw>) {
    let at_ms = at.and_then(times::from_seconds);
    for message in messages.iter_mut().skip(from) {
        message.position.line = line;
        message.at_ms = at_ms;
    }
}

fn model(extra: &Raw) -> Option<String> {
    let [metadata, parameters] = extra.fields(["metadata", "invocation_params"]);
    let named = metadata.and_then(|metadata| metadata.string_field("ls_model_name"));
    named.or_else(|| {
        let [model, name] = parameters?.fields(["model", "model_name"]);
        model
            .or(name)?
            .as_text()
            .map(|text| text.decode().into_owned())
    })
}

/// Adds what inputs or outputs say; `role` is that of a plain text in them.
fn said(value: Option<&Raw>, role: Role, messages: &mut Vec<Message>) {
    let Some(value) = value.filter(|value| value.kind() == Kind::Object) else {
        return;
    };
    let [
        list,
        generations,
        choices,
        message,
        output,
        input,
        answer,
        question,
        content,
        text,
    ] = value.fields([
        "messages",
        "generations",
        "choices",
        "message",
        "output",
        "input",
        "answer",
        "question",
        "content",
        "text",
    ]);
    if let Some(list) = list {
        for entry in flat(&list) {
            messages.extend(one(&entry));
        }
        return;
    }
    if let Some(list) = generations.or(choices) {
        // Of several tries the first is the one that was used.
        if let Some(first) = flat(&list).into_iter().next() {
            let [message, text] = first.fields(["message", "text"]);
            let found = message.as_ref().and_then(one);
            messages.extend(found.or_else(|| plain(text.as_ref(), role)));
        }
        return;
    }
    if let Some(found) = one(value) {
        messages.push(found);
        return;
    }
    for value in [message, output, input, answer, question, content, text]
        .into_iter()
        .flatten()
    {
        let found = match value.kind() {
            Kind::Object => one(&value),
            Kind::String => plain(Some(&value), role),
            _ => None,
        };
        if let Some(found) = found {
            messages.push(found);
            return;
        }
    }
}

/// The elements of a list, or of the lists in it.
fn flat(list: &Raw) -> Vec<Raw> {
    let mut found = Vec::new();
    for element in list.array() {
        match element.kind() {
            Kind::Array => found.extend(element.array()),
            _ => found.push(element),
        }
    }
    found
}

fn one(entry: &Raw) -> Option<Message> {
    langchain::message(entry).or_else(|| chat_message::message(entry))
}

fn plain(text: Option<&Raw>, role: Role) -> Option<Message> {
    let text = text?.as_text().filter(|text| !text.is_blank())?;
    Some(Message::new(role, vec![Block::text(text)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    fn read_text(text: &str) -> Source {
        LangSmith
            .read(&SourceText::from_text(text.to_owned()))
            .unwrap()
    }

    const ROOT: &str = r#"{"id":"r","trace_id":"r","name":"Agent","run_type":"chain","start_time":"2026-01-01T00:00:00Z","inputs":{"input":"How high is the tide?"},"outputs":{"output":"Three metres."}}"#;
    const FIRST: &str = r#"{"id":"a","trace_id":"r","name":"Chat","run_type":"llm","start_time":"2026-01-01T00:00:01Z","extra":{"metadata":{"ls_model_name":"m-1"}},"inputs":{"messages":[[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"How high is the tide?"}}]]},"outputs":{"generations":[[{"text":"","message":{"lc":1,"type":"constructor","id":["x","AIMessage"],"kwargs":{"content":"","tool_calls":[{"id":"c1","name":"tide","args":{}}]}}}]]}}"#;
    const SECOND: &str = r#"{"id":"b","trace_id":"r","name":"Chat","run_type":"llm","start_time":"2026-01-01T00:00:02Z","inputs":{"messages":[{"role":"user","content":"How high is the tide?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"tide","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"3"}]},"outputs":{"choices":[{"message":{"role":"assistant","content":"Three metres."}}]}}"#;

    #[test]
    fn the_longest_run_of_a_trace_is_its_conversation() {
        for text in [
            format!("[{ROOT},{FIRST},{SECOND}]"),
            format!("{ROOT}\n{FIRST}\n{SECOND}\n"),
            ROOT.replace(
                "\"run_type\"",
                &format!("\"child_runs\":[{FIRST},{SECOND}],\"run_type\""),
            ),
        ] {
            let source = read_text(&text);
            assert_eq!(source.conversations.len(), 1);
            let conversation = &source.conversations[0];
            assert_eq!(
                story(conversation),
                [
                    "user: How high is the tide?",
                    "model: call c1 tide",
                    "tool: result c1 3",
                    "model: Three metres."
                ],
                "{text}"
            );
            assert_eq!(conversation.title.as_deref(), Some("Agent"));
            assert_eq!(conversation.model.as_deref(), Some("m-1"));
        }
        assert_eq!(
            story(&read_text(ROOT).conversations[0]),
            ["user: How high is the tide?", "model: Three metres."]
        );
    }

    #[test]
    fn runs_without_messages_are_refused() {
        let text =
            r#"{"id":"r","run_type":"retriever","inputs":{"k":1},"outputs":{"documents":[]}}"#;
        assert!(matches!(
            LangSmith.read(&SourceText::from_text(text)),
            Err(ReadError::Misread { .. })
        ));
    }
}
