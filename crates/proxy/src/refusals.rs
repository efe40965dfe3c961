//! Answers of the proxy's own, in the format whose errors the client understands.

use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use throughline_providers::transport::{TransportError, TransportErrorKind};
use throughline_transcript::client::{ErrorBodyKind, error_body};
use throughline_transcript::wire::Wire;

use crate::body::Body;
use crate::reason::Reason;

/// An error with which the proxy itself answers a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    reason: Reason,
    status: StatusCode,
    kind: ErrorBodyKind,
    message: String,
}

impl From<TransportError> for Refusal {
    fn from(error: TransportError) -> Self {
        match error.kind {
            TransportErrorKind::Timeout => Self::no_answer(),
            _ => Self::unreachable(&error),
        }
    }
}

impl Refusal {
    fn new(
        reason: Reason,
        status: StatusCode,
        kind: ErrorBodyKind,
        message: impl Into<String>,
    ) -> Self {
        Self {
            reason,
            status,
            kind,
            message: message.into(),
        }
    }

    /// The proxy serves nothing at that path.
    pub(crate) fn not_found(path: &str) -> Self {
        let message = format!(
            "throughline serves /v1 of Anthropic and OpenAI, not {path}: set the base URL to this address"
        );
        Self::new(
            Reason::NotFound,
            StatusCode::NOT_FOUND,
            ErrorBodyKind::NotFound,
            message,
        )
    }

    /// The body is larger than the provider takes.
    pub(crate) fn too_large(bytes_max: usize) -> Self {
        let message = format!("the request is larger than {bytes_max} bytes");
        Self::new(
            Reason::TooLarge,
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorBodyKind::TooLarge,
            message,
        )
    }

    /// The client stopped sending its body.
    pub(crate) fn broken_body() -> Self {
        Self::new(
            Reason::BrokenBody,
            StatusCode::BAD_REQUEST,
            ErrorBodyKind::InvalidRequest,
            "the request body ended early",
        )
    }

    /// The upstream cannot be reached.
    fn unreachable(error: &TransportError) -> Self {
        let message = format!("throughline cannot reach the upstream: {error}");
        Self::new(
            Reason::Unreachable,
            StatusCode::BAD_GATEWAY,
            ErrorBodyKind::Server,
            message,
        )
    }

    /// The upstream does not answer.
    pub(crate) fn no_answer() -> Self {
        Self::new(
            Reason::NoAnswer,
            StatusCode::GATEWAY_TIMEOUT,
            ErrorBodyKind::Timeout,
            "the upstream does not answer",
        )
    }

    /// The proxy has as many requests under way as it may.
    pub(crate) fn busy() -> Self {
        Self::new(
            Reason::ProxyBusy,
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorBodyKind::Overloaded,
            "throughline has more requests under way than it is set to take",
        )
    }

    /// The client asks for a web socket, over which no answer can be read and no request rewritten.
    pub(crate) fn web_socket() -> Self {
        Self::new(
            Reason::WebSocket,
            // After this status Codex switches to HTTP at once; after any other it retries first.
            StatusCode::UPGRADE_REQUIRED,
            ErrorBodyKind::InvalidRequest,
            "throughline serves no web sockets: send the request over HTTP",
        )
    }

    /// The request continues a message thread. The provider keeps its history, so that no memory can take its place.
    pub(crate) fn thread() -> Self {
        Self::new(
            Reason::Thread,
            StatusCode::BAD_REQUEST,
            ErrorBodyKind::UnsupportedThread,
            "message threads are not supported through throughline: send the whole conversation",
        )
    }

    /// Why the request is refused.
    pub(crate) fn reason(&self) -> Reason {
        self.reason
    }

    fn body(&self, wire: Wire) -> String {
        error_body(wire, self.kind, &self.message)
    }

    /// The answer.
    pub(crate) fn answer(&self, wire: Wire) -> Response<Body> {
        let mut response = Response::new(Body::whole(self.body(wire)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.reason == Reason::ProxyBusy {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.reason == Reason::WebSocket {
            headers.insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_answered_in_their_own_format() {
        let busy = Refusal::busy();
        assert_eq!(
            busy.body(Wire::Anthropic),
            r#"{"error":{"message":"throughline has more requests under way than it is set to take","type":"overloaded_error"},"type":"error"}"#
        );
        assert_eq!(
            Refusal::thread().body(Wire::Anthropic),
            r#"{"error":{"details":{"error_code":"thread_unsupported_request","unsupported":["context_management"]},"message":"message threads are not supported through throughline: send the whole conversation","type":"invalid_request_error"},"type":"error"}"#
        );
        assert_eq!(
            Refusal::no_answer().body(Wire::OpenAiChat),
            r#"{"error":{"code":null,"message":"the upstream does not answer","param":null,"type":"server_error"}}"#
        );
    }
}
