//! Rules of OpenAI Responses: the settings. [`items`] has the input items, [`order`] the pairing of calls with their
//! outputs and of reasoning with the item after it.

mod items;
mod order;

use std::collections::HashSet;

use crate::json::{Kind, Raw};

use super::checker::{Checker, Object, TextQuote};
use super::openai_chat::{check_metadata, check_sampling, is_function_name};
use super::path::Path;
use super::rule;

const FIELDS: &[&str] = &[
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "conversation",
    "store",
    "include",
    "reasoning",
    "text",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "max_tool_calls",
    "truncation",
    "context_management",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "background",
    "stream",
    "stream_options",
    "metadata",
    "client_metadata",
    "service_tier",
    "safety_identifier",
    "user",
    "prompt",
    "temperature",
    "top_p",
    "top_logprobs",
    "moderation",
];
/// Least value of `max_output_tokens`.
const OUTPUT_TOKENS_MIN: u64 = 16;

/// What the rules for items need to know about the rest of the request.
pub(crate) struct Request {
    /// Earlier items are on the server, so calls and outputs may belong to what is not in the body.
    pub(crate) continues: bool,
    /// `store` is `false`: nothing is kept on the server.
    pub(crate) is_stateless: bool,
}

pub(crate) fn check(body: &Raw, checker: &mut Checker<'_>) {
    let Some(body) = Object::read(body) else {
        return;
    };
    let root = Path::Root;
    checker.known_fields(&body, &[FIELDS], &root);
    let has_prompt = body.has("prompt");
    // A stored prompt names its own model.
    if !has_prompt || body.has("model") {
        checker.required_name(&body, "model", &root);
    }
    checker.optional_string(&body, "previous_response_id", &root);
    if body.has("previous_response_id") && body.has("conversation") {
        checker.add(
            &rule::PREVIOUS_AND_CONVERSATION,
            root.key("conversation"),
            "previous_response_id and conversation cannot both be set: keep one",
        );
    }
    check_settings(&body, checker);
    check_tools(&body, checker);
    let request = Request {
        continues: body.has("previous_response_id") || body.has("conversation"),
        is_stateless: body.present("store").and_then(Raw::as_bool) == Some(false),
    };
    check_input(&body, &request, has_prompt, checker);
}

fn check_input(body: &Object, request: &Request, has_prompt: bool, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let Some(input) = body.present("input") else {
        if !request.continues && !has_prompt {
            checker.required_value(body, "input", "a string or an array of items", &root);
        }
        return;
    };
    let path = root.key("input");
    if !checker.expect_kind(
        input,
        &[Kind::String, Kind::Array],
        "a string or an array of items",
        path,
    ) {
        return;
    }
    let is_empty = match input.as_text() {
        Some(text) => text.encoded_len() == 0,
        None => input.array().next().is_none(),
    };
    if is_empty && !request.continues && !has_prompt {
        checker.add(
            &rule::INPUT_EMPTY,
            path,
            "there is no input: add at least one item",
        );
    }
    if input.kind() == Kind::Array {
        order::check(input, request, &path, checker);
    }
}

fn check_settings(body: &Object, checker: &mut Checker<'_>) {
    let root = Path::Root;
    if let Some(instructions) = body.present("instructions") {
        checker.expect_kind(
            instructions,
            &[Kind::String, Kind::Array],
            "a string",
            root.key("instructions"),
        );
    }
    if let Some(conversation) = body.present("conversation") {
        checker.expect_kind(
            conversation,
            &[Kind::String, Kind::Object],
            "the id of a conversation or an object with it",
            root.key("conversation"),
        );
    }
    let output = checker.optional_count(body, "max_output_tokens", OUTPUT_TOKENS_MIN, &root);
    checker.output_limit(
        output,
        &rule::RESPONSES_MAX_ABOVE_MODEL,
        "max_output_tokens",
        &root,
    );
    checker.optional_count(body, "max_tool_calls", 1, &root);
    check_sampling(body, &rule::RESPONSES_SAMPLING, checker);
    check_metadata(body, &rule::RESPONSES_METADATA, checker);
    checker.known_value(body, "truncation", &["auto", "disabled"], &root);
    checker.optional_bool(body, "stream", &root);
    checker.optional_bool(body, "parallel_tool_calls", &root);
    let stores = checker.optional_bool(body, "store", &root);
    if checker.optional_bool(body, "background", &root) == Some(true) && stores == Some(false) {
        checker.add(
            &rule::RESPONSES_BACKGROUND,
            root.key("background"),
            "a background response must be stored: set `store` to true",
        );
    }
    if let Some(include) = checker.optional_array(body, "include", &root) {
        let path = root.key("include");
        for (index, name) in include.array().enumerate() {
            checker.expect_kind(&name, &[Kind::String], "a string", path.index(index));
        }
    }
    if let Some(reasoning) = checker.optional_object(body, "reasoning", &root) {
        let path = root.key("reasoning");
        checker.known_value(
            &reasoning,
            "effort",
            &["none", "minimal", "low", "medium", "high", "xhigh", "max"],
            &path,
        );
        checker.known_value(
            &reasoning,
            "summary",
            &["auto", "concise", "detailed"],
            &path,
        );
        checker.known_value(
            &reasoning,
            "context",
            &["auto", "current_turn", "all_turns"],
            &path,
        );
    }
    if let Some(text) = checker.optional_object(body, "text", &root) {
        let path = root.key("text");
        checker.known_value(&text, "verbosity", &["low", "medium", "high"], &path);
        if let Some(format) = checker.optional_object(&text, "format", &path) {
            let path = path.key("format");
            checker.required_name(&format, "type", &path);
            checker.known_value(
                &format,
                "type",
                &["text", "json_object", "json_schema", "grammar"],
                &path,
            );
            if format.string("type").as_deref() == Some("json_schema") {
                checker.required_name(&format, "name", &path);
                checker.required_object(&format, "schema", &path);
            }
        }
    }
    if let Some(edits) = checker.optional_array(body, "context_management", &root) {
        let path = root.key("context_management");
        for (index, edit) in edits.array().enumerate() {
            let path = path.index(index);
            if let Some(edit) = checker.object(&edit, path) {
                checker.required_name(&edit, "type", &path);
                checker.known_value(&edit, "type", &["compaction"], &path);
                checker.optional_count(&edit, "compact_threshold", 1, &path);
            }
        }
    }
    if let Some(cache) = checker.optional_object(body, "prompt_cache_options", &root) {
        let path = root.key("prompt_cache_options");
        checker.known_value(&cache, "mode", &["implicit", "explicit"], &path);
        checker.known_value(&cache, "ttl", &["30m", "12h"], &path);
    }
}

fn check_tools(body: &Object, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let mut names = HashSet::new();
    let tools = checker.optional_array(body, "tools", &root);
    if let Some(tools) = tools {
        let path = root.key("tools");
        for (index, tool) in tools.array().enumerate() {
            let path = path.index(index);
            let Some(tool) = checker.object(&tool, path) else {
                continue;
            };
            let Some(kind) = checker.required_name(&tool, "type", &path) else {
                continue;
            };
            let kind = kind.decode();
            if !matches!(kind.as_ref(), "function" | "custom") {
                continue;
            }
            let Some(name) = checker.required_name(&tool, "name", &path) else {
                continue;
            };
            if kind == "function" {
                checker.optional_object(&tool, "parameters", &path);
                if !is_function_name(&name.decode()) {
                    report_function_name(&path, checker);
                }
            }
            if !names.insert(name.decode().into_owned()) {
                checker.add(
                    &rule::RESPONSES_DUPLICATE_TOOL,
                    path.key("name"),
                    "an earlier tool has the same name: rename or remove one",
                );
            }
        }
    }
    check_tool_choice(body, &names, tools.is_some(), checker);
}

fn report_function_name(path: &Path<'_>, checker: &mut Checker<'_>) {
    checker.add(
        &rule::RESPONSES_FUNCTION_NAME,
        path.key("name"),
        "a function name has 1 to 64 letters, digits, `_` and `-`: rename the function",
    );
}

/// Whether items of the input have tools.
fn adds_tools(body: &Object) -> bool {
    body.present("input")
        .filter(|input| input.kind() == Kind::Array)
        .is_some_and(|input| {
            input.array().any(|item| {
                item.string_field("type").as_deref() == Some("additional_tools")
                    && item
                        .field("tools")
                        .is_some_and(|tools| tools.array().next().is_some())
            })
        })
}

fn check_tool_choice(
    body: &Object,
    names: &HashSet<String>,
    has_tools: bool,
    checker: &mut Checker<'_>,
) {
    let root = Path::Root;
    let Some(choice) = body.present("tool_choice") else {
        return;
    };
    let path = root.key("tool_choice");
    let are_elsewhere = body.has("prompt") || adds_tools(body);
    if let Some(word) = choice.as_text() {
        if !["none", "auto", "required"].contains(&word.decode().as_ref()) {
            checker.add(
                &rule::RESPONSES_TOOL_CHOICE_TYPE,
                path,
                format_args!(
                    "{} is no tool choice: use none, auto, required or an object",
                    TextQuote(&word)
                ),
            );
        } else if word.decode() == "required" && !has_tools && !are_elsewhere {
            checker.add(
                &rule::RESPONSES_WITHOUT_TOOLS,
                path,
                "there are no tools to choose from: add `tools` or remove `tool_choice`",
            );
        }
        return;
    }
    let Some(choice) = checker.object(choice, path) else {
        return;
    };
    let Some(kind) = checker.required_name(&choice, "type", &path) else {
        return;
    };
    if matches!(kind.decode().as_ref(), "function" | "custom")
        && let Some(name) = checker.required_name(&choice, "name", &path)
        && !are_elsewhere
        && !names.contains(name.decode().as_ref())
    {
        checker.add(
            &rule::RESPONSES_TOOL_CHOICE_UNKNOWN,
            path.key("name"),
            format_args!(
                "no tool is named {}: define it or choose another",
                TextQuote(&name)
            ),
        );
    }
}
