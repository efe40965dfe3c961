//! The end of a request: a whole answer, or none.

use std::sync::Arc;

use throughline::core::Effects;
use throughline_providers::reply::Reply;
use throughline_transcript::body::read_message;

use super::{State, Tracked};

impl Tracked {
    /// The answer to a request is complete. It belongs to the session until the next request says otherwise.
    pub(crate) fn answered(self: &Arc<Self>, number: u64, reply: &Reply) {
        let mut state = self.state();
        let now = self.shared.clock.now();
        state.in_flight = state.in_flight.saturating_sub(1);
        if state.number != number {
            // The next request came before this was known, and has brought the answer along.
            let effects = state.core.billed(now, reply);
            self.perform(&mut state, effects);
            return;
        }
        let mut effects = Effects::default();
        let confirmed = state.known.len();
        for message in reply.messages.iter().map_while(read_message) {
            effects.extend(state.add(message, now, false));
        }
        state.unconfirmed = state.known.len() - confirmed;
        effects.extend(state.core.answered(now, reply));
        self.perform(&mut state, effects);
        state.let_body_go();
    }

    /// No whole answer came: what came of it used this.
    pub(crate) fn broke_off(self: &Arc<Self>, number: u64, partial: Option<&Reply>) {
        let mut state = self.state();
        let now = self.shared.clock.now();
        state.in_flight = state.in_flight.saturating_sub(1);
        if state.number == number {
            state.let_body_go();
        }
        let effects = partial.map_or_else(Effects::default, |partial| {
            state.core.broke_off(now, partial)
        });
        self.perform(&mut state, effects);
    }
}

impl State {
    /// The body of the last request is of use to an update that begins before the next one. After the answer that is one
    /// for which a draft is being made already.
    pub(super) fn let_body_go(&mut self) {
        if !self.core.engine().status().is_drafting
            && let Some(live) = &mut self.live
        {
            live.body = None;
        }
    }
}
