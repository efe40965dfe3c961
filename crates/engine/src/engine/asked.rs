//! Compactions that somebody asks for.

use std::sync::Arc;

use super::Engine;
use super::build::Keeping;
use crate::budget::Time;
use crate::event::{CompactionOutcome, DropReason, EngineEvent, Reason};
use crate::input::{Compaction, Swapping};
use crate::output::Ticket;
use crate::settings::CompactorChoice;
use crate::version::{Version, VersionOrigin};

/// A compaction that is under way.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    compaction: Compaction,
    /// The order whose memory is waited for.
    ticket: Ticket,
}

impl Engine {
    pub(super) fn compaction_wanted(&mut self, now: Time, compaction: Compaction) {
        let id = compaction.id;
        let outcome = match &self.asked {
            Some(asked)
                if compaction.swapping == asked.compaction.swapping
                    && (compaction.focus.is_none()
                        || compaction.focus == asked.compaction.focus) =>
            {
                CompactionOutcome::Joined
            }
            Some(_) => CompactionOutcome::Refused {
                reason: "another compaction is running".to_owned(),
            },
            None => match self.begin_asked(now, compaction) {
                None => return,
                Some(outcome) => outcome,
            },
        };
        self.event(EngineEvent::Compaction { id, outcome });
    }

    /// Begins a compaction; gives its outcome if that is known at once.
    fn begin_asked(&mut self, now: Time, compaction: Compaction) -> Option<CompactionOutcome> {
        let by = compaction.by;
        if compaction.focus.is_none() {
            if compaction.swapping == Swapping::AtOnce
                && let Some(version) = self.prepared()
            {
                return Some(self.adopt_asked(&version, Reason::Asked(by)));
            }
            // What the background makes is what is asked for.
            if let Some(running) = self.updating.as_ref().or(self.drafting.as_ref()) {
                let ticket = running.ticket;
                self.asked = Some(Asked { compaction, ticket });
                return None;
            }
        }
        let gain_max = self.gain_of(self.cut(Keeping::Nothing));
        if gain_max == 0 {
            return Some(CompactionOutcome::Refused {
                reason: "there is nothing to compact".to_owned(),
            });
        }
        // Who asks wants it smaller: the usual tail is kept only if that leaves something to cover.
        let keeping = [Keeping::Usual, Keeping::Least]
            .into_iter()
            .find(|keeping| self.gain_of(self.cut(*keeping)) >= gain_max / 4)
            .unwrap_or(Keeping::Nothing);
        self.give_up_builds(DropReason::Cancelled);
        // A draft of the same cover that was made before, or without the focus, is not what is asked for.
        self.draft = None;
        let focus = compaction.focus.clone();
        self.order(now, Reason::Asked(by), keeping, focus);
        let Some(running) = &self.drafting else {
            return Some(CompactionOutcome::Refused {
                reason: "no memory can be ordered".to_owned(),
            });
        };
        let ticket = running.ticket;
        self.asked = Some(Asked { compaction, ticket });
        None
    }

    /// The memory that was made to be looked at, if it can still be swapped in.
    pub(super) fn prepared(&self) -> Option<Arc<Version>> {
        self.ready
            .as_ref()
            .filter(|version| self.prepared == Some(version.memory.version))
            .filter(|version| self.can_be_adopted(version))
            .cloned()
    }

    /// What was asked for is now made by another order.
    pub(super) fn hand_over_asked(&mut self, from: Ticket, to: Ticket) {
        if let Some(asked) = &mut self.asked
            && asked.ticket == from
        {
            asked.ticket = to;
        }
    }

    /// The memory of the order is there.
    pub(super) fn finish_asked(&mut self, ticket: Ticket, version: &Arc<Version>) {
        let Some(asked) = self.asked.take_if(|asked| asked.ticket == ticket) else {
            return;
        };
        let outcome = match asked.compaction.swapping {
            Swapping::Preview => {
                let version = match version.origin {
                    VersionOrigin::Draft => self.keep(Version::clone(version)),
                    VersionOrigin::Model | VersionOrigin::Given => Arc::clone(version),
                };
                self.prepared = Some(version.memory.version);
                self.ready = Some(version);
                CompactionOutcome::Prepared
            }
            Swapping::AtOnce => self.adopt_asked(version, Reason::Asked(asked.compaction.by)),
        };
        let id = asked.compaction.id;
        self.event(EngineEvent::Compaction { id, outcome });
    }

    fn adopt_asked(&mut self, version: &Arc<Version>, reason: Reason) -> CompactionOutcome {
        if self.context_with(version) >= self.context() {
            return CompactionOutcome::Refused {
                reason: "the memory is not smaller than what it stands for".to_owned(),
            };
        }
        let version = self.adopt(Arc::clone(version), reason, None);
        CompactionOutcome::Committed { version }
    }

    /// The model has not made the memory of the order.
    pub(super) fn finish_asked_without_model(&mut self, ticket: Ticket, why: &str) {
        if self
            .asked
            .as_ref()
            .is_none_or(|asked| asked.ticket != ticket)
        {
            return;
        }
        let draft = self
            .draft
            .as_ref()
            .map(|draft| Arc::clone(&draft.version))
            .filter(|_| self.may_use_drafts() && self.settings.compactor == CompactorChoice::Model);
        match draft {
            Some(draft) => {
                self.fell_back();
                self.finish_asked(ticket, &draft);
            }
            None => self.end_asked(
                ticket,
                CompactionOutcome::Refused {
                    reason: format!("{why}; the history is kept as it is"),
                },
            ),
        }
    }

    /// A swap covers what the order was to cover.
    pub(super) fn asked_is_overtaken(&mut self, ticket: Ticket) {
        let Some(version) = self.memory().map(|version| version.memory.version) else {
            return;
        };
        if self
            .asked
            .as_ref()
            .is_some_and(|asked| asked.compaction.swapping == Swapping::AtOnce)
        {
            self.end_asked(ticket, CompactionOutcome::Committed { version });
        }
    }

    pub(super) fn end_asked(&mut self, ticket: Ticket, outcome: CompactionOutcome) {
        if let Some(asked) = self.asked.take_if(|asked| asked.ticket == ticket) {
            self.event(EngineEvent::Compaction {
                id: asked.compaction.id,
                outcome,
            });
        }
    }

    pub(super) fn cancelled(&mut self) {
        self.give_up_builds(DropReason::Cancelled);
        self.wait_no_more();
    }
}
