//! What a request tells about itself: to the client in headers, to the operator in one line when it has ended.
//!
//! Ids and numbers, and words of this program: nothing that a client or a provider wrote.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use throughline_store::SessionId;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::Span;

use crate::body::Body;
use crate::headers;
use crate::refusals::Refusal;
use crate::shared::Shared;
use crate::spans;
use crate::tap::{Ended, Seen};

/// Longest id of a provider that is told, characters.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// What was done with a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) done: &'static str,
    /// Why, if it was not rewritten.
    pub(super) reason: &'static str,
    pub(super) session: Option<SessionId>,
    pub(super) epoch: Option<u64>,
    pub(super) covered: Option<usize>,
    pub(super) saved: Option<u64>,
}

/// A request that is under way, to the end of its answer.
///
/// However it ends, dropping this tells of it, and makes room for another request.
pub(super) struct Passage {
    shared: Arc<Shared>,
    wire: Wire,
    kind: &'static str,
    began: Instant,
    /// When the whole request was there.
    read: Option<Instant>,
    added: Option<Duration>,
    /// Until the head of the answer was there.
    head: Option<Duration>,
    told: Told,
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

impl Passage {
    /// A request of such a kind begins.
    pub(super) fn new(shared: &Arc<Shared>, wire: Wire, kind: &'static str) -> Self {
        Self {
            shared: Arc::clone(shared),
            wire,
            kind,
            began: Instant::now(),
            read: None,
            added: None,
            head: None,
            told: Told::default(),
            request_bytes: None,
            sent_bytes: None,
            answer_bytes: 0,
            status: None,
            // So it is if nobody says otherwise before the end.
            ended: ended_name(Ended::HungUp),
            usage: None,
            request_id: None,
            permit: None,
            span: spans::request(wire.name(), kind),
        }
    }

    /// It is one of those that may be under way.
    pub(super) fn admit(&mut self, permit: OwnedSemaphorePermit) {
        self.permit = Some(permit);
    }

    /// All of the request is there.
    pub(super) fn is_read(&mut self, bytes: usize) {
        self.request_bytes = Some(bytes);
        self.read = Some(Instant::now());
    }

    /// It goes to the provider. Only the first time counts for what was added.
    pub(super) fn sends(&mut self, bytes: usize) {
        self.sent_bytes = Some(bytes);
        if let Some(read) = self.read.take() {
            let added = read.elapsed();
            self.added = Some(added);
            self.shared.metrics.added(added);
        }
    }

    /// So much of it was passed on as it came.
    pub(super) fn uploads(&mut self, bytes: usize) {
        self.request_bytes = Some(bytes);
        self.sent_bytes = Some(bytes);
    }

    /// What was done with it.
    pub(super) fn tell(&mut self, told: Told) {
        self.shared
            .metrics
            .request(self.wire, told.done, told.reason);
        self.told = told;
    }

    /// What was done with it, as far as it is known.
    pub(super) fn told(&self) -> &Told {
        &self.told
    }

    /// The head of the answer has come.
    pub(super) fn answers(&mut self, head: &http::response::Parts) {
        self.head = Some(self.began.elapsed());
        self.status = Some(head.status);
        self.request_id = request_id(&head.headers);
    }

    /// The answer has ended.
    pub(super) fn ends(&mut self, seen: &Seen, usage: Option<Usage>) {
        self.shared.metrics.answer(ended_name(seen.ended));
        self.ended = ended_name(seen.ended);
        self.answer_bytes = seen.bytes;
        self.usage = usage;
    }

    /// The proxy itself refuses it.
    pub(super) fn refuse(mut self, refusal: &Refusal) -> Response<Body> {
        self.tell(Told {
            done: "refused",
            reason: refusal.name(),
            ..Told::default()
        });
        self.fail(refusal)
    }

    /// There is no answer of a provider: the proxy says why.
    pub(super) fn fail(mut self, refusal: &Refusal) -> Response<Body> {
        self.ended = "no-answer";
        let answer = refusal.answer(self.wire);
        self.status = Some(answer.status());
        answer
    }
}

impl Passage {
    /// Says in the span what the line says.
    fn record(&self) {
        let (span, told) = (&self.span, &self.told);
        if span.is_disabled() {
            return;
        }
        let usage = self.usage.as_ref();
        let word = |word: &'static str| (!word.is_empty()).then_some(word);
        let status = self.status.map(|status| status.as_u16());
        span.record("done", word(told.done));
        span.record("reason", word(told.reason));
        span.record("status", status);
        span.record("ended", self.ended);
        span.record("session", told.session.as_ref().map(SessionId::as_str));
        span.record("epoch", told.epoch);
        span.record("covered", told.covered);
        span.record("saved_tokens", told.saved);
        span.record("request_bytes", self.request_bytes);
        span.record("sent_bytes", self.sent_bytes);
        span.record("answer_bytes", self.answer_bytes);
        span.record("prompt_tokens", usage.map(Usage::prompt));
        span.record("cache_read_tokens", usage.map(|usage| usage.cache_read));
        let written = usage.map(|usage| usage.cache_write + usage.cache_write_long);
        span.record("cache_write_tokens", written);
        span.record("output_tokens", usage.map(|usage| usage.output));
        span.record("added_us", self.added.map(us));
        span.record("head_ms", self.head.map(ms));
        span.record("request_id", self.request_id.as_deref());
        // What the client did wrong is no failure of the server.
        let has_failed = status.is_none_or(|status| status >= 500) || self.ended == "broken-off";
        if has_failed && self.ended != "hung-up" {
            span.record("otel.status_code", "error");
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.record();
        let told = &self.told;
        let usage = self.usage.as_ref();
        let word = |word: &'static str| (!word.is_empty()).then_some(word);
        tracing::info!(
            wire = self.wire.name(),
            kind = self.kind,
            done = word(told.done),
            reason = word(told.reason),
            status = self.status.map(|status| status.as_u16()),
            ended = self.ended,
            session = told.session.as_ref().map(SessionId::as_str),
            epoch = told.epoch,
            covered = told.covered,
            saved_tokens = told.saved,
            request_bytes = self.request_bytes,
            sent_bytes = self.sent_bytes,
            answer_bytes = self.answer_bytes,
            prompt_tokens = usage.map(Usage::prompt),
            cache_read_tokens = usage.map(|usage| usage.cache_read),
            cache_write_tokens = usage.map(|usage| usage.cache_write + usage.cache_write_long),
            output_tokens = usage.map(|usage| usage.output),
            added_us = self.added.map(us),
            head_ms = self.head.map(ms),
            total_ms = ms(self.began.elapsed()),
            request_id = self.request_id.as_deref(),
            "request"
        );
    }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The provider's id of the request, if it is one: it ends up in a log.
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

fn ended_name(ended: Ended) -> &'static str {
    match ended {
        Ended::Whole => "whole",
        Ended::BrokenOff => "broken-off",
        Ended::HungUp => "hung-up",
    }
}

/// The provider's answer, with what the client is told.
pub(super) fn respond(
    answer: &http::response::Parts,
    mut body: Body,
    told: &Told,
) -> Response<Body> {
    let length = answer.headers.get(CONTENT_LENGTH);
    if let Some(bytes) = length.and_then(|length| length.to_str().ok()?.parse().ok()) {
        body.announce(bytes);
    }
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    let mut headers = headers::downstream(&answer.headers);
    let mut tell = |name: &'static str, value: Option<String>| {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    let word = |word: &'static str| (!word.is_empty()).then(|| word.to_owned());
    tell("x-throughline", word(told.done));
    tell("x-throughline-reason", word(told.reason));
    let session = told.session.as_ref();
    tell("x-throughline-session", session.map(ToString::to_string));
    tell("x-throughline-epoch", told.epoch.map(|n| n.to_string()));
    tell("x-throughline-covered", told.covered.map(|n| n.to_string()));
    tell(
        "x-throughline-saved-tokens",
        told.saved.map(|n| n.to_string()),
    );
    *response.headers_mut() = headers;
    response
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
