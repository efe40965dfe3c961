//! Anthropic Messages.

mod answer;
mod binding;
mod rendering;
mod thinking;

use serde_json::{Value, json};
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::wire::Wire;

use crate::api_error::ApiError;
use crate::cache::Breakpoints;
use crate::call::{Call, Question, family};
use crate::options::PrefixMismatch;
use crate::persona::{Briefing, Offer, ToolChoice};
use crate::prompt::{Lifetime, PartKind, PartStore, Parts};
use crate::signature::Signer;

pub(crate) use answer::{PING, counted, frame, output, pieces};
pub(crate) use binding::seal;

use binding::Binding;
use rendering::rendered;
use thinking::{BINDING_CONTROLS, BindingRules, Fate, strip_old_thinking, thinking_mode};

/// A parsed request.
pub(crate) struct ParsedCall {
    pub(crate) question: Question,
    streams: bool,
    /// Thinking that was dropped or let through; `None` unless the request wants the report.
    transformations: Option<Vec<Value>>,
    /// Whether the answer has `diagnostics`.
    diagnoses: bool,
}

pub(crate) fn read(
    store: &mut PartStore,
    signer: &Signer,
    prefix_mismatch: PrefixMismatch,
    call: &Call,
    betas: &[&str],
) -> Result<ParsedCall, ApiError> {
    let body = &call.body;
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
        .map(|tools| store.tools(tools, wire, call.scale));
    let system_parts = system
        .as_ref()
        .map(|system| store.system(system, wire, call.scale));
    let messages: Vec<_> = messages
        .iter()
        .flat_map(Raw::array)
        .map(|message| store.message(&message, wire, call.scale))
        .collect();

    let mut binding = Binding::new(tool_parts.as_deref(), system_parts.as_deref());
    let has_controls = betas.contains(&BINDING_CONTROLS);
    let drops = has_controls
        && thinking
            .as_ref()
            .and_then(|thinking| thinking.field("block_binding"))
            .and_then(|control| control.string_field("prefix_mismatch_behavior"))
            .is_some_and(|behaviour| behaviour == "drop_block");
    let rules = BindingRules {
        has_controls,
        drops,
        // Mythos 5.1 records what does not match and lets it through.
        allows: prefix_mismatch == PrefixMismatch::Allow || call.model.id == "claude-mythos-5-1",
    };
    let mut transformations = Vec::new();
    let mut fates: Vec<Vec<Fate>> = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let verdicts = binding.message(message, signer, family(&call.model));
        let mut of_message = Vec::with_capacity(verdicts.len());
        for (at, verdict) in verdicts.into_iter().enumerate() {
            let path = format!("messages.{index}.content.{at}");
            let part = message.parts.get(at);
            of_message.push(rules.fate(call, part, verdict, &path, &mut transformations)?);
        }
        fates.push(of_message);
    }
    strip_old_thinking(call, &messages, &mut fates);

    let prompt = rendered(
        call,
        tool_parts.as_deref(),
        system_parts.as_deref(),
        &messages,
        &fates,
    );
    let output_max = checked_output_max(call, prompt.tokens())?;
    let format = output_config
        .and_then(|config| config.field("format"))
        .or_else(|| body.field("output_format"))
        .and_then(|format| format.field("schema"));
    let choice = body.field("tool_choice");
    let briefing = Briefing::new(
        body,
        wire,
        Offer {
            tools: tools.as_ref().map(offered).unwrap_or_default(),
            choice: tool_choice(choice.as_ref()),
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
        briefing,
        breakpoints: Breakpoints::Implicit,
        lifetime: Lifetime::Short,
        output_max,
        stop_sequences: strings(body.field("stop_sequences")),
        thinks: thinking_mode(call, thinking.as_ref()),
        is_compaction: compaction.is_some_and(|compaction| compaction.kind() == Kind::Object),
        call_ids: call_ids(&messages),
    };
    Ok(ParsedCall {
        question,
        streams: body.field("stream").and_then(|raw| raw.as_bool()) == Some(true),
        transformations: has_controls.then_some(transformations),
        diagnoses: body.field("diagnostics").is_some(),
    })
}

/// The largest output of the request, if prompt and output fit the window.
fn checked_output_max(call: &Call, tokens: u64) -> Result<u64, ApiError> {
    let window = call.model.input_max.unwrap_or(call.model.window);
    if tokens > window {
        return Err(ApiError::new(
            400,
            format!("prompt is too long: {tokens} tokens > {window} maximum"),
        ));
    }
    let output_max = call
        .body
        .field("max_tokens")
        .and_then(|raw| raw.as_u64())
        .unwrap_or(0);
    if tokens + output_max > call.model.window && refuses_large_output(&call.model.id) {
        return Err(ApiError::new(
            400,
            format!(
                "input length and `max_tokens` exceed context limit: {tokens} + {output_max} > {}, decrease input \
                 length or `max_tokens` and try again",
                call.model.window
            ),
        ));
    }
    Ok(output_max)
}

/// Models before 4.5 refuse a `max_tokens` that does not fit into the window with the input.
fn refuses_large_output(id: &str) -> bool {
    id.starts_with("claude-3")
        || matches!(id, "claude-opus-4" | "claude-opus-4-1" | "claude-sonnet-4")
}

fn tool_choice(choice: Option<&Raw>) -> ToolChoice {
    let kind = choice.and_then(|choice| choice.string_field("type"));
    match kind.as_deref() {
        Some("none") => ToolChoice::Never,
        Some("any") => ToolChoice::Always,
        Some("tool") => ToolChoice::This(
            choice
                .and_then(|choice| choice.string_field("name"))
                .unwrap_or_default(),
        ),
        _ => ToolChoice::Free,
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
