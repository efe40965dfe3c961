//! Error bodies in the form that a provider's clients expect.

use serde_json::json;

use crate::wire::Wire;

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorBodyKind {
    /// The request cannot be served.
    InvalidRequest,
    /// The request continues a message thread, which is not supported. Anthropic's clients then send the whole conversation.
    UnsupportedThread,
    /// Nothing has that address.
    NotFound,
    /// The body is too large.
    TooLarge,
    /// The server failed.
    Server,
    /// No answer came in time.
    Timeout,
    /// The server has too much to do.
    Overloaded,
}

/// The body of an error, in the format of the wire.
#[must_use]
pub fn error_body(wire: Wire, kind: ErrorBodyKind, message: &str) -> String {
    let body = match wire {
        Wire::Anthropic => {
            let mut error = json!({ "type": anthropic_type(kind), "message": message });
            if kind == ErrorBodyKind::UnsupportedThread {
                error["details"] = json!({
                    "error_code": "thread_unsupported_request",
                    "unsupported": ["context_management"],
                });
            }
            json!({ "type": "error", "error": error })
        }
        Wire::OpenAiChat | Wire::OpenAiResponses => json!({
            "error": { "message": message, "type": openai_type(kind), "param": null, "code": null }
        }),
    };
    body.to_string()
}

fn anthropic_type(kind: ErrorBodyKind) -> &'static str {
    match kind {
        ErrorBodyKind::InvalidRequest | ErrorBodyKind::UnsupportedThread => "invalid_request_error",
        ErrorBodyKind::NotFound => "not_found_error",
        ErrorBodyKind::TooLarge => "request_too_large",
        ErrorBodyKind::Server => "api_error",
        ErrorBodyKind::Timeout => "timeout_error",
        ErrorBodyKind::Overloaded => "overloaded_error",
    }
}

fn openai_type(kind: ErrorBodyKind) -> &'static str {
    match kind {
        ErrorBodyKind::InvalidRequest
        | ErrorBodyKind::UnsupportedThread
        | ErrorBodyKind::NotFound
        | ErrorBodyKind::TooLarge => "invalid_request_error",
        ErrorBodyKind::Server | ErrorBodyKind::Timeout | ErrorBodyKind::Overloaded => {
            "server_error"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_its_own_errors() {
        for (wire, kind, expected) in [
            (
                Wire::Anthropic,
                ErrorBodyKind::Overloaded,
                r#"{"error":{"message":"m","type":"overloaded_error"},"type":"error"}"#,
            ),
            (
                Wire::Anthropic,
                ErrorBodyKind::UnsupportedThread,
                r#"{"error":{"details":{"error_code":"thread_unsupported_request","unsupported":["context_management"]},"message":"m","type":"invalid_request_error"},"type":"error"}"#,
            ),
            (
                Wire::OpenAiChat,
                ErrorBodyKind::TooLarge,
                r#"{"error":{"code":null,"message":"m","param":null,"type":"invalid_request_error"}}"#,
            ),
            (
                Wire::OpenAiResponses,
                ErrorBodyKind::Timeout,
                r#"{"error":{"code":null,"message":"m","param":null,"type":"server_error"}}"#,
            ),
        ] {
            assert_eq!(error_body(wire, kind, "m"), expected);
        }
    }
}
