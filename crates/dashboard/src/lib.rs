//! The dashboard and the admin API of a proxy: its sessions, their memories and their costs, as pages and as JSON.
//!
//! [`Dashboard::answer`] answers requests below [`ROOT`] and those for health and metrics. Pages and API show and do the
//! same: both are built from the views in `view`, `read` and `timeline`, and act through [`Action`]. Stored sessions are
//! read from a [`Store`]; what only the running proxy knows comes from a [`Backend`].
//!
//! What it deliberately does not do: it opens no socket, holds no session, and depends on no proxy. Pages load nothing
//! from elsewhere and need no script except to stay up to date.

mod act;
mod api;
mod assets;
mod backend;
pub mod chart;
mod diff;
mod edit;
mod figures;
mod form;
mod gate;
mod messages;
mod openapi;
mod pages;
mod read;
mod render;
mod timeline;
mod view;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Response, StatusCode, request};
use throughline_providers::credential::Credential;
use throughline_store::Store;
use throughline_transcript::catalogue::Catalogue;

pub use self::act::{ActError, Action, COMPACTION_WAIT, Effect};
pub use self::backend::{Backend, LiveSession, Marks, ProxyMode, SessionState, Totals};
pub use self::edit::{Change, EditError, ItemProblem, edited};
use self::figures::Cache;
use self::gate::{Gate, Refusal};

/// The path of the dashboard.
pub const ROOT: &str = "/throughline";
/// The path of the admin API.
const API: &str = "/throughline/api/v1";
/// Largest body of a form or of a request to the API, bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Largest edit of a memory, bytes.
const EDIT_BYTES_MAX: usize = 1024 * 1024;

/// The dashboard of one proxy.
pub struct Dashboard {
    backend: Arc<dyn Backend>,
    store: Arc<dyn Store>,
    catalogue: Arc<Catalogue>,
    gate: Gate,
    figures: Mutex<Cache>,
}

/// Why the body of a request cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is larger than the limit.
    TooLarge,
    /// It ended early.
    Broken,
}

/// Whether the dashboard answers a request: a page, the API, health or metrics.
#[must_use]
pub fn serves(head: &request::Parts) -> bool {
    let path = head.uri.path();
    let is_reading = matches!(head.method, Method::GET | Method::HEAD);
    let is_page = path
        .strip_prefix(ROOT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_page || is_reading && matches!(path, "/healthz" | "/readyz" | "/metrics")
}

impl Dashboard {
    /// A dashboard of the sessions of `backend` and those in `store`, with costs by the prices of `catalogue`. With a
    /// token, clients must present it; without one, only requests to an address of this machine are answered.
    #[must_use]
    pub fn new(
        backend: Arc<dyn Backend>,
        store: Arc<dyn Store>,
        catalogue: Arc<Catalogue>,
        token: Option<&Credential>,
    ) -> Self {
        Self {
            backend,
            store,
            catalogue,
            gate: Gate::new(token),
            figures: Mutex::new(Cache::default()),
        }
    }

    /// Answers a request. `read` reads its body up to a number of bytes; it is called only once the request is
    /// admitted.
    pub async fn answer<F>(
        &self,
        head: &request::Parts,
        read: impl FnOnce(usize) -> F + Send,
    ) -> Response<Bytes>
    where
        F: Future<Output = Result<Bytes, BodyError>> + Send,
    {
        let mut answer = self.admitted(head, read).await;
        secure(&mut answer);
        answer
    }

    async fn admitted<F>(
        &self,
        head: &request::Parts,
        read: impl FnOnce(usize) -> F + Send,
    ) -> Response<Bytes>
    where
        F: Future<Output = Result<Bytes, BodyError>> + Send,
    {
        let path = head.uri.path();
        match path {
            "/healthz" => return text(StatusCode::OK, "text/plain", "ok\n"),
            "/readyz" if self.backend.is_ending() => {
                return text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "ending\n");
            }
            "/readyz" => return text(StatusCode::OK, "text/plain", "ready\n"),
            _ => {}
        }
        if let Err(refusal) = self.gate.check_site(head) {
            return refused(path, refusal);
        }
        if let Some(asset) = assets::answer(path) {
            return asset;
        }
        let is_signing = matches!(path, pages::SIGN_IN | pages::SIGN_OUT);
        let now_ms = self.backend.now_ms();
        if !is_signing && let Err(refusal) = self.gate.check_token(head, now_ms) {
            return refused(path, refusal);
        }
        if path == "/metrics" {
            let metrics = self.backend.metrics();
            return text(StatusCode::OK, "text/plain; version=0.0.4", metrics);
        }
        let bytes_max = if path.ends_with("/memory") {
            EDIT_BYTES_MAX
        } else {
            BODY_BYTES_MAX
        };
        let body = match head.method {
            Method::GET | Method::HEAD => Ok(Bytes::new()),
            _ => read(bytes_max).await,
        };
        let body = match body {
            Ok(body) => body,
            Err(BodyError::TooLarge) => return refused(path, Refusal::TooLarge { bytes_max }),
            Err(BodyError::Broken) => return refused(path, Refusal::Broken),
        };
        match path.strip_prefix(API) {
            Some(rest) => self.api(rest, head, &body).await,
            None => self.page(head, &body).await,
        }
    }
}

/// A refusal in the form that the client understands.
fn refused(path: &str, refusal: Refusal) -> Response<Bytes> {
    if path.starts_with(API) {
        return api::refused(refusal);
    }
    if path == "/metrics" {
        let mut answer = text(refusal.status(), "text/plain", format!("{refusal}\n"));
        gate::challenge(&mut answer);
        return answer;
    }
    pages::refused(refusal)
}

/// Tells browsers to store nothing, show no page in a frame, load nothing from elsewhere, and run no script but the
/// page's own.
fn secure(answer: &mut Response<Bytes>) {
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

fn text(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
