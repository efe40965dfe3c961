//! Anthropic Messages.

mod answer;
mod binding;

use serde_json::{Value, json};
use throughline_transcript::catalogue::TokenizerFamily;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::wire::Wire;

use crate::api_error::ApiError;
use crate::cache::Breakpoints;
use crate::persona::{Heard, Offer, ToolChoice};
use crate::prompt::{Lifetime, Part, PartKind, Parts, Rendering, Role, lifetime};
use crate::signature::Verdict;
use crate::simulator::{Asked, PrefixMismatch, Question, Simulator, Thinks, family};

pub(crate) use answer::{PING, counted, frame, output, pieces};
pub(crate) use binding::seal;

use binding::Binding;

const BINDING_CONTROLS: &str = "thinking-binding-controls-2026-08-01";

/// A request, read.
pub(crate) struct Read {
    pub(crate) question: Question,
    streams: bool,
    /// Thinking that was left out or let through; `None` where nobody asked.
    transformations: Option<Vec<Value>>,
    /// What `diagnostics` is answered with.
    diagnoses: bool,
}

/// What happens to one thinking block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
}

pub(crate) fn read(
    simulator: &mut Simulator,
    asked: &Asked,
    betas: Vec<String>,
) -> Result<Read, ApiError> {
    let body = &asked.body;
    let [
        messages,
        system,
        tools,
        thinking,
        output_config,
        compaction,
        thread,
    ] = body.fields([
        "messages",
        "system",
        "tools",
        "thinking",
        "output_config",
        "compaction",
        "thread",
    ]);
    if thread.is_some_and(|thread| !thread.is_null()) {
        return Err(
            ApiError::new(400, "This request cannot be served as a thread.").details(json!({
                "error_code": "thread_unsupported_request", "unsupported": ["context_management"]
            })),
        );
    }
    let wire = Wire::Anthropic;
    let tools = tools.filter(|tools| tools.kind() == Kind::Array);
    let tool_parts = tools
        .as_ref()
        .map(|tools| simulator.parts.tools(tools, wire, asked.scale));
    let system_parts = system
        .as_ref()
        .map(|system| simulator.parts.system(system, wire, asked.scale));
    let messages: Vec<_> = messages
        .iter()
        .flat_map(Raw::array)
        .map(|message| simulator.parts.message(&message, wire, asked.scale))
        .collect();

    let mut binding = Binding::new(tool_parts.as_deref(), system_parts.as_deref());
    let has_controls = betas.iter().any(|beta| beta == BINDING_CONTROLS);
    let drops = has_controls
        && thinking
            .as_ref()
            .and_then(|thinking| thinking.field("block_binding"))
            .and_then(|control| control.string_field("prefix_mismatch_behavior"))
            .is_some_and(|behaviour| behaviour == "drop_block");
    let mut transformations = Vec::new();
    let mut fates: Vec<Vec<Fate>> = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let verdicts = binding.message(message, &simulator.signer, family(&asked.model));
        let mut of_message = Vec::with_capacity(verdicts.len());
        for (at, verdict) in verdicts.into_iter().enumerate() {
            let path = format!("messages.{index}.content.{at}");
            let mut report = |kind: &str, reason: &str| {
                transformations.push(json!({"type": kind, "path": path, "reason": reason}));
            };
            of_message.push(match verdict {
                None | Some(Verdict::Genuine) => Fate::Kept,
                Some(Verdict::OtherModel) => {
                    report("thinking_dropped", "model_binding_mismatch");
                    Fate::Dropped
                }
                Some(Verdict::OtherPrefix) => {
                    if asked.model.abilities.binds_thinking_to_prefix != Some(true) {
                        Fate::Kept
                    } else if drops {
                        report("thinking_dropped", "prefix_binding_mismatch");
                        Fate::Dropped
                    } else if simulator.options().prefix_mismatch == PrefixMismatch::Allow
                        // Mythos 5.1 records what does not match and lets it through.
                        || asked.model.id == "claude-mythos-5-1"
                    {
                        report("thinking_mismatch_allowed", "prefix_binding_mismatch");
                        Fate::Kept
                    } else {
                        return Err(bound_elsewhere(&path, has_controls));
                    }
                }
                Some(Verdict::Forged) if is_compaction(message, at) => {
                    return Err(ApiError::new(
                        400,
                        format!("{path}: the compaction block was changed since it was returned"),
                    )
                    .error_code("compaction_content_mismatch"));
                }
                Some(Verdict::Forged) => {
                    return Err(ApiError::new(
                        400,
                        format!("{path}: Invalid `signature` in `thinking` block"),
                    ));
                }
            });
        }
        fates.push(of_message);
    }
    strip_old_thinking(asked, &messages, &mut fates);

    let mut rendering =
        Rendering::new(&[b"anthropic", &asked.credential, asked.model.id.as_bytes()]);
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
    if let Some(parts) = tool_parts.as_ref().filter(|parts| !parts.parts.is_empty()) {
        rendering.overhead(asked.scale.tools_overhead());
        for part in &parts.parts {
            if !matches!(part.kind, PartKind::DeferredTool) {
                place(&mut rendering, part);
            }
        }
    }
    rendering.fold(&[b"system", &setting(body, "speed")]);
    if let Some(parts) = system_parts
        .as_ref()
        .filter(|parts| !parts.parts.is_empty())
    {
        rendering.overhead(asked.scale.message_overhead());
        for part in &parts.parts {
            place(&mut rendering, part);
        }
    }
    rendering.fold(
        &message_settings(asked, &messages)
            .iter()
            .map(Vec::as_slice)
            .collect::<Vec<_>>(),
    );
    for (message, fates) in messages.iter().zip(&fates) {
        rendering.fold(&[format!("{:?}", message.role).as_bytes()]);
        rendering.overhead(asked.scale.message_overhead());
        for (part, fate) in message.parts.iter().zip(fates) {
            if *fate == Fate::Kept {
                place(&mut rendering, part);
            }
        }
    }
    let automatic = body.field("cache_control");
    if let (Some(lifetime), Some(at)) = (automatic.as_ref().and_then(lifetime), last_cacheable) {
        rendering.mark_last(at, lifetime);
    }
    let prompt = rendering.finish();
    let tokens = prompt.tokens();
    let window = asked.model.input_max.unwrap_or(asked.model.window);
    if tokens > window {
        return Err(ApiError::new(
            400,
            format!("prompt is too long: {tokens} tokens > {window} maximum"),
        ));
    }
    let output_max = body
        .field("max_tokens")
        .and_then(|raw| raw.as_u64())
        .unwrap_or(0);
    if tokens + output_max > asked.model.window && refuses_large_output(&asked.model.id) {
        return Err(ApiError::new(
            400,
            format!(
                "input length and `max_tokens` exceed context limit: {tokens} + {output_max} > {}, decrease input \
                 length or `max_tokens` and try again",
                asked.model.window
            ),
        ));
    }

    let format = output_config
        .and_then(|config| config.field("format"))
        .or_else(|| body.field("output_format"))
        .and_then(|format| format.field("schema"));
    let choice = body.field("tool_choice");
    let heard = Heard::new(
        body,
        wire,
        Offer {
            tools: tools.as_ref().map(offered).unwrap_or_default(),
            choice: match choice
                .as_ref()
                .and_then(|choice| choice.string_field("type"))
                .as_deref()
            {
                Some("none") => ToolChoice::Never,
                Some("any") => ToolChoice::Always,
                Some("tool") => ToolChoice::This(
                    choice
                        .as_ref()
                        .and_then(|choice| choice.string_field("name"))
                        .unwrap_or_default(),
                ),
                _ => ToolChoice::Free,
            },
            is_one_at_a_time: choice
                .as_ref()
                .and_then(|choice| choice.field("disable_parallel_tool_use"))
                .and_then(|raw| raw.as_bool())
                == Some(true),
            schema: format,
            wants_json: false,
        },
        binding.covered,
    );
    let question = Question {
        prompt,
        prefix: binding.prefix(),
        heard,
        breakpoints: Breakpoints::Implicit,
        lifetime: Lifetime::Short,
        output_max,
        stop_sequences: strings(body.field("stop_sequences")),
        thinks: thinks(asked, thinking.as_ref()),
        compacts: compaction.is_some_and(|compaction| compaction.kind() == Kind::Object),
        call_ids: call_ids(&messages),
    };
    Ok(Read {
        question,
        streams: body.field("stream").and_then(|raw| raw.as_bool()) == Some(true),
        transformations: has_controls.then_some(transformations),
        diagnoses: body.field("diagnostics").is_some(),
    })
}

fn is_compaction(message: &Parts, at: usize) -> bool {
    message
        .parts
        .get(at)
        .is_some_and(|part| matches!(part.kind, PartKind::Compaction(_)))
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
fn strip_old_thinking(asked: &Asked, messages: &[std::sync::Arc<Parts>], fates: &mut [Vec<Fate>]) {
    if asked.model.abilities.keeps_thinking_of_all_turns != Some(false) {
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

/// The settings that change how the messages are shown to the model, written in one way each.
fn message_settings(asked: &Asked, messages: &[std::sync::Arc<Parts>]) -> Vec<Vec<u8>> {
    let body = &asked.body;
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
        mode = match asked.model.abilities.thinks_by_default {
            Some(true) => "\"adaptive\"".to_owned(),
            _ => "\"disabled\"".to_owned(),
        };
    }
    let mut effort = field(&config, "effort");
    if effort.is_empty() {
        effort = format!(
            "\"{}\"",
            asked.model.default_effort.as_deref().unwrap_or("high")
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

/// Models before 4.5 refuse a `max_tokens` that does not fit into the window beside the input.
fn refuses_large_output(id: &str) -> bool {
    id.starts_with("claude-3")
        || matches!(id, "claude-opus-4" | "claude-opus-4-1" | "claude-sonnet-4")
}

fn thinks(asked: &Asked, thinking: Option<&Raw>) -> Thinks {
    let mode = thinking.and_then(|thinking| thinking.string_field("type"));
    let is_on = match mode.as_deref() {
        Some("disabled") => false,
        Some(_) => true,
        None => asked.model.abilities.thinks_by_default == Some(true),
    };
    if !is_on {
        return Thinks::No;
    }
    let display = thinking.and_then(|thinking| thinking.string_field("display"));
    match display.as_deref() {
        Some("omitted") => Thinks::Hidden,
        Some(_) => Thinks::Shown,
        // Since Opus 4.7 the text is withheld unless somebody asks for it.
        None if asked.model.tokenizer == TokenizerFamily::Claude2 => Thinks::Hidden,
        None => Thinks::Shown,
    }
}

fn offered(tools: &Raw) -> Vec<crate::persona::Tool> {
    tools
        .array()
        .filter_map(|tool| {
            let [name, kind, schema] = tool.fields(["name", "type", "input_schema"]);
            let kind = kind.and_then(|kind| kind.as_text());
            let is_server = kind.is_some_and(|kind| {
                let kind = kind.decode();
                kind.starts_with("web_search") || kind.starts_with("web_fetch")
            });
            Some(crate::persona::Tool {
                name: name?.as_text()?.decode().into_owned(),
                schema,
                is_server,
            })
        })
        .collect()
}

pub(crate) fn strings(list: Option<Raw>) -> Vec<String> {
    list.iter()
        .flat_map(Raw::array)
        .filter_map(|item| item.as_text())
        .map(|text| text.decode().into_owned())
        .collect()
}

pub(crate) fn call_ids(messages: &[std::sync::Arc<Parts>]) -> Vec<String> {
    messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match &part.kind {
            PartKind::ToolUse { id } => Some(id.clone()),
            _ => None,
        })
        .collect()
}
