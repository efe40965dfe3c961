//! A client of one provider on one wire.

mod known;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytestring::ByteString;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Uri};
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::splice::Splice;
use throughline_transcript::wire::Wire;
use tokio_util::sync::CancellationToken;
use tracing::info_span;

use crate::call::Call;
use crate::credential::{AuthStyle, Credential, CredentialError};
use crate::endpoint::{BaseUrlError, Endpoint};
use crate::error::{CallError, Failure};
use crate::exchange::{Exchange, PreparedRequest, Whole};
use crate::retry::{Backoff, RetryPolicy};
use crate::transport::{Transport, TransportError};

/// How long the head of an answer may take, as in the providers' SDKs: an answer that is not streamed begins at its end.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// The longest silence within a body. Local servers send nothing while they read a long prompt.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Which version of Anthropic's API is asked for (`anthropic-version`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiVersion {
    /// `2023-06-01`: accepts all that later versions do, and is what imitating servers know.
    #[default]
    V2023_06_01,
    /// `2026-10-21`: refuses sampling parameters, documents in assistant messages and citations of the user.
    V2026_10_21,
    /// Another one.
    Other(String),
}

/// Sends requests of one wire to one provider. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) wire: Wire,
    pub(crate) endpoint: Endpoint,
    credential: Option<Credential>,
    transport: Arc<dyn Transport>,
    headers: HeaderMap,
    betas: Vec<String>,
    policy: RetryPolicy,
    response_timeout: Duration,
    idle_timeout: Duration,
    calls: AtomicU64,
}

/// Settings of a [`Client`].
#[must_use]
pub struct ClientBuilder {
    wire: Wire,
    base_url: String,
    credential: Option<Credential>,
    /// Whether a key is looked for in the environment if none is given.
    reads_environment: bool,
    auth_style: AuthStyle,
    api_version: ApiVersion,
    betas: Vec<String>,
    headers: Vec<(String, String)>,
    transport: Option<Arc<dyn Transport>>,
    policy: RetryPolicy,
    response_timeout: Duration,
    idle_timeout: Duration,
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The base URL.
    #[error(transparent)]
    BaseUrl(#[from] BaseUrlError),
    /// The key that was looked for in the environment.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// A header that cannot be sent.
    #[error("the header {name:?} cannot be sent")]
    Header {
        /// Its name.
        name: String,
    },
    /// The transport.
    #[error("no connections can be made")]
    Transport(#[source] TransportError),
}

/// Whether an answer is streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// As the body says in its field `stream`. The body is sent byte for byte.
    #[default]
    AsWritten,
    /// Streamed: `stream` is set, and for Chat `stream_options.include_usage`, unless the body has `stream_options`.
    Streamed,
    /// In one piece: `stream` and `stream_options` are taken out.
    Whole,
}

/// What one call is made with.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Cancels the call wherever it is.
    pub cancel: CancellationToken,
    /// Beta features, besides those of the client (`anthropic-beta`).
    pub betas: Vec<String>,
    /// Further headers. They replace those of the client.
    pub headers: HeaderMap,
    /// How long nothing may come, if not as long as the client says.
    pub idle_timeout: Option<Duration>,
    /// Whether the answer is streamed.
    pub delivery: Delivery,
    /// Most times that the request is sent, if not as often as the [`RetryPolicy`] says.
    pub attempts_max: Option<u32>,
}

impl CallOptions {
    /// Options that cancel the call with `cancel`.
    #[must_use]
    pub fn cancelled_by(cancel: CancellationToken) -> Self {
        Self {
            cancel,
            ..Self::default()
        }
    }

    /// Adds a beta feature.
    #[must_use]
    pub fn beta(mut self, name: impl Into<String>) -> Self {
        self.betas.push(name.into());
        self
    }

    /// Has the answer delivered in this way.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// How long nothing may come.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Most times that the request is sent; 1 is no retry.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = Some(attempts);
        self
    }
}

impl Client {
    /// Begins a client for `wire` at `base_url`, with or without `/v1` at its end: `http://127.0.0.1:8080` (llama.cpp), `http://127.0.0.1:11434` (Ollama),
    /// `http://127.0.0.1:8000` (vLLM), `http://127.0.0.1:1234` (LM Studio).
    pub fn builder(wire: Wire, base_url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            wire,
            base_url: base_url.into(),
            credential: None,
            reads_environment: false,
            auth_style: match wire {
                Wire::Anthropic => AuthStyle::XApiKey,
                Wire::OpenAiChat | Wire::OpenAiResponses => AuthStyle::Bearer,
            },
            api_version: ApiVersion::default(),
            betas: Vec::new(),
            headers: Vec::new(),
            transport: None,
            policy: RetryPolicy::default(),
            response_timeout: RESPONSE_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
        }
    }

    /// The wire that requests are sent on.
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.inner.wire
    }

    /// The beta features that every request asks for.
    #[must_use]
    pub fn betas(&self) -> &[String] {
        &self.inner.betas
    }

    /// Sends a complete request body and waits until an answer begins.
    ///
    /// Until then the request is sent again as the [`RetryPolicy`] says. The body is sent byte for byte, unless
    /// [`CallOptions::delivery`] asks for a change.
    ///
    /// # Errors
    /// No answer began; [`CallError::kind`] says what can be done.
    pub async fn send(&self, body: ByteString, options: CallOptions) -> Result<Call, CallError> {
        let body = delivered(self.inner.wire, body, options.delivery)?;
        let uri = self.inner.endpoint.answers(self.inner.wire);
        let mut exchange = self.exchange(Method::POST, &uri, Some(body), &options)?;
        let head = exchange.begin().await?;
        Ok(Call::new(exchange, head))
    }

    /// A request whose answer is one JSON value.
    pub(crate) async fn ask(
        &self,
        method: Method,
        uri: &str,
        body: Option<Body>,
        options: &CallOptions,
    ) -> Result<Raw, CallError> {
        let mut exchange = self.exchange(method, uri, body, options)?;
        let mut head = exchange.begin().await?;
        let body = exchange.read_body(&mut head.body, Whole::Answer).await?;
        Raw::parse(body).map_err(|_| {
            exchange.numbered(CallError::new(Failure::Malformed, "the answer is not JSON"))
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.inner.endpoint
    }

    fn exchange(
        &self,
        method: Method,
        uri: &str,
        body: Option<Body>,
        options: &CallOptions,
    ) -> Result<Exchange, CallError> {
        let inner = &self.inner;
        let impossible = |what: &str| CallError::new(Failure::Request, what);
        let uri: Uri = uri.parse().map_err(|_| impossible("the address"))?;
        let body = body.unwrap_or_default();
        let mut headers = inner.headers.clone();
        let accept = if body.asks_for_stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let mut betas: Vec<&str> = Vec::new();
        for name in inner.betas.iter().chain(&options.betas) {
            if !betas.contains(&name.as_str()) {
                betas.push(name);
            }
        }
        if !betas.is_empty() {
            let betas = HeaderValue::from_str(&betas.join(","))
                .map_err(|_| impossible("the names of beta features"))?;
            headers.insert(HeaderName::from_static("anthropic-beta"), betas);
        }
        for name in options.headers.keys() {
            headers.remove(name);
        }
        for (name, value) in &options.headers {
            headers.append(name.clone(), value.clone());
        }
        let number = inner.calls.fetch_add(1, Ordering::Relaxed);
        let mut policy = inner.policy.clone();
        policy.attempts_max = options.attempts_max.unwrap_or(policy.attempts_max);
        let span = info_span!(
            "call",
            wire = inner.wire.name(),
            host = uri.host(),
            path = uri.path(),
            call = number,
            request_bytes = body.text.len(),
        );
        Ok(Exchange {
            transport: Arc::clone(&inner.transport),
            request: PreparedRequest {
                wire: inner.wire,
                method,
                uri,
                headers,
                body: body.text.into_bytes(),
                asks_for_stream: body.asks_for_stream,
            },
            credential: inner.credential.clone(),
            backoff: Backoff::new(&policy, number),
            policy,
            cancel: options.cancel.clone(),
            response_timeout: inner.response_timeout,
            idle_timeout: options.idle_timeout.unwrap_or(inner.idle_timeout),
            span,
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("wire", &self.inner.wire)
            .field("endpoint", &self.inner.endpoint)
            .field("credential", &self.inner.credential)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// The key. Without one, [`Client::anthropic`], [`Client::openai`] and [`Client::openai_responses`] read the
    /// environment; [`Client::builder`] sends none, as local servers like it.
    pub fn credential(mut self, credential: Credential) -> Self {
        self.credential = Some(credential);
        self
    }

    /// How the key is sent, if the credential does not say: `x-api-key` for Anthropic, a bearer token for OpenAI.
    pub fn auth_style(mut self, style: AuthStyle) -> Self {
        self.auth_style = style;
        self
    }

    /// Which version of Anthropic's API is asked for.
    pub fn api_version(mut self, version: ApiVersion) -> Self {
        self.api_version = version;
        self
    }

    /// A beta feature for all calls (`anthropic-beta`).
    pub fn beta(mut self, name: impl Into<String>) -> Self {
        self.betas.push(name.into());
        self
    }

    /// A header for all calls, such as `openai-organization`. Keys belong into [`ClientBuilder::credential`], which
    /// keeps them out of errors.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// How requests get to the provider: a transport, or an [`Arc`] of one; by HTTP over the network by default.
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// How often and how patiently calls are tried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// How long the head of an answer may take; 600 s by default.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// The longest silence within an answer's body; 300 s by default. There is no limit on the whole answer.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// The client.
    ///
    /// # Errors
    /// The base URL, a header or the network is not usable, or the environment has no key. With a transport of the
    /// caller's own, a key is not needed.
    pub fn build(mut self) -> Result<Client, BuildError> {
        if self.reads_environment && self.credential.is_none() {
            self.credential = match Credential::of_wire(self.wire) {
                Ok(credential) => Some(credential),
                Err(CredentialError::NotSet { .. }) if self.transport.is_some() => None,
                Err(error) => return Err(error.into()),
            };
        }
        let endpoint = Endpoint::parse(&self.base_url)?;
        let unsendable = |name: &str| BuildError::Header {
            name: name.to_owned(),
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("throughline/", env!("CARGO_PKG_VERSION"))),
        );
        if self.wire == Wire::Anthropic {
            let version = match &self.api_version {
                ApiVersion::V2023_06_01 => "2023-06-01",
                ApiVersion::V2026_10_21 => "2026-10-21",
                ApiVersion::Other(version) => version,
            };
            let name = "anthropic-version";
            let version = HeaderValue::from_str(version).map_err(|_| unsendable(name))?;
            headers.insert(HeaderName::from_static(name), version);
        }
        if let Some(credential) = &self.credential {
            let (name, value) = credential
                .header(self.auth_style)
                .ok_or_else(|| unsendable("authorization"))?;
            headers.insert(name, value);
        }
        for (name, value) in &self.headers {
            let value = HeaderValue::from_str(value).map_err(|_| unsendable(name))?;
            let name: HeaderName = name.parse().map_err(|_| unsendable(name))?;
            headers.insert(name, value);
        }
        let transport = match self.transport {
            Some(transport) => transport,
            None => network().map_err(BuildError::Transport)?,
        };
        Ok(Client {
            inner: Arc::new(Inner {
                wire: self.wire,
                endpoint,
                credential: self.credential,
                transport,
                headers,
                betas: self.betas,
                policy: self.policy,
                response_timeout: self.response_timeout,
                idle_timeout: self.idle_timeout,
                calls: AtomicU64::new(0),
            }),
        })
    }
}

/// The transport of a client that is given none.
#[cfg(feature = "http")]
fn network() -> Result<Arc<dyn Transport>, TransportError> {
    Ok(Arc::new(crate::transport::HttpTransport::new()?))
}

/// The transport of a client that is given none.
#[cfg(not(feature = "http"))]
fn network() -> Result<Arc<dyn Transport>, TransportError> {
    Err(TransportError::new(
        crate::transport::TransportErrorKind::Request,
        "there is no transport: set one, or enable the feature `http`",
    ))
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("wire", &self.wire)
            .field("credential", &self.credential)
            .finish_non_exhaustive()
    }
}

/// A request body, and what it asks for.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) text: ByteString,
    pub(crate) asks_for_stream: bool,
}

/// The body with `stream` as it is wanted.
fn delivered(wire: Wire, body: ByteString, delivery: Delivery) -> Result<Body, CallError> {
    let not_an_object = || CallError::new(Failure::Request, "the body is no JSON object");
    let raw = Raw::parse(body.clone())
        .ok()
        .filter(|raw| raw.kind() == Kind::Object)
        .ok_or_else(not_an_object)?;
    let written = raw.field("stream").and_then(|stream| stream.as_bool()) == Some(true);
    let constant = |text: &str| Raw::parse(text.to_owned()).map_err(|_| not_an_object());
    let mut splice = Splice::new(&raw);
    let asks_for_stream = match delivery {
        Delivery::AsWritten => {
            return Ok(Body {
                text: body,
                asks_for_stream: written,
            });
        }
        Delivery::Streamed => {
            if !written {
                splice
                    .set_field("stream", constant("true")?)
                    .map_err(|_| not_an_object())?;
            }
            if wire == Wire::OpenAiChat && raw.field("stream_options").is_none() {
                splice
                    .set_field("stream_options", constant(r#"{"include_usage":true}"#)?)
                    .map_err(|_| not_an_object())?;
            }
            true
        }
        Delivery::Whole => {
            for name in ["stream", "stream_options"] {
                splice.remove_field(name).map_err(|_| not_an_object())?;
            }
            false
        }
    };
    Ok(Body {
        text: splice.finish().map_err(|_| not_an_object())?,
        asks_for_stream,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_streams_is_changed_in_a_body() {
        let check = |wire, body: &str, delivery, expected: &str, asks_for_stream| {
            let found = delivered(wire, body.into(), delivery).unwrap();
            assert_eq!(
                (&*found.text, found.asks_for_stream),
                (expected, asks_for_stream)
            );
        };
        use Wire::{Anthropic, OpenAiChat};
        let body = r#"{ "model":"m", "n": 1e3 }"#;
        check(Anthropic, body, Delivery::AsWritten, body, false);
        check(Anthropic, body, Delivery::Whole, body, false);
        check(
            Anthropic,
            body,
            Delivery::Streamed,
            r#"{ "model":"m", "n": 1e3,"stream":true }"#,
            true,
        );
        check(
            OpenAiChat,
            r#"{"stream":false,"m":1}"#,
            Delivery::Streamed,
            r#"{"stream":true,"m":1,"stream_options":{"include_usage":true}}"#,
            true,
        );
        let asked = r#"{"stream":true,"stream_options":{"include_usage":false}}"#;
        check(OpenAiChat, asked, Delivery::Streamed, asked, true);
        check(OpenAiChat, asked, Delivery::AsWritten, asked, true);
        check(OpenAiChat, asked, Delivery::Whole, "{}", false);
        for body in ["", "[]", "{", "7"] {
            let error = delivered(Anthropic, body.into(), Delivery::AsWritten).unwrap_err();
            assert_eq!(error.failure, Failure::Request, "{body}");
        }
    }
}
