//! What can happen to a session.

use throughline_memory::document::Memory;
use throughline_transcript::digest::Digest;
use throughline_transcript::message::Message;
use throughline_transcript::usage::ContextSize;

use crate::settings::CompactionSettings;
use crate::version::Version;
use crate::vocabulary::{Pin, Requester, Ticket, UpdateFailure};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// What every request carries besides memory and messages has changed: system prompt, tools, settings.
    Overhead {
        /// Tokens, estimated.
        tokens: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A message was added to the end of the transcript, in the form in which it goes into requests.
    Appended(Message),
    /// The transcript was cut back: an edit, a rewind.
    Truncated {
        /// Messages that are left, counted over the whole transcript.
        messages: usize,
    },
    /// The transcript is empty again, and so is the memory.
    Cleared,
    /// The caller wants to send a request. It is answered by [`crate::Output::Request`], or by
    /// [`crate::Output::Wait`] and later by a request.
    RequestWanted,
    /// The provider has begun to answer the last request: from now on the provider's cache holds it. An update
    /// that reads the same request starts now, so that the request is not paid twice.
    AnswerBegun,
    /// The model has answered the last request, and its answer was appended.
    Answered {
        /// The size of the context, as the provider reports it.
        context: Option<ContextSize>,
    },
    /// The provider refused the last request as too large.
    Overflowed {
        /// The window that it reported.
        window: Option<u64>,
    },
    /// A draft is ready.
    Drafted {
        /// The order that it answers.
        ticket: Ticket,
        /// The memory, or why there is none.
        result: Result<Memory, UpdateFailure>,
    },
    /// The model's memory is ready.
    Updated {
        /// The order that it answers.
        ticket: Ticket,
        /// The memory, or why there is none.
        result: Result<Memory, UpdateFailure>,
    },
    /// The time limit of a waiting request has passed.
    WaitedEnough,
    /// A compaction is requested.
    Compact(Compaction),
    /// Cancel what is being built.
    Cancel,
    /// What requests were made with before the last swap, as it was stored: the swap can then be undone, in
    /// another process too, and after the undo of a later swap. It is ignored if it does not fit.
    Before(Box<PreviousEpoch>),
    /// Undo the last swap.
    Undo,
    /// Keep a fact in the ledger.
    Pin(Pin),
    /// Remove a pinned fact.
    Unpin {
        /// Its id.
        id: String,
    },
    /// The caller says that a phase of the work has ended.
    PhaseEnded,
    /// The settings have changed; another model may have been chosen.
    Configured(Box<CompactionSettings>),
    /// System prompt, tools or model have changed, so requests have another beginning. The epoch stays, because
    /// the memory does.
    FrameChanged,
    /// A memory that a person edited, or that comes from elsewhere, replaces the one in the requests.
    Given(Box<Memory>),
}

/// A requested compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Its id; the outcome is reported with it.
    pub id: u64,
    /// Topic to focus on, for this memory only.
    pub focus: Option<String>,
    /// Who requests it.
    pub by: Requester,
    /// Whether the memory is swapped in.
    pub swapping: SwapTiming,
}

/// What requests were made with before a swap.
#[derive(Clone, Debug)]
pub struct PreviousEpoch {
    /// The memory before the swap, if there was one.
    pub version: Option<Version>,
    /// The messages that were quoted behind it, and the index of the first.
    pub quoted: Option<(usize, Vec<Message>)>,
    /// Digest of what it covers.
    pub chain: Digest,
    /// The messages that the swap covered.
    pub messages: Vec<Message>,
}

/// What happens to the memory of a requested compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapTiming {
    /// It is swapped in as soon as it is ready.
    AtOnce,
    /// It is only prepared for review.
    Preview,
}
