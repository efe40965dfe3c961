//! The end of a request: a whole answer, or none.

use std::sync::Arc;

use throughline::core::Effects;
use throughline_providers::reply::Reply;
use throughline_transcript::body::read_message;

use super::{State, TrackedSession};

impl TrackedSession {
    /// The answer to a request is complete. It belongs to the session until the next request says otherwise.
    pub(crate) fn complete(self: &Arc<Self>, number: u64, reply: &Reply) {
        let mut state = self.state();
        let now = self.shared.clock.now();
        state.in_flight = state.in_flight.saturating_sub(1);
        if state.number != number {
            // The next request came before this was known, and has brought the answer along.
            let effects = state.core.record_usage(now, reply);
            self.perform(&mut state, effects);
            return;
        }
        let mut effects = Effects::default();
        let confirmed = state.known.len();
        for message in reply.messages.iter().map_while(read_message) {
            effects.extend(state.add(message, now, false));
        }
        state.unconfirmed = state.known.len() - confirmed;
        effects.extend(state.core.record_answer(now, reply));
        self.perform(&mut state, effects);
        state.drop_body();
    }

    /// No whole answer came: what came of it used this.
    pub(crate) fn break_off(self: &Arc<Self>, number: u64, partial: Option<&Reply>) {
        let mut state = self.state();
        let now = self.shared.clock.now();
        state.in_flight = state.in_flight.saturating_sub(1);
        if state.number == number {
            state.drop_body();
        }
        let effects = partial.map_or_else(Effects::default, |partial| {
            state.core.record_partial(now, partial)
        });
        self.perform(&mut state, effects);
    }
}

impl State {
    /// The body of the last request is of use to an update that begins before the next one. After the answer that is one
    /// for which a draft is being made already.
    pub(super) fn drop_body(&mut self) {
        if !self.core.engine().status().is_drafting
            && let Some(live) = &mut self.live
        {
            live.body = None;
        }
    }
}
