//! One request through the proxy, from its head to the end of its answer.

mod passage;
mod reading;
mod upload;

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use http::{HeaderMap, Request, Response, request};
use http_body::Body as HttpBody;
use throughline_providers::transport::BodyStream;
use throughline_transcript::check::{CheckOptions, Profile, check_text};
use throughline_transcript::outline::Outline;
use throughline_transcript::refusal::{self, Class};
use throughline_transcript::wire::Wire;
use tokio::runtime::Handle;

use self::passage::{Passage, Told, respond};
use self::reading::{read_along, short};
use self::upload::Upload;
use crate::Proxy;
use crate::body::{self, Body, Unread};
use crate::config::Mode;
use crate::headers;
use crate::refusals::Refusal;
use crate::route::{self, Kind, Target};
use crate::sessions::{Asked, Untracked};
use crate::tap::{Ended, Seen, Tap};
use crate::tracked::{Declined, Live, Planned, Settled, Tracked};

/// Answers that refuse are short; more of one than this is not looked at, bytes.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// What becomes of a request that asks a model.
enum Decided {
    /// It goes as it is, for this reason.
    Passed(&'static str),
    /// The proxy refuses it.
    Refused(Refusal),
    /// It belongs to a session.
    Tracked(Box<Going>),
}

impl From<Declined> for Decided {
    fn from(declined: Declined) -> Self {
        match declined {
            Declined::Passed(reason) => Self::Passed(reason),
            Declined::Thread => Self::Refused(Refusal::Thread),
        }
    }
}

/// A request of a session on its way.
struct Going {
    session: Arc<Tracked>,
    settled: Settled,
    /// The body that takes the place of the client's.
    rewritten: Option<Bytes>,
    /// Why it goes as it is although another body was meant.
    reason: &'static str,
}

impl Going {
    fn new(session: Arc<Tracked>, settled: Settled) -> Box<Self> {
        Box::new(Self {
            session,
            settled,
            rewritten: None,
            reason: "",
        })
    }
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
            let wire = if headers::is_anthropic(&head.headers) {
                Wire::Anthropic
            } else {
                Wire::OpenAiChat
            };
            let path = head.uri.path().to_owned();
            return Passage::new(&self.shared, wire, "none").refuse(&Refusal::NotFound { path });
        };
        let mut passage = Passage::new(&self.shared, target.wire, target.kind.name());
        if headers::wants_web_socket(&head.headers) {
            return passage.refuse(&Refusal::WebSocket);
        }
        let Ok(permit) = Arc::clone(&self.under_way).try_acquire_owned() else {
            return passage.refuse(&Refusal::Busy);
        };
        passage.admit(permit);
        let bytes_max = self.shared.config.limits.body_bytes_max;
        let announced = head
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        let is_other = target.kind == Kind::Other;
        // Files are larger than requests.
        let bytes_max = if is_other { bytes_max * 16 } else { bytes_max };
        if announced.is_some_and(|bytes| bytes > bytes_max) {
            // Who asks first whether it may send it has sent nothing.
            if !head.headers.contains_key(EXPECT) {
                let _ = body::read(body, announced.unwrap_or(0), bytes_max).await;
            }
            return passage.refuse(&Refusal::TooLarge { bytes_max });
        }
        if is_other && !body.is_end_stream() {
            let (chunks, upload) = Upload::begin(body, bytes_max);
            return self
                .uploaded(&target, &head, chunks, upload, bytes_max, passage)
                .await;
        }
        let body = match body::read(body, announced.unwrap_or(0), bytes_max).await {
            Ok(body) => body,
            Err(Unread::TooLarge) => return passage.refuse(&Refusal::TooLarge { bytes_max }),
            Err(Unread::BrokenOff) => return passage.refuse(&Refusal::BrokenBody),
        };
        passage.is_read(body.len());
        let decided = match target.kind {
            Kind::Other => Decided::Passed("path"),
            _ if target.is_passed => Decided::Passed("switched-off"),
            _ if self.shared.config.mode == Mode::Off => Decided::Passed("off"),
            Kind::Count(wire) => {
                let counted = self.counted(wire, &target, &head, &body).map(Bytes::from);
                return self
                    .passed(&target, &head, body, counted, "count", passage)
                    .await;
            }
            Kind::Answer(wire) => self.decided(wire, &target, &head, &body).await,
        };
        match decided {
            Decided::Passed(reason) => {
                self.passed(&target, &head, body, None, reason, passage)
                    .await
            }
            Decided::Refused(refusal) => passage.refuse(&refusal),
            Decided::Tracked(going) => self.tracked(target, head, body, going, passage).await,
        }
    }

    /// What becomes of a request that asks a model. Whatever goes wrong here, it goes as it is.
    async fn decided(
        &self,
        wire: Wire,
        target: &Target,
        head: &request::Parts,
        body: &Bytes,
    ) -> Decided {
        if self.shared.archive.waiting_bytes() > self.shared.config.limits.unstored_bytes_max {
            return Decided::Passed("store");
        }
        let asked = match self.asked(wire, target.profile, head, body) {
            Ok(asked) => asked,
            Err(reason) => return reason.declined().into(),
        };
        let mode = self.shared.config.mode;
        let admission = |outline: &Outline| own_ways(outline, mode);
        let (session, planned) = match self.sessions.take(&asked, &admission).await {
            Ok(taken) => taken,
            Err(reason) => return reason.declined().into(),
        };
        let taken = match planned {
            Planned::Taken(taken) => taken,
            Planned::Declined(declined) => return declined.into(),
            Planned::Other(_) => return Untracked::Unreadable.declined().into(),
        };
        let settled = session.settle(taken).await;
        Decided::Tracked(self.checked(Going::new(session, settled)).await)
    }

    /// What is known of a request before its session is.
    fn asked(
        &self,
        wire: Wire,
        profile: Profile,
        head: &request::Parts,
        body: &Bytes,
    ) -> Result<Asked, Untracked> {
        let config = &self.shared.config;
        let text = body::unpacked(&head.headers, body, config.limits.body_bytes_max)
            .and_then(|body| ByteString::try_from(body).ok())
            .ok_or(Untracked::Unreadable)?;
        let tenant = headers::Tenant::of(&head.headers, config.tenants);
        let name = headers::named_session(&head.headers);
        let run = headers::client_session(&head.headers);
        let mut asked = Asked::read(wire, text, tenant, name, run)?;
        asked.incoming.profile = profile;
        Ok(asked)
    }

    /// Takes the body that was written, if it may be sent.
    async fn checked(&self, mut going: Box<Going>) -> Box<Going> {
        let is_adopted =
            !going.settled.has_swapped || self.shared.archive.settled(&going.session.id).await;
        let Some(body) = going.settled.body.take() else {
            if !is_adopted {
                going.reason = "store";
            }
            return going;
        };
        going.reason = if self.shared.config.mode == Mode::Observe {
            "observe"
        } else if !is_adopted {
            "store"
        } else if let Some(finding) = broken_rule(&body, &going.settled) {
            tracing::warn!(session = %going.session.id, finding, "a rewritten request would be refused: the original is sent");
            "check"
        } else {
            going.rewritten = Some(Bytes::from(body));
            ""
        };
        going
    }

    /// The body whose tokens are to be counted, if it is not the client's.
    fn counted(
        &self,
        wire: Wire,
        target: &Target,
        head: &request::Parts,
        body: &Bytes,
    ) -> Option<String> {
        if self.shared.config.mode != Mode::Rewrite {
            return None;
        }
        let asked = self.asked(wire, target.profile, head, body).ok()?;
        let outline = asked.incoming.outline().ok()?;
        if own_ways(&outline, Mode::Rewrite).is_some() {
            return None;
        }
        let session = self.sessions.find(&asked)?;
        session.counted(&asked.incoming).ok()?
    }

    /// Passes a request on, with another body if there is one, and its answer back.
    async fn passed(
        &self,
        target: &Target,
        head: &request::Parts,
        body: Bytes,
        rewritten: Option<Bytes>,
        reason: &'static str,
        mut passage: Passage,
    ) -> Response<Body> {
        let is_rewritten = rewritten.is_some();
        passage.tell(Told {
            done: if is_rewritten { "rewritten" } else { "passed" },
            reason,
            ..Told::default()
        });
        let mut headers = headers::upstream(&head.headers);
        if is_rewritten {
            headers.remove(CONTENT_ENCODING);
        }
        let body = rewritten.unwrap_or(body);
        passage.sends(body.len());
        let answer = match self.call(target, head, headers, body).await {
            Ok(answer) => answer,
            Err(refusal) => return passage.fail(&refusal),
        };
        let (answer, chunks) = answer.into_parts();
        self.unread(&answer, chunks, || {}, passage)
    }

    /// Passes a body on as it comes, and its answer back.
    async fn uploaded(
        &self,
        target: &Target,
        head: &request::Parts,
        chunks: BodyStream,
        upload: Upload,
        bytes_max: usize,
        mut passage: Passage,
    ) -> Response<Body> {
        passage.tell(Told {
            done: "passed",
            reason: "path",
            ..Told::default()
        });
        let mut headers = headers::upstream(&head.headers);
        // Not every server takes a body whose length it is not told.
        if let Some(length) = head.headers.get(CONTENT_LENGTH) {
            headers.insert(CONTENT_LENGTH, length.clone());
        }
        let mut request = Request::new(chunks);
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = target.uri.clone();
        *request.headers_mut() = headers;
        let called = tokio::select! {
            called = self.shared.transport.call_streamed(request) => called.map_err(Refusal::from),
            () = upload.stalled(self.shared.config.limits.head_wait) => Err(Refusal::NoAnswer),
        };
        passage.uploads(upload.bytes());
        let answer = match (called, upload.unread()) {
            (Ok(answer), _) => answer,
            (Err(_), Some(Unread::TooLarge)) => {
                return passage.fail(&Refusal::TooLarge { bytes_max });
            }
            (Err(_), Some(Unread::BrokenOff)) => return passage.fail(&Refusal::BrokenBody),
            (Err(refusal), None) => return passage.fail(&refusal),
        };
        let (answer, chunks) = answer.into_parts();
        self.unread(&answer, chunks, || {}, passage)
    }

    /// An answer that is passed on and not read along.
    fn unread(
        &self,
        answer: &http::response::Parts,
        chunks: BodyStream,
        begun: impl FnOnce() + Send + 'static,
        mut passage: Passage,
    ) -> Response<Body> {
        passage.answers(answer);
        let told = passage.told().clone();
        let idle_wait = self.shared.config.limits.idle_wait;
        let tap = Tap::new(chunks, 0, idle_wait, begun, move |seen| {
            passage.ends(&seen, None);
        });
        respond(answer, Body::passing(tap), &told)
    }

    /// A request of a session, and its answer.
    async fn tracked(
        &self,
        target: Target,
        head: request::Parts,
        body: Bytes,
        mut going: Box<Going>,
        mut passage: Passage,
    ) -> Response<Body> {
        let account = Arc::clone(going.session.account());
        let mut is_first = true;
        loop {
            let waits = account.traffic.begin();
            let mut headers = headers::upstream(&head.headers);
            headers::narrow_encodings(&mut headers);
            let sent = match &going.rewritten {
                Some(rewritten) => {
                    headers.remove(CONTENT_ENCODING);
                    rewritten.clone()
                }
                None => body.clone(),
            };
            let plain = going
                .rewritten
                .clone()
                .and_then(|body| ByteString::try_from(body).ok())
                .unwrap_or_else(|| going.settled.outline.body().clone());
            going.settled.flight.sent(Live {
                base: target.base.clone(),
                headers: Arc::new(head.headers.clone()),
                body: Some(plain),
                end: going.settled.messages(),
            });
            passage.sends(sent.len());
            let called = self.call(&target, &head, headers, sent).await;
            let answer = match called {
                Ok(answer) => answer,
                Err(refusal) => {
                    passage.tell(Told {
                        reason: refusal.name(),
                        ..told(&going)
                    });
                    return passage.fail(&refusal);
                }
            };
            account.heard(answer.headers());
            let (answer, chunks) = answer.into_parts();
            if answer.status.is_success() {
                going.settled.flight.answer_begins();
                let told = told(&going);
                if let Some(saved) = told.saved.filter(|_| going.rewritten.is_some()) {
                    self.shared.metrics.saved(saved);
                }
                passage.tell(told);
                return self.tapped(&target, &answer, chunks, going, waits, passage);
            }
            let (refused, chunks) = short(chunks, REFUSAL_BYTES_MAX).await;
            if is_first
                && self.shared.config.mode == Mode::Rewrite
                && let Some(refused) = &refused
                && let Some(smaller) = self.smaller(&answer, refused, &going).await
            {
                is_first = false;
                going = smaller;
                continue;
            }
            passage.tell(Told {
                reason: "upstream-refused",
                ..told(&going)
            });
            return self.unread(&answer, chunks, move || drop(waits), passage);
        }
    }

    /// The provider says that the request is too large: a smaller one, if there can be one.
    async fn smaller(
        &self,
        answer: &http::response::Parts,
        refused: &Bytes,
        going: &Going,
    ) -> Option<Box<Going>> {
        let body = body::unpacked(&answer.headers, refused, REFUSAL_BYTES_MAX)?;
        let refusal = refusal::classify(&refusal::Answer {
            status: answer.status.as_u16(),
            body: std::str::from_utf8(&body).ok()?,
            stop_reason: None,
            prompt_tokens: None,
            estimated_tokens: None,
        });
        if !matches!(refusal.class, Class::ContextOverflow | Class::BodyTooLarge) {
            return None;
        }
        let taken = going.session.too_large(&going.settled, refusal.window)?;
        let settled = going.session.settle(taken).await;
        let again = Going::new(Arc::clone(&going.session), settled);
        let again = self.checked(again).await;
        let is_other = again.rewritten.is_some() && again.rewritten != going.rewritten;
        is_other.then_some(again)
    }

    /// Passes the answer of a session's request on, and reads it along.
    fn tapped(
        &self,
        target: &Target,
        answer: &http::response::Parts,
        chunks: BodyStream,
        going: Box<Going>,
        waits: throughline::driver::Waits,
        mut passage: Passage,
    ) -> Response<Body> {
        passage.answers(answer);
        let told = passage.told().clone();
        let limits = &self.shared.config.limits;
        let wire = target.wire;
        let head = answer.headers.clone();
        let bytes_max = limits.answer_bytes_max;
        let flight = going.settled.flight;
        let account = move |seen: Seen| {
            let read = read_along(wire, &head, &seen, bytes_max);
            let reply = read
                .as_ref()
                .map(|read| read.as_ref().unwrap_or_else(|it| it));
            let usage = reply.and_then(|reply| Some(reply.usage?.billed));
            passage.ends(&seen, usage);
            match read {
                Some(Ok(reply)) if seen.ended == Ended::Whole => flight.answered(&reply),
                Some(Ok(partial) | Err(partial)) => flight.broke_off(Some(&partial)),
                None => flight.broke_off(None),
            }
        };
        let tasks = self.shared.tasks.clone();
        // The connection flushes the end of the answer only after this.
        let hook = move |seen: Seen| match Handle::try_current() {
            Ok(runtime) => drop(tasks.spawn_on(async move { account(seen) }, &runtime)),
            Err(_) => account(seen),
        };
        let tap = Tap::new(
            chunks,
            bytes_max,
            limits.idle_wait,
            move || drop(waits),
            hook,
        );
        respond(answer, Body::passing(tap), &told)
    }

    async fn call(
        &self,
        target: &Target,
        head: &request::Parts,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<BodyStream>, Refusal> {
        let mut request = Request::new(body);
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = target.uri.clone();
        *request.headers_mut() = headers;
        let wait = self.shared.config.limits.head_wait;
        match tokio::time::timeout(wait, self.shared.transport.call(request)).await {
            Ok(called) => called.map_err(Refusal::from),
            Err(_) => Err(Refusal::NoAnswer),
        }
    }
}

/// What was done with a request of a session.
fn told(going: &Going) -> Told {
    let plan = going.settled.plan.as_ref();
    let is_rewritten = going.rewritten.is_some();
    let covered = plan.map_or(0, |plan| plan.first);
    let is_told = covered > 0 && (is_rewritten || going.reason == "observe");
    Told {
        done: if is_rewritten { "rewritten" } else { "tracked" },
        reason: going.reason,
        session: Some(going.session.id.clone()),
        epoch: plan.map(|plan| plan.epoch),
        covered: Some(if is_rewritten { covered } else { 0 }),
        saved: is_told.then(|| going.session.removed_tokens()),
    }
}

/// Requests that keep or shorten their history by the provider's own means.
fn own_ways(outline: &Outline, mode: Mode) -> Option<Declined> {
    let has = |name: &str| outline.field(name).is_some_and(|value| !value.is_null());
    let contains = |name: &str, what: &str| {
        outline
            .field(name)
            .is_some_and(|value| value.as_str().contains(what))
    };
    match outline.wire() {
        Wire::Anthropic => {
            if has("thread") && mode == Mode::Rewrite {
                return Some(Declined::Thread);
            }
            if has("thread") {
                return Some(Declined::Passed("thread"));
            }
            if has("compaction") || contains("context_management", "\"compact_") {
                return Some(Declined::Passed("native-compaction"));
            }
        }
        Wire::OpenAiResponses => {
            if has("previous_response_id") || has("conversation") {
                return Some(Declined::Passed("kept-by-provider"));
            }
            if contains("context_management", "compact") {
                return Some(Declined::Passed("native-compaction"));
            }
        }
        Wire::OpenAiChat => {}
    }
    // The answer to more than one choice at a time is not the next message.
    let choices = outline.field("n").and_then(|n| n.as_u64());
    choices
        .is_some_and(|n| n > 1)
        .then_some(Declined::Passed("choices"))
}

fn broken_rule(body: &str, settled: &Settled) -> Option<String> {
    let options = CheckOptions {
        profile: settled.profile,
        ..CheckOptions::default()
    };
    let report = check_text(body, settled.outline.wire(), &options);
    report
        .errors()
        .next()
        .map(|finding| format!("{} at {}", finding.code, finding.path))
}
