//! One test for each trap of the format. Sessions are built line by line: `user`, `said`, `call` and `result` write
//! the lines that the tool writes, with one-letter uuids.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::message::{Author, Content, Role};

use super::*;

fn read_text(text: &str) -> Source {
    ClaudeCode
        .read(&SourceText::from_bytes(text.as_bytes().to_vec()))
        .unwrap()
}

fn only(lines: &[String]) -> Conversation {
    let mut source = read_text(&lines.join("\n"));
    assert_eq!(source.conversations.len(), 1, "{source:?}");
    source.conversations.remove(0)
}

fn parent_json(parent: &str) -> String {
    if parent.is_empty() {
        "null".to_owned()
    } else {
        format!("{parent:?}")
    }
}

fn line(kind: &str, uuid: &str, parent: &str, rest: &str) -> String {
    format!(
        r#"{{"parentUuid":{},"isSidechain":false,"sessionId":"s","cwd":"/w","type":"{kind}","uuid":"{uuid}","timestamp":"2026-01-01T00:00:01Z",{rest}}}"#,
        parent_json(parent)
    )
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    line(
        "user",
        uuid,
        parent,
        &format!(r#""message":{{"role":"user","content":{text:?}}}"#),
    )
}

fn assistant(uuid: &str, parent: &str, message: &str, block: &str, output: u64) -> String {
    line(
        "assistant",
        uuid,
        parent,
        &format!(
            r#""message":{{"id":"{message}","model":"m-1","role":"assistant","content":[{block}],"usage":{{"input_tokens":5,"output_tokens":{output}}}}}"#
        ),
    )
}

fn said(uuid: &str, parent: &str, message: &str, text: &str) -> String {
    assistant(
        uuid,
        parent,
        message,
        &format!(r#"{{"type":"text","text":{text:?}}}"#),
        7,
    )
}

fn call(uuid: &str, parent: &str, message: &str, id: &str) -> String {
    let block = format!(r#"{{"type":"tool_use","id":"{id}","name":"Run","input":{{}}}}"#);
    assistant(uuid, parent, message, &block, 9)
}

fn result(uuid: &str, parent: &str, id: &str) -> String {
    let block = format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"out {id}"}}"#);
    line(
        "user",
        uuid,
        parent,
        &format!(r#""message":{{"role":"user","content":[{block}]}},"toolUseResult":{{"x":[1]}}"#),
    )
}

/// The conversation in short: one line a message.
fn story(conversation: &Conversation) -> Vec<String> {
    conversation
        .messages
        .iter()
        .map(|message| {
            let who = match (message.role, message.author) {
                (_, Author::Client) => "client",
                (_, Author::Agent) => "agent",
                (_, Author::Compaction) => "compaction",
                (Role::Assistant, _) => "model",
                _ => "user",
            };
            let parts: Vec<String> = message
                .blocks
                .iter()
                .map(|block| match &block.content {
                    Content::Text(text) => text.decode().into_owned(),
                    Content::ToolCall(call) => format!("call {}", call.id),
                    Content::ToolResult(result) => format!("result {}", result.call_id),
                    other => format!("{other:?}"),
                })
                .collect();
            format!("{who}: {}", parts.join(" + "))
        })
        .collect()
}

#[track_caller]
fn check(lines: &[String], expected: &[&str]) {
    assert_eq!(story(&only(lines)), expected);
}

#[test]
fn lines_of_one_response_are_one_message_with_the_last_usage() {
    let lines = [
        user("a", "", "go"),
        assistant("b", "a", "m1", r#"{"type":"text","text":"well"}"#, 1),
        call("c", "b", "m1", "t1"),
        result("d", "c", "t1"),
        said("e", "d", "m2", "done"),
    ];
    let conversation = only(&lines);
    assert_eq!(
        story(&conversation),
        [
            "user: go",
            "model: well + call t1",
            "user: result t1",
            "model: done"
        ]
    );
    let message = &conversation.messages[1];
    assert_eq!(message.usage.unwrap().output, 9);
    assert_eq!(message.id.as_deref(), Some("m1"));
    assert_eq!(message.position.line, 2);
    assert_eq!(message.at_ms, Some(1_767_225_601_000));
    assert_eq!(message.raw, None);
    assert_eq!(conversation.model.as_deref(), Some("m-1"));
    assert_eq!(conversation.cwd.as_deref(), Some("/w"));
    assert_eq!(conversation.problems, []);
}

#[test]
fn results_on_side_branches_are_gathered_in_the_order_of_the_calls() {
    let story = [
        "user: go",
        "model: call t1 + call t2",
        "user: result t1 + result t2",
        "model: done",
    ];
    // The parent of the next response is the result of the last call, or that of the first.
    check(
        &[
            user("a", "", "go"),
            call("b", "a", "m1", "t1"),
            call("c", "b", "m1", "t2"),
            result("e", "c", "t2"),
            result("d", "b", "t1"),
            said("f", "e", "m2", "done"),
        ],
        &story,
    );
    check(
        &[
            user("a", "", "go"),
            call("b", "a", "m1", "t1"),
            call("c", "b", "m1", "t2"),
            result("e", "c", "t2"),
            result("d", "b", "t1"),
            said("f", "d", "m2", "done"),
        ],
        &story,
    );
}

#[test]
fn a_call_without_result_and_a_result_without_call_are_reported() {
    let conversation = only(&[
        result("z", "", "t0"),
        user("a", "z", "go"),
        call("b", "a", "m1", "t1"),
        user("c", "b", "stop"),
    ]);
    let codes: Vec<_> = conversation
        .problems
        .iter()
        .map(|problem| (problem.code, problem.message))
        .collect();
    assert_eq!(
        codes,
        [("orphan-tool-result", 0), ("missing-tool-result", 2)]
    );
    assert_eq!(conversation.messages.len(), 4);
}

#[test]
fn progress_and_notices_inside_the_chain_are_passed() {
    check(
        &[
            line("progress", "p", "", r#""data":{"type":"hook_progress"}"#),
            user("a", "p", "go"),
            line(
                "system",
                "q",
                "a",
                r#""subtype":"turn_duration","durationMs":3"#,
            ),
            said("b", "q", "m1", "done"),
        ],
        &["user: go", "model: done"],
    );
}

#[test]
fn a_rewound_branch_is_left_out_and_counted() {
    let conversation = only(&[
        user("a", "", "go"),
        said("b", "a", "m1", "first answer"),
        user("c", "b", "bad idea"),
        said("d", "c", "m2", "sure"),
        user("e", "b", "better idea"),
        said("f", "e", "m3", "fine"),
    ]);
    let expected = [
        "user: go",
        "model: first answer",
        "user: better idea",
        "model: fine",
    ];
    assert_eq!(story(&conversation), expected);
    assert_eq!(conversation.problems[0].code, "abandoned-branch");
    assert!(conversation.problems[0].text.starts_with("2 lines"));
}

#[test]
fn the_leaf_that_the_session_names_counts_until_something_follows() {
    let mut lines = vec![
        user("a", "", "go"),
        said("b", "a", "m1", "kept"),
        user("c", "b", "left"),
        r#"{"type":"last-prompt","sessionId":"s","leafUuid":"b"}"#.to_owned(),
    ];
    check(&lines, &["user: go", "model: kept"]);
    lines.push(user("d", "b", "next"));
    check(&lines, &["user: go", "model: kept", "user: next"]);
}

fn boundary(uuid: &str, logical: &str, more: &str) -> String {
    line(
        "system",
        uuid,
        "",
        &format!(
            r#""subtype":"compact_boundary","logicalParentUuid":"{logical}","compactMetadata":{{"trigger":"auto","preTokens":1234{more}}}"#
        ),
    )
}

fn summary(uuid: &str, parent: &str) -> String {
    line(
        "user",
        uuid,
        parent,
        r#""isCompactSummary":true,"message":{"role":"user","content":"what happened"}"#,
    )
}

#[test]
fn the_history_before_a_compaction_is_kept() {
    // The second time the line before the boundary is not in the file: the one before it in the file is taken.
    for logical in ["b", "elsewhere"] {
        let conversation = only(&[
            user("a", "", "go"),
            said("b", "a", "m1", "old"),
            boundary("x", logical, ""),
            summary("y", "x"),
            said("c", "y", "m2", "new"),
        ]);
        assert_eq!(
            story(&conversation),
            [
                "user: go",
                "model: old",
                "compaction: what happened",
                "model: new"
            ]
        );
        let mark = &conversation.compactions[0];
        assert_eq!((mark.before_message, mark.tokens_before), (2, Some(1234)));
        assert_eq!(mark.trigger.as_deref(), Some("auto"));
        assert_eq!(conversation.compactions.len(), 1);
        assert!(!conversation.messages[2].begins_turn());
    }
}

#[test]
fn a_boundary_that_later_lines_bypass_is_put_in_its_place() {
    let conversation = only(&[
        user("a", "", "go"),
        said("b", "a", "m1", "kept verbatim"),
        boundary(
            "x",
            "b",
            r#","preservedSegment":{"headUuid":"a","anchorUuid":"y","tailUuid":"b"}"#,
        ),
        summary("y", "x"),
        user("c", "b", "next"),
    ]);
    assert_eq!(
        story(&conversation),
        [
            "user: go",
            "model: kept verbatim",
            "compaction: what happened",
            "user: next"
        ]
    );
    assert_eq!(conversation.compactions[0].before_message, 2);
}

#[test]
fn a_repeated_line_keeps_its_first_position() {
    check(
        &[
            user("a", "", "go"),
            said("b", "a", "m1", "kept"),
            boundary("x", "b", ""),
            summary("y", "x"),
            said("b", "y", "m1", "kept"),
            user("c", "b", "next"),
        ],
        &["user: go", "model: kept", "user: next"],
    );
}

#[test]
fn a_context_that_was_emptied_stays_part_of_the_history() {
    let conversation = only(&[
        user("a", "", "make a plan"),
        said("b", "a", "m1", "the plan"),
        line("progress", "p", "", r#""data":{}"#),
        user("c", "p", "carry it out"),
    ]);
    assert_eq!(
        story(&conversation),
        ["user: make a plan", "model: the plan", "user: carry it out"]
    );
    assert_eq!(conversation.compactions[0].before_message, 2);
    assert_eq!(
        conversation.compactions[0].trigger.as_deref(),
        Some("clear")
    );
}

#[test]
fn a_first_request_that_is_tried_again_replaces_the_first_try() {
    check(
        &[
            user("a", "", "go"),
            said("b", "a", "m1", "wrong"),
            user("c", "", "go on and on"),
            said("d", "c", "m2", "right"),
        ],
        &["user: go on and on", "model: right"],
    );
}

#[test]
fn a_missing_line_does_not_cut_the_history_off() {
    let conversation = only(&[
        user("a", "", "go"),
        "{\"parentUuid\":\"a\",\"torn".to_owned(),
        said("c", "lost", "m2", "done"),
    ]);
    assert_eq!(story(&conversation), ["user: go", "model: done"]);
    assert_eq!(conversation.problems[0].code, "broken-chain");
}

#[test]
fn errors_made_by_the_client_are_dropped() {
    check(
        &[
            user("a", "", "go"),
            line(
                "assistant",
                "e",
                "a",
                r#""isApiErrorMessage":true,"message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}"#,
            ),
            user("b", "e", "again"),
            said("c", "b", "m1", "done"),
        ],
        &["user: go", "user: again", "model: done"],
    );
}

#[test]
fn client_texts_are_not_the_users() {
    let meta = line(
        "user",
        "b",
        "a",
        r#""isMeta":true,"message":{"role":"user","content":"project rules"}"#,
    );
    let mixed = line(
        "user",
        "f",
        "e",
        r#""message":{"role":"user","content":[{"type":"text","text":"<system-reminder>\nnote</system-reminder>"},{"type":"text","text":"mine"}]}"#,
    );
    check(
        &[
            user(
                "a",
                "",
                "<command-name>/exit</command-name>\n<command-args></command-args>",
            ),
            meta,
            user("c", "b", "[Request interrupted by user]"),
            user(
                "d",
                "c",
                "<command-message>x</command-message>\n<command-name>/review</command-name>\n<command-args>the parser</command-args>",
            ),
            user("e", "d", "plain <system-reminder> in the middle"),
            mixed,
        ],
        &[
            "client: <command-name>/exit</command-name>\n<command-args></command-args>",
            "client: project rules",
            "client: [Request interrupted by user]",
            "user: /review the parser",
            "user: plain <system-reminder> in the middle",
            "client: <system-reminder>\nnote</system-reminder>",
            "user: mine",
        ],
    );
}

#[test]
fn sub_agents_are_conversations_of_their_own() {
    let side = |text: &str| text.replace(r#""isSidechain":false"#, r#""isSidechain":true"#);
    let source = read_text(
        &[
            user("a", "", "go"),
            call("b", "a", "m1", "t1"),
            side(&user("k", "", "look around")),
            side(&call("l", "k", "m9", "t9")),
            side(&result("n", "l", "t9")),
            side(&said("o", "n", "m10", "found")),
            result("c", "b", "t1"),
            side(&user("q", "", "second agent").replace(r#""cwd""#, r#""agentId":"helper","cwd""#)),
        ]
        .join("\n"),
    );
    let ids: Vec<_> = source
        .conversations
        .iter()
        .map(|conversation| (conversation.id.as_str(), conversation.parent_id.as_deref()))
        .collect();
    assert_eq!(
        ids,
        [("s", None), ("s/k", Some("s")), ("s/helper", Some("s"))]
    );
    assert_eq!(
        story(&source.conversations[0]),
        ["user: go", "model: call t1", "user: result t1"]
    );
    assert_eq!(
        story(&source.conversations[1]),
        [
            "user: look around",
            "model: call t9",
            "user: result t9",
            "model: found"
        ]
    );
}

#[test]
fn sessions_in_one_file_are_separate_unless_one_continues_another() {
    let of = |session: &str, text: String| {
        text.replace(r#""sessionId":"s""#, &format!(r#""sessionId":"{session}""#))
    };
    let lines = [
        of("one", user("a", "", "first")),
        of("one", said("b", "a", "m1", "yes")),
        of("two", user("c", "", "second")),
        of("three", user("d", "b", "resumed")),
    ];
    let source = read_text(&lines.join("\n"));
    let ids: Vec<_> = source.conversations.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["three", "two"]);
    assert_eq!(
        story(&source.conversations[0]),
        ["user: first", "model: yes", "user: resumed"]
    );
}

#[test]
fn the_title_is_the_users_or_the_newest_summary_of_the_session() {
    let title = |more: &[&str]| {
        let mut lines = vec![user("a", "", "go")];
        lines.extend(more.iter().map(|line| (*line).to_owned()));
        only(&lines).title
    };
    let elsewhere = r#"{"type":"summary","summary":"other","leafUuid":"zz"}"#;
    let old = r#"{"type":"summary","summary":"old","leafUuid":"a"}"#;
    let new = r#"{"type":"summary","summary":"new","leafUuid":"a"}"#;
    let custom = r#"{"type":"custom-title","customTitle":"mine","sessionId":"s"}"#;
    assert_eq!(title(&[elsewhere]), None);
    assert_eq!(title(&[elsewhere, old, new]).as_deref(), Some("new"));
    assert_eq!(title(&[custom, old, new]).as_deref(), Some("mine"));
}

#[test]
fn queued_input_is_read_once() {
    let queue = |operation: &str, content: &str| {
        format!(
            r#"{{"type":"queue-operation","operation":"{operation}","sessionId":"s"{content}}}"#
        )
    };
    let base = [
        user("a", "", "go"),
        call("b", "a", "m1", "t1"),
        queue("enqueue", r#","content":"also the docs""#),
        queue("remove", ""),
        result("c", "b", "t1"),
    ];
    let story = [
        "user: go",
        "model: call t1",
        "user: result t1",
        "user: also the docs",
        "model: done",
    ];
    let mut lines = base.to_vec();
    lines.push(said("d", "c", "m2", "done"));
    check(&lines, &story);
    // Newer versions give it a line of its own.
    let mut lines = base.to_vec();
    lines.push(line(
        "attachment",
        "q",
        "c",
        r#""attachment":{"type":"queued_command","prompt":"also the docs"}"#,
    ));
    lines.push(said("d", "q", "m2", "done"));
    check(&lines, &story);
}

#[test]
fn stream_json_output_is_read_in_the_order_of_its_lines() {
    let source = read_text(
        r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w","tools":[]}
{"type":"assistant","session_id":"s","parent_tool_use_id":null,"message":{"id":"m1","model":"m-1","content":[{"type":"text","text":"hi"}]}}
{"type":"user","session_id":"s","message":{"role":"user","content":[{"type":"text","text":"thanks"}]}}
{"type":"result","session_id":"s","result":"hi"}"#,
    );
    assert_eq!(
        story(&source.conversations[0]),
        ["model: hi", "user: thanks"]
    );
    assert_eq!(source.skipped, []);
}

#[test]
fn damage_and_foreign_records_are_skipped_and_reported() {
    let text = format!(
        "\u{feff}{}\r\n{{\"n\":1}}\r\n{}\n{{\"type\":\"user\",\"mess",
        user("a", "", "go"),
        said("b", "a", "m1", "done")
    );
    let source = read_text(&text);
    assert_eq!(story(&source.conversations[0]), ["user: go", "model: done"]);
    let skipped: Vec<_> = source
        .skipped
        .iter()
        .map(|piece| (piece.line, piece.reason.as_str()))
        .collect();
    assert_eq!(
        skipped,
        [
            (2, "not a record of Claude Code"),
            (4, "the last line is torn off")
        ]
    );
}

#[test]
fn circles_end() {
    check(
        &[user("a", "b", "one"), user("b", "a", "two")],
        &["user: one", "user: two"],
    );
}

#[test]
fn a_file_without_messages_is_not_a_session() {
    let text = r#"{"type":"summary","summary":"x","leafUuid":"y"}"#;
    let error = ClaudeCode.read(&SourceText::from_text(text)).unwrap_err();
    assert!(matches!(error, ReadError::NotThatFormat { .. }));
}

proptest::proptest! {
    #[test]
    fn any_links_are_survived(links in proptest::collection::vec((0usize..4, 0usize..8, 0usize..8, 0usize..3), 0..16)) {
        const NAMES: [&str; 8] = ["", "a", "b", "c", "d", "e", "f", "g"];
        let lines: Vec<String> = links
            .iter()
            .map(|(kind, uuid, parent, id)| {
                let (uuid, parent, id) = (NAMES[*uuid], NAMES[*parent], ["t0", "t1", "t2"][*id]);
                match kind {
                    0 => user(uuid, parent, "text"),
                    1 => call(uuid, parent, "m1", id),
                    2 => result(uuid, parent, id),
                    _ => boundary(uuid, parent, ""),
                }
            })
            .collect();
        let _ = ClaudeCode.read(&SourceText::from_text(lines.join("\n")));
    }
}

#[test]
fn a_command_without_arguments_is_a_request_and_a_local_one_is_none() {
    let command = |uuid: &str, parent: &str, name: &str| {
        let text = format!(
            "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"
        );
        user(uuid, parent, &text)
    };
    let body = line(
        "user",
        "b",
        "a",
        r#""isMeta":true,"message":{"role":"user","content":[{"type":"text","text":"Never sail at night."}]}"#,
    );
    check(
        &[
            command("a", "", "quay:check"),
            body,
            said("c", "b", "m1", "checked"),
            command("d", "c", "clear"),
            command("e", "d", "cost"),
            user(
                "f",
                "e",
                "<command-name>/model</command-name>\n<command-args>big</command-args>",
            ),
        ],
        &[
            "user: /quay:check",
            "client: Never sail at night.",
            "model: checked",
            "client: <command-message>clear</command-message>\n<command-name>/clear</command-name>",
            "client: <command-message>cost</command-message>\n<command-name>/cost</command-name>",
            "client: <command-name>/model</command-name>\n<command-args>big</command-args>",
        ],
    );
}

#[test]
fn a_line_says_who_wrote_it() {
    let told = |uuid: &str, parent: &str, rest: &str, text: &str| {
        line(
            "user",
            uuid,
            parent,
            &format!(r#"{rest},"message":{{"role":"user","content":{text:?}}}"#),
        )
    };
    let queued = |uuid: &str, parent: &str, rest: &str, text: &str| {
        let attachment = format!(r#"{{"type":"queued_command","prompt":{text:?}{rest}}}"#);
        line(
            "attachment",
            uuid,
            parent,
            &format!(r#""attachment":{attachment}"#),
        )
    };
    check(
        &[
            told(
                "a",
                "",
                r#""origin":{"kind":"human"},"promptSource":"typed""#,
                "typed",
            ),
            told("b", "a", r#""promptSource":"sdk""#, "from a program"),
            told(
                "c",
                "b",
                r#""origin":{"kind":"peer","from":"pilot"}"#,
                "from a peer",
            ),
            told(
                "d",
                "c",
                r#""origin":{"kind":"task-notification"},"promptSource":"system""#,
                "a task ended",
            ),
            told("e", "d", r#""origin":{"kind":"cron"}"#, "it is noon"),
            told("f", "e", r#""promptSource":"system""#, "a notice"),
            user(
                "g",
                "f",
                "Another Claude session sent a message:\n<teammate-message teammate_id=\"pilot\">\nhello",
            ),
            user(
                "h",
                "g",
                "<teammate-message teammate_id=\"pilot\">\nhello\n</teammate-message>",
            ),
            queued("i", "h", "", "typed meanwhile"),
            queued(
                "j",
                "i",
                r#","commandMode":"task-notification""#,
                "a task goes on",
            ),
            queued(
                "k",
                "j",
                r#","origin":{"kind":"peer"},"isMeta":true"#,
                "a peer meanwhile",
            ),
        ],
        &[
            "user: typed",
            "user: from a program",
            "agent: from a peer",
            "client: a task ended",
            "client: it is noon",
            "client: a notice",
            "agent: Another Claude session sent a message:\n<teammate-message teammate_id=\"pilot\">\nhello",
            "agent: <teammate-message teammate_id=\"pilot\">\nhello\n</teammate-message>",
            "user: typed meanwhile",
            "client: a task goes on",
            "agent: a peer meanwhile",
        ],
    );
}

#[test]
fn the_queue_gives_the_text_that_is_named() {
    let queue = |operation: &str, content: &str| {
        let content = if content.is_empty() {
            String::new()
        } else {
            format!(r#","content":{content:?}"#)
        };
        format!(
            r#"{{"type":"queue-operation","operation":"{operation}","sessionId":"s"{content}}}"#
        )
    };
    let told = |operations: &[String], delivered: &[&str]| {
        let mut lines = vec![
            user("a", "", "go"),
            call("b", "a", "m1", "t1"),
            result("c", "b", "t1"),
        ];
        lines.extend(operations.iter().cloned());
        lines.push(said("d", "c", "m2", "done"));
        let mut expected = vec![
            "user: go".to_owned(),
            "model: call t1".to_owned(),
            "user: result t1".to_owned(),
        ];
        expected.extend(delivered.iter().map(|text| format!("user: {text}")));
        expected.push("model: done".to_owned());
        assert_eq!(story(&only(&lines)), expected);
    };
    let both = [queue("enqueue", "first"), queue("enqueue", "second")];
    let with = |more: &[String]| [&both[..], more].concat();
    told(
        &with(&[queue("remove", "second"), queue("popAll", "first")]),
        &["second"],
    );
    told(
        &with(&[queue("remove", "second"), queue("remove", "first")]),
        &["second", "first"],
    );
    told(
        &with(&[queue("remove", ""), queue("popAll", "second")]),
        &["first"],
    );
    told(
        &with(&[queue("dequeue", "second"), queue("remove", "")]),
        &["first"],
    );
    told(
        &with(&[queue("popAll", "first\nsecond"), queue("remove", "")]),
        &[],
    );
    told(&[queue("remove", "queued before")], &["queued before"]);
}

#[test]
fn what_follows_a_compaction_follows_all_that_it_covers() {
    let compacted = |parent_of_next: &str| {
        let second = boundary("i", "h", "");
        [
            user("a", "", "go"),
            said("b", "a", "m1", "begun"),
            line(
                "attachment",
                "c",
                "b",
                r#""attachment":{"type":"task_reminder"}"#,
            ),
            said("d", "c", "m2", "half done"),
            boundary("e", "d", ""),
            summary("f", "e"),
            user("g", "f", "more"),
            said("h", "g", "m3", "more is done"),
            second,
            summary("j", "i"),
            user("k", parent_of_next, "and now the end"),
            said("l", "k", "m4", "ended"),
        ]
    };
    let expected = [
        "user: go",
        "model: begun",
        "model: half done",
        "compaction: what happened",
        "user: more",
        "model: more is done",
        "compaction: what happened",
        "user: and now the end",
        "model: ended",
    ];
    for parent in ["j", "i", "c", "d", "b", "f", "h", "gone"] {
        check(&compacted(parent), &expected);
    }
}

#[test]
fn a_fork_at_a_line_that_nobody_said_is_no_rewind() {
    let expected = [
        "user: go",
        "model: port 7443",
        "user: write it down",
        "model: written",
    ];
    let notices = [
        line("system", "h", "a", r#""subtype":"stop_hook_summary""#),
        line("progress", "h", "a", r#""data":{"type":"hook_progress"}"#),
        line(
            "attachment",
            "h",
            "a",
            r#""attachment":{"type":"hook_success"}"#,
        ),
    ];
    for notice in notices {
        check(
            &[
                user("a", "", "go"),
                said("b", "a", "m1", "port 7443"),
                notice.clone(),
                user("c", "h", "write it down"),
                said("d", "c", "m2", "written"),
            ],
            &expected,
        );
        // The notice comes first, and both follow it.
        check(
            &[
                user("a", "", "go"),
                notice.clone(),
                said("b", "h", "m1", "port 7443"),
                user("c", "h", "write it down"),
                said("d", "c", "m2", "written"),
            ],
            &expected,
        );
        // Several in a row.
        check(
            &[
                user("a", "", "go"),
                said("b", "a", "m1", "port 7443"),
                notice,
                line("system", "i", "h", r#""subtype":"turn_duration""#),
                line("system", "j", "a", r#""subtype":"stop_hook_summary""#),
                user("c", "j", "write it down"),
                said("d", "c", "m2", "written"),
            ],
            &expected,
        );
    }
    // Words of the user on both sides: they went back.
    check(
        &[
            user("a", "", "go"),
            said("b", "a", "m1", "port 7443"),
            user("c", "b", "bad idea"),
            said("d", "c", "m2", "sure"),
            line("progress", "h", "b", r#""data":{}"#),
            user("e", "h", "better idea"),
            said("f", "e", "m3", "fine"),
        ],
        &[
            "user: go",
            "model: port 7443",
            "user: better idea",
            "model: fine",
        ],
    );
}

#[test]
fn copies_of_files_are_known_and_say_nothing() {
    let source = read_text(
        &[
            user("a", "", "go"),
            r#"{"type":"file-history-delta","messageId":"m","snapshotMessageId":"n","trackingPath":"quay.ts","backup":{"version":1}}"#.to_owned(),
            r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#.to_owned(),
            said("b", "a", "m1", "done"),
        ]
        .join("\n"),
    );
    assert_eq!(source.skipped, []);
    assert_eq!(story(&source.conversations[0]), ["user: go", "model: done"]);
}
