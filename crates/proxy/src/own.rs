//! What the proxy answers by itself, whoever the providers are: health, metrics, the admin API, the dashboard.

mod act;
mod api;
mod assets;
mod chart;
mod diff;
mod edit;
mod figures;
mod form;
mod gate;
mod messages;
mod pages;
mod read;
mod render;
mod timeline;
mod view;

use std::sync::Mutex;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Response, StatusCode, request};
use http_body::Body as HttpBody;
use throughline_providers::credential::Credential;

use self::figures::Cache;
use self::gate::{Gate, Shut};
use crate::Proxy;
use crate::body::{self, Body, Unread};

/// Where the dashboard is.
const ROOT: &str = "/throughline";
/// Where the admin API is.
const API: &str = "/throughline/api/v1";
/// Largest body of a form or of a request to the API, bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Largest edit of a memory, bytes.
const EDIT_BYTES_MAX: usize = 1024 * 1024;

/// What these pages need besides the sessions.
pub(crate) struct Own {
    gate: Gate,
    figures: Mutex<Cache>,
}

impl Own {
    pub(crate) fn new(token: Option<&Credential>) -> Self {
        Self {
            gate: Gate::new(token),
            figures: Mutex::new(Cache::default()),
        }
    }
}

/// Whether a request is for the proxy itself.
pub(crate) fn is_own(head: &request::Parts) -> bool {
    let path = head.uri.path();
    let is_reading = matches!(head.method, Method::GET | Method::HEAD);
    let is_page = path
        .strip_prefix(ROOT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_page || is_reading && matches!(path, "/healthz" | "/readyz" | "/metrics")
}

impl Proxy {
    /// The answer to a request that is for the proxy.
    pub(crate) async fn own<B>(&self, head: &request::Parts, body: B) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut answer = self.own_answer(head, body).await;
        secure(&mut answer);
        answer
    }

    async fn own_answer<B>(&self, head: &request::Parts, body: B) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = head.uri.path();
        match path {
            "/healthz" => return text(StatusCode::OK, "text/plain", "ok\n"),
            "/readyz" if self.shared.stop.is_cancelled() => {
                return text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "ending\n");
            }
            "/readyz" => return text(StatusCode::OK, "text/plain", "ready\n"),
            _ => {}
        }
        if let Err(shut) = self.own.gate.is_for_here(head) {
            return refused(path, shut);
        }
        if let Some(asset) = assets::answer(path) {
            return asset;
        }
        let is_signing = matches!(path, pages::SIGN_IN | pages::SIGN_OUT);
        let now_ms = self.shared.clock.now().ms();
        if !is_signing && let Err(shut) = self.own.gate.admits(head, now_ms) {
            return refused(path, shut);
        }
        if path == "/metrics" {
            return text(StatusCode::OK, "text/plain; version=0.0.4", self.metrics());
        }
        let bytes_max = if path.ends_with("/memory") {
            EDIT_BYTES_MAX
        } else {
            BODY_BYTES_MAX
        };
        let read = match head.method {
            Method::GET | Method::HEAD => Ok(Bytes::new()),
            _ => body::read(body, 0, bytes_max).await,
        };
        let body = match read {
            Ok(body) => body,
            Err(Unread::TooLarge) => return refused(path, Shut::TooLarge { bytes_max }),
            Err(Unread::BrokenOff) => return refused(path, Shut::Broken),
        };
        match path.strip_prefix(API) {
            Some(rest) => self.api(rest, head, &body).await,
            None => self.page(head, &body).await,
        }
    }
}

/// In the form that whoever asks understands.
fn refused(path: &str, shut: Shut) -> Response<Body> {
    if path.starts_with(API) {
        return api::shut(shut);
    }
    if path == "/metrics" {
        let mut answer = text(shut.status(), "text/plain", format!("{shut}\n"));
        gate::challenge(&mut answer);
        return answer;
    }
    pages::shut(shut)
}

/// Nothing is kept, nothing is framed, nothing is loaded from elsewhere, and no script runs but the one of the page.
fn secure(answer: &mut Response<Body>) {
    const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
        connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    let headers = answer.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Not `no-referrer`: forms would be sent with no origin.
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn text(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
