//! What swaps save and what memories cost, and what follows from that: whether a swap before the hard mark pays, and
//! when a model is asked.
//!
//! Money is counted in thousandths of the price of one uncached token.

use throughline_transcript::message::Role;

use super::Engine;
use super::build::TailSize;
use crate::budget::Time;
use crate::event::DueReason;
use crate::settings::{EconomyRule, Mode, Spending};
use crate::version::Version;

/// What a model is asked besides what it reads: what is wanted and the index of the memory so far, tokens, about.
const INSTRUCTIONS_TOKENS: u64 = 1_500;
/// How long a model needs for a memory, before one was made; milliseconds.
const UPDATE_MS: u64 = 30_000;
/// How long a request and what comes after it take, before two were made; milliseconds.
const INTERVAL_MS: u64 = 10_000;
/// After a memory by a model the model is asked again, before it was swapped in, if this part of the usable window has
/// come since, thousandths.
const CATCH_UP_PERMILLE: u32 = 250;
/// Below this part a client is taken for one without a cache, thousandths.
const HITS_MIN_PERMILLE: u64 = 250;
/// Prompts below this size are not cached by every model, tokens.
const CACHED_TOKENS_MIN: u64 = 5_000;

/// Requests after a cold cache within which the cache is expected to go cold again.
const COLD_REQUESTS: u32 = 50;

/// How fast the session grows, which decides when a model has to begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Live tokens at the last request of this epoch.
    last_tokens: Option<u64>,
    /// The largest recent growth of the context from one request to the next, in tokens.
    growth: u64,
    interval_ms: u64,
    update_ms: u64,
    /// Requests for which the cache is still expected to go cold again.
    cold_requests: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            last_tokens: None,
            growth: 0,
            interval_ms: INTERVAL_MS,
            update_ms: UPDATE_MS,
            cold_requests: 0,
        }
    }
}

impl Pace {
    /// A request is sent, this long after the one before.
    pub(super) fn requested(&mut self, interval_ms: Option<u64>, tokens: u64, cache_ms: u64) {
        if let Some(before) = self.last_tokens.replace(tokens) {
            let growth = tokens.saturating_sub(before);
            self.growth = growth.max(self.growth / 8 * 7 + growth / 8);
        }
        if let Some(interval_ms) = interval_ms {
            self.cold_requests = if interval_ms > cache_ms {
                COLD_REQUESTS
            } else {
                self.cold_requests.saturating_sub(1)
            };
            self.interval_ms = (self.interval_ms / 4 * 3 + interval_ms.min(cache_ms) / 4).max(1);
        }
    }

    pub(super) fn updated(&mut self, took_ms: u64) {
        self.update_ms = self.update_ms / 2 + took_ms / 2;
    }

    pub(super) fn epoch_begins(&mut self) {
        self.last_tokens = None;
    }

    /// By how much the context grows while a model makes a memory, tokens.
    fn lead(&self) -> u64 {
        // The request after which it is ordered, and those that come meanwhile.
        let requests = 1 + self.update_ms.div_ceil(self.interval_ms.max(1));
        self.growth.saturating_mul(requests)
    }
}

/// What a session has saved and spent so far, which says whether a model can be paid for the next memory. Money is counted
/// in thousandths of the price of one uncached token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savings {
    /// Tokens that requests are smaller by than with no swap at all.
    pub removed: u64,
    /// What the swaps so far have saved, less what they have cost.
    pub saved: i64,
    /// What memories by the model have cost.
    pub spent: i64,
    /// The recent share of a prompt that the provider read from its cache where it could, in thousandths.
    pub hits_permille: u64,
    /// Requests since the last swap.
    pub requests: u64,
}

/// What the session has saved and spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    /// Tokens that requests are smaller by than with no swap at all.
    removed: u64,
    /// The part of it that the last swap took out.
    removed_last: u64,
    /// What the swaps so far have saved, less what they have cost.
    saved: i128,
    /// What memories by the model have cost.
    spent: i128,
    /// The recent share of a prompt that the provider read from its cache where it could, in thousandths.
    hits_permille: u64,
    /// Prompt of the last answer in this epoch, tokens.
    last_prompt: Option<u64>,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            removed: 0,
            removed_last: 0,
            saved: 0,
            spent: 0,
            hits_permille: 1_000,
            last_prompt: None,
        }
    }
}

impl Account {
    /// An answer read this much of its prompt from the cache.
    fn read_from_cache(&mut self, prompt: u64, cached: u64) {
        if let Some(before) = self.last_prompt.replace(prompt) {
            let before = before.min(prompt);
            if before >= CACHED_TOKENS_MIN {
                let hits = (cached.saturating_mul(1_000) / before).min(1_000);
                self.hits_permille = (self.hits_permille + hits) / 2;
            }
        }
    }

    /// A request was smaller by what the swaps removed, at this price for a token.
    fn save(&mut self, price: u64) {
        self.saved += i128::from(self.removed) * i128::from(price);
    }

    /// A swap removed this many tokens and cost this price.
    fn swapped(&mut self, removed: u64, price: u64) {
        self.removed += removed;
        self.removed_last = removed;
        self.last_prompt = None;
        self.saved -= i128::from(price);
    }

    /// The last swap was undone.
    fn undone(&mut self) {
        self.removed = self.removed.saturating_sub(self.removed_last);
        self.removed_last = 0;
        self.last_prompt = None;
    }

    /// A model makes a memory at this price.
    fn spend(&mut self, price: u64) {
        self.spent += i128::from(price);
    }

    pub(super) fn of(savings: Savings) -> Self {
        Self {
            removed: savings.removed,
            saved: savings.saved.into(),
            spent: savings.spent.into(),
            hits_permille: savings.hits_permille.min(1_000),
            ..Self::default()
        }
    }

    pub(super) fn savings(&self, requests: u64) -> Savings {
        let short = |price: i128| i64::try_from(price).unwrap_or(i64::MAX);
        Savings {
            removed: self.removed,
            saved: short(self.saved),
            spent: short(self.spent),
            hits_permille: self.hits_permille,
            requests,
        }
    }
}

impl Engine {
    /// The price of a token that was sent before.
    fn reread_permille(&self) -> u64 {
        // Where the cache fails now and then, it would have failed without swaps too: what is saved is rather more.
        if self.account.hits_permille < HITS_MIN_PERMILLE {
            1_000
        } else {
            u64::from(self.settings.economy.read_permille).min(1_000)
        }
    }

    /// An answer reports what it read from the cache.
    pub(super) fn account_answer(&mut self, prompt: u64, cached: u64) {
        self.account.read_from_cache(prompt, cached);
        self.account.save(self.reread_permille());
    }

    /// A swap has made the requests smaller.
    pub(super) fn account_swap(&mut self, before: u64, after: u64) {
        let price = self.swap_price(self.memories.adopted_tokens(), self.live.first());
        self.account.swapped(before.saturating_sub(after), price);
        self.pace.epoch_begins();
    }

    /// What it costs that another memory of this many tokens precedes the messages from `cut` on: it is read for the
    /// first time, and those that were sent before are not read from the cache.
    fn swap_price(&self, memory: u64, cut: usize) -> u64 {
        let sent = self.live.last_asked().unwrap_or(cut).max(cut);
        let tail = self
            .live
            .tokens_from(cut)
            .saturating_sub(self.live.tokens_from(sent));
        let write = u64::from(self.settings.economy.write_permille);
        let calibration = self.meter.calibration();
        calibration.apply(memory) * write
            + calibration.apply(tail) * write.saturating_sub(self.reread_permille())
    }

    /// The last swap was undone.
    pub(super) fn account_undo(&mut self) {
        self.account.undone();
        self.pace.epoch_begins();
    }

    /// Whether a swap before the hard mark pays.
    pub(super) fn pays(&self, now: Time, context: u64, version: &Version) -> Option<DueReason> {
        let economy = &self.settings.economy;
        if economy.rule == EconomyRule::HardMarkOnly {
            return None;
        }
        if self
            .flight
            .last_request_at()
            .is_some_and(|last| now.since(last) > economy.cache_ms)
        {
            return Some(DueReason::Cold);
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
        let requests = u128::from(self.progress.requests().max(1));
        let saved = requests * u128::from(context.saturating_sub(after)) * read;
        let rewritten = after.saturating_sub(self.overhead.tokens);
        let price = u128::from(rewritten) * write.saturating_sub(read);
        (saved * 1000 >= price * u128::from(margin_permille)).then_some(DueReason::Pays)
    }

    /// Whether a model is to make a memory of what code has made one of.
    pub(super) fn is_model_due(&self, now: Time) -> bool {
        let is_free = self.settings.economy.spending == Spending::Freely;
        let is_time = || !self.flight.is_on_its_way() && (is_free || self.is_time_for_model());
        self.wants_model(now) && (self.is_awaited() || is_time())
    }

    /// Whether a model has to begin now, although the context has not grown by a step.
    pub(super) fn is_model_pressing(&self, now: Time) -> bool {
        let is_free = self.settings.economy.spending == Spending::Freely;
        self.wants_model(now)
            && !is_free
            && !self.flight.is_on_its_way()
            && self.is_time_for_model()
    }

    /// Whether a memory is needed at any price: requested, or awaited by a request.
    fn is_awaited(&self) -> bool {
        self.pending.is_some()
            || self.settings.mode == Mode::Traditional
            || (self.waiting.is_some() && self.settings.model_wait_ms_max > 0)
    }

    /// Whether a memory by the model would be ready in time for the swap and hardly before that, and can be paid.
    fn is_time_for_model(&self) -> bool {
        !self.is_about_to_ask() && self.is_late_for_model() && self.can_pay_model()
    }

    /// Whether the next request has messages that the provider has not read yet: a model that is asked for a memory before it
    /// would be paid for reading that first.
    fn is_about_to_ask(&self) -> bool {
        let last = self.live.messages().last();
        !self.flight.awaits_report() && last.is_some_and(|last| last.role != Role::Assistant)
    }

    fn is_late_for_model(&self) -> bool {
        if let Some(at) = self.builds.model_ordered_at() {
            let growth = self.live.tokens().saturating_sub(at);
            // After a failure it is tried again soon.
            return growth
                >= match self.memories.ready() {
                    Some(_) => self.budget().share(CATCH_UP_PERMILLE),
                    None => self.settings.step_tokens(),
                };
        }
        // If the cache expires, a swap is due from the soft mark on.
        if self.pace.cold_requests > 0 || self.triggered().is_some() || self.is_heavy() {
            return true;
        }
        let lead = self.pace.lead().max(self.settings.step_tokens() / 2);
        self.context() + lead >= self.budget().at(self.mark())
    }

    /// Whether what swaps have saved and will save is enough to pay a model for a memory.
    fn can_pay_model(&self) -> bool {
        let Spending::FromSavings { permille } = self.settings.economy.spending else {
            return true;
        };
        let cut = self.cut(TailSize::Usual);
        let memory = self.settings.memory_tokens_max;
        let left = memory + self.live.tokens_from(cut);
        let after = self.overhead.tokens + self.meter.calibration().apply(left);
        let removed = self.account.removed + self.context().saturating_sub(after);
        // There will be as many requests as there were: the best guess for something that has no natural end. It may end
        // sooner, so half of that is counted on.
        let requests = i128::from(self.progress.requests().max(1));
        let expected = requests * i128::from(removed) * i128::from(self.reread_permille()) / 2;
        let saved = self.account.saved + expected - i128::from(self.swap_price(memory, cut));
        let price = self.account.spent + i128::from(self.model_price());
        saved * i128::from(permille) / 1_000 >= price
    }

    /// What a memory by the model costs, about: it is shown the live request, or only what is new.
    fn model_price(&self) -> u64 {
        let economy = &self.settings.economy;
        let cut = self.cut(TailSize::Usual);
        let first = self
            .memories
            .ready()
            .map_or(self.live.first(), |ready| ready.cover());
        let fresh = self
            .live
            .tokens_from(first)
            .saturating_sub(self.live.tokens_from(cut));
        let shared = self.context() * self.reread_permille();
        let own = self
            .meter
            .calibration()
            .apply(fresh + self.settings.memory_tokens_max)
            * 1_000;
        // It is written as JSON, and hardly ever as long as it may be where it may be long.
        let output = (self.settings.memory_tokens_max / 4 * 5).min(2_000);
        let output = output * u64::from(economy.output_permille);
        shared.min(own) + INSTRUCTIONS_TOKENS * 1_000 + output
    }

    /// The model is asked.
    pub(super) fn account_model_order(&mut self) {
        self.builds.note_model_order(self.live.tokens());
        let price = self.model_price();
        self.account.spend(price);
    }
}
