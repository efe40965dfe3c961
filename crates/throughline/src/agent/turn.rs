//! A turn of an agent, as a stream of events.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt};

use super::event::{AgentError, AgentEvent, AgentOutcome};

/// Everything that happens until the model has said what it wanted to say, as it happens. Dropping it cancels the answer
/// that comes and the calls that run; what is open then, [`Agent::go_on`](super::Agent::go_on) takes up.
///
/// Nothing happens unless it is polled, but for calls that run already: an [`Approver`](super::Approver) is asked when
/// all events before that have been taken.
#[must_use = "a turn does nothing unless it is polled"]
pub struct AgentTurn {
    work: Option<BoxFuture<'static, Result<AgentOutcome, AgentError>>>,
    teller: Teller,
}

impl AgentTurn {
    pub(super) fn new<W>(work: impl FnOnce(Teller) -> W) -> Self
    where
        W: Future<Output = Result<AgentOutcome, AgentError>> + Send + 'static,
    {
        let teller = Teller::default();
        Self {
            work: Some(Box::pin(work(teller.clone()))),
            teller,
        }
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// If the turn failed.
    pub async fn outcome(mut self) -> Result<AgentOutcome, AgentError> {
        while let Some(event) = self.next().await {
            if let AgentEvent::Done(outcome) = event? {
                return Ok(*outcome);
            }
        }
        // A turn ends with its outcome or an error, both of which are events.
        Err(AgentError::NothingOpen)
    }
}

impl Stream for AgentTurn {
    type Item = Result<AgentEvent, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(None);
        };
        let polled = work.as_mut().poll(context);
        if let Some(event) = self.teller.take() {
            return Poll::Ready(Some(Ok(event)));
        }
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => {
                self.work = None;
                Poll::Ready(Some(
                    result.map(|outcome| AgentEvent::Done(Box::new(outcome))),
                ))
            }
        }
    }
}

impl std::fmt::Debug for AgentTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentTurn")
            .field("is_over", &self.work.is_none())
            .finish_non_exhaustive()
    }
}

/// Hands events out of the work of a turn, one at a time: the work continues once the event is taken.
#[derive(Clone, Default)]
pub(super) struct Teller {
    slot: Arc<Mutex<Option<AgentEvent>>>,
}

impl Teller {
    pub(super) async fn tell(&self, event: AgentEvent) {
        *self.slot() = Some(event);
        // The stream takes the event as soon as the work waits, and is polled again for the next one.
        poll_fn(|_| {
            if self.slot().is_none() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn take(&self) -> Option<AgentEvent> {
        self.slot().take()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<AgentEvent>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
