//! The real transport: HTTP/1.1 and HTTP/2 over TCP and TLS, by reqwest and rustls with ring.

use std::error::Error as _;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;

use super::{BodyStream, Transport, TransportError, TransportErrorKind};

/// How long a connection may take to be made, unless told otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends requests over the network.
///
/// Redirects are answers like others and not followed (a credential would go along), bodies are not decompressed, and
/// there is no limit on the whole time of an answer: streams are long. `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and
/// `NO_PROXY` are honoured. Certificates are checked by the system's rules.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    client: reqwest::Client,
}

/// Settings of an [`HttpTransport`].
#[derive(Clone, Debug)]
pub struct HttpTransportBuilder {
    connect_timeout: Duration,
    read_timeout: Option<Duration>,
    extra_roots_pem: Vec<Vec<u8>>,
    uses_system_proxy: bool,
}

impl HttpTransport {
    /// Begins with the defaults.
    #[must_use]
    pub fn builder() -> HttpTransportBuilder {
        HttpTransportBuilder {
            connect_timeout: CONNECT_TIMEOUT,
            read_timeout: None,
            extra_roots_pem: Vec::new(),
            uses_system_proxy: true,
        }
    }

    /// A transport with the defaults.
    ///
    /// # Errors
    /// As [`HttpTransportBuilder::build`].
    pub fn new() -> Result<Self, TransportError> {
        Self::builder().build()
    }
}

impl HttpTransportBuilder {
    /// How long a connection may take to be made; 10 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long nothing may arrive before the connection counts as broken. Unlimited by default: the client, which
    /// knows what it waits for, has its own limits.
    #[must_use]
    pub fn read_timeout(mut self, timeout: Duration) -> Self {
        self.read_timeout = Some(timeout);
        self
    }

    /// Trusts one more certificate authority, in PEM form: for gateways inside a company.
    #[must_use]
    pub fn extra_root_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.extra_roots_pem.push(pem.into());
        self
    }

    /// Connects directly, whatever `HTTPS_PROXY` and the like say.
    #[must_use]
    pub fn without_proxy(mut self) -> Self {
        self.uses_system_proxy = false;
        self
    }

    /// The transport.
    ///
    /// rustls needs to know whose cryptography to use. If the program has not installed a provider for the process,
    /// ring is installed here, once.
    ///
    /// # Errors
    /// A certificate that is none, or a TLS configuration that cannot be made.
    pub fn build(self) -> Result<HttpTransport, TransportError> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another thread may be first; then there is one, which is all that counts.
            let _first = rustls::crypto::ring::default_provider().install_default();
        }
        let client = match self.client_builder(false)?.build() {
            Ok(client) => client,
            // A system without any certificate authority can still talk to local servers; what needs TLS fails when
            // it connects, and says so.
            Err(_) => self
                .client_builder(true)?
                .build()
                .map_err(|error| failure(TransportErrorKind::Request, error))?,
        };
        Ok(HttpTransport { client })
    }

    fn client_builder(
        &self,
        is_without_system_roots: bool,
    ) -> Result<reqwest::ClientBuilder, TransportError> {
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true);
        if let Some(timeout) = self.read_timeout {
            builder = builder.read_timeout(timeout);
        }
        if !self.uses_system_proxy {
            builder = builder.no_proxy();
        }
        let roots = self
            .extra_roots_pem
            .iter()
            .map(|pem| reqwest::Certificate::from_pem(pem))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| failure(TransportErrorKind::Request, error))?;
        Ok(if is_without_system_roots {
            builder.tls_certs_only(roots)
        } else {
            builder.tls_certs_merge(roots)
        })
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn call(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        self.execute(request).await
    }

    async fn call_streamed(
        &self,
        request: http::Request<BodyStream>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        self.execute(request.map(reqwest::Body::wrap_stream)).await
    }
}

impl HttpTransport {
    async fn execute<B: Into<reqwest::Body>>(
        &self,
        request: http::Request<B>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        let request = reqwest::Request::try_from(request)
            .map_err(|error| failure(TransportErrorKind::Request, error))?;
        let response = self
            .client
            .execute(request)
            .await
            .map_err(|error| failure(kind_of(&error), error))?;
        let mut head = http::Response::new(());
        *head.status_mut() = response.status();
        *head.version_mut() = response.version();
        *head.headers_mut() = response.headers().clone();
        let body = response
            .bytes_stream()
            .map(|chunk| chunk.map_err(|error| failure(kind_of(&error), error)));
        Ok(head.map(|()| Box::pin(body) as BodyStream))
    }
}

fn kind_of(error: &reqwest::Error) -> TransportErrorKind {
    if error.is_connect() {
        TransportErrorKind::Connect
    } else if error.is_timeout() {
        TransportErrorKind::Timeout
    } else if error.is_builder() || error.is_redirect() {
        TransportErrorKind::Request
    } else {
        TransportErrorKind::Broken
    }
}

/// The innermost cause says most; the address stays out, as it may hold a credential.
fn failure(kind: TransportErrorKind, error: reqwest::Error) -> TransportError {
    let error = error.without_url();
    let mut detail = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        detail = inner.to_string();
        cause = inner.source();
    }
    TransportError::new(kind, detail)
}
