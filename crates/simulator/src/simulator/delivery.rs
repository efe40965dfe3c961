//! From an answer or an error to bytes with their moments.

use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::Simulator;
use crate::api_error::{ApiError, Vendor};
use crate::call::Output;
use crate::dice::Dice;
use crate::exchange::Exchange;
use crate::faults::Fault;
use crate::limits::{RateLimits, RemainingLimits};
use crate::stream::{self, Pace};
use crate::wire::anthropic;

impl Simulator {
    pub(super) fn sent(
        &self,
        vendor: Vendor,
        output: Output,
        request_id: &str,
        dice: &mut Dice,
    ) -> Exchange {
        let latency = &self.options.latency;
        let mut headers = HeaderMap::new();
        let (turn, kind, pieces, ending, head_after) = match output {
            Output::Json(value) => {
                let (pieces, ending) = stream::whole(value.to_string(), latency.base / 4, None);
                (None, "application/json", pieces, ending, latency.base / 4)
            }
            Output::Whole(turn, value) => {
                let after = turn.first_after + latency.output(turn.answer.output_tokens);
                if let Some(Fault::StreamError(_)) = turn.fault {
                    let error = ApiError::new(500, "Internal server error");
                    return refused(&error, vendor, request_id);
                }
                let (pieces, ending) = stream::whole(value.to_string(), after, turn.fault);
                (Some(turn), "application/json", pieces, ending, after)
            }
            Output::Stream(turn, frames) => {
                let error = ApiError::new(529, "Overloaded");
                let (ping, error) = match vendor {
                    Vendor::Anthropic => (
                        Some(anthropic::PING),
                        anthropic::frame("error", &error.body(vendor, request_id)),
                    ),
                    Vendor::OpenAi => (
                        None,
                        format!("data: {}\n\n", error.body(vendor, request_id)),
                    ),
                };
                let pace = Pace {
                    latency,
                    first_after: turn.first_after,
                    chunking: self.options.chunking,
                    fault: turn.fault,
                    ping,
                    error,
                };
                let (pieces, ending) = stream::streamed(frames, &pace, dice);
                let head_after = turn.first_after;
                (
                    Some(turn),
                    "text/event-stream; charset=utf-8",
                    pieces,
                    ending,
                    head_after,
                )
            }
        };
        set(&mut headers, CONTENT_TYPE.as_str(), kind);
        if let (Some(left), Some(limits)) = (
            turn.as_ref().and_then(|turn| turn.left),
            &self.options.limits,
        ) {
            limit_headers(&mut headers, vendor, limits, &left);
        }
        Exchange {
            status: StatusCode::OK,
            headers,
            head_after,
            pieces,
            ending,
            usage: turn.as_ref().map(|turn| turn.usage),
            cost: turn.and_then(|turn| turn.cost),
        }
    }
}

pub(super) fn refused(error: &ApiError, vendor: Vendor, request_id: &str) -> Exchange {
    let mut headers = HeaderMap::new();
    set(&mut headers, CONTENT_TYPE.as_str(), "application/json");
    if let Some(seconds) = error.retry_after_s {
        set(&mut headers, RETRY_AFTER.as_str(), &seconds.to_string());
    }
    if let Some(should_retry) = error.should_retry {
        set(&mut headers, "x-should-retry", &should_retry.to_string());
    }
    let body = error.body(vendor, request_id).to_string();
    let (pieces, ending) = stream::whole(body, Duration::ZERO, None);
    Exchange {
        status: StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        headers,
        head_after: Duration::ZERO,
        pieces,
        ending,
        usage: None,
        cost: None,
    }
}

fn limit_headers(
    headers: &mut HeaderMap,
    vendor: Vendor,
    limits: &RateLimits,
    left: &RemainingLimits,
) {
    let whole = |number: f64| number.max(0.0) as u64;
    // Remaining tokens are reported in thousands.
    let rounded = |number: f64| (whole(number) + 500) / 1000 * 1000;
    let all = [
        ("requests", limits.requests_per_min, whole(left.requests)),
        (
            "input-tokens",
            limits.input_tokens_per_min,
            rounded(left.input),
        ),
        (
            "output-tokens",
            limits.output_tokens_per_min,
            rounded(left.output),
        ),
    ];
    for (what, limit, remaining) in all {
        let (limit_name, remaining_name) = match (vendor, what) {
            (Vendor::Anthropic, _) => (
                format!("anthropic-ratelimit-{what}-limit"),
                format!("anthropic-ratelimit-{what}-remaining"),
            ),
            (Vendor::OpenAi, "output-tokens") => continue,
            (Vendor::OpenAi, _) => {
                let what = if what == "requests" { what } else { "tokens" };
                (
                    format!("x-ratelimit-limit-{what}"),
                    format!("x-ratelimit-remaining-{what}"),
                )
            }
        };
        set(headers, &limit_name, &limit.to_string());
        set(headers, &remaining_name, &remaining.to_string());
    }
}

pub(super) fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}
