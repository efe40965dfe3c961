//! Rate limits: buckets that fill up steadily, for each credential and model.
//!
//! Input read from the cache does not count, as with Anthropic.

use std::collections::HashMap;
use std::time::Duration;

use crate::prompt::Key;

/// Limits of one credential for one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests a minute.
    pub requests_per_min: u64,
    /// Input tokens a minute that are not read from the cache.
    pub input_tokens_per_min: u64,
    /// Output tokens a minute.
    pub output_tokens_per_min: u64,
}

impl RateLimits {
    /// Anthropic's first tier for Opus, Sonnet and Haiku.
    #[must_use]
    pub const fn start_tier() -> Self {
        Self {
            requests_per_min: 1_000,
            input_tokens_per_min: 2_000_000,
            output_tokens_per_min: 400_000,
        }
    }
}

/// What is left of the limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RemainingLimits {
    pub(crate) requests: f64,
    pub(crate) input: f64,
    pub(crate) output: f64,
    filled_at: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Buckets {
    left: HashMap<Key, RemainingLimits>,
}

impl Buckets {
    /// Takes one request of this many input tokens from the buckets, or returns how long to wait, and for which limit.
    pub(crate) fn take(
        &mut self,
        key: Key,
        limits: &RateLimits,
        input: u64,
        now: Duration,
    ) -> Result<RemainingLimits, (Duration, &'static str)> {
        let full = RemainingLimits {
            requests: limits.requests_per_min as f64,
            input: limits.input_tokens_per_min as f64,
            output: limits.output_tokens_per_min as f64,
            filled_at: now,
        };
        let left = self.left.entry(key).or_insert(full);
        let minutes = now.saturating_sub(left.filled_at).as_secs_f64() / 60.0;
        left.requests = (left.requests + full.requests * minutes).min(full.requests);
        left.input = (left.input + full.input * minutes).min(full.input);
        left.output = (left.output + full.output * minutes).min(full.output);
        left.filled_at = left.filled_at.max(now);
        // A request larger than the bucket goes through when the bucket is full.
        let input = (input as f64).min(full.input);
        let wait = |missing: f64, rate: f64| {
            Duration::from_secs_f64((missing / rate.max(1e-9) * 60.0).clamp(0.0, 86_400.0))
        };
        if left.requests < 1.0 {
            return Err((wait(1.0 - left.requests, full.requests), "requests"));
        }
        if left.input < input {
            return Err((wait(input - left.input, full.input), "input tokens"));
        }
        if left.output <= 0.0 {
            return Err((wait(1.0 - left.output, full.output), "output tokens"));
        }
        left.requests -= 1.0;
        left.input -= input;
        Ok(*left)
    }

    /// Takes the written output from the bucket.
    pub(crate) fn take_output(&mut self, key: Key, output: u64) {
        if let Some(left) = self.left.get_mut(&key) {
            left.output -= output as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::digest;

    #[test]
    fn buckets_empty_and_fill_up() {
        let limits = RateLimits {
            requests_per_min: 60,
            input_tokens_per_min: 6_000,
            output_tokens_per_min: 600,
        };
        let key = digest(&[b"k"]);
        let mut buckets = Buckets::default();
        let at = Duration::from_secs;
        assert!(buckets.take(key, &limits, 5_000, at(0)).is_ok());
        assert_eq!(
            buckets.take(key, &limits, 2_000, at(0)),
            Err((at(10), "input tokens"))
        );
        assert!(buckets.take(key, &limits, 2_000, at(10)).is_ok());
        buckets.take_output(key, 700);
        let (wait, what) = buckets.take(key, &limits, 0, at(10)).unwrap_err();
        assert_eq!((wait.as_secs(), what), (10, "output tokens"));
        // More than a minute's worth goes through a full bucket.
        assert!(buckets.take(key, &limits, 50_000, at(200)).is_ok());
        for _ in 0..59 {
            assert!(buckets.take(key, &limits, 0, at(200)).is_ok());
        }
        assert_eq!(
            buckets.take(key, &limits, 0, at(200)),
            Err((at(1), "requests"))
        );
    }
}
