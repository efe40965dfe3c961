//! A request is wanted: whether it goes as it is, after a swap, or after a wait.

use super::build::Keeping;
use super::{Engine, LastRequest};
use crate::budget::Time;
use crate::event::{BuildKind, Event, Halt, Reason, Skipped, UpdateFailure};
use crate::output::{Output, Waited};
use crate::settings::{Compactor, EconomyRule, Mode};
use crate::version::Version;

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    since: Time,
    waited: Waited,
    rounds: u8,
}

/// A request waits for at most so many drafts: one with the usual tail, one with the least.
const ROUNDS_MAX: u8 = 2;
/// A draft takes milliseconds; a driver that does not answer must not hold a request for ever.
const DRAFT_WAIT_MS_MAX: u64 = 30_000;

impl Engine {
    pub(super) fn request_wanted(&mut self, now: Time) {
        self.waiting = None;
        self.answer(now, None, 0);
    }

    /// Something that a request may be waiting for has come.
    pub(super) fn go_on_waiting(&mut self, now: Time, kind: BuildKind) {
        let Some(waiting) = self.waiting else {
            return;
        };
        if waiting.waited.kind == BuildKind::Draft && kind == BuildKind::Model {
            return;
        }
        if waiting.waited.kind == BuildKind::Model && self.updating.is_some() {
            return;
        }
        self.waiting = None;
        // A model is waited for once.
        let rounds = match kind {
            BuildKind::Draft => waiting.rounds,
            BuildKind::Model => ROUNDS_MAX,
        };
        self.answer(now, Some(waiting), rounds);
    }

    pub(super) fn waited_enough(&mut self, now: Time) {
        let Some(waiting) = self.waiting.take() else {
            return;
        };
        if waiting.waited.kind == BuildKind::Model {
            self.fell_back("timeout", "the model took too long");
        }
        self.answer(now, Some(waiting), ROUNDS_MAX);
    }

    /// A request that waits for what nobody makes any more goes without it.
    pub(super) fn stop_waiting_for_nothing(&mut self, now: Time) {
        if self.drafting.is_none() && self.updating.is_none() {
            self.stop_waiting(now);
        }
    }

    fn stop_waiting(&mut self, now: Time) {
        if let Some(waiting) = self.waiting.take() {
            self.answer(now, Some(waiting), ROUNDS_MAX);
        }
    }

    pub(super) fn fell_back(&mut self, class: &str, message: &str) {
        self.event(Event::FellBack {
            reason: UpdateFailure {
                class: class.to_owned(),
                message: message.to_owned(),
                retry_after_ms: None,
            },
        });
    }

    fn answer(&mut self, now: Time, waiting: Option<Waiting>, rounds: u8) {
        if let Some((reason, is_urgent)) = self.pressure(now) {
            if is_urgent {
                if self.swap_urgently(now, reason, waiting, rounds) == Swap::Awaited {
                    return;
                }
            } else {
                self.swap_if_worth_it(reason);
            }
        }
        let plan = self.plan();
        self.asked_tokens = Some(self.estimate());
        self.last_request = Some(LastRequest {
            epoch: self.epoch,
            end: plan.end,
        });
        self.last_request_at = Some(now);
        self.since_swap.requests += 1;
        self.outputs.push_back(Output::Request(plan));
    }

    /// Why a swap is due before the next request, and whether the request has to wait for it.
    fn pressure(&mut self, now: Time) -> Option<(Reason, bool)> {
        if self.settings.mode == Mode::Off || self.is_halted() {
            return None;
        }
        let reason = self.due(now)?;
        let is_urgent = match reason {
            Reason::Turns(_) | Reason::ToolCalls(_) | Reason::Phase(_) => {
                self.settings.mode == Mode::Traditional
            }
            Reason::Cold | Reason::Pays => false,
            _ => true,
        };
        if is_urgent && self.is_overhead_too_large() {
            return None;
        }
        Some((reason, is_urgent))
    }

    fn due(&self, now: Time) -> Option<Reason> {
        if self.must_shrink {
            return Some(Reason::Overflow);
        }
        let budget = self.budget();
        let context = self.context();
        if context >= budget.at(self.mark()) {
            return Some(match self.settings.mode {
                Mode::Traditional => Reason::Threshold,
                Mode::Instant | Mode::Off => Reason::HardMark,
            });
        }
        if self
            .settings
            .body_bytes_max
            .is_some_and(|max| self.bytes() >= max / 5 * 4)
        {
            return Some(Reason::BodyBytes);
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
    pub(super) fn triggered(&self) -> Option<Reason> {
        let triggers = &self.settings.triggers;
        let since = &self.since_swap;
        if let Some(turns) = self.settings.turns_max()
            && since.turns >= turns
        {
            return Some(Reason::Turns(turns));
        }
        if let Some(calls) = triggers.tool_calls
            && since.tool_calls >= calls
        {
            return Some(Reason::ToolCalls(calls));
        }
        self.phase
            .filter(|phase| triggers.phases || *phase == crate::phase::Phase::Announced)
            .map(Reason::Phase)
    }

    fn pays(&self, now: Time, context: u64, version: &Version) -> Option<Reason> {
        let economy = &self.settings.economy;
        if economy.rule == EconomyRule::HardMarkOnly {
            return None;
        }
        if self
            .last_request_at
            .is_some_and(|last| now.since(last) > economy.cache_ms)
        {
            return Some(Reason::Cold);
        }
        let EconomyRule::WhenItPays { margin_permille } = economy.rule else {
            return None;
        };
        let after = self.context_with(version);
        let (read, write) = (
            u128::from(economy.read_permille),
            u128::from(economy.write_permille),
        );
        // There will be as many requests as there were: the best guess for something that has no natural end.
        let requests = u128::from(self.since_swap.requests.max(1));
        let saved = requests * u128::from(context.saturating_sub(after)) * read;
        let anew = after.saturating_sub(self.overhead_tokens);
        let price = u128::from(anew) * write.saturating_sub(read);
        (saved * 1000 >= price * u128::from(margin_permille)).then_some(Reason::Pays)
    }

    /// A swap that would be good, but without which the request can go.
    fn swap_if_worth_it(&mut self, reason: Reason) {
        let Some(version) = self.candidate().cloned() else {
            return;
        };
        let (before, after) = (self.context(), self.context_with(&version));
        if before.saturating_sub(after) >= self.budget().amount(self.settings.gain_min) {
            self.adopt(version, reason, None);
        } else if !matches!(reason, Reason::Cold | Reason::Pays) {
            // The trigger has had its chance; the next one comes.
            self.phase = None;
        }
    }

    /// A swap without which the request should not go.
    fn swap_urgently(
        &mut self,
        now: Time,
        reason: Reason,
        waiting: Option<Waiting>,
        rounds: u8,
    ) -> Swap {
        let budget = self.budget();
        let before = self.context();
        let gain_min = budget.amount(self.settings.gain_min);
        let is_for_tokens = !matches!(
            reason,
            Reason::BodyBytes | Reason::Turns(_) | Reason::ToolCalls(_) | Reason::Phase(_)
        );
        let candidate = self.candidate().cloned();
        if let Some(version) = &candidate {
            let after = self.context_with(version);
            let is_enough = before.saturating_sub(after) >= gain_min || reason == Reason::BodyBytes;
            let goal = if rounds == 0 {
                self.settings.soft
            } else {
                self.mark()
            };
            let is_low = !is_for_tokens || after < budget.at(goal);
            let is_light = reason != Reason::BodyBytes || self.is_light_after(version);
            let is_by_model = self.settings.mode == Mode::Instant
                || version.origin != crate::version::VersionOrigin::Draft
                || self.settings.compactor == Compactor::Extractive
                || rounds >= ROUNDS_MAX;
            let may_wait = self.updating.is_some()
                && version.origin == crate::version::VersionOrigin::Draft
                && self.settings.model_wait_ms_max > 0;
            if is_enough && is_low && is_light && is_by_model && !(may_wait && rounds == 0) {
                self.adopt_urgently(now, candidate, reason, waiting);
                return Swap::Done;
            }
        }
        if rounds < ROUNDS_MAX && self.wait_for_build(now, reason, waiting, rounds) {
            return Swap::Awaited;
        }
        match candidate {
            Some(version) if before.saturating_sub(self.context_with(&version)) >= gain_min => {
                self.adopt_urgently(now, Some(version), reason, waiting);
                Swap::Done
            }
            Some(version) => {
                let after = self.context_with(&version);
                self.event(Event::Skipped {
                    due: reason,
                    reason: Skipped::TooLittleGain { before, after },
                });
                self.must_shrink = false;
                self.stop(Halt::NoGain { before, after });
                Swap::NotDone
            }
            None => {
                self.event(Event::Skipped {
                    due: reason,
                    reason: Skipped::NotReady,
                });
                self.must_shrink = false;
                Swap::NotDone
            }
        }
    }

    fn adopt_urgently(
        &mut self,
        now: Time,
        version: Option<std::sync::Arc<Version>>,
        reason: Reason,
        waiting: Option<Waiting>,
    ) {
        let Some(version) = version else { return };
        if self.settings.compactor == Compactor::Model
            && version.origin == crate::version::VersionOrigin::Draft
        {
            self.fell_back("not-ready", "no memory by the model is ready");
        }
        let waited = waiting.map(|waiting| (now.since(waiting.since), waiting.waited.kind));
        self.adopt(version, reason, waited);
    }

    fn is_light_after(&self, version: &Version) -> bool {
        self.settings.body_bytes_max.is_none_or(|max| {
            self.overhead_bytes + version.text.len() as u64 + self.live.bytes_from(version.cover())
                < max / 5 * 4
        })
    }

    /// Has the request wait for a memory, if one can be had.
    fn wait_for_build(
        &mut self,
        now: Time,
        reason: Reason,
        waiting: Option<Waiting>,
        rounds: u8,
    ) -> bool {
        let for_model_ms = match self.settings.mode {
            Mode::Traditional => self.settings.traditional_wait_ms_max,
            Mode::Instant | Mode::Off => self.settings.model_wait_ms_max,
        };
        let since = waiting.map_or(now, |waiting| waiting.since);
        let model_left_ms = for_model_ms.saturating_sub(now.since(since));
        if let Some(running) = &self.updating
            && model_left_ms > 0
        {
            let waited = Waited {
                ticket: running.ticket,
                kind: BuildKind::Model,
            };
            self.wait(since, waited, rounds, model_left_ms);
            return true;
        }
        if !self.may_use_drafts() && for_model_ms == 0 {
            return false;
        }
        // What is being drafted leaves the usual tail; if that is not enough, another draft follows.
        if self.drafting.is_none() {
            let keeping = if rounds == 0 {
                Keeping::Usual
            } else {
                Keeping::Least
            };
            let is_ordered = self.order_draft(now, reason, keeping, None)
                || (keeping == Keeping::Usual
                    && self.order_draft(now, reason, Keeping::Least, None));
            if !is_ordered {
                return false;
            }
        }
        let Some(running) = &self.drafting else {
            return false;
        };
        let waited = Waited {
            ticket: running.ticket,
            kind: BuildKind::Draft,
        };
        self.wait(since, waited, rounds + 1, DRAFT_WAIT_MS_MAX);
        true
    }

    fn wait(&mut self, since: Time, waited: Waited, rounds: u8, at_most_ms: u64) {
        self.waiting = Some(Waiting {
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
