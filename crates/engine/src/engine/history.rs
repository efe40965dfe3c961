//! Changes of the transcript: appends, edits, clears, undo.

use std::sync::Arc;

use throughline_transcript::digest::Chain;
use throughline_transcript::message::{Message, Role};
use throughline_transcript::tokens::ContextMeter;
use throughline_transcript::usage::ContextSize;

use super::Engine;
use super::builds::RunningBuild;
use super::halts::HaltState;
use crate::budget::Time;
use crate::event::{BuildKind, DropReason, EngineEvent};
use crate::input::PreviousEpoch;
use crate::live::{Live, Request};
use crate::output::Output;
use crate::version::{AdoptedVersion, Past, Version};
use crate::vocabulary::MemoryAdoption;

impl Engine {
    pub(super) fn appended(&mut self, now: Time, message: Message) {
        if message.role == Role::Assistant {
            self.answer_begun(now);
        }
        self.progress.look_at(&message);
        let turns = u32::from(message.begins_turn());
        let facts = self.live.push(message, &self.settings.counter);
        self.progress.count(turns, facts);
        self.builds.note_calls(facts.tool_calls);
        self.added_tokens += facts.tokens;
    }

    pub(super) fn answered(&mut self, now: Time, context: Option<ContextSize>) {
        self.answer_begun(now);
        if self.flight.land() {
            // The model reasoned about what was there before the swap.
            self.reason_from(self.live.end());
        }
        let Some(estimated) = self.flight.take_sent_tokens() else {
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
        self.account_answer(context.prompt, context.cached);
        self.meter.reported(estimated, context);
        self.added_tokens = 0;
    }

    pub(super) fn overflowed(&mut self, window: Option<u64>) {
        let sent = self.flight.refuse();
        self.halts.overflow();
        let known = self.budget().window;
        // A provider that names no window still says that it is smaller than what was sent, if that was measured in
        // its own tokens. A refusal of something small was for another reason.
        let measured = sent
            .filter(|_| self.meter.calibration().reports() > 0)
            .map(|tokens| self.meter.calibration().apply(tokens))
            .filter(|tokens| *tokens >= known / 2);
        if let Some(window) = window.or(measured)
            && window < known
        {
            self.halts.learn_window(window);
            self.event(EngineEvent::WindowLearned { window });
        }
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
        if messages < self.flight.thinking_from() {
            // Reasoning about later messages belongs to the present epoch.
            self.reason_from(messages);
        }
        self.memories.truncate(messages);
        // Orders for the messages that are left stay valid.
        let is_cut = |running: &RunningBuild| running.cover > messages;
        if self.builds.updating().is_some_and(is_cut) {
            self.give_up_build(BuildKind::Model, DropReason::HistoryChanged);
        }
        if self.builds.drafting().is_some_and(is_cut) {
            self.give_up_build(BuildKind::Draft, DropReason::HistoryChanged);
        }
    }

    pub(super) fn cleared(&mut self) {
        self.give_up_builds(DropReason::HistoryChanged);
        self.live = Live::new(0, Chain::new().digest());
        self.memories.clear();
        self.progress.clear();
        self.flight.clear();
        self.halts.give_up_shrinking();
        self.halts.forget_undo();
        self.begin_epoch();
        self.adopt_as_it_is();
        self.history_changed();
    }

    fn no_memory(&self) -> MemoryAdoption {
        MemoryAdoption {
            epoch: self.epoch,
            version: None,
            cover: 0,
            at_messages: self.flight.thinking_from(),
            quoted: None,
        }
    }

    pub(super) fn history_changed(&mut self) {
        self.meter.history_changed();
        self.flight.forget_sent_tokens();
        self.added_tokens = 0;
        self.builds.history_changed();
        self.progress.forget_phase();
        if !self.halts.stopped().is_some_and(HaltState::is_final) {
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
            AdoptedVersion::new(Arc::new(version), adoption, request, &self.settings)
        });
        let (messages, facts) = past.split_front(covered);
        self.memories.set_past(Past {
            adopted,
            first,
            chain: before.chain,
            messages,
            facts,
        });
    }

    pub(super) fn undo(&mut self) {
        let Some(past) = self.memories.take_past() else {
            return;
        };
        self.give_up_builds(DropReason::HistoryChanged);
        self.live
            .join_front(past.first, past.chain, past.messages, past.facts);
        self.begin_epoch();
        self.flight.reason_from(self.live.end());
        let adopted = past.adopted.map(|adopted| AdoptedVersion {
            adoption: MemoryAdoption {
                epoch: self.epoch,
                at_messages: self.live.end(),
                ..adopted.adoption
            },
            ..adopted
        });
        self.memories.adopt(adopted);
        // The memory that was undone must not come back unless it is requested.
        self.memories.forget_candidates();
        self.progress.swapped();
        self.account_undo();
        self.history_changed();
        self.halts.undo(self.live.tokens());
        self.builds.wait_for_growth(self.live.tokens());
        self.adopt_as_it_is();
        let (epoch, tokens) = (self.epoch, self.context());
        self.event(EngineEvent::Undone { epoch, tokens });
    }

    /// System prompt, tools or model have changed: earlier reasoning does not fit behind them. The cover of the memory
    /// is the same, and so is the epoch.
    pub(super) fn frame_changed(&mut self) {
        self.reason_from(self.live.end());
        self.meter.history_changed();
        self.flight.forget_sent_tokens();
        self.look_again();
    }

    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.flight.change_prefix();
    }

    /// The memory stays, but reasoning in messages before this belongs to another prefix.
    fn reason_from(&mut self, messages: usize) {
        self.flight.change_prefix();
        self.flight.reason_from(messages);
        self.memories.reason_from(messages);
        self.adopt_as_it_is();
    }

    fn adopt_as_it_is(&mut self) {
        let adoption = self
            .memories
            .adopted()
            .map_or_else(|| self.no_memory(), |adopted| adopted.adoption.clone());
        self.outputs.push_back(Output::Adopt(adoption));
    }

    /// Whether there is a swap to undo.
    #[must_use]
    pub fn can_undo(&self) -> bool {
        self.memories.can_undo()
    }

    /// The latest request of the user, if a memory with this cover includes it.
    ///
    /// An answered request is not quoted: the model would work on it again.
    pub(super) fn quoted_by(&self, cover: usize) -> Option<Request> {
        if cover >= self.live.end() && self.live.is_at_rest() {
            return None;
        }
        match self.live.latest_request() {
            Some(request) => (request.range.0 < cover).then_some(request),
            // It is covered already: keep the present quote.
            None => {
                let adopted = self.memories.adopted()?;
                let range = adopted.adoption.quoted?;
                let text = adopted.request.clone()?;
                Some(Request { range, text })
            }
        }
    }

    /// Counts everything again, by another model's tokenizer.
    pub(super) fn recount(&mut self) {
        self.live.recount(&self.settings.counter);
        self.memories.recount(&self.settings);
        self.meter = ContextMeter::default();
        self.flight.forget_sent_tokens();
        self.added_tokens = 0;
        self.builds.recounted();
    }
}
