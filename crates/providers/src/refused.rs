//! The refusal of a provider as a [`CallError`].

use std::time::SystemTime;

use http::HeaderMap;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::refusal::{ProviderAnswer, classify};

use crate::error::{CallError, ErrorReport, Failure};
use crate::retry::{retry_after, should_retry};

/// Longest message that is kept, bytes.
const MESSAGE_BYTES_MAX: usize = 2_000;

/// The error of an answer whose status is not a success.
pub(crate) fn in_head(status: u16, headers: &HeaderMap, body: &str, now: SystemTime) -> CallError {
    let mut error = read(status, body);
    error.status = Some(status);
    error.report.request_id = request_id(headers).or(error.report.request_id.take());
    error.retry_after = retry_after(headers, now);
    error.should_retry = should_retry(headers);
    error
}

/// The error that comes in the body of an answer that began as a success.
pub(crate) fn in_answer(body: &str) -> CallError {
    read(status_of(&report(body)), body)
}

/// The provider's id of a request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    ["request-id", "x-request-id"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(str::to_owned)
}

fn read(status: u16, body: &str) -> CallError {
    let refusal = classify(&ProviderAnswer {
        status,
        body,
        ..ProviderAnswer::default()
    });
    let mut report = report(body);
    report.message = shortened(if report.message.is_empty() {
        body
    } else {
        &report.message
    });
    let mut error = CallError::new(Failure::Refused, "");
    error.class = refusal.class;
    error.window = refusal.window;
    error.is_output_too = refusal.is_output_too;
    error.report = Box::new(report);
    error
}

/// What an error body says; nothing if it is not JSON.
fn report(body: &str) -> ErrorReport {
    let Ok(body) = Raw::parse(body.to_owned()) else {
        return ErrorReport::default();
    };
    let mut report = match body.field("error").filter(|error| !error.is_null()) {
        // Ollama and some gateways: only words.
        Some(error) if error.kind() == Kind::String => ErrorReport {
            message: string(&error).unwrap_or_default(),
            ..ErrorReport::default()
        },
        Some(error) => report_of(&error),
        None => report_of(&body),
    };
    report.request_id = body.field("request_id").as_ref().and_then(string);
    report
}

fn report_of(error: &Raw) -> ErrorReport {
    let [error_type, code, message, detail, details] =
        error.fields(["type", "code", "message", "detail", "details"]);
    let detailed_code = details.and_then(|details| details.field("error_code"));
    ErrorReport {
        error_type: error_type.as_ref().and_then(string),
        code: detailed_code.or(code).as_ref().and_then(string),
        message: message
            .or(detail)
            .as_ref()
            .and_then(string)
            .unwrap_or_default(),
        request_id: None,
    }
}

/// A string, or a number as it is written.
fn string(value: &Raw) -> Option<String> {
    match value.kind() {
        Kind::String => value.as_text().map(|text| text.decode().into_owned()),
        Kind::Number => Some(value.as_str().to_owned()),
        _ => None,
    }
}

/// The status that the error would have had in the head of an answer.
fn status_of(report: &ErrorReport) -> u16 {
    let names = [report.error_type.as_deref(), report.code.as_deref()];
    for name in names.into_iter().flatten() {
        let status = match name {
            "overloaded_error" => 529,
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
            "timeout_error" => 504,
            "authentication_error" | "invalid_api_key" => 401,
            "billing_error" => 402,
            "permission_error" => 403,
            "not_found_error" | "model_not_found" => 404,
            "request_too_large" => 413,
            "invalid_request_error"
            | "invalid_prompt"
            | "context_length_exceeded"
            | "exceed_context_size_error" => 400,
            // Routers name the status itself.
            _ => match name.parse() {
                Ok(status @ 400..=599) => status,
                _ => continue,
            },
        };
        return status;
    }
    500
}

fn shortened(message: &str) -> String {
    let message = message.trim();
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    let mut short = message[..end].to_owned();
    if end < message.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::CallErrorKind;

    fn head(status: u16, headers: &[(&'static str, &str)], body: &str) -> CallError {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        in_head(status, &map, body, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn errors_are_sorted_by_what_can_be_done() {
        let overflow = CallErrorKind::ContextOverflow {
            window: Some(200_000),
        };
        let check = |status, body: &str, expected| {
            let error = head(status, &[], body);
            assert_eq!(error.kind(), expected, "{status} {body}: {error:?}");
        };
        let anthropic = |kind: &str, code: &str| {
            format!(
                r#"{{"type":"error","error":{{"type":"{kind}","message":"m","details":{{"error_code":"{code}"}}}}}}"#
            )
        };
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 203511 tokens > 200000 maximum"}}"#,
            overflow,
        );
        check(
            400,
            &anthropic("invalid_request_error", ""),
            CallErrorKind::GiveUp,
        );
        check(
            401,
            &anthropic("authentication_error", ""),
            CallErrorKind::FixConfiguration,
        );
        check(
            402,
            &anthropic("billing_error", ""),
            CallErrorKind::FixConfiguration,
        );
        check(
            403,
            &anthropic("permission_error", ""),
            CallErrorKind::FixConfiguration,
        );
        check(
            404,
            &anthropic("not_found_error", ""),
            CallErrorKind::FixConfiguration,
        );
        check(408, "", CallErrorKind::Retry);
        check(409, &anthropic("conflict_error", ""), CallErrorKind::Retry);
        check(413, "<html>too large</html>", CallErrorKind::BodyTooLarge);
        check(422, r#"{"detail":"wrong"}"#, CallErrorKind::GiveUp);
        check(
            429,
            &anthropic("rate_limit_error", ""),
            CallErrorKind::Retry,
        );
        check(
            429,
            &anthropic("rate_limit_error", "enforced_spend_limit_reached"),
            CallErrorKind::FixConfiguration,
        );
        check(
            429,
            &anthropic("rate_limit_error", "ramp_limit_exceeded"),
            CallErrorKind::Retry,
        );
        check(
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            CallErrorKind::FixConfiguration,
        );
        check(500, &anthropic("api_error", ""), CallErrorKind::Retry);
        check(503, "", CallErrorKind::Retry);
        check(504, &anthropic("timeout_error", ""), CallErrorKind::Retry);
        check(
            529,
            &anthropic("overloaded_error", "compaction_unavailable"),
            CallErrorKind::Retry,
        );
        check(302, "", CallErrorKind::FixConfiguration);
    }

    #[test]
    fn errors_in_the_middle_are_sorted_as_in_the_head() {
        let check = |body: &str, expected| {
            assert_eq!(in_answer(body).kind(), expected, "{body}");
        };
        check(
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            CallErrorKind::Retry,
        );
        check(
            r#"{"error":{"message":"upstream","code":502}}"#,
            CallErrorKind::Retry,
        );
        check(
            r#"{"error":{"message":"no key","code":401}}"#,
            CallErrorKind::FixConfiguration,
        );
        check(r#"{"error":"model runner stopped"}"#, CallErrorKind::Retry);
        check(
            r#"{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model.","param":"input"}"#,
            CallErrorKind::ContextOverflow { window: None },
        );
        check(
            r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
            CallErrorKind::FixConfiguration,
        );
    }

    #[test]
    fn everything_that_is_said_is_kept() {
        let error = head(
            429,
            &[
                ("request-id", "req_head"),
                ("retry-after", "12"),
                ("x-should-retry", "false"),
            ],
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down","details":{"error_code":"ramp_limit_exceeded"}},"request_id":"req_body"}"#,
        );
        assert_eq!(error.report.error_type.as_deref(), Some("rate_limit_error"));
        assert_eq!(error.report.code.as_deref(), Some("ramp_limit_exceeded"));
        assert_eq!(error.report.request_id.as_deref(), Some("req_head"));
        assert_eq!(error.retry_after, Some(Duration::from_secs(12)));
        assert!(!error.is_worth_retrying(), "the server's word counts");
        assert_eq!(
            error.to_string(),
            "the provider refused, status 429, ramp_limit_exceeded: slow down (request req_head)"
        );
        let long = head(500, &[], &"é".repeat(5_000));
        assert_eq!(long.report.message.len(), 2_000 + "…".len());
        assert_eq!(
            head(400, &[], r#"{"error":{"code":17}}"#)
                .report
                .code
                .as_deref(),
            Some("17")
        );
    }
}
