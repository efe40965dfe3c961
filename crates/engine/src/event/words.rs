//! Decisions in plain sentences, for people: numbers and words of our own, nothing of what was said.

use std::fmt;

use throughline_transcript::text::grouped;

use super::{
    BuildKind, CompactionOutcome, DropReason, EngineEvent, Halt, Reason, RefusalReason, SkipReason,
    UpdateFailure,
};
use crate::phase::Phase;
use crate::vocabulary::{Requester, VersionOrigin};

/// Each event has a sentence here. (A chat has shorter ones of its own, for those that its user cares about.)
impl fmt::Display for EngineEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuildStarted {
                ticket: _,
                kind,
                reason,
                cover,
                tokens,
            } => write!(
                f,
                "{} begins a memory of {} with {} of new text: {}",
                by(*kind),
                Messages(*cover),
                Tokens(*tokens),
                why(*reason)
            ),
            Self::Built {
                ticket: _,
                kind,
                cover,
                tokens,
                took_ms,
            } => write!(
                f,
                "{} has made a memory of {}: {} in {} ms",
                by(*kind),
                Messages(*cover),
                Tokens(*tokens),
                grouped(*took_ms)
            ),
            Self::Refused {
                ticket: _,
                kind,
                reason,
            } => write!(
                f,
                "the memory that {} made is not used: {reason}",
                by(*kind)
            ),
            Self::Failed {
                ticket: _,
                kind,
                reason,
                in_a_row,
            } => {
                write!(f, "{} has made no memory: {}", by(*kind), Failure(reason))?;
                match in_a_row {
                    0 | 1 => Ok(()),
                    times => write!(f, " ({times} times in a row)"),
                }
            }
            Self::Dropped { ticket: _, reason } => {
                write!(f, "a memory that was ordered is not used: {reason}")
            }
            Self::Swapped {
                epoch: _,
                reason,
                version,
                origin,
                cover,
                tokens_before,
                tokens_after,
                waited_ms,
                waited_for,
            } => {
                write!(
                    f,
                    "version {version}, made by {}, stands for {} from now on: {} instead of {}, because {}",
                    whose(*origin),
                    Messages(*cover),
                    Tokens(*tokens_after),
                    grouped(*tokens_before),
                    why(*reason)
                )?;
                match waited_for {
                    Some(kind) => write!(
                        f,
                        "; the request waited {} ms for {}",
                        grouped(*waited_ms),
                        by(*kind)
                    ),
                    None => Ok(()),
                }
            }
            Self::Skipped { due, reason } => {
                write!(f, "no swap, although {}: {reason}", why(*due))
            }
            Self::FellBack { reason } => write!(
                f,
                "the memory that code made takes the place of the model's: {}",
                Failure(reason)
            ),
            Self::Halted(halt) => write!(f, "nothing is compacted until something changes: {halt}"),
            Self::Resumed => f.write_str("something has changed: compaction goes on"),
            Self::Undone { epoch: _, tokens } => write!(
                f,
                "the last swap is taken back: the context has {}",
                Tokens(*tokens)
            ),
            Self::WindowLearned { window } => write!(
                f,
                "the provider says that the window has {}",
                Tokens(*window)
            ),
            Self::SeemsCut {
                estimated,
                reported,
            } => write!(
                f,
                "the provider counts {} where about {} were sent: it seems to cut long prompts, and its count is not used",
                Tokens(*reported),
                grouped(*estimated)
            ),
            Self::Compaction { id: _, outcome } => write!(f, "what was asked for: {outcome}"),
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSmaller { tokens, covered } => write!(
                f,
                "it has {}, and what it stands for has {}",
                Tokens(*tokens),
                grouped(*covered)
            ),
            Self::OtherCover => f.write_str("it stands for other messages than were asked for"),
            Self::Empty => f.write_str("it says nothing"),
            Self::OverCap { tokens, tokens_max } => write!(
                f,
                "it has {} and may have {}; what must stay in it is too much",
                Tokens(*tokens),
                grouped(*tokens_max)
            ),
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HistoryChanged => "the conversation that it was made of has changed",
            Self::TwoSwaps => "more than one swap has come since",
            Self::Overtaken => "the memory in use stands for as much",
            Self::Cancelled => "it was cancelled",
            Self::NotOrdered => "nobody waits for it",
        })
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToCover => {
                f.write_str("there is no message that a memory could stand for")
            }
            Self::TooLittleGain { before, after } => write!(
                f,
                "it would leave {} of {}",
                grouped(*after),
                Tokens(*before)
            ),
            Self::NotReady => f.write_str("no memory is ready, and waiting is not allowed"),
        }
    }
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overhead { overhead, limit } => write!(
                f,
                "system prompt and tools alone have {} of the {} that fit",
                Tokens(*overhead),
                grouped(*limit)
            ),
            Self::NoGain { before, after } => write!(
                f,
                "a swap would leave {} of {}",
                grouped(*after),
                Tokens(*before)
            ),
            Self::Failures { in_a_row, last } => write!(
                f,
                "the model has failed {in_a_row} times in a row, at last with: {}",
                Failure(last)
            ),
        }
    }
}

impl fmt::Display for CompactionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Committed { version } => write!(f, "version {version} is swapped in"),
            Self::Prepared => f.write_str("the memory is ready to be looked at"),
            Self::Joined => f.write_str("another memory for the same is being made, and counts"),
            Self::Refused { reason } => write!(f, "not done: {reason}"),
            Self::Discarded => f.write_str("given up"),
        }
    }
}

struct Failure<'f>(&'f UpdateFailure);

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UpdateFailure {
            class,
            message,
            retry_after_ms,
        } = self.0;
        match message.is_empty() {
            true => f.write_str(class.as_str())?,
            false => f.write_str(message)?,
        }
        match retry_after_ms {
            Some(ms) => write!(f, "; not again before {} ms", grouped(*ms)),
            None => Ok(()),
        }
    }
}

fn by(kind: BuildKind) -> &'static str {
    match kind {
        BuildKind::Draft => "code",
        BuildKind::Model => "a model",
    }
}

fn whose(origin: VersionOrigin) -> &'static str {
    match origin {
        VersionOrigin::Draft => "code",
        VersionOrigin::Model => "a model",
        VersionOrigin::Given => "a person",
    }
}

/// The reason as the end of a sentence.
fn why(reason: Reason) -> String {
    match reason {
        Reason::SoftMark => "the soft mark is passed".to_owned(),
        Reason::Grown => "the context has grown by a step".to_owned(),
        Reason::HardMark => "the hard mark is passed".to_owned(),
        Reason::Threshold => "the threshold is passed".to_owned(),
        Reason::BodyBytes => "the request has nearly too many bytes".to_owned(),
        Reason::Overflow => "the provider has refused the request as too large".to_owned(),
        Reason::Turns(turns) => format!("there were {turns} turns"),
        Reason::ToolCalls(calls) => format!("there were {calls} calls of tools"),
        Reason::Phase(phase) => match phase {
            Phase::PlanDone => "the plan is done",
            Phase::Commit => "a commit was made",
            Phase::TestsGreen => "tests pass that had failed",
            Phase::TopicShift => "the user speaks of something else",
            Phase::Pause => "nothing was said for a long time",
            Phase::Announced => "a phase of the work was said to have ended",
        }
        .to_owned(),
        Reason::Cold => "the provider's cache has gone cold".to_owned(),
        Reason::Pays => "it costs less than going on".to_owned(),
        Reason::Asked(by) => match by {
            Requester::User => "the user asked for it",
            Requester::Caller => "the program asked for it",
            Requester::Model => "the model asked for it",
        }
        .to_owned(),
        Reason::Given => "a memory was given".to_owned(),
    }
}

struct Messages(usize);

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 message"),
            count => write!(f, "{} messages", grouped(count as u64)),
        }
    }
}

struct Tokens(u64);

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 token"),
            count => write!(f, "{} tokens", grouped(count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{Ticket, UpdateFailureClass};

    #[track_caller]
    fn check(event: EngineEvent, expected: &str) {
        assert_eq!(event.to_string(), expected);
    }

    #[test]
    fn events_are_plain_sentences() {
        let ticket = Ticket(1);
        let failure = UpdateFailure {
            class: UpdateFailureClass::Other("overloaded".to_owned()),
            message: "the provider is overloaded".to_owned(),
            retry_after_ms: Some(30_000),
        };
        let quiet = UpdateFailure {
            class: UpdateFailureClass::Other("empty".to_owned()),
            message: String::new(),
            retry_after_ms: None,
        };
        check(
            EngineEvent::BuildStarted {
                ticket,
                kind: BuildKind::Model,
                reason: Reason::SoftMark,
                cover: 12,
                tokens: 4_200,
            },
            "a model begins a memory of 12 messages with 4,200 tokens of new text: the soft mark is passed",
        );
        check(
            EngineEvent::Built {
                ticket,
                kind: BuildKind::Draft,
                cover: 1,
                tokens: 1,
                took_ms: 3,
            },
            "code has made a memory of 1 message: 1 token in 3 ms",
        );
        check(
            EngineEvent::Refused {
                ticket,
                kind: BuildKind::Model,
                reason: RefusalReason::NotSmaller {
                    tokens: 900,
                    covered: 1_800,
                },
            },
            "the memory that a model made is not used: it has 900 tokens, and what it stands for has 1,800",
        );
        check(
            EngineEvent::Failed {
                ticket,
                kind: BuildKind::Model,
                reason: failure.clone(),
                in_a_row: 2,
            },
            "a model has made no memory: the provider is overloaded; not again before 30,000 ms (2 times in a row)",
        );
        check(
            EngineEvent::Dropped {
                ticket,
                reason: DropReason::HistoryChanged,
            },
            "a memory that was ordered is not used: the conversation that it was made of has changed",
        );
        check(
            EngineEvent::Swapped {
                epoch: 3,
                reason: Reason::Phase(Phase::Commit),
                version: 4,
                origin: VersionOrigin::Model,
                cover: 1_000,
                tokens_before: 1_234_567,
                tokens_after: 8_000,
                waited_ms: 12,
                waited_for: Some(BuildKind::Draft),
            },
            "version 4, made by a model, stands for 1,000 messages from now on: 8,000 tokens instead of 1,234,567, because a commit was made; the request waited 12 ms for code",
        );
        check(
            EngineEvent::Skipped {
                due: Reason::HardMark,
                reason: SkipReason::NothingToCover,
            },
            "no swap, although the hard mark is passed: there is no message that a memory could stand for",
        );
        check(
            EngineEvent::FellBack { reason: quiet },
            "the memory that code made takes the place of the model's: empty",
        );
        check(
            EngineEvent::Halted(Halt::Failures {
                in_a_row: 3,
                last: failure,
            }),
            "nothing is compacted until something changes: the model has failed 3 times in a row, at last with: the provider is overloaded; not again before 30,000 ms",
        );
        check(
            EngineEvent::Halted(Halt::Overhead {
                overhead: 9_000,
                limit: 8_000,
            }),
            "nothing is compacted until something changes: system prompt and tools alone have 9,000 tokens of the 8,000 that fit",
        );
        check(
            EngineEvent::Resumed,
            "something has changed: compaction goes on",
        );
        check(
            EngineEvent::Undone {
                epoch: 4,
                tokens: 20_000,
            },
            "the last swap is taken back: the context has 20,000 tokens",
        );
        check(
            EngineEvent::WindowLearned { window: 32_768 },
            "the provider says that the window has 32,768 tokens",
        );
        check(
            EngineEvent::SeemsCut {
                estimated: 9_000,
                reported: 2_048,
            },
            "the provider counts 2,048 tokens where about 9,000 were sent: it seems to cut long prompts, and its count is not used",
        );
        check(
            EngineEvent::Compaction {
                id: 1,
                outcome: CompactionOutcome::Refused {
                    reason: "nothing can be covered".to_owned(),
                },
            },
            "what was asked for: not done: nothing can be covered",
        );
        check(
            EngineEvent::Compaction {
                id: 1,
                outcome: CompactionOutcome::Committed { version: 2 },
            },
            "what was asked for: version 2 is swapped in",
        );
    }
}
