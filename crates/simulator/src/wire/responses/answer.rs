//! The answer, whole or event by event.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_transcript::json::Raw;

use super::{ParsedCall, STORED_MAX, StoredItems};
use crate::call::{Call, Output, Question, Turn};
use crate::prompt::digest;
use crate::reply::{AnswerContent, StopReason};
use crate::signature::{Signer, Verdict};
use crate::stream::Frame;
use crate::wire::anthropic::{frame, pieces};
use crate::wire::chat::EPOCH_S;

/// A compaction, so that only the provider can read it: signature and text.
fn sealed(signer: &Signer, text: &str) -> String {
    let key = digest(&[text.as_bytes()]);
    let signature = signer.sign("compaction", &digest(&[]), &key, 0);
    STANDARD.encode(format!("{signature}.{text}"))
}

pub(super) fn unsealed(signer: &Signer, sealed: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(sealed).ok()?).ok()?;
    let (signature, text) = text.split_once('.')?;
    let key = digest(&[text.as_bytes()]);
    let verdict = signer.verify(signature, "compaction", &digest(&[]), &key);
    (verdict == Verdict::Genuine).then(|| text.to_owned())
}

pub(crate) fn counted(question: &Question) -> Value {
    json!({"object": "response.input_tokens", "input_tokens": question.prompt.tokens()})
}

/// `/responses/compact`: all messages of the user, then one item that only the provider can read.
pub(crate) fn compacted(signer: &Signer, call: &Call, read: &ParsedCall, turn: Turn) -> Output {
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
    output.extend(items(signer, read, &turn));
    let body = json!({
        "id": turn.answer.id, "object": "response.compaction", "created_at": EPOCH_S + call.at.as_secs(),
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

pub(crate) fn output(
    signer: &Signer,
    stored: &mut StoredItems,
    call: &Call,
    read: &ParsedCall,
    turn: Turn,
) -> Output {
    let items = items(signer, read, &turn);
    let stores = call.body.field("store").and_then(|raw| raw.as_bool()) != Some(false);
    if stores && stored.0.len() < STORED_MAX {
        let mut all = read.items.clone();
        all.extend(
            items
                .iter()
                .filter_map(|item| Raw::parse(item.to_string()).ok()),
        );
        stored.0.insert(turn.answer.id.clone(), Arc::new(all));
    }
    if read.streams {
        let frames = frames(call, &items, &turn);
        Output::Stream(Box::new(turn), frames)
    } else {
        let response = response(call, &turn, &items, true);
        Output::Whole(Box::new(turn), response)
    }
}

/// The output items.
fn items(signer: &Signer, read: &ParsedCall, turn: &Turn) -> Vec<Value> {
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
                    StopReason::Refusal => json!({"type": "refusal", "refusal": text}),
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
                "encrypted_content": sealed(signer, content.as_deref().unwrap_or_default()),
            }),
            AnswerContent::ServerToolCall { .. } | AnswerContent::WebSearchResult { .. } => continue,
        });
    }
    items
}

fn status(stop: StopReason) -> (&'static str, Value) {
    match stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => {
            ("incomplete", json!({"reason": "max_output_tokens"}))
        }
        _ => ("completed", Value::Null),
    }
}

fn response(call: &Call, turn: &Turn, items: &[Value], is_final: bool) -> Value {
    let answer = &turn.answer;
    let (status, details) = match is_final {
        true => status(answer.stop),
        false => ("in_progress", Value::Null),
    };
    json!({
        "id": answer.id, "object": "response", "created_at": EPOCH_S + call.at.as_secs(), "status": status,
        "error": null, "incomplete_details": details, "model": answer.model,
        "previous_response_id": call.body.string_field("previous_response_id"),
        "output": if is_final { json!(items) } else { json!([]) },
        "usage": if is_final { usage(turn) } else { Value::Null },
        "parallel_tool_calls": true, "store": call.body.field("store").and_then(|raw| raw.as_bool()) != Some(false),
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

/// The events of a stream, numbered in order.
#[derive(Default)]
struct Frames {
    frames: Vec<Frame>,
    sequence: u64,
}

impl Frames {
    fn push(&mut self, tokens: u64, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        self.frames.push(Frame {
            tokens,
            text: frame(kind, &data),
        });
    }

    /// One delta for each piece of a text, spread over its tokens.
    fn deltas(&mut self, text: &str, tokens: &Range<u64>, kind: &str, place: &Value) {
        let deltas: Vec<&str> = pieces(text).collect();
        let count = deltas.len().max(1) as u64;
        let all = tokens.end - tokens.start;
        for (position, piece) in (1..).zip(deltas) {
            let at = tokens.start + all * position / count;
            self.push(at, kind, merged(place, json!({"delta": piece})));
        }
    }

    /// A text or a refusal.
    fn text(
        &mut self,
        text: &str,
        is_refusal: bool,
        tokens: &Range<u64>,
        place: &Value,
        part: &Value,
    ) {
        let (kind, field) = match is_refusal {
            true => ("response.refusal", "refusal"),
            false => ("response.output_text", "text"),
        };
        let mut opening = json!({"type": part["type"]});
        opening[field] = json!("");
        let mut delta = merged(place, json!({"content_index": 0}));
        if !is_refusal {
            opening["annotations"] = json!([]);
            opening["logprobs"] = json!([]);
        }
        let place = delta.clone();
        if !is_refusal {
            delta["logprobs"] = json!([]);
        }
        let added = merged(&place, json!({"part": opening}));
        self.push(tokens.start, "response.content_part.added", added);
        self.deltas(text, tokens, &format!("{kind}.delta"), &delta);
        let whole = merged(&place, json!({field: text}));
        self.push(tokens.end, &format!("{kind}.done"), whole);
        let done = merged(&place, json!({"part": part}));
        self.push(tokens.end, "response.content_part.done", done);
    }

    fn tool_call(&mut self, input: &str, tokens: &Range<u64>, place: &Value) {
        let kind = "response.function_call_arguments";
        self.deltas(input, tokens, &format!("{kind}.delta"), place);
        let whole = merged(place, json!({"arguments": input}));
        self.push(tokens.end, &format!("{kind}.done"), whole);
    }
}

/// An item as its first event has it: without what is known only at its end.
fn opening(item: &Value) -> Value {
    let mut opening = item.clone();
    if let Some(fields) = opening.as_object_mut() {
        fields.remove("encrypted_content");
        for (name, value) in [
            ("status", json!("in_progress")),
            ("content", json!([])),
            ("arguments", json!("")),
        ] {
            if fields.contains_key(name) {
                fields.insert(name.to_owned(), value);
            }
        }
    }
    opening
}

fn frames(call: &Call, items: &[Value], turn: &Turn) -> Vec<Frame> {
    let answer = &turn.answer;
    let mut frames = Frames::default();
    let started = response(call, turn, items, false);
    frames.push(0, "response.created", json!({"response": started}));
    frames.push(0, "response.in_progress", json!({"response": started}));
    let mut written = 0;
    let shown = answer.blocks.iter().filter(|block| {
        !matches!(
            block.content,
            AnswerContent::ServerToolCall { .. } | AnswerContent::WebSearchResult { .. }
        )
    });
    for (index, (block, item)) in shown.zip(items).enumerate() {
        frames.push(
            written,
            "response.output_item.added",
            json!({"output_index": index, "item": opening(item)}),
        );
        let tokens = written..written + block.tokens;
        let place = json!({"item_id": item["id"], "output_index": index});
        match &block.content {
            AnswerContent::Text(text) => {
                let is_refusal = answer.stop == StopReason::Refusal;
                frames.text(text, is_refusal, &tokens, &place, &item["content"][0]);
            }
            AnswerContent::ToolCall { input, .. } => frames.tool_call(input, &tokens, &place),
            AnswerContent::Compaction { .. } => {
                frames.push(written, "response.compaction.compacting", place);
            }
            AnswerContent::Thinking { .. }
            | AnswerContent::ServerToolCall { .. }
            | AnswerContent::WebSearchResult { .. } => {}
        }
        written = tokens.end;
        frames.push(
            written,
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }
    let kind = match status(answer.stop).0 {
        "incomplete" => "response.incomplete",
        _ => "response.completed",
    };
    let last = response(call, turn, items, true);
    frames.push(written, kind, json!({"response": last}));
    frames.frames
}

fn merged(place: &Value, fields: Value) -> Value {
    let mut all = place.clone();
    if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
        all.extend(fields);
    }
    all
}
