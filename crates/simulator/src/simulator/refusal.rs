//! Refusals that do not depend on the body.

use std::time::Duration;

use http::Method;
use throughline_transcript::wire::Wire;

use crate::api_error::{ApiError, Vendor};
use crate::faults::Fault;

pub(super) fn not_found(vendor: Vendor, method: &Method, path: &str) -> ApiError {
    match vendor {
        Vendor::Anthropic => ApiError::new(404, "Not Found"),
        Vendor::OpenAi => ApiError::new(404, format!("Invalid URL ({method} {path})")),
    }
}

/// The id of an earlier response that a request is about, whatever it wants with it.
pub(super) fn retrieved<'p>(method: &Method, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix("/responses/")?;
    if method == Method::POST {
        return rest.strip_suffix("/cancel");
    }
    rest.split('/').next().filter(|id| !id.is_empty())
}

/// Responses are kept only to be continued; they cannot be fetched.
pub(super) fn not_retrievable(id: &str) -> ApiError {
    ApiError::new(
        404,
        format!(
            "Response with id '{id}' not found. The simulator does not store responses to be fetched: it knows them as \
             `previous_response_id` only."
        ),
    )
    .param("response_id")
}

pub(super) fn no_model(vendor: Vendor, name: &str) -> ApiError {
    match vendor {
        Vendor::Anthropic => ApiError::new(404, format!("model: {name}")),
        Vendor::OpenAi => ApiError::new(
            404,
            format!("The model `{name}` does not exist or you do not have access to it."),
        )
        .code("model_not_found")
        .param("model"),
    }
}

/// The limits that a fault makes believe.
pub(super) fn limiting(fault: Fault, wire: Wire) -> Option<ApiError> {
    match fault {
        Fault::RateLimit { retry_after_s } => Some(
            ApiError::new(
                429,
                "This request would exceed the rate limit for your organization. Please reduce the prompt length or \
                 try again later.",
            )
            .code("rate_limit_exceeded")
            .retry_after(retry_after_s.map(u64::from)),
        ),
        Fault::SpendCap => {
            let error = ApiError::new(
                429,
                "You have reached your specified API usage limits. You will regain access next month.",
            )
            .code("insufficient_quota");
            Some(match wire {
                Wire::Anthropic => error.error_code("enforced_spend_limit_reached"),
                Wire::OpenAiChat | Wire::OpenAiResponses => error,
            })
        }
        _ => None,
    }
}

pub(super) fn failing(fault: Fault) -> Option<ApiError> {
    match fault {
        Fault::ServerError => Some(ApiError::new(500, "Internal server error")),
        Fault::Timeout => Some(ApiError::new(504, "Request timed out")),
        Fault::Overloaded => Some(ApiError {
            should_retry: Some(true),
            ..ApiError::new(529, "Overloaded")
        }),
        _ => None,
    }
}

pub(super) fn rate_limited(wait: Duration, what: &str) -> ApiError {
    let seconds = wait.as_secs_f64().ceil() as u64;
    ApiError::new(
        429,
        format!("This request would exceed your organization's rate limit of {what} per minute."),
    )
    .code("rate_limit_exceeded")
    .retry_after(Some(seconds.max(1)))
}
