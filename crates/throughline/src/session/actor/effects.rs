//! What runs beside the session, and what is told about it.

use std::sync::Arc;
use std::time::Duration;

use throughline_engine::{
    BuildKind, BuildOrder, EngineEvent, Input, Ticket, UpdateFailure, UpdateOrder,
};
use throughline_memory::document::Memory;
use throughline_memory::redact::Redactor;
use throughline_memory::summarise::Finding;
use throughline_store::{Change, Purpose};
use throughline_transcript::catalogue::cost;
use throughline_transcript::tokens::Counter;
use throughline_transcript::usage::Usage;
use tokio_util::sync::CancellationToken;

use super::{Actor, Building};
use crate::compactor::{Compacted, draft};
use crate::event::{SessionEvent, event_json, event_kind};
use crate::hooks::{BeforeCompaction, Hooks, MadeBy, Verdict};
use crate::session::{new_pin, stored};

/// Something that ran beside the session is done.
pub(super) enum Finished {
    Draft(Ticket, Drafted),
    Update(Ticket, Box<Compacted>),
}

impl Actor {
    pub(super) fn start_draft(&mut self, order: BuildOrder) {
        let ticket = order.ticket;
        let counter = self.engine.settings().counter;
        let handle = match self.parts.hooks.clone() {
            None => self.tasks.spawn_blocking(move || {
                let drafted = Drafted {
                    result: draft(&order, counter),
                    keep: Vec::new(),
                };
                Finished::Draft(ticket, drafted)
            }),
            Some(hooks) => self.tasks.spawn(async move {
                Finished::Draft(ticket, hooked_draft(hooks.as_ref(), order, counter).await)
            }),
        };
        self.running.insert(handle.id(), (ticket, Building::Draft));
    }

    pub(super) fn start_update(&mut self, order: UpdateOrder) {
        let ticket = order.order.ticket;
        let Some(compactor) = self.parts.compactor.clone() else {
            self.handle(Input::Updated {
                ticket,
                result: Err(UpdateFailure {
                    class: "no-compactor".to_owned(),
                    message: "no model is set to make memories".to_owned(),
                    retry_after_ms: None,
                }),
            });
            return;
        };
        let stop = CancellationToken::new();
        self.updates.insert(ticket, stop.clone());
        let live = self.live(&order.live);
        let hooks = self.parts.hooks.clone();
        let handle = self.tasks.spawn(async move {
            let mut compacted = compactor.compact(order, live, stop).await;
            if let (Some(hooks), Ok(memory)) = (hooks, &mut compacted.result) {
                hooks.after_compaction(MadeBy::Model, memory).await;
            }
            Finished::Update(ticket, Box::new(compacted))
        });
        self.running.insert(handle.id(), (ticket, Building::Model));
    }

    pub(super) fn finished(
        &mut self,
        done: Result<(tokio::task::Id, Finished), tokio::task::JoinError>,
    ) {
        match done {
            Ok((id, finished)) => {
                self.running.remove(&id);
                match finished {
                    Finished::Draft(ticket, drafted) => self.drafted(ticket, drafted),
                    Finished::Update(ticket, compacted) => {
                        self.updates.remove(&ticket);
                        self.updated(ticket, *compacted);
                    }
                }
            }
            Err(error) => self.failed_task(error.id()),
        }
    }

    fn drafted(&mut self, ticket: Ticket, drafted: Drafted) {
        for text in drafted.keep {
            let is_known = self.engine.pins().iter().any(|pin| pin.text == text);
            if !is_known {
                self.handle(Input::Pin(new_pin(&text, self.engine.messages())));
                self.push_kept();
            }
        }
        self.handle(Input::Drafted {
            ticket,
            result: drafted.result,
        });
    }

    fn updated(&mut self, ticket: Ticket, compacted: Compacted) {
        for (model, usage) in &compacted.calls {
            self.spend(Purpose::Update, model, usage, None);
        }
        let count = |is: fn(&Finding) -> bool| {
            compacted
                .findings
                .iter()
                .filter(|finding| is(finding))
                .count()
        };
        self.tell(SessionEvent::Checked {
            put_back: count(|finding| matches!(finding, Finding::PutBack { .. })),
            taken_out: count(|finding| matches!(finding, Finding::TakenOut { .. })),
            refused: count(|finding| matches!(finding, Finding::AnswerRefused { .. })),
            calls: u32::try_from(compacted.calls.len()).unwrap_or(u32::MAX),
        });
        self.handle(Input::Updated {
            ticket,
            result: compacted.result,
        });
    }

    /// Adds what a call used to what is stored and shown.
    pub(super) fn spend(
        &mut self,
        purpose: Purpose,
        model_id: &str,
        usage: &Usage,
        request_id: Option<String>,
    ) {
        let catalogue = Arc::clone(&self.parts.catalogue);
        let model = catalogue.find(model_id);
        let spent = match purpose {
            Purpose::Main => &mut self.costs.main,
            _ => &mut self.costs.updates,
        };
        spent.add(usage, model);
        let price = model.and_then(|model| cost(usage, model));
        let at = self.parts.clock.now();
        self.changes.push(stored::usage_change(
            at, purpose, model_id, usage, price, request_id,
        ));
    }

    pub(super) async fn event(&mut self, event: EngineEvent) {
        tracing::debug!(session = %self.parts.writer.id(), ?event, "engine");
        if let EngineEvent::Swapped {
            waited_ms,
            waited_for,
            ..
        } = &event
            && let Some(pending) = &mut self.pending
        {
            pending.swapped = true;
            if *waited_for == Some(BuildKind::Model) {
                pending.waited_for_model = Duration::from_millis(*waited_ms);
            }
        }
        if let EngineEvent::Swapped {
            tokens_before,
            tokens_after,
            ..
        } = &event
        {
            let removed = tokens_before.saturating_sub(*tokens_after);
            self.removed_tokens += removed;
            if let Some(before) = self.parts.kept.before.last_mut() {
                before.removed_tokens = removed;
            }
        }
        self.changes.push(Change::Event {
            kind: event_kind(&event).to_owned(),
            json: event_json(&event),
        });
        if let EngineEvent::Compaction { id, outcome } = &event
            && let Some(answer) = self.asked.remove(id)
        {
            // A swap counts when it is stored.
            if let Err(error) = self.flush().await {
                self.not_stored(&Arc::new(error));
            }
            let _ = answer.send(outcome.clone());
        }
        self.tell(SessionEvent::Engine(event));
    }

    pub(super) fn not_stored(&self, error: &Arc<throughline_store::StoreError>) {
        tracing::warn!(%error, "changes of a session could not be stored");
        self.tell(SessionEvent::NotStored(Arc::clone(error)));
    }

    pub(super) fn tell(&self, event: SessionEvent) {
        // It is no fault if nobody watches.
        let _ = self.events.send(event);
    }
}

/// A draft, or why there is none, and what is to stay in the ledger from now on.
pub(super) struct Drafted {
    result: Result<Memory, UpdateFailure>,
    keep: Vec<String>,
}

async fn hooked_draft(hooks: &dyn Hooks, order: BuildOrder, counter: Counter) -> Drafted {
    let failed = |class: &str, message: String| UpdateFailure {
        class: class.to_owned(),
        message,
        retry_after_ms: None,
    };
    let before = BeforeCompaction {
        messages: order.first..order.first + order.messages.len(),
        focus: order.focus.as_deref(),
        memory: order.prior.as_ref().map(|prior| &prior.memory),
        new: &order.messages,
    };
    let keep = match hooks.before_compaction(before).await {
        Verdict::Compact { keep } => keep,
        Verdict::Veto { reason } => {
            return Drafted {
                result: Err(failed("vetoed", reason)),
                keep: Vec::new(),
            };
        }
    };
    let redactor = Redactor::embedded();
    let keep = keep
        .iter()
        .map(|text| redactor.redact(text.trim()).into_owned())
        .filter(|text| !text.is_empty())
        .collect();
    let drafted = tokio::task::spawn_blocking(move || draft(&order, counter)).await;
    let mut result = drafted.unwrap_or_else(|error| Err(failed("internal", error.to_string())));
    if let Ok(memory) = &mut result {
        hooks.after_compaction(MadeBy::Code, memory).await;
    }
    Drafted { result, keep }
}
