//! How long a model takes: a time to the first token that depends on what is cached, then a rate of tokens per second.

use std::time::Duration;

use throughline_transcript::usage::Usage;

/// The speed of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// What every call takes before anything happens.
    pub base: Duration,
    /// Input that is not in the cache, tokens a second; 0 takes no time.
    pub uncached_tokens_per_s: u32,
    /// Input that is read from the cache, tokens a second; 0 takes no time.
    pub cached_tokens_per_s: u32,
    /// Output, tokens a second; 0 takes no time.
    pub output_tokens_per_s: u32,
    /// Calls that run side by side; the next one waits until one of them ends. 0 is no limit.
    pub parallel_max: usize,
    /// While the model is silent, an Anthropic stream carries a `ping` this often; zero is never.
    pub ping_every: Duration,
}

impl Latency {
    /// A big model of today: a prompt of 200,000 tokens is read in some 25 s uncached and 1.6 s cached, and a summary of
    /// 2,000 tokens is written in 29 s.
    #[must_use]
    pub const fn real() -> Self {
        Self {
            base: Duration::from_millis(600),
            uncached_tokens_per_s: 8_000,
            cached_tokens_per_s: 200_000,
            output_tokens_per_s: 70,
            parallel_max: 64,
            ping_every: Duration::from_secs(5),
        }
    }

    /// No time passes.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            base: Duration::ZERO,
            uncached_tokens_per_s: 0,
            cached_tokens_per_s: 0,
            output_tokens_per_s: 0,
            parallel_max: 0,
            ping_every: Duration::ZERO,
        }
    }

    /// Time to the first token, without waiting in the queue.
    #[must_use]
    pub fn first_token(&self, usage: &Usage) -> Duration {
        self.base
            + time(
                usage.uncached.saturating_add(usage.cache_write),
                self.uncached_tokens_per_s,
            )
            + time(usage.cache_read, self.cached_tokens_per_s)
    }

    /// Time to write this many tokens.
    #[must_use]
    pub fn output(&self, tokens: u64) -> Duration {
        time(tokens, self.output_tokens_per_s)
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::real()
    }
}

fn time(tokens: u64, per_second: u32) -> Duration {
    if per_second == 0 {
        return Duration::ZERO;
    }
    let micros = tokens.saturating_mul(1_000_000) / u64::from(per_second);
    Duration::from_micros(micros)
}

/// The calls that run now.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// When each of them ends, on the simulator's clock.
    ends: Vec<Duration>,
}

impl Queue {
    /// How long a call that arrives `now` waits for its turn.
    pub(crate) fn wait(&mut self, now: Duration, parallel_max: usize) -> Duration {
        self.ends.retain(|end| *end > now);
        if parallel_max == 0 || self.ends.len() < parallel_max {
            return Duration::ZERO;
        }
        self.ends.sort_unstable();
        // One place is free after this many have ended.
        let before = self.ends.len() - parallel_max;
        self.ends
            .get(before)
            .map_or(Duration::ZERO, |end| end.saturating_sub(now))
    }

    pub(crate) fn add(&mut self, end: Duration) {
        self.ends.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_big_model_takes_its_time() {
        let latency = Latency::real();
        let usage = |uncached, cache_read| Usage {
            uncached,
            cache_read,
            ..Usage::default()
        };
        assert_eq!(
            latency.first_token(&usage(200_000, 0)),
            Duration::from_millis(25_600)
        );
        assert_eq!(
            latency.first_token(&usage(0, 200_000)),
            Duration::from_millis(1_600)
        );
        assert_eq!(latency.output(2_000).as_secs(), 28);
        assert_eq!(Latency::none().first_token(&usage(9, 9)), Duration::ZERO);
    }

    #[test]
    fn a_full_house_waits() {
        let mut queue = Queue::default();
        let at = Duration::from_secs;
        for end in [10, 20, 30] {
            assert_eq!(queue.wait(at(1), 3), Duration::ZERO);
            queue.add(at(end));
        }
        assert_eq!(queue.wait(at(1), 3), at(9));
        queue.add(at(40));
        assert_eq!(queue.wait(at(1), 3), at(19));
        assert_eq!(queue.wait(at(25), 3), Duration::ZERO);
    }
}
