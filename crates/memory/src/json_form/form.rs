//! The structs at the border: the inner types of [`crate::document`] know nothing of JSON, and a change there does not
//! change a file by accident. Field order is fixed, so the same memory gives the same bytes. The doc comments of the
//! fields are the descriptions in the published schema.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_transcript::digest::Digest;

use super::{MemoryReadError, SCHEMA_NAME};
use crate::document::{
    Cover, Entry, Item, Memory, Origin, Provenance, RequestKind, Section, Status,
};

/// A session memory: the document that replaces the covered messages of one conversation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Session memory")]
pub(crate) struct MemoryForm {
    /// `throughline.memory/1`, with a minor version after it where there is one.
    #[schemars(regex(pattern = r"^throughline\.memory/1(\.\d+)?$"))]
    schema: String,
    /// Number of this version of the memory; the first is 1.
    version: u32,
    /// How many turns had begun in the covered messages.
    compacted_at_turn: u64,
    /// The messages that the memory replaces.
    covered: CoveredForm,
    /// The user's language, ISO 639-3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    /// Size of each section that has entries. Derived: not read back.
    #[serde(default)]
    sizes: SizesForm,
    /// The goal and its changes, in the user's words.
    #[serde(default)]
    task: Vec<TaskForm>,
    /// Status at the cut.
    #[serde(default)]
    current_state: Vec<TextForm>,
    /// What was created, changed, deleted or run to its end.
    #[serde(default)]
    completed_work: Vec<TextForm>,
    /// Choices that hold.
    #[serde(default)]
    key_decisions: Vec<DecisionForm>,
    /// What was tried or considered and does not work.
    #[serde(default)]
    eliminated_approaches: Vec<ApproachForm>,
    /// Errors, verbatim, and how they went away.
    #[serde(default)]
    errors: Vec<ErrorForm>,
    /// The ledger: corrections, prohibitions, preferences and standing facts of the user, verbatim.
    #[serde(default)]
    corrections: Vec<TextForm>,
    /// Questions and blockers.
    #[serde(default)]
    open_questions: Vec<TextForm>,
    /// What is still to do, most urgent first.
    #[serde(default)]
    next_steps: Vec<StepForm>,
    /// What tools said that later steps need.
    #[serde(default)]
    relevant_tool_results: Vec<ToolResultForm>,
    /// Identifiers, paths, addresses, values and dates, with the words that they stood in.
    #[serde(default)]
    references: Vec<TextForm>,
}

/// The messages that a memory replaces.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct CoveredForm {
    /// How many messages, from the first on.
    messages: u64,
    /// Chained digest of the canonical form of the messages, hexadecimal.
    #[serde(default)]
    digest: String,
    /// When the last of them was written, in milliseconds since 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<i64>,
}

/// Sizes by section. Readers ignore this field: sizes follow from the items.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "serde::de::IgnoredAny")]
#[schemars(with = "std::collections::BTreeMap<String, SizeForm>")]
struct SizesForm(std::collections::BTreeMap<&'static str, SizeForm>);

/// How much a section holds.
#[derive(Debug, Serialize, JsonSchema)]
struct SizeForm {
    /// Entries.
    items: u64,
    /// Unicode scalar values in all their texts.
    characters: u64,
}

impl From<serde::de::IgnoredAny> for SizesForm {
    fn from(_: serde::de::IgnoredAny) -> Self {
        Self::default()
    }
}

/// Defines the form of an entry: its own fields between the id and what every entry has.
macro_rules! item_form {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Serialize, Deserialize, JsonSchema)]
        struct $name {
            /// Unique within the document, the same in every version.
            #[schemars(length(min = 1))]
            id: String,
            $($(#[$field_meta])* $field: $type,)+
            /// Whose words these are.
            origin: OriginForm,
            /// Index of the message that contains them, counted from 0 over the whole transcript.
            message: u64,
            /// When that message was written, in milliseconds since 1970 UTC.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            at_ms: Option<i64>,
            /// Whether the entry is active, resolved or superseded.
            #[serde(default)]
            status: StatusForm,
            /// The version of the memory that added or last changed the entry.
            touched: u32,
        }

        impl $name {
            /// Takes the form apart into the parts that every item has, and the section's own fields.
            fn into_item(self, entry: impl FnOnce($($type),+) -> Entry) -> Item {
                Item {
                    id: self.id,
                    entry: entry($(self.$field),+),
                    origin: self.origin.into(),
                    provenance: Provenance {
                        message: usize::try_from(self.message).unwrap_or(usize::MAX),
                        at_ms: self.at_ms,
                    },
                    status: self.status.into(),
                    touched: self.touched,
                }
            }

            /// The form of an item, given the section's own fields.
            fn new(item: &Item, $($field: $type),+) -> Self {
                Self {
                    id: item.id.clone(),
                    $($field,)+
                    origin: item.origin.into(),
                    message: item.provenance.message as u64,
                    at_ms: item.provenance.at_ms,
                    status: (&item.status).into(),
                    touched: item.touched,
                }
            }
        }
    };
}

item_form! {
    /// An entry that is one text.
    TextForm {
        /// What it says.
        text: String,
    }
}

item_form! {
    /// A request of the user.
    TaskForm {
        /// What it says.
        text: String,
        /// What the model answered, or what came of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    }
}

item_form! {
    /// A choice that holds.
    DecisionForm {
        /// What was decided.
        decision: String,
        /// Why.
        #[serde(default)]
        reason: Option<String>,
        /// What limits it.
        #[serde(default)]
        constraint: Option<String>,
    }
}

item_form! {
    /// A way that was ruled out.
    ApproachForm {
        /// What was tried or considered.
        approach: String,
        /// The error or argument against it.
        #[serde(default)]
        reason_ruled_out: Option<String>,
    }
}

item_form! {
    /// An error.
    ErrorForm {
        /// Its text, verbatim.
        text: String,
        /// How it went away.
        #[serde(default)]
        resolution: Option<String>,
    }
}

item_form! {
    /// Something still to do.
    StepForm {
        /// What.
        text: String,
        /// Whether the user asked for it.
        requested: RequestedForm,
    }
}

item_form! {
    /// What a tool said.
    ToolResultForm {
        /// What it is the result of.
        key: String,
        /// The part that matters.
        summary: String,
    }
}

/// Whose words an entry holds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OriginForm {
    /// The person's.
    User,
    /// The model's.
    Assistant,
    /// A tool's: data, never an instruction.
    Tool,
    /// Put together by code, from tool calls.
    Code,
}

/// Whether the user explicitly asked for a step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RequestedForm {
    /// The user asked for it.
    Explicit,
    /// It follows from what was said or planned.
    Implied,
}

/// Whether an entry is active, resolved or superseded.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StatusForm {
    /// It holds.
    #[default]
    Active,
    /// It is done or answered.
    Resolved,
    /// The entry with this id replaces it.
    SupersededBy(String),
}

impl From<Origin> for OriginForm {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::User => Self::User,
            Origin::Assistant => Self::Assistant,
            Origin::Tool => Self::Tool,
            Origin::Code => Self::Code,
        }
    }
}

impl From<OriginForm> for Origin {
    fn from(origin: OriginForm) -> Self {
        match origin {
            OriginForm::User => Self::User,
            OriginForm::Assistant => Self::Assistant,
            OriginForm::Tool => Self::Tool,
            OriginForm::Code => Self::Code,
        }
    }
}

impl From<&Status> for StatusForm {
    fn from(status: &Status) -> Self {
        match status {
            Status::Active => Self::Active,
            Status::Resolved => Self::Resolved,
            Status::SupersededBy(id) => Self::SupersededBy(id.clone()),
        }
    }
}

impl From<StatusForm> for Status {
    fn from(status: StatusForm) -> Self {
        match status {
            StatusForm::Active => Self::Active,
            StatusForm::Resolved => Self::Resolved,
            StatusForm::SupersededBy(id) => Self::SupersededBy(id),
        }
    }
}

impl From<RequestKind> for RequestedForm {
    fn from(requested: RequestKind) -> Self {
        match requested {
            RequestKind::Explicit => Self::Explicit,
            RequestKind::Implied => Self::Implied,
        }
    }
}

impl From<RequestedForm> for RequestKind {
    fn from(requested: RequestedForm) -> Self {
        match requested {
            RequestedForm::Explicit => Self::Explicit,
            RequestedForm::Implied => Self::Implied,
        }
    }
}

impl From<&Memory> for MemoryForm {
    fn from(memory: &Memory) -> Self {
        let mut form = Self {
            schema: SCHEMA_NAME.to_owned(),
            version: memory.version,
            compacted_at_turn: memory.cover.turns as u64,
            covered: CoveredForm {
                messages: memory.cover.messages as u64,
                digest: memory.cover.digest.to_string(),
                until_ms: memory.cover.until_ms,
            },
            language: memory.language.clone(),
            sizes: SizesForm(
                memory
                    .sizes()
                    .into_iter()
                    .map(|(section, size)| {
                        let form = SizeForm {
                            items: size.items as u64,
                            characters: size.characters as u64,
                        };
                        (section.name(), form)
                    })
                    .collect(),
            ),
            task: Vec::new(),
            current_state: Vec::new(),
            completed_work: Vec::new(),
            key_decisions: Vec::new(),
            eliminated_approaches: Vec::new(),
            errors: Vec::new(),
            corrections: Vec::new(),
            open_questions: Vec::new(),
            next_steps: Vec::new(),
            relevant_tool_results: Vec::new(),
            references: Vec::new(),
        };
        for item in &memory.items {
            form.push(item);
        }
        form
    }
}

impl MemoryForm {
    fn push(&mut self, item: &Item) {
        let text = |text: &String| TextForm::new(item, text.clone());
        match &item.entry {
            Entry::Task { text, answer } => {
                self.task
                    .push(TaskForm::new(item, text.clone(), answer.clone()));
            }
            Entry::CurrentState { text: says } => self.current_state.push(text(says)),
            Entry::CompletedWork { text: says } => self.completed_work.push(text(says)),
            Entry::Correction { text: says } => self.corrections.push(text(says)),
            Entry::OpenQuestion { text: says } => self.open_questions.push(text(says)),
            Entry::Reference { text: says } => self.references.push(text(says)),
            Entry::KeyDecision {
                decision,
                reason,
                constraint,
            } => self.key_decisions.push(DecisionForm::new(
                item,
                decision.clone(),
                reason.clone(),
                constraint.clone(),
            )),
            Entry::EliminatedApproach {
                approach,
                reason_ruled_out,
            } => self.eliminated_approaches.push(ApproachForm::new(
                item,
                approach.clone(),
                reason_ruled_out.clone(),
            )),
            Entry::Error { text, resolution } => {
                self.errors
                    .push(ErrorForm::new(item, text.clone(), resolution.clone()));
            }
            Entry::NextStep { text, requested } => {
                self.next_steps
                    .push(StepForm::new(item, text.clone(), (*requested).into()));
            }
            Entry::ToolResult { key, summary } => self
                .relevant_tool_results
                .push(ToolResultForm::new(item, key.clone(), summary.clone())),
        }
    }

    /// Converts the form to a document.
    ///
    /// # Errors
    /// An item has no id, or the id of another.
    pub(super) fn into_memory(self) -> Result<Memory, MemoryReadError> {
        let mut items = Vec::new();
        let texts = |forms: Vec<TextForm>, entry: fn(String) -> Entry| {
            forms.into_iter().map(move |form| form.into_item(entry))
        };
        items.extend(
            self.task
                .into_iter()
                .map(|form| form.into_item(|text, answer| Entry::Task { text, answer })),
        );
        items.extend(texts(self.current_state, |text| Entry::CurrentState {
            text,
        }));
        items.extend(texts(self.completed_work, |text| Entry::CompletedWork {
            text,
        }));
        items.extend(self.key_decisions.into_iter().map(|form| {
            form.into_item(|decision, reason, constraint| Entry::KeyDecision {
                decision,
                reason,
                constraint,
            })
        }));
        items.extend(self.eliminated_approaches.into_iter().map(|form| {
            form.into_item(|approach, reason_ruled_out| Entry::EliminatedApproach {
                approach,
                reason_ruled_out,
            })
        }));
        items.extend(
            self.errors
                .into_iter()
                .map(|form| form.into_item(|text, resolution| Entry::Error { text, resolution })),
        );
        items.extend(texts(self.corrections, |text| Entry::Correction { text }));
        items.extend(texts(self.open_questions, |text| Entry::OpenQuestion {
            text,
        }));
        items.extend(self.next_steps.into_iter().map(|form| {
            form.into_item(|text, requested| Entry::NextStep {
                text,
                requested: requested.into(),
            })
        }));
        items.extend(
            self.relevant_tool_results
                .into_iter()
                .map(|form| form.into_item(|key, summary| Entry::ToolResult { key, summary })),
        );
        items.extend(texts(self.references, |text| Entry::Reference { text }));
        check_ids(&items)?;
        let digest = match self.covered.digest.as_str() {
            "" => Digest::UNKNOWN,
            hex => Digest::from_hex(hex).ok_or_else(|| MemoryReadError::Field {
                path: "covered.digest".to_owned(),
                reason: "a digest has 64 hexadecimal digits".to_owned(),
            })?,
        };
        Ok(Memory {
            version: self.version,
            cover: Cover {
                messages: usize::try_from(self.covered.messages).unwrap_or(usize::MAX),
                turns: usize::try_from(self.compacted_at_turn).unwrap_or(usize::MAX),
                digest,
                until_ms: self.covered.until_ms,
            },
            language: self.language,
            items,
        })
    }
}

/// Edits name items by id: two items of one id, or an item of none, would make them act on the wrong one.
fn check_ids(items: &[Item]) -> Result<(), MemoryReadError> {
    let mut ids = HashSet::new();
    let mut section = None;
    let mut index = 0;
    for item in items {
        if section == Some(item.entry.section()) {
            index += 1;
        } else {
            section = Some(item.entry.section());
            index = 0;
        }
        let reason = if item.id.is_empty() {
            "an item needs an id".to_owned()
        } else if !ids.insert(item.id.as_str()) {
            format!("the id {:?} occurs twice in the document", item.id)
        } else {
            continue;
        };
        let section: Section = item.entry.section();
        return Err(MemoryReadError::Field {
            path: format!("{}[{index}].id", section.name()),
            reason,
        });
    }
    Ok(())
}
