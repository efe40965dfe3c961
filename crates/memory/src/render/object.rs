//! The compact JSON object: eight fields that other programs expect from a compaction.
//!
//! The object has fewer sections than the document, but keeps everything:
//!
//! | section | place in the object |
//! | --- | --- |
//! | task | `task`: the open requests, or the first and the latest one if none is open, a line each; the others are in `current_state`, a line `Answered: request → answer` each |
//! | current state, completed work | `current_state`: the state first, then a line `Done: ...` for each piece of work |
//! | decisions | `key_decisions` |
//! | corrections | `key_decisions` too, after the decisions: the user's words as `decision`, `said by the user` as `reason`, and in `constraint` that they hold until the user says otherwise, or what replaced them |
//! | ruled-out approaches | `eliminated_approaches` |
//! | errors | `relevant_tool_results`, keys `error 1`, `error 2`, ...; resolved ones end in `→ resolved: ...` |
//! | references | `relevant_tool_results`, key `references`, one a line |
//! | questions, next steps | `open_questions`, `next_steps`; steps that were not requested begin with `(implied) ` |
//!
//! Resolved items say so at their end. Superseded items are left out unless they are in the ledger.
//! Ids, origins and provenance have no place here: the object cannot be read back.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::markdown::ANSWER;
use crate::document::{Entry, Item, Memory, Origin, RequestKind, Section, Status};

/// The object as indented JSON, with a newline at the end.
#[must_use]
pub fn render(memory: &Memory) -> String {
    // Strings, numbers and lists of them always serialise.
    let mut json = serde_json::to_string_pretty(&ObjectForm::from(memory)).unwrap_or_default();
    json.push('\n');
    json
}

/// The object that replaces the earlier part of a conversation, in eight fields.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Session memory, compact object", deny_unknown_fields)]
pub(crate) struct ObjectForm {
    /// What is being worked on, in the user's words: the open requests, or the latest one if none is open, a line each.
    task: String,
    /// The current state, then the completed work and the requests that were answered, a line each.
    current_state: String,
    /// Decisions, and the user's corrections, prohibitions and preferences.
    key_decisions: Vec<DecisionForm>,
    /// What was tried or considered and does not work.
    eliminated_approaches: Vec<ApproachForm>,
    /// Questions and blockers.
    open_questions: Vec<String>,
    /// What is still to do, most urgent first.
    next_steps: Vec<String>,
    /// What tools said that later steps need, errors, and references, by a name.
    #[schemars(with = "BTreeMap<String, String>")]
    relevant_tool_results: OrderedMap,
    /// How many turns had begun in the messages that the object replaces.
    compacted_at_turn: u64,
}

/// A decision.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct DecisionForm {
    /// What was decided.
    decision: String,
    /// Why; null if no reason was given.
    #[schemars(schema_with = "text_or_null")]
    reason: Option<String>,
    /// What limits it; null where nothing does.
    #[schemars(schema_with = "text_or_null")]
    constraint: Option<String>,
}

/// A way that was ruled out.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ApproachForm {
    /// What was tried or considered.
    approach: String,
    /// The error or argument against it; null if none was given.
    #[schemars(schema_with = "text_or_null")]
    reason_ruled_out: Option<String>,
}

/// Every object has these fields, so that readers find the same keys everywhere: null means that there is no value.
fn text_or_null(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["string", "null"] })
}

/// A JSON object with its keys in the order in which they were added.
#[derive(Debug, Default)]
struct OrderedMap {
    entries: Vec<(String, String)>,
    keys: HashSet<String>,
}

impl OrderedMap {
    /// Adds an entry, under `key (2)` and so on where the key is taken.
    fn insert(&mut self, key: &str, value: String) {
        let mut free = key.to_owned();
        let mut number = 1;
        while !self.keys.insert(free.clone()) {
            number += 1;
            free = format!("{key} ({number})");
        }
        self.entries.push((free, value));
    }
}

impl Serialize for OrderedMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for (key, value) in &self.entries {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl From<&Memory> for ObjectForm {
    fn from(memory: &Memory) -> Self {
        let texts: HashMap<&str, &str> = memory
            .items
            .iter()
            .map(|item| (item.id.as_str(), item.entry.text()))
            .collect();
        let holding = |section: Section| {
            memory
                .section(section)
                .filter(|item| !matches!(item.status, Status::SupersededBy(_)))
        };

        let (open, mut answered): (Vec<&Item>, Vec<&Item>) =
            holding(Section::Task).partition(|item| item.status == Status::Active);
        let mut task: Vec<String> = open.into_iter().map(says).collect();
        if task.is_empty() {
            // The first request is the goal, the latest one is where the work is.
            let latest = answered.pop();
            let goal = (!answered.is_empty()).then(|| answered.remove(0));
            task.extend(goal.into_iter().chain(latest).map(says));
        }
        let current_state: Vec<String> = holding(Section::CurrentState)
            .map(says)
            .chain(holding(Section::CompletedWork).map(|item| format!("Done: {}", text(item))))
            .chain(
                answered
                    .into_iter()
                    .map(|item| format!("Answered: {}", with_answer(item))),
            )
            .collect();

        let mut key_decisions = Vec::new();
        for item in holding(Section::KeyDecisions) {
            if let Entry::KeyDecision {
                reason, constraint, ..
            } = &item.entry
            {
                key_decisions.push(DecisionForm {
                    decision: says(item),
                    reason: reason.clone(),
                    constraint: constraint.clone(),
                });
            }
        }
        key_decisions.extend(memory.section(Section::Corrections).map(|item| {
            let constraint = match &item.status {
                Status::Active => Some("holds until the user says otherwise".to_owned()),
                Status::Resolved => None,
                Status::SupersededBy(id) => Some(match texts.get(id.as_str()) {
                    Some(text) => format!("holds no longer, superseded by: {text}"),
                    None => "holds no longer, superseded".to_owned(),
                }),
            };
            DecisionForm {
                decision: says(item),
                reason: (item.origin == Origin::User).then(|| "said by the user".to_owned()),
                constraint,
            }
        }));

        let mut eliminated_approaches = Vec::new();
        for item in holding(Section::EliminatedApproaches) {
            if let Entry::EliminatedApproach {
                reason_ruled_out, ..
            } = &item.entry
            {
                eliminated_approaches.push(ApproachForm {
                    approach: says(item),
                    reason_ruled_out: reason_ruled_out.clone(),
                });
            }
        }

        let mut relevant_tool_results = OrderedMap::default();
        for item in holding(Section::RelevantToolResults) {
            if let Entry::ToolResult { key, .. } = &item.entry {
                relevant_tool_results.insert(key, says(item));
            }
        }
        for (index, item) in holding(Section::Errors).enumerate() {
            let mut value = says(item);
            if let Entry::Error {
                resolution: Some(resolution),
                ..
            } = &item.entry
            {
                value.push_str(" → resolved: ");
                value.push_str(resolution);
            }
            relevant_tool_results.insert(&format!("error {}", index + 1), value);
        }
        let references: Vec<String> = holding(Section::References).map(says).collect();
        if !references.is_empty() {
            relevant_tool_results.insert("references", references.join("\n"));
        }

        Self {
            task: task.join("\n"),
            current_state: current_state.join("\n"),
            key_decisions,
            eliminated_approaches,
            open_questions: holding(Section::OpenQuestions).map(says).collect(),
            next_steps: holding(Section::NextSteps)
                .map(|item| match &item.entry {
                    Entry::NextStep {
                        requested: RequestKind::Implied,
                        ..
                    } => format!("(implied) {}", says(item)),
                    _ => says(item),
                })
                .collect(),
            relevant_tool_results,
            compacted_at_turn: memory.cover.turns as u64,
        }
    }
}

/// The main text of an item, with what became of the matter.
fn says(item: &Item) -> String {
    let mut says = with_answer(item);
    if item.status == Status::Resolved {
        says.push_str(match &item.entry {
            Entry::Task {
                answer: Some(_), ..
            } => "",
            Entry::Task { .. } => " (answered)",
            Entry::OpenQuestion { .. } => " (answered)",
            Entry::Error {
                resolution: Some(_),
                ..
            } => "",
            Entry::Error { .. } => " (resolved)",
            Entry::CompletedWork { .. } => "",
            _ => " (done)",
        });
    }
    says
}

/// The main text of an item, with the answer to a request.
fn with_answer(item: &Item) -> String {
    let mut says = text(item);
    if let Entry::Task {
        answer: Some(answer),
        ..
    } = &item.entry
    {
        says.push_str(ANSWER);
        says.push_str(answer);
    }
    says
}

/// The main text of an item. A tool's words are marked wherever the field does not already say that a tool spoke.
fn text(item: &Item) -> String {
    let is_in_tool_field = matches!(
        item.entry,
        Entry::ToolResult { .. } | Entry::Error { .. } | Entry::Reference { .. }
    );
    if item.origin == Origin::Tool && !is_in_tool_field {
        format!("[tool] {}", item.entry.text())
    } else {
        item.entry.text().to_owned()
    }
}

#[cfg(test)]
mod tests;
