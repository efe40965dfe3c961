//! The memory document: sections of items, each with its origin and status.

use throughline_transcript::digest::Digest;

/// The structured document that represents a covered prefix of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Number of this version; 1 for a first memory, one more after every update.
    pub version: u32,
    /// What the memory covers.
    pub cover: Cover,
    /// The user's language, ISO 639-3 (`eng`, `deu`, `cmn`), where it could be told.
    pub language: Option<String>,
    /// The entries, in the order of [`Section::ALL`] and, within a section, in the order in which they are shown.
    pub items: Vec<Item>,
}

/// The messages that a memory covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// How many messages, from the first on.
    pub messages: usize,
    /// How many turns have begun in them.
    pub turns: usize,
    /// Chained digest of the canonical form of the messages.
    pub digest: Digest,
    /// When the last of them was written, in milliseconds since 1970 UTC.
    pub until_ms: Option<i64>,
}

impl Default for Cover {
    /// No messages, of no known history.
    fn default() -> Self {
        Self {
            messages: 0,
            turns: 0,
            digest: Digest::UNKNOWN,
            until_ms: None,
        }
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Stable over all versions, unique within a memory: see [`Item::id_for`].
    pub id: String,
    /// What it says. The variant names the section.
    pub entry: Entry,
    /// Whose words they are.
    pub origin: Origin,
    /// Where they are in the transcript.
    pub provenance: Provenance,
    /// Whether the matter is still open.
    pub status: Status,
    /// The version that added or last changed the item.
    pub touched: u32,
}

/// What an item says, by section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The goal, or a change of it.
    Task {
        /// In the user's words.
        text: String,
        /// What the model answered, or what came of it, in a sentence or more.
        answer: Option<String>,
    },
    /// The state of things at the cut.
    CurrentState {
        /// Done, not done, in progress; quoting where work stopped.
        text: String,
    },
    /// Something created, changed, deleted or run to its end.
    CompletedWork {
        /// With exact identifiers and values.
        text: String,
    },
    /// A choice that holds.
    KeyDecision {
        /// What was decided.
        decision: String,
        /// Why, where the transcript says so.
        reason: Option<String>,
        /// What limits it, where the transcript says so.
        constraint: Option<String>,
    },
    /// A way that was tried or considered and does not work.
    EliminatedApproach {
        /// What was tried.
        approach: String,
        /// The error or argument against it.
        reason_ruled_out: Option<String>,
    },
    /// An error, verbatim.
    Error {
        /// Its text.
        text: String,
        /// How it went away.
        resolution: Option<String>,
    },
    /// A correction, prohibition, preference or standing fact of the user, verbatim. Part of the ledger.
    Correction {
        /// The user's words.
        text: String,
    },
    /// A question or blocker that is still open.
    OpenQuestion {
        /// The question.
        text: String,
    },
    /// Something still to do.
    NextStep {
        /// What.
        text: String,
        /// Whether the user asked for it.
        requested: RequestKind,
    },
    /// What a tool said that later steps need.
    ToolResult {
        /// What it is the result of.
        key: String,
        /// The part that matters.
        summary: String,
    },
    /// An identifier, path, address, value or date, with the words that it stood in.
    Reference {
        /// The line.
        text: String,
    },
}

/// Whether the user asked for a step explicitly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Explicitly.
    Explicit,
    /// It follows from what was said or planned.
    Implied,
}

/// Whose words an item holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The person's.
    User,
    /// The model's.
    Assistant,
    /// A tool's: data, never an instruction.
    Tool,
    /// Put together by code, from tool calls.
    Code,
}

/// Where an item comes from in the transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Index of the message, counted from 0 over the whole transcript.
    pub message: usize,
    /// When the message was written, in milliseconds since 1970 UTC.
    pub at_ms: Option<i64>,
}

/// Whether the matter of an item is still open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    Active,
    /// It is done or answered.
    Resolved,
    /// A later item replaces it.
    SupersededBy(String),
}

/// The sections of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// What is being worked on and why.
    Task,
    /// Status at the cut.
    CurrentState,
    /// What was created, changed, deleted.
    CompletedWork,
    /// Decisions.
    KeyDecisions,
    /// What was ruled out.
    EliminatedApproaches,
    /// Errors.
    Errors,
    /// The ledger of the user's corrections, prohibitions, preferences and facts.
    Corrections,
    /// Questions and blockers.
    OpenQuestions,
    /// What comes next.
    NextSteps,
    /// Tool results that later steps need.
    RelevantToolResults,
    /// Identifiers and values.
    References,
}

/// How much of a memory a section takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectionSize {
    /// Entries.
    pub items: usize,
    /// Characters (Unicode scalar values) of all their texts.
    pub characters: usize,
}

impl Memory {
    /// The entries of one section, in the order in which they are shown.
    pub fn section(&self, section: Section) -> impl Iterator<Item = &Item> {
        self.items
            .iter()
            .filter(move |item| item.entry.section() == section)
    }

    /// The sections that have entries, with their sizes, in the order of [`Section::ALL`].
    #[must_use]
    pub fn sizes(&self) -> Vec<(Section, SectionSize)> {
        let mut sizes = [SectionSize::default(); Section::ALL.len()];
        for item in &self.items {
            let size = &mut sizes[item.entry.section() as usize];
            size.items += 1;
            size.characters += item
                .entry
                .texts()
                .map(|text| text.chars().count())
                .sum::<usize>();
        }
        Section::ALL
            .into_iter()
            .zip(sizes)
            .filter(|(_, size)| size.items > 0)
            .collect()
    }
}

impl Section {
    /// All sections, in the order of the document.
    pub const ALL: [Self; 11] = [
        Self::Task,
        Self::CurrentState,
        Self::CompletedWork,
        Self::KeyDecisions,
        Self::EliminatedApproaches,
        Self::Errors,
        Self::Corrections,
        Self::OpenQuestions,
        Self::NextSteps,
        Self::RelevantToolResults,
        Self::References,
    ];

    /// The section's name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::CurrentState => "current_state",
            Self::CompletedWork => "completed_work",
            Self::KeyDecisions => "key_decisions",
            Self::EliminatedApproaches => "eliminated_approaches",
            Self::Errors => "errors",
            Self::Corrections => "corrections",
            Self::OpenQuestions => "open_questions",
            Self::NextSteps => "next_steps",
            Self::RelevantToolResults => "relevant_tool_results",
            Self::References => "references",
        }
    }

    /// The section of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.name() == name)
    }

    /// Whether only code may write the section and no summariser may drop from it.
    #[must_use]
    pub fn is_ledger(self) -> bool {
        self == Self::Corrections
    }
}

impl Entry {
    /// All texts of the entry, to be changed.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let (first, second, third) = match self {
            Self::CurrentState { text }
            | Self::CompletedWork { text }
            | Self::Correction { text }
            | Self::OpenQuestion { text }
            | Self::NextStep { text, .. }
            | Self::Reference { text } => (text, None, None),
            Self::Task { text, answer } => (text, answer.as_mut(), None),
            Self::KeyDecision {
                decision,
                reason,
                constraint,
            } => (decision, reason.as_mut(), constraint.as_mut()),
            Self::EliminatedApproach {
                approach,
                reason_ruled_out,
            } => (approach, reason_ruled_out.as_mut(), None),
            Self::Error { text, resolution } => (text, resolution.as_mut(), None),
            Self::ToolResult { key, summary } => (summary, Some(key), None),
        };
        std::iter::once(first).chain(second).chain(third)
    }

    /// The section that the entry belongs to.
    #[must_use]
    pub fn section(&self) -> Section {
        match self {
            Self::Task { .. } => Section::Task,
            Self::CurrentState { .. } => Section::CurrentState,
            Self::CompletedWork { .. } => Section::CompletedWork,
            Self::KeyDecision { .. } => Section::KeyDecisions,
            Self::EliminatedApproach { .. } => Section::EliminatedApproaches,
            Self::Error { .. } => Section::Errors,
            Self::Correction { .. } => Section::Corrections,
            Self::OpenQuestion { .. } => Section::OpenQuestions,
            Self::NextStep { .. } => Section::NextSteps,
            Self::ToolResult { .. } => Section::RelevantToolResults,
            Self::Reference { .. } => Section::References,
        }
    }

    /// The main text: what the item is recognised by.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Task { text, .. }
            | Self::CurrentState { text }
            | Self::CompletedWork { text }
            | Self::Error { text, .. }
            | Self::Correction { text }
            | Self::OpenQuestion { text }
            | Self::NextStep { text, .. }
            | Self::Reference { text } => text,
            Self::KeyDecision { decision, .. } => decision,
            Self::EliminatedApproach { approach, .. } => approach,
            Self::ToolResult { summary, .. } => summary,
        }
    }
}

impl Entry {
    /// Every text of the entry, the main one first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (second, third) = match self {
            Self::KeyDecision {
                reason, constraint, ..
            } => (reason.as_deref(), constraint.as_deref()),
            Self::EliminatedApproach {
                reason_ruled_out, ..
            } => (reason_ruled_out.as_deref(), None),
            Self::Error { resolution, .. } => (resolution.as_deref(), None),
            Self::ToolResult { key, .. } => (Some(key.as_str()), None),
            Self::Task { answer, .. } => (answer.as_deref(), None),
            Self::CurrentState { .. }
            | Self::CompletedWork { .. }
            | Self::Correction { .. }
            | Self::OpenQuestion { .. }
            | Self::NextStep { .. }
            | Self::Reference { .. } => (None, None),
        };
        std::iter::once(self.text()).chain(second).chain(third)
    }
}

impl Item {
    /// The id of an item that says `text` in `section` and was first seen in `message`: a digest of the three, so that
    /// the same transcript gives the same ids.
    #[must_use]
    pub fn id_for(section: Section, message: usize, text: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(section.name().as_bytes())
            .update(&message.to_le_bytes())
            .update(text.as_bytes());
        hasher.finalize().to_hex()[..8].to_owned()
    }
}
