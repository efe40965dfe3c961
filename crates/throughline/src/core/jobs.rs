//! Memories that are made in the background: drafts by code, updates by a model.
//!
//! A job always ends with a result for the core, also where the code that makes the memory panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use throughline_engine::{
    BuildOrder, Input, Ticket, Time, UpdateFailure, UpdateFailureClass, UpdateOrder,
};
use throughline_memory::document::Memory;
use throughline_memory::redact::Redactor;
use throughline_memory::summarise::Finding;
use throughline_store::Purpose;
use throughline_transcript::tokens::Counter;
use tokio_util::sync::CancellationToken;

use super::{Core, Effects};
use crate::compactor::{Compactor, CompactorResult, LiveRequest};
use crate::event::SessionEvent;

/// Makes a draft of an order.
pub type DraftMaker = fn(&BuildOrder, Counter) -> Result<Memory, UpdateFailure>;

/// A draft to make.
#[derive(Debug)]
pub struct DraftJob {
    order: BuildOrder,
    counter: Counter,
    make: DraftMaker,
}

/// A draft, or why there is none.
#[derive(Debug)]
pub struct FinishedDraft {
    pub(crate) ticket: Ticket,
    pub(crate) result: Result<Memory, UpdateFailure>,
    /// Facts to pin.
    pub(crate) pins: Vec<String>,
}

impl DraftJob {
    pub(super) fn new(order: BuildOrder, counter: Counter, make: DraftMaker) -> Self {
        Self {
            order,
            counter,
            make,
        }
    }

    /// What the draft is made of.
    #[must_use]
    pub fn order(&self) -> &BuildOrder {
        &self.order
    }

    /// Makes the draft, which takes some milliseconds.
    #[must_use]
    pub fn run(self) -> FinishedDraft {
        let ticket = self.order.ticket;
        let made = catch_unwind(AssertUnwindSafe(|| (self.make)(&self.order, self.counter)));
        FinishedDraft::new(ticket, made.unwrap_or_else(|_| Err(panicked())))
    }
}

impl FinishedDraft {
    /// The result of a draft.
    #[must_use]
    pub fn new(ticket: Ticket, result: Result<Memory, UpdateFailure>) -> Self {
        Self {
            ticket,
            result,
            pins: Vec::new(),
        }
    }
}

/// Runs what makes a draft to its end, also where it panics.
pub async fn guarded(ticket: Ticket, making: impl Future<Output = FinishedDraft>) -> FinishedDraft {
    let made = AssertUnwindSafe(making).catch_unwind().await;
    made.unwrap_or_else(|_| FinishedDraft::new(ticket, Err(panicked())))
}

/// A memory to ask a model for.
#[derive(Debug)]
pub struct UpdateJob {
    order: UpdateOrder,
    stop: CancellationToken,
}

/// What a model made, or why nothing was made.
#[derive(Debug)]
pub struct FinishedUpdate {
    ticket: Ticket,
    result: Result<CompactorResult, UpdateFailure>,
}

impl UpdateJob {
    pub(super) fn new(order: UpdateOrder, stop: CancellationToken) -> Self {
        Self { order, stop }
    }

    /// What the memory is made of.
    #[must_use]
    pub fn order(&self) -> &UpdateOrder {
        &self.order
    }

    /// Cancelled when the memory is not wanted any more.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Has the memory made. `then` sees it before the core does.
    pub async fn run<F: Future<Output = CompactorResult>>(
        self,
        compactor: Arc<dyn Compactor>,
        live: LiveRequest,
        then: impl FnOnce(CompactorResult) -> F,
    ) -> FinishedUpdate {
        let ticket = self.order.order.ticket;
        let making = async { then(compactor.compact(self.order, live, self.stop).await).await };
        let made = AssertUnwindSafe(making).catch_unwind().await;
        FinishedUpdate {
            ticket,
            result: made.map_err(|_| panicked()),
        }
    }

    /// There is no model to ask.
    #[must_use]
    pub fn without_compactor(self) -> FinishedUpdate {
        FinishedUpdate {
            ticket: self.order.order.ticket,
            result: Err(UpdateFailure {
                class: UpdateFailureClass::NoCompactor,
                message: "no model is set to make memories".to_owned(),
                retry_after_ms: None,
            }),
        }
    }
}

impl FinishedUpdate {
    /// What the compactor returned.
    ///
    /// # Errors
    /// If there was none, or it panicked.
    pub fn compacted(&self) -> Result<&CompactorResult, &UpdateFailure> {
        self.result.as_ref()
    }
}

fn panicked() -> UpdateFailure {
    // The message of the panic may quote the conversation.
    UpdateFailure {
        class: UpdateFailureClass::Internal,
        message: "making the memory failed inside; please report this".to_owned(),
        retry_after_ms: None,
    }
}

impl Core {
    /// A draft is done.
    pub fn drafted(&mut self, now: Time, draft: FinishedDraft) -> Effects {
        let mut effects = Effects::default();
        for text in &draft.pins {
            let text = Redactor::embedded().redact(text.trim()).into_owned();
            let is_known = self.engine.pins().iter().any(|pin| pin.text == text);
            if !is_known && let Ok((_, more)) = self.pin(now, &text, None) {
                effects.extend(more);
            }
        }
        let FinishedDraft { ticket, result, .. } = draft;
        self.feed(now, Input::Drafted { ticket, result }, &mut effects);
        effects
    }

    /// An update is done.
    pub fn updated(&mut self, now: Time, update: FinishedUpdate) -> Effects {
        let mut effects = Effects::default();
        let FinishedUpdate { ticket, result } = update;
        self.updates.remove(&ticket);
        let result = match result {
            Ok(compacted) => {
                for (model, usage) in &compacted.calls {
                    effects.extend(self.spend(now, Purpose::Update, Some(model), usage, None));
                }
                self.tell(checked(&compacted), &mut effects);
                compacted.result
            }
            Err(failure) => Err(failure),
        };
        self.feed(now, Input::Updated { ticket, result }, &mut effects);
        effects
    }
}

fn checked(compacted: &CompactorResult) -> SessionEvent {
    let count = |is: fn(&Finding) -> bool| {
        let findings = compacted.findings.iter();
        findings.filter(|finding| is(finding)).count()
    };
    SessionEvent::Checked {
        put_back: count(|finding| matches!(finding, Finding::PutBack { .. })),
        taken_out: count(|finding| matches!(finding, Finding::TakenOut { .. })),
        refused: count(|finding| matches!(finding, Finding::AnswerRefused { .. })),
        calls: u32::try_from(compacted.calls.len()).unwrap_or(u32::MAX),
    }
}
