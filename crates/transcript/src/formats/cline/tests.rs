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
fn blocks_of_the_api_are_read_and_the_editors_state_is_told_apart() {
    check(
        r#"[
{"role":"user","ts":1000,"content":[{"type":"text","text":"<task>\nfix it\n</task>"},{"type":"text","text":"<environment_details>\nx</environment_details>"}]},
{"role":"assistant","content":[{"type":"text","text":"well"},{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"a"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"denied\n<feedback>\nnot that file\n</feedback>"}]}]}]"#,
        &[
            "user: fix it",
            "client: <environment_details>\nx</environment_details>",
            "model: well + call t1 read_file",
            "user: result t1 denied\n<feedback>\nnot that file\n</feedback> + not that file",
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
    assert_eq!(Cline.fits(&Probe { text }), 92);
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
    let fits = |text| Cline.fits(&Probe { text });
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
