//! Requests: whether one is sent as it is, after a swap, or after a wait.

use std::sync::Arc;

use super::Engine;
use super::build::TailSize;
use crate::budget::Time;
use crate::event::{BuildKind, DueReason, EngineEvent, Halt, SkipReason};
use crate::output::{AwaitedBuild, Output};
use crate::settings::{CompactorChoice, Mode};
use crate::version::Version;
use crate::vocabulary::{UpdateFailure, UpdateFailureClass, VersionOrigin};

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingRequest {
    since: Time,
    waited: AwaitedBuild,
    rounds: u8,
}

/// Drafts that a request waits for: one with the usual tail, one with the least.
const ROUNDS_MAX: u8 = 2;
/// A draft takes milliseconds; a driver that does not answer must not block a request forever.
const DRAFT_WAIT_MS_MAX: u64 = 30_000;

impl Engine {
    pub(super) fn request_wanted(&mut self, now: Time) {
        self.waiting = None;
        self.answer(now, None, 0);
    }

    /// Continues a waiting request if its build is no longer running: it is ready, or it was given up.
    pub(super) fn continue_waiting(&mut self, now: Time) {
        let Some(waiting) = self.waiting else {
            return;
        };
        if self.builds.is_running(waiting.waited.ticket) {
            return;
        }
        self.waiting = None;
        // A request waits for a model once.
        let rounds = match waiting.waited.kind {
            BuildKind::Draft => waiting.rounds,
            BuildKind::Model => ROUNDS_MAX,
        };
        self.answer(now, Some(waiting), rounds);
    }

    /// A waiting request must continue with what is ready.
    pub(super) fn stop_waiting(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.rounds = ROUNDS_MAX;
        }
    }

    pub(super) fn waited_enough(&mut self, now: Time) {
        let Some(waiting) = self.waiting.take() else {
            return;
        };
        if waiting.waited.kind == BuildKind::Model {
            self.failures.note(UpdateFailure {
                class: UpdateFailureClass::Timeout,
                message: "the model took too long".to_owned(),
                retry_after_ms: None,
            });
        }
        self.answer(now, Some(waiting), ROUNDS_MAX);
    }

    /// Reports that the draft replaces the model's memory, and why.
    pub(super) fn fell_back(&mut self) {
        let reason = self
            .failures
            .last()
            .cloned()
            .unwrap_or_else(|| UpdateFailure {
                class: UpdateFailureClass::NotReady,
                message: "no memory by the model is ready".to_owned(),
                retry_after_ms: None,
            });
        self.event(EngineEvent::FellBack { reason });
    }

    fn answer(&mut self, now: Time, waiting: Option<WaitingRequest>, rounds: u8) {
        if let Some((reason, is_urgent)) = self.pressure(now) {
            if is_urgent {
                if self.swap_urgently(now, reason, waiting, rounds) == Swap::Awaited {
                    return;
                }
            } else {
                self.swap_if_worth_it(now, reason);
            }
        }
        let plan = self.plan();
        let last = self.flight.send(now, self.estimate());
        let interval_ms = last.map(|last| now.since(last));
        let cache_ms = self.settings.economy.cache_ms;
        self.pace
            .requested(interval_ms, self.live.tokens(), cache_ms);
        self.progress.count_request();
        self.outputs.push_back(Output::Request(plan));
    }

    /// Why a swap is due before the next request, and whether the request has to wait for it.
    fn pressure(&mut self, now: Time) -> Option<(DueReason, bool)> {
        if self.settings.mode == Mode::Off || self.is_halted() || self.is_just_undone() {
            return None;
        }
        let reason = self.due(now)?;
        let is_urgent = match reason {
            DueReason::Turns(_) | DueReason::ToolCalls(_) | DueReason::Phase(_) => {
                if !self.can_gain() {
                    self.skip_trigger(reason);
                    return None;
                }
                self.settings.mode == Mode::Traditional
            }
            DueReason::Cold | DueReason::Pays => false,
            _ => true,
        };
        if is_urgent && self.is_overhead_too_large() {
            return None;
        }
        Some((reason, is_urgent))
    }

    /// Whether a swap was undone, and not much has happened since. A context that does not fit is compacted anyway.
    fn is_just_undone(&self) -> bool {
        let Some(undone_at) = self.halts.undone_at() else {
            return false;
        };
        let budget = self.budget();
        self.live.tokens() < undone_at.saturating_add(self.settings.step_tokens())
            && self.context() <= budget.limit()
            && !self.halts.must_shrink()
    }

    /// Whether enough could be covered for a swap to be worth it.
    fn can_gain(&self) -> bool {
        self.gain_of(self.cut(TailSize::Usual))
            >= self.budget().amount(self.settings.gain_min).max(1)
    }

    /// A trigger that counts has had its chance; the next one comes.
    fn skip_trigger(&mut self, reason: DueReason) {
        let before = self.context();
        self.skip(
            reason,
            SkipReason::TooLittleGain {
                before,
                after: before,
            },
        );
        self.progress.restart_triggers();
    }

    fn due(&self, now: Time) -> Option<DueReason> {
        if self.halts.must_shrink() {
            return Some(DueReason::Overflow);
        }
        let budget = self.budget();
        let context = self.context();
        if context >= budget.at(self.mark()) {
            return Some(match self.settings.mode {
                Mode::Traditional => DueReason::Threshold,
                Mode::Instant | Mode::Off => DueReason::HardMark,
            });
        }
        if self
            .settings
            .body_bytes_max
            .is_some_and(|max| self.bytes() >= max / 5 * 4)
        {
            return Some(DueReason::BodyBytes);
        }
        if let Some(reason) = self.triggered() {
            return Some(reason);
        }
        if context < budget.at(self.settings.soft) {
            return None;
        }
        let version = self.candidate()?;
        self.pays(now, context, version)
    }

    /// What makes a swap wanted besides the size of the context.
    pub(super) fn triggered(&self) -> Option<DueReason> {
        let triggers = &self.settings.triggers;
        if let Some(turns) = self.settings.turns_max()
            && self.progress.turns() >= turns
        {
            return Some(DueReason::Turns(turns));
        }
        if let Some(calls) = triggers.tool_calls
            && self.progress.tool_calls() >= calls
        {
            return Some(DueReason::ToolCalls(calls));
        }
        self.progress.phase().map(DueReason::Phase)
    }

    /// A swap that would be good, but without which the request can go.
    fn swap_if_worth_it(&mut self, now: Time, reason: DueReason) {
        let Some(version) = self.candidate().cloned() else {
            return;
        };
        if self.is_stopgap(&version) && (self.builds.updating().is_some() || self.is_model_due(now))
        {
            return;
        }
        if self.is_gain(&version, reason) {
            if self.is_stopgap(&version) {
                self.fell_back();
            }
            self.adopt(version, reason, None);
        } else if !matches!(reason, DueReason::Cold | DueReason::Pays) {
            self.skip_trigger(reason);
        }
    }

    /// Whether the memory is a draft where a model is to make them, and not one that adds to the model's what came
    /// after it.
    fn is_stopgap(&self, version: &Version) -> bool {
        version.origin == VersionOrigin::Draft
            && self.settings.compactor == CompactorChoice::Model
            && !self.memories.is_catch_up()
    }

    /// Whether the swap makes the request smaller by what is worth it.
    fn is_gain(&self, version: &Version, reason: DueReason) -> bool {
        let (before, after) = (self.context(), self.context_with(version));
        if reason == DueReason::BodyBytes {
            return after <= before && self.bytes_with(version) < self.bytes();
        }
        let gain_min = self.budget().amount(self.settings.gain_min).max(1);
        before.saturating_sub(after) >= gain_min
    }

    /// Whether the swap leaves room until the next one.
    fn is_enough(&self, version: &Version, reason: DueReason, rounds: u8) -> bool {
        let goal = if rounds == 0 {
            self.settings.soft
        } else {
            self.mark()
        };
        match reason {
            DueReason::Turns(_) | DueReason::ToolCalls(_) | DueReason::Phase(_) => true,
            DueReason::BodyBytes => {
                let bytes = self.bytes_with(version);
                self.settings
                    .body_bytes_max
                    .is_none_or(|max| bytes < max / 5 * 4)
            }
            _ => self.context_with(version) < self.budget().at(goal),
        }
    }

    /// A swap without which the request should not go.
    fn swap_urgently(
        &mut self,
        now: Time,
        reason: DueReason,
        waiting: Option<WaitingRequest>,
        rounds: u8,
    ) -> Swap {
        let candidate = self.candidate().cloned();
        if let Some(version) = &candidate
            && self.is_gain(version, reason)
            && self.is_enough(version, reason, rounds)
            && !(self.is_stopgap(version) && self.hopes_for_model(now, waiting, rounds))
        {
            self.adopt_urgently(now, version, reason, waiting);
            return Swap::Done;
        }
        // Where the request does not fit as it is, anything helps.
        let before = self.context();
        let is_too_large = reason == DueReason::Overflow || before > self.budget().limit();
        let gain_max = self.gain_max();
        let can_gain = if is_too_large || reason == DueReason::BodyBytes {
            gain_max > 0
        } else {
            gain_max >= self.budget().amount(self.settings.gain_min).max(1)
        };
        if can_gain && rounds < ROUNDS_MAX && self.wait_for_build(now, reason, waiting, rounds) {
            return Swap::Awaited;
        }
        // Nothing better comes.
        match candidate {
            Some(version)
                if self.is_gain(&version, reason)
                    || (is_too_large && self.context_with(&version) < before) =>
            {
                self.adopt_urgently(now, &version, reason, waiting);
                return Swap::Done;
            }
            Some(version) => {
                let after = self.context_with(&version);
                self.skip(reason, SkipReason::TooLittleGain { before, after });
                self.stop(Halt::NoGain { before, after });
            }
            None if !can_gain => {
                let after = before.saturating_sub(gain_max);
                self.skip(
                    reason,
                    match gain_max {
                        0 => SkipReason::NothingToCover,
                        _ => SkipReason::TooLittleGain { before, after },
                    },
                );
                self.stop(Halt::NoGain { before, after });
            }
            None => self.skip(reason, SkipReason::NotReady),
        }
        self.halts.give_up_shrinking();
        Swap::NotDone
    }

    fn adopt_urgently(
        &mut self,
        now: Time,
        version: &Arc<Version>,
        reason: DueReason,
        waiting: Option<WaitingRequest>,
    ) {
        if self.is_stopgap(version) {
            self.fell_back();
        }
        let waited = waiting.map(|waiting| (now.since(waiting.since), waiting.waited.kind));
        self.adopt(Arc::clone(version), reason, waited);
    }

    /// Milliseconds that the request may still wait for a model.
    fn model_left_ms(&self, now: Time, waiting: Option<WaitingRequest>) -> u64 {
        let max_ms = match self.settings.mode {
            Mode::Traditional => self.settings.traditional_wait_ms_max,
            Mode::Instant | Mode::Off => self.settings.model_wait_ms_max,
        };
        let waited_ms = waiting.map_or(0, |waiting| now.since(waiting.since));
        max_ms.saturating_sub(waited_ms)
    }

    /// Whether the request waits for the model although there is a draft.
    fn hopes_for_model(&self, now: Time, waiting: Option<WaitingRequest>, rounds: u8) -> bool {
        rounds < ROUNDS_MAX
            && self.model_left_ms(now, waiting) > 0
            && (self.builds.updating().is_some() || self.wants_model(now))
    }

    /// Has the request wait for a memory, if one can be had.
    fn wait_for_build(
        &mut self,
        now: Time,
        reason: DueReason,
        waiting: Option<WaitingRequest>,
        rounds: u8,
    ) -> bool {
        let model_left_ms = self.model_left_ms(now, waiting);
        let since = waiting.map_or(now, |waiting| waiting.since);
        let can_be_model =
            model_left_ms > 0 && (self.builds.updating().is_some() || self.wants_model(now));
        if !self.may_use_drafts() && !can_be_model {
            return false;
        }
        if self.wait_for_model(since, rounds, model_left_ms) {
            return true;
        }
        // What is being drafted leaves the usual tail; if that is not enough, another draft follows.
        if self.builds.drafting().is_none() {
            let keepings: &[TailSize] = if rounds == 0 {
                &[TailSize::Usual, TailSize::Least]
            } else {
                &[TailSize::Least]
            };
            let is_ordered = keepings
                .iter()
                .any(|keeping| self.order(now, reason, *keeping, None));
            if !is_ordered {
                return false;
            }
        }
        let Some(running) = self.builds.drafting() else {
            return self.wait_for_model(since, rounds, model_left_ms);
        };
        let waited = AwaitedBuild {
            ticket: running.ticket,
            kind: BuildKind::Draft,
        };
        self.wait(since, waited, rounds + 1, DRAFT_WAIT_MS_MAX);
        true
    }

    /// Has the request wait for the model, if that is at work and there is time.
    fn wait_for_model(&mut self, since: Time, rounds: u8, left_ms: u64) -> bool {
        let Some(running) = self.builds.updating().filter(|_| left_ms > 0) else {
            return false;
        };
        let waited = AwaitedBuild {
            ticket: running.ticket,
            kind: BuildKind::Model,
        };
        self.wait(since, waited, rounds, left_ms);
        true
    }

    fn wait(&mut self, since: Time, waited: AwaitedBuild, rounds: u8, at_most_ms: u64) {
        self.waiting = Some(WaitingRequest {
            since,
            waited,
            rounds,
        });
        self.outputs.push_back(Output::Wait { waited, at_most_ms });
    }
}

/// What became of a swap that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swap {
    Done,
    NotDone,
    Awaited,
}
