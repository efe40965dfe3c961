//! What a session tells whoever watches it.

use std::time::Duration;

use throughline_engine::{BuildKind, EngineEvent};
use throughline_store::StoreError;

/// Something that happened in a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// The engine decided something.
    Engine(EngineEvent),
    /// A request was held up by this much before it went out, because a memory was swapped in before it.
    Swap {
        /// From the wish to send to the request: waiting for a memory (if any was waited for), the decision, storing it,
        /// writing the request.
        held: Duration,
        /// The part in which a model was waited for.
        waited_for_model: Duration,
    },
    /// A memory was made by a model and checked.
    Checked {
        /// Items that the model left out and code put back.
        put_back: usize,
        /// Items, or parts of them, that the conversation does not have and that were taken out.
        taken_out: usize,
        /// Answers that were no memory.
        refused: usize,
        /// Calls that were made.
        calls: u32,
    },
    /// Something could not be stored. It is tried again with the next change.
    NotStored(std::sync::Arc<StoreError>),
}

/// Name of an event, for stores, logs and metrics.
#[must_use]
pub fn event_kind(event: &EngineEvent) -> &'static str {
    match event {
        EngineEvent::BuildStarted { .. } => "build-started",
        EngineEvent::Built { .. } => "built",
        EngineEvent::Refused { .. } => "refused",
        EngineEvent::Failed { .. } => "failed",
        EngineEvent::Dropped { .. } => "dropped",
        EngineEvent::Swapped { .. } => "swapped",
        EngineEvent::Skipped { .. } => "skipped",
        EngineEvent::FellBack { .. } => "fell-back",
        EngineEvent::Halted(_) => "halted",
        EngineEvent::Resumed => "resumed",
        EngineEvent::Undone { .. } => "undone",
        EngineEvent::WindowLearned { .. } => "window-learned",
        EngineEvent::SeemsCut { .. } => "seems-cut",
        EngineEvent::Compaction { .. } => "compaction",
        _ => "other",
    }
}

/// The numbers and reasons of an event, as JSON, and the same in a plain sentence (`words`). They hold nothing of what
/// was said.
#[must_use]
pub fn event_json(event: &EngineEvent) -> String {
    let mut value = match event {
        EngineEvent::BuildStarted {
            ticket,
            kind,
            reason,
            cover,
            tokens,
        } => serde_json::json!({
            "ticket": ticket.number(), "kind": kind_name(*kind), "reason": reason.name(), "cover": cover,
            "tokens": tokens,
        }),
        EngineEvent::Built {
            ticket,
            kind,
            cover,
            tokens,
            took_ms,
        } => serde_json::json!({
            "ticket": ticket.number(), "kind": kind_name(*kind), "cover": cover, "tokens": tokens,
            "took_ms": took_ms,
        }),
        EngineEvent::Failed {
            ticket,
            kind,
            reason,
            in_a_row,
        } => serde_json::json!({
            "ticket": ticket.number(), "kind": kind_name(*kind), "class": reason.class,
            "message": reason.message, "in_a_row": in_a_row,
        }),
        EngineEvent::Swapped {
            epoch,
            reason,
            version,
            origin,
            cover,
            tokens_before,
            tokens_after,
            waited_ms,
            waited_for,
        } => serde_json::json!({
            "epoch": epoch, "reason": reason.name(), "version": version, "origin": origin.name(), "cover": cover,
            "tokens_before": tokens_before, "tokens_after": tokens_after, "waited_ms": waited_ms,
            "waited_for": waited_for.map(kind_name),
        }),
        EngineEvent::FellBack { reason } => {
            serde_json::json!({ "class": reason.class, "message": reason.message })
        }
        EngineEvent::Undone { epoch, tokens } => {
            serde_json::json!({ "epoch": epoch, "tokens": tokens })
        }
        EngineEvent::WindowLearned { window } => serde_json::json!({ "window": window }),
        EngineEvent::Refused { ticket, kind, .. } => {
            serde_json::json!({ "ticket": ticket.number(), "kind": kind_name(*kind) })
        }
        EngineEvent::Dropped { ticket, .. } => serde_json::json!({ "ticket": ticket.number() }),
        EngineEvent::Skipped { due, .. } => serde_json::json!({ "reason": due.name() }),
        EngineEvent::SeemsCut {
            estimated,
            reported,
        } => serde_json::json!({ "estimated": estimated, "reported": reported }),
        EngineEvent::Compaction { id, .. } => serde_json::json!({ "id": id }),
        _ => serde_json::json!({}),
    };
    value["words"] = serde_json::json!(event.to_string());
    value.to_string()
}

fn kind_name(kind: BuildKind) -> &'static str {
    match kind {
        BuildKind::Draft => "draft",
        BuildKind::Model => "model",
    }
}
