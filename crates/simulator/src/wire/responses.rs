//! OpenAI Responses.

mod answer;

use std::collections::HashMap;
use std::sync::Arc;

use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::wire::Wire;

use super::anthropic::call_ids;
use super::chat::{
    OUTPUT_MAX_DEFAULT, cache_options, check_window, is_one_at_a_time, offered, reasons, started,
    tool_choice,
};
use crate::api_error::ApiError;
use crate::call::{Call, Question, family};
use crate::persona::{Briefing, Offer, Tool};
use crate::prompt::{PartKind, PartStore, Parts, digest};
use crate::signature::{Signer, Verdict};

pub(crate) use answer::{compacted, counted, output};

use answer::unsealed;

/// Responses that are kept for `previous_response_id`, at most.
const STORED_MAX: usize = 10_000;

/// Items of earlier responses, by the id of the response.
#[derive(Debug, Default)]
pub(crate) struct StoredItems(HashMap<String, Arc<Vec<Raw>>>);

/// A parsed request.
pub(crate) struct ParsedCall {
    pub(crate) question: Question,
    items: Vec<Raw>,
    /// Namespaces of tools, by the names of the tools.
    namespaces: HashMap<String, String>,
    /// Whether the request wants encrypted reasoning.
    is_encrypted: bool,
    streams: bool,
}

pub(crate) fn read(
    store: &mut PartStore,
    signer: &Signer,
    stored: &StoredItems,
    call: &Call,
    compacts: bool,
) -> Result<ParsedCall, ApiError> {
    let body = &call.body;
    let [input, instructions, tools, text, choice, reasoning] = body.fields([
        "input",
        "instructions",
        "tools",
        "text",
        "tool_choice",
        "reasoning",
    ]);
    let mut items = items(input.as_ref(), body, stored)?;
    let triggers = items
        .last()
        .is_some_and(|item| item.string_field("type").as_deref() == Some("compaction_trigger"));
    if triggers {
        items.pop();
    }
    let tools = tools.filter(|tools| tools.kind() == Kind::Array);
    let mut rendering = started(store, call, tools.as_ref());
    let format = text.as_ref().and_then(|text| text.field("format"));
    rendering.fold(&[format.as_ref().map_or("", Raw::as_str).as_bytes()]);
    let effort = reasoning
        .as_ref()
        .and_then(|reasoning| reasoning.string_field("effort"));
    if call.model.cache.step_tokens <= 1 {
        rendering.fold(&[effort.as_deref().unwrap_or_default().as_bytes()]);
        rendering.fold(&[body
            .string_field("service_tier")
            .unwrap_or_default()
            .as_bytes()]);
    }
    if let Some(instructions) = &instructions {
        let parts = store.system(instructions, Wire::OpenAiResponses, call.scale);
        rendering.overhead(call.scale.message_overhead());
        for part in &parts.parts {
            rendering.place(part);
        }
    }
    let parts: Vec<_> = items
        .iter()
        .map(|item| store.message(item, Wire::OpenAiResponses, call.scale))
        .collect();
    check_opaque(signer, call, &parts)?;
    for part in parts.iter().flat_map(|message| &message.parts) {
        rendering.place(part);
    }
    let prompt = rendering.finish();
    check_window(call, prompt.tokens(), "input")?;
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
    let briefing = Briefing::from_items(
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
        briefing,
        breakpoints,
        lifetime,
        output_max: body
            .field("max_output_tokens")
            .and_then(|most| most.as_u64())
            .unwrap_or(OUTPUT_MAX_DEFAULT)
            .max(1),
        stop_sequences: Vec::new(),
        thinks: reasons(call, effort.as_deref()),
        is_compaction: compacts || triggers,
        call_ids: call_ids(&parts),
    };
    Ok(ParsedCall {
        question,
        items,
        namespaces,
        is_encrypted: include
            .iter()
            .any(|name| name == "reasoning.encrypted_content"),
        streams: body.field("stream").and_then(|raw| raw.as_bool()) == Some(true),
    })
}

/// The items of the input, behind those of the response that it continues.
fn items(input: Option<&Raw>, body: &Raw, stored: &StoredItems) -> Result<Vec<Raw>, ApiError> {
    let mut items: Vec<Raw> = Vec::new();
    if let Some(id) = body.string_field("previous_response_id") {
        let earlier = stored.0.get(&id).ok_or_else(|| {
            ApiError::new(400, format!("Previous response with id '{id}' not found."))
                .code("previous_response_not_found")
                .param("previous_response_id")
        })?;
        items.extend(earlier.iter().cloned());
    }
    match input {
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
    Ok(items)
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
fn check_opaque(signer: &Signer, call: &Call, items: &[Arc<Parts>]) -> Result<(), ApiError> {
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
                    let verdict =
                        signer.verify(signature, family(&call.model), &digest(&[]), &empty);
                    if verdict == Verdict::Forged {
                        return Err(refused(index));
                    }
                }
                PartKind::Compaction(block) => {
                    let sealed = block.encrypted.as_deref().unwrap_or_default();
                    if unsealed(signer, sealed).is_none() {
                        return Err(refused(index));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}
