//! One request and its answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytestring::ByteString;
use futures_util::{Stream, StreamExt as _};
use throughline_providers::client::{CallOptions, Client, Delivery};
use throughline_providers::error::{CallError, CallErrorKind};
use throughline_providers::reply::{Event, Reply};
use throughline_providers::stop::{Next, StopReason};
use throughline_transcript::body::read_message;
use throughline_transcript::message::ToolCall;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Command, Session};
use crate::error::SendError;
use crate::traffic::Traffic;

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct PreparedTurn {
    pub(crate) client: Client,
    pub(crate) body: ByteString,
    /// Names the turn.
    pub(crate) number: u64,
    /// Cancels the turn when it is dropped: a caller that is gone does not keep the session busy.
    pub(crate) guard: DropGuard,
    pub(crate) cancel: CancellationToken,
    pub(crate) traffic: Traffic,
}

/// The next request of the same turn.
#[derive(Debug)]
pub(crate) struct ResentRequest {
    pub(crate) body: ByteString,
}

/// Why the same request is to be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The provider has paused, and continues when the request is sent again.
    Paused,
    /// It was too large; with the window that the provider named.
    TooLarge(Option<u64>),
}

/// How often a provider may pause in one turn.
const PAUSES_MAX: u32 = 32;
/// Events that a slow caller may leave lying.
const EVENTS_MAX: usize = 256;

/// An answer that is coming in: a stream of events that ends with [`TurnEvent::Done`], or with an error. Dropping it
/// cancels the answer; the message stays sent, and the answer is not stored.
#[derive(Debug)]
pub struct Turn {
    events: mpsc::Receiver<Result<TurnEvent, SendError>>,
    _cancel: DropGuard,
}

/// Something of an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TurnEvent {
    /// What the provider sends, as it comes.
    Model(Event),
    /// The request was too large for the provider, and is made again from a memory. What came before is void.
    Compacted,
    /// The answer is complete and stored. The last event.
    Done(Box<TurnAnswer>),
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct TurnAnswer {
    /// What came; the last one, if the provider has paused in between.
    pub reply: Reply,
    /// All visible text, also from before a pause.
    text: String,
}

impl TurnAnswer {
    /// The visible text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why the model stopped.
    #[must_use]
    pub fn stop(&self) -> Option<&StopReason> {
        self.reply.stop.as_ref()
    }

    /// Calls of tools that wait for their results.
    #[must_use]
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.reply
            .messages
            .iter()
            .filter_map(read_message)
            .flat_map(|message| {
                message
                    .tool_calls()
                    .filter(|call| !call.is_server_side)
                    .cloned()
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

impl Turn {
    pub(super) fn start(session: &Session, prepared: PreparedTurn) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let runner = Runner {
            commands: session.shared.commands.clone(),
            events: sender,
            number: prepared.number,
            cancel: prepared.cancel,
            client: prepared.client,
            traffic: prepared.traffic,
        };
        session.shared.tasks.spawn(runner.run(prepared.body));
        Self {
            events,
            _cancel: prepared.guard,
        }
    }

    /// Waits for the whole answer.
    ///
    /// # Errors
    /// If it was cut off.
    pub async fn answer(mut self) -> Result<TurnAnswer, SendError> {
        while let Some(event) = self.next().await {
            if let TurnEvent::Done(answer) = event? {
                return Ok(*answer);
            }
        }
        Err(SendError::Closed)
    }
}

impl Stream for Turn {
    type Item = Result<TurnEvent, SendError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(context)
    }
}

/// Makes the calls of a turn.
struct Runner {
    commands: mpsc::Sender<Command>,
    events: mpsc::Sender<Result<TurnEvent, SendError>>,
    number: u64,
    cancel: CancellationToken,
    client: Client,
    traffic: Traffic,
}

impl Runner {
    async fn run(self, body: ByteString) {
        let result = self.turn(body).await;
        if result.is_err() {
            // The session can be asked again.
            let _ = self.commands.send(Command::GaveUp(self.number)).await;
        }
        self.tell(result.map(Box::new).map(TurnEvent::Done)).await;
    }

    async fn turn(&self, mut body: ByteString) -> Result<TurnAnswer, SendError> {
        let mut text = String::new();
        let mut pauses = 0;
        let mut has_shrunk = false;
        loop {
            let reply = match self.call(&body).await {
                Ok(reply) => reply,
                Err(error) => {
                    let window = match error.kind() {
                        CallErrorKind::ContextOverflow { window } => window,
                        CallErrorKind::BodyTooLarge => None,
                        _ => return Err(SendError::Call(Arc::new(error))),
                    };
                    if has_shrunk {
                        return Err(SendError::Call(Arc::new(error)));
                    }
                    has_shrunk = true;
                    body = self.again(Again::TooLarge(window)).await?;
                    self.tell(Ok(TurnEvent::Compacted)).await;
                    continue;
                }
            };
            text.push_str(&reply.text());
            let (sender, stored) = oneshot::channel();
            self.command(Command::Reply(self.number, Box::new(reply.clone()), sender))
                .await?;
            stored.await.map_err(|_| SendError::Closed)??;
            let next = reply.stop.as_ref().map(StopReason::next);
            if next == Some(Next::ResendUnchanged) && pauses < PAUSES_MAX {
                pauses += 1;
                body = self.again(Again::Paused).await?;
                continue;
            }
            return Ok(TurnAnswer { reply, text });
        }
    }

    async fn call(&self, body: &ByteString) -> Result<Reply, CallError> {
        let mut waiting = Some(self.traffic.begin());
        let options = CallOptions::cancelled_by(self.cancel.clone()).delivery(Delivery::Streamed);
        let mut call = self.client.send(body.clone(), options).await?;
        while let Some(event) = call.next().await {
            match event? {
                Event::Reply(reply) => return Ok(*reply),
                event => {
                    // The provider answers: background work may continue.
                    if waiting.take().is_some() {
                        let _ = self.commands.send(Command::AnswerBegun(self.number)).await;
                    }
                    self.tell(Ok(TurnEvent::Model(event))).await;
                }
            }
        }
        drop(waiting);
        // A call ends with its reply or an error.
        call.reply().await
    }

    async fn again(&self, again: Again) -> Result<ByteString, SendError> {
        let (sender, prepared) = oneshot::channel();
        self.command(Command::SendAgain(self.number, again, sender))
            .await?;
        let prepared = prepared.await.map_err(|_| SendError::Closed)??;
        Ok(prepared.body)
    }

    async fn command(&self, command: Command) -> Result<(), SendError> {
        self.commands
            .send(command)
            .await
            .map_err(|_| SendError::Closed)
    }

    async fn tell(&self, event: Result<TurnEvent, SendError>) {
        // A caller that does not read holds the answer up, but not the end of the session.
        tokio::select! {
            biased;
            _ = self.events.send(event) => {}
            () = self.cancel.cancelled() => {}
        }
    }
}
