//! The answer, whole or event by event.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::ParsedCall;
use crate::call::{Call, Output, Question, Turn};
use crate::reply::{Answer, AnswerBlock, AnswerContent, StopReason};
use crate::stream::Frame;

/// What is sent while the model is silent.
pub(crate) const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";

/// Bytes of text in one delta: about four tokens.
const DELTA_BYTES: usize = 24;

pub(crate) fn counted(question: &Question) -> Value {
    json!({"input_tokens": question.prompt.tokens()})
}

pub(crate) fn output(call: &Call, read: &ParsedCall, turn: Turn) -> Output {
    if read.streams {
        let frames = frames(call, read, &turn);
        Output::Stream(Box::new(turn), frames)
    } else {
        let message = message(read, &turn);
        Output::Whole(Box::new(turn), message)
    }
}

fn message(read: &ParsedCall, turn: &Turn) -> Value {
    let answer = &turn.answer;
    let mut message = envelope(read, answer);
    if let Some(message) = message.as_object_mut() {
        let content = answer.blocks.iter().map(block).collect();
        message.insert("content".to_owned(), Value::Array(content));
        message.insert("stop_reason".to_owned(), stop_reason(answer.stop).into());
        message.insert("stop_sequence".to_owned(), json!(answer.stop_sequence));
        message.insert("stop_details".to_owned(), stop_details(answer.stop));
        message.insert("usage".to_owned(), usage(turn, answer.output_tokens, true));
    }
    message
}

/// The message before it has content.
fn envelope(read: &ParsedCall, answer: &Answer) -> Value {
    let mut envelope = json!({
        "id": answer.id, "type": "message", "role": "assistant", "model": answer.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "container": null,
    });
    if let Some(fields) = envelope.as_object_mut() {
        if let Some(transformations) = &read.transformations {
            fields.insert("input_transformations".to_owned(), json!(transformations));
        }
        if read.diagnoses {
            fields.insert("diagnostics".to_owned(), Value::Null);
        }
    }
    envelope
}

fn usage(turn: &Turn, output_tokens: u64, is_final: bool) -> Value {
    let split = &turn.split;
    let mut usage = json!({
        "input_tokens": split.uncached,
        "cache_creation_input_tokens": split.write_short + split.write_long,
        "cache_read_input_tokens": split.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": split.write_short,
            "ephemeral_1h_input_tokens": split.write_long,
        },
        "output_tokens": output_tokens,
        "service_tier": "standard",
    });
    if is_final
        && turn.answer.thinking_tokens > 0
        && let Some(fields) = usage.as_object_mut()
    {
        let details = json!({"thinking_tokens": turn.answer.thinking_tokens});
        fields.insert("output_tokens_details".to_owned(), details);
    }
    usage
}

fn block(block: &AnswerBlock) -> Value {
    match &block.content {
        AnswerContent::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        AnswerContent::Text(text) => json!({"type": "text", "text": text}),
        AnswerContent::ToolCall { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": object(input)})
        }
        AnswerContent::ServerToolCall { id, name, input } => {
            json!({"type": "server_tool_use", "id": id, "name": name, "input": object(input)})
        }
        AnswerContent::WebSearchResult { call_id } => json!({
            "type": "web_search_tool_result", "tool_use_id": call_id,
            "content": [{
                "type": "web_search_result", "url": "https://example.com/notes", "title": "Release notes",
                "encrypted_content": STANDARD.encode(call_id), "page_age": null,
            }],
        }),
        AnswerContent::Compaction {
            content,
            encrypted,
            signature,
        } => json!({
            "type": "compaction", "content": content, "encrypted_content": encrypted, "signature": signature,
        }),
    }
}

/// Arguments are objects; what a script gives otherwise is wrapped.
fn object(input: &str) -> Value {
    match serde_json::from_str(input) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => json!({"input": input}),
    }
}

fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Pause => "pause_turn",
        StopReason::Refusal => "refusal",
        StopReason::WindowExceeded => "model_context_window_exceeded",
        StopReason::Compaction => "compaction",
    }
}

fn stop_details(stop: StopReason) -> Value {
    match stop {
        StopReason::Refusal => json!({
            "type": "refusal", "category": "reasoning_extraction",
            "explanation": "The request was declined.",
        }),
        _ => Value::Null,
    }
}

/// One event as it goes over the wire.
pub(crate) fn frame(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn frames(_asked: &Call, read: &ParsedCall, turn: &Turn) -> Vec<Frame> {
    let answer = &turn.answer;
    let mut frames = Vec::new();
    let mut written = 0;
    let mut push = |tokens: u64, name: &str, data: Value| {
        frames.push(Frame {
            tokens,
            text: frame(name, &data),
        });
    };
    let mut start = envelope(read, answer);
    if let Some(start) = start.as_object_mut() {
        let first_tokens = answer.output_tokens.min(1);
        start.insert("usage".to_owned(), usage(turn, first_tokens, false));
    }
    push(
        0,
        "message_start",
        json!({"type": "message_start", "message": start}),
    );
    for (index, content) in answer.blocks.iter().enumerate() {
        let (opening, deltas) = opened(content);
        push(
            written,
            "content_block_start",
            json!({"type": "content_block_start", "index": index, "content_block": opening}),
        );
        if index == 0 {
            push(written, "ping", json!({"type": "ping"}));
        }
        let count = deltas.len().max(1) as u64;
        for (at, delta) in deltas.into_iter().enumerate() {
            let tokens = written + content.tokens * (at as u64 + 1) / count;
            push(
                tokens,
                "content_block_delta",
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
            );
        }
        written += content.tokens;
        push(
            written,
            "content_block_stop",
            json!({"type": "content_block_stop", "index": index}),
        );
    }
    push(
        answer.output_tokens,
        "message_delta",
        json!({
            "type": "message_delta",
            "delta": {
                "stop_reason": stop_reason(answer.stop), "stop_sequence": answer.stop_sequence,
                "stop_details": stop_details(answer.stop), "container": null,
            },
            "usage": usage(turn, answer.output_tokens, true),
        }),
    );
    push(
        answer.output_tokens,
        "message_stop",
        json!({"type": "message_stop"}),
    );
    frames
}

/// How a block begins, and the deltas that complete it.
fn opened(content: &AnswerBlock) -> (Value, Vec<Value>) {
    match &content.content {
        AnswerContent::Thinking { text, signature } => {
            let mut deltas: Vec<Value> = pieces(text)
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .collect();
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
            (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                deltas,
            )
        }
        AnswerContent::Text(text) => (
            json!({"type": "text", "text": ""}),
            pieces(text)
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect(),
        ),
        AnswerContent::ToolCall { id, name, input } => (
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            input_deltas(input),
        ),
        AnswerContent::ServerToolCall { id, name, input } => (
            json!({"type": "server_tool_use", "id": id, "name": name, "input": {}}),
            input_deltas(input),
        ),
        AnswerContent::Compaction {
            content,
            encrypted,
            signature,
        } => (
            json!({"type": "compaction", "content": null, "signature": signature}),
            vec![
                json!({"type": "compaction_delta", "content": content, "encrypted_content": encrypted}),
            ],
        ),
        AnswerContent::WebSearchResult { .. } => (block(content), Vec::new()),
    }
}

fn input_deltas(input: &str) -> Vec<Value> {
    let input = object(input).to_string();
    let delta = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
    // The first fragment is empty.
    let mut deltas = vec![delta("")];
    if input != "{}" {
        deltas.extend(pieces(&input).map(delta));
    }
    deltas
}

/// A text in pieces of a few tokens each.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.ceil_char_boundary(DELTA_BYTES.min(rest.len()));
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}
