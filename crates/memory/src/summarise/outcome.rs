//! What became of an order.

use std::collections::BTreeMap;

use super::ask::{FailureClass, ModelSlot};
use super::guard::Unfit;
use crate::document::{Memory, Section};
use crate::update;
use crate::verify::Unsupported;

/// A memory, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The memory. It covers what the draft covers, has the complete ledger and keeps to its size.
    pub memory: Memory,
    /// Who made it.
    pub made_by: MadeBy,
    /// What was put back, taken out and refused on the way, in the order in which it happened. It holds ids,
    /// sections and numbers, identifiers that nobody said, and what a parser complained about, without secrets.
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
pub enum MadeBy {
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

/// Why a memory was not made by a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// There is nothing to read.
    #[error("there are no new messages")]
    NothingNew,
    /// An answer was refused.
    #[error("answer {ask} ({slot:?}) was refused: {unfit}")]
    Refused {
        /// Number of the request.
        ask: u32,
        /// Which model.
        slot: ModelSlot,
        /// Why.
        unfit: Unfit,
    },
    /// A call failed.
    #[error("request {ask} ({slot:?}) failed: {}", class.name())]
    Failed {
        /// Number of the request.
        ask: u32,
        /// Which model.
        slot: ModelSlot,
        /// How.
        class: FailureClass,
    },
    /// Not even a small part of the messages fits what the model can read.
    #[error(
        "the model reads {input_tokens_max} tokens, which leaves too little for the conversation"
    )]
    WindowTooSmall {
        /// What it can read, tokens.
        input_tokens_max: usize,
    },
    /// The messages would need more requests than are allowed.
    #[error("the messages need more than {asks_max} requests")]
    TooManyParts {
        /// How many are allowed.
        asks_max: u32,
    },
    /// A prompt could not be rendered.
    #[error("{reason}")]
    Prompt {
        /// File, line and what is wrong.
        reason: String,
    },
}

impl Reason {
    /// A short word for it in events and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NothingNew => "nothing_new",
            Self::Refused { unfit, .. } => unfit.name(),
            Self::Failed { class, .. } => class.name(),
            Self::WindowTooSmall { .. } => "window_too_small",
            Self::TooManyParts { .. } => "too_many_parts",
            Self::Prompt { .. } => "prompt",
        }
    }
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
        unfit: Unfit,
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
        why: PutBack,
    },
    /// An item, or a part of one, was taken out.
    TakenOut {
        /// Id of the item.
        id: String,
        /// Its section.
        section: Section,
        /// What was wrong with it.
        why: TakenOut,
        /// Whether the rest of the item stands.
        is_rest_kept: bool,
    },
    /// A step that is given as asked for was not: it stands as implied.
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
pub enum PutBack {
    /// An item of the ledger.
    Ledger,
    /// The latest request of the user.
    LatestRequest,
    /// An error.
    Error,
    /// Where things stand.
    State,
    /// An identifier: a file, a value, a name.
    Identifier,
}

/// What was wrong with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenOut {
    /// It says what the conversation does not say.
    Unsupported(Unsupported),
    /// It puts in quotation marks what nobody said.
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
