//! Rate limits from the headers of an answer.

use http::HeaderMap;

/// Limits and what is left of them, as both providers report them. What is not reported is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// Requests.
    pub requests: RateLimit,
    /// Tokens, input and output together.
    pub tokens: RateLimit,
    /// Input tokens (Anthropic; reads from the prompt cache do not count).
    pub input_tokens: RateLimit,
    /// Output tokens (Anthropic).
    pub output_tokens: RateLimit,
}

/// One limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimit {
    /// Most in a period.
    pub limit: Option<u64>,
    /// What is left of it now.
    pub remaining: Option<u64>,
    /// When it is full again, as written: an RFC 3339 time (Anthropic) or a duration such as `6m0s` (OpenAI).
    pub reset: Option<String>,
}

impl RateLimits {
    /// Reads `anthropic-ratelimit-*` and `x-ratelimit-*`.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Self {
        let text = |name: String| headers.get(name)?.to_str().ok();
        let limit = |kind: &str| {
            let field = |part: &str| {
                text(format!("anthropic-ratelimit-{kind}-{part}"))
                    .or_else(|| text(format!("x-ratelimit-{part}-{kind}")))
            };
            let number = |part| field(part).and_then(|value| value.trim().parse().ok());
            RateLimit {
                limit: number("limit"),
                remaining: number("remaining"),
                reset: field("reset").map(str::to_owned),
            }
        };
        Self {
            requests: limit("requests"),
            tokens: limit("tokens"),
            input_tokens: limit("input-tokens"),
            output_tokens: limit("output-tokens"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_providers_are_read() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("anthropic-ratelimit-input-tokens-limit", "2000000"),
            ("anthropic-ratelimit-input-tokens-remaining", "1999000"),
            (
                "anthropic-ratelimit-input-tokens-reset",
                "2026-11-29T10:00:00Z",
            ),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-limit-tokens", "many"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let limits = RateLimits::read(&headers);
        assert_eq!(
            limits.input_tokens,
            RateLimit {
                limit: Some(2_000_000),
                remaining: Some(1_999_000),
                reset: Some("2026-11-29T10:00:00Z".to_owned()),
            }
        );
        assert_eq!(limits.requests.remaining, Some(59));
        assert_eq!(limits.requests.reset.as_deref(), Some("6m0s"));
        assert_eq!(limits.tokens, RateLimit::default());
    }
}
