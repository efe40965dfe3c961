//! Compactions that the user, the program or the model requests.

use std::sync::Arc;

use super::Engine;
use super::build::TailSize;
use crate::budget::Time;
use crate::event::{CompactionOutcome, DropReason, DueReason, EngineEvent};
use crate::input::{Compaction, SwapTiming};
use crate::settings::CompactorChoice;
use crate::version::Version;
use crate::vocabulary::{Ticket, VersionOrigin};

/// A compaction that was requested and is not finished.
#[derive(Clone, Debug)]
pub(super) struct PendingCompaction {
    compaction: Compaction,
    /// The order whose memory is waited for.
    ticket: Ticket,
}

impl Engine {
    pub(super) fn compaction_wanted(&mut self, now: Time, compaction: Compaction) {
        let id = compaction.id;
        let outcome = match &self.pending {
            Some(pending)
                if compaction.swapping == pending.compaction.swapping
                    && (compaction.focus.is_none()
                        || compaction.focus == pending.compaction.focus) =>
            {
                CompactionOutcome::Joined
            }
            Some(_) => CompactionOutcome::Refused {
                reason: "another compaction is running".to_owned(),
            },
            None => match self.begin_pending(now, compaction) {
                None => return,
                Some(outcome) => outcome,
            },
        };
        self.event(EngineEvent::Compaction { id, outcome });
    }

    /// Begins a compaction; gives its outcome if that is known at once.
    fn begin_pending(&mut self, now: Time, compaction: Compaction) -> Option<CompactionOutcome> {
        let by = compaction.by;
        if compaction.focus.is_none() {
            if compaction.swapping == SwapTiming::AtOnce
                && let Some(version) = self.prepared()
            {
                return Some(self.adopt_requested(&version, DueReason::Asked(by)));
            }
            // The running build is what the request asks for.
            if let Some(running) = self.builds.updating().or(self.builds.drafting()) {
                let ticket = running.ticket;
                self.pending = Some(PendingCompaction { compaction, ticket });
                return None;
            }
        }
        let gain_max = self.gain_of(self.cut(TailSize::Nothing));
        if gain_max == 0 {
            return Some(CompactionOutcome::Refused {
                reason: "there is nothing to compact".to_owned(),
            });
        }
        // Who asks wants it smaller: the usual tail is kept only if that leaves something to cover.
        let keeping = [TailSize::Usual, TailSize::Least]
            .into_iter()
            .find(|keeping| self.gain_of(self.cut(*keeping)) >= gain_max / 4)
            .unwrap_or(TailSize::Nothing);
        self.give_up_builds(DropReason::Cancelled);
        // An earlier draft of the same cover, or one without the focus, does not answer the request.
        self.memories.forget_draft();
        let focus = compaction.focus.clone();
        self.order(now, DueReason::Asked(by), keeping, focus);
        let Some(running) = self.builds.drafting() else {
            return Some(CompactionOutcome::Refused {
                reason: "no memory can be ordered".to_owned(),
            });
        };
        let ticket = running.ticket;
        self.pending = Some(PendingCompaction { compaction, ticket });
        None
    }

    /// The memory that was made for review, if it can still be swapped in.
    pub(super) fn prepared(&self) -> Option<Arc<Version>> {
        self.memories
            .prepared()
            .filter(|version| self.can_be_adopted(version))
            .cloned()
    }

    /// Another order now answers the requested compaction.
    pub(super) fn hand_over_pending(&mut self, from: Ticket, to: Ticket) {
        if let Some(pending) = &mut self.pending
            && pending.ticket == from
        {
            pending.ticket = to;
        }
    }

    /// The memory of the order is there.
    pub(super) fn finish_pending(&mut self, ticket: Ticket, version: &Arc<Version>) {
        let Some(pending) = self.pending.take_if(|pending| pending.ticket == ticket) else {
            return;
        };
        let outcome = match pending.compaction.swapping {
            SwapTiming::Preview => {
                let version = match version.origin {
                    VersionOrigin::Draft => self.keep(Version::clone(version)),
                    VersionOrigin::Model | VersionOrigin::Given => Arc::clone(version),
                };
                self.memories.prepare(version);
                CompactionOutcome::Prepared
            }
            SwapTiming::AtOnce => {
                self.adopt_requested(version, DueReason::Asked(pending.compaction.by))
            }
        };
        let id = pending.compaction.id;
        self.event(EngineEvent::Compaction { id, outcome });
    }

    fn adopt_requested(&mut self, version: &Arc<Version>, reason: DueReason) -> CompactionOutcome {
        if self.context_with(version) >= self.context() {
            return CompactionOutcome::Refused {
                reason: "the memory is not smaller than the messages that it covers".to_owned(),
            };
        }
        let version = self.adopt(Arc::clone(version), reason, None);
        CompactionOutcome::Committed { version }
    }

    /// The model has not made the memory of the order.
    pub(super) fn finish_pending_without_model(&mut self, ticket: Ticket, why: &str) {
        if self
            .pending
            .as_ref()
            .is_none_or(|pending| pending.ticket != ticket)
        {
            return;
        }
        let draft = self
            .memories
            .draft()
            .map(|draft| Arc::clone(&draft.version))
            .filter(|_| self.may_use_drafts() && self.settings.compactor == CompactorChoice::Model);
        match draft {
            Some(draft) => {
                self.fell_back();
                self.finish_pending(ticket, &draft);
            }
            None => self.end_pending(
                ticket,
                CompactionOutcome::Refused {
                    reason: format!("{why}; the history is kept as it is"),
                },
            ),
        }
    }

    /// A swap covers what the order was to cover.
    pub(super) fn pending_is_overtaken(&mut self, ticket: Ticket) {
        let Some(version) = self.memory().map(|version| version.memory.version) else {
            return;
        };
        if self
            .pending
            .as_ref()
            .is_some_and(|pending| pending.compaction.swapping == SwapTiming::AtOnce)
        {
            self.end_pending(ticket, CompactionOutcome::Committed { version });
        }
    }

    pub(super) fn end_pending(&mut self, ticket: Ticket, outcome: CompactionOutcome) {
        if let Some(pending) = self.pending.take_if(|pending| pending.ticket == ticket) {
            self.event(EngineEvent::Compaction {
                id: pending.compaction.id,
                outcome,
            });
        }
    }

    pub(super) fn cancelled(&mut self) {
        self.give_up_builds(DropReason::Cancelled);
        self.stop_waiting();
    }
}
