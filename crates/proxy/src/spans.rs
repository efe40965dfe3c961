//! Spans for whoever listens: one for each request, one for each memory that a model makes. Ids and numbers, no content.

use tracing::Span;
use tracing::field::Empty;

/// The target of all of them. Nothing is said in lines under it.
pub const SPANS: &str = "throughline::spans";

/// A request begins.
pub(crate) fn request(wire: &'static str, kind: &'static str) -> Span {
    tracing::info_span!(
        target: SPANS,
        parent: None,
        "request",
        otel.kind = "server",
        otel.status_code = Empty,
        wire,
        kind,
        done = Empty,
        reason = Empty,
        status = Empty,
        ended = Empty,
        session = Empty,
        epoch = Empty,
        covered = Empty,
        saved_tokens = Empty,
        request_bytes = Empty,
        sent_bytes = Empty,
        answer_bytes = Empty,
        prompt_tokens = Empty,
        cache_read_tokens = Empty,
        cache_write_tokens = Empty,
        output_tokens = Empty,
        added_us = Empty,
        head_ms = Empty,
        request_id = Empty,
    )
}

/// A memory is ordered of a model: of so many messages, for this session.
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
