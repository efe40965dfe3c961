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
    /// The transcript now ends after so many messages: an edit, a rewind.
    Truncated {
        /// Messages that are left, counted over the whole transcript.
        messages: usize,
    },
    /// The transcript is empty again, and so is the memory.
    Cleared,
    /// The caller wants to send a request. It is answered by [`crate::Output::Request`], or by
    /// [`crate::Output::Wait`] and later by a request.
    RequestWanted,
    /// The provider has begun to answer the last request: what stands in it can be read from the provider's cache from
    /// now on, and not sooner. A model that reads the request too is asked then, so that it need not be paid for twice.
    AnswerBegun,
    /// The model has answered the last request, and its answer was appended.
    Answered {
        /// What the provider says that the context took.
        context: Option<ContextSize>,
    },
    /// The provider refused the last request because it is too large.
    Overflowed {
        /// The window that it named.
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
    /// A waiting request has waited as long as it may.
    WaitedEnough,
    /// Somebody asks for a compaction now.
    Compact(Compaction),
    /// Give up what is being built.
    Cancel,
    /// What requests were made with before the last swap, as it was stored: it can be taken back now, in another process
    /// too, and after a later one was taken back. Nothing happens if it does not fit.
    Before(Box<PreviousEpoch>),
    /// Take the last swap back.
    Undo,
    /// Keep a fact in the ledger.
    Pin(Pin),
    /// Let a pinned fact go.
    Unpin {
        /// Its id.
        id: String,
    },
    /// The caller says that a phase of the work has ended.
    PhaseEnded,
    /// The settings have changed; another model may have been chosen.
    Configured(Box<CompactionSettings>),
    /// System prompt, tools or model have changed, so that requests no longer begin as they did. The epoch stays: no
    /// other memory takes the place of the present one.
    FrameChanged,
    /// A memory that was edited by a person or brought from elsewhere takes the place of the one in the requests.
    Given(Box<Memory>),
}

/// A compaction that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// What the outcome is reported under.
    pub id: u64,
    /// What the memory should be about. Used for this memory only.
    pub focus: Option<String>,
    /// Who asks.
    pub by: Requester,
    /// Whether the memory is swapped in.
    pub swapping: Swapping,
}

/// What requests were made with before a swap.
#[derive(Clone, Debug)]
pub struct PreviousEpoch {
    /// The memory of then, if there was one.
    pub version: Option<Version>,
    /// The messages that were quoted behind it, and the index of the first.
    pub quoted: Option<(usize, Vec<Message>)>,
    /// Digest of what it stands for.
    pub chain: Digest,
    /// The messages that the swap covered.
    pub messages: Vec<Message>,
}

/// What becomes of a memory that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swapping {
    /// It is swapped in as soon as it is ready.
    AtOnce,
    /// It is only prepared, to be looked at.
    Preview,
}
