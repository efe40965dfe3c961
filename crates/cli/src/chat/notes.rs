//! What the session does in the background, in a line each.

use std::time::Duration;

use throughline::SessionEvent;
use throughline::engine::{BuildKind, EngineEvent, Halt, RefusalReason};

use crate::words;

/// The line for an event, if people want to know of it.
pub(crate) fn line(event: &SessionEvent) -> Option<String> {
    match event {
        SessionEvent::Engine(event) => of_engine(event),
        SessionEvent::NotStored(error) => Some(format!(
            "not stored yet; retried with the next change: {error}"
        )),
        _ => None,
    }
}

fn of_engine(event: &EngineEvent) -> Option<String> {
    Some(match event {
        // What code makes is there in milliseconds.
        EngineEvent::BuildStarted {
            kind: BuildKind::Model,
            cover,
            ..
        } => format!("building a memory of {}", words::counted(*cover, "message")),
        EngineEvent::Built {
            kind: BuildKind::Model,
            cover,
            tokens,
            took_ms,
            ..
        } => {
            let took = Duration::from_millis(*took_ms);
            // Less than a second is no news.
            let took = match took.as_secs() {
                0 => String::new(),
                _ => format!(", {}", words::duration(took)),
            };
            format!(
                "memory ready: {} in {} tokens{took}",
                words::counted(*cover, "message"),
                words::number(*tokens),
            )
        }
        EngineEvent::Swapped {
            cover,
            tokens_before,
            tokens_after,
            waited_ms,
            waited_for,
            ..
        } => {
            let waited = words::duration(Duration::from_millis(*waited_ms));
            let wait = match (waited_ms, waited_for) {
                (_, Some(BuildKind::Model)) => format!("waited {waited} for a model"),
                (0, _) | (_, None) => "nothing waited".to_owned(),
                (_, Some(BuildKind::Draft)) => format!("waited {waited}"),
            };
            format!(
                "memory swapped in: {} -> {} tokens, {} covered; {wait}",
                words::number(*tokens_before),
                words::number(*tokens_after),
                words::counted(*cover, "message"),
            )
        }
        EngineEvent::Refused {
            kind: BuildKind::Model,
            reason,
            ..
        } => format!("a memory is not used: {}", refused(reason)),
        EngineEvent::Failed {
            kind: BuildKind::Model,
            reason,
            ..
        } => format!("no memory from the model: {}", reason.message),
        EngineEvent::FellBack { reason } => {
            format!("using the automatic memory instead: {}", reason.message)
        }
        EngineEvent::Halted(halt) => format!("no more compaction for now: {}", halted(halt)),
        EngineEvent::Resumed => "compaction resumes".to_owned(),
        EngineEvent::Undone { tokens, .. } => format!(
            "the last swap is undone: {} tokens now",
            words::number(*tokens)
        ),
        EngineEvent::WindowLearned { window } => format!(
            "the provider's window is smaller than assumed: {} tokens",
            words::number(*window)
        ),
        EngineEvent::SeemsCut {
            estimated,
            reported,
        } => format!(
            "the server seems to cut long prompts: about {} tokens were sent, it counts {}",
            words::number(*estimated),
            words::number(*reported)
        ),
        _ => return None,
    })
}

fn refused(reason: &RefusalReason) -> String {
    match reason {
        RefusalReason::NotSmaller { tokens, covered } => format!(
            "it has {} tokens, what it covers {}",
            words::number(*tokens),
            words::number(*covered)
        ),
        RefusalReason::Empty => "it says nothing".to_owned(),
        RefusalReason::OverCap { tokens, tokens_max } => format!(
            "it has {} tokens, and may have {}",
            words::number(*tokens),
            words::number(*tokens_max)
        ),
        _ => "it represents other messages".to_owned(),
    }
}

fn halted(halt: &Halt) -> String {
    match halt {
        Halt::Overhead { overhead, limit } => format!(
            "system prompt and tools alone take {} of {} tokens",
            words::number(*overhead),
            words::number(*limit)
        ),
        Halt::NoGain { before, after } => format!(
            "it hardly helped, {} -> {} tokens",
            words::number(*before),
            words::number(*after)
        ),
        Halt::Failures { in_a_row, last } => {
            format!("{in_a_row} failures in a row, the last: {}", last.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use throughline::engine::{DueReason, VersionOrigin};

    use super::*;

    fn swapped(waited_ms: u64, waited_for: Option<BuildKind>) -> SessionEvent {
        SessionEvent::Engine(EngineEvent::Swapped {
            epoch: 1,
            reason: DueReason::HardMark,
            version: 1,
            origin: VersionOrigin::Model,
            cover: 24,
            tokens_before: 12_480,
            tokens_after: 4_210,
            waited_ms,
            waited_for,
        })
    }

    #[test]
    fn a_swap_says_what_it_did_and_whether_anything_waited() {
        let check = |event: SessionEvent, expected: &str| {
            assert_eq!(line(&event).as_deref(), Some(expected));
        };
        let swap = "memory swapped in: 12,480 -> 4,210 tokens, 24 messages covered; ";
        check(swapped(0, None), &format!("{swap}nothing waited"));
        check(
            swapped(2_100, Some(BuildKind::Model)),
            &format!("{swap}waited 2.1 s for a model"),
        );
        check(
            swapped(3, Some(BuildKind::Draft)),
            &format!("{swap}waited 3 ms"),
        );
    }

    #[test]
    fn what_is_there_at_once_is_not_told() {
        assert_eq!(
            line(&SessionEvent::Engine(EngineEvent::Compaction {
                id: 1,
                outcome: throughline::engine::CompactionOutcome::Prepared
            })),
            None
        );
    }
}
