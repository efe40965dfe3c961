//! Errors in the shapes of the two providers.

use serde_json::{Value, json};

/// An answer that is an error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    /// Anthropic's `error.type`.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    /// Anthropic's `error.details`.
    pub(crate) details: Option<Box<Value>>,
    /// OpenAI's `error.code`.
    pub(crate) code: Option<&'static str>,
    /// OpenAI's `error.param`.
    pub(crate) param: Option<Box<str>>,
    pub(crate) retry_after_s: Option<u64>,
    pub(crate) should_retry: Option<bool>,
}

/// Whose shapes an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    Anthropic,
    OpenAi,
}

impl ApiError {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            409 => "conflict_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        Self {
            status,
            kind,
            message: message.into(),
            details: None,
            code: None,
            param: None,
            retry_after_s: None,
            should_retry: None,
        }
    }

    pub(crate) fn details(self, details: Value) -> Self {
        Self {
            details: Some(Box::new(details)),
            ..self
        }
    }

    /// With Anthropic's machine-readable code.
    pub(crate) fn error_code(self, code: &str) -> Self {
        self.details(json!({"error_code": code}))
    }

    pub(crate) fn code(self, code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    pub(crate) fn param(self, param: impl Into<Box<str>>) -> Self {
        Self {
            param: Some(param.into()),
            ..self
        }
    }

    pub(crate) fn retry_after(self, seconds: Option<u64>) -> Self {
        Self {
            retry_after_s: seconds,
            ..self
        }
    }

    pub(crate) fn body(&self, vendor: Vendor, request_id: &str) -> Value {
        match vendor {
            Vendor::Anthropic => {
                json!({"type": "error", "error": self.anthropic_error(), "request_id": request_id})
            }
            Vendor::OpenAi => json!({"error": self.openai_error()}),
        }
    }

    pub(crate) fn anthropic_error(&self) -> Value {
        let mut error = json!({"type": self.kind, "message": self.message});
        if let (Some(details), Some(error)) = (&self.details, error.as_object_mut()) {
            error.insert("details".to_owned(), Value::clone(details));
        }
        error
    }

    pub(crate) fn openai_error(&self) -> Value {
        let kind = match self.status {
            429 if self.code == Some("insufficient_quota") => "insufficient_quota",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        json!({"message": self.message, "type": kind, "param": self.param, "code": self.code})
    }
}
