//! Small types that inputs, outputs, events and versions share. This module imports none of them.

use throughline_memory::document::{Item, Section};
use throughline_memory::summarise;

/// The id of one order, unique over the life of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(crate) u64);

impl Ticket {
    /// The number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Who asks for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// The person.
    User,
    /// The program.
    Caller,
    /// The model, through a tool.
    Model,
}

/// Who made a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionOrigin {
    /// Code alone.
    Draft,
    /// A model, checked and completed by code.
    Model,
    /// A person edited it, or it comes from elsewhere.
    Given,
}

impl VersionOrigin {
    /// Name in stores, logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Model => "model",
            Self::Given => "given",
        }
    }

    /// The origin of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Draft, Self::Model, Self::Given]
            .into_iter()
            .find(|origin| origin.name() == name)
    }
}

/// A fact that must not be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Its id.
    pub id: String,
    /// Its text, with secrets redacted.
    pub text: String,
    /// Index of the message that it comes from; the number of messages so far for one that comes from no message.
    pub message: usize,
}

impl Pin {
    /// Id of the item that holds the pinned text in a memory.
    #[must_use]
    pub fn item_id(&self) -> String {
        let id = Item::id_for(Section::Corrections, self.message, &self.text);
        format!("{PIN}{id}")
    }
}

/// What ids of pinned facts begin with: they are the only items of the ledger that can be taken out again.
pub const PIN: &str = "pin-";

/// The memory that requests use. One of the same epoch as the one before differs in `at_messages` only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAdoption {
    /// The epoch that begins, or the present one.
    pub epoch: u64,
    /// Number of the memory version; `None` for no memory.
    pub version: Option<u32>,
    /// Messages that it covers.
    pub cover: usize,
    /// Number of messages at its adoption. Reasoning before that index belongs to another prefix.
    pub at_messages: usize,
    /// The messages that are quoted behind the memory, because they are the latest request and are covered: index of
    /// the first, and of the one after the last.
    pub quoted: Option<(usize, usize)>,
}

/// Why no memory came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateFailure {
    /// Its class, for counting.
    pub class: UpdateFailureClass,
    /// In words, without content of the session.
    pub message: String,
    /// How long not to try again, milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// Classes of reasons for which no memory came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateFailureClass {
    /// The calls to the model failed, or its answers were no memory.
    Summary(summarise::Reason),
    /// The compactor ended without a result.
    Unfinished,
    /// No model is set to make memories.
    NoCompactor,
    /// The waiting time of a request ended before the model had answered.
    Timeout,
    /// The model had not answered when the memory was needed.
    NotReady,
    /// The draft cannot be made as small as it must be.
    Draft,
    /// The engine refused the memory, see [`crate::RefusalReason`].
    Refused,
    /// A hook of the program forbade the compaction.
    Vetoed,
    /// Our own error, a panic for example.
    Internal,
    /// A class of a custom compactor, in its own word.
    Other(String),
}

impl UpdateFailureClass {
    /// Name in stores, logs and metrics: `overloaded`, `rate_limit`, `not-ready`, ...
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Summary(reason) => reason.name(),
            Self::Unfinished => "unfinished",
            Self::NoCompactor => "no-compactor",
            Self::Timeout => "timeout",
            Self::NotReady => "not-ready",
            Self::Draft => "draft",
            Self::Refused => "refused",
            Self::Vetoed => "vetoed",
            Self::Internal => "internal",
            Self::Other(word) => word,
        }
    }
}
