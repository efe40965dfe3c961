//! Anthropic Messages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_transcript::catalogue::TokenizerFamily;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::wire::Wire;

use crate::api_error::ApiError;
use crate::cache::Breakpoints;
use crate::persona::{Heard, Offer, ToolChoice};
use crate::prompt::{
    Key, Lifetime, Part, PartKind, Parts, Rendering, Role, digest, lifetime, link,
};
use crate::reply::{Answer, AnswerBlock, AnswerContent, Stop};
use crate::signature::{Signer, Verdict};
use crate::simulator::{Asked, Output, PrefixMismatch, Question, Simulator, Thinks, Turn, family};
use crate::stream::Frame;

/// What is sent while the model is silent.
pub(crate) const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";

const BINDING_CONTROLS: &str = "thinking-binding-controls-2026-08-01";

/// About so many bytes of text stand in one delta: some four tokens.
const DELTA_BYTES: usize = 24;

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
                        .and_then(|choice| choice.string_field("name"))
                        .unwrap_or_default(),
                ),
                _ => ToolChoice::Free,
            },
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

/// The chain that thinking is bound to: `system`, tools that are not deferred, messages, all without cache markers.
struct Binding {
    base: Key,
    covered: Key,
}

impl Binding {
    fn new(tools: Option<&Parts>, system: Option<&Parts>) -> Self {
        let mut base = digest(&[b"binding"]);
        let tools = tools.iter().flat_map(|parts| &parts.parts);
        for part in tools.filter(|part| !matches!(part.kind, PartKind::DeferredTool)) {
            base = link(&base, &part.digest);
        }
        base = digest(&[&base, b"system"]);
        for part in system.iter().flat_map(|parts| &parts.parts) {
            base = link(&base, &part.digest);
        }
        Self {
            base,
            covered: digest(&[b"messages"]),
        }
    }

    fn prefix(&self) -> Key {
        link(&self.base, &self.covered)
    }

    /// Goes on over one message and says of each of its blocks whether its signature holds, if it has one.
    fn message(&mut self, message: &Parts, signer: &Signer, model: &str) -> Vec<Option<Verdict>> {
        let mut verdicts = Vec::with_capacity(message.parts.len());
        let mut prefix = self.prefix();
        let mut covered = digest(&[&self.covered, format!("{:?}", message.role).as_bytes()]);
        for part in &message.parts {
            covered = link(&covered, &part.digest);
            verdicts.push(match &part.kind {
                PartKind::Thinking { text, signature } => {
                    let verdict = signer.verify(signature, model, &prefix, text);
                    // Blocks of one message are chained to each other.
                    prefix = link(&prefix, &part.digest);
                    Some(verdict)
                }
                PartKind::Compaction(block) => match (&block.encrypted, &block.signature) {
                    (Some(encrypted), Some(signature)) => {
                        match unseal(signer, encrypted, signature, &block.content) {
                            // The block stands for the messages that it covers.
                            Some(stands_for) => {
                                covered = stands_for;
                                Some(Verdict::Genuine)
                            }
                            None => Some(Verdict::Forged),
                        }
                    }
                    _ => None,
                },
                _ => None,
            });
        }
        self.covered = covered;
        verdicts
    }
}

/// What only the provider reads of a compaction, and its signature.
pub(crate) fn seal(signer: &Signer, covered: &Key, content: &Key) -> (String, String) {
    let encrypted = STANDARD.encode(covered);
    let signature = signer.sign("compaction", covered, content, 0);
    (encrypted, signature)
}

fn unseal(signer: &Signer, encrypted: &str, signature: &str, content: &Key) -> Option<Key> {
    let covered: Key = STANDARD.decode(encrypted).ok()?.try_into().ok()?;
    (signer.verify(signature, "compaction", &covered, content) == Verdict::Genuine)
        .then_some(covered)
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

pub(crate) fn counted(question: &Question) -> Value {
    json!({"input_tokens": question.prompt.tokens()})
}

pub(crate) fn output(asked: &Asked, read: &Read, turn: Turn) -> Output {
    if read.streams {
        let frames = frames(asked, read, &turn);
        Output::Stream(Box::new(turn), frames)
    } else {
        let message = message(read, &turn);
        Output::Whole(Box::new(turn), message)
    }
}

fn message(read: &Read, turn: &Turn) -> Value {
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
fn envelope(read: &Read, answer: &Answer) -> Value {
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

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::StopSequence => "stop_sequence",
        Stop::Pause => "pause_turn",
        Stop::Refusal => "refusal",
        Stop::WindowExceeded => "model_context_window_exceeded",
        Stop::Compaction => "compaction",
    }
}

fn stop_details(stop: Stop) -> Value {
    match stop {
        Stop::Refusal => json!({
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

fn frames(_asked: &Asked, read: &Read, turn: &Turn) -> Vec<Frame> {
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
