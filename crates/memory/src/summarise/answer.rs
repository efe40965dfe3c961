//! The contents of a model's answer after parsing.

use crate::document::{Entry, Status};

/// The form that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnswerForm {
    /// A list of items.
    Items,
    /// A list of edits.
    Edits,
    /// The six headings.
    Markdown,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerContent {
    /// A whole memory.
    Whole(Vec<NewItem>),
    /// A memory where edits were asked for: it may hold only what is new, so nothing is dropped because of it.
    Additions(Vec<NewItem>),
    /// Changes.
    Edits(Vec<Change>),
}

/// One item, as a model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// What it says.
    pub entry: Entry,
    /// Number of the message that says it, counted from 1, where the model names one.
    pub message: Option<u64>,
    /// Whether the matter is open, as far as the form can say it.
    pub status: Status,
    /// The line that it was, in Markdown: an item that is repeated word for word is recognised by it.
    pub line: Option<String>,
}

/// One change, as a model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new item.
    Add(NewItem),
    /// Other words for an item.
    Replace {
        /// The item.
        id: String,
        /// The words.
        text: String,
        /// What the section has besides the text.
        detail: Option<String>,
        /// What limits a decision.
        limit: Option<String>,
    },
    /// The matter is done or answered.
    Resolve {
        /// The item.
        id: String,
        /// How.
        resolution: Option<String>,
    },
    /// Another item replaces it.
    Supersede {
        /// The item.
        id: String,
        /// The item that replaces it.
        by: String,
    },
    /// The item is not needed any more.
    Drop {
        /// The item.
        id: String,
        /// Why.
        reason: String,
    },
}

/// Why an answer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    /// The JSON stops in the middle.
    CutOff,
    /// It begins like JSON and is none.
    InvalidJson { reason: String },
    /// It is JSON of another shape.
    WrongShape { path: String, reason: String },
    /// There is nothing in it that the form has.
    NoStructure,
}

impl NewItem {
    /// An item that holds.
    pub(super) fn new(entry: Entry) -> Self {
        Self {
            entry,
            message: None,
            status: Status::Active,
            line: None,
        }
    }
}
