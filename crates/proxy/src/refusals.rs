//! Answers of the proxy's own, in the format whose errors the client understands.

use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;
use throughline_providers::transport::{TransportError, TransportErrorKind};
use throughline_transcript::wire::Wire;

use crate::body::Body;

/// Why the proxy itself refuses a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is nothing at that path.
    NotFound { path: String },
    /// The body is larger than the provider takes.
    TooLarge { bytes_max: usize },
    /// The client broke its body off.
    BrokenBody,
    /// The upstream cannot be reached.
    Unreachable { what: String },
    /// The upstream does not answer.
    NoAnswer,
    /// More requests at a time than may be.
    Busy,
    /// A web socket is wanted: over one, no answer could be read along and no request rewritten.
    WebSocket,
    /// Message threads keep the history at the provider: nobody could put a memory in its place.
    Thread,
}

impl From<TransportError> for Refusal {
    fn from(error: TransportError) -> Self {
        match error.kind {
            TransportErrorKind::Timeout => Self::NoAnswer,
            _ => Self::Unreachable {
                what: error.to_string(),
            },
        }
    }
}

impl Refusal {
    /// Its name in logs and metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::TooLarge { .. } => "too-large",
            Self::BrokenBody => "broken-body",
            Self::Unreachable { .. } => "unreachable",
            Self::NoAnswer => "no-answer",
            Self::Busy => "busy",
            Self::WebSocket => "web-socket",
            Self::Thread => "thread",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BrokenBody | Self::Thread => StatusCode::BAD_REQUEST,
            Self::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            Self::NoAnswer => StatusCode::GATEWAY_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            // What Codex takes as a word to go on over HTTP at once; after any other it tries again first.
            Self::WebSocket => StatusCode::UPGRADE_REQUIRED,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::NotFound { path } => format!(
                "throughline serves /v1 of Anthropic and OpenAI, not {path}: set the base URL to this address"
            ),
            Self::TooLarge { bytes_max } => {
                format!("the request is larger than {bytes_max} bytes")
            }
            Self::BrokenBody => "the request body ended early".to_owned(),
            Self::Unreachable { what } => format!("throughline cannot reach the upstream: {what}"),
            Self::NoAnswer => "the upstream does not answer".to_owned(),
            Self::Busy => {
                "throughline has more requests under way than it is set to take".to_owned()
            }
            Self::WebSocket => {
                "throughline serves no web sockets: send the request over HTTP".to_owned()
            }
            Self::Thread => {
                "message threads are not supported through throughline: send the whole conversation"
                    .to_owned()
            }
        }
    }

    /// Anthropic's name for it.
    fn anthropic_type(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found_error",
            Self::TooLarge { .. } => "request_too_large",
            Self::BrokenBody | Self::WebSocket | Self::Thread => "invalid_request_error",
            Self::Unreachable { .. } => "api_error",
            Self::NoAnswer => "timeout_error",
            Self::Busy => "overloaded_error",
        }
    }

    fn body(&self, wire: Wire) -> String {
        let message = self.message();
        match wire {
            Wire::Anthropic => {
                let mut error = json!({ "type": self.anthropic_type(), "message": message });
                if *self == Self::Thread {
                    error["details"] = json!({
                        "error_code": "thread_unsupported_request",
                        "unsupported": ["context_management"],
                    });
                }
                json!({ "type": "error", "error": error }).to_string()
            }
            Wire::OpenAiChat | Wire::OpenAiResponses => {
                let kind = if self.status().is_client_error() {
                    "invalid_request_error"
                } else {
                    "server_error"
                };
                json!({ "error": { "message": message, "type": kind, "param": null, "code": null } })
                    .to_string()
            }
        }
    }

    /// The answer.
    pub(crate) fn answer(&self, wire: Wire) -> Response<Body> {
        let mut response = Response::new(Body::whole(self.body(wire)));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Self::Busy => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::WebSocket => {
                headers.insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
                headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_answered_in_their_own_format() {
        let busy = Refusal::Busy;
        assert_eq!(
            busy.body(Wire::Anthropic),
            r#"{"error":{"message":"throughline has more requests under way than it is set to take","type":"overloaded_error"},"type":"error"}"#
        );
        assert_eq!(
            Refusal::Thread.body(Wire::Anthropic),
            r#"{"error":{"details":{"error_code":"thread_unsupported_request","unsupported":["context_management"]},"message":"message threads are not supported through throughline: send the whole conversation","type":"invalid_request_error"},"type":"error"}"#
        );
        assert_eq!(
            Refusal::NoAnswer.body(Wire::OpenAiChat),
            r#"{"error":{"code":null,"message":"the upstream does not answer","param":null,"type":"server_error"}}"#
        );
    }
}
