//! What a session costs, and what it would have cost otherwise.

use throughline_store::UsageSum;
use throughline_transcript::catalogue::{Model, Money, cost};
use throughline_transcript::usage::Usage;

/// What a session has used and cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Requests of the conversation.
    pub main: Spent,
    /// Requests that made memories.
    pub updates: Spent,
    /// What the requests of the conversation would have been if nothing had ever been left out.
    pub without_compaction: Without,
}

/// Calls of one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls.
    pub calls: u64,
    /// Tokens by class.
    pub usage: Usage,
    /// What they cost, where the model has prices.
    pub cost: Money,
}

/// A session that never lets go of anything, estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// Requests that would have fitted the window.
    pub calls: u64,
    /// Requests that would have been too large.
    pub refused: u64,
    /// What the fitting ones would have cost: everything that was in the request before read from the cache, the rest
    /// written to it.
    pub cost: Money,
    /// Tokens of the last request that was answered.
    pub(crate) last_prompt: u64,
}

impl Spent {
    /// What was spent before the session was resumed.
    #[must_use]
    pub fn stored(sum: &UsageSum) -> Self {
        Self {
            calls: sum.calls,
            usage: Usage {
                uncached: sum.uncached,
                cache_write: sum.cache_write,
                cache_write_long: sum.cache_write_long,
                cache_read: sum.cache_read,
                output: sum.output,
            },
            cost: Money::from_nano_dollars(u64::try_from(sum.cost_nanodollars).unwrap_or(0)),
        }
    }

    /// Adds a call.
    pub fn add(&mut self, usage: &Usage, model: Option<&Model>) {
        self.calls += 1;
        let sum = &mut self.usage;
        for (sum, more) in [
            (&mut sum.uncached, usage.uncached),
            (&mut sum.cache_write, usage.cache_write),
            (&mut sum.cache_write_long, usage.cache_write_long),
            (&mut sum.cache_read, usage.cache_read),
            (&mut sum.output, usage.output),
        ] {
            *sum = sum.saturating_add(more);
        }
        if let Some(price) = model.and_then(|model| cost(usage, model)) {
            self.cost = self.cost + price;
        }
    }
}

impl Without {
    /// A request that had `prompt` tokens and would have had `whole` with nothing left out.
    pub fn add(&mut self, whole: u64, limit: u64, output: u64, model: Option<&Model>) {
        if whole > limit {
            self.refused += 1;
            return;
        }
        self.calls += 1;
        let usage = Usage {
            cache_read: self.last_prompt.min(whole),
            cache_write: whole.saturating_sub(self.last_prompt),
            output,
            ..Usage::default()
        };
        self.last_prompt = whole;
        if let Some(price) = model.and_then(|model| cost(&usage, model)) {
            self.cost = self.cost + price;
        }
    }
}
