//! An answer has come, or has not.

use std::sync::Arc;

use throughline_engine::Input;
use throughline_providers::reply::Reply;
use throughline_providers::stop::Next;
use throughline_store::Purpose;
use throughline_transcript::body::read_message;
use throughline_transcript::catalogue::Money;
use throughline_transcript::usage::Usage;

use super::{State, Tracked};
use crate::config::Mode;

impl Tracked {
    /// The answer to a request is there as a whole. It belongs to the session from now on, until the next request says
    /// otherwise.
    pub(crate) fn answered(self: &Arc<Self>, number: u64, reply: &Reply) {
        let mut state = self.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        let is_last = state.number == number;
        if let Some(usage) = reply.usage {
            let model = state.model.clone();
            let request_id = reply.request_id.clone().or_else(|| reply.id.clone());
            self.spend(&mut state, Purpose::Main, &model, &usage.billed, request_id);
            self.compare(&mut state, &usage.last_pass);
        }
        if !is_last {
            // The next request came before this was known, and has brought the answer along.
            self.drain(&mut state);
            return;
        }
        let at = self.shared.clock.now();
        let confirmed = state.known.len();
        for raw in &reply.messages {
            let Some(message) = read_message(raw) else {
                break;
            };
            state.add(message, at, false);
        }
        state.unconfirmed = state.known.len() - confirmed;
        // Where nothing is rewritten, the provider speaks of another request than the one that was planned.
        let context = reply
            .usage
            .filter(|_| self.shared.config.mode == Mode::Rewrite)
            .map(|usage| usage.context_size());
        state.engine.handle(at, Input::Answered { context });
        let next = reply.stop.as_ref().map(|stop| stop.next());
        if next == Some(Next::Compact) {
            state.engine.handle(at, Input::Overflowed { window: None });
        }
        state.keep();
        self.drain(&mut state);
        state.let_body_go();
    }

    /// No whole answer came: what came of it used this.
    pub(crate) fn broke_off(self: &Arc<Self>, number: u64, partial: Option<&Reply>) {
        let mut state = self.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        if let Some(usage) = partial.and_then(|partial| partial.usage) {
            let model = state.model.clone();
            self.spend(&mut state, Purpose::Main, &model, &usage.billed, None);
        }
        if state.number == number {
            state.let_body_go();
        }
        self.drain(&mut state);
    }

    /// What the request would have been if nothing had ever been left out.
    fn compare(&self, state: &mut State, usage: &Usage) {
        let limit = state.engine.status().limit;
        let removed = match self.shared.config.mode {
            Mode::Rewrite => state.removed_tokens,
            Mode::Observe | Mode::Off => 0,
        };
        let whole = usage.prompt() + removed;
        let model = self.shared.config.catalogue.find(&state.model);
        let without = &mut state.costs.without_compaction;
        let before = without.cost;
        without.add(whole, limit, usage.output, model);
        let more = without.cost.nano_dollars() - before.nano_dollars();
        self.shared.metrics.without(Money::from_nano_dollars(more));
    }
}

impl State {
    /// The body of the last request is of use to an update that begins before the next one. After the answer that is one
    /// for which a draft is being made already.
    pub(super) fn let_body_go(&mut self) {
        if !self.engine.status().is_drafting
            && let Some(live) = &mut self.live
        {
            live.body = None;
        }
    }
}
