//! A swap: from now on requests are made with this memory.

use std::sync::Arc;

use super::Engine;
use crate::event::{BuildKind, DropReason, DueReason, EngineEvent};
use crate::output::Output;
use crate::version::{AdoptedVersion, Ledger, Past, Version};
use crate::vocabulary::{MemoryAdoption, VersionOrigin};

impl Engine {
    /// Begins an epoch with this version; gives its number.
    pub(super) fn adopt(
        &mut self,
        version: Arc<Version>,
        reason: DueReason,
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
            let adopted = self.memories.adopt(None);
            self.memories.set_past(Past {
                adopted,
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
        let adopted = AdoptedVersion::new(
            Arc::clone(&version),
            adoption.clone(),
            quoted.as_ref().map(|request| request.text.as_str()),
            &self.settings,
        );
        self.memories.adopt(Some(adopted));
        self.flight.reason_from(at_messages);
        self.progress.swapped();
        self.halts.give_up_shrinking();
        self.halts.forget_undo();
        self.failures.forget_last();
        self.history_changed();
        self.forget_overtaken();
        let tokens_after = self.context();
        self.account_swap(tokens_before, tokens_after);
        if tokens_after >= self.budget().at(self.settings.soft) {
            // What is left is above the soft mark: the next order comes after a step of growth, not at once.
            self.builds.wait_for_growth(self.live.tokens());
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
        match version.completed(&self.ledger(version.origin), &self.settings) {
            Some(completed) => self.keep(completed),
            None if self.memories.is_kept(&version) => version,
            None => self.keep(Version::clone(&version)),
        }
    }

    /// What a new memory of this origin must not lose.
    pub(super) fn ledger(&self, origin: VersionOrigin) -> Ledger<'_> {
        Ledger {
            // What a person has taken out of a memory does not come back.
            adopted: self
                .memory()
                .filter(|_| origin != VersionOrigin::Given)
                .map(|version| &version.memory),
            pins: self.memories.pins(),
        }
    }

    /// Forgets memories, made or in the making, that cover no more than what is covered now.
    fn forget_overtaken(&mut self) {
        let first = self.live.first();
        self.memories.forget_overtaken(first);
        for (kind, running) in [
            (BuildKind::Model, self.builds.updating()),
            (BuildKind::Draft, self.builds.drafting()),
        ]
        .map(|(kind, running)| (kind, running.map(|running| (running.ticket, running.cover))))
        {
            if let Some((ticket, _)) = running.filter(|(_, cover)| *cover <= first) {
                self.pending_is_overtaken(ticket);
                self.give_up_build(kind, DropReason::Overtaken);
            }
        }
    }
}
