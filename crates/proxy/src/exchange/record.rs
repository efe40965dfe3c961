//! The record of a request: the client reads it in headers, the operator in a span, a log line and metrics.
//!
//! Ids and numbers, and words of this program: nothing that a client or a provider wrote. All four are made here, from
//! one [`Record`]; a figure that spans and lines have in common is one row of `with_figures`.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use throughline_store::SessionId;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

use crate::body::Body;
use crate::headers;
use crate::reason::{Action, Reason};
use crate::refusals::Refusal;
use crate::shared::Shared;
use crate::spans::SPANS;
use crate::tap::End;

/// The longest request id of a provider that is recorded, characters.
const REQUEST_ID_CHARS_MAX: usize = 128;
/// How a request ended that the proxy itself answered.
const NO_ANSWER: &str = "no-answer";

/// What the proxy did with a request.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) action: Action,
    /// Why it was not rewritten, or has no answer.
    pub(super) reason: Option<Reason>,
    pub(super) session: Option<SessionId>,
    pub(super) epoch: Option<u64>,
    /// Messages in whose place a memory was sent.
    pub(super) covered: Option<usize>,
    /// Tokens of messages that were left out, or would have been.
    pub(super) saved_tokens: Option<u64>,
}

impl Decision {
    /// A decision about a request that belongs to no session.
    pub(super) fn new(action: Action, reason: Reason) -> Self {
        Self {
            action,
            reason: Some(reason),
            session: None,
            epoch: None,
            covered: None,
            saved_tokens: None,
        }
    }
}

/// A request, from its head to the end of its answer.
///
/// Dropping it writes the span and the log line, and makes room for another request.
pub(super) struct Record {
    shared: Arc<Shared>,
    wire: Wire,
    kind: &'static str,
    began: Instant,
    /// When the whole request had arrived, until it is sent.
    read: Option<Instant>,
    /// What the proxy added.
    added: Option<Duration>,
    /// From the beginning to the head of the answer.
    head: Option<Duration>,
    decision: Option<Decision>,
    request_bytes: Option<usize>,
    sent_bytes: Option<usize>,
    answer_bytes: usize,
    status: Option<StatusCode>,
    ended: &'static str,
    usage: Option<Usage>,
    request_id: Option<String>,
    permit: Option<OwnedSemaphorePermit>,
    span: Span,
}

/// Hands the figures of a record to a macro: the name of each, and its value.
macro_rules! with_figures {
    ($macro:ident, $record:ident) => {
        $macro! {
            done = $record.decision.as_ref().map(|it| it.action.as_str()),
            reason = $record.decision.as_ref().and_then(|it| Some(it.reason?.as_str())),
            status = $record.status.map(|status| status.as_u16()),
            ended = $record.ended,
            session = $record.session(),
            epoch = $record.decision.as_ref().and_then(|it| it.epoch),
            covered = $record.decision.as_ref().and_then(|it| it.covered),
            saved_tokens = $record.decision.as_ref().and_then(|it| it.saved_tokens),
            request_bytes = $record.request_bytes,
            sent_bytes = $record.sent_bytes,
            answer_bytes = $record.answer_bytes,
            prompt_tokens = $record.usage.as_ref().map(Usage::prompt),
            cache_read_tokens = $record.usage.map(|usage| usage.cache_read),
            cache_write_tokens = $record.usage.map(|usage| usage.cache_write + usage.cache_write_long),
            output_tokens = $record.usage.map(|usage| usage.output),
            added_us = $record.added.map(us),
            head_ms = $record.head.map(ms),
            total_ms = ms($record.began.elapsed()),
            request_id = $record.request_id.as_deref(),
        }
    };
}

/// The span of a request, with room for all figures.
fn span(wire: &'static str, kind: &'static str) -> Span {
    macro_rules! declare {
        ($($name:ident = $value:expr),* $(,)?) => {
            tracing::info_span!(
                target: SPANS,
                parent: None,
                "request",
                otel.kind = "server",
                otel.status_code = Empty,
                wire,
                kind,
                $($name = Empty),*
            )
        };
    }
    with_figures!(declare, record)
}

impl Record {
    /// A request begins.
    pub(super) fn new(shared: &Arc<Shared>, wire: Wire, kind: &'static str) -> Self {
        Self {
            shared: Arc::clone(shared),
            wire,
            kind,
            began: Instant::now(),
            read: None,
            added: None,
            head: None,
            decision: None,
            request_bytes: None,
            sent_bytes: None,
            answer_bytes: 0,
            status: None,
            // Unless something else is recorded before the end.
            ended: End::HungUp.as_str(),
            usage: None,
            request_id: None,
            permit: None,
            span: span(wire.name(), kind),
        }
    }

    /// The request has a permit to run.
    pub(super) fn admit(&mut self, permit: OwnedSemaphorePermit) {
        self.permit = Some(permit);
    }

    /// The whole request has arrived.
    pub(super) fn read(&mut self, bytes: usize) {
        self.request_bytes = Some(bytes);
        self.read = Some(Instant::now());
    }

    /// A body is sent. Only the first time counts for what the proxy added.
    pub(super) fn send(&mut self, bytes: usize) {
        self.sent_bytes = Some(bytes);
        if let Some(read) = self.read.take() {
            let added = read.elapsed();
            self.added = Some(added);
            self.shared.metrics.added(added);
        }
    }

    /// This much of a body was forwarded while it was read.
    pub(super) fn upload(&mut self, bytes: usize) {
        self.request_bytes = Some(bytes);
        self.sent_bytes = Some(bytes);
    }

    /// What the proxy does with the request.
    pub(super) fn decide(&mut self, decision: Decision) {
        let metrics = &self.shared.metrics;
        let reason = decision.reason.map_or("", Reason::as_str);
        metrics.request(self.wire, decision.action.as_str(), reason);
        // A rewritten request with a reason was refused.
        let is_answered = decision.action == Action::Rewritten && decision.reason.is_none();
        if let Some(tokens) = decision.saved_tokens.filter(|_| is_answered) {
            metrics.saved(tokens);
        }
        self.decision = Some(decision);
    }

    /// The head of the answer has arrived.
    pub(super) fn answer_begins(&mut self, head: &http::response::Parts) {
        self.head = Some(self.began.elapsed());
        self.status = Some(head.status);
        self.request_id = request_id(&head.headers);
    }

    /// The answer has ended.
    pub(super) fn answer_ends(&mut self, end: End, bytes: usize, usage: Option<Usage>) {
        self.shared.metrics.answer(end.as_str());
        self.ended = end.as_str();
        self.answer_bytes = bytes;
        self.usage = usage;
    }

    /// The proxy refuses the request.
    pub(super) fn refuse(mut self, refusal: &Refusal) -> Response<Body> {
        self.decide(Decision::new(Action::Refused, refusal.reason()));
        self.fail(refusal)
    }

    /// The upstream has not answered: the proxy says why.
    pub(super) fn fail(mut self, refusal: &Refusal) -> Response<Body> {
        self.ended = NO_ANSWER;
        let answer = refusal.answer(self.wire);
        self.status = Some(answer.status());
        answer
    }

    /// The headers of the answer for the client: the upstream's, and what the proxy did.
    pub(super) fn headers(&self, upstream: &HeaderMap) -> HeaderMap {
        let mut headers = headers::downstream(upstream);
        let Some(decision) = &self.decision else {
            return headers;
        };
        let number = |number: u64| number.to_string();
        for (name, value) in [
            ("x-throughline", Some(decision.action.as_str().to_owned())),
            (
                "x-throughline-reason",
                decision.reason.map(|reason| reason.as_str().to_owned()),
            ),
            ("x-throughline-session", self.session().map(str::to_owned)),
            ("x-throughline-epoch", decision.epoch.map(number)),
            (
                "x-throughline-covered",
                decision.covered.map(|covered| covered.to_string()),
            ),
            (
                "x-throughline-saved-tokens",
                decision.saved_tokens.map(number),
            ),
        ] {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers
    }

    fn session(&self) -> Option<&str> {
        let session = self.decision.as_ref()?.session.as_ref();
        session.map(SessionId::as_str)
    }

    fn write_span(&self) {
        let span = &self.span;
        if span.is_disabled() {
            return;
        }
        macro_rules! record {
            ($($name:ident = $value:expr),* $(,)?) => {
                $( span.record(stringify!($name), $value); )*
            };
        }
        with_figures!(record, self);
        // What the client did wrong is no failure of the server.
        let is_servers = self.status.is_none_or(|status| status.is_server_error());
        let is_failure = is_servers || self.ended == End::BrokenOff.as_str();
        if is_failure && self.ended != End::HungUp.as_str() {
            span.record("otel.status_code", "error");
        }
    }

    fn write_line(&self) {
        macro_rules! write {
            ($($name:ident = $value:expr),* $(,)?) => {
                tracing::info!(
                    wire = self.wire.name(),
                    kind = self.kind,
                    $($name = $value,)*
                    "request"
                )
            };
        }
        with_figures!(write, self);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.write_span();
        self.write_line();
    }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The provider's id of the request, if it looks like one: it ends up in a log.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers
        .get("request-id")
        .or_else(|| headers.get("x-request-id"))?
        .to_str()
        .ok()?;
    let is_id = (1..=REQUEST_ID_CHARS_MAX).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'));
    is_id.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_is_told_as_one() {
        for (name, value, is_told) in [
            ("request-id", "req_011CabcDEF", true),
            ("x-request-id", "5f2a41de-9c1b-4a8e-b9a1-1de2f1c2b3a4", true),
            ("request-id", "", false),
            ("request-id", "two words", false),
            ("request-id", "<script>", false),
            ("request-id", &"x".repeat(129), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::try_from(value).unwrap(),
            );
            let told = request_id(&headers);
            assert_eq!(told.as_deref(), is_told.then_some(value), "{value}");
        }
    }
}
