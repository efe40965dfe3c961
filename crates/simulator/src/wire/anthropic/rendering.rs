//! The prompt as the model reads it: tools, system prompt and messages, with what its cache depends on.

use std::sync::Arc;

use throughline_transcript::json::Raw;

use super::thinking::Fate;
use crate::call::Call;
use crate::prompt::{Part, PartKind, Parts, Prompt, Rendering, lifetime};

pub(super) fn rendered(
    call: &Call,
    tool_parts: Option<&Parts>,
    system_parts: Option<&Parts>,
    messages: &[Arc<Parts>],
    fates: &[Vec<Fate>],
) -> Prompt {
    let mut rendering = Rendering::new(&[b"anthropic", &call.credential, call.model.id.as_bytes()]);
    let mut last_cacheable = None;
    let mut place = |rendering: &mut Rendering, part: &Part| {
        rendering.place(part);
        if !matches!(
            part.kind,
            PartKind::Thinking { .. } | PartKind::Text { is_blank: true }
        ) {
            last_cacheable = Some(rendering.places() - 1);
        }
    };
    if let Some(parts) = tool_parts.filter(|parts| !parts.parts.is_empty()) {
        rendering.overhead(call.scale.tools_overhead());
        for part in &parts.parts {
            if !matches!(part.kind, PartKind::DeferredTool) {
                place(&mut rendering, part);
            }
        }
    }
    rendering.fold(&[b"system", &setting(&call.body, "speed")]);
    if let Some(parts) = system_parts.filter(|parts| !parts.parts.is_empty()) {
        rendering.overhead(call.scale.message_overhead());
        for part in &parts.parts {
            place(&mut rendering, part);
        }
    }
    rendering.fold(
        &message_settings(call, messages)
            .iter()
            .map(Vec::as_slice)
            .collect::<Vec<_>>(),
    );
    for (message, fates) in messages.iter().zip(fates) {
        rendering.fold(&[format!("{:?}", message.role).as_bytes()]);
        rendering.overhead(call.scale.message_overhead());
        for (part, fate) in message.parts.iter().zip(fates) {
            if *fate == Fate::Kept {
                place(&mut rendering, part);
            }
        }
    }
    let automatic = call.body.field("cache_control");
    if let (Some(lifetime), Some(at)) = (automatic.as_ref().and_then(lifetime), last_cacheable) {
        rendering.mark_last(at, lifetime);
    }
    rendering.finish()
}

/// The settings that change how the messages are shown to the model, written in one way each.
fn message_settings(call: &Call, messages: &[Arc<Parts>]) -> Vec<Vec<u8>> {
    let body = &call.body;
    let [choice, thinking, config, format] =
        body.fields(["tool_choice", "thinking", "output_config", "output_format"]);
    let field = |object: &Option<Raw>, name: &str| {
        object
            .as_ref()
            .and_then(|object| object.field(name))
            .map(|value| value.as_str().to_owned())
            .unwrap_or_default()
    };
    let mut choice_type = field(&choice, "type");
    if choice_type.is_empty() {
        choice_type = "\"auto\"".to_owned();
    }
    let mut mode = field(&thinking, "type");
    if mode.is_empty() {
        mode = match call.model.abilities.thinks_by_default {
            Some(true) => "\"adaptive\"".to_owned(),
            _ => "\"disabled\"".to_owned(),
        };
    }
    let mut effort = field(&config, "effort");
    if effort.is_empty() {
        effort = format!(
            "\"{}\"",
            call.model.default_effort.as_deref().unwrap_or("high")
        );
    }
    let mut schema = field(&config, "format");
    if schema.is_empty() {
        schema = format.map_or_else(String::new, |format| format.as_str().to_owned());
    }
    let has_images = messages
        .iter()
        .flat_map(|message| &message.parts)
        .any(|part| matches!(part.kind, PartKind::Image));
    [
        "messages".to_owned(),
        choice_type,
        field(&choice, "name"),
        field(&choice, "disable_parallel_tool_use").replace("false", ""),
        mode,
        field(&thinking, "budget_tokens"),
        effort,
        schema,
        field(&config, "task_budget"),
        has_images.to_string(),
    ]
    .into_iter()
    .map(String::into_bytes)
    .collect()
}

fn setting(body: &Raw, name: &str) -> Vec<u8> {
    match body.string_field(name) {
        Some(value) if value != "standard" => value.into_bytes(),
        _ => Vec::new(),
    }
}
