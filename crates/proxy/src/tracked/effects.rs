//! What the engine wants done: drafts and updates beside the session, changes to be stored, events to be told.

use std::sync::Arc;

use throughline::compactor::{Compacted, LiveRequest};
use throughline::driver;
use throughline::driver::{Compared, KeptAdoption, KeptPin};
use throughline_engine::{
    BuildOrder, EngineEvent, Input, Output, Ticket, UpdateFailure, UpdateOrder,
};
use throughline_store::{Change, Purpose};
use throughline_transcript::catalogue::cost;
use throughline_transcript::client::has_cache_marker;
use throughline_transcript::json::Raw;
use throughline_transcript::usage::Usage;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{State, Tracked};
use crate::{spans, updates};

impl Tracked {
    /// Does everything that the engine says, and has stored what is to be stored.
    pub(super) fn drain(self: &Arc<Self>, state: &mut State) {
        while let Some(output) = state.engine.poll() {
            self.output(state, output);
        }
        let changes = std::mem::take(&mut state.changes);
        let at = self.shared.clock.now();
        self.shared.archive.commit(&self.id, at, changes);
    }

    fn output(self: &Arc<Self>, state: &mut State, output: Output) {
        match output {
            Output::Draft(order) => self.start_draft(state, order),
            Output::Update(order) => self.start_update(state, order),
            Output::CancelUpdate(ticket) => {
                if let Some(stop) = state.updates.remove(&ticket) {
                    stop.cancel();
                }
            }
            Output::Request(plan) => {
                if let Some(waiting) = state.waiting.take() {
                    // Where nobody waits any more, the next request has a plan of its own.
                    let _ = waiting.send(plan.clone());
                }
                state.plan = Some(plan);
            }
            Output::Keep(version) => {
                let at = self.shared.clock.now();
                state
                    .changes
                    .push(driver::memory_change(&version, at).into());
            }
            Output::Adopt(adoption) => {
                let at = self.shared.clock.now();
                let expected = state.epoch_stored;
                state
                    .changes
                    .push(driver::adoption_change(&adoption, expected, at).into());
                state.epoch_stored = adoption.epoch;
                let next = KeptAdoption {
                    version: adoption.version,
                    quoted: adoption.quoted,
                    removed_tokens: 0,
                };
                state.kept.adopted(state.present, next);
                state.present = next;
                state.has_swapped = true;
                state.keep();
            }
            Output::Event(event) => self.event(state, &event),
            // Requests wait as long as the configuration says. Histories are never cut back behind a memory here: a
            // request that goes back so far is a session of its own.
            Output::Wait { .. } | Output::Reload { .. } => {}
        }
    }

    fn event(&self, state: &mut State, event: &EngineEvent) {
        let (kind, json) = (driver::event_kind(event), driver::event_json(event));
        tracing::info!(session = %self.id, event = kind, detail = json, "engine");
        self.shared.metrics.engine_event(kind);
        if let EngineEvent::Swapped {
            tokens_before,
            tokens_after,
            ..
        } = event
        {
            let removed = tokens_before.saturating_sub(*tokens_after);
            state.removed_tokens += removed;
            if let Some(before) = state.kept.before.last_mut() {
                before.removed_tokens = removed;
            }
        }
        if let EngineEvent::Compaction { id, outcome } = event
            && let Some(asked) = state.asked.remove(id)
        {
            // Who has waited long enough sees it in the events.
            let _ = asked.send(outcome.clone());
        }
        let kind = kind.to_owned();
        state.changes.push(Change::Event { kind, json }.into());
    }

    fn start_draft(self: &Arc<Self>, state: &State, order: BuildOrder) {
        let counter = state.engine.settings().counter;
        let session = Arc::clone(self);
        self.shared.tasks.spawn_blocking(move || {
            let ticket = order.ticket;
            let result = driver::draft(&order, counter);
            drop(order);
            session.tell(Input::Drafted { ticket, result });
            let mut state = session.state();
            if state.in_flight == 0 {
                state.let_body_go();
            }
        });
    }

    fn tell(self: &Arc<Self>, input: Input) {
        let mut state = self.state();
        state.engine.handle(self.shared.clock.now(), input);
        self.drain(&mut state);
    }

    fn start_update(self: &Arc<Self>, state: &mut State, order: UpdateOrder) {
        let ticket = order.order.ticket;
        let asked = state.live.as_ref().and_then(|live| {
            let compactor = updates::compactor(
                &self.shared.config,
                &self.shared.transport,
                state.wire,
                &live.base,
                &state.model,
                &live.headers,
            )?;
            Some((compactor, live.body.clone(), live.end))
        });
        let Some((compactor, body, end)) = asked else {
            let result = Err(UpdateFailure {
                class: "no-compactor".to_owned(),
                message: "no model can be asked".to_owned(),
                retry_after_ms: None,
            });
            let at = self.shared.clock.now();
            state.engine.handle(at, Input::Updated { ticket, result });
            return;
        };
        let is_cached = body.as_ref().is_some_and(has_cache_marker);
        // What was sent, and what came after it as far as it is settled.
        let sent = body.filter(|_| order.live.end >= end);
        let first = state.engine.messages() - state.engine.tail().len();
        let added: Vec<Raw> = (end..order.live.end)
            .filter_map(|index| {
                state
                    .engine
                    .tail()
                    .get(index.checked_sub(first)?)?
                    .raw
                    .clone()
            })
            .collect();
        let shared = LiveRequest::of_client(
            state.wire,
            &state.model,
            sent,
            added,
            is_cached,
            state.engine.settings().window,
            self.account.traffic.clone(),
        );
        let stop = CancellationToken::new();
        state.updates.insert(ticket, stop.clone());
        let tokens = order.order.messages.len() as u64 * 50
            + order
                .order
                .messages
                .iter()
                .map(|message| message.raw.as_ref().map_or(0, |raw| raw.len()) as u64 / 4)
                .sum::<u64>();
        let wait = self.account.take(
            tokens,
            self.shared.config.limits.update_permille,
            Instant::now(),
        );
        let session = Arc::clone(self);
        let shutdown = self.shared.stop.clone();
        let span = spans::update(
            self.id.as_str(),
            state.wire.name(),
            order.order.messages.len(),
        );
        self.shared.tasks.spawn(async move {
            let compacting = async {
                tokio::time::sleep(wait).await;
                shared.quiet().await;
                compactor.compact(order, shared, stop.clone()).await
            };
            tokio::select! {
                compacted = compacting => {
                    recorded(&span, &compacted);
                    session.updated(ticket, compacted);
                }
                () = shutdown.cancelled() => {
                    span.record("outcome", "ended");
                }
                () = stop.cancelled() => {
                    span.record("outcome", "given-up");
                }
            }
        });
    }

    fn updated(self: &Arc<Self>, ticket: Ticket, compacted: Compacted) {
        let mut state = self.state();
        state.updates.remove(&ticket);
        for (model, usage) in &compacted.calls {
            self.spend(&mut state, Purpose::Update, model, usage, None);
        }
        let at = self.shared.clock.now();
        let result = compacted.result;
        state.engine.handle(at, Input::Updated { ticket, result });
        self.drain(&mut state);
    }

    /// Adds what a call used to what is stored and told.
    pub(super) fn spend(
        &self,
        state: &mut State,
        purpose: Purpose,
        model_id: &str,
        usage: &Usage,
        request_id: Option<String>,
    ) {
        let model = self.shared.config.catalogue.find(model_id);
        let spent = match purpose {
            Purpose::Main => &mut state.costs.main,
            _ => &mut state.costs.updates,
        };
        spent.add(usage, model);
        let price = model.and_then(|model| cost(usage, model));
        self.shared.metrics.spent(purpose, usage, price);
        let at = self.shared.clock.now();
        let change = driver::usage_change(at, purpose, model_id, usage, price, request_id);
        state.changes.push(change.into());
    }
}

/// Says in the span of an update what came of it.
fn recorded(span: &Span, compacted: &Compacted) {
    let outcome = match &compacted.result {
        Ok(_) => "made",
        Err(failure) => failure.class.as_str(),
    };
    let mut used = Usage::default();
    for (_, usage) in &compacted.calls {
        used.uncached += usage.prompt() - usage.cache_read;
        used.cache_read += usage.cache_read;
        used.output += usage.output;
    }
    span.record("outcome", outcome);
    span.record("calls", compacted.calls.len());
    span.record("prompt_tokens", used.prompt());
    span.record("cache_read_tokens", used.cache_read);
    span.record("output_tokens", used.output);
}

impl State {
    /// Stores pins and figures as they are now.
    pub(super) fn keep(&mut self) {
        self.kept.pins = self.engine.pins().iter().map(KeptPin::from).collect();
        self.kept.compared = Compared::of(&self.costs.without_compaction, self.removed_tokens);
        self.kept.ratio_permille = self.engine.ratio_permille();
        self.kept.savings = Some(self.engine.savings().into());
        // Names and numbers only: this cannot fail.
        let json = serde_json::to_string(&self.kept).unwrap_or_default();
        self.changes.push(Change::Settings(json).into());
    }
}
