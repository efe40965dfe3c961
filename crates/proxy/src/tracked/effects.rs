//! What the core needs from outside: drafts and updates beside the session, changes to store, events to tell.

use std::collections::VecDeque;
use std::sync::Arc;

use throughline::compactor::{CompactorResult, LiveRequest};
use throughline::core::{DraftJob, Effect, Effects, FinishedUpdate, UpdateJob};
use throughline_transcript::client::has_cache_marker;
use throughline_transcript::json::Raw;
use throughline_transcript::usage::Usage;
use tokio::time::Instant;
use tracing::Span;

use super::{State, TrackedSession};
use crate::{spans, updates};

impl TrackedSession {
    /// Does what the core needs, and has stored what is to be stored.
    pub(super) fn perform(self: &Arc<Self>, state: &mut State, effects: Effects) {
        let mut effects = VecDeque::from_iter(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Draft(job) => self.start_draft(job),
                Effect::Update(job) => effects.extend(self.start_update(state, job)),
                Effect::Request(plan) => {
                    if let Some(waiting) = state.waiting.take() {
                        // If the waiting request is gone, the next one has a plan of its own.
                        let _ = waiting.send(plan.clone());
                    }
                    state.plan = Some(plan);
                }
                Effect::Adopted => state.has_swapped = true,
                Effect::Answer(caller, outcome) => {
                    // A caller that has given up waiting sees the outcome in the events.
                    let _ = caller.send(outcome);
                }
                Effect::Event { kind, json, .. } => {
                    tracing::info!(session = %self.id, event = kind, detail = json, "engine");
                    self.shared.metrics.engine_event(kind);
                }
                Effect::Spent {
                    purpose,
                    usage,
                    price,
                    without,
                } => {
                    self.shared.metrics.spent(purpose, &usage, price);
                    self.shared.metrics.without(without);
                }
                // Requests wait as long as the configuration says.
                Effect::Wait { .. } => {}
                // A request that goes back behind the memory begins a session of its own.
                Effect::Reload { messages } => {
                    tracing::error!(session = %self.id, messages, "a session was cut behind its memory");
                }
            }
        }
        let changes = state.core.take_changes();
        let at = self.shared.clock.now();
        self.shared.archive.commit(&self.id, at, changes);
    }

    fn start_draft(self: &Arc<Self>, job: DraftJob) {
        let session = Arc::clone(self);
        self.shared.tasks.spawn_blocking(move || {
            let draft = job.run();
            let mut state = session.state();
            let effects = state.core.drafted(session.shared.clock.now(), draft);
            session.perform(&mut state, effects);
            if state.in_flight == 0 {
                state.drop_body();
            }
        });
    }

    fn start_update(self: &Arc<Self>, state: &mut State, job: UpdateJob) -> Effects {
        let order = job.order();
        let asked = state.live.as_ref().and_then(|live| {
            let compactor = updates::compactor(
                &self.shared.config,
                &self.shared.transport,
                state.wire,
                &live.base,
                state.core.model(),
                &live.headers,
            )?;
            Some((compactor, live.body.clone(), live.end))
        });
        let Some((compactor, body, end)) = asked else {
            let at = self.shared.clock.now();
            return state.core.updated(at, job.without_compactor());
        };
        let is_cached = body.as_ref().is_some_and(has_cache_marker);
        // What was sent, and what came after it as far as it is settled.
        let sent = body.filter(|_| order.live.end >= end);
        let first = state.core.tail_begins();
        let engine = state.core.engine();
        let added: Vec<Raw> = (end..order.live.end)
            .filter_map(|index| engine.tail().get(index.checked_sub(first)?)?.raw.clone())
            .collect();
        let live = LiveRequest::of_client(
            state.wire,
            state.core.model(),
            sent,
            added,
            is_cached,
            engine.settings().window,
            self.account.traffic.clone(),
        );
        let messages = &order.order.messages;
        let raws = messages.iter().filter_map(|message| message.raw.as_ref());
        let bytes: u64 = raws.map(|raw| raw.len() as u64 / 4).sum();
        let wait = self.account.take(
            messages.len() as u64 * 50 + bytes,
            self.shared.config.limits.update_permille,
            Instant::now(),
        );
        let span = spans::update(self.id.as_str(), state.wire.name(), messages.len());
        let session = Arc::clone(self);
        let shutdown = self.shared.stop.clone();
        let stop = job.stop().clone();
        self.shared.tasks.spawn(async move {
            let making = async {
                tokio::time::sleep(wait).await;
                live.quiet().await;
                job.run(compactor, live, async |compacted| compacted).await
            };
            tokio::select! {
                update = making => {
                    record(&span, &update);
                    let mut state = session.state();
                    let effects = state.core.updated(session.shared.clock.now(), update);
                    session.perform(&mut state, effects);
                }
                () = shutdown.cancelled() => {
                    span.record("outcome", "ended");
                }
                () = stop.cancelled() => {
                    span.record("outcome", "given-up");
                }
            }
        });
        Effects::default()
    }
}

/// Records in the span of an update what came of it.
fn record(span: &Span, update: &FinishedUpdate) {
    let (outcome, calls) = match update.compacted() {
        Ok(CompactorResult { result, calls, .. }) => match result {
            Ok(_) => ("made", calls.as_slice()),
            Err(failure) => (failure.class.as_str(), calls.as_slice()),
        },
        Err(failure) => (failure.class.as_str(), [].as_slice()),
    };
    let mut used = Usage::default();
    for (_, usage) in calls {
        used.uncached += usage.prompt() - usage.cache_read;
        used.cache_read += usage.cache_read;
        used.output += usage.output;
    }
    span.record("outcome", outcome);
    span.record("calls", calls.len());
    span.record("prompt_tokens", used.prompt());
    span.record("cache_read_tokens", used.cache_read);
    span.record("output_tokens", used.output);
}
