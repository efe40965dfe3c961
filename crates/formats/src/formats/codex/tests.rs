use super::*;
use crate::formats::testing::story;

fn read_text(text: &str) -> Source {
    Codex
        .read(&SourceText::from_bytes(text.as_bytes().to_vec()))
        .unwrap()
}

fn line(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-01-01T00:00:01Z","type":"{kind}","payload":{payload}}}"#)
}

fn said(role: &str, text: &str) -> String {
    let kind = if role == "assistant" {
        "output_text"
    } else {
        "input_text"
    };
    line(
        "response_item",
        &format!(
            r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":{text:?}}}]}}"#
        ),
    )
}

fn only(lines: &[String]) -> Conversation {
    read_text(&lines.join("\n")).conversations.remove(0)
}

#[track_caller]
fn check(lines: &[String], expected: &[&str]) {
    assert_eq!(story(&only(lines)), expected);
}

#[test]
fn the_items_of_a_response_are_one_message() {
    let usage = r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":900},"last_token_usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":9}}}"#;
    let conversation = only(&[
        line(
            "session_meta",
            r#"{"id":"s1","cwd":"/w","base_instructions":{"text":"be brief"}}"#,
        ),
        line("session_meta", r#"{"id":"parent","cwd":"/other"}"#),
        line("turn_context", r#"{"model":"m-1","cwd":"/x"}"#),
        said("user", "go"),
        line(
            "response_item",
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}"#,
        ),
        line(
            "response_item",
            r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}"#,
        ),
        line("event_msg", usage),
        line(
            "response_item",
            r#"{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"none\\n\",\"metadata\":{\"exit_code\":2}}"}"#,
        ),
        said("assistant", "done"),
        line("event_msg", r#"{"type":"agent_message","message":"done"}"#),
    ]);
    assert_eq!(
        story(&conversation),
        [
            "user: go",
            "model: (hm) + call c1 shell",
            "tool: failed c1 none\n",
            "model: done"
        ]
    );
    let usage = conversation.messages[1].usage.unwrap();
    assert_eq!(
        (usage.uncached, usage.cache_read, usage.output),
        (40, 60, 9)
    );
    assert_eq!(conversation.messages[3].usage, None);
    assert_eq!(conversation.messages[1].position.line, 5);
    assert_eq!(
        (conversation.id.as_str(), conversation.cwd.as_deref()),
        ("s1", Some("/w"))
    );
    assert_eq!(conversation.model.as_deref(), Some("m-1"));
    assert_eq!(conversation.system, [Block::text("be brief")]);
}

#[test]
fn other_calls_and_outputs() {
    check(
        &[
            line(
                "response_item",
                r#"{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin"}"#,
            ),
            line(
                "response_item",
                r#"{"type":"local_shell_call","call_id":"c2","action":{"type":"exec","command":["ls"]}}"#,
            ),
            line(
                "response_item",
                r#"{"type":"web_search_call","id":"w1","action":{"query":"x"}}"#,
            ),
            line(
                "response_item",
                r#"{"type":"custom_tool_call_output","call_id":"c1","output":"Exit code: 0\nOutput:\nok"}"#,
            ),
            line(
                "response_item",
                r#"{"type":"function_call_output","call_id":"c2","output":{"content":"bad","success":false}}"#,
            ),
            line("response_item", r#"{"type":"ghost_snapshot"}"#),
            line("response_item", r#"{"type":"hologram"}"#),
        ],
        &[
            "model: call c1 apply_patch + call c2 local_shell + call w1 web_search",
            "tool: result c1 Exit code: 0\nOutput:\nok",
            "tool: failed c2 bad",
            "model: Other(\"hologram\")",
        ],
    );
}

#[test]
fn client_insertions_are_not_the_users() {
    check(
        &[
            said("developer", "rules"),
            said(
                "user",
                "<environment_context>\n<cwd>/w</cwd></environment_context>",
            ),
            said("user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>x"),
            said(
                "user",
                "<recommended_plugins>\n- Tides (tides@remote)\n</recommended_plugins>\n",
            ),
            said("user", "<tide_table> is empty, mend it"),
            said("user", "<table><tr></tr></table>"),
            said(
                "user",
                "# Context from my IDE setup:\n\n## Open tabs:\n- a.rs\n\n## My request for Codex:\nfix it\n",
            ),
        ],
        &[
            "system: rules",
            "client: <environment_context>\n<cwd>/w</cwd></environment_context>",
            "client: # AGENTS.md instructions for /w\n\n<INSTRUCTIONS>x",
            "client: <recommended_plugins>\n- Tides (tides@remote)\n</recommended_plugins>\n",
            "user: <tide_table> is empty, mend it",
            "user: <table><tr></tr></table>",
            "client: # Context from my IDE setup:\n\n## Open tabs:\n- a.rs",
            "user: fix it",
        ],
    );
}

#[test]
fn a_compaction_is_marked_and_the_originals_stay() {
    let conversation = only(&[
        said("user", "old"),
        said("assistant", "answer"),
        line(
            "compacted",
            r#"{"message":"what was","replacement_history":[{"type":"message","role":"user","content":[]}]}"#,
        ),
        line("event_msg", r#"{"type":"context_compacted"}"#),
        said("user", "new"),
    ]);
    assert_eq!(
        story(&conversation),
        [
            "user: old",
            "model: answer",
            "compaction: what was",
            "user: new"
        ]
    );
    let marks: Vec<_> = conversation
        .compactions
        .iter()
        .map(|mark| mark.before_message)
        .collect();
    assert_eq!(marks, [2]);
}

#[test]
fn rolled_back_turns_are_left_out() {
    let conversation = only(&[
        said("user", "one"),
        said("assistant", "yes"),
        said("user", "two"),
        said("assistant", "no"),
        line(
            "event_msg",
            r#"{"type":"thread_rolled_back","num_turns":1}"#,
        ),
        said("user", "three"),
    ]);
    assert_eq!(
        story(&conversation),
        ["user: one", "model: yes", "user: three"]
    );
    assert_eq!(conversation.problems[0].code, "rolled-back");
}

#[test]
fn events_count_only_where_there_are_no_items() {
    check(
        &[
            line("event_msg", r#"{"type":"user_message","message":"go"}"#),
            line("event_msg", r#"{"type":"agent_reasoning","text":"hm"}"#),
            line("event_msg", r#"{"type":"agent_message","message":"done"}"#),
        ],
        &["user: go", "model: (hm)", "model: done"],
    );
}

#[test]
fn items_without_a_wrapper_are_read() {
    check(
        &[
            r#"{"id":"s","timestamp":"2025-05-01T00:00:00Z","instructions":null}"#.to_owned(),
            r#"{"record_type":"state"}"#.to_owned(),
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}"#
                .to_owned(),
        ],
        &["user: go"],
    );
}

#[test]
fn damage_is_reported() {
    let text = format!("{}\n{{\"a\":1}}\n{{\"timestamp\":", said("user", "go"));
    let source = read_text(&text);
    assert_eq!(story(&source.conversations[0]), ["user: go"]);
    let lines: Vec<_> = source.skipped.iter().map(|piece| piece.line).collect();
    assert_eq!(lines, [2, 3]);
    assert!(Codex.read(&SourceText::from_text("{}")).is_err());
}

/// Custom calls stay custom calls in a Responses request, whatever is in their response.
#[test]
fn custom_calls_are_converted_with_their_outputs() {
    use crate::convert::{Options, convert, request_with_memory};
    use throughline_transcript::check::{CheckOptions, check_text};
    use throughline_transcript::wire::Wire;

    let item = |payload: &str| line("response_item", payload);
    let reasoning =
        item(r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}"#);
    let custom =
        item(r#"{"type":"custom_tool_call","call_id":"c1","name":"exec","input":"text(\"é\")"}"#);
    let other = item(r#"{"type":"custom_tool_call","call_id":"c2","name":"exec","input":""}"#);
    let function =
        item(r#"{"type":"function_call","call_id":"f1","name":"wait","arguments":"{\"id\":1}"}"#);
    let shell = item(
        r#"{"type":"local_shell_call","call_id":"l1","status":"completed","action":{"type":"exec","command":["ls"]}}"#,
    );
    let done = |kind: &str, id: &str| {
        item(&format!(
            r#"{{"type":"{kind}_output","call_id":"{id}","output":"out of {id}"}}"#
        ))
    };
    let parts = item(
        r#"{"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_text","text":"out of c1"}]}"#,
    );
    let custom_done = || done("custom_tool_call", "c1");
    let cases: &[&[String]] = &[
        &[custom.clone(), custom_done()],
        &[reasoning.clone(), custom.clone(), custom_done()],
        &[reasoning.clone(), custom.clone(), parts],
        &[custom.clone(), said("assistant", "then"), custom_done()],
        &[
            reasoning.clone(),
            custom.clone(),
            function.clone(),
            custom_done(),
            done("function_call", "f1"),
        ],
        &[
            custom.clone(),
            other.clone(),
            done("custom_tool_call", "c2"),
            custom_done(),
        ],
        &[reasoning.clone(), custom.clone()],
        &[custom.clone(), done("function_call", "c1")],
        &[
            function.clone(),
            done("custom_tool_call", "f1"),
            custom.clone(),
        ],
        &[
            reasoning,
            shell,
            done("function_call", "l1"),
            custom.clone(),
            custom_done(),
        ],
        &[
            custom.clone(),
            custom_done(),
            said("user", "again"),
            custom,
            custom_done(),
        ],
    ];
    for (number, case) in cases.iter().enumerate() {
        let mut lines = vec![said("user", "go")];
        lines.extend_from_slice(case);
        lines.push(said("assistant", "done"));
        let conversation = only(&lines);
        for wire in Wire::ALL {
            let cut = conversation.messages.len() - 1;
            for converted in [
                convert(&conversation, wire, &Options::default()),
                request_with_memory(&conversation, "memory", cut, wire, &Options::default()),
            ] {
                let report = check_text(&converted.body, wire, &CheckOptions::default());
                let errors: Vec<_> = report.errors().map(|finding| &finding.code).collect();
                assert!(
                    errors.is_empty(),
                    "{number} {wire:?}: {errors:?} {}",
                    converted.body
                );
            }
        }
        let body = convert(&conversation, Wire::OpenAiResponses, &Options::default()).body;
        assert!(
            body.contains(r#""type":"custom_tool_call","call_id":"c1""#),
            "{number}: {body}"
        );
        assert!(
            !body.contains(r#""type":"function_call","call_id":"c1""#),
            "{number}: {body}"
        );
    }
}

#[test]
fn a_file_that_continues_another_says_so() {
    let conversation = only(&[
        line(
            "session_meta",
            r#"{"id":"s2","cwd":"/w","history_mode":"paginated","history_base":{"thread_id":"s1","end_ordinal_exclusive":5}}"#,
        ),
        said("user", "go"),
    ]);
    let problem = &conversation.problems[0];
    assert_eq!(problem.code, "earlier-history");
    assert!(problem.text.contains("\"s1\""), "{}", problem.text);
    let whole = only(&[
        line("session_meta", r#"{"id":"s2","history_base":null}"#),
        said("user", "go"),
    ]);
    assert!(whole.problems.is_empty());
}

#[test]
fn events_of_newer_versions_count_where_there_is_nothing_else() {
    let completed = |kind: &str, text: &str| {
        line(
            "event_msg",
            &format!(
                r#"{{"type":"item_completed","item":{{"type":"{kind}","id":"i","content":[{{"type":"Text","text":"{text}"}}]}}}}"#
            ),
        )
    };
    check(
        &[
            completed("UserMessage", "go"),
            completed("AgentMessage", "done"),
        ],
        &["user: go", "model: done"],
    );
    check(
        &[said("user", "go"), completed("UserMessage", "go")],
        &["user: go"],
    );
}

#[test]
fn results_name_the_files_of_computed_patches() {
    let call = line(
        "response_item",
        r#"{"type":"custom_tool_call","call_id":"c1","name":"exec","input":"tools.apply_patch(build())"}"#,
    );
    let output = line(
        "response_item",
        r#"{"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_text","text":"Script completed\n"},{"type":"input_text","text":"ok"}]}"#,
    );
    let event = |id: &str, success: bool| {
        line(
            "event_msg",
            &format!(
                r#"{{"type":"patch_apply_end","call_id":"{id}","success":{success},"changes":{{"/w/quay.c":{{"type":"update","move_path":null}},"/w/new.c":{{"type":"add"}}}}}}"#
            ),
        )
    };
    let named = "tool: result c1 Script completed\n + ok + Success. Updated the following files:\nM /w/quay.c\nA /w/new.c";
    let bare = "tool: result c1 Script completed\n + ok";
    for (event, is_first, expected) in [
        (event("c1", true), true, named),
        (event("c1", true), false, named),
        (event("nested-1", true), true, named),
        (event("c1", false), true, bare),
    ] {
        let mut lines = vec![said("user", "go"), call.clone()];
        lines.extend(if is_first {
            [event, output.clone()]
        } else {
            [output.clone(), event]
        });
        check(&lines, &["user: go", "model: call c1 exec", expected]);
    }
}
