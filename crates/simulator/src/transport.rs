//! The simulator as a transport of the `providers` crate: no socket, and the time of the runtime.
//!
//! In a runtime that is paused (`start_paused`), an answer that takes half a minute is there at once, and everything
//! else that waits moves on as it would.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use throughline_providers::transport::{BodyStream, Transport, TransportError, TransportErrorKind};
use tokio::time::Instant;

use crate::exchange::{Ending, Exchange, Piece};
use crate::options::Options;
use crate::reply::Reply;
use crate::simulator::{LedgerEntry, Simulator};

/// A simulator that several tasks can call, on the clock of the tokio runtime. Clones are the same provider.
#[derive(Clone, Debug)]
pub struct SimulatedProvider {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    simulator: Mutex<Simulator>,
    started_at: Instant,
}

impl SimulatedProvider {
    /// A provider whose clock starts now. To be called within a tokio runtime.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::of(Simulator::new(options))
    }

    /// The same of a simulator that has been prepared.
    #[must_use]
    pub fn of(simulator: Simulator) -> Self {
        Self {
            shared: Arc::new(Shared {
                simulator: Mutex::new(simulator),
                started_at: Instant::now(),
            }),
        }
    }

    /// Time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.shared.started_at.elapsed()
    }

    /// Looks at the simulator, or prepares it. Calls wait as long as this takes.
    pub fn with<T>(&self, look: impl FnOnce(&mut Simulator) -> T) -> T {
        let mut simulator = self
            .shared
            .simulator
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        look(&mut simulator)
    }

    /// Adds a scripted reply.
    pub fn script(&self, reply: Reply) {
        self.with(|simulator| simulator.script(reply));
    }

    /// All exchanges so far.
    #[must_use]
    pub fn ledger(&self) -> Vec<LedgerEntry> {
        self.with(|simulator| simulator.ledger().cloned().collect())
    }

    /// Answers a request that arrives now, without a wait.
    #[must_use]
    pub fn exchange(&self, request: Request<Bytes>) -> Exchange {
        let now = self.now();
        self.with(|simulator| simulator.request(now, request))
    }
}

#[async_trait]
impl Transport for SimulatedProvider {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, TransportError> {
        let start = Instant::now();
        let exchange = self.exchange(request);
        tokio::time::sleep_until(start + exchange.head_after).await;
        if exchange.pieces.is_empty() && exchange.ending == Ending::Cut {
            return Err(broken());
        }
        let mut response = Response::new(body(start, exchange.pieces, exchange.ending));
        *response.status_mut() = exchange.status;
        *response.headers_mut() = exchange.headers;
        Ok(response)
    }
}

/// The pieces, each at its time.
fn body(start: Instant, pieces: Vec<Piece>, ending: Ending) -> BodyStream {
    let state = (pieces.into_iter(), Some(ending));
    Box::pin(stream::unfold(
        state,
        move |(mut pieces, mut ending)| async move {
            if let Some(piece) = pieces.next() {
                tokio::time::sleep_until(start + piece.after).await;
                return Some((Ok(piece.bytes), (pieces, ending)));
            }
            match ending.take()? {
                Ending::Complete => None,
                Ending::Cut => Some((Err(broken()), (pieces, None))),
                Ending::Stall => std::future::pending().await,
            }
        },
    ))
}

fn broken() -> TransportError {
    TransportError::new(
        TransportErrorKind::Broken,
        "the connection was closed before the answer was complete",
    )
}
