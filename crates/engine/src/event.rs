//! What the engine decided, with numbers and reasons: for logs, metrics and whoever watches.

mod words;

use std::fmt;

use crate::phase::Phase;
use crate::vocabulary::{Requester, Ticket, UpdateFailure, VersionOrigin};

/// A decision. Written out, it is a plain sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// A memory was ordered.
    BuildStarted {
        /// The order.
        ticket: Ticket,
        /// Who makes it.
        kind: BuildKind,
        /// Why now.
        reason: Reason,
        /// Messages that it will stand for.
        cover: usize,
        /// Tokens of the new messages that it reads.
        tokens: u64,
    },
    /// A memory is ready.
    Built {
        /// The order.
        ticket: Ticket,
        /// Who made it.
        kind: BuildKind,
        /// Messages that it stands for.
        cover: usize,
        /// Its tokens.
        tokens: u64,
        /// How long it took, milliseconds.
        took_ms: u64,
    },
    /// A memory was made but is not good enough to be used.
    Refused {
        /// The order.
        ticket: Ticket,
        /// Who made it.
        kind: BuildKind,
        /// Why.
        reason: RefusalReason,
    },
    /// No memory came.
    Failed {
        /// The order.
        ticket: Ticket,
        /// Who was asked.
        kind: BuildKind,
        /// Why.
        reason: UpdateFailure,
        /// Failures in a row.
        in_a_row: u32,
    },
    /// A memory came too late or for another history.
    Dropped {
        /// The order.
        ticket: Ticket,
        /// Why.
        reason: DropReason,
    },
    /// A memory has taken the place of messages.
    Swapped {
        /// The epoch that begins.
        epoch: u64,
        /// Why now.
        reason: Reason,
        /// Number of the memory version.
        version: u32,
        /// Who made it.
        origin: VersionOrigin,
        /// Messages that it stands for.
        cover: usize,
        /// Tokens of the context before.
        tokens_before: u64,
        /// Tokens of the context after.
        tokens_after: u64,
        /// How long a request waited for it, milliseconds.
        waited_ms: u64,
        /// What it was waited for, if it was.
        waited_for: Option<BuildKind>,
    },
    /// A swap or build was due, but does not happen.
    Skipped {
        /// Why it was due.
        due: Reason,
        /// Why it does not happen.
        reason: SkipReason,
    },
    /// The draft takes the place of the model's memory.
    FellBack {
        /// Why.
        reason: UpdateFailure,
    },
    /// Nothing is compacted from now on, until something changes. Said once.
    Halted(Halt),
    /// Compaction goes on.
    Resumed,
    /// The last swap was taken back.
    Undone {
        /// The epoch that begins.
        epoch: u64,
        /// Tokens of the context after that.
        tokens: u64,
    },
    /// The provider told of a smaller window than was known.
    WindowLearned {
        /// Tokens.
        window: u64,
    },
    /// The provider reports far fewer tokens than were sent: a server that cuts the front of long prompts. The report is
    /// not believed.
    SeemsCut {
        /// Tokens that were sent, estimated.
        estimated: u64,
        /// Tokens that were reported.
        reported: u64,
    },
    /// What became of a compaction that somebody asked for. Each has one outcome.
    Compaction {
        /// The id that it was asked under.
        id: u64,
        /// What became of it.
        outcome: CompactionOutcome,
    },
}

/// Who makes a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuildKind {
    /// Code: some milliseconds, no network.
    Draft,
    /// A model.
    Model,
}

/// Why a memory is built or swapped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The soft mark was passed.
    SoftMark,
    /// The context has grown by a step.
    Grown,
    /// The hard mark was passed.
    HardMark,
    /// The threshold of traditional compaction was passed.
    Threshold,
    /// The request has nearly too many bytes.
    BodyBytes,
    /// The provider refused the request as too large.
    Overflow,
    /// So many turns since the last swap.
    Turns(u32),
    /// So many calls of tools since the last swap.
    ToolCalls(u32),
    /// A phase of the work has ended.
    Phase(Phase),
    /// The provider's cache has gone cold.
    Cold,
    /// It costs less than going on.
    Pays,
    /// Somebody asked for it.
    Asked(Requester),
    /// A memory was given.
    Given,
}

/// Why a memory is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// It is not smaller than what it covers.
    NotSmaller {
        /// Its tokens.
        tokens: u64,
        /// Tokens of what it covers.
        covered: u64,
    },
    /// It stands for other messages than were asked for.
    OtherCover,
    /// It says nothing.
    Empty,
    /// It is larger than it may be, and its ledger alone is.
    OverCap {
        /// Its tokens.
        tokens: u64,
        /// What it may have.
        tokens_max: u64,
    },
}

/// Why a memory was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The history that it was made of is not the history any more.
    HistoryChanged,
    /// More than one swap has happened since it was ordered.
    TwoSwaps,
    /// What was adopted since covers as much.
    Overtaken,
    /// It was cancelled.
    Cancelled,
    /// Nobody ordered it.
    NotOrdered,
}

/// Why something that was due does not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// No message can be covered: calls are open, or the latest request is the first message.
    NothingToCover,
    /// The context would not become smaller by the least that is worth it.
    TooLittleGain {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// No memory is ready, and waiting is not allowed.
    NotReady,
}

/// Why compaction has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// System prompt and tools alone are above the mark: no compaction can change that.
    Overhead {
        /// Tokens of system prompt and tools.
        overhead: u64,
        /// The largest prompt.
        limit: u64,
    },
    /// A swap made the context hardly smaller.
    NoGain {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// The model failed too often in a row.
    Failures {
        /// How often.
        in_a_row: u32,
        /// The last failure.
        last: UpdateFailure,
    },
}

/// What became of a compaction that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// It was swapped in.
    Committed {
        /// Number of the memory version.
        version: u32,
    },
    /// The memory is ready to be looked at.
    Prepared,
    /// Another one for the same is running; that one counts.
    Joined,
    /// It was not begun, or its memory was no good.
    Refused {
        /// Why.
        reason: String,
    },
    /// It was given up: cancelled, or the history changed.
    Discarded,
}

impl Reason {
    /// Name in logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SoftMark => "soft-mark",
            Self::Grown => "grown",
            Self::HardMark => "hard-mark",
            Self::Threshold => "threshold",
            Self::BodyBytes => "body-bytes",
            Self::Overflow => "overflow",
            Self::Turns(_) => "turns",
            Self::ToolCalls(_) => "tool-calls",
            Self::Phase(_) => "phase",
            Self::Cold => "cold-cache",
            Self::Pays => "pays",
            Self::Asked(Requester::User) => "asked-by-user",
            Self::Asked(Requester::Caller) => "asked-by-caller",
            Self::Asked(Requester::Model) => "asked-by-model",
            Self::Given => "given",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
