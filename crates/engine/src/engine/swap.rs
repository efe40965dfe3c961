//! A swap: from now on requests are made with this memory.

use std::sync::Arc;

use super::{Engine, SinceSwap};
use crate::event::{BuildKind, DropReason, EngineEvent, Reason};
use crate::output::{MemoryAdoption, Output};
use crate::version::{Adopted, Past, Version, VersionOrigin};

impl Engine {
    /// Begins an epoch with this version; gives its number.
    pub(super) fn adopt(
        &mut self,
        version: Arc<Version>,
        reason: Reason,
        waited: Option<(u64, BuildKind)>,
    ) -> u32 {
        let tokens_before = self.context();
        let version = self.complete(version);
        let cover = version.cover();
        let quoted = self.quoted_by(cover);
        let past_first = self.live.first();
        let past_chain = self.live.chain_at(past_first);
        let at_messages = self.live.end();
        let (messages, facts) = self.live.split_front(cover);
        if let Some(chain) = past_chain {
            self.past = Some(Past {
                adopted: self.adopted.take(),
                first: past_first,
                chain,
                messages,
                facts,
            });
        }
        self.begin_epoch();
        self.swaps += 1;
        let adoption = MemoryAdoption {
            epoch: self.epoch,
            version: Some(version.memory.version),
            cover,
            at_messages,
            quoted: quoted.as_ref().map(|request| request.range),
        };
        self.adopted = Some(Adopted::new(
            Arc::clone(&version),
            adoption.clone(),
            quoted.as_ref().map(|request| request.text.as_str()),
            &self.settings,
        ));
        self.thinking_from = at_messages;
        self.since_swap = SinceSwap::default();
        self.must_shrink = false;
        self.undone_at = None;
        self.no_model = None;
        self.history_changed();
        self.forget_overtaken();
        let tokens_after = self.context();
        self.removed(tokens_before, tokens_after);
        if tokens_after >= self.budget().at(self.settings.soft) {
            // What is left is above the soft mark: the next order comes after a step of growth, not at once.
            self.ordered_at = Some(self.live.tokens());
        }
        let (waited_ms, waited_for) = match waited {
            Some((ms, kind)) => (ms, Some(kind)),
            None => (0, None),
        };
        self.outputs.push_back(Output::Adopt(adoption));
        self.event(EngineEvent::Swapped {
            epoch: self.epoch,
            reason,
            version: version.memory.version,
            origin: version.origin,
            cover,
            tokens_before,
            tokens_after,
            waited_ms,
            waited_for,
        });
        version.memory.version
    }

    /// The version with a complete ledger, numbered and kept.
    fn complete(&mut self, version: Arc<Version>) -> Arc<Version> {
        let is_kept = self
            .ready
            .as_ref()
            .is_some_and(|ready| Arc::ptr_eq(ready, &version))
            || self
                .draft
                .as_ref()
                .is_some_and(|draft| draft.is_kept && Arc::ptr_eq(&draft.version, &version));
        let completed = self.with_ledger(Version::clone(&version));
        if is_kept && completed == *version {
            return version;
        }
        self.keep(completed)
    }

    /// The version with everything that is pinned and in the ledger now.
    pub(super) fn with_ledger(&self, version: Version) -> Version {
        // What a person has taken out of a memory does not come back.
        let adopted = self
            .memory()
            .filter(|_| version.origin != VersionOrigin::Given);
        version.completed(adopted.map(Arc::as_ref), &self.pins, &self.settings)
    }

    /// Forgets memories, made or in the making, that cover no more than what is covered now.
    fn forget_overtaken(&mut self) {
        let mut overtaken = Vec::new();
        let first = self.live.first();
        self.ready.take_if(|version| version.cover() <= first);
        self.draft.take_if(|draft| draft.version.cover() <= first);
        for (running, is_update) in [(&self.updating, true), (&self.drafting, false)] {
            let Some(running) = running.as_ref().filter(|running| running.cover <= first) else {
                continue;
            };
            overtaken.push((running.ticket, is_update));
        }
        for (ticket, is_update) in overtaken {
            self.asked_is_overtaken(ticket);
            if is_update {
                self.give_up_update(DropReason::Overtaken);
            } else {
                self.give_up_draft(DropReason::Overtaken);
            }
        }
    }
}
