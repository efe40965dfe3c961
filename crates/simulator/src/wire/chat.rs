//! OpenAI Chat Completions.

use serde_json::{Value, json};
use throughline_transcript::catalogue::CacheKind;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::wire::Wire;

use super::anthropic::{call_ids, pieces, strings};
use crate::api_error::ApiError;
use crate::cache::Breakpoints;
use crate::call::{Call, Output, Question, ThinkingMode, Turn};
use crate::persona::{Briefing, Offer, Tool, ToolChoice};
use crate::prompt::{Lifetime, PartStore, Rendering, digest};
use crate::reply::{Answer, AnswerContent, StopReason};
use crate::stream::Frame;

/// When answers are said to be made, seconds since 1970 UTC: the start of the simulator's clock.
pub(crate) const EPOCH_S: u64 = 1_795_910_400;

/// Most output when the request does not say, tokens.
pub(crate) const OUTPUT_MAX_DEFAULT: u64 = 16_384;

pub(crate) fn read(store: &mut PartStore, call: &Call) -> Result<Question, ApiError> {
    let body = &call.body;
    let [messages, tools, format, choice] =
        body.fields(["messages", "tools", "response_format", "tool_choice"]);
    let tools = tools.filter(|tools| tools.kind() == Kind::Array);
    let mut rendering = started(store, call, tools.as_ref());
    rendering.fold(&[format.as_ref().map_or("", Raw::as_str).as_bytes()]);
    if call.model.cache.step_tokens <= 1 {
        for name in ["reasoning_effort", "verbosity", "service_tier"] {
            rendering.fold(&[body.string_field(name).unwrap_or_default().as_bytes()]);
        }
    }
    let messages: Vec<_> = messages
        .iter()
        .flat_map(Raw::array)
        .map(|message| store.message(&message, Wire::OpenAiChat, call.scale))
        .collect();
    for part in messages.iter().flat_map(|message| &message.parts) {
        rendering.place(part);
    }
    let prompt = rendering.finish();
    check_window(call, prompt.tokens(), "messages")?;
    let [most, old_most] = body.fields(["max_completion_tokens", "max_tokens"]);
    let format_kind = format
        .as_ref()
        .and_then(|format| format.string_field("type"));
    let schema = format
        .as_ref()
        .and_then(|format| format.field("json_schema"))
        .and_then(|schema| schema.field("schema"));
    let briefing = Briefing::new(
        body,
        Wire::OpenAiChat,
        Offer {
            tools: tools
                .as_ref()
                .map(|tools| offered(tools, true))
                .unwrap_or_default(),
            choice: tool_choice(choice.as_ref()),
            is_one_at_a_time: is_one_at_a_time(body),
            schema,
            wants_json: format_kind.as_deref() == Some("json_object"),
        },
        digest(&[]),
    );
    let stop = match body.field("stop") {
        Some(stop) if stop.kind() == Kind::String => stop
            .as_text()
            .map(|text| vec![text.decode().into_owned()])
            .unwrap_or_default(),
        stop => strings(stop),
    };
    let (breakpoints, lifetime) = cache_options(body);
    Ok(Question {
        prompt,
        prefix: digest(&[]),
        briefing,
        breakpoints,
        lifetime,
        output_max: most
            .or(old_most)
            .and_then(|most| most.as_u64())
            .unwrap_or(OUTPUT_MAX_DEFAULT)
            .max(1),
        stop_sequences: stop,
        thinks: reasons(call, body.string_field("reasoning_effort").as_deref()),
        is_compaction: false,
        call_ids: call_ids(&messages),
    })
}

/// A prompt with everything that comes before the messages on both wires of OpenAI.
pub(crate) fn started(store: &mut PartStore, call: &Call, tools: Option<&Raw>) -> Rendering {
    let key = call.body.string_field("prompt_cache_key");
    let mut rendering = Rendering::new(&[
        b"openai",
        &call.credential,
        call.model.id.as_bytes(),
        key.unwrap_or_default().as_bytes(),
    ]);
    let cache = &call.model.cache;
    if cache.kind == CacheKind::Automatic {
        rendering = rendering.in_steps(cache.min_tokens.unwrap_or(1024), cache.step_tokens);
    }
    if let Some(tools) = tools {
        let parts = store.tools(tools, call.wire, call.scale);
        if !parts.parts.is_empty() {
            rendering.overhead(call.scale.tools_overhead());
        }
        for part in &parts.parts {
            rendering.place(part);
        }
    }
    rendering
}

pub(crate) fn cache_options(body: &Raw) -> (Breakpoints, Lifetime) {
    let options = body.field("prompt_cache_options");
    let option = |name: &str| {
        options
            .as_ref()
            .and_then(|options| options.string_field(name))
    };
    let breakpoints = match option("mode").as_deref() {
        Some("explicit") => Breakpoints::Explicit,
        _ => Breakpoints::Implicit,
    };
    let retention = body.string_field("prompt_cache_retention");
    let lifetime = match (option("ttl").as_deref(), retention.as_deref()) {
        (Some("12h"), _) | (_, Some("24h")) => Lifetime::Long,
        _ => Lifetime::Short,
    };
    (breakpoints, lifetime)
}

pub(crate) fn check_window(call: &Call, tokens: u64, param: &str) -> Result<(), ApiError> {
    let window = call.model.input_max.unwrap_or(call.model.window);
    if tokens <= window {
        return Ok(());
    }
    Err(ApiError::new(
        400,
        format!(
            "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} \
             tokens. Please reduce the length of the messages."
        ),
    )
    .code("context_length_exceeded")
    .param(param))
}

/// Whether a model of OpenAI's reasons; the text is never shown.
pub(crate) fn reasons(call: &Call, effort: Option<&str>) -> ThinkingMode {
    let id = call.model.id.as_str();
    let is_reasoning = ["gpt-5", "gpt-6", "o1", "o3", "o4"]
        .iter()
        .any(|prefix| id.starts_with(prefix));
    match effort {
        Some("none" | "minimal") => ThinkingMode::Off,
        _ if is_reasoning => ThinkingMode::Hidden,
        _ => ThinkingMode::Off,
    }
}

pub(crate) fn offered(tools: &Raw, is_nested: bool) -> Vec<Tool> {
    tools
        .array()
        .filter(|tool| tool.string_field("type").as_deref() == Some("function"))
        .filter_map(|tool| {
            let function = if is_nested {
                tool.field("function")?
            } else {
                tool
            };
            Some(Tool {
                name: function.string_field("name")?,
                schema: function.field("parameters"),
                is_server: false,
            })
        })
        .collect()
}

pub(crate) fn tool_choice(choice: Option<&Raw>) -> ToolChoice {
    let Some(choice) = choice else {
        return ToolChoice::Free;
    };
    match choice
        .as_text()
        .map(|text| text.decode().into_owned())
        .as_deref()
    {
        Some("none") => ToolChoice::Never,
        Some("required") => ToolChoice::Always,
        Some(_) => ToolChoice::Free,
        None => {
            let name = choice
                .field("function")
                .and_then(|function| function.string_field("name"))
                .or_else(|| choice.string_field("name"));
            name.map_or(ToolChoice::Free, ToolChoice::This)
        }
    }
}

pub(crate) fn is_one_at_a_time(body: &Raw) -> bool {
    body.field("parallel_tool_calls")
        .and_then(|raw| raw.as_bool())
        == Some(false)
}

pub(crate) fn output(call: &Call, turn: Turn) -> Output {
    let streams = call.body.field("stream").and_then(|raw| raw.as_bool()) == Some(true);
    if streams {
        let frames = frames(call, &turn);
        return Output::Stream(Box::new(turn), frames);
    }
    let answer = &turn.answer;
    let (text, calls) = message(answer);
    let mut message = json!({
        "role": "assistant", "refusal": null, "annotations": [],
        "content": if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) },
    });
    if answer.stop == StopReason::Refusal {
        message["refusal"] = json!(text);
        message["content"] = Value::Null;
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let completion = json!({
        "id": answer.id, "object": "chat.completion", "created": EPOCH_S + call.at.as_secs(), "model": answer.model,
        "choices": [{
            "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer.stop),
        }],
        "usage": usage(&turn), "service_tier": "default", "system_fingerprint": "fp_simulator",
    });
    Output::Whole(Box::new(turn), completion)
}

fn message(answer: &Answer) -> (String, Vec<Value>) {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in &answer.blocks {
        match &block.content {
            AnswerContent::Text(part) => text.push_str(part),
            AnswerContent::ToolCall { id, name, input } => calls.push(json!({
                "id": id, "type": "function", "function": {"name": name, "arguments": input},
            })),
            _ => {}
        }
    }
    (text, calls)
}

fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens | StopReason::WindowExceeded => "length",
        _ => "stop",
    }
}

fn usage(turn: &Turn) -> Value {
    let split = &turn.split;
    let written = split.write_short + split.write_long;
    let prompt = split.uncached + written + split.read;
    json!({
        "prompt_tokens": prompt, "completion_tokens": turn.answer.output_tokens,
        "total_tokens": prompt + turn.answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": split.read, "cache_write_tokens": written, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": turn.answer.thinking_tokens, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

fn frames(call: &Call, turn: &Turn) -> Vec<Frame> {
    let answer = &turn.answer;
    let with_usage = call
        .body
        .field("stream_options")
        .and_then(|options| options.field("include_usage"))
        .and_then(|raw| raw.as_bool())
        == Some(true);
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": answer.id, "object": "chat.completion.chunk", "created": EPOCH_S + call.at.as_secs(),
            "model": answer.model, "service_tier": "default", "system_fingerprint": "fp_simulator",
            "choices": choices,
        });
        if with_usage {
            chunk["usage"] = usage.unwrap_or_default();
        }
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, finish: Option<&str>| {
        chunk(
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]),
            None,
        )
    };
    let mut frames = Vec::new();
    let mut push = |tokens: u64, text: String| frames.push(Frame { tokens, text });
    let mut written = 0;
    push(
        0,
        delta(
            json!({"role": "assistant", "content": "", "refusal": null}),
            None,
        ),
    );
    let mut index = 0;
    for block in &answer.blocks {
        let mut deltas: Vec<Value> = Vec::new();
        match &block.content {
            AnswerContent::Text(text) => {
                let field = if answer.stop == StopReason::Refusal {
                    "refusal"
                } else {
                    "content"
                };
                deltas.extend(pieces(text).map(|piece| json!({field: piece})));
            }
            AnswerContent::ToolCall { id, name, input } => {
                deltas.push(json!({"tool_calls": [{
                    "index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""},
                }]}));
                deltas.extend(pieces(input).map(|piece| {
                    json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                }));
                index += 1;
            }
            _ => {}
        }
        let count = deltas.len().max(1) as u64;
        for (at, part) in deltas.into_iter().enumerate() {
            push(
                written + block.tokens * (at as u64 + 1) / count,
                delta(part, None),
            );
        }
        written += block.tokens;
    }
    push(written, delta(json!({}), Some(finish_reason(answer.stop))));
    if with_usage {
        push(written, chunk(json!([]), Some(usage(turn))));
    }
    push(written, "data: [DONE]\n\n".to_owned());
    frames
}
