//! Compactions that somebody asks for.

use std::sync::Arc;

use super::Engine;
use super::build::Keeping;
use crate::budget::Time;
use crate::event::{Dropped, Event, Outcome, Reason};
use crate::input::{Compaction, Swapping};
use crate::settings::Compactor;
use crate::version::{Version, VersionOrigin};

/// A compaction that is under way.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    compaction: Compaction,
}

impl Engine {
    pub(super) fn compaction_wanted(&mut self, now: Time, compaction: Compaction) {
        let id = compaction.id;
        if let Some(asked) = &self.asked {
            let is_same = compaction.focus.is_none() || compaction.focus == asked.compaction.focus;
            let outcome = if is_same {
                Outcome::Joined
            } else {
                Outcome::Refused {
                    reason: "another compaction is running".to_owned(),
                }
            };
            self.event(Event::Compaction { id, outcome });
            return;
        }
        if compaction.focus.is_none() && self.updating.is_some() {
            // What the background makes is what is asked for.
            self.asked = Some(Asked { compaction });
            return;
        }
        self.give_up_update(Dropped::Cancelled);
        self.give_up_draft(Dropped::Cancelled);
        let reason = Reason::Asked(compaction.by);
        let focus = compaction.focus.clone();
        // A draft of the same cover without the focus, or made before, is not what is asked for.
        self.draft = None;
        let is_ordered = self.order_draft(now, reason, Keeping::Usual, focus.clone())
            || self.order_draft(now, reason, Keeping::Least, focus);
        if !is_ordered {
            self.event(Event::Compaction {
                id,
                outcome: Outcome::Refused {
                    reason: "there is nothing to compact".to_owned(),
                },
            });
            return;
        }
        self.asked = Some(Asked { compaction });
    }

    /// The memory that was asked for is there.
    pub(super) fn finish_asked(&mut self, version: &Arc<Version>) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let id = asked.compaction.id;
        let outcome = match asked.compaction.swapping {
            Swapping::Preview => {
                let is_kept = version.origin != VersionOrigin::Draft;
                let version = if is_kept {
                    Arc::clone(version)
                } else {
                    self.keep(Version::clone(version))
                };
                self.ready = Some(version);
                Outcome::Prepared
            }
            Swapping::AtOnce => {
                if self.context_with(version) >= self.context() {
                    Outcome::Refused {
                        reason: "the memory is not smaller than what it stands for".to_owned(),
                    }
                } else {
                    let reason = Reason::Asked(asked.compaction.by);
                    self.adopt(Arc::clone(version), reason, None);
                    Outcome::Committed {
                        version: self.number,
                    }
                }
            }
        };
        self.event(Event::Compaction { id, outcome });
    }

    /// The model has not made the memory that was asked for.
    pub(super) fn finish_asked_without_model(&mut self, why: &str) {
        if self.asked.is_none() {
            return;
        }
        let draft = self
            .draft
            .clone()
            .filter(|_| self.may_use_drafts() && self.settings.compactor == Compactor::Model);
        match draft {
            Some(draft) => {
                self.fell_back("failed", why);
                self.finish_asked(&draft);
            }
            None => self.end_asked(Outcome::Refused {
                reason: format!("{why}; the history is kept as it is"),
            }),
        }
    }

    pub(super) fn end_asked(&mut self, outcome: Outcome) {
        if let Some(asked) = self.asked.take() {
            self.event(Event::Compaction {
                id: asked.compaction.id,
                outcome,
            });
        }
    }

    pub(super) fn cancel(&mut self) {
        self.give_up_update(Dropped::Cancelled);
        self.give_up_draft(Dropped::Cancelled);
        self.end_asked(Outcome::Discarded);
    }
}
