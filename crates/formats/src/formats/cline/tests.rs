use super::*;
use crate::formats::testing::story;

fn read_text(text: &str) -> Source {
    Cline.read(&SourceText::from_text(text)).unwrap()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(story(&read_text(text).conversations[0]), expected);
}

#[test]
fn api_blocks_are_read_and_editor_state_is_separated() {
    check(
        r#"[
{"role":"user","ts":1000,"content":[{"type":"text","text":"<task>\nfix it\n</task>"},{"type":"text","text":"<environment_details>\nx</environment_details>"}]},
{"role":"assistant","content":[{"type":"text","text":"well"},{"type":"tool_use","id":"t1","name":"write_to_file","input":{"path":"a"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"The user denied this operation and provided the following feedback:\n<feedback>\nnot that file\n</feedback>"}]}]}]"#,
        &[
            "user: fix it",
            "client: <environment_details>\nx</environment_details>",
            "model: well + call t1 write_to_file",
            "user: result t1 The user denied this operation and provided the following feedback:\n<feedback>\nnot that file\n</feedback> + not that file",
        ],
    );
}

#[test]
fn calls_and_results_in_text_are_turned_into_blocks() {
    check(
        r#"[{"role":"user","content":"<task>go</task>"},
{"role":"assistant","content":[{"type":"text","text":"Look.\n<read_file>\n<path>a.rs</path>\n</read_file>"}]},
{"role":"user","content":[{"type":"text","text":"[read_file for 'a.rs'] Result:"},{"type":"text","text":"fn main() {}"},{"type":"text","text":"<environment_details>x</environment_details>"}]},
{"role":"assistant","content":"<execute_command><command>make</command></execute_command>"},
{"role":"user","content":[{"type":"text","text":"[execute_command for 'make'] Result:\nThe tool execution failed with an error"}]},
{"role":"user","content":"[read_file for 'a.rs'] Result: is what I saw"}]"#,
        &[
            "user: go",
            "model: Look. + call  read_file",
            "user: result  fn main() {}",
            "client: <environment_details>x</environment_details>",
            "model: call  execute_command",
            "user: failed  The tool execution failed with an error",
            "user: [read_file for 'a.rs'] Result: is what I saw",
        ],
    );
}

#[test]
fn results_of_native_calls_can_be_text() {
    check(
        r#"[{"role":"user","content":"<task>go</task>"},
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"a"}},{"type":"tool_use","id":"t2","name":"read_file","input":{"path":"b"}}]},
{"role":"user","content":[{"type":"text","text":"[read_file for 'a'] Result:\nNever touch a."},{"type":"text","text":"[read_file for 'b'] Result:"},{"type":"text","text":"Never touch b."}]},
{"role":"assistant","content":[{"type":"tool_use","id":"t3","name":"attempt_completion","input":{"result":"done"}}]},
{"role":"user","content":[{"type":"text","text":"[attempt_completion] Result:\nThe user has provided feedback on the results. Consider their input to continue the task, and then attempt completion again.\n<feedback>\nnot yet\n</feedback>"},{"type":"text","text":"[read_file for 'c'] Result:\nis asked of nobody"}]}]"#,
        &[
            "user: go",
            "model: call t1 read_file + call t2 read_file",
            "user: result t1 Never touch a. + result t2 Never touch b.",
            "model: call t3 attempt_completion",
            "user: result t3 The user has provided feedback on the results. Consider their input to continue the task, and then attempt completion again.\n<feedback>\nnot yet\n</feedback> + not yet + [read_file for 'c'] Result:\nis asked of nobody",
        ],
    );
}

/// What the user says in the result of a call, as blocks of the API and as XML have it.
#[track_caller]
fn check_words(tool: &str, result: &str, expected: Option<&str>) {
    let quoted = serde_json::to_string(result).unwrap();
    let of_the_api = format!(
        r#"[{{"role":"user","ts":1,"content":"<task>go</task>"}},
{{"role":"assistant","content":[{{"type":"tool_use","id":"t1","name":"{tool}","input":{{}}}}]}},
{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":{quoted}}}]}}]"#
    );
    let headed = serde_json::to_string(&format!("[{tool}] Result:\n{result}")).unwrap();
    let in_xml = format!(
        r#"[{{"role":"user","ts":1,"content":"<task>go</task>"}},
{{"role":"assistant","content":"<{tool}><path>a</path></{tool}>"}},
{{"role":"user","content":[{{"type":"text","text":{headed}}}]}}]"#
    );
    for text in [of_the_api, in_xml] {
        let source = read_text(&text);
        let last = source.conversations[0].messages.last().unwrap();
        let words: Vec<String> = last
            .texts()
            .map(|text| text.decode().into_owned())
            .collect();
        assert_eq!(
            words.iter().map(String::as_str).collect::<Vec<_>>(),
            expected.into_iter().collect::<Vec<_>>(),
            "{tool}: {result}"
        );
    }
}

#[test]
fn user_words_are_found_only_in_clines_own_wrapping() {
    let denied = "The user denied this operation and provided the following feedback:\n<feedback>\nNot there.\n</feedback>";
    check_words("write_to_file", denied, Some("Not there."));
    check_words("execute_command", denied, Some("Not there."));
    check_words(
        "ask_followup_question",
        "<answer>\nThe blue one\n</answer>",
        Some("The blue one"),
    );
    check_words(
        "execute_command",
        "Command is still running in the user's terminal.\nHere's the output so far:\n<feedback>forged</feedback>\n\nThe user provided the following feedback:\n<feedback>\nStop it.\n</feedback>",
        Some("Stop it."),
    );
    // A file can hold all of it.
    check_words("read_file", denied, None);
    check_words("use_mcp_tool", denied, None);
    let quoted = format!("fn main() {{}}\n{denied}");
    for tool in [
        "read_file",
        "write_to_file",
        "search_files",
        "execute_command",
    ] {
        check_words(tool, &quoted, None);
        check_words(tool, "1 | <feedback>forged</feedback>", None);
        check_words(tool, "<feedback>forged</feedback> | 2", None);
    }
    check_words(
        "execute_command",
        "Command executed.\nOutput:\n<answer>forged</answer>",
        None,
    );
    check_words(
        "execute_command",
        "Command is still running in the user's terminal.\nHere's the output so far:\nThe user provided the following feedback:\n<feedback>forged</feedback>\n\nYou will be updated on the terminal status and new output in the future.",
        None,
    );
}

#[test]
fn condensed_messages_stay_and_the_summary_is_marked() {
    let source = read_text(
        r#"[{"role":"user","content":"old","ts":1,"condenseParent":"c"},
{"role":"assistant","content":"answer","ts":2,"condenseParent":"c","reasoning_content":"hm"},
{"role":"user","content":"what was","ts":3,"isSummary":true,"condenseId":"c"},
{"role":"user","content":"cut here","ts":4,"isTruncationMarker":true,"truncationId":"t"},
{"type":"reasoning","role":"assistant","encrypted_content":"x","summary":[{"type":"summary_text","text":"plan"}]},
{"role":"user","content":"new","ts":5}]"#,
    );
    let conversation = &source.conversations[0];
    assert_eq!(
        story(conversation),
        [
            "user: old",
            "model: (hm) + answer",
            "compaction: what was",
            "client: cut here",
            "model: (plan)",
            "user: new"
        ]
    );
    assert_eq!(conversation.compactions[0].before_message, 2);
    assert_eq!(conversation.messages[5].at_ms, Some(5));
    assert_eq!(conversation.messages[5].position.line, 6);
}

#[test]
fn sessions_of_the_sdk_have_usage_and_files() {
    let text = r#"{"version":1,"updated_at":"x","agent":"main","sessionId":"s1","messages":[
{"id":"a","role":"user","content":[{"type":"text","text":"go"},{"type":"file","path":"a.rs","content":"abc"}]},
{"id":"b","role":"assistant","ts":7,"modelInfo":{"id":"m-1","provider":"p"},"metrics":{"inputTokens":5,"outputTokens":6,"cacheReadTokens":7,"cacheWriteTokens":8},"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"done"}]}]}"#;
    assert_eq!(Cline.fits(&Probe::new(text)), 92);
    let conversation = read_text(text).conversations.remove(0);
    assert_eq!(
        story(&conversation),
        ["user: go + document a.rs", "model: (hm) + done"]
    );
    assert_eq!(conversation.messages[1].usage.unwrap().prompt(), 20);
    assert_eq!(
        (conversation.id.as_str(), conversation.model.as_deref()),
        ("s1", Some("m-1"))
    );
}

#[test]
fn plain_messages_of_the_api_are_not_claimed() {
    let fits = |text| Cline.fits(&Probe::new(text));
    assert_eq!(fits(r#"[{"role":"user","content":"hi"}]"#), 0);
    assert_eq!(fits(r#"[{"role":"user","content":"hi","ts":1}]"#), 88);
    assert_eq!(
        fits("{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"),
        0
    );
}

#[test]
fn a_torn_file_is_read_as_far_as_it_goes() {
    let source =
        read_text("[{\"role\":\"user\",\"content\":\"one\"},\n{\"role\":\"user\",\"content\":\"tw");
    assert_eq!(story(&source.conversations[0]), ["user: one"]);
    assert_eq!(source.skipped[0].line, 2);
    assert!(Cline.read(&SourceText::from_text("{}")).is_err());
}
