//! Rules of Anthropic Messages.

use super::super::*;
use super::every_wire::image;
use super::{Row, known, model};

/// A request body; `settings` are further fields, each with a comma behind it.
pub(super) fn body(settings: &str, messages: &str) -> String {
    format!(r#"{{"model":"m","max_tokens":4000,{settings}"messages":{messages}}}"#)
}

pub(super) const HI: &str = r#"{"role":"user","content":"Hi."}"#;
pub(super) const TOOLS: &str = r#""tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],"#;
pub(super) const THINKS: &str = r#""thinking":{"type":"enabled","budget_tokens":2000},"#;
pub(super) const THINKING: &str = r#"{"type":"thinking","thinking":"","signature":"sig"}"#;
pub(super) const MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;
pub(super) const HOUR: &str = r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#;

pub(super) fn hi(settings: &str) -> String {
    body(settings, &format!("[{HI}]"))
}

/// A conversation of these messages, with tools defined.
pub(super) fn talk(messages: &[&str]) -> String {
    body(TOOLS, &format!("[{}]", messages.join(",")))
}

pub(super) fn user(blocks: &str) -> String {
    format!(r#"{{"role":"user","content":[{blocks}]}}"#)
}

pub(super) fn assistant(blocks: &str) -> String {
    format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)
}

pub(super) fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

pub(super) fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#)
}

pub(super) fn result(id: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"done"}}"#)
}

pub(super) fn search(id: &str) -> String {
    format!(
        r#"{{"type":"server_tool_use","id":"{id}","name":"web_search","input":{{"query":"q"}}}}"#
    )
}

pub(super) fn found(id: &str) -> String {
    format!(r#"{{"type":"web_search_tool_result","tool_use_id":"{id}","content":[]}}"#)
}

/// `n` marked texts of a user.
pub(super) fn marked(marks: &[&str]) -> String {
    let blocks: Vec<_> = marks
        .iter()
        .map(|mark| format!(r#"{{"type":"text","text":"x",{mark}}}"#))
        .collect();
    user(&blocks.join(","))
}

pub(super) fn row(code: &'static str, path: &'static str, broken: String, kept: String) -> Row {
    Row::error(Wire::Anthropic, (code, path), broken, kept)
}

pub(super) fn table() -> Vec<Row> {
    let mut rows = settings();
    rows.extend(messages());
    rows.extend(super::anthropic_turns::table());
    rows
}

fn settings() -> Vec<Row> {
    let newest = CheckOptions {
        anthropic_version: Some("2026-10-21"),
        ..known()
    };
    let no_version = CheckOptions {
        anthropic_version: None,
        ..known()
    };
    let no_betas = CheckOptions {
        betas: Some(&[]),
        ..known()
    };
    let sized = |max: u64| format!(r#"{{"model":"m","max_tokens":{max},"messages":[{HI}]}}"#);
    let warm =
        |settings: &str| format!(r#"{{"model":"m","max_tokens":0,{settings}"messages":[{HI}]}}"#);
    let only_adaptive = model(|model| {
        model.abilities.thinking = Some(vec!["adaptive".to_owned()]);
    });
    let up_to_high = model(|model| {
        model.abilities.thinking_off_effort_max = Some("high".to_owned());
    });
    let tool = |name: &str| format!(r#"{{"name":"{name}","input_schema":{{"type":"object"}}}}"#);
    vec![
        row("missing-field", "max_tokens", format!(r#"{{"model":"m","messages":[{HI}]}}"#), sized(10)),
        row("max-tokens-above-model", "max_tokens", sized(64_001), sized(64_000)),
        row("prewarm-conflict", "stream", warm(r#""stream":true,"#), warm("")),
        row(
            "prewarm-conflict",
            "output_config",
            warm(r#""output_config":{"format":{"type":"json_schema","schema":{}}},"#),
            warm(r#""output_config":{"effort":"low"},"#),
        ),
        row(
            "prewarm-conflict",
            "tool_choice",
            warm(&format!(r#"{TOOLS}"tool_choice":{{"type":"any"}},"#)),
            warm(&format!(r#"{TOOLS}"tool_choice":{{"type":"auto"}},"#)),
        ),
        row("sampling-removed", "top_k", hi(r#""top_k":40,"#), hi("")).with(newest),
        row("sampling-removed", "temperature", hi(r#""temperature":1,"#), hi("")).with(newest),
        row("sampling-removed", "temperature", hi(r#""temperature":0.2,"#), hi(r#""temperature":1.0,"#))
            .with(model(|model| model.abilities.sampling = Some(false))),
        row("sampling-removed", "temperature", hi(r#""temperature":0.2,"#), hi("")).warning().with(no_version),
        row("out-of-range", "temperature", hi(r#""temperature":1.5,"#), hi(r#""temperature":0.5,"#)),
        row(
            "sampling-with-thinking",
            "",
            hi(&format!(r#"{THINKS}"temperature":0.3,"#)),
            hi(&format!(r#"{THINKS}"top_p":0.97,"#)),
        ),
        row(
            "system-not-text",
            "system[1]",
            hi(r#""system":[{"type":"text","text":"Be brief."},{"type":"image"}],"#),
            hi(r#""system":[{"type":"text","text":"Be brief."}],"#),
        ),
        row("wrong-type", "system", hi(r#""system":7,"#), hi(r#""system":"Be brief.","#)),
        row("empty-text", "system[0].text", hi(r#""system":[{"type":"text","text":""}],"#), hi("")),
        row(
            "duplicate-tool-name",
            "tools[1].name",
            hi(&format!(r#""tools":[{},{}],"#, tool("f"), tool("f"))),
            hi(&format!(r#""tools":[{},{}],"#, tool("f"), tool("g"))),
        ),
        row(
            "tool-name-characters",
            "tools[0].name",
            hi(&format!(r#""tools":[{}],"#, tool("a b"))),
            hi(&format!(r#""tools":[{}],"#, tool("a_b-9"))),
        )
        .warning(),
        row(
            "missing-field",
            "tools[0].input_schema",
            hi(r#""tools":[{"name":"f"}],"#),
            hi(r#""tools":[{"type":"bash_20250124","name":"bash"}],"#),
        ),
        row(
            "wrong-type",
            "tools[0].input_schema.type",
            hi(r#""tools":[{"name":"f","input_schema":{"type":"string"}}],"#),
            hi(TOOLS),
        ),
        row(
            "tool-choice-unknown-tool",
            "tool_choice.name",
            hi(&format!(r#"{TOOLS}"tool_choice":{{"type":"tool","name":"h"}},"#)),
            hi(&format!(r#"{TOOLS}"tool_choice":{{"type":"tool","name":"f"}},"#)),
        ),
        row(
            "tool-choice-without-tools",
            "tool_choice",
            hi(r#""tool_choice":{"type":"auto"},"#),
            hi(&format!(r#"{TOOLS}"tool_choice":{{"type":"none"}},"#)),
        ),
        row(
            "tool-choice-type",
            "tool_choice.type",
            hi(&format!(r#"{TOOLS}"tool_choice":{{"type":"required"}},"#)),
            hi(&format!(r#"{TOOLS}"tool_choice":{{"type":"any"}},"#)),
        ),
        row(
            "forced-tool-choice",
            "tool_choice.type",
            hi(&format!(r#"{TOOLS}"tool_choice":{{"type":"any"}},"#)),
            hi(&format!(r#"{TOOLS}"tool_choice":{{"type":"auto"}},"#)),
        )
        .with(model(|model| model.abilities.forced_tool_choice = Some(false))),
        row(
            "forced-tool-with-thinking",
            "tool_choice.type",
            hi(&format!(r#"{THINKS}{TOOLS}"tool_choice":{{"type":"any"}},"#)),
            hi(&format!(r#"{THINKS}{TOOLS}"tool_choice":{{"type":"auto"}},"#)),
        ),
        row("thinking-type", "thinking.type", hi(r#""thinking":{"type":"on"},"#), hi(r#""thinking":{"type":"adaptive"},"#)),
        row(
            "thinking-mode-unsupported",
            "thinking.type",
            hi(THINKS),
            hi(r#""thinking":{"type":"adaptive","display":"omitted"},"#),
        )
        .with(only_adaptive),
        row(
            "thinking-mode-unsupported",
            "thinking.type",
            hi(r#""thinking":{"type":"disabled"},"#),
            hi(""),
        )
        .with(only_adaptive),
        row(
            "thinking-budget",
            "thinking.budget_tokens",
            hi(r#""thinking":{"type":"enabled","budget_tokens":1023},"#),
            hi(r#""thinking":{"type":"enabled","budget_tokens":1024},"#),
        ),
        row(
            "thinking-budget",
            "thinking.budget_tokens",
            hi(r#""thinking":{"type":"enabled","budget_tokens":4000},"#),
            hi(r#""thinking":{"type":"enabled","budget_tokens":3999},"#),
        ),
        row(
            "thinking-disabled-at-effort",
            "thinking.type",
            hi(r#""thinking":{"type":"disabled"},"output_config":{"effort":"xhigh"},"#),
            hi(r#""thinking":{"type":"disabled"},"output_config":{"effort":"high"},"#),
        )
        .with(up_to_high),
        row(
            "task-budget",
            "output_config.task_budget.total",
            hi(r#""output_config":{"task_budget":{"type":"tokens","total":19999}},"#),
            hi(r#""output_config":{"task_budget":{"type":"tokens","total":20000}},"#),
        ),
        row(
            "beta-header-missing",
            "thread",
            hi(r#""thread":{"type":"create"},"#),
            hi(r#""anthropic_beta":["message-threads-2026-08-12"],"thread":{"type":"create"},"#),
        )
        .with(no_betas),
        row("thread-type", "thread.type", hi(r#""thread":{"type":"resume"},"#), hi(r#""thread":{"type":"create"},"#)),
        row(
            "thread-continue-repeats",
            "system",
            hi(r#""system":"Be brief.","thread":{"type":"continue","previous_message_id":"msg_1"},"#),
            body(r#""thread":{"type":"continue","previous_message_id":"msg_1"},"#, "[]"),
        ),
        row(
            "missing-field",
            "thread.previous_message_id",
            hi(r#""thread":{"type":"continue"},"#),
            // The call is in the part of the thread that the server holds.
            body(
                r#""thread":{"type":"continue","previous_message_id":"msg_1"},"#,
                &format!("[{}]", user(&result("a"))),
            ),
        ),
        row(
            "compaction-trigger-too-low",
            "context_management.edits[0].trigger.value",
            hi(r#""context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":49999}}]},"#),
            hi(r#""context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]},"#),
        ),
        row(
            "clear-thinking-order",
            "context_management.edits[1]",
            hi(r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919"},{"type":"clear_thinking_20251015"}]},"#),
            hi(r#""context_management":{"edits":[{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919"}]},"#),
        )
        .warning(),
    ]
}

fn messages() -> Vec<Row> {
    let newest = CheckOptions {
        anthropic_version: Some("2026-10-21"),
        ..known()
    };
    let no_prefill = model(|model| model.abilities.prefill = Some(false));
    let small_window = model(|model| model.window = 200_000);
    let document =
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"page"}}"#;
    let cited = r#"{"type":"text","text":"x","citations":[]}"#;
    let linked = r#"{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}"#;
    let hello = assistant(&text("Hello."));
    let system = r#"{"role":"system","content":"Prices are in EUR."}"#;
    let nested = |blocks: &str| {
        let result = format!(r#"{{"type":"tool_result","tool_use_id":"a","content":[{blocks}]}}"#);
        talk(&[HI, &assistant(&call("a")), &user(&result)])
    };
    vec![
        row("messages-empty", "messages", body("", "[]"), talk(&[HI])),
        row(
            "too-many-messages",
            "messages",
            talk(&vec![HI; 100_001]),
            talk(&vec![HI; 100_000]),
        ),
        row(
            "unknown-role",
            "messages[1].role",
            talk(&[HI, r#"{"role":"tool","content":"x"}"#]),
            talk(&[HI, r#"{"role":"user","content":"x"}"#]),
        ),
        row("first-message-not-user", "messages[0].role", talk(&[&hello, HI]), talk(&[HI, &hello, HI])),
        row("system-first", "messages[0].role", talk(&[system, HI]), talk(&[HI, system])),
        row("system-misplaced", "messages[1]", talk(&[HI, system, HI]), talk(&[HI, system, system, &hello, HI])),
        row(
            "system-misplaced",
            "messages[2]",
            talk(&[HI, &hello, system, &hello, HI]),
            talk(&[HI, &assistant(&[search("s"), found("s")].join(",")), system, &hello, HI]),
        ),
        row(
            "system-misplaced",
            "messages[2]",
            talk(&[HI, &assistant(&call("a")), system, &user(&result("a"))]).replace(
                r#"},{"role":"user","content":[{"type":"tool_result""#,
                r#"},{"role":"assistant","content":"On it."},{"role":"user","content":[{"type":"tool_result""#,
            ),
            talk(&[HI, &assistant(&call("a")), &user(&result("a")), system]),
        ),
        row("system-unsupported", "messages[1].role", talk(&[HI, system]), talk(&[HI]))
            .with(model(|model| model.abilities.mid_conversation_system = Some(false))),
        row(
            "block-wrong-role",
            "messages[1].content[0].type",
            talk(&[HI, r#"{"role":"system","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}"#]),
            talk(&[HI, r#"{"role":"system","clear_at":"never","output_config":{"effort":"low"},"content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}]}"#]),
        ),
        row("prefill-unsupported", "messages[1].role", talk(&[HI, &hello]), talk(&[HI])).with(no_prefill),
        row("prefill-unsupported", "messages[1].role", talk(&[HI, &hello]), talk(&[HI]))
            .warning()
            .with(model(|model| model.abilities.prefill = None)),
        row(
            "prefill-trailing-space",
            "messages[1].content",
            talk(&[HI, &assistant(&text(r"The answer is\n"))]),
            talk(&[HI, &assistant(&text("The answer is"))]),
        ),
        row(
            "empty-content",
            "messages[0].content",
            talk(&[r#"{"role":"user","content":""}"#]),
            // Only the last message of the assistant may be empty.
            talk(&[HI, r#"{"role":"assistant","content":""}"#]),
        ),
        row("empty-content", "messages[1].content", talk(&[HI, &assistant(""), HI]), talk(&[HI, &hello, HI])),
        row("empty-text", "messages[0].content[1].text", talk(&[&user(&[text("a"), text("")].join(","))]), talk(&[&user(&text("a"))])),
        row("blank-text", "messages[0].content", talk(&[r#"{"role":"user","content":" \n\t"}"#]), talk(&[HI])),
        row("blank-text", "messages[1].content[0].text", talk(&[HI, &assistant(&text("  ")), HI]), talk(&[HI, &hello, HI])),
        row("blank-text", "messages[2].content[0].content[0].text", nested(&text(r"\n")), nested(&text("ok"))).warning(),
        row("block-wrong-role", "messages[1].content[0].type", talk(&[HI, &assistant(linked), HI]), talk(&[&user(linked)])),
        row("block-wrong-role", "messages[0].content[0].type", talk(&[&user(THINKING), HI]), talk(&[HI, &assistant(&[THINKING, &text("a")].join(",")), HI])),
        row("document-in-assistant", "messages[1].content[0]", talk(&[HI, &assistant(document), HI]), talk(&[&user(document)])).with(newest),
        row("citations-in-user-text", "messages[0].content[0].citations", talk(&[&user(cited)]), talk(&[HI, &assistant(cited), HI])).with(newest),
        row("media-type", "messages[0].content[0].source.media_type", image("AAAA", "image/bmp"), image("AAAA", "image/webp")),
        row(
            "media-type",
            "messages[0].content[0].source.media_type",
            talk(&[&user(&document.replace("text/plain", "text/html"))]),
            talk(&[&user(document)]),
        ),
        row(
            "unknown-value",
            "messages[0].content[0].source.type",
            talk(&[&user(r#"{"type":"image","source":{"type":"hologram"}}"#)]),
            talk(&[&user(linked)]),
        )
        .warning(),
        row("missing-field", "messages[0].content[0].source", talk(&[&user(r#"{"type":"image"}"#)]), talk(&[&user(linked)])),
        row(
            "too-many-images",
            "messages",
            talk(&[&user(&vec![linked; 601].join(","))]),
            talk(&[&user(&vec![linked; 600].join(","))]),
        ),
        row(
            "too-many-images",
            "messages",
            talk(&[&user(&vec![linked; 101].join(","))]),
            talk(&[&user(&vec![linked; 100].join(","))]),
        )
        .with(small_window),
        row("tool-result-content-type", "messages[2].content[0].content[0].type", nested(&call("b")), nested(linked)),
        row(
            "missing-field",
            "messages[0].content[0].content[0].text",
            talk(&[&user(r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text"}]}"#)]),
            talk(&[&user(r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}"#)]),
        ),
    ]
}

/// Breaks two rules at once: the text must not be empty, and what is empty cannot be marked.
pub(super) fn marked_empty_text() -> String {
    talk(&[&marked(&[MARK]).replace(r#""text":"x""#, r#""text":"""#)])
}

#[track_caller]
fn check_codes(body: &str, options: &CheckOptions<'_>, expected: &[(&str, &str)]) {
    let report = check_text(body, Wire::Anthropic, options);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.code, finding.path.as_str()))
        .collect();
    assert_eq!(found, expected, "{body}");
}

#[test]
fn one_body_can_break_several_rules() {
    check_codes(
        &body(
            &format!("{THINKS}{TOOLS}"),
            &format!("[{HI},{},{}]", assistant(&call("a")), user(&result("a"))),
        ),
        &known(),
        &[("thinking-not-first", "messages[1].content")],
    );
    check_codes(
        &marked_empty_text(),
        &known(),
        &[
            (
                "cache-marker-on-empty-text",
                "messages[0].content[0].cache_control",
            ),
            ("empty-text", "messages[0].content[0].text"),
        ],
    );
    check_codes(
        &talk(&[HI, &assistant(&call("a")), &user(&result("b"))]),
        &known(),
        &[
            (
                "tool-result-without-use",
                "messages[2].content[0].tool_use_id",
            ),
            ("tool-use-without-result", "messages[1].content[0].id"),
        ],
    );
}

#[test]
fn unknown_values_only_cause_warnings() {
    let unknown = CheckOptions::default();
    for body in [
        talk(&[HI, &assistant(&text("And "))]),
        hi(r#""temperature":0.2,"#),
        talk(&[&user(r#"{"type":"text","text":"x","citations":[]}"#)]),
        hi(THINKS),
        hi(r#""thinking":{"type":"disabled"},"#),
    ] {
        assert!(
            check_text(&body, Wire::Anthropic, &unknown).is_valid(),
            "{body}"
        );
    }
}

#[test]
fn budgets_may_exceed_the_answer_when_thinking_is_interleaved() {
    let options = CheckOptions {
        betas: Some(&["interleaved-thinking-2025-05-14"]),
        ..known()
    };
    check_codes(
        &hi(r#""thinking":{"type":"enabled","budget_tokens":9000},"#),
        &options,
        &[],
    );
}

#[test]
fn unknown_results_close_the_calls_of_server_tools() {
    let result = r#"{"type":"future_tool_result","tool_use_id":"s","content":{}}"#;
    check_codes(
        &talk(&[HI, &assistant(&[&search("s"), result].join(",")), HI]),
        &known(),
        &[("unknown-block-type", "messages[1].content[1].type")],
    );
}

#[test]
fn many_open_calls_take_linear_time() {
    let mut messages = vec![HI.to_owned()];
    for turn in 0..20_000 {
        let calls = [search(&format!("s{turn}")), call(&format!("a{turn}"))];
        messages.push(assistant(&calls.join(",")));
        messages.push(user(&result(&format!("a{turn}"))));
    }
    let body = body(TOOLS, &format!("[{}]", messages.join(",")));
    // All searches may still be answered by the next reply.
    check_codes(&body, &known(), &[]);
}
