//! Memories: recognising that one is asked for, and writing it from what was sent.
//!
//! The content comes from the extractive compactor, so it holds what the conversation holds and nothing else; the shape
//! is the one that is asked for: the schema of the request, headings that the instruction names, or plain Markdown.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use throughline_memory::compact::{Form, Options, compact};
use throughline_memory::document::{Memory, Section, Status};
use throughline_memory::render::markdown::{Heading, render};
use throughline_memory::render::restoring::without_blocks;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Block, Message, Role};
use throughline_transcript::tokens::Counter;

use super::Heard;
use super::schema::{Vocabulary, example};
use crate::dice::Dice;

/// How much of the beginning and of the end of a message is read for an instruction, bytes.
const INSTRUCTION_BYTES_MAX: usize = 6_000;

/// Tokens of a memory when the request does not say.
const MEMORY_TOKENS: usize = 2_000;

/// Statements that the user asked to remember, repeated in a memory at most.
const REMEMBERED_MAX: usize = 200;

/// Whether the last message, or the system prompt of a call made for it, asks for a summary of the conversation.
pub(crate) fn is_asked_for(heard: &Heard) -> bool {
    if heard
        .messages()
        .last()
        .is_none_or(|last| last.role != Role::User)
    {
        return false;
    }
    if heard.schema().is_some_and(is_memory_schema) {
        return true;
    }
    let said = heard.last_user_text();
    if is_instruction(&ends(&without_blocks(&said))) {
        return true;
    }
    // A call of its own says in the system prompt what it is for.
    let is_own_call = !heard.has_tools()
        && heard
            .messages()
            .iter()
            .filter(|message| message.role != Role::System)
            .count()
            <= 2;
    is_own_call && is_instruction(&ends(&without_blocks(&heard.system_text())))
}

/// The beginning and the end of a long text.
fn ends(text: &str) -> String {
    if text.len() <= 2 * INSTRUCTION_BYTES_MAX {
        return text.to_lowercase();
    }
    let head = text.get(..text.floor_char_boundary(INSTRUCTION_BYTES_MAX));
    let tail = text.get(text.ceil_char_boundary(text.len() - INSTRUCTION_BYTES_MAX)..);
    format!("{}\n{}", head.unwrap_or_default(), tail.unwrap_or_default()).to_lowercase()
}

fn is_instruction(lower: &str) -> bool {
    const WHAT: &[&str] = &[
        "conversation",
        "session",
        "transcript",
        "so far",
        "history",
        "dialogue",
        "messages above",
        "chat above",
        "discussion",
        "context window",
        "earlier part",
        "unterhaltung",
        "gespräch",
        "sitzung",
        "bisher",
        "conversación",
        "对话",
        "会話",
    ];
    const SUMMARISE: &[&str] = &[
        "summar",
        "zusammenfass",
        "fasse ",
        "resum",
        "résum",
        "总结",
        "要約",
        "condense",
        "recap",
    ];
    const MAKE: &[&str] = &[
        "write", "update", "create", "produce", "make", "revise", "edit", "return", "output",
        "bring", "rewrite", "extract", "compact", "generate", "compress",
    ];
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let names_memory = [
        "session memory",
        "session-memory",
        "memory document",
        "handover note",
        "handoff note",
        "the memory",
        "a memory",
        "prior memory",
        "compaction",
    ]
    .iter()
    .any(|name| lower.contains(name));
    let asks_for_memory = names_memory && has(MAKE);
    let asks_for_summary = has(SUMMARISE) && has(WHAT);
    let names_fields = lower.contains("current_state") && lower.contains("key_decisions");
    asks_for_memory || asks_for_summary || names_fields
}

/// Whether a schema is one of a memory, or of changes to one.
fn is_memory_schema(schema: &Raw) -> bool {
    let names: HashSet<String> = schema
        .field("properties")
        .iter()
        .flat_map(Raw::object)
        .map(|(name, _)| name.decode().into_owned())
        .collect();
    let known = [
        "task",
        "current_state",
        "key_decisions",
        "next_steps",
        "open_questions",
        "completed_work",
        "summary",
        "edits",
        "items",
        "memory",
    ]
    .iter()
    .filter(|name| names.contains(**name))
    .count();
    known >= 2 || names.contains("edits") || names.contains("summary")
}

/// The memory that is asked for.
pub(crate) fn write(heard: &Heard, output_max: u64) -> String {
    let room = usize::try_from(output_max).unwrap_or(usize::MAX);
    let tokens = MEMORY_TOKENS.min(room / 2).max(300);
    let remembered = remembered(heard);
    let memory = extracted(heard, tokens);
    let instruction = instruction(heard);
    if let Some(schema) = heard.schema() {
        return by_schema(schema, &memory, &remembered, &instruction).to_string();
    }
    let lower = ends(&instruction);
    let wants_json = heard.wants_json()
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

/// The words that ask for the memory.
fn instruction(heard: &Heard) -> String {
    let said = heard.last_user_text();
    if is_instruction(&ends(&without_blocks(&said))) && heard.messages().len() > 2 {
        said
    } else {
        format!("{}\n{said}", heard.system_text())
    }
}

/// The form that is asked for, with nothing in it.
pub(crate) fn skeleton(heard: &Heard) -> String {
    match heard.schema() {
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
pub(crate) fn larger(heard: &Heard) -> String {
    let mut text = String::from("## User Intent\n");
    for message in heard.messages() {
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
fn extracted(heard: &Heard, tokens: usize) -> Option<Memory> {
    let counter = Counter::reference().estimating();
    let count = |text: &str| counter.text(text);
    let messages = covered_messages(heard);
    let options = Options {
        form: Form::Markdown,
        ..Options::new(tokens, &count)
    };
    compact(&messages, &options)
        .ok()
        .map(|compacted| compacted.memory)
}

/// The conversation without the instruction. A message that carries a whole transcript is taken apart.
fn covered_messages(heard: &Heard) -> Vec<Message> {
    let messages = heard.messages();
    let (last, before) = match messages.split_last() {
        Some((last, before)) => (last, before),
        None => return Vec::new(),
    };
    let has_conversation = before
        .iter()
        .filter(|message| message.role != Role::System)
        .count()
        > 1;
    if has_conversation {
        let named = named_range(&ends(&heard.last_user_text())).unwrap_or(before.len());
        let from = before.len().saturating_sub(named.max(1));
        return before.get(from..).unwrap_or_default().to_vec();
    }
    let text = last
        .texts()
        .map(|text| text.decode().into_owned())
        .collect::<Vec<_>>()
        .join("\n");
    let mut parted = dialogue(&text);
    if parted.len() < 2 {
        parted = vec![Message::new(Role::User, vec![Block::text(text)])];
    }
    before.iter().cloned().chain(parted).collect()
}

/// How many messages an instruction speaks of that says "messages 41 to 60".
fn named_range(lower: &str) -> Option<usize> {
    let (_, rest) = lower.split_once("messages ")?;
    let mut words = rest.split(|c: char| c.is_whitespace() || matches!(c, ':' | '.' | ','));
    let first: usize = words.next()?.parse().ok()?;
    let last: usize = match words.next()? {
        "to" | "-" | "–" => words.next()?.parse().ok()?,
        _ => return None,
    };
    last.checked_sub(first).map(|more| more + 1)
}

/// Takes a written-down conversation apart: lines that name a speaker begin a message.
fn dialogue(text: &str) -> Vec<Message> {
    let mut messages: Vec<(Role, String)> = Vec::new();
    // In a transcript with marks only lines without a mark say who speaks.
    let is_marked = text.lines().filter(|line| line.starts_with("| ")).count() > 1;
    let text = text
        .split_once("<transcript>")
        .and_then(|(_, rest)| rest.split_once("</transcript>"))
        .map_or(text, |(inside, _)| inside);
    for line in text.lines() {
        if is_marked && let Some(content) = line.strip_prefix('|') {
            if let Some((_, said)) = messages.last_mut() {
                said.push('\n');
                said.push_str(content.strip_prefix(' ').unwrap_or(content));
            }
            continue;
        }
        if is_marked && line.starts_with('[') && speaker(line).is_none() {
            messages.push((Role::Tool, String::new()));
            continue;
        }
        match speaker(line) {
            Some((role, rest)) => messages.push((role, rest.to_owned())),
            None => {
                if let Some((_, said)) = messages.last_mut() {
                    said.push('\n');
                    said.push_str(line);
                }
            }
        }
    }
    messages
        .into_iter()
        .filter(|(_, said)| !said.trim().is_empty())
        .map(|(role, said)| Message::new(role, vec![Block::text(said.trim().to_owned())]))
        .collect()
}

/// `user: ...`, `[12] assistant: ...`, `<user>`, `### Assistant`.
fn speaker(line: &str) -> Option<(Role, &str)> {
    let bare = line.trim_start_matches(|c: char| {
        c.is_ascii_digit()
            || c.is_whitespace()
            || matches!(c, '[' | ']' | '#' | '<' | '*' | '=' | '-' | '(' | ')')
    });
    let (role, length) = [
        ("user", Role::User),
        ("human", Role::User),
        ("assistant", Role::Assistant),
        ("model", Role::Assistant),
    ]
    .iter()
    .find_map(|(name, role)| {
        let start = bare.get(..name.len())?;
        start
            .eq_ignore_ascii_case(name)
            .then_some((*role, name.len()))
    })?;
    let rest = bare.get(length..)?;
    let is_marked = bare.len() < line.trim_start().len()
        && !rest.starts_with(|c: char| c.is_alphanumeric() || c == ' ');
    let after = rest
        .find([':', '>', ']'])
        .filter(|at| *at <= 24)
        .map(|at| rest.get(at + 1..).unwrap_or_default());
    match after {
        Some(after) => Some((role, after.trim_start_matches(['*', ' ', '>', ']']))),
        None if is_marked || rest.trim().is_empty() => Some((role, "")),
        None => None,
    }
}

/// What was to be remembered, word for word: `FACT name = value` lines and sentences with "Remember:". Of a fact that
/// was said twice, the later statement.
fn remembered(heard: &Heard) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for message in heard.messages() {
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

/// The texts of a section that hold.
fn texts(memory: &Option<Memory>, sections: &[Section]) -> Vec<String> {
    memory
        .iter()
        .flat_map(|memory| &memory.items)
        .filter(|item| sections.contains(&item.entry.section()) && item.status == Status::Active)
        .map(|item| item.entry.texts().collect::<Vec<_>>().join(" "))
        .collect()
}

fn compact_object(memory: &Option<Memory>, remembered: &[String]) -> Map<String, Value> {
    let rendered = memory
        .as_ref()
        .map(throughline_memory::render::object::render)
        .and_then(|json| serde_json::from_str(&json).ok());
    let mut object = match rendered {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    if !remembered.is_empty() {
        let results = object
            .entry("relevant_tool_results")
            .or_insert_with(|| json!({}));
        if let Some(results) = results.as_object_mut() {
            results.insert("to remember".to_owned(), remembered.join(". ").into());
        }
    }
    object
}

fn by_schema(
    schema: &Raw,
    memory: &Option<Memory>,
    remembered: &[String],
    instruction: &str,
) -> Value {
    let own = compact_object(memory, remembered);
    let full: Option<Value> = memory
        .as_ref()
        .and_then(|memory| serde_json::from_str(&memory.to_json()).ok());
    let properties: Vec<(String, Raw)> = schema
        .field("properties")
        .iter()
        .flat_map(Raw::object)
        .map(|(name, property)| (name.decode().into_owned(), property))
        .collect();
    if let Some(Value::Object(full)) = full
        && properties.iter().any(|(name, _)| name == "cover")
    {
        return Value::Object(full);
    }
    let entries = entries(memory, remembered, instruction);
    let statements: Vec<String> = entries.iter().map(|entry| entry.text.clone()).collect();
    let mut mind = Dice::new(0, "memory", &[statements.join("\n").as_bytes()]);
    let mut object = Map::new();
    for (name, property) in &properties {
        let kind = property.string_field("type").unwrap_or_default();
        let items = property.field("items").map(|items| resolved(schema, items));
        let value = match (own.get(name), items) {
            // A list of facts, or of changes.
            (None, Some(items)) if kind == "array" && items.field("properties").is_some() => {
                entries
                    .iter()
                    .map(|entry| entry.filled(Some(&items)))
                    .collect()
            }
            (None, Some(_)) if kind == "array" => match Section::from_name(name) {
                Some(section) => json!(texts(memory, &[section])),
                None => json!(statements),
            },
            (Some(Value::Object(named)), Some(_)) if kind == "array" => named
                .iter()
                .map(|(key, summary)| json!({"key": key, "summary": summary}))
                .collect(),
            (Some(known), _) => known.clone(),
            (None, _) if kind == "string" => match Section::from_name(name) {
                Some(section) => texts(memory, &[section]).join("\n").into(),
                None => statements.join("\n").into(),
            },
            _ => {
                let mut vocabulary = Vocabulary::new(statements.clone());
                example(property, &mut vocabulary, &mut mind)
            }
        };
        object.insert(name.clone(), value);
    }
    Value::Object(object)
}

/// A schema, or the one that it refers to.
fn resolved(root: &Raw, schema: Raw) -> Raw {
    let target = schema
        .string_field("$ref")
        .and_then(|path| super::schema::resolve(root, &path));
    target.unwrap_or(schema)
}

/// One fact of a memory.
struct Entry {
    section: &'static str,
    text: String,
    detail: Option<String>,
}

impl Entry {
    /// As an item that is described in words.
    fn item(&self) -> Value {
        json!({
            "section": self.section, "text": self.text, "detail": self.detail, "limit": null, "message": null,
        })
    }

    /// As an object of a list of items or edits: with the fields of the schema, or with those of an edit.
    fn filled(&self, schema: Option<&Raw>) -> Value {
        let Some(schema) = schema else {
            return json!({
                "action": "add", "id": null, "by": null, "reason": null, "section": self.section, "text": self.text,
                "detail": self.detail, "limit": null, "message": null,
            });
        };
        let mut object = Map::new();
        for (name, property) in schema.field("properties").iter().flat_map(Raw::object) {
            let name = name.decode().into_owned();
            let is_nullable = property.as_str().contains("\"null\"");
            let allows = |value: &str| property.as_str().contains(&format!("\"{value}\""));
            let value = match name.as_str() {
                "section" if allows(self.section) || !allows("references") => json!(self.section),
                "section" => json!("references"),
                "text" | "content" | "statement" | "fact" | "quote" | "decision" | "approach" => {
                    json!(self.text)
                }
                "detail" | "resolution" if self.detail.is_some() => json!(self.detail),
                _ if allows("add") => json!("add"),
                _ if is_nullable => Value::Null,
                _ => {
                    let mut vocabulary = Vocabulary::new(vec![self.text.clone()]);
                    let mut mind = Dice::new(0, "entry", &[self.text.as_bytes()]);
                    example(&property, &mut vocabulary, &mut mind)
                }
            };
            object.insert(name, value);
        }
        Value::Object(object)
    }
}

/// The facts that an instruction asks for: of the conversation, without those that it shows as known already.
fn entries(memory: &Option<Memory>, remembered: &[String], instruction: &str) -> Vec<Entry> {
    const KNOWN_BYTES: usize = 40;
    // What a transcript in the instruction says is not known yet: it is what the memory is asked of.
    let transcript = instruction
        .split_once("<transcript>")
        .and_then(|(before, rest)| Some((before, rest.rsplit_once("</transcript>")?.1)));
    let (before, after) = transcript.unwrap_or((instruction, ""));
    let is_known = |text: &str| {
        let start = text.get(..text.floor_char_boundary(KNOWN_BYTES.min(text.len())));
        start.is_some_and(|start| before.contains(start) || after.contains(start))
    };
    let remembered = remembered.iter().map(|text| Entry {
        section: Section::References.name(),
        text: text.clone(),
        detail: None,
    });
    let items = memory.iter().flat_map(|memory| &memory.items);
    let extracted = items
        .filter(|item| {
            item.entry.section() != Section::Corrections && item.status == Status::Active
        })
        .map(|item| Entry {
            section: item.entry.section().name(),
            text: item.entry.text().replace('\n', " "),
            detail: match &item.entry {
                throughline_memory::document::Entry::NextStep { .. } => Some("implied".to_owned()),
                throughline_memory::document::Entry::ToolResult { key, .. } => Some(key.clone()),
                _ => None,
            },
        });
    remembered
        .chain(extracted)
        .filter(|entry| !entry.text.trim().is_empty() && !is_known(&entry.text))
        .take(60)
        .collect()
}

/// The headings that an instruction names, with their marks.
fn headings(instruction: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in instruction.lines() {
        let line = line.trim().trim_start_matches(['`', '-', '*', ' ']);
        let title = line.trim_start_matches('#');
        if title.len() < line.len() && title.starts_with(' ') && title.trim().len() <= 60 {
            let heading = line.trim_end_matches(['`', ' ', ':']).to_owned();
            if !found.contains(&heading) && found.len() < 20 {
                found.push(heading);
            }
        }
    }
    found
}

fn by_headings(headings: &[String], memory: &Option<Memory>, remembered: &[String]) -> String {
    let lines = |items: &[String]| {
        items.iter().fold(String::new(), |mut lines, item| {
            let _ = writeln!(lines, "- {}", item.replace('\n', " "));
            lines
        })
    };
    let places: Vec<Heading> = headings.iter().map(|heading| place(heading)).collect();
    if headings.len() < 2 {
        let mut text = memory.as_ref().map(render).unwrap_or_default();
        if let Some((first_line, rest)) = text.split_once('\n')
            && first_line.starts_with("Memory of")
        {
            text = rest.trim_start().to_owned();
        }
        if !remembered.is_empty() {
            let title = format!("## {}\n", Heading::KeyReferences.title());
            let with_lines = format!("{title}{}", lines(remembered));
            text = match text.contains(&title) {
                true => text.replacen(&title, &with_lines, 1),
                false => format!("{text}\n{with_lines}"),
            };
        }
        return text;
    }
    let mut text = String::new();
    for (index, (heading, place)) in headings.iter().zip(&places).enumerate() {
        let _ = writeln!(text, "{heading}");
        let is_first = places.iter().position(|other| other == place) == Some(index);
        let mut items = Vec::new();
        if is_first {
            items = texts(memory, place.sections());
            let takes_facts = match places.contains(&Heading::KeyReferences) {
                true => *place == Heading::KeyReferences,
                false => index == 0,
            };
            if takes_facts {
                items.extend(remembered.iter().cloned());
            }
        }
        if items.is_empty() {
            items.push("Nothing.".to_owned());
        }
        text.push_str(&lines(&items));
        text.push('\n');
    }
    text
}

/// Under which of our headings the content of another one stands.
fn place(heading: &str) -> Heading {
    let lower = heading.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["error", "correction", "ruled", "failed", "constraint"]) {
        Heading::ErrorsAndCorrections
    } else if has(&["pending", "next", "open", "todo", "remaining"]) {
        Heading::PendingTasks
    } else if has(&[
        "reference",
        "fact",
        "identifier",
        "preserve",
        "discover",
        "value",
        "result",
        "file",
    ]) {
        Heading::KeyReferences
    } else if has(&["completed", "done", "progress", "change"]) {
        Heading::CompletedWork
    } else if has(&["active", "current", "state", "decision"]) {
        Heading::ActiveWork
    } else {
        Heading::UserIntent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_recognised() {
        let check = |text: &str, expected: bool| {
            assert_eq!(
                is_instruction(&ends(&without_blocks(text))),
                expected,
                "{text}"
            );
        };
        check("Summarize the conversation so far for a colleague.", true);
        check(
            "Write the session memory of everything above, under these headings.",
            true,
        );
        check(
            "Bring the prior memory up to date. Return only edits.",
            true,
        );
        check("Fasse die bisherige Unterhaltung zusammen.", true);
        check(
            "Return JSON with task, current_state and key_decisions.",
            true,
        );
        check("Create a detailed summary of our session.", true);
        check("Add a summary page to the app.", false);
        check("What is the deploy region?", false);
        check("Fix the memory leak in the parser.", false);
        check(
            "<session_memory version=\"1\">\nwrite a memory of the conversation summary\n</session_memory>\nGo on.",
            false,
        );
    }

    #[test]
    fn transcripts_are_taken_apart() {
        let roles = |text: &str| {
            dialogue(text)
                .iter()
                .map(|message| message.role)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            roles("user: hi\nassistant: ho\nmore\n"),
            [Role::User, Role::Assistant]
        );
        assert_eq!(
            roles("[1] user: hi\n[2] assistant: ho"),
            [Role::User, Role::Assistant]
        );
        assert_eq!(
            roles("### User\nhi\n### Assistant\nho"),
            [Role::User, Role::Assistant]
        );
        assert_eq!(
            roles("<user>\nhi\n<assistant>\nho"),
            [Role::User, Role::Assistant]
        );
        assert_eq!(
            roles(
                "Read this.\n<transcript>\n[1] user\n| hi\n| assistant: no\n[2] assistant, 2026-03-04\n| ho\n[3] output of the tool x\n| y\n</transcript>\nuser: z"
            ),
            [Role::User, Role::Assistant, Role::Tool]
        );
        assert_eq!(roles("users are many"), []);
    }

    #[test]
    fn ranges_are_counted() {
        assert_eq!(named_range("because of messages 41 to 60. your"), Some(20));
        assert_eq!(named_range("the messages above"), None);
    }

    #[test]
    fn headings_are_those_of_the_instruction() {
        assert_eq!(
            headings("Use:\n## Task Overview\n`## Next Steps`\ntext\n#hash"),
            ["## Task Overview", "## Next Steps"]
        );
    }
}
