//! What happens to the transcript.

use std::sync::Arc;

use throughline_transcript::digest::Chain;
use throughline_transcript::message::{Message, Role};
use throughline_transcript::tokens::ContextMeter;
use throughline_transcript::usage::ContextSize;

use super::{Engine, SinceSwap};
use crate::budget::Time;
use crate::event::{DropReason, EngineEvent, Halt};
use crate::input::PreviousEpoch;
use crate::live::{Live, Request, recount};
use crate::output::{MemoryAdoption, Output};
use crate::phase::PhaseDetector;
use crate::version::{Adopted, Past, Version};

impl Engine {
    pub(super) fn appended(&mut self, now: Time, message: Message) {
        if message.role == Role::Assistant {
            self.seen(now);
        }
        if let Some(phase) = self.phases.push(&message) {
            self.phase = Some(phase);
        }
        self.since_swap.turns += u32::from(message.begins_turn());
        let facts = self.live.push(message, &self.settings.counter);
        self.since_swap.tool_calls += facts.tool_calls;
        self.calls_since_order += facts.tool_calls;
        self.added_tokens += facts.tokens;
    }

    pub(super) fn answered(&mut self, now: Time, context: Option<ContextSize>) {
        self.seen(now);
        if self
            .in_flight
            .take()
            .is_some_and(|prefix| prefix != self.prefix)
        {
            // The model reasoned about what stood before the swap.
            self.reason_from(self.live.end());
        }
        let Some(estimated) = self.asked_tokens.take() else {
            return;
        };
        let Some(context) = context else {
            return;
        };
        if ContextMeter::seems_cut(estimated, context.prompt) {
            self.event(EngineEvent::SeemsCut {
                estimated,
                reported: context.prompt,
            });
            return;
        }
        self.read_from_cache(context.prompt, context.cached);
        self.meter.reported(estimated, context);
        self.added_tokens = 0;
    }

    pub(super) fn overflowed(&mut self, window: Option<u64>) {
        let asked = self.asked_tokens.take();
        self.in_flight = None;
        self.is_on_its_way = false;
        self.must_shrink = true;
        let known = self.budget().window;
        // A provider that names no window still says that it is smaller than what was sent, if that was measured in
        // its own tokens. A refusal of something small was for another reason.
        let measured = asked
            .filter(|_| self.meter.calibration().reports() > 0)
            .map(|tokens| self.meter.calibration().apply(tokens))
            .filter(|tokens| *tokens >= known / 2);
        if let Some(window) = window.or(measured)
            && window < known
        {
            self.window_learned = Some(window);
            self.event(EngineEvent::WindowLearned { window });
        }
        self.undone_at = None;
        self.look_again();
    }

    pub(super) fn truncated(&mut self, messages: usize) {
        if messages >= self.live.end() {
            return;
        }
        if messages < self.live.first() {
            // What is left is known to the store only.
            self.give_up_builds(DropReason::HistoryChanged);
            self.waiting = None;
            self.outputs.push_back(Output::Reload { messages });
            return;
        }
        self.live.truncate(messages);
        self.history_changed();
        if messages < self.thinking_from {
            // What is said from here on is reasoned about in the present epoch.
            self.reason_from(messages);
        }
        self.ready.take_if(|version| version.cover() > messages);
        self.draft.take_if(|draft| draft.version.cover() > messages);
        // What was ordered for the messages that are left is still good.
        let is_hit = |running: &super::build::Running| running.cover > messages;
        if self.updating.as_ref().is_some_and(is_hit) {
            self.give_up_update(DropReason::HistoryChanged);
        }
        if self.drafting.as_ref().is_some_and(is_hit) {
            self.give_up_draft(DropReason::HistoryChanged);
        }
    }

    pub(super) fn cleared(&mut self) {
        self.give_up_builds(DropReason::HistoryChanged);
        self.live = Live::new(0, Chain::new().digest());
        self.phases = PhaseDetector::default();
        self.ready = None;
        self.draft = None;
        self.past = None;
        self.since_swap = SinceSwap::default();
        self.pins.clear();
        self.thinking_from = 0;
        self.in_flight = None;
        self.must_shrink = false;
        self.undone_at = None;
        self.adopted = None;
        self.begin_epoch();
        self.adopt_as_it_is();
        self.history_changed();
    }

    fn no_memory(&self) -> MemoryAdoption {
        MemoryAdoption {
            epoch: self.epoch,
            version: None,
            cover: 0,
            at_messages: self.thinking_from,
            quoted: None,
        }
    }

    pub(super) fn history_changed(&mut self) {
        self.meter.history_changed();
        self.asked_tokens = None;
        self.added_tokens = 0;
        self.ordered_at = None;
        self.model_ordered_at = None;
        self.calls_since_order = 0;
        self.phase = None;
        if !self
            .halt
            .as_ref()
            .is_some_and(|stopped| matches!(stopped.halt, Halt::Overhead { .. }))
        {
            self.look_again();
        }
    }

    pub(super) fn before(&mut self, before: PreviousEpoch) {
        let first = before.version.as_ref().map_or(0, Version::cover);
        let mut past = Live::new(first, before.chain);
        for message in before.messages {
            past.push(message, &self.settings.counter);
        }
        let covered = self.live.first();
        let is_fitting =
            past.end() == covered && past.chain_at(covered) == self.live.chain_at(covered);
        let is_its_own = before
            .version
            .as_ref()
            .is_none_or(|version| version.fits(before.chain));
        if !is_fitting || !is_its_own {
            return;
        }
        let quoted = before
            .quoted
            .map(|(first, messages)| Request::of(first, &messages));
        let adopted = before.version.map(|version| {
            let adoption = MemoryAdoption {
                epoch: self.epoch,
                version: Some(version.memory.version),
                cover: first,
                at_messages: self.live.end(),
                quoted: quoted.as_ref().map(|request| request.range),
            };
            let request = quoted.as_ref().map(|request| request.text.as_str());
            Adopted::new(Arc::new(version), adoption, request, &self.settings)
        });
        let (messages, facts) = past.split_front(covered);
        self.past = Some(Past {
            adopted,
            first,
            chain: before.chain,
            messages,
            facts,
        });
    }

    pub(super) fn undo(&mut self) {
        let Some(past) = self.past.take() else {
            return;
        };
        self.give_up_builds(DropReason::HistoryChanged);
        self.live
            .join_front(past.first, past.chain, past.messages, past.facts);
        self.begin_epoch();
        self.thinking_from = self.live.end();
        self.adopted = past.adopted.map(|adopted| Adopted {
            adoption: MemoryAdoption {
                epoch: self.epoch,
                at_messages: self.live.end(),
                ..adopted.adoption
            },
            ..adopted
        });
        // The memory that was not wanted must not come back by itself.
        self.ready = None;
        self.draft = None;
        self.since_swap = SinceSwap::default();
        self.put_back();
        self.history_changed();
        self.undone_at = Some(self.live.tokens());
        self.ordered_at = self.undone_at;
        self.adopt_as_it_is();
        let (epoch, tokens) = (self.epoch, self.context());
        self.event(EngineEvent::Undone { epoch, tokens });
    }

    /// System prompt, tools or model are others now: reasoning from before has no place behind them. What the memory
    /// stands for is the same, and so is the epoch.
    pub(super) fn frame_changed(&mut self) {
        self.reason_from(self.live.end());
        self.meter.history_changed();
        self.asked_tokens = None;
        self.look_again();
    }

    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.prefix += 1;
    }

    /// The memory stays, but reasoning in messages before this belongs to another prefix.
    fn reason_from(&mut self, messages: usize) {
        self.prefix += 1;
        self.thinking_from = messages;
        if let Some(adopted) = &mut self.adopted {
            adopted.adoption.at_messages = messages;
        }
        self.adopt_as_it_is();
    }

    fn adopt_as_it_is(&mut self) {
        let adoption = self
            .adopted
            .as_ref()
            .map_or_else(|| self.no_memory(), |adopted| adopted.adoption.clone());
        self.outputs.push_back(Output::Adopt(adoption));
    }

    /// Whether there is a swap to take back.
    #[must_use]
    pub fn can_undo(&self) -> bool {
        self.past.is_some()
    }

    /// The latest request of the user, if a memory of so many messages covers it.
    ///
    /// One that was answered is not quoted: it would be taken up again.
    pub(super) fn quoted_by(&self, cover: usize) -> Option<Request> {
        if cover >= self.live.end() && self.live.is_at_rest() {
            return None;
        }
        match self.live.latest_request() {
            Some(request) => (request.range.0 < cover).then_some(request),
            // It is covered already; what quotes it now goes on to.
            None => {
                let adopted = self.adopted.as_ref()?;
                let range = adopted.adoption.quoted?;
                let text = adopted.request.clone()?;
                Some(Request { range, text })
            }
        }
    }

    /// Counts everything again, by another model's tokenizer.
    pub(super) fn recount(&mut self) {
        let settings = &self.settings;
        self.live.recount(&settings.counter);
        let recounted = |version: &Arc<Version>| {
            Arc::new(Version::new(
                version.memory.clone(),
                version.origin,
                settings,
            ))
        };
        self.ready = self.ready.as_ref().map(recounted);
        if let Some(draft) = &mut self.draft {
            draft.version = recounted(&draft.version);
        }
        if let Some(adopted) = &mut self.adopted {
            adopted.tokens = settings.counter.text(&adopted.text) as u64;
        }
        if let Some(past) = &mut self.past {
            recount(&past.messages, &mut past.facts, &settings.counter);
            if let Some(adopted) = &mut past.adopted {
                adopted.tokens = settings.counter.text(&adopted.text) as u64;
            }
        }
        self.meter = ContextMeter::default();
        self.asked_tokens = None;
        self.added_tokens = 0;
        self.ordered_at = None;
    }
}
