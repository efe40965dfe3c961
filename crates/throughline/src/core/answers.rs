//! Answers of the model, and what they cost.

use throughline_engine::{Input, Time};
use throughline_providers::reply::Reply;
use throughline_providers::stop::Next;
use throughline_store::Purpose;
use throughline_transcript::catalogue::{Money, cost};
use throughline_transcript::usage::Usage;

use super::rows::usage_change;
use super::{Core, Effect, Effects};

impl Core {
    /// The answer to the last request is complete, and its messages are appended.
    pub fn record_answer(&mut self, now: Time, reply: &Reply) -> Effects {
        let mut effects = self.record_usage(now, reply);
        // A front end that only observes has sent another request than the engine planned.
        let is_planned = self.options.is_rewriting;
        let context = reply
            .usage
            .filter(|_| is_planned)
            .map(|usage| usage.context_size());
        self.feed(now, Input::Answered { context }, &mut effects);
        if reply.stop.as_ref().map(|stop| stop.next()) == Some(Next::Compact) {
            self.feed(now, Input::Overflowed { window: None }, &mut effects);
        }
        self.is_row_changed = true;
        effects
    }

    /// An answer is complete that is not the one to the last request: a later request brings its messages along.
    pub fn record_usage(&mut self, now: Time, reply: &Reply) -> Effects {
        let Some(usage) = reply.usage else {
            return Effects::default();
        };
        let without = self.compare(&usage.last_pass);
        let request_id = reply.request_id.clone().or_else(|| reply.id.clone());
        self.pay(now, Purpose::Main, None, &usage.billed, request_id, without)
    }

    /// An answer was cut off; `partial` is what arrived.
    pub fn record_partial(&mut self, now: Time, partial: &Reply) -> Effects {
        match partial.usage {
            Some(usage) => self.spend(now, Purpose::Main, None, &usage.billed, None),
            None => Effects::default(),
        }
    }

    /// Adds what a call used, by the model of the session unless another one is named.
    pub(super) fn spend(
        &mut self,
        now: Time,
        purpose: Purpose,
        model: Option<&str>,
        usage: &Usage,
        request_id: Option<String>,
    ) -> Effects {
        self.pay(now, purpose, model, usage, request_id, Money::default())
    }

    fn pay(
        &mut self,
        now: Time,
        purpose: Purpose,
        model: Option<&str>,
        usage: &Usage,
        request_id: Option<String>,
        without: Money,
    ) -> Effects {
        let name = model.unwrap_or(&self.model);
        let model = self.options.catalogue.find(name);
        let spent = match purpose {
            Purpose::Main => &mut self.costs.main,
            _ => &mut self.costs.updates,
        };
        spent.add(usage, model);
        let price = model.and_then(|model| cost(usage, model));
        let change = usage_change(now, purpose, name, usage, price, request_id);
        self.changes.push(change.into());
        let mut effects = Effects::default();
        effects.push(Effect::Spent {
            purpose,
            usage: *usage,
            price,
            without,
        });
        effects
    }

    /// Adds the request as it would have been if nothing had ever been left out. Returns its price.
    fn compare(&mut self, usage: &Usage) -> Money {
        let limit = self.engine.status().limit;
        let removed = if self.options.is_rewriting {
            self.removed_tokens
        } else {
            0
        };
        let model = self.options.catalogue.find(&self.model);
        let without = &mut self.costs.without_compaction;
        let before = without.cost.nano_dollars();
        without.add(usage.prompt() + removed, limit, usage.output, model);
        Money::from_nano_dollars(without.cost.nano_dollars() - before)
    }
}
