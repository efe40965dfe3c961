//! When a failed call is retried, and after which wait.
//!
//! Waiting times are those of the providers' SDKs: half a second, doubled each time up to eight, less a random quarter;
//! what the provider asks for (`retry-after-ms`, `retry-after`) counts instead.
//! [`CallError::kind`](crate::error::CallError::kind) and `x-should-retry` decide whether to retry at all.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// How often a call is tried, and how long it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts; 1 is no retry.
    pub attempts_max: u32,
    /// Wait before the second attempt; doubled before each further one.
    pub delay_first: Duration,
    /// The longest wait of our own.
    pub delay_max: Duration,
    /// The longest wait that a provider may ask for. If it asks for more, the call fails at once and says so in
    /// [`CallError::retry_after`](crate::error::CallError::retry_after).
    pub retry_after_max: Duration,
    /// The longest that one call may wait between its attempts, all waits together.
    pub wait_max: Duration,
    /// Whether to request an answer again that is cut off after the caller has received a part of it. The caller
    /// is told by [`Event::Restarted`](crate::reply::Event::Restarted).
    pub restarts_broken_answers: bool,
    /// Seed of the random part of the waits; `None` takes another one for each client.
    pub seed: Option<u64>,
}

impl Default for RetryPolicy {
    /// Three attempts; a provider may ask for two minutes; answers that have begun are not requested again.
    fn default() -> Self {
        Self {
            attempts_max: 3,
            delay_first: Duration::from_millis(500),
            delay_max: Duration::from_secs(8),
            retry_after_max: Duration::from_secs(120),
            wait_max: Duration::from_secs(300),
            restarts_broken_answers: false,
            seed: None,
        }
    }
}

impl RetryPolicy {
    /// A single attempt.
    #[must_use]
    pub fn never() -> Self {
        Self {
            attempts_max: 1,
            ..Self::default()
        }
    }
}

/// The waits of one call.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    policy: RetryPolicy,
    random: u64,
    /// How many times the request was sent.
    attempts: u32,
    waited: Duration,
}

impl Backoff {
    /// `call` numbers the calls of a client: each gets waits of its own, the same for the same seed.
    pub(crate) fn new(policy: &RetryPolicy, call: u64) -> Self {
        let seed = policy
            .seed
            .unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Self {
            policy: policy.clone(),
            random: seed ^ call.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            attempts: 0,
            waited: Duration::ZERO,
        }
    }

    pub(crate) fn begin_attempt(&mut self) {
        self.attempts += 1;
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How long to wait before the next attempt; `None` if there is none.
    pub(crate) fn wait(&mut self, asked: Option<Duration>) -> Option<Duration> {
        if self.attempts >= self.policy.attempts_max {
            return None;
        }
        let wait = match asked {
            Some(asked) if asked > self.policy.retry_after_max => return None,
            Some(asked) => asked,
            None => {
                let doublings = self.attempts.saturating_sub(1).min(16);
                let delay = self
                    .policy
                    .delay_first
                    .saturating_mul(1 << doublings)
                    .min(self.policy.delay_max);
                delay.mul_f64(1.0 - 0.25 * self.fraction())
            }
        };
        let waited = self.waited.saturating_add(wait);
        if waited > self.policy.wait_max {
            return None;
        }
        self.waited = waited;
        Some(wait)
    }

    /// A number from 0 up to 1: SplitMix64, which needs no state but a counter.
    fn fraction(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits >> 32) as u32 as f64 / f64::from(u32::MAX)
    }
}

/// How long the provider asks to wait: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date after `now`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| Some(headers.get(name)?.to_str().ok()?.trim());
    if let Some(wait) = text("retry-after-ms").and_then(|ms| seconds(ms, 0.001)) {
        return Some(wait);
    }
    let value = text("retry-after")?;
    seconds(value, 1.0).or_else(|| {
        let date = http_date(value)?;
        Some(date.duration_since(now).unwrap_or_default())
    })
}

/// Whether the server says that a retry may succeed.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.as_bytes() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    (number >= 0.0)
        .then(|| Duration::try_from_secs_f64(number * unit).ok())
        .flatten()
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form of RFC 9110 that servers may still send.
fn http_date(text: &str) -> Option<SystemTime> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, date) = text.split_once(", ")?;
    let mut parts = date.split(' ');
    let day: u64 = parts.next()?.parse().ok()?;
    let month = parts.next()?;
    let month = MONTHS
        .find(month)
        .filter(|at| month.len() == 3 && at % 3 == 0)? as u64
        / 3
        + 1;
    let year: u64 = parts.next()?.parse().ok()?;
    let mut time = parts
        .next()?
        .splitn(3, ':')
        .map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let is_valid = parts.next() == Some("GMT")
        && (1970..=9999).contains(&year)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_less_a_random_quarter() {
        let policy = RetryPolicy {
            attempts_max: 8,
            seed: Some(7),
            ..RetryPolicy::default()
        };
        let waits = |call| {
            let mut backoff = Backoff::new(&policy, call);
            std::iter::from_fn(move || {
                backoff.begin_attempt();
                backoff.wait(None)
            })
            .collect::<Vec<_>>()
        };
        let found = waits(0);
        assert_eq!(found.len(), 7);
        for (wait, full) in found.iter().zip([0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]) {
            let seconds = wait.as_secs_f64();
            assert!(
                seconds <= full && seconds >= full * 0.75,
                "{seconds} {full}"
            );
        }
        assert_eq!(found, waits(0), "the same seed gives the same waits");
        assert_ne!(found, waits(1), "another call has other waits");
    }

    #[test]
    fn what_the_provider_asks_for_counts_within_limits() {
        let mut backoff = Backoff::new(&RetryPolicy::default(), 0);
        backoff.begin_attempt();
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(backoff.clone().wait(asked(121)), None);
        assert_eq!(backoff.wait(asked(120)), asked(120));
        backoff.begin_attempt();
        assert_eq!(backoff.wait(asked(100)), asked(100));
        backoff.begin_attempt();
        assert_eq!(backoff.wait(asked(1)), None, "three attempts are all");

        let mut impatient = Backoff::new(
            &RetryPolicy {
                wait_max: Duration::from_secs(10),
                ..RetryPolicy::default()
            },
            0,
        );
        impatient.begin_attempt();
        assert_eq!(impatient.wait(asked(6)), asked(6));
        impatient.begin_attempt();
        assert_eq!(
            impatient.wait(asked(6)),
            None,
            "twelve seconds are too long"
        );
    }

    #[test]
    fn every_form_of_retry_after_is_read() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let check = |name: &'static str, value: &str, expected: Option<f64>| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let found = retry_after(&headers, now).map(|wait| wait.as_secs_f64());
            assert_eq!(found, expected, "{name}: {value}");
        };
        check("retry-after", "3", Some(3.0));
        check("retry-after", " 0.25 ", Some(0.25));
        check("retry-after-ms", "1500", Some(1.5));
        check("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(0.0));
        check("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT", Some(60.0));
        check(
            "retry-after",
            "Tue, 29 Feb 2028 00:00:00 GMT",
            Some(1_051_283_423.0),
        );
        check("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0.0));
        for junk in [
            "-1",
            "soon",
            "NaN",
            "inf",
            "Sun, 06 XYZ 1994 08:49:37 GMT",
            "1e400",
        ] {
            check("retry-after", junk, None);
        }
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        headers.insert("retry-after-ms", "soon".parse().unwrap());
        assert_eq!(retry_after(&headers, now), Some(Duration::from_secs(7)));
    }
}
