//! One request through the proxy, from its head to the end of its answer.
//!
//! [`Proxy::answer`] is the table of contents: a request is admitted and received, the proxy decides what to do with it
//! (`decide`), and it is forwarded as it is (`forward`) or for its session (`send`).

mod answer;
mod check;
mod record;
mod upload;

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use http::{HeaderMap, Request, Response, request};
use http_body::Body as HttpBody;
use throughline::core::Waits;
use throughline_providers::transport::BodyStream;
use throughline_transcript::json::Raw;
use throughline_transcript::refusal::{self, Class};
use throughline_transcript::wire::Wire;

use self::answer::{ForwardedAnswer, SessionAnswer, short};
use self::record::{Decision, Record};
use self::upload::Upload;
use crate::Proxy;
use crate::body::{self, Body, ReadError};
use crate::config::Mode;
use crate::headers::{self, Tenant};
use crate::incoming::IncomingRequest;
use crate::reason::{Action, Bypass, Reason};
use crate::refusals::Refusal;
use crate::route::{self, Kind, Target};
use crate::tracked::{Live, ReadyRequest, TrackedSession};

/// Refusals are short; a longer answer than this is not examined, bytes.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Files are larger than requests by this factor.
const UPLOAD_FACTOR: usize = 16;

/// A request on its way through the proxy.
struct Exchange {
    target: Target,
    head: request::Parts,
    record: Record,
}

/// The body of a request.
enum ClientUpload {
    /// All of it.
    Whole(Bytes),
    /// It is forwarded while it is read.
    Streamed(BodyStream, Upload),
}

/// A request of a session on its way.
struct SessionRequest {
    session: Arc<TrackedSession>,
    ready: ReadyRequest,
    /// The body that takes the place of the client's, if it may be sent.
    rewritten: Option<Raw>,
    /// Why the client's body is sent although the plan asks for another one, or could not be stored.
    reason: Option<Reason>,
}

impl Proxy {
    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        if throughline_dashboard::serves(&head) {
            return self.dashboard_answer(&head, body).await;
        }
        let upstreams = &self.shared.config.upstreams;
        let target = route::target(upstreams, &head.method, &head.uri, &head.headers);
        let Some(target) = target else {
            return self.not_found(&head);
        };
        let record = Record::new(&self.shared, target.wire, target.kind.name());
        let mut exchange = Exchange {
            target,
            head,
            record,
        };
        let body = match self.receive(&mut exchange, body).await {
            Ok(ClientUpload::Whole(body)) => body,
            Ok(ClientUpload::Streamed(chunks, upload)) => {
                return self.forward_stream(exchange, chunks, upload).await;
            }
            Err(refusal) => return exchange.record.refuse(&refusal),
        };
        match self.decide(&exchange, &body).await {
            Ok(request) => self.send(exchange, body, request).await,
            Err(Bypass::Forward(reason)) => {
                let decision = Decision::new(Action::Passed, reason);
                let headers = headers::upstream(&exchange.head.headers);
                self.forward(exchange, decision, headers, body).await
            }
            Err(Bypass::Count(counted)) => {
                let decision = Decision::new(Action::Rewritten, Reason::Count);
                let mut headers = headers::upstream(&exchange.head.headers);
                headers.remove(CONTENT_ENCODING);
                let body = counted.into_bytes();
                self.forward(exchange, decision, headers, body).await
            }
            Err(Bypass::Refuse(refusal)) => exchange.record.refuse(&refusal),
        }
    }

    fn not_found(&self, head: &request::Parts) -> Response<Body> {
        let wire = if headers::is_anthropic(&head.headers) {
            Wire::Anthropic
        } else {
            Wire::OpenAiChat
        };
        let refusal = Refusal::not_found(head.uri.path());
        Record::new(&self.shared, wire, "none").refuse(&refusal)
    }

    /// Admits a request and reads its body.
    async fn receive<B>(&self, exchange: &mut Exchange, body: B) -> Result<ClientUpload, Refusal>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let request_headers = &exchange.head.headers;
        if headers::wants_web_socket(request_headers) {
            return Err(Refusal::web_socket());
        }
        let permit = Arc::clone(&self.under_way).try_acquire_owned();
        exchange.record.admit(permit.map_err(|_| Refusal::busy())?);
        let is_other = exchange.target.kind == Kind::Other;
        let bytes_max = self.bytes_max(&exchange.target);
        let announced = headers::content_length(request_headers);
        if announced.is_some_and(|bytes| bytes > bytes_max) {
            // With `Expect: 100-continue` the client has not sent the body yet.
            if !request_headers.contains_key(EXPECT) {
                let _ = body::read(body, announced.unwrap_or(0), bytes_max).await;
            }
            return Err(Refusal::too_large(bytes_max));
        }
        if is_other && !body.is_end_stream() {
            let (chunks, upload) = Upload::begin(body, bytes_max);
            return Ok(ClientUpload::Streamed(chunks, upload));
        }
        let read = body::read(body, announced.unwrap_or(0), bytes_max).await;
        let body = read.map_err(|unread| refused(unread, bytes_max))?;
        exchange.record.read(body.len());
        Ok(ClientUpload::Whole(body))
    }

    fn bytes_max(&self, target: &Target) -> usize {
        let bytes_max = self.shared.config.limits.body_bytes_max;
        match target.kind {
            Kind::Answer(_) | Kind::Count(_) => bytes_max,
            Kind::Other => bytes_max * UPLOAD_FACTOR,
        }
    }

    /// Decides what to do with a request. If something goes wrong here, it is forwarded.
    async fn decide(
        &self,
        exchange: &Exchange,
        body: &Bytes,
    ) -> Result<Box<SessionRequest>, Bypass> {
        let config = &self.shared.config;
        let wire = match exchange.target.kind {
            Kind::Other => return Err(Bypass::Forward(Reason::Path)),
            _ if exchange.target.is_passed => return Err(Bypass::Forward(Reason::SwitchedOff)),
            _ if config.mode == Mode::Off => return Err(Bypass::Forward(Reason::Off)),
            Kind::Count(wire) => {
                let counted = self.counted(wire, exchange, body);
                return Err(counted.map_or(Bypass::Forward(Reason::Count), Bypass::Count));
            }
            Kind::Answer(wire) => wire,
        };
        if self.shared.archive.waiting_bytes() > config.limits.unstored_bytes_max {
            return Err(Bypass::Forward(Reason::Store));
        }
        let mut incoming = self.incoming(wire, exchange, body)?;
        let (session, planned) = self.sessions.take(&mut incoming).await?;
        drop(incoming);
        let ready = session.ready(planned).await;
        let head = &exchange.head.headers;
        Ok(self.session_request(session, ready, head).await)
    }

    /// The request of a body.
    fn incoming(
        &self,
        wire: Wire,
        exchange: &Exchange,
        body: &Bytes,
    ) -> Result<IncomingRequest, Bypass> {
        let config = &self.shared.config;
        let head = &exchange.head.headers;
        let text = body::unpacked(head, body, config.limits.body_bytes_max)
            .and_then(|body| ByteString::try_from(body).ok())
            .ok_or(Bypass::Forward(Reason::Unreadable))?;
        let tenant = Tenant::of(head, config.tenants);
        IncomingRequest::read(wire, exchange.target.profile, text, tenant, head)
    }

    /// A request of a session, with the rewritten body if that may be sent.
    async fn session_request(
        &self,
        session: Arc<TrackedSession>,
        mut ready: ReadyRequest,
        head: &HeaderMap,
    ) -> Box<SessionRequest> {
        // A request made from a new memory waits until that is stored.
        let is_stored = !ready.has_swapped || self.shared.archive.settled(&session.id).await;
        let (rewritten, reason) = match ready.rewritten.take() {
            None => (None, (!is_stored).then_some(Reason::Store)),
            Some(_) if self.shared.config.mode == Mode::Observe => (None, Some(Reason::Observe)),
            Some(_) if !is_stored => (None, Some(Reason::Store)),
            Some(body) => {
                match check::rewritten(body, &ready.body, head, &self.shared.config.catalogue) {
                    Ok(body) => (Some(body), None),
                    Err(finding) => {
                        tracing::warn!(session = %session.id, finding, "a rewritten request would be refused: the original is sent");
                        (None, Some(Reason::Check))
                    }
                }
            }
        };
        Box::new(SessionRequest {
            session,
            ready,
            rewritten,
            reason,
        })
    }

    /// The body whose tokens are counted, if it is not the client's.
    fn counted(&self, wire: Wire, exchange: &Exchange, body: &Bytes) -> Option<ByteString> {
        if self.shared.config.mode != Mode::Rewrite {
            return None;
        }
        let mut incoming = self.incoming(wire, exchange, body).ok()?;
        let outline = incoming.messages.outline().ok()?;
        if Bypass::of(&outline, Mode::Rewrite).is_some() {
            return None;
        }
        let session = self.sessions.find(&mut incoming)?;
        session.counted(&mut incoming).ok()?
    }

    /// Forwards a request, and its answer back.
    async fn forward(
        &self,
        mut exchange: Exchange,
        decision: Decision,
        headers: HeaderMap,
        body: Bytes,
    ) -> Response<Body> {
        exchange.record.decide(decision);
        exchange.record.send(body.len());
        match self.call(&exchange, headers, body).await {
            Ok(answer) => self.forward_answer(answer, None, exchange.record),
            Err(refusal) => exchange.record.fail(&refusal),
        }
    }

    /// Forwards a body while it is read, and its answer back.
    async fn forward_stream(
        &self,
        mut exchange: Exchange,
        chunks: BodyStream,
        upload: Upload,
    ) -> Response<Body> {
        let decision = Decision::new(Action::Passed, Reason::Path);
        exchange.record.decide(decision);
        let head = &exchange.head;
        let mut headers = headers::upstream(&head.headers);
        // Not every server accepts a body without a length.
        if let Some(length) = head.headers.get(CONTENT_LENGTH) {
            headers.insert(CONTENT_LENGTH, length.clone());
        }
        let request = request_to(&exchange, headers, chunks);
        let called = tokio::select! {
            called = self.shared.transport.call_streamed(request) => called.map_err(Refusal::from),
            () = upload.stalled(self.shared.config.limits.head_wait) => Err(Refusal::no_answer()),
        };
        exchange.record.upload(upload.bytes());
        match (called, upload.unread()) {
            (Ok(answer), _) => self.forward_answer(answer, None, exchange.record),
            (Err(_), Some(unread)) => {
                let bytes_max = self.bytes_max(&exchange.target);
                exchange.record.fail(&refused(unread, bytes_max))
            }
            (Err(refusal), None) => exchange.record.fail(&refusal),
        }
    }

    /// Forwards an answer that no session needs.
    fn forward_answer(
        &self,
        answer: Response<BodyStream>,
        waits: Option<Waits>,
        mut record: Record,
    ) -> Response<Body> {
        let (head, chunks) = answer.into_parts();
        record.answer_begins(&head);
        let headers = record.headers(&head.headers);
        let listener = ForwardedAnswer::new(record, waits);
        self.respond(&head, headers, chunks, 0, Box::new(listener))
    }

    /// Sends a request of a session, once more if the provider says that it is too large, and gives its answer back.
    async fn send(
        &self,
        mut exchange: Exchange,
        body: Bytes,
        mut request: Box<SessionRequest>,
    ) -> Response<Body> {
        let account = Arc::clone(request.session.account());
        let mut is_first = true;
        loop {
            let waits = account.traffic.begin();
            let mut headers = headers::upstream(&exchange.head.headers);
            headers::narrow_encodings(&mut headers);
            let sent = match &request.rewritten {
                Some(rewritten) => {
                    headers.remove(CONTENT_ENCODING);
                    rewritten.as_bytestring().clone().into_bytes()
                }
                None => body.clone(),
            };
            request.ready.flight.sent(Live {
                base: exchange.target.base.clone(),
                headers: Arc::new(exchange.head.headers.clone()),
                body: Some(request.plain().clone()),
                end: request.ready.body.messages.len(),
            });
            exchange.record.send(sent.len());
            let answer = match self.call(&exchange, headers, sent).await {
                Ok(answer) => answer,
                Err(refusal) => {
                    exchange.record.decide(Decision {
                        reason: Some(refusal.reason()),
                        ..request.decision()
                    });
                    return exchange.record.fail(&refusal);
                }
            };
            account.heard(answer.headers());
            if answer.status().is_success() {
                request.ready.flight.answer_begins();
                exchange.record.decide(request.decision());
                return self.session_answer(answer, *request, waits, exchange);
            }
            let (head, chunks) = answer.into_parts();
            let (refused, chunks) = short(chunks, REFUSAL_BYTES_MAX).await;
            if is_first
                && self.shared.config.mode == Mode::Rewrite
                && let Some(refused) = &refused
                && let Some(smaller) = self.smaller(&exchange, &head, refused, &request).await
            {
                is_first = false;
                request = smaller;
                continue;
            }
            exchange.record.decide(Decision {
                reason: Some(Reason::UpstreamRefused),
                ..request.decision()
            });
            let answer = Response::from_parts(head, chunks);
            return self.forward_answer(answer, Some(waits), exchange.record);
        }
    }

    /// A smaller request, if the provider says that this one is too large and there can be one.
    async fn smaller(
        &self,
        exchange: &Exchange,
        answer: &http::response::Parts,
        refused: &Bytes,
        request: &SessionRequest,
    ) -> Option<Box<SessionRequest>> {
        let body = body::unpacked(&answer.headers, refused, REFUSAL_BYTES_MAX)?;
        let refusal = refusal::classify(&refusal::ProviderAnswer {
            status: answer.status.as_u16(),
            body: std::str::from_utf8(&body).ok()?,
            stop_reason: None,
            prompt_tokens: None,
            estimated_tokens: None,
        });
        if !matches!(refusal.class, Class::ContextOverflow | Class::BodyTooLarge) {
            return None;
        }
        let session = Arc::clone(&request.session);
        let planned = session.too_large(&request.ready, refusal.window)?;
        let ready = session.ready(planned).await;
        let head = &exchange.head.headers;
        let smaller = self.session_request(session, ready, head).await;
        let is_other = smaller.rewritten.is_some() && smaller.rewritten != request.rewritten;
        is_other.then_some(smaller)
    }

    /// Forwards the answer to a request of a session, which reads it at its end.
    fn session_answer(
        &self,
        answer: Response<BodyStream>,
        request: SessionRequest,
        waits: Waits,
        exchange: Exchange,
    ) -> Response<Body> {
        let (head, chunks) = answer.into_parts();
        let mut record = exchange.record;
        record.answer_begins(&head);
        let headers = record.headers(&head.headers);
        let bytes_max = self.shared.config.limits.answer_bytes_max;
        let listener = SessionAnswer {
            forwarded: ForwardedAnswer::new(record, Some(waits)),
            flight: request.ready.flight,
            wire: exchange.target.wire,
            headers: head.headers.clone(),
            bytes_max,
            tasks: self.shared.tasks.clone(),
        };
        self.respond(&head, headers, chunks, bytes_max, Box::new(listener))
    }

    async fn call(
        &self,
        exchange: &Exchange,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<BodyStream>, Refusal> {
        let request = request_to(exchange, headers, body);
        let wait = self.shared.config.limits.head_wait;
        match tokio::time::timeout(wait, self.shared.transport.call(request)).await {
            Ok(called) => called.map_err(Refusal::from),
            Err(_) => Err(Refusal::no_answer()),
        }
    }
}

impl SessionRequest {
    /// The body that the provider gets, without compression.
    fn plain(&self) -> &Raw {
        let original = || self.ready.body.outline.value();
        self.rewritten.as_ref().unwrap_or_else(original)
    }

    fn decision(&self) -> Decision {
        let plan = self.ready.plan.as_ref();
        let is_rewritten = self.rewritten.is_some();
        let covered = plan.map_or(0, |plan| plan.first);
        let saves = covered > 0 && (is_rewritten || self.reason == Some(Reason::Observe));
        Decision {
            action: if is_rewritten {
                Action::Rewritten
            } else {
                Action::Tracked
            },
            reason: self.reason,
            session: Some(self.session.id.clone()),
            epoch: plan.map(|plan| plan.epoch),
            covered: Some(if is_rewritten { covered } else { 0 }),
            saved_tokens: saves.then(|| self.session.removed_tokens()),
        }
    }
}

fn refused(unread: ReadError, bytes_max: usize) -> Refusal {
    match unread {
        ReadError::TooLarge => Refusal::too_large(bytes_max),
        ReadError::BrokenOff => Refusal::broken_body(),
    }
}

/// The request as it goes to the upstream.
fn request_to<B>(exchange: &Exchange, headers: HeaderMap, body: B) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = exchange.head.method.clone();
    *request.uri_mut() = exchange.target.uri.clone();
    *request.headers_mut() = headers;
    request
}
