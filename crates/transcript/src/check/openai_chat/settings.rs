//! The fields beside `messages`.

use std::collections::HashSet;

use crate::json::{Kind, Raw, Text};

use super::super::checker::{Checker, Object, TextQuote};
use super::super::path::Path;
use super::super::rule::{self, Rule};

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "verbosity",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "response_format",
    "stop",
    "n",
    "seed",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "store",
    "metadata",
    "service_tier",
    "stream",
    "stream_options",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "user",
    "modalities",
    "audio",
    "prediction",
    "web_search_options",
    "moderation",
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
];
/// Longest function name.
pub(crate) const FUNCTION_NAME_BYTES_MAX: usize = 64;
/// Most stop sequences.
const STOPS_MAX: usize = 4;
/// Most answers to one request.
const ANSWERS_MAX: u64 = 128;
/// Most entries of `metadata`.
const METADATA_MAX: usize = 16;

pub(crate) fn check(body: &Object, checker: &mut Checker<'_>) {
    let root = Path::Root;
    checker.known_fields(body, &[FIELDS], &root);
    checker.required_name(body, "model", &root);
    check_lengths(body, checker);
    check_tools(body, checker);
    check_sampling(body, &rule::CHAT_SAMPLING, checker);
    check_formats(body, checker);
    check_stream(body, checker);
    check_metadata(body, &rule::CHAT_METADATA, checker);
    checker.known_value(
        body,
        "reasoning_effort",
        &["none", "minimal", "low", "medium", "high", "xhigh", "max"],
        &root,
    );
    checker.known_value(body, "verbosity", &["low", "medium", "high"], &root);
    checker.optional_string(body, "prompt_cache_key", &root);
    checker.optional_bool(body, "store", &root);
}

fn check_lengths(body: &Object, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let new = checker.optional_count(body, "max_completion_tokens", 1, &root);
    let old = checker.optional_count(body, "max_tokens", 1, &root);
    let rule = &rule::CHAT_MAX_TOKENS_ABOVE_MODEL;
    checker.output_limit(new, rule, "max_completion_tokens", &root);
    checker.output_limit(old, rule, "max_tokens", &root);
    if old.is_some() && new.is_some() {
        checker.add(
            &rule::CHAT_MAX_TOKENS_TWICE,
            root.key("max_tokens"),
            "max_tokens and max_completion_tokens cannot both be set: keep max_completion_tokens",
        );
    } else if old.is_some() {
        checker.add(
            &rule::CHAT_MAX_TOKENS_OLD,
            root.key("max_tokens"),
            "max_tokens is deprecated and refused by reasoning models of OpenAI: use max_completion_tokens there",
        );
    }
    if let Some(n) = checker.optional_count(body, "n", 1, &root)
        && n > ANSWERS_MAX
    {
        checker.add(
            &rule::OUT_OF_RANGE,
            root.key("n"),
            format_args!("`n` must be at most {ANSWERS_MAX}"),
        );
    }
}

/// Sampling parameters, which reasoning models refuse. Both OpenAI formats have them.
pub(crate) fn check_sampling(body: &Object, rule: &Rule, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let set = [
        ("temperature", (0.0, 2.0), 1.0),
        ("top_p", (0.0, 1.0), 1.0),
        ("frequency_penalty", (-2.0, 2.0), 0.0),
        ("presence_penalty", (-2.0, 2.0), 0.0),
    ];
    for (key, range, default) in set {
        if let Some(value) = checker.optional_number(body, key, range, &root)
            && value != default
            && checker.ability(|can| can.sampling) == Some(false)
        {
            checker.add(
                rule,
                root.key(key),
                format_args!("the model accepts only the default of `{key}`: remove it"),
            );
        }
    }
}

fn check_formats(body: &Object, checker: &mut Checker<'_>) {
    let root = Path::Root;
    if let Some(format) = checker.optional_object(body, "response_format", &root) {
        let path = root.key("response_format");
        if let Some(kind) = checker.required_name(&format, "type", &path) {
            match kind.decode().as_ref() {
                "text" | "json_object" => {}
                "json_schema" => {
                    if let Some(schema) = checker.required_object(&format, "json_schema", &path) {
                        checker.required_name(&schema, "name", &path.key("json_schema"));
                    }
                }
                _ => checker.add(
                    &rule::CHAT_RESPONSE_FORMAT,
                    path.key("type"),
                    format_args!(
                        "{} is no response format: use text, json_object or json_schema",
                        TextQuote(&kind)
                    ),
                ),
            }
        }
    }
    if let Some(stop) = body.present("stop") {
        let path = root.key("stop");
        let count = stop.array().count();
        let is_list = stop.kind() == Kind::Array
            && (1..=STOPS_MAX).contains(&count)
            && stop.array().all(|stop| stop.kind() == Kind::String);
        if stop.kind() != Kind::String && !is_list {
            checker.add(
                &rule::CHAT_STOP,
                path,
                format_args!("stop is a string or an array of 1 to {STOPS_MAX} strings"),
            );
        }
    }
    let has_logprobs = checker.optional_bool(body, "logprobs", &root) == Some(true);
    if let Some(top) = checker.optional_count(body, "top_logprobs", 0, &root)
        && (top > 20 || !has_logprobs)
    {
        checker.add(
            &rule::CHAT_LOGPROBS,
            root.key("top_logprobs"),
            "top_logprobs is at most 20 and needs logprobs: set logprobs to true",
        );
    }
}

fn check_stream(body: &Object, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let streams = checker.optional_bool(body, "stream", &root) == Some(true);
    if checker
        .optional_object(body, "stream_options", &root)
        .is_some()
        && !streams
    {
        checker.add(
            &rule::CHAT_STREAM_OPTIONS,
            root.key("stream_options"),
            "stream_options needs `stream: true`: add it or remove the options",
        );
    }
}

/// `metadata`, which both OpenAI formats have.
pub(crate) fn check_metadata(body: &Object, rule: &Rule, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let Some(metadata) = body.present("metadata") else {
        return;
    };
    let path = root.key("metadata");
    if !checker.expect_kind(metadata, &[Kind::Object], "an object", path) {
        return;
    }
    let are_strings = metadata
        .object()
        .all(|(_, value)| value.kind() == Kind::String);
    if metadata.object().count() > METADATA_MAX || !are_strings {
        checker.add(
            rule,
            path,
            format_args!("metadata has at most {METADATA_MAX} entries, each a string"),
        );
    }
}

fn check_tools(body: &Object, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let mut names = HashSet::new();
    let tools = checker.optional_array(body, "tools", &root);
    if let Some(tools) = tools {
        let path = root.key("tools");
        let mut count = 0;
        for tool in tools.array() {
            let path = path.index(count);
            if let Some(tool) = checker.object(&tool, path)
                && let Some(name) = check_tool(&tool, &path, checker)
                && !names.insert(name)
            {
                checker.add(
                    &rule::CHAT_DUPLICATE_TOOL,
                    path,
                    "an earlier tool has the same name: rename or remove one",
                );
            }
            count += 1;
        }
        if count == 0 {
            checker.add(
                &rule::CHAT_TOOLS_EMPTY,
                path,
                "an empty list of tools is refused by OpenAI: leave the field out",
            );
        }
    }
    check_tool_choice(body, &names, tools.is_some(), checker);
    if checker
        .optional_bool(body, "parallel_tool_calls", &root)
        .is_some()
        && tools.is_none()
    {
        checker.add(
            &rule::CHAT_WITHOUT_TOOLS,
            root.key("parallel_tool_calls"),
            "parallel_tool_calls needs tools: add `tools` or remove the field",
        );
    }
}

/// Returns the name of the tool.
fn check_tool(tool: &Object, path: &Path<'_>, checker: &mut Checker<'_>) -> Option<String> {
    let kind = checker.required_name(tool, "type", path)?;
    match kind.decode().as_ref() {
        "function" => {
            let function = checker.required_object(tool, "function", path)?;
            let path = path.key("function");
            checker.optional_object(&function, "parameters", &path);
            checker.optional_string(&function, "description", &path);
            let name = checker.required_name(&function, "name", &path)?;
            if !is_function_name(&name.decode()) {
                super::report_function_name(&path, checker);
            }
            Some(name.decode().into_owned())
        }
        "custom" => {
            let custom = checker.required_object(tool, "custom", path)?;
            let name = checker.required_name(&custom, "name", &path.key("custom"))?;
            Some(name.decode().into_owned())
        }
        _ => {
            checker.known_value(tool, "type", &["function", "custom"], path);
            None
        }
    }
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
    if !checker.expect_kind(
        choice,
        &[Kind::String, Kind::Object],
        "none, auto, required or an object",
        path,
    ) {
        return;
    }
    if !has_tools
        && choice
            .as_text()
            .is_none_or(|choice| choice.decode() != "none")
    {
        checker.add(
            &rule::CHAT_WITHOUT_TOOLS,
            path,
            "there are no tools to choose from: add `tools` or remove `tool_choice`",
        );
    }
    if let Some(word) = choice.as_text() {
        if !["none", "auto", "required"].contains(&word.decode().as_ref()) {
            checker.add(
                &rule::CHAT_TOOL_CHOICE_TYPE,
                path,
                format_args!(
                    "{} is no tool choice: use none, auto, required or an object",
                    TextQuote(&word)
                ),
            );
        }
        return;
    }
    let Some(choice) = Object::read(choice) else {
        return;
    };
    let Some(kind) = checker.required_name(&choice, "type", &path) else {
        return;
    };
    match kind.decode().as_ref() {
        kind @ ("function" | "custom") => {
            let Some(named) = checker.required_object(&choice, kind, &path) else {
                return;
            };
            let path = path.key(kind);
            if let Some(name) = checker.required_name(&named, "name", &path)
                && has_tools
                && !names.contains(name.decode().as_ref())
            {
                checker.add(
                    &rule::CHAT_TOOL_CHOICE_UNKNOWN,
                    path.key("name"),
                    format_args!(
                        "no tool is named {}: define it or choose another",
                        TextQuote(&name)
                    ),
                );
            }
        }
        "allowed_tools" => {}
        _ => checker.add(
            &rule::CHAT_TOOL_CHOICE_TYPE,
            path.key("type"),
            format_args!(
                "{} is no tool choice: use function, custom or allowed_tools",
                TextQuote(&kind)
            ),
        ),
    }
}

/// Whether OpenAI takes this as the name of a function.
pub(crate) fn is_function_name(name: &str) -> bool {
    (1..=FUNCTION_NAME_BYTES_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The arguments of a call, which both OpenAI formats have as a string.
pub(crate) fn check_arguments(
    arguments: &Text,
    rule: &Rule,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) {
    let parsed = Raw::parse(arguments.decode().into_owned());
    if !parsed.is_ok_and(|value| value.kind() == Kind::Object) {
        checker.add(
            rule,
            path.key("arguments"),
            "the arguments are not a JSON object, which many servers refuse: repair or remove the call",
        );
    }
}
