//! How a request gets to a provider: [`Transport`], and the real one, `HttpTransport` (feature `http`).
//!
//! A transport moves bytes and knows no wire format. It returns the head of an answer as soon as it arrives, and the body as
//! a stream of chunks with any boundaries. Time limits, retries and cancellation are the client's: a
//! transport stops when its future or its stream is dropped.

#[cfg(feature = "http")]
mod http_transport;

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};

#[cfg(feature = "http")]
pub use http_transport::{HttpTransport, HttpTransportBuilder};

/// The body of an answer, chunk by chunk. It ends after the first error.
pub type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// Sends one request and returns the answer, with any status.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends `request` and waits for the head of the answer.
    ///
    /// # Errors
    /// When there is no answer: [`TransportError::kind`] says why. An answer that refuses is no error here.
    async fn call(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<BodyStream>, TransportError>;

    /// As [`Transport::call`], with a body that arrives in chunks: for files, which should not be in memory as a whole. A transport that
    /// does not have it collects them first.
    ///
    /// # Errors
    /// As [`Transport::call`]; or what the body ended with.
    async fn call_streamed(
        &self,
        request: http::Request<BodyStream>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        let (head, mut chunks) = request.into_parts();
        let mut body = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk?);
        }
        let request = http::Request::from_parts(head, body.freeze());
        self.call(request).await
    }
}

#[async_trait]
impl<T: Transport + ?Sized> Transport for Arc<T> {
    async fn call(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        T::call(self, request).await
    }

    async fn call_streamed(
        &self,
        request: http::Request<BodyStream>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        T::call_streamed(self, request).await
    }
}

/// Why no answer came, or why it was cut off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail}")]
pub struct TransportError {
    /// What kind of failure it is.
    pub kind: TransportErrorKind,
    /// What the layer below says, without the address and without headers.
    pub detail: String,
}

/// What kind of failure of the connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// No connection: name not found, refused, unreachable, no TLS session.
    #[error("cannot connect")]
    Connect,
    /// No data within the time limit.
    #[error("timed out")]
    Timeout,
    /// The connection broke, or the answer is not HTTP.
    #[error("connection broken")]
    Broken,
    /// The request cannot be sent at all, for example because of its address.
    #[error("request cannot be sent")]
    Request,
}

impl TransportError {
    /// A failure with what the layer below says about it.
    #[must_use]
    pub fn new(kind: TransportErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }
}
