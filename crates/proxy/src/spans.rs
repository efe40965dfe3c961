//! Spans for subscribers: one for each request, one for each memory that a model makes. Ids and numbers, no content.

use tracing::Span;
use tracing::field::Empty;

/// The target of all spans. No log line has it.
pub const SPANS: &str = "throughline::spans";

/// A model is asked for a memory of that many messages of this session.
pub(crate) fn update(session: &str, wire: &'static str, messages: usize) -> Span {
    tracing::info_span!(
        target: SPANS,
        parent: None,
        "update",
        otel.kind = "internal",
        session,
        wire,
        messages,
        outcome = Empty,
        calls = Empty,
        prompt_tokens = Empty,
        cache_read_tokens = Empty,
        output_tokens = Empty,
    )
}
