//! Builds of memories: when they are ordered, of what, and how their results are used.

use std::sync::Arc;

use throughline_memory::document::Memory;
use throughline_transcript::cut::LatestRequest;

use super::Engine;
use super::builds::RunningBuild;
use super::memories::{Draft, DraftStorage};
use crate::budget::{Mark, Time};
use crate::event::{
    BuildKind, CompactionOutcome, DropReason, DueReason, EngineEvent, Halt, RefusalReason,
    SkipReason,
};
use crate::live::Keep;
use crate::output::{BuildOrder, Output, Plan, UpdateOrder};
use crate::settings::{CompactorChoice, Mode};
use crate::version::{Version, numbered};
use crate::vocabulary::{Ticket, UpdateFailure, UpdateFailureClass, VersionOrigin};

/// How much of the end an order leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TailSize {
    /// As the settings say.
    Usual,
    /// As little as cuts allow.
    Least,
    /// Not even the latest request, if it was answered.
    Nothing,
}

/// No memory takes less, tokens: what says that it is one takes most of that.
const MEMORY_TOKENS_MIN: u64 = 100;
/// A memory has at most one token for this many that it covers, its predecessor included: by default, the cap is the
/// same share of the window.
const COVERED_PER_MEMORY_TOKEN: u64 = 20;
/// The smallest cap by default, tokens.
const MEMORY_CAP_MIN: u64 = 400;
/// The room of a memory of little: requests and rules in the user's words.
const DRAFT_TOKENS_MIN: u64 = 300;

impl Engine {
    /// Orders a memory if one is due.
    pub(super) fn build_if_due(&mut self, now: Time) {
        if self.settings.mode != Mode::Instant
            || !self.is_awake
            || self.builds.drafting().is_some()
            || self.is_halted()
        {
            return;
        }
        let Some(reason) = self.build_reason(now) else {
            return;
        };
        if self.is_overhead_too_large() {
            return;
        }
        if !self.order(now, reason, TailSize::Usual, None) && self.gain_max() == 0 {
            self.skip(reason, SkipReason::NothingToCover);
        }
    }

    fn build_reason(&self, now: Time) -> Option<DueReason> {
        let is_filling = self.context() >= self.budget().at(self.settings.soft);
        let reason = match (is_filling, self.is_heavy()) {
            (true, _) => DueReason::SoftMark,
            (false, true) => DueReason::BodyBytes,
            (false, false) => self.triggered().filter(|_| self.candidate().is_none())?,
        };
        let Some(ordered_at) = self.builds.ordered_at() else {
            return Some(reason);
        };
        let step = match self.memories.ready() {
            // What has come since the model was asked is added soon.
            Some(_) if !self.memories.is_catch_up() => self.catch_up_min(),
            _ => self.settings.step_tokens(),
        };
        let growth = self.live.tokens().saturating_sub(ordered_at);
        let is_break = self.settings.step.at_breaks && growth >= step / 2 && self.live.is_at_rest();
        let has_called = self
            .settings
            .step
            .tool_calls
            .is_some_and(|calls| self.builds.calls_since_order() >= calls);
        (growth >= step || is_break || has_called || (growth > 0 && self.is_model_pressing(now)))
            .then_some(DueReason::Grown)
    }

    /// Whether requests have half of the bytes that they may have.
    pub(super) fn is_heavy(&self) -> bool {
        self.settings
            .body_bytes_max
            .is_some_and(|max| self.bytes() >= max / 2)
    }

    /// The most by which a memory can make the context smaller, tokens. 0 if none can be made: the latest request is the
    /// first message, or calls are open.
    pub(super) fn gain_max(&self) -> u64 {
        self.gain_of(self.cut(TailSize::Least))
    }

    /// The most by which a memory of that cover can make the context smaller.
    pub(super) fn gain_of(&self, cut: usize) -> u64 {
        if cut <= self.live.first() {
            return 0;
        }
        let covered = self
            .live
            .tokens()
            .saturating_sub(self.live.tokens_from(cut));
        let memory = self.memories.adopted_tokens();
        self.meter
            .calibration()
            .apply((covered + memory).saturating_sub(MEMORY_TOKENS_MIN))
    }

    /// Whether no compaction can bring the context below its mark; says so once.
    pub(super) fn is_overhead_too_large(&mut self) -> bool {
        let budget = self.budget();
        let is_too_large = match self.mark() {
            Mark::Tokens(_) => self.overhead.tokens >= budget.at(self.mark()),
            // The mark moves with the overhead, but a memory and a request have to find room.
            Mark::Permille(_) => budget.usable() < self.settings.memory_tokens_max.min(200),
        };
        if is_too_large {
            self.stop(Halt::Overhead {
                overhead: self.overhead.tokens,
                limit: budget.limit(),
            });
        }
        is_too_large
    }

    /// Where a memory would end.
    pub(super) fn cut(&self, keeping: TailSize) -> usize {
        let budget = self.budget();
        let keep = match keeping {
            TailSize::Usual => Keep {
                tokens: budget.amount(self.settings.keep),
                bytes: self.settings.body_bytes_max.map_or(u64::MAX, |max| max / 4),
            },
            TailSize::Least | TailSize::Nothing => Keep {
                tokens: 0,
                bytes: 0,
            },
        };
        let begins = self.settings.tail_begins;
        let cut = self.live.cut(keep, LatestRequest::InTail, begins);
        let goal = budget.at(self.settings.soft);
        let calibration = self.meter.calibration();
        let after = |cut: usize| {
            calibration.apply(
                self.overhead.tokens + self.settings.memory_tokens_max + self.live.tokens_from(cut),
            )
        };
        let is_light = self
            .settings
            .body_bytes_max
            .is_none_or(|max| self.live.bytes_from(cut) + self.overhead.bytes < max / 2);
        let may_cover_request = keeping == TailSize::Nothing && self.live.is_at_rest();
        if after(cut) <= goal && is_light && !may_cover_request {
            return cut;
        }
        // A tool loop that fills the window: its request is quoted behind the memory.
        cut.max(self.live.cut(keep, LatestRequest::MayBeCovered, begins))
    }

    /// Orders a memory: a draft, or the model's if there is a draft already. Says whether one is made now.
    pub(super) fn order(
        &mut self,
        now: Time,
        reason: DueReason,
        keeping: TailSize,
        focus: Option<String>,
    ) -> bool {
        self.builds.note_order(self.live.tokens());
        let cut = self.cut(keeping);
        if self.gain_of(cut) == 0 {
            return false;
        }
        if focus.is_none()
            && self
                .memories
                .draft()
                .is_some_and(|draft| draft.version.cover() == cut)
        {
            let is_made = self
                .memories
                .ready()
                .is_some_and(|ready| ready.cover() >= cut);
            return !is_made && self.update_if_due(now, reason);
        }
        let prior = self
            .memories
            .ready()
            .filter(|ready| ready.cover() > self.live.first() && ready.cover() <= cut)
            .or(self.memory())
            .cloned();
        let first = prior
            .as_ref()
            .map_or(self.live.first(), |prior| prior.cover());
        let Some(chain) = self.live.chain_at(first) else {
            return false;
        };
        let tokens = self
            .live
            .tokens_from(first)
            .saturating_sub(self.live.tokens_from(cut));
        let prior_tokens = prior.as_ref().map_or(0, |prior| prior.tokens);
        // A memory that is hardly smaller than what it covers is refused, or saves nothing.
        let covered = prior_tokens + tokens;
        let share = covered / COVERED_PER_MEMORY_TOKEN;
        // The smallest cap, that of a small window, is not cut any further.
        let least = match self.settings.memory_tokens_max {
            cap @ ..=MEMORY_CAP_MIN => cap,
            _ => DRAFT_TOKENS_MIN,
        };
        let order = BuildOrder {
            ticket: self.builds.next_ticket(),
            epoch: self.epoch,
            prior,
            chain,
            first,
            messages: self.live.between(first, cut).into(),
            tokens_max: share
                .max(prior_tokens)
                .max(least)
                .min(covered * 3 / 4)
                .min(self.settings.memory_tokens_max),
            focus,
        };
        self.event(EngineEvent::BuildStarted {
            ticket: order.ticket,
            kind: BuildKind::Draft,
            reason,
            cover: cut,
            tokens,
        });
        self.builds.start(
            BuildKind::Draft,
            RunningBuild {
                ticket: order.ticket,
                swaps: self.swaps,
                cover: cut,
                at: now,
                reason,
                order: order.clone(),
            },
        );
        self.outputs.push_back(Output::Draft(order));
        true
    }

    pub(super) fn drafted(
        &mut self,
        now: Time,
        ticket: Ticket,
        result: Result<Memory, UpdateFailure>,
    ) {
        let Some(running) = self.finish_build(BuildKind::Draft, ticket) else {
            return;
        };
        match result.and_then(|memory| self.accept(now, &running, BuildKind::Draft, memory)) {
            Ok(version) => {
                self.failures.draft_made();
                // If a swap is near, the draft is stored now, in the background, and not while a request waits. Otherwise
                // it only has the number that it would be stored under.
                let (version, storage) = if self.is_swap_near() {
                    (self.keep(version), DraftStorage::Kept)
                } else {
                    (Arc::new(version), DraftStorage::NotKept)
                };
                let reason = running.reason;
                self.memories.set_draft(Draft {
                    version: Arc::clone(&version),
                    running,
                    storage,
                    held: None,
                });
                if !self.update_if_due(now, reason) {
                    self.finish_pending(ticket, &version);
                }
            }
            Err(reason) => self.draft_failed(ticket, reason),
        }
    }

    /// Ends a build. An answer to no order is dropped.
    fn finish_build(&mut self, kind: BuildKind, ticket: Ticket) -> Option<RunningBuild> {
        let running = self.builds.finish(kind, ticket);
        if running.is_none() {
            self.event(EngineEvent::Dropped {
                ticket,
                reason: DropReason::NotOrdered,
            });
        }
        running
    }

    /// The provider's cache holds the last request: a model that is to read it too can be asked.
    pub(super) fn answer_begun(&mut self, now: Time) {
        self.flight.answer_begun();
        if let Some(reason) = self.memories.release_model() {
            self.update_if_due(now, reason);
        }
    }

    /// Orders the model's memory of what the newest draft was made of, or holds it back until the provider's cache holds
    /// the request that is on its way.
    fn update_if_due(&mut self, now: Time, reason: DueReason) -> bool {
        let Some(draft) = self.memories.draft() else {
            return false;
        };
        if self.is_overtaken(&draft.running) {
            return false;
        }
        if self.is_model_due(now) {
            let draft = draft.clone();
            self.order_update(now, reason, &draft);
            return true;
        }
        if self.flight.is_on_its_way() {
            self.memories.hold_model(reason);
        }
        false
    }

    fn draft_failed(&mut self, ticket: Ticket, reason: UpdateFailure) {
        let failed = self.failures.draft_failed(self.settings.failures_max);
        let in_a_row = failed.in_a_row;
        self.event(EngineEvent::Failed {
            ticket,
            kind: BuildKind::Draft,
            reason: reason.clone(),
            in_a_row,
        });
        if failed.is_too_often {
            self.stop(Halt::Failures {
                in_a_row,
                last: reason.clone(),
            });
        }
        self.end_pending(
            ticket,
            CompactionOutcome::Refused {
                reason: reason.message,
            },
        );
    }

    /// Whether drafts may be swapped in, and the context is more than half way from the soft mark to that of the swap.
    fn is_swap_near(&self) -> bool {
        let budget = self.budget();
        let (soft, mark) = (budget.at(self.settings.soft), budget.at(self.mark()));
        self.may_use_drafts() && self.context() >= soft.midpoint(mark)
    }

    /// Whether a swap has happened in between, and left so little that a model need not be asked yet.
    fn is_overtaken(&self, running: &RunningBuild) -> bool {
        running.swaps < self.swaps
            && self.pending.is_none()
            && self.waiting.is_none()
            && self.context() < self.budget().at(self.settings.soft)
    }

    pub(super) fn wants_model(&self, now: Time) -> bool {
        self.settings.compactor == CompactorChoice::Model
            && self.builds.updating().is_none()
            && (self.pending.is_some() || !self.failures.is_resting(now))
    }

    fn order_update(&mut self, now: Time, reason: DueReason, draft: &Draft) {
        let (drafted, cover) = (draft.running.ticket, draft.running.cover);
        let order = BuildOrder {
            ticket: self.builds.next_ticket(),
            ..draft.running.order.clone()
        };
        let was_halted = self.failures.end_rest();
        self.account_model_order();
        if was_halted {
            self.event(EngineEvent::Resumed);
        }
        self.hand_over_pending(drafted, order.ticket);
        self.event(EngineEvent::BuildStarted {
            ticket: order.ticket,
            kind: BuildKind::Model,
            reason,
            cover,
            tokens: self
                .live
                .tokens_from(order.first)
                .saturating_sub(self.live.tokens_from(cover)),
        });
        self.builds.start(
            BuildKind::Model,
            RunningBuild {
                ticket: order.ticket,
                swaps: self.swaps,
                cover,
                at: now,
                reason,
                order: order.clone(),
            },
        );
        // No message may come between a call and its result.
        let live = Plan {
            end: self.live.settled_end(),
            ..self.plan()
        };
        self.outputs.push_back(Output::Update(UpdateOrder {
            order,
            draft: Arc::new(draft.version.memory.clone()),
            live,
        }));
    }

    pub(super) fn updated(
        &mut self,
        now: Time,
        ticket: Ticket,
        result: Result<Memory, UpdateFailure>,
    ) {
        let Some(running) = self.finish_build(BuildKind::Model, ticket) else {
            return;
        };
        if running.swaps + 1 < self.swaps {
            self.drop_late(ticket, DropReason::TwoSwaps);
            return;
        }
        match result.and_then(|memory| self.accept(now, &running, BuildKind::Model, memory)) {
            Ok(version) => {
                self.failures.model_made();
                let version = self.keep(version);
                self.memories.set_ready(Arc::clone(&version));
                self.finish_pending(ticket, &version);
            }
            Err(reason) => self.model_failed(now, ticket, reason),
        }
    }

    fn drop_late(&mut self, ticket: Ticket, reason: DropReason) {
        self.event(EngineEvent::Dropped { ticket, reason });
        self.end_pending(ticket, CompactionOutcome::Discarded);
    }

    fn model_failed(&mut self, now: Time, ticket: Ticket, reason: UpdateFailure) {
        let failed = self.failures.model_failed(
            now,
            reason.clone(),
            self.settings.failures_max,
            self.settings.failure_rest_ms,
        );
        self.event(EngineEvent::Failed {
            ticket,
            kind: BuildKind::Model,
            reason: reason.clone(),
            in_a_row: failed.in_a_row,
        });
        if failed.is_too_often {
            self.event(EngineEvent::Halted(Halt::Failures {
                in_a_row: failed.in_a_row,
                last: reason.clone(),
            }));
        }
        self.finish_pending_without_model(ticket, &reason.message);
    }

    /// Checks a memory against what was ordered and against the history as it is now. It is rendered here, under the
    /// number that it is kept with.
    fn accept(
        &mut self,
        now: Time,
        running: &RunningBuild,
        kind: BuildKind,
        memory: Memory,
    ) -> Result<Version, UpdateFailure> {
        if memory.cover.messages != running.cover {
            return Err(self.refuse(running, kind, RefusalReason::OtherCover));
        }
        if memory.items.is_empty() {
            return Err(self.refuse(running, kind, RefusalReason::Empty));
        }
        if self.live.chain_at(running.cover) != Some(memory.cover.digest) {
            self.event(EngineEvent::Dropped {
                ticket: running.ticket,
                reason: DropReason::HistoryChanged,
            });
            return Err(refusal("the history has changed since"));
        }
        let origin = match kind {
            BuildKind::Draft => VersionOrigin::Draft,
            BuildKind::Model => VersionOrigin::Model,
        };
        let memory = numbered(memory, self.memories.next_number());
        let mut version = Version::complete(memory, origin, &self.ledger(origin), &self.settings);
        if kind == BuildKind::Model {
            let (tokens, tokens_max) = (version.tokens, self.settings.memory_tokens_max);
            version = match version.fitted(&self.settings) {
                Some(fitted) => fitted,
                None => {
                    let reason = RefusalReason::OverCap { tokens, tokens_max };
                    return Err(self.refuse(running, kind, reason));
                }
            };
        }
        let tokens = version.tokens;
        let covered = self.memories.adopted_tokens()
            + self
                .live
                .tokens()
                .saturating_sub(self.live.tokens_from(running.cover));
        if tokens >= covered {
            let reason = RefusalReason::NotSmaller { tokens, covered };
            return Err(self.refuse(running, kind, reason));
        }
        let took_ms = now.since(running.at);
        if kind == BuildKind::Model {
            self.pace.updated(took_ms);
        }
        self.event(EngineEvent::Built {
            ticket: running.ticket,
            kind,
            cover: running.cover,
            tokens,
            took_ms,
        });
        Ok(version)
    }

    fn refuse(
        &mut self,
        running: &RunningBuild,
        kind: BuildKind,
        reason: RefusalReason,
    ) -> UpdateFailure {
        let message = match reason {
            RefusalReason::OtherCover => "the memory covers other messages than ordered",
            RefusalReason::Empty => "the memory says nothing",
            RefusalReason::OverCap { .. } => "the memory is larger than it may be",
            RefusalReason::NotSmaller { .. } => "the memory is not smaller than what it covers",
        };
        self.event(EngineEvent::Refused {
            ticket: running.ticket,
            kind,
            reason,
        });
        refusal(message)
    }

    /// Numbers a version and has it stored.
    pub(super) fn keep(&mut self, version: Version) -> Arc<Version> {
        let version = self.memories.number_next(version, &self.settings);
        self.outputs.push_back(Output::Keep(Arc::clone(&version)));
        version
    }

    pub(super) fn give_up_build(&mut self, kind: BuildKind, reason: DropReason) {
        let Some(running) = self.builds.give_up(kind) else {
            return;
        };
        if kind == BuildKind::Model {
            self.outputs.push_back(Output::CancelUpdate(running.ticket));
        }
        self.drop_late(running.ticket, reason);
    }

    pub(super) fn give_up_builds(&mut self, reason: DropReason) {
        self.give_up_build(BuildKind::Model, reason);
        self.give_up_build(BuildKind::Draft, reason);
    }

    /// What a request is made of now.
    pub(super) fn plan(&self) -> Plan {
        let tokens = self.context();
        Plan {
            epoch: self.epoch,
            memory: self
                .memories
                .adopted()
                .map(|adopted| Arc::clone(&adopted.text)),
            first: self.live.first(),
            end: self.live.end(),
            thinking_from: if self.settings.binds_thinking {
                self.flight.thinking_from()
            } else {
                0
            },
            last_end: self
                .live
                .last_asked()
                .filter(|end| *end >= self.flight.thinking_from()),
            tokens,
            is_too_large: tokens > self.budget().limit(),
        }
    }
}

fn refusal(message: &str) -> UpdateFailure {
    UpdateFailure {
        class: UpdateFailureClass::Refused,
        message: message.to_owned(),
        retry_after_ms: None,
    }
}
