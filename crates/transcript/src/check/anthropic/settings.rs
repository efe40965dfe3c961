//! The fields beside `tools` and `messages`.

use crate::json::{Kind, Raw};

use super::super::checker::{Checker, Object, Quote};
use super::super::path::Path;
use super::super::rule;
use super::cache::Markers;
use super::{Betas, Version, blocks};

/// Least value of `thinking.budget_tokens`.
const THINKING_BUDGET_MIN: u64 = 1024;
/// Least trigger of a threshold compaction, tokens.
const COMPACTION_TRIGGER_MIN: u64 = 50_000;
/// Least total of a task budget, tokens.
const TASK_BUDGET_MIN: u64 = 20_000;

/// Values of `output_config.effort`, lowest first.
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
/// Values of `thinking.type`.
const MODES: &[&str] = &["adaptive", "enabled", "disabled", "between_tools"];

/// What other rules need to know of the settings.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) continues_thread: bool,
    pub(crate) asks_for_compaction: bool,
    pub(crate) thinks_with_budget: bool,
    pub(crate) is_prewarm: bool,
}

pub(crate) fn check(
    body: &Object,
    version: Version,
    betas: &Betas,
    checker: &mut Checker<'_>,
) -> Settings {
    let root = Path::Root;
    let mut settings = Settings::default();
    let mut max_tokens = None;
    if checker
        .required_value(body, "max_tokens", "the most tokens of the answer", &root)
        .is_some()
    {
        max_tokens = checker.optional_count(body, "max_tokens", 0, &root);
        checker.output_limit(
            max_tokens,
            &rule::MAX_TOKENS_ABOVE_MODEL,
            "max_tokens",
            &root,
        );
    }
    settings.is_prewarm = max_tokens == Some(0);

    let effort = check_output_config(body, betas, checker);
    let thinking = check_thinking(body, max_tokens, effort.as_deref(), betas, checker);
    settings.thinks_with_budget = thinking.as_deref() == Some("enabled");
    check_sampling(body, version, settings.thinks_with_budget, checker);
    check_plain_fields(body, checker);
    check_compaction(body, &mut settings, betas, checker);
    check_context_management(body, betas, checker);
    check_thread(body, &mut settings, betas, checker);
    check_prewarm(body, &settings, checker);
    settings
}

fn check_plain_fields(body: &Object, checker: &mut Checker<'_>) {
    let root = Path::Root;
    checker.optional_bool(body, "stream", &root);
    if let Some(list) = checker.optional_array(body, "stop_sequences", &root) {
        let path = root.key("stop_sequences");
        for (index, stop) in list.array().enumerate() {
            checker.expect_kind(&stop, &[Kind::String], "a string", path.index(index));
        }
    }
    if let Some(metadata) = checker.optional_object(body, "metadata", &root) {
        checker.optional_string(&metadata, "user_id", &root.key("metadata"));
    }
    checker.known_value(body, "service_tier", &["auto", "standard_only"], &root);
    checker.known_value(body, "speed", &["standard", "fast"], &root);
    checker.optional_string(body, "inference_geo", &root);
    checker.optional_object(body, "diagnostics", &root);
    if let Some(container) = body.present("container") {
        checker.expect_kind(
            container,
            &[Kind::String, Kind::Object],
            "the id of a container or an object",
            root.key("container"),
        );
    }
    if let Some(servers) = checker.optional_array(body, "mcp_servers", &root) {
        let path = root.key("mcp_servers");
        for (index, server) in servers.array().enumerate() {
            let path = path.index(index);
            if let Some(server) = checker.object(&server, path) {
                checker.required_name(&server, "name", &path);
                checker.known_value(&server, "type", &["url"], &path);
                if server.string("type").as_deref() == Some("url") {
                    checker.required_name(&server, "url", &path);
                }
            }
        }
    }
}

/// Returns the effort.
fn check_output_config(body: &Object, betas: &Betas, checker: &mut Checker<'_>) -> Option<String> {
    let root = Path::Root;
    let config = checker.optional_object(body, "output_config", &root)?;
    let path = root.key("output_config");
    let effort = checker.known_value(&config, "effort", EFFORTS, &path);
    if let Some(format) = checker.optional_object(&config, "format", &path) {
        let path = path.key("format");
        checker.known_value(&format, "type", &["json_schema"], &path);
        if format.string("type").as_deref() == Some("json_schema") {
            checker.required_object(&format, "schema", &path);
        }
    }
    if let Some(budget) = checker.optional_object(&config, "task_budget", &path) {
        betas.require("task-budgets-2026-03-13", path.key("task_budget"), checker);
        let path = path.key("task_budget");
        if checker
            .required_value(&budget, "total", "the tokens of the task", &path)
            .is_some()
            && let Some(total) = checker.optional_count(&budget, "total", 0, &path)
            && total < TASK_BUDGET_MIN
        {
            checker.add(
                &rule::TASK_BUDGET,
                path.key("total"),
                format_args!("the budget is {total} tokens, the least is {TASK_BUDGET_MIN}"),
            );
        }
        checker.optional_count(&budget, "remaining", 0, &path);
    }
    effort.map(|effort| effort.decode().into_owned())
}

/// Returns `thinking.type`.
fn check_thinking(
    body: &Object,
    max_tokens: Option<u64>,
    effort: Option<&str>,
    betas: &Betas,
    checker: &mut Checker<'_>,
) -> Option<String> {
    let root = Path::Root;
    let thinking = checker.optional_object(body, "thinking", &root)?;
    let path = root.key("thinking");
    let mode = checker.required_name(&thinking, "type", &path)?;
    let mode = mode.decode().into_owned();
    match mode.as_str() {
        "enabled" => check_budget(&thinking, max_tokens, betas, &path, checker),
        "adaptive" | "disabled" | "between_tools" => {}
        other => checker.add(
            &rule::THINKING_TYPE,
            path.key("type"),
            format_args!(
                "{} is no thinking mode: use adaptive, enabled, disabled or between_tools",
                Quote(other)
            ),
        ),
    }
    let accepted = checker
        .options
        .model
        .and_then(|model| model.abilities.thinking.as_ref());
    if accepted.is_some_and(|modes| !modes.contains(&mode)) && MODES.contains(&mode.as_str()) {
        checker.add(
            &rule::THINKING_MODE,
            path.key("type"),
            format_args!(
                "the model does not accept thinking of type `{mode}`: {}",
                advice(&mode)
            ),
        );
    }
    let effort_max = checker
        .options
        .model
        .and_then(|model| model.abilities.thinking_off_effort_max.as_deref());
    let rank = |effort: &str| EFFORTS.iter().position(|known| *known == effort);
    if mode == "disabled"
        && let (Some(effort), Some(effort_max)) = (effort, effort_max)
        && rank(effort) > rank(effort_max)
    {
        checker.add(
            &rule::THINKING_DISABLED_AT_EFFORT,
            path.key("type"),
            format_args!("the model cannot work at this effort without thinking: lower output_config.effort to {effort_max} or leave thinking on"),
        );
    }
    checker.known_value(
        &thinking,
        "display",
        &["summarized", "omitted", "updates"],
        &path,
    );
    if let Some(binding) = checker.optional_object(&thinking, "block_binding", &path) {
        betas.require(
            "thinking-binding-controls-2026-08-01",
            path.key("block_binding"),
            checker,
        );
        checker.optional_string(
            &binding,
            "prefix_mismatch_behavior",
            &path.key("block_binding"),
        );
    }
    Some(mode)
}

fn advice(mode: &str) -> &'static str {
    match mode {
        "enabled" => "use adaptive with output_config.effort",
        "adaptive" => "use enabled with budget_tokens",
        _ => "leave the field out",
    }
}

fn check_budget(
    thinking: &Object,
    max_tokens: Option<u64>,
    betas: &Betas,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) {
    if checker
        .required_value(thinking, "budget_tokens", "the tokens to think with", path)
        .is_none()
    {
        return;
    }
    let Some(budget) = checker.optional_count(thinking, "budget_tokens", 0, path) else {
        return;
    };
    if budget < THINKING_BUDGET_MIN {
        checker.add(
            &rule::THINKING_BUDGET,
            path.key("budget_tokens"),
            format_args!("the budget is {budget} tokens, the least is {THINKING_BUDGET_MIN}"),
        );
    }
    // With interleaved thinking the budget is that of the whole turn and may be larger than one answer.
    let is_interleaved = betas.is_on("interleaved-thinking-2025-05-14");
    if let Some(max_tokens) = max_tokens
        && budget >= max_tokens
        && !is_interleaved
    {
        checker.add(
            &rule::THINKING_BUDGET,
            path.key("budget_tokens"),
            format_args!("the budget ({budget}) must be less than max_tokens ({max_tokens})"),
        );
    }
}

fn check_sampling(
    body: &Object,
    version: Version,
    thinks_with_budget: bool,
    checker: &mut Checker<'_>,
) {
    let root = Path::Root;
    let temperature = checker.optional_number(body, "temperature", (0.0, 1.0), &root);
    let top_p = checker.optional_number(body, "top_p", (0.0, 1.0), &root);
    let top_k = checker.optional_count(body, "top_k", 0, &root);
    let set = [
        ("temperature", temperature, temperature == Some(1.0)),
        ("top_p", top_p, top_p == Some(1.0)),
        ("top_k", top_k.map(|k| k as f64), false),
    ];
    for (key, value, is_default) in set {
        if value.is_none() {
            continue;
        }
        if version == Version::New {
            checker.add(
                &rule::SAMPLING_REMOVED,
                root.key(key),
                format_args!("`{key}` is gone since anthropic-version 2026-10-21: remove it"),
            );
        } else if !is_default && checker.ability(|can| can.sampling) == Some(false) {
            checker.add(
                &rule::SAMPLING_REMOVED,
                root.key(key),
                format_args!("the model accepts only the default of `{key}`: remove it"),
            );
        } else if !is_default && version == Version::Unknown {
            checker.warn(
                &rule::SAMPLING_REMOVED,
                root.key(key),
                format_args!(
                    "`{key}` is refused since anthropic-version 2026-10-21 and by newer models: remove it if one of these is used"
                ),
            );
        }
    }
    let is_changed = temperature.is_some_and(|value| value != 1.0)
        || top_k.is_some()
        || top_p.is_some_and(|value| value < 0.95);
    if thinks_with_budget && is_changed {
        checker.add(
            &rule::SAMPLING_WITH_THINKING,
            root,
            "with thinking on, temperature must be 1, top_k absent and top_p at least 0.95: remove them",
        );
    }
}

fn check_compaction(
    body: &Object,
    settings: &mut Settings,
    betas: &Betas,
    checker: &mut Checker<'_>,
) {
    let root = Path::Root;
    let Some(compaction) = checker.optional_object(body, "compaction", &root) else {
        return;
    };
    let path = root.key("compaction");
    settings.asks_for_compaction = true;
    if checker.ability(|can| can.on_demand_compaction) == Some(false) {
        checker.add(
            &rule::COMPACTION_UNSUPPORTED,
            path,
            "the model does not compact on demand: have the summary made by another request",
        );
    }
    betas.require("compact-2026-09-04", path, checker);
    checker.required_name(&compaction, "type", &path);
    checker.known_value(&compaction, "type", &["summarize"], &path);
    checker.optional_string(&compaction, "instructions", &path);
    if body.has("context_management") {
        checker.add(
            &rule::COMPACTION_WITH_CONTEXT,
            root.key("context_management"),
            "a request for a compaction cannot have context_management too: remove one of the two",
        );
    }
    let has_format = body
        .present("output_config")
        .and_then(|config| config.field("format"))
        .is_some_and(|format| !format.is_null());
    let shaping = [
        ("stop_sequences", body.has("stop_sequences")),
        ("output_format", body.has("output_format")),
        ("output_config", has_format),
        ("tool_choice", forces_tool(body)),
    ];
    for (key, is_set) in shaping {
        if is_set {
            checker.add(
                &rule::COMPACTION_SHAPES_REPLY,
                root.key(key),
                format_args!("a compaction has no reply that `{key}` could shape: remove it"),
            );
        }
    }
}

fn check_context_management(body: &Object, betas: &Betas, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let Some(management) = checker.optional_object(body, "context_management", &root) else {
        return;
    };
    let path = root.key("context_management");
    let Some(edits) = checker.optional_array(&management, "edits", &path) else {
        return;
    };
    let path = path.key("edits");
    for (index, edit) in edits.array().enumerate() {
        let path = path.index(index);
        let Some(edit) = checker.object(&edit, path) else {
            continue;
        };
        let Some(kind) = checker.required_name(&edit, "type", &path) else {
            continue;
        };
        match kind.decode().as_ref() {
            "compact_20260112" => {
                betas.require("compact-2026-01-12", path, checker);
                check_trigger(&edit, &path, checker);
            }
            "clear_tool_uses_20250919" => {
                betas.require("context-management-2025-06-27", path, checker);
            }
            "clear_thinking_20251015" => {
                betas.require("context-management-2025-06-27", path, checker);
                if index > 0 {
                    checker.add(
                        &rule::CLEAR_THINKING_ORDER,
                        path,
                        "clear_thinking must be the first of the edits: move it to the front",
                    );
                }
            }
            _ => {
                checker.known_value(
                    &edit,
                    "type",
                    &[
                        "compact_20260112",
                        "clear_tool_uses_20250919",
                        "clear_thinking_20251015",
                    ],
                    &path,
                );
            }
        }
    }
}

fn check_trigger(edit: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
    let Some(trigger) = checker.optional_object(edit, "trigger", path) else {
        return;
    };
    let path = path.key("trigger");
    if let Some(value) = checker.optional_count(&trigger, "value", 0, &path)
        && value < COMPACTION_TRIGGER_MIN
    {
        checker.add(
            &rule::COMPACTION_TRIGGER_VALUE,
            path.key("value"),
            format_args!("the trigger is {value} tokens, the least is {COMPACTION_TRIGGER_MIN}"),
        );
    }
}

fn check_thread(body: &Object, settings: &mut Settings, betas: &Betas, checker: &mut Checker<'_>) {
    let root = Path::Root;
    let Some(thread) = checker.optional_object(body, "thread", &root) else {
        return;
    };
    let path = root.key("thread");
    betas.require("message-threads-2026-08-12", path, checker);
    let Some(kind) = checker.required_name(&thread, "type", &path) else {
        return;
    };
    match kind.decode().as_ref() {
        "create" => {}
        "continue" => {
            settings.continues_thread = true;
            checker.required_name(&thread, "previous_message_id", &path);
            for key in ["system", "tools"] {
                if body.has(key) {
                    checker.add(
                        &rule::THREAD_REPEATS,
                        root.key(key),
                        format_args!("a continued thread keeps its `{key}`: leave the field out"),
                    );
                }
            }
        }
        other => checker.add(
            &rule::THREAD_TYPE,
            path.key("type"),
            format_args!("{} is no thread type: use create or continue", Quote(other)),
        ),
    }
}

fn check_prewarm(body: &Object, settings: &Settings, checker: &mut Checker<'_>) {
    if !settings.is_prewarm {
        return;
    }
    let root = Path::Root;
    let is_streamed = body.present("stream").and_then(Raw::as_bool) == Some(true);
    let has_format = body
        .present("output_config")
        .and_then(|config| config.field("format"))
        .is_some_and(|format| !format.is_null());
    let conflicts = [
        ("stream", is_streamed),
        ("thinking", settings.thinks_with_budget),
        ("output_config", has_format),
        ("tool_choice", forces_tool(body)),
    ];
    for (key, is_set) in conflicts {
        if is_set {
            checker.add(
                &rule::PREWARM_CONFLICT,
                root.key(key),
                format_args!(
                    "max_tokens 0 only warms the cache and does not go with this `{key}`: remove it"
                ),
            );
        }
    }
}

/// Whether `tool_choice` forces a tool.
pub(crate) fn forces_tool(body: &Object) -> bool {
    body.present("tool_choice")
        .and_then(|choice| choice.string_field("type"))
        .is_some_and(|kind| kind == "any" || kind == "tool")
}

pub(crate) fn check_system(body: &Object, markers: &mut Markers, checker: &mut Checker<'_>) {
    let Some(system) = body.present("system") else {
        return;
    };
    let root = Path::Root;
    let path = root.key("system");
    if !checker.expect_kind(
        system,
        &[Kind::String, Kind::Array],
        "a string or an array of text blocks",
        path,
    ) {
        return;
    }
    if system.kind() == Kind::String {
        markers.unmarked();
    }
    for (index, block) in system.array().enumerate() {
        let path = path.index(index);
        let Some(block) = checker.object(&block, path) else {
            continue;
        };
        match block.string("type").as_deref() {
            Some("text") => blocks::check_text_block(&block, markers, &path, checker),
            _ => checker.add(
                &rule::SYSTEM_NOT_TEXT,
                path,
                "a system prompt holds text blocks only: give this block `type: text` or move it into a user message",
            ),
        }
    }
}
