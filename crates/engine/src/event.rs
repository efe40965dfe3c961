//! Decisions of the engine, with numbers and reasons: for logs, metrics and users.

mod words;

use std::fmt;

use crate::phase::Phase;
use crate::vocabulary::{Requester, Ticket, UpdateFailure, VersionOrigin};

/// A decision. `Display` writes it as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// A memory was ordered.
    BuildStarted {
        /// The order.
        ticket: Ticket,
        /// Its maker.
        kind: BuildKind,
        /// Why now.
        reason: DueReason,
        /// Messages that it will cover.
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
        /// Messages that it covers.
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
    /// No memory was made.
    Failed {
        /// The order.
        ticket: Ticket,
        /// The maker that failed.
        kind: BuildKind,
        /// Why.
        reason: UpdateFailure,
        /// Failures in a row.
        in_a_row: u32,
    },
    /// A memory arrived too late or for another history.
    Dropped {
        /// The order.
        ticket: Ticket,
        /// Why.
        reason: DropReason,
    },
    /// A memory replaced messages.
    Swapped {
        /// The new epoch.
        epoch: u64,
        /// Why now.
        reason: DueReason,
        /// Number of the memory version.
        version: u32,
        /// Who made it.
        origin: VersionOrigin,
        /// Messages that it covers.
        cover: usize,
        /// Tokens of the context before.
        tokens_before: u64,
        /// Tokens of the context after.
        tokens_after: u64,
        /// How long a request waited for it, milliseconds.
        waited_ms: u64,
        /// The build that the request waited for, if it waited.
        waited_for: Option<BuildKind>,
    },
    /// A swap or build was due and does not happen.
    Skipped {
        /// Why it was due.
        due: DueReason,
        /// Why it does not happen.
        reason: SkipReason,
    },
    /// The draft replaces the model's memory.
    FellBack {
        /// Why.
        reason: UpdateFailure,
    },
    /// Compaction stops until something changes. Reported once.
    Halted(Halt),
    /// Compaction resumes.
    Resumed,
    /// The last swap was undone.
    Undone {
        /// The new epoch.
        epoch: u64,
        /// Tokens of the context after that.
        tokens: u64,
    },
    /// The provider reported a smaller window than the known one.
    WindowLearned {
        /// Tokens.
        window: u64,
    },
    /// The provider reports far fewer tokens than were sent: a server that truncates long prompts at the front. The
    /// report is ignored.
    SeemsCut {
        /// Tokens that were sent, estimated.
        estimated: u64,
        /// Tokens that were reported.
        reported: u64,
    },
    /// The outcome of a requested compaction. Each has one.
    Compaction {
        /// Id of the request.
        id: u64,
        /// The outcome.
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
pub enum DueReason {
    /// The soft mark was passed.
    SoftMark,
    /// The context grew by a step.
    Grown,
    /// The hard mark was passed.
    HardMark,
    /// The threshold of traditional compaction was passed.
    Threshold,
    /// The request is close to its limit of bytes.
    BodyBytes,
    /// The provider refused the request as too large.
    Overflow,
    /// This many turns since the last swap.
    Turns(u32),
    /// This many tool calls since the last swap.
    ToolCalls(u32),
    /// A phase of the work ended.
    Phase(Phase),
    /// The provider's cache has gone cold.
    Cold,
    /// The swap costs less than going without it.
    Pays,
    /// It was requested.
    Asked(Requester),
    /// The caller set a memory.
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
    /// It covers other messages than ordered.
    OtherCover,
    /// It has no content.
    Empty,
    /// It is larger than its limit, and so is its ledger alone.
    OverCap {
        /// Its tokens.
        tokens: u64,
        /// The limit, tokens.
        tokens_max: u64,
    },
}

/// Why a memory was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The history has changed since it was ordered.
    HistoryChanged,
    /// More than one swap has happened since it was ordered.
    TwoSwaps,
    /// The adopted memory covers as much.
    Overtaken,
    /// It was cancelled.
    Cancelled,
    /// It was not ordered.
    NotOrdered,
}

/// Why something that was due does not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// No message can be covered: calls are open, or the latest request is the first message.
    NothingToCover,
    /// The context would shrink by less than the least gain.
    TooLittleGain {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// No memory is ready, and the request may not wait.
    NotReady,
}

/// Why compaction has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// System prompt and tools alone exceed the mark; no compaction can change that.
    Overhead {
        /// Tokens of system prompt and tools.
        overhead: u64,
        /// The largest prompt.
        limit: u64,
    },
    /// A swap would make the context hardly smaller.
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

/// Outcome of a requested compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// It was swapped in.
    Committed {
        /// Number of the memory version.
        version: u32,
    },
    /// The memory is ready for review.
    Prepared,
    /// It joined a running compaction of the same messages.
    Joined,
    /// It did not begin, or its memory was refused.
    Refused {
        /// Why.
        reason: String,
    },
    /// It was cancelled, or the history changed.
    Discarded,
}

impl DueReason {
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

impl fmt::Display for DueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
