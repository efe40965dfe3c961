//! Counts of what the proxy does, in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use throughline_store::Purpose;
use throughline_transcript::catalogue::Money;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;

/// Upper bounds of what the proxy adds to a request, microseconds.
const ADDED_US: [u64; 10] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000,
];

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By wire, what was done, and why.
    requests: Mutex<BTreeMap<(&'static str, &'static str, &'static str), u64>>,
    /// By how they ended.
    answers: Mutex<BTreeMap<&'static str, u64>>,
    events: Mutex<BTreeMap<&'static str, u64>>,
    added: [AtomicU64; ADDED_US.len() + 1],
    added_sum_us: AtomicU64,
    sessions: AtomicU64,
    forks: AtomicU64,
    saved_tokens: AtomicU64,
    tokens: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    cost_nanodollars: Mutex<BTreeMap<&'static str, u64>>,
    without_nanodollars: AtomicU64,
}

/// Numbers that are not counted here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) sessions_in_memory: usize,
    pub(crate) requests_under_way: usize,
    pub(crate) unstored_bytes: usize,
    pub(crate) commits: usize,
    pub(crate) commits_failed: usize,
}

/// What a proxy has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests that asked a model.
    pub requests: u64,
    /// Requests in which a memory stood in the place of old messages.
    pub rewritten: u64,
    /// Swaps.
    pub swaps: u64,
    /// Tokens of messages that memories stood for, over all requests.
    pub saved_tokens: u64,
    /// What the requests cost, by the catalogue's prices.
    pub main: Money,
    /// What the memories cost.
    pub updates: Money,
    /// What the requests would have cost with nothing left out, estimated.
    pub without: Money,
}

fn add<K: Ord>(counts: &Mutex<BTreeMap<K, u64>>, key: K, more: u64) {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    *counts.entry(key).or_default() += more;
}

impl Metrics {
    /// A request went out.
    pub(crate) fn request(&self, wire: Wire, done: &'static str, reason: &'static str) {
        add(&self.requests, (wire.name(), done, reason), 1);
    }

    /// What the proxy added to it before it went out.
    pub(crate) fn added(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at = ADDED_US.partition_point(|bound| *bound < us);
        self.added[at].fetch_add(1, Ordering::Relaxed);
        self.added_sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn answer(&self, ended: &'static str) {
        add(&self.answers, ended, 1);
    }

    pub(crate) fn engine_event(&self, kind: &'static str) {
        add(&self.events, kind, 1);
    }

    pub(crate) fn session_begun(&self, is_fork: bool) {
        let counter = if is_fork { &self.forks } else { &self.sessions };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn saved(&self, tokens: u64) {
        self.saved_tokens.fetch_add(tokens, Ordering::Relaxed);
    }

    pub(crate) fn spent(&self, purpose: Purpose, usage: &Usage, price: Option<Money>) {
        let purpose = match purpose {
            Purpose::Main => "main",
            _ => "update",
        };
        for (class, tokens) in [
            ("uncached", usage.uncached),
            ("cache-write", usage.cache_write + usage.cache_write_long),
            ("cache-read", usage.cache_read),
            ("output", usage.output),
        ] {
            add(&self.tokens, (purpose, class), tokens);
        }
        if let Some(price) = price {
            add(&self.cost_nanodollars, purpose, price.nano_dollars());
        }
    }

    /// What a request would have cost with nothing left out.
    pub(crate) fn without(&self, price: Money) {
        self.without_nanodollars
            .fetch_add(price.nano_dollars(), Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> Report {
        let lock = |counts: &Mutex<BTreeMap<&'static str, u64>>, key: &str| {
            let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.get(key).copied().unwrap_or_default()
        };
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |is: fn(&str, &str) -> bool| -> u64 {
            requests
                .iter()
                .filter(|((_, done, reason), _)| is(done, reason))
                .map(|(_, count)| count)
                .sum()
        };
        Report {
            requests: count(|done, reason| {
                done != "refused" && reason != "path" && reason != "count"
            }),
            rewritten: count(|done, reason| done == "rewritten" && reason != "count"),
            swaps: lock(&self.events, "swapped"),
            saved_tokens: self.saved_tokens.load(Ordering::Relaxed),
            main: Money::from_nano_dollars(lock(&self.cost_nanodollars, "main")),
            updates: Money::from_nano_dollars(lock(&self.cost_nanodollars, "update")),
            without: Money::from_nano_dollars(self.without_nanodollars.load(Ordering::Relaxed)),
        }
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn text(&self, gauges: Gauges) -> String {
        let mut out = String::new();
        let mut family = |name: &str, kind: &str, help: &str, rows: Vec<(String, String)>| {
            let _ = writeln!(out, "# HELP throughline_{name} {help}");
            let _ = writeln!(out, "# TYPE throughline_{name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(out, "throughline_{name}{labels} {value}");
            }
        };
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        family(
            "requests_total",
            "counter",
            "Requests by what was done with them, and why.",
            requests
                .iter()
                .map(|((wire, done, reason), count)| {
                    (
                        format!(r#"{{wire="{wire}",done="{done}",reason="{reason}"}}"#),
                        count.to_string(),
                    )
                })
                .collect(),
        );
        drop(requests);
        let one =
            |name: &str, counts: &Mutex<BTreeMap<&'static str, u64>>| -> Vec<(String, String)> {
                let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                counts
                    .iter()
                    .map(|(key, count)| (format!(r#"{{{name}="{key}"}}"#), count.to_string()))
                    .collect()
            };
        family(
            "answers_total",
            "counter",
            "Answers by how they ended.",
            one("ended", &self.answers),
        );
        family(
            "engine_events_total",
            "counter",
            "Decisions about memories.",
            one("event", &self.events),
        );
        let mut rows = Vec::new();
        let mut count = 0;
        for (at, bucket) in self.added.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            let bound = ADDED_US
                .get(at)
                .map_or_else(|| "+Inf".to_owned(), |us| seconds(*us));
            rows.push((format!(r#"_bucket{{le="{bound}"}}"#), count.to_string()));
        }
        let sum = self.added_sum_us.load(Ordering::Relaxed);
        rows.push(("_sum".to_owned(), seconds(sum)));
        rows.push(("_count".to_owned(), count.to_string()));
        family(
            "added_seconds",
            "histogram",
            "Time from the whole request to its being sent on.",
            rows,
        );
        let number = |value: u64| vec![(String::new(), value.to_string())];
        family(
            "sessions_begun_total",
            "counter",
            "Sessions that began here.",
            number(self.sessions.load(Ordering::Relaxed)),
        );
        family(
            "forks_total",
            "counter",
            "Sessions that began as forks of others.",
            number(self.forks.load(Ordering::Relaxed)),
        );
        family(
            "saved_tokens_total",
            "counter",
            "Tokens of messages that a memory stood for in requests.",
            number(self.saved_tokens.load(Ordering::Relaxed)),
        );
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        family(
            "tokens_total",
            "counter",
            "Tokens as the provider bills them.",
            tokens
                .iter()
                .map(|((purpose, class), count)| {
                    (
                        format!(r#"{{purpose="{purpose}",class="{class}"}}"#),
                        count.to_string(),
                    )
                })
                .collect(),
        );
        drop(tokens);
        let costs = self
            .cost_nanodollars
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        family(
            "cost_dollars_total",
            "counter",
            "What calls cost, by the catalogue's prices.",
            costs
                .iter()
                .map(|(purpose, nanos)| {
                    (
                        format!(r#"{{purpose="{purpose}"}}"#),
                        format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000),
                    )
                })
                .collect(),
        );
        drop(costs);
        for (name, kind, help, value) in [
            (
                "sessions_in_memory",
                "gauge",
                "Sessions that are kept in memory.",
                gauges.sessions_in_memory,
            ),
            (
                "requests_under_way",
                "gauge",
                "Requests whose answers have not ended.",
                gauges.requests_under_way,
            ),
            (
                "unstored_bytes",
                "gauge",
                "Bytes of messages that wait to be stored.",
                gauges.unstored_bytes,
            ),
            (
                "commits_total",
                "counter",
                "Commits to the store.",
                gauges.commits,
            ),
            (
                "commits_failed_total",
                "counter",
                "Commits that failed.",
                gauges.commits_failed,
            ),
        ] {
            family(name, kind, help, number(value as u64));
        }
        out
    }
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        metrics.request(Wire::Anthropic, "rewritten", "");
        metrics.request(Wire::Anthropic, "rewritten", "");
        metrics.added(Duration::from_micros(120));
        metrics.spent(
            Purpose::Main,
            &Usage {
                output: 5,
                ..Usage::default()
            },
            Some(Money::from_nano_dollars(1_500_000_000)),
        );
        let text = metrics.text(Gauges::default());
        for line in [
            r#"throughline_requests_total{wire="anthropic",done="rewritten",reason=""} 2"#,
            r#"throughline_added_seconds_bucket{le="0.000100"} 0"#,
            r#"throughline_added_seconds_bucket{le="0.000250"} 1"#,
            r#"throughline_added_seconds_bucket{le="+Inf"} 1"#,
            "throughline_added_seconds_sum 0.000120",
            "throughline_added_seconds_count 1",
            r#"throughline_tokens_total{purpose="main",class="output"} 5"#,
            r#"throughline_cost_dollars_total{purpose="main"} 1.500000000"#,
            "throughline_sessions_in_memory 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
