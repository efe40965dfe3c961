//! A running call: a stream of events that ends in the reply.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{FutureExt as _, Stream, StreamExt as _};
use http::HeaderMap;
use throughline_transcript::wire::Wire;
use tokio::time::Instant;

use crate::decode::{DecodeError, Decoder, read_whole};
use crate::error::{CallError, Failure};
use crate::exchange::{Exchange, Whole};
use crate::rate_limits::RateLimits;
use crate::refused::{in_answer, request_id};
use crate::reply::{Event, Reply};
use crate::transport::BodyStream;

/// An answer in progress.
///
/// It is a stream of [`Event`]s. The last one is [`Event::Reply`], or an error: an interrupted answer never looks
/// complete. Dropping it closes the connection. An answer that is not streamed gives `Started`, its text, its usage and
/// the reply.
pub struct Call {
    events: Pin<Box<dyn Stream<Item = Result<Event, CallError>> + Send>>,
}

impl Call {
    pub(crate) fn new(exchange: Exchange, head: Head) -> Self {
        let progress = Progress {
            attempt: Some(Attempt::new(&exchange, head)),
            exchange,
            queue: VecDeque::new(),
            has_delivered: false,
        };
        Self {
            events: Box::pin(futures_util::stream::unfold(progress, Progress::step)),
        }
    }

    /// Waits for the end and returns the reply; drops the events before it.
    ///
    /// # Errors
    /// The call failed, or the caller has already taken the reply from the stream.
    pub async fn reply(mut self) -> Result<Reply, CallError> {
        while let Some(event) = self.next().await {
            if let Event::Reply(reply) = event? {
                return Ok(*reply);
            }
        }
        Err(CallError::new(
            Failure::CutOff,
            "the reply was taken before",
        ))
    }
}

impl Stream for Call {
    type Item = Result<Event, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// The head of an answer that is a success, and its body.
pub(crate) struct Head {
    pub(crate) headers: HeaderMap,
    pub(crate) body: BodyStream,
    /// When the request was sent.
    pub(crate) sent: Instant,
}

struct Progress {
    exchange: Exchange,
    /// The current attempt; `None` after the end.
    attempt: Option<Attempt>,
    /// Events that are read and not yet returned.
    queue: VecDeque<Event>,
    /// Whether the caller has seen a part of the answer.
    has_delivered: bool,
}

/// One answer so far.
struct Attempt {
    wire: Wire,
    request_id: Option<String>,
    rate_limits: RateLimits,
    sent: Instant,
    time_to_first_event: Option<Duration>,
    body: BodyStream,
    /// `None` for an answer that is not streamed.
    decoder: Option<Decoder>,
    /// The error that follows the events that were read last.
    broken: Option<CallError>,
}

impl Progress {
    async fn step(mut self) -> Option<(Result<Event, CallError>, Self)> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                self.has_delivered |= is_part_of_answer(&event);
                return Some((Ok(event), self));
            }
            let attempt = self.attempt.as_mut()?;
            let Err(error) = attempt.read(&self.exchange, &mut self.queue).await else {
                if let Some(Event::Reply(reply)) = self.queue.back() {
                    self.exchange.log_end(reply);
                    self.attempt = None;
                }
                continue;
            };
            let error = attempt.describe(error);
            let error = self.exchange.without_secrets(error);
            self.attempt = None;
            if self.has_delivered && !self.exchange.restarts_broken_answers() {
                return Some((Err(self.exchange.numbered(error)), self));
            }
            match self.exchange.again(error).await {
                Ok(head) => {
                    self.attempt = Some(Attempt::new(&self.exchange, head));
                    self.has_delivered = false;
                    self.queue.push_back(Event::Restarted {
                        attempt: self.exchange.attempts(),
                    });
                }
                Err(error) => return Some((Err(error), self)),
            }
        }
    }
}

/// Whether a caller that has seen this would be misled by a second beginning.
fn is_part_of_answer(event: &Event) -> bool {
    !matches!(
        event,
        Event::Started { .. } | Event::Ping | Event::Usage(_) | Event::Restarted { .. }
    )
}

impl Attempt {
    fn new(exchange: &Exchange, head: Head) -> Self {
        let content_type = head
            .headers
            .get(http::header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        // What the server says counts; of one that says nothing it is believed that it does what it was asked.
        let is_streamed = content_type.contains("event-stream")
            || (!content_type.contains("json") && exchange.asks_for_stream());
        Self {
            wire: exchange.wire(),
            request_id: request_id(&head.headers),
            rate_limits: RateLimits::read(&head.headers),
            sent: head.sent,
            time_to_first_event: None,
            body: head.body,
            decoder: is_streamed.then(|| Decoder::new(exchange.wire())),
            broken: None,
        }
    }

    /// Reads until there is an event to return.
    async fn read(
        &mut self,
        exchange: &Exchange,
        queue: &mut VecDeque<Event>,
    ) -> Result<(), CallError> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let Some(decoder) = &mut self.decoder else {
            return self.read_whole(exchange, queue).await;
        };
        let mut events = Vec::new();
        while !decoder.is_done() && events.is_empty() {
            let Some(chunk) = exchange.next_chunk(&mut self.body).await? else {
                break;
            };
            let pushed = decoder.push(&chunk, &mut events);
            if !events.is_empty() && self.time_to_first_event.is_none() {
                self.time_to_first_event = Some(self.sent.elapsed());
            }
            if let Err(error) = pushed {
                self.broken = Some(failed(&error));
                break;
            }
        }
        let is_done = decoder.is_done();
        let ended =
            (self.broken.is_none() && (is_done || events.is_empty())).then(|| decoder.finish());
        queue.extend(events);
        match ended {
            None if queue.is_empty() => self.broken.take().map_or(Ok(()), Err),
            None => Ok(()),
            Some(Ok(reply)) => {
                // The end of the body is mostly there already. Taking it lets the connection be used again.
                let _end = self.body.next().now_or_never();
                queue.push_back(self.reply(exchange, reply));
                Ok(())
            }
            Some(Err(error)) if queue.is_empty() => Err(failed(&error)),
            Some(Err(error)) => {
                self.broken = Some(failed(&error));
                Ok(())
            }
        }
    }

    async fn read_whole(
        &mut self,
        exchange: &Exchange,
        queue: &mut VecDeque<Event>,
    ) -> Result<(), CallError> {
        let body = exchange.read_body(&mut self.body, Whole::Answer).await?;
        self.time_to_first_event = Some(self.sent.elapsed());
        let reply = read_whole(self.wire, &body).map_err(|error| failed(&error))?;
        queue.push_back(Event::Started {
            model: reply.model.clone(),
            id: reply.id.clone(),
        });
        let text = reply.text();
        if !text.is_empty() {
            queue.push_back(Event::Text(text.into()));
        }
        queue.extend(reply.usage.map(Event::Usage));
        queue.push_back(self.reply(exchange, reply));
        Ok(())
    }

    fn reply(&self, exchange: &Exchange, mut reply: Reply) -> Event {
        reply.attempts = exchange.attempts();
        self.sign(&mut reply);
        Event::Reply(Box::new(reply))
    }

    fn sign(&self, reply: &mut Reply) {
        reply.request_id.clone_from(&self.request_id);
        reply.rate_limits.clone_from(&self.rate_limits);
        reply.time_to_first_event = self.time_to_first_event;
    }

    /// Adds what arrived before an error to it.
    fn describe(&self, mut error: CallError) -> CallError {
        error.status = error.status.or(Some(200));
        if error.report.request_id.is_none() {
            error.report.request_id.clone_from(&self.request_id);
        }
        if self.time_to_first_event.is_some()
            && let Some(decoder) = &self.decoder
        {
            let mut partial = decoder.partial();
            self.sign(&mut partial);
            error.partial = Some(Box::new(partial));
        }
        error
    }
}

fn failed(error: &DecodeError) -> CallError {
    match error {
        DecodeError::Refused { body } => in_answer(body),
        DecodeError::CutOff => CallError::new(Failure::CutOff, ""),
        DecodeError::Malformed { what } => CallError::new(Failure::Malformed, *what),
        DecodeError::TooLarge => CallError::new(Failure::TooLarge, ""),
    }
}
