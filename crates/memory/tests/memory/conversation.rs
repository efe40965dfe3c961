//! Conversations for tests, and questions about the memories of them.

use std::borrow::Cow;

use serde_json::{Value, json};
use throughline_formats::read::read;
use throughline_formats::source::SourceText;
use throughline_memory::compact::{Options, RenderedMemory, compact};
use throughline_memory::document::{Item, Memory, Origin, Section, Status};
use throughline_memory::redact::Redactor;
use throughline_memory::render::restoring::without_blocks;
use throughline_memory::verify::{Finding, verify};
use throughline_transcript::message::{Block, Content, Message, Role, ToolInput};

pub(super) fn user(text: &str) -> Message {
    Message::new(Role::User, vec![Block::text(text)])
}

pub(super) fn assistant(text: &str) -> Message {
    Message::new(Role::Assistant, vec![Block::text(text)])
}

/// The messages of a request in the Anthropic form.
pub(super) fn messages(messages: Value) -> Vec<Message> {
    read_as(
        &json!({"model": "any", "max_tokens": 100, "messages": messages}),
        "anthropic",
    )
}

pub(super) fn read_as(body: &Value, format: &str) -> Vec<Message> {
    let mut source = read(&SourceText::from_text(body.to_string()), Some(format)).unwrap();
    source.conversations.swap_remove(0).messages
}

pub(super) fn count(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

pub(super) fn memory_of(messages: &[Message], tokens: usize) -> RenderedMemory {
    compact(messages, &Options::new(tokens, &count)).unwrap()
}

/// The texts of a section's items that hold.
pub(super) fn holding(memory: &Memory, section: Section) -> Vec<&str> {
    memory
        .section(section)
        .filter(|item| item.status == Status::Active)
        .map(|item| item.entry.text())
        .collect()
}

pub(super) fn find<'m>(memory: &'m Memory, section: Section, part: &str) -> Option<&'m Item> {
    memory
        .section(section)
        .find(|item| item.entry.text().contains(part))
}

/// What the memory says and the messages do not.
pub(super) fn unsupported(memory: &Memory, messages: &[Message]) -> Vec<Finding> {
    let mut texts: Vec<(Origin, String)> = Vec::new();
    for message in messages {
        for block in &message.blocks {
            match &block.content {
                Content::Text(text) => {
                    let origin = match message.role {
                        Role::User => Origin::User,
                        Role::Tool => Origin::Tool,
                        Role::System | Role::Assistant => Origin::Assistant,
                    };
                    let text = text.decode();
                    // A memory that was restored is not the user's words.
                    let text = match origin {
                        Origin::User => without_blocks(&text).into_owned(),
                        _ => text.into_owned(),
                    };
                    texts.push((origin, text));
                }
                Content::ToolCall(call) => {
                    let mut words = vec![call.name.to_string()];
                    match &call.input {
                        ToolInput::Json(raw) => {
                            if let Ok(value) = serde_json::from_str(raw.as_str()) {
                                leaves(&value, &mut words);
                            }
                        }
                        ToolInput::Text(text) => words.push(text.decode().into_owned()),
                    }
                    texts.push((Origin::Assistant, words.join(" ")));
                }
                Content::ToolResult(result) => {
                    for text in result.texts() {
                        texts.push((Origin::Tool, text.decode().into_owned()));
                    }
                }
                _ => {}
            }
        }
    }
    let redactor = Redactor::embedded();
    let texts = texts
        .into_iter()
        .map(|(origin, text)| (origin, Cow::Owned(redactor.redact(&text).into_owned())));
    verify(memory, texts)
}

fn leaves(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| leaves(value, words)),
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => words.push(value.to_string()),
    }
}
