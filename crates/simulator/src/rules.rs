//! From findings of the wire checker to the one error that the provider answers with.
//!
//! What is wrong with a body is decided by [`throughline_transcript::check`] alone, so that the simulator and the checker
//! agree by construction. Here it is decided which finding comes first and how the provider says it. The wordings are
//! those that are documented or well attested; otherwise the checker's own sentence follows the path.
//!
//! In one thing the simulator is stricter: of a field that no documented request has, the checker warns, since it may be
//! newer than the checker. The provider refuses it, and so it is refused here, where it is at the top of the body. On
//! OpenAI's wires that holds for OpenAI's own models: compatible servers have fields of their own.

use std::fmt::Write as _;

use throughline_transcript::catalogue::Model;
use throughline_transcript::check::{CheckOptions, Finding, Severity, check};
use throughline_transcript::json::Raw;
use throughline_transcript::wire::Wire;

use crate::api_error::ApiError;

/// The checker's code of a field that is not documented.
const UNKNOWN_FIELD: &str = "unknown-field";

/// The groups of rules, in the order in which the provider looks at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Size,
    Shape,
    Settings,
    Roles,
    Texts,
    Pairs,
    Markers,
    Prefill,
}

/// What is known of a request besides its body.
pub(crate) struct RequestFacts<'a> {
    pub(crate) wire: Wire,
    pub(crate) model: Option<&'a Model>,
    pub(crate) version: Option<&'a str>,
    pub(crate) betas: &'a [&'a str],
    /// The endpoint only counts, and needs no `max_tokens`.
    pub(crate) counts_only: bool,
    pub(crate) body_bytes_max: usize,
}

/// The error that a body is answered with, without a look at models if `known.model` is not there: then only its shape
/// counts, since that comes before the model.
pub(crate) fn first_error(body: &Raw, known: &RequestFacts<'_>) -> Option<ApiError> {
    let options = CheckOptions {
        model: known.model,
        anthropic_version: known.version,
        betas: Some(known.betas),
        body_bytes_max: Some(known.body_bytes_max),
        ..CheckOptions::default()
    };
    let report = check(body, known.wire, &options);
    let refuses_unknown = match known.wire {
        Wire::Anthropic => true,
        Wire::OpenAiChat | Wire::OpenAiResponses => {
            known.model.is_some_and(|model| model.provider == "openai")
        }
    };
    let errors: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| match finding.code {
            UNKNOWN_FIELD => refuses_unknown && is_top_level(body, &finding.path),
            "missing-field" if known.counts_only => finding.path != "max_tokens",
            _ => finding.severity == Severity::Error,
        })
        .collect();
    let first = errors.iter().min_by_key(|finding| stage(finding))?;
    if known.model.is_none() && stage(first) > Stage::Shape {
        return None;
    }
    Some(match known.wire {
        Wire::Anthropic => anthropic(first, &errors, body, known.model),
        Wire::OpenAiChat | Wire::OpenAiResponses => openai(first, &errors, body, known.wire),
    })
}

/// Whether a path is that of a field of the body itself.
fn is_top_level(body: &Raw, path: &str) -> bool {
    body.field(path).is_some()
}

fn stage(finding: &Finding) -> Stage {
    let code = finding.code;
    match code {
        "body-too-large" => Stage::Size,
        "max-tokens-above-model"
        | "prewarm-conflict"
        | "sampling-removed"
        | "sampling-with-thinking"
        | "forced-tool-choice"
        | "forced-tool-with-thinking"
        | "task-budget" => Stage::Settings,
        "first-message-not-user"
        | "block-wrong-role"
        | "document-in-assistant"
        | "citations-in-user-text" => Stage::Roles,
        "empty-text" | "blank-text" | "empty-content" => Stage::Texts,
        "duplicate-tool-use-id"
        | "duplicate-tool-result"
        | "toolset-name-mismatch"
        | "reasoning-without-item" => Stage::Pairs,
        _ if code.starts_with("thinking-") || code.starts_with("compaction-") => Stage::Settings,
        _ if code.starts_with("system-") && code != "system-not-text" => Stage::Roles,
        _ if code.starts_with("tool-use-")
            || code.starts_with("tool-result-")
            || code.starts_with("server-") =>
        {
            Stage::Pairs
        }
        _ if code.starts_with("cache-") || code == "too-many-cache-markers" => Stage::Markers,
        _ if code.starts_with("prefill-") => Stage::Prefill,
        _ => Stage::Shape,
    }
}

fn anthropic(first: &Finding, errors: &[&Finding], body: &Raw, model: Option<&Model>) -> ApiError {
    let path = dotted(&first.path);
    let at = value_at(body, &first.path);
    let said = |at: &Option<Raw>| {
        at.as_ref()
            .and_then(|raw| raw.as_text())
            .map(|text| text.decode().into_owned())
            .unwrap_or_default()
    };
    let message = match first.code {
        "body-too-large" => return ApiError::new(413, "Request exceeds the maximum size"),
        "invalid-json" | "body-not-object" => {
            "The request body is not valid JSON: expected an object".to_owned()
        }
        "lone-surrogate" => {
            "The request body is not valid JSON: no low surrogate in string".to_owned()
        }
        "missing-field" => format!("{path}: Field required"),
        UNKNOWN_FIELD => format!("{}: Extra inputs are not permitted", first.path),
        "messages-empty" => "messages: at least one message is required".to_owned(),
        "empty-content" => format!(
            "{}: all messages must have non-empty content except for the optional final assistant message",
            up_to_message(&path)
        ),
        "empty-text" => "messages: text content blocks must be non-empty".to_owned(),
        "blank-text" => "messages: text content blocks must contain non-whitespace text".to_owned(),
        "cache-marker-on-empty-text" => {
            let block = path.trim_end_matches(".cache_control");
            format!("{block}.text: cache_control cannot be set for empty text blocks")
        }
        "too-many-cache-markers" => {
            let found = errors
                .iter()
                .rev()
                .filter(|finding| finding.code == first.code)
                .find_map(|finding| number_in(&finding.message))
                .filter(|found| *found > 4)
                .unwrap_or(5);
            format!("A maximum of 4 blocks with cache_control may be provided. Found {found}.")
        }
        "tool-use-without-result" => {
            let message_path = up_to_message(&path);
            let mut ids = String::new();
            for finding in errors {
                if finding.code == first.code
                    && up_to_message(&dotted(&finding.path)) == message_path
                {
                    let id = said(&value_at(body, &finding.path));
                    let separator = if ids.is_empty() { "" } else { ", " };
                    let _ = write!(ids, "{separator}{id}");
                }
            }
            format!(
                "{message_path}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each \
                 `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        }
        "tool-result-without-use" => {
            let block = path.trim_end_matches(".tool_use_id");
            format!(
                "{block}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must \
                 have a corresponding `tool_use` block in the previous message.",
                said(&at)
            )
        }
        "duplicate-tool-use-id" => format!("{path}: `tool_use` ids must be unique"),
        "prefill-unsupported" => {
            "This model does not support assistant message prefill. The conversation must end \
                                  with a user message."
                .to_owned()
        }
        "prefill-trailing-space" => {
            "messages: final assistant content cannot end with trailing whitespace".to_owned()
        }
        "thinking-mode-unsupported" | "thinking-disabled-at-effort" => {
            let mode = body
                .field("thinking")
                .and_then(|thinking| thinking.string_field("type"))
                .unwrap_or_default();
            match mode.as_str() {
                "adaptive" => "adaptive thinking is not supported on this model".to_owned(),
                "enabled" => "\"thinking.type.enabled\" is not supported for this model. Use \
                              \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."
                    .to_owned(),
                mode => format!("\"thinking.type.{mode}\" is not supported for this model."),
            }
        }
        "sampling-removed" => format!("`{path}` is not supported for this model"),
        "system-unsupported" => "role 'system' is not supported on this model".to_owned(),
        "max-tokens-above-model" => {
            let wanted = body
                .field("max_tokens")
                .map(|raw| raw.as_str().to_owned())
                .unwrap_or_default();
            let (id, most) = model.map_or(("this model", 0), |model| {
                (model.id.as_str(), model.output_max.unwrap_or(0))
            });
            format!(
                "max_tokens: {wanted} > {most}, which is the maximum allowed number of output tokens for {id}"
            )
        }
        _ if path.is_empty() => first.message.clone(),
        _ => format!("{path}: {}", first.message),
    };
    let error = ApiError::new(400, message);
    match first.code {
        "compaction-block-misplaced"
        | "compaction-block-ambiguous"
        | "compaction-incomplete-turn"
        | "compaction-nothing-to-summarize" => error.error_code(&first.code.replace('-', "_")),
        _ => error,
    }
}

fn openai(first: &Finding, errors: &[&Finding], body: &Raw, wire: Wire) -> ApiError {
    let said = |finding: &Finding| {
        value_at(body, &finding.path)
            .and_then(|raw| raw.as_text())
            .map(|text| text.decode().into_owned())
            .unwrap_or_default()
    };
    let is_chat = wire == Wire::OpenAiChat;
    let message = match first.code {
        "body-too-large" => return ApiError::new(413, "Request body is too large"),
        "invalid-json" | "body-not-object" | "lone-surrogate" => {
            "We could not parse the JSON body of your request.".to_owned()
        }
        "missing-field" => format!("Missing required parameter: '{}'.", first.path),
        UNKNOWN_FIELD if wire == Wire::OpenAiChat => {
            let message = format!("Unrecognized request argument supplied: {}", first.path);
            return ApiError::new(400, message);
        }
        UNKNOWN_FIELD => format!("Unknown parameter: '{}'.", first.path),
        "tool-use-without-result" if is_chat => {
            let ids: Vec<String> = errors
                .iter()
                .filter(|finding| finding.code == first.code)
                .map(|finding| said(finding))
                .collect();
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                ids.join(", ")
            )
        }
        "tool-result-without-use" | "tool-result-not-adjacent" if is_chat => {
            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                .to_owned()
        }
        "tool-use-without-result" => {
            format!("No tool output found for function call {}.", said(first))
        }
        "tool-result-without-use" => format!(
            "No tool call found for function call output with call_id {}.",
            said(first)
        ),
        "reasoning-without-item" => {
            let id = value_at(body, first.path.trim_end_matches(".id"))
                .and_then(|item| item.string_field("id"))
                .unwrap_or_default();
            format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            )
        }
        _ => first.message.clone(),
    };
    let error = ApiError::new(400, message);
    let error = match first.code {
        "missing-field" => error.code("missing_required_parameter"),
        UNKNOWN_FIELD => error.code("unknown_parameter"),
        "wrong-type" => error.code("invalid_type"),
        "unknown-value" | "out-of-range" => error.code("invalid_value"),
        _ => error,
    };
    match first.path.is_empty() {
        true => error,
        false => error.param(first.path.clone()),
    }
}

/// `messages[3].content[1]` as `messages.3.content.1`.
pub(crate) fn dotted(path: &str) -> String {
    path.replace('[', ".").replace(']', "")
}

/// `messages.3` of `messages.3.content.1.id`.
fn up_to_message(path: &str) -> String {
    path.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// The value at a path of the checker.
fn value_at(body: &Raw, path: &str) -> Option<Raw> {
    let mut at = body.clone();
    for step in dotted(path).split('.').filter(|step| !step.is_empty()) {
        at = match step.parse::<usize>() {
            Ok(index) => at.array().nth(index)?,
            Err(_) => at.field(step)?,
        };
    }
    Some(at)
}

fn number_in(text: &str) -> Option<u64> {
    let digits: String = text
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}
