//! A swap: from now on requests are made with this memory.

use std::sync::Arc;

use super::{Engine, SinceSwap};
use crate::event::{BuildKind, Dropped, Event, Reason};
use crate::output::{Adoption, Output};
use crate::version::{Adopted, Past, Version, VersionOrigin};

impl Engine {
    pub(super) fn adopt(
        &mut self,
        version: Arc<Version>,
        reason: Reason,
        waited: Option<(u64, BuildKind)>,
    ) {
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
        self.epoch += 1;
        let adoption = Adoption {
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
        self.history_changed();
        self.forget_overtaken();
        let tokens_after = self.context();
        if tokens_after >= self.budget().at(self.settings.soft) {
            // What is left is above the soft mark: the next order comes after a step of growth, not at once.
            self.ordered_at = Some(self.live.tokens());
        }
        let (waited_ms, waited_for) = match waited {
            Some((ms, kind)) => (ms, Some(kind)),
            None => (0, None),
        };
        self.outputs.push_back(Output::Adopt(adoption));
        self.event(Event::Swapped {
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
    }

    /// The version with everything that is pinned, numbered and kept.
    fn complete(&mut self, version: Arc<Version>) -> Arc<Version> {
        let is_kept = self
            .ready
            .as_ref()
            .is_some_and(|ready| Arc::ptr_eq(ready, &version));
        let with_pins = Version::clone(&version).with_pins(&self.pins, &self.settings);
        if is_kept && with_pins.memory.items.len() == version.memory.items.len() {
            return version;
        }
        debug_assert!(is_kept || version.origin != VersionOrigin::Model);
        self.keep(with_pins)
    }

    /// Forgets memories, made or in the making, that cover no more than what is covered now.
    fn forget_overtaken(&mut self) {
        let first = self.live.first();
        for slot in [&mut self.ready, &mut self.draft] {
            if slot
                .as_ref()
                .is_some_and(|version| version.cover() <= first)
            {
                *slot = None;
            }
        }
        if self
            .updating
            .as_ref()
            .is_some_and(|running| running.cover <= first)
        {
            self.give_up_update(Dropped::Overtaken);
        }
        if self
            .drafting
            .as_ref()
            .is_some_and(|running| running.cover <= first)
        {
            self.give_up_draft(Dropped::Overtaken);
        }
    }
}
