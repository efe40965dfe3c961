//! Events as sentences for people: numbers and words of our own, no content of the conversation.

use std::fmt;

use throughline_transcript::text::grouped;

use super::{
    BuildKind, CompactionOutcome, DropReason, DueReason, EngineEvent, Halt, RefusalReason,
    SkipReason, UpdateFailure,
};
use crate::phase::Phase;
use crate::vocabulary::{Requester, VersionOrigin};

/// One sentence for each event. (The chat has shorter ones for the events that its user cares about.)
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
                "{} starts a memory of {}, reading {} of new text: {}",
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
                "{} made a memory of {}: {} in {} ms",
                by(*kind),
                Messages(*cover),
                Tokens(*tokens),
                grouped(*took_ms)
            ),
            Self::Refused {
                ticket: _,
                kind,
                reason,
            } => write!(f, "the memory made by {} is not used: {reason}", by(*kind)),
            Self::Failed {
                ticket: _,
                kind,
                reason,
                in_a_row,
            } => {
                write!(f, "{} made no memory: {}", by(*kind), Failure(reason))?;
                match in_a_row {
                    0 | 1 => Ok(()),
                    times => write!(f, " ({times} times in a row)"),
                }
            }
            Self::Dropped { ticket: _, reason } => {
                write!(f, "a memory is dropped: {reason}")
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
                    "version {version}, made by {}, now covers {}: {} instead of {}, because {}",
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
                "the memory made by code replaces the model's: {}",
                Failure(reason)
            ),
            Self::Halted(halt) => write!(f, "compaction stops until something changes: {halt}"),
            Self::Resumed => f.write_str("something has changed: compaction resumes"),
            Self::Undone { epoch: _, tokens } => write!(
                f,
                "the last swap is undone: the context has {}",
                Tokens(*tokens)
            ),
            Self::WindowLearned { window } => {
                write!(f, "the provider reports a window of {}", Tokens(*window))
            }
            Self::SeemsCut {
                estimated,
                reported,
            } => write!(
                f,
                "the provider counts {} of about {} sent: it seems to truncate long prompts, so its count is not used",
                Tokens(*reported),
                grouped(*estimated)
            ),
            Self::Compaction { id: _, outcome } => write!(f, "requested compaction: {outcome}"),
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSmaller { tokens, covered } => write!(
                f,
                "it has {}, and the messages that it covers have {}",
                Tokens(*tokens),
                grouped(*covered)
            ),
            Self::OtherCover => f.write_str("it covers other messages than ordered"),
            Self::Empty => f.write_str("it is empty"),
            Self::OverCap { tokens, tokens_max } => write!(
                f,
                "it has {}, the limit is {}, and its ledger alone exceeds that",
                Tokens(*tokens),
                grouped(*tokens_max)
            ),
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HistoryChanged => "the conversation has changed since it was ordered",
            Self::TwoSwaps => "more than one swap has happened since it was ordered",
            Self::Overtaken => "the memory in use covers as much",
            Self::Cancelled => "it was cancelled",
            Self::NotOrdered => "it was not ordered",
        })
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToCover => f.write_str("no message can be covered"),
            Self::TooLittleGain { before, after } => write!(
                f,
                "it would leave {} of {}",
                grouped(*after),
                Tokens(*before)
            ),
            Self::NotReady => f.write_str("no memory is ready, and the request may not wait"),
        }
    }
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overhead { overhead, limit } => write!(
                f,
                "system prompt and tools alone take {} of the {} that fit",
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
                "the model failed {in_a_row} times in a row, most recently with: {}",
                Failure(last)
            ),
        }
    }
}

impl fmt::Display for CompactionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Committed { version } => write!(f, "version {version} is swapped in"),
            Self::Prepared => f.write_str("the memory is ready for review"),
            Self::Joined => f.write_str("it joins the compaction that is running"),
            Self::Refused { reason } => write!(f, "not done: {reason}"),
            Self::Discarded => f.write_str("discarded"),
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
            Some(ms) => write!(f, "; no retry within {} ms", grouped(*ms)),
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
fn why(reason: DueReason) -> String {
    match reason {
        DueReason::SoftMark => "the soft mark is passed".to_owned(),
        DueReason::Grown => "the context has grown by a step".to_owned(),
        DueReason::HardMark => "the hard mark is passed".to_owned(),
        DueReason::Threshold => "the threshold is passed".to_owned(),
        DueReason::BodyBytes => "the request is close to its limit of bytes".to_owned(),
        DueReason::Overflow => "the provider refused the request as too large".to_owned(),
        DueReason::Turns(turns) => format!("there were {turns} turns"),
        DueReason::ToolCalls(calls) => format!("there were {calls} tool calls"),
        DueReason::Phase(phase) => match phase {
            Phase::PlanDone => "the plan is done",
            Phase::Commit => "a commit was made",
            Phase::TestsGreen => "tests pass that failed before",
            Phase::TopicShift => "the user changed the topic",
            Phase::Pause => "there was a long pause",
            Phase::Announced => "the program reported the end of a phase",
        }
        .to_owned(),
        DueReason::Cold => "the provider's cache has gone cold".to_owned(),
        DueReason::Pays => "it costs less than no swap".to_owned(),
        DueReason::Asked(by) => match by {
            Requester::User => "the user requested it",
            Requester::Caller => "the program requested it",
            Requester::Model => "the model requested it",
        }
        .to_owned(),
        DueReason::Given => "a memory was given".to_owned(),
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
                reason: DueReason::SoftMark,
                cover: 12,
                tokens: 4_200,
            },
            "a model starts a memory of 12 messages, reading 4,200 tokens of new text: the soft mark is passed",
        );
        check(
            EngineEvent::Built {
                ticket,
                kind: BuildKind::Draft,
                cover: 1,
                tokens: 1,
                took_ms: 3,
            },
            "code made a memory of 1 message: 1 token in 3 ms",
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
            "the memory made by a model is not used: it has 900 tokens, and the messages that it covers have 1,800",
        );
        check(
            EngineEvent::Failed {
                ticket,
                kind: BuildKind::Model,
                reason: failure.clone(),
                in_a_row: 2,
            },
            "a model made no memory: the provider is overloaded; no retry within 30,000 ms (2 times in a row)",
        );
        check(
            EngineEvent::Dropped {
                ticket,
                reason: DropReason::HistoryChanged,
            },
            "a memory is dropped: the conversation has changed since it was ordered",
        );
        check(
            EngineEvent::Swapped {
                epoch: 3,
                reason: DueReason::Phase(Phase::Commit),
                version: 4,
                origin: VersionOrigin::Model,
                cover: 1_000,
                tokens_before: 1_234_567,
                tokens_after: 8_000,
                waited_ms: 12,
                waited_for: Some(BuildKind::Draft),
            },
            "version 4, made by a model, now covers 1,000 messages: 8,000 tokens instead of 1,234,567, because a commit was made; the request waited 12 ms for code",
        );
        check(
            EngineEvent::Skipped {
                due: DueReason::HardMark,
                reason: SkipReason::NothingToCover,
            },
            "no swap, although the hard mark is passed: no message can be covered",
        );
        check(
            EngineEvent::FellBack { reason: quiet },
            "the memory made by code replaces the model's: empty",
        );
        check(
            EngineEvent::Halted(Halt::Failures {
                in_a_row: 3,
                last: failure,
            }),
            "compaction stops until something changes: the model failed 3 times in a row, most recently with: the provider is overloaded; no retry within 30,000 ms",
        );
        check(
            EngineEvent::Halted(Halt::Overhead {
                overhead: 9_000,
                limit: 8_000,
            }),
            "compaction stops until something changes: system prompt and tools alone take 9,000 tokens of the 8,000 that fit",
        );
        check(
            EngineEvent::Resumed,
            "something has changed: compaction resumes",
        );
        check(
            EngineEvent::Undone {
                epoch: 4,
                tokens: 20_000,
            },
            "the last swap is undone: the context has 20,000 tokens",
        );
        check(
            EngineEvent::WindowLearned { window: 32_768 },
            "the provider reports a window of 32,768 tokens",
        );
        check(
            EngineEvent::SeemsCut {
                estimated: 9_000,
                reported: 2_048,
            },
            "the provider counts 2,048 tokens of about 9,000 sent: it seems to truncate long prompts, so its count is not used",
        );
        check(
            EngineEvent::Compaction {
                id: 1,
                outcome: CompactionOutcome::Refused {
                    reason: "nothing can be covered".to_owned(),
                },
            },
            "requested compaction: not done: nothing can be covered",
        );
        check(
            EngineEvent::Compaction {
                id: 1,
                outcome: CompactionOutcome::Committed { version: 2 },
            },
            "requested compaction: version 2 is swapped in",
        );
    }
}
