//! Rules of Anthropic Messages for what must fit together: tool calls, thinking, cache markers, compaction.

use super::super::*;
use super::anthropic::{
    HI, HOUR, MARK, THINKING, THINKS, TOOLS, assistant, body, call, found, hi, marked, result, row,
    search, talk, text, user,
};
use super::{Row, known, model};

pub(super) fn table() -> Vec<Row> {
    let mut rows = pairing();
    rows.extend(server_tools());
    rows.extend(thinking());
    rows.extend(markers());
    rows.extend(compaction());
    rows
}

fn pairing() -> Vec<Row> {
    let two = assistant(&[call("a"), call("b")].join(","));
    let both = user(&[result("a"), result("b")].join(","));
    let one = assistant(&call("a"));
    let done = user(&result("a"));
    let toolset = |name: &str| {
        talk(&[
            HI,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{},"toolset_name":"t"}]}"#,
            &user(&format!(
                r#"{{"type":"tool_result","tool_use_id":"a","toolset_name":"{name}"}}"#
            )),
        ])
    };
    let call_with = |id: &str, input: &str| {
        talk(&[
            HI,
            &assistant(&format!(
                r#"{{"type":"tool_use","id":"{id}","name":"f","input":{input}}}"#
            )),
            &user(&result(id)),
        ])
    };
    vec![
        row(
            "tool-use-without-result",
            "messages[1].content[0].id",
            talk(&[HI, &one, HI]),
            talk(&[HI, &one, &done]),
        ),
        row(
            "tool-use-without-result",
            "messages[1].content[0].id",
            talk(&[HI, &one]),
            talk(&[HI, &one, &done, HI]),
        ),
        row(
            "tool-use-without-result",
            "messages[1].content[1].id",
            talk(&[HI, &two, &done]),
            talk(&[HI, &two, &both]),
        ),
        row(
            "tool-result-without-use",
            "messages[0].content[0].tool_use_id",
            talk(&[&done, &assistant(&text("x")), HI]),
            talk(&[HI, &one, &done]),
        ),
        row(
            "tool-result-not-adjacent",
            "messages[4].content[0].tool_use_id",
            talk(&[HI, &one, &done, &assistant(&text("Done.")), &done]),
            talk(&[HI, &one, &done, &assistant(&call("b")), &user(&result("b"))]),
        ),
        row(
            "tool-result-not-first",
            "messages[2].content[1]",
            talk(&[HI, &one, &user(&[text("Here."), result("a")].join(","))]),
            talk(&[HI, &one, &user(&[result("a"), text("Here.")].join(","))]),
        ),
        row(
            "tool-result-not-first",
            "messages[4].content[0]",
            talk(&[HI, &two, &done, HI, &user(&result("b"))]),
            // Messages of one role are one turn, so the results may be spread over them.
            talk(&[
                HI,
                &assistant(&call("a")),
                &assistant(&call("b")),
                &done,
                &user(&result("b")),
                HI,
            ]),
        ),
        row(
            "duplicate-tool-use-id",
            "messages[3].content[0].id",
            talk(&[HI, &one, &done, &one, &done]),
            talk(&[HI, &one, &done, &assistant(&call("b")), &user(&result("b"))]),
        ),
        row(
            "duplicate-tool-use-id",
            "messages[1].content[1].id",
            talk(&[HI, &assistant(&[call("a"), call("a")].join(",")), &done]),
            talk(&[HI, &two, &both]),
        ),
        row(
            "duplicate-tool-result",
            "messages[2].content[1].tool_use_id",
            talk(&[HI, &one, &user(&[result("a"), result("a")].join(","))]),
            talk(&[HI, &one, &done]),
        ),
        row(
            "toolset-name-mismatch",
            "messages[2].content[0].toolset_name",
            toolset("u"),
            toolset("t"),
        ),
        row(
            "tools-missing",
            "tools",
            body("", &format!("[{HI},{one},{done}]")),
            talk(&[HI, &one, &done]),
        )
        .warning(),
        row(
            "tool-id-characters",
            "messages[1].content[0].id",
            call_with("f:1", "{}"),
            call_with("f-1", "{}"),
        ),
        row(
            "tool-input-not-object",
            "messages[1].content[0].input",
            call_with("a", r#""{}""#),
            call_with("a", "{}"),
        ),
        row(
            "missing-field",
            "messages[1].content[0].input",
            talk(&[
                HI,
                &assistant(r#"{"type":"tool_use","id":"a","name":"f"}"#),
                &done,
            ]),
            talk(&[HI, &one, &done]),
        ),
    ]
}

fn server_tools() -> Vec<Row> {
    let pair = assistant(&[search("s"), found("s"), text("Found.")].join(","));
    let open = assistant(&search("s"));
    let mixed = assistant(&[search("s"), call("a")].join(","));
    let done = user(&result("a"));
    let finished = assistant(&[found("s"), text("Found.")].join(","));
    let connector = |id: &str| {
        assistant(&format!(
            r#"{{"type":"mcp_tool_use","id":"c","name":"n","server_name":"s","input":{{}}}},{{"type":"mcp_tool_result","tool_use_id":"{id}","is_error":false,"content":[]}}"#
        ))
    };
    vec![
        row(
            "server-tool-without-result",
            "messages[1].content[0].id",
            talk(&[HI, &open, HI]),
            talk(&[HI, &pair, HI]),
        ),
        row(
            "server-tool-without-result",
            "messages[1].content[0].id",
            talk(&[HI, &mixed, &user(&[result("a"), text("Go on.")].join(","))]),
            // The search continues once the client's results are there.
            talk(&[HI, &mixed, &done, &finished, HI]),
        ),
        row(
            "server-result-without-use",
            "messages[1].content[0].tool_use_id",
            talk(&[HI, &finished, HI]),
            talk(&[HI, &pair, HI]),
        ),
        row(
            "server-result-without-use",
            "messages[1].content[1].tool_use_id",
            // A missing partner is one finding for each of the two.
            talk(&[HI, &connector("d")]).replace(
                r#"{"type":"mcp_tool_use","id":"c","name":"n","server_name":"s","input":{}}"#,
                &text("x"),
            ),
            talk(&[HI, &connector("c"), HI]),
        ),
        row(
            "duplicate-tool-result",
            "messages[1].content[2].tool_use_id",
            talk(&[
                HI,
                &assistant(&[search("s"), found("s"), found("s")].join(",")),
                HI,
            ]),
            talk(&[HI, &pair, HI]),
        ),
        row(
            "server-tool-undefined",
            "messages[1].content[0].name",
            talk(&[HI, &open]).replace(
                "web_search_20250305\",\"name\":\"web_search\"",
                "bash_20250124\",\"name\":\"bash\"",
            ),
            // A paused turn is sent back as it is.
            talk(&[HI, &open]),
        ),
    ]
}

fn thinking() -> Vec<Row> {
    let loop_of = |first: &str, second: &str| {
        body(
            &format!("{THINKS}{TOOLS}"),
            &format!(
                "[{HI},{},{},{},{}]",
                assistant(first),
                user(&result("a")),
                assistant(second),
                user(&result("b"))
            ),
        )
    };
    let thought = [THINKING, &call("a")].join(",");
    vec![
        row(
            "thinking-signature-missing",
            "messages[1].content[0].signature",
            talk(&[
                HI,
                &assistant(&[r#"{"type":"thinking","thinking":"x"}"#, &text("a")].join(",")),
                HI,
            ]),
            talk(&[HI, &assistant(&[THINKING, &text("a")].join(",")), HI]),
        ),
        row(
            "thinking-signature-missing",
            "messages[1].content[0].data",
            talk(&[
                HI,
                &assistant(&[r#"{"type":"redacted_thinking","data":""}"#, &text("a")].join(",")),
                HI,
            ]),
            talk(&[
                HI,
                &assistant(&[r#"{"type":"redacted_thinking","data":"x"}"#, &text("a")].join(",")),
                HI,
            ]),
        ),
        row(
            "thinking-not-first",
            "messages[3].content",
            loop_of(&call("a"), &call("b")),
            // Models that do not think between tools think at the start of the loop only.
            loop_of(&thought, &call("b")),
        ),
        row(
            "thinking-last",
            "messages[1]",
            talk(&[HI, &assistant(THINKING), HI]),
            talk(&[HI, &assistant(&[THINKING, &text("a")].join(",")), HI]),
        )
        .warning(),
    ]
}

fn markers() -> Vec<Row> {
    let with_system = |system: &str, messages: &str, more: &str| {
        body(
            &format!(r#""system":[{{"type":"text","text":"x",{system}}}],{more}"#),
            &format!("[{messages}]"),
        )
    };
    let automatic = format!("{MARK},");
    let unmarked_tail = |marks: &[&str]| format!("{},{}", marked(marks), HI);
    vec![
        row(
            "cache-marker-malformed",
            "messages[0].content[0].cache_control",
            talk(&[&marked(&[r#""cache_control":{"type":"ephemeral","ttl":"2h"}"#])]),
            talk(&[&marked(&[r#""cache_control":{"type":"ephemeral","ttl":"5m"}"#])]),
        ),
        row(
            "too-many-cache-markers",
            "messages[0].content[3].cache_control",
            with_system(MARK, &marked(&[MARK; 4]), ""),
            with_system(MARK, &marked(&[MARK; 3]), ""),
        ),
        row(
            "too-many-cache-markers",
            "cache_control",
            with_system(MARK, &unmarked_tail(&[MARK; 3]), &automatic),
            with_system(MARK, &unmarked_tail(&[MARK; 2]), &automatic),
        ),
        row(
            "cache-ttl-order",
            "messages[0].content[0].cache_control",
            with_system(MARK, &marked(&[HOUR]), ""),
            with_system(HOUR, &marked(&[MARK]), ""),
        ),
        row(
            "cache-ttl-order",
            "cache_control",
            with_system(MARK, HI, &format!("{HOUR},")),
            with_system(HOUR, HI, &automatic),
        ),
        row(
            // The order is that of the rendering, not of the fields in the body.
            "cache-ttl-order",
            "messages[0].content[0].cache_control",
            format!(
                r#"{{"messages":[{}],"tools":[{{"name":"f","input_schema":{{"type":"object"}},{MARK}}}],"max_tokens":9,"model":"m"}}"#,
                marked(&[HOUR])
            ),
            format!(
                r#"{{"messages":[{}],"tools":[{{"name":"f","input_schema":{{"type":"object"}},{HOUR}}}],"max_tokens":9,"model":"m"}}"#,
                marked(&[MARK])
            ),
        ),
        row(
            "cache-marker-on-thinking",
            "messages[1].content[0].cache_control",
            talk(&[HI, &assistant(&format!(r#"{{"type":"thinking","thinking":"","signature":"s",{MARK}}},{}"#, text("a"))), HI]),
            talk(&[HI, &assistant(&format!(r#"{THINKING},{{"type":"text","text":"a",{MARK}}}"#)), HI]),
        ),
        row(
            "cache-marker-misplaced",
            "messages[2].content[0].content[0].cache_control",
            talk(&[
                HI,
                &assistant(&call("a")),
                &user(&format!(r#"{{"type":"tool_result","tool_use_id":"a","content":[{{"type":"text","text":"x",{MARK}}}]}}"#)),
            ]),
            talk(&[
                HI,
                &assistant(&call("a")),
                &user(&format!(r#"{{"type":"tool_result","tool_use_id":"a","content":[{}],{MARK}}}"#, text("x"))),
            ]),
        )
        .warning(),
        row(
            "cache-automatic-ttl",
            "cache_control",
            body(&automatic, &format!("[{}]", marked(&[HOUR]))),
            body(&automatic, &format!("[{}]", marked(&[MARK]))),
        ),
    ]
}

fn compaction() -> Vec<Row> {
    let signed =
        r#"{"type":"compaction","content":"So far: a.","encrypted_content":"e","signature":"s"}"#;
    let unsigned = r#"{"type":"compaction","content":"So far: a."}"#;
    let ask = r#""compaction":{"type":"summarize"},"#;
    let asks = |more: &str| hi(&format!("{ask}{more}"));
    let asks_for = |messages: &[&str]| {
        body(
            &format!("{TOOLS}{ask}"),
            &format!("[{}]", messages.join(",")),
        )
    };
    let hello = assistant(&text("Hello."));
    let no_betas = CheckOptions {
        betas: Some(&[]),
        ..known()
    };
    let on_demand = CheckOptions {
        betas: Some(&["compact-2026-09-04"]),
        ..known()
    };
    assert!(
        check_text(
            &talk(&[&assistant(signed), HI]),
            Wire::Anthropic,
            &on_demand
        )
        .is_valid()
    );
    let with_effort = r#"{"role":"system","content":"x","output_config":{"effort":"low"}}"#;
    for beta in [
        "mid-conversation-output-config-2026-07-01",
        "per-turn-control-2026-07-01",
    ] {
        let names = [beta];
        let switched_on = CheckOptions {
            betas: Some(&names),
            ..known()
        };
        let report = check_text(&talk(&[HI, with_effort]), Wire::Anthropic, &switched_on);
        assert!(report.is_valid(), "{beta}: {report:#?}");
    }
    vec![
        row(
            "beta-header-missing",
            "messages[0].content[0]",
            talk(&[&assistant(signed), HI]),
            talk(&[HI]),
        )
        .with(no_betas),
        row(
            "beta-header-missing",
            "messages[1].output_config",
            talk(&[HI, with_effort]),
            talk(&[HI, r#"{"role":"system","content":"x"}"#]),
        )
        .with(no_betas),
        row(
            "beta-header-missing",
            "messages[1].clear_at",
            talk(&[HI, r#"{"role":"system","content":"x","clear_at":"never"}"#]),
            talk(&[HI, r#"{"role":"system","content":"x"}"#]),
        )
        .with(no_betas),
        row("compaction-unsupported", "compaction", asks(""), hi("")).with(model(|model| {
            model.abilities.on_demand_compaction = Some(false)
        })),
        row(
            "compaction-with-context-management",
            "context_management",
            asks(r#""context_management":{"edits":[]},"#),
            asks(""),
        ),
        row(
            "compaction-shapes-reply",
            "stop_sequences",
            asks(r#""stop_sequences":["END"],"#),
            asks(""),
        ),
        row(
            "compaction-shapes-reply",
            "tool_choice",
            asks(&format!(r#"{TOOLS}"tool_choice":{{"type":"any"}},"#)),
            asks(&format!(r#"{TOOLS}"tool_choice":{{"type":"auto"}},"#)),
        ),
        row(
            "compaction-block-misplaced",
            "messages[1].content[0]",
            talk(&[HI, &assistant(signed), HI]),
            talk(&[&assistant(signed), HI]),
        ),
        row(
            "compaction-block-ambiguous",
            "messages[2].content[0]",
            talk(&[&assistant(signed), HI, &assistant(unsigned), HI]),
            // Blocks of the threshold compaction may stay where they came.
            talk(&[HI, &assistant(unsigned), HI, &assistant(unsigned), HI]),
        ),
        row(
            "compaction-block-empty",
            "messages[1].content[0].content",
            talk(&[HI, &assistant(r#"{"type":"compaction","content":""}"#), HI]),
            talk(&[
                HI,
                &assistant(r#"{"type":"compaction","content":null}"#),
                HI,
            ]),
        ),
        row(
            "compaction-incomplete-turn",
            "messages[1].content[0].id",
            asks_for(&[HI, &assistant(&call("a"))]),
            asks_for(&[HI, &hello]),
        ),
        row(
            "compaction-nothing-to-summarize",
            "messages",
            asks_for(&[&assistant(signed)]),
            asks_for(&[&assistant(signed), HI]),
        ),
    ]
}
