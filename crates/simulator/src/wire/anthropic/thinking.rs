//! What happens to thinking blocks: which are kept, which are dropped, which are refused.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_transcript::catalogue::TokenizerFamily;
use throughline_transcript::json::Raw;

use crate::api_error::ApiError;
use crate::call::{Call, ThinkingMode};
use crate::prompt::{Part, PartKind, Parts, Role};
use crate::signature::Verdict;

pub(super) const BINDING_CONTROLS: &str = "thinking-binding-controls-2026-08-01";

/// What happens to one thinking block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    Dropped,
}

/// What is done with blocks that are bound to another prefix.
pub(super) struct BindingRules {
    /// Whether the request has the header for binding controls.
    pub(super) has_controls: bool,
    /// Whether the request wants such blocks dropped.
    pub(super) drops: bool,
    /// Whether they are kept and reported.
    pub(super) allows: bool,
}

impl BindingRules {
    /// What happens to one block; reports what is dropped or let through.
    pub(super) fn fate(
        &self,
        call: &Call,
        part: Option<&Part>,
        verdict: Option<Verdict>,
        path: &str,
        transformations: &mut Vec<Value>,
    ) -> Result<Fate, ApiError> {
        let mut report = |kind: &str, reason: &str| {
            transformations.push(json!({"type": kind, "path": path, "reason": reason}));
        };
        match verdict {
            None | Some(Verdict::Genuine) => Ok(Fate::Kept),
            Some(Verdict::OtherModel) => {
                report("thinking_dropped", "model_binding_mismatch");
                Ok(Fate::Dropped)
            }
            Some(Verdict::OtherPrefix) => {
                if call.model.abilities.binds_thinking_to_prefix != Some(true) {
                    Ok(Fate::Kept)
                } else if self.drops {
                    report("thinking_dropped", "prefix_binding_mismatch");
                    Ok(Fate::Dropped)
                } else if self.allows {
                    report("thinking_mismatch_allowed", "prefix_binding_mismatch");
                    Ok(Fate::Kept)
                } else {
                    Err(bound_elsewhere(path, self.has_controls))
                }
            }
            Some(Verdict::Forged) => {
                let is_compaction =
                    part.is_some_and(|part| matches!(part.kind, PartKind::Compaction(_)));
                Err(match is_compaction {
                    true => ApiError::new(
                        400,
                        format!("{path}: the compaction block was changed since it was returned"),
                    )
                    .error_code("compaction_content_mismatch"),
                    false => ApiError::new(
                        400,
                        format!("{path}: Invalid `signature` in `thinking` block"),
                    ),
                })
            }
        }
    }
}

fn bound_elsewhere(path: &str, has_controls: bool) -> ApiError {
    let hint = if has_controls {
        String::new()
    } else {
        format!(" This needs the header `anthropic-beta: {BINDING_CONTROLS}`.")
    };
    ApiError::new(
        400,
        format!(
            "{path}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove \
             the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".{hint}"
        ),
    )
}

/// Models that keep only the last turn's thinking do not see what was thought before.
pub(super) fn strip_old_thinking(call: &Call, messages: &[Arc<Parts>], fates: &mut [Vec<Fate>]) {
    if call.model.abilities.keeps_thinking_of_all_turns != Some(false) {
        return;
    }
    let turn = messages.iter().rposition(|message| {
        message.role == Role::User
            && !message
                .parts
                .iter()
                .any(|part| matches!(part.kind, PartKind::ToolResult))
    });
    for (message, fates) in messages.iter().zip(fates).take(turn.unwrap_or(0)) {
        for (part, fate) in message.parts.iter().zip(fates) {
            if matches!(part.kind, PartKind::Thinking { .. }) {
                *fate = Fate::Dropped;
            }
        }
    }
}

pub(super) fn thinking_mode(call: &Call, thinking: Option<&Raw>) -> ThinkingMode {
    let mode = thinking.and_then(|thinking| thinking.string_field("type"));
    let is_on = match mode.as_deref() {
        Some("disabled") => false,
        Some(_) => true,
        None => call.model.abilities.thinks_by_default == Some(true),
    };
    if !is_on {
        return ThinkingMode::Off;
    }
    let display = thinking.and_then(|thinking| thinking.string_field("display"));
    match display.as_deref() {
        Some("omitted") => ThinkingMode::Hidden,
        Some(_) => ThinkingMode::Shown,
        // Since Opus 4.7 the text is withheld unless the request asks for it.
        None if call.model.tokenizer == TokenizerFamily::Claude2 => ThinkingMode::Hidden,
        None => ThinkingMode::Shown,
    }
}
