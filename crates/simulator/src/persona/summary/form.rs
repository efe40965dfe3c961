//! The forms of a memory: by the schema of the request, as an object, as a list of facts, under headings.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use throughline_memory::document::{Memory, Section, Status};
use throughline_memory::render::markdown::{Heading, render};
use throughline_transcript::json::Raw;

use crate::dice::Dice;
use crate::persona::schema::{Vocabulary, example, resolve};

/// The texts of a section that hold.
fn texts(memory: &Option<Memory>, sections: &[Section]) -> Vec<String> {
    memory
        .iter()
        .flat_map(|memory| &memory.items)
        .filter(|item| sections.contains(&item.entry.section()) && item.status == Status::Active)
        .map(|item| item.entry.texts().collect::<Vec<_>>().join(" "))
        .collect()
}

pub(super) fn compact_object(memory: &Option<Memory>, remembered: &[String]) -> Map<String, Value> {
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

pub(super) fn by_schema(
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
        .and_then(|path| resolve(root, &path));
    target.unwrap_or(schema)
}

/// One fact of a memory.
pub(super) struct Entry {
    section: &'static str,
    text: String,
    detail: Option<String>,
}

impl Entry {
    /// As an item that is described in words.
    pub(super) fn item(&self) -> Value {
        json!({
            "section": self.section, "text": self.text, "detail": self.detail, "limit": null, "message": null,
        })
    }

    /// As an object of a list of items or edits: with the fields of the schema, or with those of an edit.
    pub(super) fn filled(&self, schema: Option<&Raw>) -> Value {
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
pub(super) fn entries(
    memory: &Option<Memory>,
    remembered: &[String],
    instruction: &str,
) -> Vec<Entry> {
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
pub(super) fn headings(instruction: &str) -> Vec<String> {
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

pub(super) fn by_headings(
    headings: &[String],
    memory: &Option<Memory>,
    remembered: &[String],
) -> String {
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

/// The heading of ours that has the content of another one.
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
    fn headings_are_those_of_the_instruction() {
        assert_eq!(
            headings("Use:\n## Task Overview\n`## Next Steps`\ntext\n#hash"),
            ["## Task Overview", "## Next Steps"]
        );
    }
}
