//! The outcome of an order.

use std::collections::BTreeMap;

use super::reason::{FailureClass, Fault, ModelSlot, Reason};
use crate::document::{Memory, Section};
use crate::update;
use crate::verify::UnsupportedClaim;

/// A memory, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// The memory. It covers what the draft covers, has the complete ledger and keeps to its size.
    pub memory: Memory,
    /// Who made it.
    pub made_by: Maker,
    /// What was put back, taken out and refused on the way, in the order in which it happened. It holds ids,
    /// sections and numbers, invented identifiers, and what a parser complained about, without secrets.
    pub findings: Vec<Finding>,
    /// Requests that were made, those that failed included.
    pub asks: u32,
    /// Output of all answers, also of those that were refused; tokens.
    pub output_tokens: u64,
    /// Parts that the messages were read in: 1 unless they did not fit the model's window.
    pub parts: u32,
}

/// Who made a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// A model, checked and repaired by code.
    Model {
        /// Which one; the last, where several answered.
        slot: ModelSlot,
        /// Requests for the last part.
        attempts: u32,
    },
    /// Code: it is the draft.
    Draft {
        /// Why no model's memory was used: what went wrong with every request, then what ended the job.
        reasons: Vec<Reason>,
    },
}

/// Something that code did to what a model made, or refused of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// An answer was refused as a whole.
    AnswerRefused {
        /// Number of the request.
        ask: u32,
        /// Why.
        unfit: Fault,
    },
    /// A call failed.
    CallFailed {
        /// Number of the request.
        ask: u32,
        /// How.
        class: FailureClass,
    },
    /// One edit was refused; the others were applied.
    EditRefused {
        /// Its index in the answer.
        edit: usize,
        /// Why.
        refusal: update::Refusal,
    },
    /// An item was put in from the draft.
    PutBack {
        /// The item.
        id: String,
        /// Its section.
        section: Section,
        /// What was missing.
        why: Gap,
    },
    /// An item, or a part of one, was taken out.
    TakenOut {
        /// Id of the item.
        id: String,
        /// Its section.
        section: Section,
        /// What was wrong with it.
        why: Flaw,
        /// Whether the rest of the item is kept.
        is_rest_kept: bool,
    },
    /// A step that claims to be requested was not: it is now implied.
    NotAskedFor {
        /// Id of the item.
        id: String,
    },
    /// Items were left out so that the memory keeps to its size.
    LeftOut {
        /// How many, by section.
        sections: BTreeMap<Section, usize>,
    },
    /// The ledger alone is more than the memory may have, and not all of it could stay.
    LedgerCut {
        /// Items of the ledger that were left out.
        items: usize,
    },
}

/// What was missing of a model's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// An item of the ledger.
    Ledger,
    /// The latest request of the user.
    LatestRequest,
    /// An error.
    Error,
    /// The state of things.
    State,
    /// An identifier: a file, a value, a name.
    Identifier,
}

/// What was wrong with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It says what the conversation does not say.
    Unsupported(UnsupportedClaim),
    /// It puts in quotation marks what is not in the conversation.
    InventedQuote,
    /// Only a tool said so, and here it would read like a wish of the user or a decision.
    ToolAsksForIt,
    /// It would be part of the ledger, which only code writes.
    LedgerIsClosed,
    /// It is a request that was answered already.
    Answered,
    /// It repeats the text of an error that the provider gave in place of an answer.
    ErrorText,
}
