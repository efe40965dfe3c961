//! OpenAI Responses.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::wire::Wire;

use super::anthropic::{call_ids, frame, pieces};
use super::chat::{
    EPOCH_S, OUTPUT_MAX_DEFAULT, cache_options, check_window, is_one_at_a_time, offered, reasons,
    started, tool_choice,
};
use crate::api_error::ApiError;
use crate::persona::{Heard, Offer, Tool};
use crate::prompt::{PartKind, Parts, digest};
use crate::reply::{AnswerContent, Stop};
use crate::signature::Verdict;
use crate::simulator::{Asked, Output, Question, Simulator, Turn, family};
use crate::stream::Frame;

/// Responses that are kept for `previous_response_id`, at most.
const STORED_MAX: usize = 10_000;

/// Items of earlier responses, by the id of the response.
#[derive(Debug, Default)]
pub(crate) struct Stored(HashMap<String, Arc<Vec<Raw>>>);

/// A request, read.
pub(crate) struct Read {
    pub(crate) question: Question,
    items: Vec<Raw>,
    /// Namespaces of tools, by the names of the tools.
    namespaces: HashMap<String, String>,
    /// Encrypted reasoning is asked for.
    is_encrypted: bool,
    streams: bool,
}

pub(crate) fn read(
    simulator: &mut Simulator,
    asked: &Asked,
    compacts: bool,
) -> Result<Read, ApiError> {
    let body = &asked.body;
    let [input, instructions, tools, text, choice, reasoning] = body.fields([
        "input",
        "instructions",
        "tools",
        "text",
        "tool_choice",
        "reasoning",
    ]);
    let mut items: Vec<Raw> = Vec::new();
    if let Some(id) = body.string_field("previous_response_id") {
        let earlier = simulator.stored.0.get(&id).ok_or_else(|| {
            ApiError::new(400, format!("Previous response with id '{id}' not found."))
                .code("previous_response_not_found")
                .param("previous_response_id")
        })?;
        items.extend(earlier.iter().cloned());
    }
    match &input {
        Some(input) if input.kind() == Kind::String => {
            let item = format!(
                r#"{{"type":"message","role":"user","content":{}}}"#,
                input.as_str()
            );
            items.extend(Raw::parse(item).ok());
        }
        Some(input) => items.extend(input.array()),
        None => {}
    }
    let triggers = items
        .last()
        .is_some_and(|item| item.string_field("type").as_deref() == Some("compaction_trigger"));
    if triggers {
        items.pop();
    }
    let tools = tools.filter(|tools| tools.kind() == Kind::Array);
    let mut rendering = started(simulator, asked, tools.as_ref());
    let format = text.as_ref().and_then(|text| text.field("format"));
    rendering.fold(&[format.as_ref().map_or("", Raw::as_str).as_bytes()]);
    let effort = reasoning
        .as_ref()
        .and_then(|reasoning| reasoning.string_field("effort"));
    if asked.model.cache.step_tokens <= 1 {
        rendering.fold(&[effort.as_deref().unwrap_or_default().as_bytes()]);
        rendering.fold(&[body
            .string_field("service_tier")
            .unwrap_or_default()
            .as_bytes()]);
    }
    if let Some(instructions) = &instructions {
        let parts = simulator
            .parts
            .system(instructions, Wire::OpenAiResponses, asked.scale);
        rendering.overhead(asked.scale.message_overhead());
        for part in &parts.parts {
            rendering.place(part);
        }
    }
    let parts: Vec<_> = items
        .iter()
        .map(|item| {
            simulator
                .parts
                .message(item, Wire::OpenAiResponses, asked.scale)
        })
        .collect();
    check_opaque(simulator, asked, &parts)?;
    for part in parts.iter().flat_map(|message| &message.parts) {
        rendering.place(part);
    }
    let prompt = rendering.finish();
    check_window(asked, prompt.tokens(), "input")?;
    let include = super::anthropic::strings(body.field("include"));
    let schema = format.as_ref().and_then(|format| format.field("schema"));
    let kind = format
        .as_ref()
        .and_then(|format| format.string_field("type"));
    let mut namespaces = HashMap::new();
    let offered: Vec<Tool> = tools
        .into_iter()
        .chain(items.iter().filter_map(additional_tools))
        .flat_map(|tools| functions(&tools, &mut namespaces))
        .collect();
    let heard = Heard::from_items(
        body,
        &items,
        Offer {
            tools: offered,
            choice: tool_choice(choice.as_ref()),
            is_one_at_a_time: is_one_at_a_time(body),
            schema,
            wants_json: kind.as_deref() == Some("json_object"),
        },
        digest(&[]),
    );
    let (breakpoints, lifetime) = cache_options(body);
    let question = Question {
        prompt,
        prefix: digest(&[]),
        heard,
        breakpoints,
        lifetime,
        output_max: body
            .field("max_output_tokens")
            .and_then(|most| most.as_u64())
            .unwrap_or(OUTPUT_MAX_DEFAULT)
            .max(1),
        stop_sequences: Vec::new(),
        thinks: reasons(asked, effort.as_deref()),
        compacts: compacts || triggers,
        call_ids: call_ids(&parts),
    };
    Ok(Read {
        question,
        items,
        namespaces,
        is_encrypted: include
            .iter()
            .any(|name| name == "reasoning.encrypted_content"),
        streams: body.field("stream").and_then(|raw| raw.as_bool()) == Some(true),
    })
}

/// The tools that an item of the input adds.
fn additional_tools(item: &Raw) -> Option<Raw> {
    let [kind, tools] = item.fields(["type", "tools"]);
    let kind = kind?.as_text()?;
    (kind.decode() == "additional_tools")
        .then_some(tools)
        .flatten()
}

/// The functions of a list of tools, those in namespaces too.
fn functions(tools: &Raw, namespaces: &mut HashMap<String, String>) -> Vec<Tool> {
    let mut functions = offered(tools, false);
    for tool in tools.array() {
        let [kind, name, inner] = tool.fields(["type", "name", "tools"]);
        let is_namespace = kind
            .and_then(|kind| kind.as_text())
            .is_some_and(|kind| kind.decode() == "namespace");
        let (Some(inner), Some(name)) = (inner.filter(|_| is_namespace), name) else {
            continue;
        };
        let name = name.as_text().map(|name| name.decode().into_owned());
        for function in offered(&inner, false) {
            let namespace = name.clone().unwrap_or_default();
            namespaces.insert(function.name.clone(), namespace);
            functions.push(function);
        }
    }
    functions
}

/// Encrypted reasoning and compactions have to come from here, unchanged.
fn check_opaque(
    simulator: &Simulator,
    asked: &Asked,
    items: &[Arc<Parts>],
) -> Result<(), ApiError> {
    let refused = |index: usize| {
        ApiError::new(
            400,
            format!("The encrypted content of item {index} could not be verified."),
        )
        .code("invalid_encrypted_content")
        .param(format!("input[{index}].encrypted_content"))
    };
    let empty = digest(&[b""]);
    for (index, item) in items.iter().enumerate() {
        for part in &item.parts {
            match &part.kind {
                PartKind::Thinking { signature, .. } if !signature.is_empty() => {
                    let verdict = simulator.signer.verify(
                        signature,
                        family(&asked.model),
                        &digest(&[]),
                        &empty,
                    );
                    if verdict == Verdict::Forged {
                        return Err(refused(index));
                    }
                }
                PartKind::Compaction(block) => {
                    let sealed = block.encrypted.as_deref().unwrap_or_default();
                    if unsealed(simulator, sealed).is_none() {
                        return Err(refused(index));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// A compaction, so that only the provider can read it: signature and text.
fn sealed(simulator: &Simulator, text: &str) -> String {
    let key = digest(&[text.as_bytes()]);
    let signature = simulator.signer.sign("compaction", &digest(&[]), &key, 0);
    STANDARD.encode(format!("{signature}.{text}"))
}

fn unsealed(simulator: &Simulator, sealed: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(sealed).ok()?).ok()?;
    let (signature, text) = text.split_once('.')?;
    let key = digest(&[text.as_bytes()]);
    let verdict = simulator
        .signer
        .verify(signature, "compaction", &digest(&[]), &key);
    (verdict == Verdict::Genuine).then(|| text.to_owned())
}

pub(crate) fn counted(question: &Question) -> Value {
    json!({"object": "response.input_tokens", "input_tokens": question.prompt.tokens()})
}

/// `/responses/compact`: all messages of the user, then one item that only the provider can read.
pub(crate) fn compacted(simulator: &Simulator, asked: &Asked, read: &Read, turn: Turn) -> Output {
    let users = read
        .items
        .iter()
        .filter(|item| item.string_field("role").as_deref() == Some("user"));
    let suffix = turn.answer.id.trim_start_matches("resp_");
    let mut output: Vec<Value> = users
        .filter_map(|item| serde_json::from_str(item.as_str()).ok())
        .enumerate()
        .map(|(index, item)| in_full(item, &format!("msg_{suffix}u{index}")))
        .collect();
    output.extend(items(simulator, read, &turn));
    let body = json!({
        "id": turn.answer.id, "object": "response.compaction", "created_at": EPOCH_S + asked.at.as_secs(),
        "output": output, "usage": usage(&turn),
    });
    Output::Whole(Box::new(turn), body)
}

/// A message of the user in its long form: requests may leave out the type and write a text instead of parts.
fn in_full(mut message: Value, id: &str) -> Value {
    if let Some(fields) = message.as_object_mut() {
        for (name, value) in [("id", id), ("type", "message"), ("status", "completed")] {
            let known = fields.entry(name).or_insert(Value::Null);
            if known.is_null() {
                *known = json!(value);
            }
        }
        if let Some(content) = fields.get_mut("content")
            && let Value::String(text) = content
        {
            *content = json!([{"type": "input_text", "text": text}]);
        }
    }
    message
}

pub(crate) fn output(simulator: &mut Simulator, asked: &Asked, read: &Read, turn: Turn) -> Output {
    let items = items(simulator, read, &turn);
    let stores = asked.body.field("store").and_then(|raw| raw.as_bool()) != Some(false);
    if stores && simulator.stored.0.len() < STORED_MAX {
        let mut all = read.items.clone();
        all.extend(
            items
                .iter()
                .filter_map(|item| Raw::parse(item.to_string()).ok()),
        );
        simulator
            .stored
            .0
            .insert(turn.answer.id.clone(), Arc::new(all));
    }
    if read.streams {
        let frames = frames(asked, &items, &turn);
        Output::Stream(Box::new(turn), frames)
    } else {
        let response = response(asked, &turn, &items, true);
        Output::Whole(Box::new(turn), response)
    }
}

/// The output items.
fn items(simulator: &Simulator, read: &Read, turn: &Turn) -> Vec<Value> {
    let answer = &turn.answer;
    let suffix = answer.id.trim_start_matches("resp_");
    let mut items = Vec::new();
    for (index, block) in answer.blocks.iter().enumerate() {
        items.push(match &block.content {
            AnswerContent::Thinking { signature, .. } => {
                let mut item = json!({"id": format!("rs_{suffix}{index}"), "type": "reasoning", "summary": []});
                if read.is_encrypted {
                    item["encrypted_content"] = json!(signature);
                }
                item
            }
            AnswerContent::Text(text) => {
                let part = match answer.stop {
                    Stop::Refusal => json!({"type": "refusal", "refusal": text}),
                    _ => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
                };
                json!({
                    "id": format!("msg_{suffix}{index}"), "type": "message", "role": "assistant",
                    "status": "completed", "content": [part],
                })
            }
            AnswerContent::ToolCall { id, name, input } => {
                let mut item = json!({
                    "id": format!("fc_{suffix}{index}"), "type": "function_call", "status": "completed",
                    "call_id": id, "name": name, "arguments": input,
                });
                if let Some(namespace) = read.namespaces.get(name) {
                    item["namespace"] = json!(namespace);
                }
                item
            }
            AnswerContent::Compaction { content, .. } => json!({
                "id": format!("cmp_{suffix}{index}"), "type": "compaction",
                "encrypted_content": sealed(simulator, content.as_deref().unwrap_or_default()),
            }),
            AnswerContent::ServerToolCall { .. } | AnswerContent::WebSearchResult { .. } => continue,
        });
    }
    items
}

fn status(stop: Stop) -> (&'static str, Value) {
    match stop {
        Stop::MaxTokens | Stop::WindowExceeded => {
            ("incomplete", json!({"reason": "max_output_tokens"}))
        }
        _ => ("completed", Value::Null),
    }
}

fn response(asked: &Asked, turn: &Turn, items: &[Value], is_final: bool) -> Value {
    let answer = &turn.answer;
    let (status, details) = match is_final {
        true => status(answer.stop),
        false => ("in_progress", Value::Null),
    };
    json!({
        "id": answer.id, "object": "response", "created_at": EPOCH_S + asked.at.as_secs(), "status": status,
        "error": null, "incomplete_details": details, "model": answer.model,
        "previous_response_id": asked.body.string_field("previous_response_id"),
        "output": if is_final { json!(items) } else { json!([]) },
        "usage": if is_final { usage(turn) } else { Value::Null },
        "parallel_tool_calls": true, "store": asked.body.field("store").and_then(|raw| raw.as_bool()) != Some(false),
    })
}

fn usage(turn: &Turn) -> Value {
    let split = &turn.split;
    let written = split.write_short + split.write_long;
    let input = split.uncached + written + split.read;
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": split.read, "cache_write_tokens": written,
            "cache_write_tokens_details": {"ttl_30m_tokens": split.write_short, "ttl_12h_tokens": split.write_long},
        },
        "output_tokens": turn.answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": turn.answer.thinking_tokens},
        "total_tokens": input + turn.answer.output_tokens,
    })
}

fn frames(asked: &Asked, items: &[Value], turn: &Turn) -> Vec<Frame> {
    let answer = &turn.answer;
    let mut frames = Vec::new();
    let mut sequence = 0u64;
    let mut push = |tokens: u64, kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(sequence);
        sequence += 1;
        frames.push(Frame {
            tokens,
            text: frame(kind, &data),
        });
    };
    let started = response(asked, turn, items, false);
    push(0, "response.created", json!({"response": started}));
    push(0, "response.in_progress", json!({"response": started}));
    let mut written = 0;
    let shown = answer.blocks.iter().filter(|block| {
        !matches!(
            block.content,
            AnswerContent::ServerToolCall { .. } | AnswerContent::WebSearchResult { .. }
        )
    });
    for (index, (block, item)) in shown.zip(items).enumerate() {
        let id = item["id"].clone();
        let mut opening = item.clone();
        if let Some(fields) = opening.as_object_mut() {
            // What is only known at the end is not there at the beginning.
            fields.remove("encrypted_content");
            if fields.contains_key("status") {
                fields.insert("status".to_owned(), json!("in_progress"));
            }
            if fields.contains_key("content") {
                fields.insert("content".to_owned(), json!([]));
            }
            if fields.contains_key("arguments") {
                fields.insert("arguments".to_owned(), json!(""));
            }
        }
        push(
            written,
            "response.output_item.added",
            json!({"output_index": index, "item": opening}),
        );
        let end = written + block.tokens;
        let at = |position: usize, count: usize| {
            written + block.tokens * (position as u64 + 1) / count.max(1) as u64
        };
        match &block.content {
            AnswerContent::Text(text) => {
                let is_refusal = answer.stop == Stop::Refusal;
                let (kind, field) = match is_refusal {
                    true => ("response.refusal", "refusal"),
                    false => ("response.output_text", "text"),
                };
                let part = match is_refusal {
                    true => json!({"type": "refusal", "refusal": ""}),
                    false => {
                        json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []})
                    }
                };
                let place = json!({"item_id": id, "output_index": index, "content_index": 0});
                let with = |fields: Value| merged(&place, fields);
                push(
                    written,
                    "response.content_part.added",
                    with(json!({"part": part})),
                );
                let deltas: Vec<&str> = pieces(text).collect();
                let count = deltas.len();
                for (position, piece) in deltas.into_iter().enumerate() {
                    let mut fields = json!({"delta": piece});
                    if !is_refusal {
                        fields["logprobs"] = json!([]);
                    }
                    push(at(position, count), &format!("{kind}.delta"), with(fields));
                }
                push(end, &format!("{kind}.done"), with(json!({field: text})));
                push(
                    end,
                    "response.content_part.done",
                    with(json!({"part": item["content"][0]})),
                );
            }
            AnswerContent::ToolCall { input, .. } => {
                let place = json!({"item_id": id, "output_index": index});
                let deltas: Vec<&str> = pieces(input).collect();
                let count = deltas.len();
                for (position, piece) in deltas.into_iter().enumerate() {
                    push(
                        at(position, count),
                        "response.function_call_arguments.delta",
                        merged(&place, json!({"delta": piece})),
                    );
                }
                push(
                    end,
                    "response.function_call_arguments.done",
                    merged(&place, json!({"arguments": input})),
                );
            }
            AnswerContent::Compaction { .. } => push(
                written,
                "response.compaction.compacting",
                json!({"item_id": id, "output_index": index}),
            ),
            _ => {}
        }
        written = end;
        push(
            written,
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }
    let kind = match status(answer.stop).0 {
        "incomplete" => "response.incomplete",
        _ => "response.completed",
    };
    push(
        written,
        kind,
        json!({"response": response(asked, turn, items, true)}),
    );
    frames
}

fn merged(place: &Value, fields: Value) -> Value {
    let mut all = place.clone();
    if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
        all.extend(fields);
    }
    all
}
