//! Counts of what the proxy does, in Prometheus' text format.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{
    EncodeLabelSet, EncodeMetric, LabelSetEncoder, MetricEncoder, prometheus_text,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Registry};
use throughline_store::Purpose;
use throughline_transcript::catalogue::Money;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;

/// Upper bounds of what the proxy adds to a request, seconds.
const ADDED_S: [f64; 10] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25,
];

/// The names and values of a metric's labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Labels<const N: usize>([(&'static str, &'static str); N]);

/// Billionths of a dollar, shown as dollars.
#[derive(Clone, Debug, Default)]
struct Dollars(Arc<AtomicU64>);

/// What is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Labels<3>, Counter>,
    /// Requests that asked a model, and those of them with a memory.
    asked: AtomicU64,
    rewritten: AtomicU64,
    answers: Family<Labels<1>, Counter>,
    events: Family<Labels<1>, Counter>,
    added: Histogram,
    sessions: Counter,
    forks: Counter,
    saved_tokens: Counter,
    tokens: Family<Labels<2>, Counter>,
    costs: Family<Labels<1>, Dollars>,
    without_nanodollars: AtomicU64,
    sessions_in_memory: Gauge<u64, AtomicU64>,
    requests_under_way: Gauge<u64, AtomicU64>,
    unstored_bytes: Gauge<u64, AtomicU64>,
    commits: Counter,
    commits_failed: Counter,
}

/// Numbers that are counted elsewhere.
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
    /// Requests in which a memory replaced old messages.
    pub rewritten: u64,
    /// Swaps.
    pub swaps: u64,
    /// Tokens of messages that memories replaced, over all requests.
    pub saved_tokens: u64,
    /// What the requests cost, by the catalogue's prices.
    pub main: Money,
    /// What the memories cost.
    pub updates: Money,
    /// What the requests would have cost with nothing left out, estimated.
    pub without: Money,
}

impl<const N: usize> EncodeLabelSet for Labels<N> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

impl TypedMetric for Dollars {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for Dollars {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let dollars = self.nanodollars() as f64 / 1e9;
        encoder.encode_counter::<[(&str, &str); 0], _, f64>(&dollars, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl Dollars {
    fn nanodollars(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("throughline");
        // The registry ends each help text with a full stop, and the name of each counter with `_total`.
        let r = &mut registry;
        let requests = add(
            r,
            "requests",
            "Requests by what was done with them, and why",
        );
        let answers = add(r, "answers", "Answers by how they ended");
        let events = add(r, "engine_events", "Decisions about memories");
        let added = Histogram::new(ADDED_S);
        let help = "Time from the whole request to its being sent on";
        r.register("added_seconds", help, added.clone());
        let sessions = add(r, "sessions_begun", "Sessions that began here");
        let forks = add(r, "forks", "Sessions that began as forks of others");
        let help = "Tokens of messages that a memory replaced in requests";
        let saved_tokens = add(r, "saved_tokens", help);
        let tokens = add(r, "tokens", "Tokens as the provider bills them");
        let help = "What calls cost, by the catalogue's prices";
        let costs = add(r, "cost_dollars", help);
        let help = "Sessions that are kept in memory";
        let sessions_in_memory = add(r, "sessions_in_memory", help);
        let help = "Requests whose answers have not ended";
        let requests_under_way = add(r, "requests_under_way", help);
        let help = "Bytes of messages that wait to be stored";
        let unstored_bytes = add(r, "unstored_bytes", help);
        let commits = add(r, "commits", "Commits to the store");
        let commits_failed = add(r, "commits_failed", "Commits that failed");
        Self {
            registry,
            requests,
            asked: AtomicU64::default(),
            rewritten: AtomicU64::default(),
            answers,
            events,
            added,
            sessions,
            forks,
            saved_tokens,
            tokens,
            costs,
            without_nanodollars: AtomicU64::default(),
            sessions_in_memory,
            requests_under_way,
            unstored_bytes,
            commits,
            commits_failed,
        }
    }
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// A request went out.
    pub(crate) fn request(&self, wire: Wire, done: &'static str, reason: &'static str) {
        let labels = [("wire", wire.name()), ("done", done), ("reason", reason)];
        self.requests.get_or_create(&Labels(labels)).inc();
        if done != "refused" && reason != "path" && reason != "count" {
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
        if done == "rewritten" && reason != "count" {
            self.rewritten.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What the proxy added to it before it went out.
    pub(crate) fn added(&self, time: Duration) {
        self.added.observe(time.as_secs_f64());
    }

    pub(crate) fn answer(&self, ended: &'static str) {
        let labels = Labels([("ended", ended)]);
        self.answers.get_or_create(&labels).inc();
    }

    pub(crate) fn engine_event(&self, kind: &'static str) {
        self.events.get_or_create(&Labels([("event", kind)])).inc();
    }

    pub(crate) fn session_begun(&self, is_fork: bool) {
        let counter = if is_fork { &self.forks } else { &self.sessions };
        counter.inc();
    }

    pub(crate) fn saved(&self, tokens: u64) {
        self.saved_tokens.inc_by(tokens);
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
            let labels = Labels([("purpose", purpose), ("class", class)]);
            self.tokens.get_or_create(&labels).inc_by(tokens);
        }
        if let Some(price) = price {
            let cost = self
                .costs
                .get_or_create_owned(&Labels([("purpose", purpose)]));
            cost.0.fetch_add(price.nano_dollars(), Ordering::Relaxed);
        }
    }

    /// What a request would have cost with nothing left out.
    pub(crate) fn without(&self, price: Money) {
        self.without_nanodollars
            .fetch_add(price.nano_dollars(), Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> Report {
        let cost = |purpose: &'static str| {
            let cost = self.costs.get(&Labels([("purpose", purpose)]));
            Money::from_nano_dollars(cost.map_or(0, |cost| cost.nanodollars()))
        };
        let swaps = self.events.get(&Labels([("event", "swapped")]));
        Report {
            requests: self.asked.load(Ordering::Relaxed),
            rewritten: self.rewritten.load(Ordering::Relaxed),
            swaps: swaps.map_or(0, |swaps| swaps.get()),
            saved_tokens: self.saved_tokens.get(),
            main: cost("main"),
            updates: cost("update"),
            without: Money::from_nano_dollars(self.without_nanodollars.load(Ordering::Relaxed)),
        }
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn text(&self, gauges: Gauges) -> String {
        self.sessions_in_memory
            .set(gauges.sessions_in_memory as u64);
        self.requests_under_way
            .set(gauges.requests_under_way as u64);
        self.unstored_bytes.set(gauges.unstored_bytes as u64);
        for (counter, count) in [
            (&self.commits, gauges.commits),
            (&self.commits_failed, gauges.commits_failed),
        ] {
            counter.inner().store(count as u64, Ordering::Relaxed);
        }
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_text::encode(&mut out, &self.registry);
        with_six_places(&out)
    }
}

/// The bounds of buckets with six places: as labels they name the series that are published. The library writes them in
/// their shortest form.
fn with_six_places(text: &str) -> String {
    const BOUND: &str = "le=\"";
    let mut parts = text.split(BOUND);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (bound, rest) = part.split_once('"').unwrap_or((part, ""));
        out.push_str(BOUND);
        match bound.parse::<f64>() {
            Ok(number) if number.is_finite() => out.push_str(&format!("{number:.6}")),
            _ => out.push_str(bound),
        }
        out.push('"');
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The samples by name and labels, with values as numbers, and the lines about each family.
    fn samples(text: &str) -> BTreeMap<String, String> {
        let number = |text: &str| {
            text.parse::<f64>()
                .map_or(text.to_owned(), |it| it.to_string())
        };
        let mut samples = BTreeMap::new();
        for line in text.lines() {
            let (name, value) = match line.strip_prefix("# ") {
                Some(about) => about.rsplit_once(char::is_whitespace).unwrap(),
                None => line.rsplit_once(' ').unwrap(),
            };
            assert_eq!(
                samples.insert(name.to_owned(), number(value)),
                None,
                "{line}"
            );
        }
        samples
    }

    fn metrics() -> Metrics {
        let metrics = Metrics::default();
        metrics.request(Wire::Anthropic, "rewritten", "");
        metrics.request(Wire::Anthropic, "rewritten", "");
        metrics.answer("whole");
        metrics.engine_event("swapped");
        metrics.added(Duration::from_micros(120));
        metrics.spent(
            Purpose::Main,
            &Usage {
                output: 5,
                ..Usage::default()
            },
            Some(Money::from_nano_dollars(1_500_000_000)),
        );
        metrics
    }

    /// Dashboards and alerts of users depend on these names, labels and values.
    #[test]
    fn published_metrics_remain() {
        const PUBLISHED: &str = r##"# HELP throughline_requests_total Requests by what was done with them, and why.
# TYPE throughline_requests_total counter
throughline_requests_total{wire="anthropic",done="rewritten",reason=""} 2
# HELP throughline_answers_total Answers by how they ended.
# TYPE throughline_answers_total counter
throughline_answers_total{ended="whole"} 1
# HELP throughline_engine_events_total Decisions about memories.
# TYPE throughline_engine_events_total counter
throughline_engine_events_total{event="swapped"} 1
# HELP throughline_added_seconds Time from the whole request to its being sent on.
# TYPE throughline_added_seconds histogram
throughline_added_seconds_bucket{le="0.000050"} 0
throughline_added_seconds_bucket{le="0.000100"} 0
throughline_added_seconds_bucket{le="0.000250"} 1
throughline_added_seconds_bucket{le="0.000500"} 1
throughline_added_seconds_bucket{le="0.001000"} 1
throughline_added_seconds_bucket{le="0.002500"} 1
throughline_added_seconds_bucket{le="0.005000"} 1
throughline_added_seconds_bucket{le="0.010000"} 1
throughline_added_seconds_bucket{le="0.050000"} 1
throughline_added_seconds_bucket{le="0.250000"} 1
throughline_added_seconds_bucket{le="+Inf"} 1
throughline_added_seconds_sum 0.000120
throughline_added_seconds_count 1
# HELP throughline_sessions_begun_total Sessions that began here.
# TYPE throughline_sessions_begun_total counter
throughline_sessions_begun_total 0
# HELP throughline_forks_total Sessions that began as forks of others.
# TYPE throughline_forks_total counter
throughline_forks_total 0
# HELP throughline_saved_tokens_total Tokens of messages that a memory replaced in requests.
# TYPE throughline_saved_tokens_total counter
throughline_saved_tokens_total 0
# HELP throughline_tokens_total Tokens as the provider bills them.
# TYPE throughline_tokens_total counter
throughline_tokens_total{purpose="main",class="cache-read"} 0
throughline_tokens_total{purpose="main",class="cache-write"} 0
throughline_tokens_total{purpose="main",class="output"} 5
throughline_tokens_total{purpose="main",class="uncached"} 0
# HELP throughline_cost_dollars_total What calls cost, by the catalogue's prices.
# TYPE throughline_cost_dollars_total counter
throughline_cost_dollars_total{purpose="main"} 1.500000000
# HELP throughline_sessions_in_memory Sessions that are kept in memory.
# TYPE throughline_sessions_in_memory gauge
throughline_sessions_in_memory 0
# HELP throughline_requests_under_way Requests whose answers have not ended.
# TYPE throughline_requests_under_way gauge
throughline_requests_under_way 0
# HELP throughline_unstored_bytes Bytes of messages that wait to be stored.
# TYPE throughline_unstored_bytes gauge
throughline_unstored_bytes 0
# HELP throughline_commits_total Commits to the store.
# TYPE throughline_commits_total counter
throughline_commits_total 0
# HELP throughline_commits_failed_total Commits that failed.
# TYPE throughline_commits_failed_total counter
throughline_commits_failed_total 0
"##;
        assert_eq!(
            samples(&metrics().text(Gauges::default())),
            samples(PUBLISHED)
        );
    }

    #[test]
    fn the_report_has_the_same_counts() {
        let metrics = metrics();
        metrics.request(Wire::Anthropic, "passed", "path");
        metrics.request(Wire::Anthropic, "refused", "busy");
        metrics.request(Wire::OpenAiChat, "rewritten", "count");
        metrics.request(Wire::OpenAiChat, "tracked", "");
        let report = metrics.report();
        assert_eq!((report.requests, report.rewritten, report.swaps), (3, 2, 1));
        assert_eq!(report.main, Money::from_nano_dollars(1_500_000_000));
        assert_eq!(report.updates, Money::default());
    }
}
