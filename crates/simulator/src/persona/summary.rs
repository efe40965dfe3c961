//! Memories: recognising that one is asked for, and writing it from what was sent.
//!
//! The content comes from the extractive compactor, so it holds what the conversation holds and nothing else; the shape
//! is the one that is asked for: the schema of the request, headings that the instruction names, or plain Markdown.

mod dialogue;
mod form;
mod instruction;

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use throughline_memory::compact::{Form, Options, compact};
use throughline_memory::document::Memory;
use throughline_memory::render::markdown::Heading;
use throughline_transcript::json::Raw;
use throughline_transcript::tokens::Counter;

use super::Briefing;

pub(crate) use instruction::is_asked_for;

use dialogue::covered_messages;
use form::{by_headings, by_schema, compact_object, entries, headings};
use instruction::{ends, instruction};

/// Tokens of a memory when the request does not say.
const MEMORY_TOKENS: usize = 2_000;

/// Statements that the user asked to remember, repeated in a memory at most.
const REMEMBERED_MAX: usize = 200;

/// The memory that is asked for.
pub(crate) fn write(briefing: &Briefing, output_max: u64) -> String {
    let room = usize::try_from(output_max).unwrap_or(usize::MAX);
    let tokens = MEMORY_TOKENS.min(room / 2).max(300);
    let remembered = remembered(briefing);
    let memory = extracted(briefing, tokens);
    let instruction = instruction(briefing);
    if let Some(schema) = briefing.schema() {
        return by_schema(schema, &memory, &remembered, &instruction).to_string();
    }
    let lower = ends(&instruction);
    let wants_json = briefing.wants_json()
        || (lower.contains("json") && !lower.contains("markdown"))
        || (lower.contains("current_state") && lower.contains("key_decisions"));
    if wants_json {
        let list = ["edits", "items"].iter().find(|list| {
            lower.contains(&format!("\"{list}\"")) || lower.contains(&format!("`{list}`"))
        });
        return match list {
            Some(list) => {
                let entries = entries(&memory, &remembered, &instruction);
                let entries: Vec<Value> = entries
                    .iter()
                    .map(|entry| match *list {
                        "edits" => entry.filled(None),
                        _ => entry.item(),
                    })
                    .collect();
                json!({*list: entries}).to_string()
            }
            None => Value::Object(compact_object(&memory, &remembered)).to_string(),
        };
    }
    by_headings(&headings(&instruction), &memory, &remembered)
}

/// The form that is asked for, with nothing in it.
pub(crate) fn skeleton(briefing: &Briefing) -> String {
    match briefing.schema() {
        Some(schema) => {
            let mut object = Map::new();
            for (name, property) in schema.field("properties").iter().flat_map(Raw::object) {
                let empty = match property.string_field("type").as_deref() {
                    Some("array") => json!([]),
                    Some("object") => json!({}),
                    Some("integer" | "number") => json!(0),
                    _ => json!(""),
                };
                object.insert(name.decode().into_owned(), empty);
            }
            Value::Object(object).to_string()
        }
        None => {
            let mut text = String::new();
            for heading in Heading::ALL {
                let _ = write!(text, "## {}\n\n", heading.title());
            }
            text
        }
    }
}

/// A text that is longer than everything that was said.
pub(crate) fn larger(briefing: &Briefing) -> String {
    let mut text = String::from("## User Intent\n");
    for message in briefing.messages() {
        let words = super::words(message);
        for line in words.lines().filter(|line| !line.trim().is_empty()) {
            let _ = writeln!(
                text,
                "- The following was said, word for word, and is repeated here: {line}"
            );
        }
    }
    text
}

/// What the conversation is about, by the extractive compactor.
fn extracted(briefing: &Briefing, tokens: usize) -> Option<Memory> {
    let counter = Counter::reference().estimating();
    let count = |text: &str| counter.text(text);
    let messages = covered_messages(briefing);
    let options = Options {
        form: Form::Markdown,
        ..Options::new(tokens, &count)
    };
    compact(&messages, &options)
        .ok()
        .map(|compacted| compacted.memory)
}

/// What was to be remembered, word for word: `FACT name = value` lines and sentences with "Remember:". Of a fact that
/// was said twice, the later statement.
fn remembered(briefing: &Briefing) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for message in briefing.messages() {
        let words = super::words(message);
        for line in words.lines() {
            for marker in [
                "FACT ",
                "Remember: ",
                "remember: ",
                "Remember that ",
                "remember that ",
            ] {
                for (at, _) in line.match_indices(marker) {
                    let statement = sentence(line.get(at..).unwrap_or_default());
                    let name = statement
                        .split(" is ")
                        .next()
                        .and_then(|start| start.split(" = ").next())
                        .unwrap_or_default()
                        .to_owned();
                    if statement.contains(" is ") || statement.contains('=') {
                        statements.retain(|earlier| {
                            !(earlier.starts_with(&format!("{name} is "))
                                || earlier.starts_with(&format!("{name} = ")))
                        });
                    }
                    if !statements.contains(&statement) {
                        statements.push(statement);
                    }
                }
            }
        }
    }
    let surplus = statements.len().saturating_sub(REMEMBERED_MAX);
    statements.drain(..surplus);
    statements
}

fn sentence(text: &str) -> String {
    let mut end = text.len().min(400);
    for (at, character) in text.char_indices() {
        let next = text
            .get(at + character.len_utf8()..)
            .and_then(|rest| rest.chars().next());
        if at >= 400
            || (character == '.' && next.is_none_or(|next| !next.is_alphanumeric()))
            || character == '"'
        {
            end = at;
            break;
        }
    }
    text.get(..text.floor_char_boundary(end))
        .unwrap_or_default()
        .trim()
        .to_owned()
}
