//! Having memories made: when, of what, and what becomes of them.

use std::sync::Arc;

use throughline_memory::document::Memory;
use throughline_transcript::cut::LatestRequest;

use super::Engine;
use crate::budget::{Mark, Time};
use crate::event::{
    BuildKind, CompactionOutcome, DropReason, EngineEvent, Halt, Reason, RefusalReason, SkipReason,
    UpdateFailure,
};
use crate::live::Keep;
use crate::output::{BuildOrder, Output, Plan, Ticket, UpdateOrder};
use crate::settings::{CompactorChoice, Mode};
use crate::version::{Version, VersionOrigin};

/// A memory that is being made.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) ticket: Ticket,
    /// Swaps before it was ordered.
    pub(super) swaps: u64,
    pub(super) cover: usize,
    pub(super) at: Time,
    pub(super) reason: Reason,
    pub(super) order: BuildOrder,
}

/// A draft, and what it was made of.
#[derive(Clone, Debug)]
pub(super) struct Drafted {
    pub(super) version: Arc<Version>,
    running: Running,
    /// Whether it is stored already.
    pub(super) is_kept: bool,
    /// Why the model is asked when the provider has begun to answer.
    held: Option<Reason>,
}

impl Drafted {
    /// The memory that it goes on from.
    pub(super) fn prior(&self) -> Option<&Arc<Version>> {
        self.running.order.prior.as_ref()
    }
}

/// How much of the end an order leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// As the settings say.
    Usual,
    /// As little as cuts allow.
    Least,
    /// Not even the latest request, if it was answered.
    Nothing,
}

/// No memory takes less, tokens: what says that it is one takes most of that.
const MEMORY_TOKENS_MIN: u64 = 100;

impl Engine {
    /// Orders a memory if one is due.
    pub(super) fn build_if_due(&mut self, now: Time) {
        if self.settings.mode != Mode::Instant
            || !self.is_awake
            || self.drafting.is_some()
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
        if !self.order(now, reason, Keeping::Usual, None) && self.gain_max() == 0 {
            self.skip(reason, SkipReason::NothingToCover);
        }
    }

    fn build_reason(&self, now: Time) -> Option<Reason> {
        let is_filling = self.context() >= self.budget().at(self.settings.soft);
        let reason = match (is_filling, self.is_heavy()) {
            (true, _) => Reason::SoftMark,
            (false, true) => Reason::BodyBytes,
            (false, false) => self.triggered().filter(|_| self.candidate().is_none())?,
        };
        let Some(ordered_at) = self.ordered_at else {
            return Some(reason);
        };
        let step = match &self.ready {
            // What has come since the model was asked is added soon.
            Some(_) if !self.is_catch_up() => self.catch_up_min(),
            _ => self.settings.step_tokens(),
        };
        let growth = self.live.tokens().saturating_sub(ordered_at);
        let is_break = self.settings.step.at_breaks && growth >= step / 2 && self.live.is_at_rest();
        let has_called = self
            .settings
            .step
            .tool_calls
            .is_some_and(|calls| self.calls_since_order >= calls);
        (growth >= step || is_break || has_called || (growth > 0 && self.is_model_pressing(now)))
            .then_some(Reason::Grown)
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
        self.gain_of(self.cut(Keeping::Least))
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
        let memory = self.adopted.as_ref().map_or(0, |adopted| adopted.tokens);
        self.meter
            .calibration()
            .apply((covered + memory).saturating_sub(MEMORY_TOKENS_MIN))
    }

    /// Whether no compaction can bring the context below its mark; says so once.
    pub(super) fn is_overhead_too_large(&mut self) -> bool {
        let budget = self.budget();
        let is_too_large = match self.mark() {
            Mark::Tokens(_) => self.overhead_tokens >= budget.at(self.mark()),
            // The mark moves with the overhead, but a memory and a request have to find room.
            Mark::Permille(_) => budget.usable() < self.settings.memory_tokens_max.min(200),
        };
        if is_too_large {
            self.stop(Halt::Overhead {
                overhead: self.overhead_tokens,
                limit: budget.limit(),
            });
        }
        is_too_large
    }

    /// Where a memory would end.
    pub(super) fn cut(&self, keeping: Keeping) -> usize {
        let budget = self.budget();
        let keep = match keeping {
            Keeping::Usual => Keep {
                tokens: budget.amount(self.settings.keep),
                bytes: self.settings.body_bytes_max.map_or(u64::MAX, |max| max / 4),
            },
            Keeping::Least | Keeping::Nothing => Keep {
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
                self.overhead_tokens + self.settings.memory_tokens_max + self.live.tokens_from(cut),
            )
        };
        let is_light = self
            .settings
            .body_bytes_max
            .is_none_or(|max| self.live.bytes_from(cut) + self.overhead_bytes < max / 2);
        let may_cover_request = keeping == Keeping::Nothing && self.live.is_at_rest();
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
        reason: Reason,
        keeping: Keeping,
        focus: Option<String>,
    ) -> bool {
        self.ordered_at = Some(self.live.tokens());
        self.calls_since_order = 0;
        let cut = self.cut(keeping);
        if self.gain_of(cut) == 0 {
            return false;
        }
        if focus.is_none()
            && self
                .draft
                .as_ref()
                .is_some_and(|draft| draft.version.cover() == cut)
        {
            let is_made = self
                .ready
                .as_ref()
                .is_some_and(|ready| ready.cover() >= cut);
            return !is_made && self.update_if_due(now, reason);
        }
        let prior = self
            .ready
            .as_ref()
            .filter(|ready| ready.cover() > self.live.first() && ready.cover() <= cut)
            .or(self.memory())
            .cloned();
        let first = prior
            .as_ref()
            .map_or(self.live.first(), |prior| prior.cover());
        let Some(chain) = self.live.chain_at(first) else {
            return false;
        };
        let order = BuildOrder {
            ticket: self.next_ticket(),
            epoch: self.epoch,
            prior,
            chain,
            first,
            messages: self.live.between(first, cut).to_vec(),
            tokens_max: self.settings.memory_tokens_max,
            focus,
        };
        let tokens = self
            .live
            .tokens_from(first)
            .saturating_sub(self.live.tokens_from(cut));
        self.event(EngineEvent::BuildStarted {
            ticket: order.ticket,
            kind: BuildKind::Draft,
            reason,
            cover: cut,
            tokens,
        });
        self.drafting = Some(Running {
            ticket: order.ticket,
            swaps: self.swaps,
            cover: cut,
            at: now,
            reason,
            order: order.clone(),
        });
        self.outputs.push_back(Output::Draft(order));
        true
    }

    fn next_ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    pub(super) fn drafted(
        &mut self,
        now: Time,
        ticket: Ticket,
        result: Result<Memory, UpdateFailure>,
    ) {
        let Some(running) = self.drafting.take_if(|running| running.ticket == ticket) else {
            self.event(EngineEvent::Dropped {
                ticket,
                reason: DropReason::NotOrdered,
            });
            return;
        };
        let kind = BuildKind::Draft;
        let version = result.and_then(|memory| {
            self.accept(now, &running, kind, memory)
                .map_err(|reason| UpdateFailure {
                    class: "refused".to_owned(),
                    message: reason,
                    retry_after_ms: None,
                })
        });
        match version {
            Ok(version) => {
                // The number is the one that it has if it is adopted, so that it need not be written again then. Where a
                // swap is near it is stored now, beside the session, and not while a request waits.
                let is_kept = self.is_swap_near();
                let draft = if is_kept {
                    self.keep(version)
                } else {
                    let number = self.number.saturating_add(1);
                    Arc::new(version.numbered(number, &self.settings))
                };
                self.draft_failures = 0;
                let reason = running.reason;
                self.draft = Some(Drafted {
                    version: Arc::clone(&draft),
                    running,
                    is_kept,
                    held: None,
                });
                if !self.update_if_due(now, reason) {
                    self.finish_asked(ticket, &draft);
                }
            }
            Err(reason) => self.draft_failed(ticket, reason),
        }
    }

    /// The provider has seen the last request: a model that is to read it too can be asked.
    pub(super) fn seen(&mut self, now: Time) {
        self.is_on_its_way = false;
        if let Some(reason) = self.draft.as_mut().and_then(|draft| draft.held.take()) {
            self.update_if_due(now, reason);
        }
    }

    /// Orders the model's memory of what the newest draft was made of, or holds it back until the provider has seen the
    /// request that is on its way.
    fn update_if_due(&mut self, now: Time, reason: Reason) -> bool {
        let Some(draft) = self.draft.clone() else {
            return false;
        };
        if self.is_overtaken(&draft.running) {
            return false;
        }
        let is_due = self.is_model_due(now);
        if is_due {
            let running = Running {
                reason,
                ..draft.running
            };
            self.order_update(now, running, &draft.version);
        } else if let Some(draft) = self.draft.as_mut().filter(|_| self.is_on_its_way) {
            draft.held = Some(reason);
        }
        is_due
    }

    fn draft_failed(&mut self, ticket: Ticket, reason: UpdateFailure) {
        self.draft_failures += 1;
        let in_a_row = self.draft_failures;
        self.event(EngineEvent::Failed {
            ticket,
            kind: BuildKind::Draft,
            reason: reason.clone(),
            in_a_row,
        });
        if in_a_row >= self.settings.failures_max {
            self.draft_failures = 0;
            self.stop(Halt::Failures {
                in_a_row,
                last: reason.clone(),
            });
        }
        self.end_asked(
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

    /// Whether a swap has come in between, and left so little that nothing needs to be made of it by a model yet.
    fn is_overtaken(&self, running: &Running) -> bool {
        running.swaps < self.swaps
            && self.asked.is_none()
            && self.waiting.is_none()
            && self.context() < self.budget().at(self.settings.soft)
    }

    pub(super) fn wants_model(&self, now: Time) -> bool {
        self.settings.compactor == CompactorChoice::Model
            && self.updating.is_none()
            && (self.asked.is_some() || self.rest_until.is_none_or(|until| now >= until))
    }

    fn order_update(&mut self, now: Time, drafted: Running, draft: &Arc<Version>) {
        let order = BuildOrder {
            ticket: self.next_ticket(),
            ..drafted.order
        };
        self.rest_until = None;
        self.model_ordered();
        if std::mem::take(&mut self.is_rest_said) {
            self.event(EngineEvent::Resumed);
        }
        self.hand_over_asked(drafted.ticket, order.ticket);
        self.event(EngineEvent::BuildStarted {
            ticket: order.ticket,
            kind: BuildKind::Model,
            reason: drafted.reason,
            cover: drafted.cover,
            tokens: self
                .live
                .tokens_from(order.first)
                .saturating_sub(self.live.tokens_from(drafted.cover)),
        });
        self.updating = Some(Running {
            ticket: order.ticket,
            swaps: self.swaps,
            cover: drafted.cover,
            at: now,
            reason: drafted.reason,
            order: BuildOrder {
                messages: Vec::new(),
                ..order.clone()
            },
        });
        // Nothing may be said between a call and its result.
        let live = Plan {
            end: self.live.settled_end(),
            ..self.plan()
        };
        self.outputs.push_back(Output::Update(UpdateOrder {
            order,
            draft: Arc::new(draft.memory.clone()),
            live,
        }));
    }

    pub(super) fn updated(
        &mut self,
        now: Time,
        ticket: Ticket,
        result: Result<Memory, UpdateFailure>,
    ) {
        let Some(running) = self.updating.take_if(|running| running.ticket == ticket) else {
            self.event(EngineEvent::Dropped {
                ticket,
                reason: DropReason::NotOrdered,
            });
            return;
        };
        let kind = BuildKind::Model;
        if running.swaps + 1 < self.swaps {
            self.drop_late(ticket, DropReason::TwoSwaps);
            return;
        }
        let version = result.and_then(|memory| {
            self.accept(now, &running, kind, memory)
                .map_err(|message| UpdateFailure {
                    class: "refused".to_owned(),
                    message,
                    retry_after_ms: None,
                })
        });
        match version {
            Ok(version) => {
                self.failures = 0;
                self.no_model = None;
                let version = self.keep(version);
                self.ready = Some(Arc::clone(&version));
                self.finish_asked(ticket, &version);
            }
            Err(reason) => self.failed(now, ticket, reason),
        }
    }

    fn drop_late(&mut self, ticket: Ticket, reason: DropReason) {
        self.event(EngineEvent::Dropped { ticket, reason });
        self.end_asked(ticket, CompactionOutcome::Discarded);
    }

    fn failed(&mut self, now: Time, ticket: Ticket, reason: UpdateFailure) {
        self.failures += 1;
        self.event(EngineEvent::Failed {
            ticket,
            kind: BuildKind::Model,
            reason: reason.clone(),
            in_a_row: self.failures,
        });
        self.no_model = Some(reason.clone());
        let mut rest = reason.retry_after_ms;
        if self.failures >= self.settings.failures_max {
            self.event(EngineEvent::Halted(Halt::Failures {
                in_a_row: self.failures,
                last: reason.clone(),
            }));
            self.is_rest_said = true;
            self.failures = 0;
            rest = Some(rest.unwrap_or(0).max(self.settings.failure_rest_ms));
        }
        if let Some(rest) = rest {
            self.rest_until = Some(now + rest);
        }
        self.finish_asked_without_model(ticket, &reason.message);
    }

    /// Checks a memory against what was ordered and against the history as it is now.
    fn accept(
        &mut self,
        now: Time,
        running: &Running,
        kind: BuildKind,
        memory: Memory,
    ) -> Result<Version, String> {
        let ticket = running.ticket;
        let refused = |engine: &mut Self, reason: RefusalReason, said: &str| {
            engine.event(EngineEvent::Refused {
                ticket,
                kind,
                reason,
            });
            Err(said.to_owned())
        };
        if memory.cover.messages != running.cover {
            return refused(
                self,
                RefusalReason::OtherCover,
                "the memory stands for other messages than were asked for",
            );
        }
        if memory.items.is_empty() {
            return refused(self, RefusalReason::Empty, "the memory says nothing");
        }
        let origin = match kind {
            BuildKind::Draft => VersionOrigin::Draft,
            BuildKind::Model => VersionOrigin::Model,
        };
        let version = Version::new(memory, origin, &self.settings);
        let fits = self
            .live
            .chain_at(running.cover)
            .is_some_and(|chain| version.fits(chain));
        if !fits {
            self.event(EngineEvent::Dropped {
                ticket,
                reason: DropReason::HistoryChanged,
            });
            return Err("the history has changed since".to_owned());
        }
        let version = self.with_ledger(version);
        let version =
            if self.settings.memory_tokens_max >= version.tokens || kind == BuildKind::Draft {
                version
            } else {
                let tokens = version.tokens;
                let tokens_max = self.settings.memory_tokens_max;
                match version.fitted(&self.settings) {
                    Some(fitted) => fitted,
                    None => {
                        return refused(
                            self,
                            RefusalReason::OverCap { tokens, tokens_max },
                            "the memory is larger than it may be",
                        );
                    }
                }
            };
        let covered = self.adopted.as_ref().map_or(0, |adopted| adopted.tokens)
            + self
                .live
                .tokens()
                .saturating_sub(self.live.tokens_from(running.cover));
        if version.tokens >= covered {
            let reason = RefusalReason::NotSmaller {
                tokens: version.tokens,
                covered,
            };
            return refused(
                self,
                reason,
                "the memory is not smaller than what it covers",
            );
        }
        let took_ms = now.since(running.at);
        if kind == BuildKind::Model {
            self.pace.updated(took_ms);
        }
        self.event(EngineEvent::Built {
            ticket,
            kind,
            cover: running.cover,
            tokens: version.tokens,
            took_ms,
        });
        Ok(version)
    }

    /// Numbers a version and has it stored.
    pub(super) fn keep(&mut self, version: Version) -> Arc<Version> {
        self.number = self.number.saturating_add(1);
        let version = Arc::new(version.numbered(self.number, &self.settings));
        self.outputs.push_back(Output::Keep(Arc::clone(&version)));
        version
    }

    pub(super) fn give_up_update(&mut self, reason: DropReason) {
        if let Some(running) = self.updating.take() {
            self.outputs.push_back(Output::CancelUpdate(running.ticket));
            self.drop_late(running.ticket, reason);
        }
    }

    pub(super) fn give_up_draft(&mut self, reason: DropReason) {
        if let Some(running) = self.drafting.take() {
            self.drop_late(running.ticket, reason);
        }
    }

    pub(super) fn give_up_builds(&mut self, reason: DropReason) {
        self.give_up_update(reason);
        self.give_up_draft(reason);
    }

    /// What a request is made of now.
    pub(super) fn plan(&self) -> Plan {
        let tokens = self.context();
        Plan {
            epoch: self.epoch,
            memory: self
                .adopted
                .as_ref()
                .map(|adopted| Arc::clone(&adopted.text)),
            first: self.live.first(),
            end: self.live.end(),
            thinking_from: if self.settings.binds_thinking {
                self.thinking_from
            } else {
                0
            },
            last_end: self
                .live
                .last_asked()
                .filter(|end| *end >= self.thinking_from),
            tokens,
            is_too_large: tokens > self.budget().limit(),
        }
    }
}
