use super::*;
use crate::formats::testing::story;

fn message(role: &str, id: &str, more: &str, parts: &str) -> String {
    format!(
        r#"{{"info":{{"role":"{role}","id":"{id}","time":{{"created":5}}{more}}},"parts":[{parts}]}}"#
    )
}

fn session(info: &str, messages: &[String]) -> String {
    format!(
        r#"{{"info":{{"id":"ses_1","directory":"/w","title":"A title"{info}}},
"messages":[{}]}}"#,
        messages.join(",\n")
    )
}

fn read_text(text: &str) -> Source {
    OpenCode.read(&SourceText::from_text(text)).unwrap()
}

fn only(info: &str, messages: &[String]) -> Conversation {
    read_text(&session(info, messages)).conversations.remove(0)
}

fn text(words: &str) -> String {
    format!(r#"{{"type":"text","text":{words:?}}}"#)
}

#[test]
fn steps_with_tools_and_usage() {
    let tool = |id: &str, state: &str| {
        format!(r#"{{"type":"tool","tool":"grep","callID":"{id}","state":{{{state}}}}}"#)
    };
    let parts = [
        r#"{"type":"step-start"}"#.to_owned(),
        r#"{"type":"reasoning","text":"hm"}"#.to_owned(),
        tool("c1", r#""status":"completed","input":{"a":1},"output":"found","time":{"compacted":9},"attachments":[{"mime":"image/png","url":"data:image/png;base64,AAAA"}]"#),
        tool("c2", r#""status":"error","input":{},"error":"no file""#),
        r#"{"type":"step-finish","tokens":{"input":5,"output":6,"reasoning":1,"cache":{"read":7,"write":8}}}"#.to_owned(),
        r#"{"type":"patch","files":["x"]}"#.to_owned(),
        r#"{"type":"step-start"}"#.to_owned(),
        tool("c3", r#""status":"running","input":{}"#),
    ];
    let conversation = only(
        "",
        &[
            message("user", "m1", "", &text("go")),
            message("assistant", "m2", r#","modelID":"m-1""#, &parts.join(",")),
        ],
    );
    assert_eq!(
        story(&conversation),
        [
            "user: go",
            "model: (hm) + call c1 grep + call c2 grep",
            "user: result c1 found + image data:image/png;base64,AAAA + failed c2 no file",
            "model: call c3 grep",
        ]
    );
    let usage = conversation.messages[1].usage.unwrap();
    assert_eq!((usage.prompt(), usage.output), (20, 7));
    assert_eq!(conversation.problems[0].code, "missing-tool-result");
    assert_eq!(
        (
            conversation.messages[1].position.line,
            conversation.messages[1].at_ms
        ),
        (3, Some(5))
    );
    assert_eq!(conversation.model.as_deref(), Some("m-1"));
    assert_eq!(
        (conversation.title.as_deref(), conversation.cwd.as_deref()),
        (Some("A title"), Some("/w"))
    );
}

#[test]
fn client_additions_are_not_the_users() {
    let parts = [
        text("look at @a.rs"),
        r#"{"type":"text","synthetic":true,"text":"Called the Read tool"}"#.to_owned(),
        r#"{"type":"text","ignored":true,"text":"shown only"}"#.to_owned(),
        r#"{"type":"file","mime":"text/plain","filename":"a.rs","url":"file:///w/a.rs"}"#
            .to_owned(),
    ];
    let conversation = only("", &[message("user", "m1", "", &parts.join(","))]);
    assert_eq!(
        story(&conversation),
        [
            "user: look at @a.rs + document a.rs",
            "client: Called the Read tool",
        ]
    );
}

#[test]
fn compactions_keep_earlier_messages() {
    let conversation = only(
        "",
        &[
            message("user", "m1", "", &text("old")),
            message("user", "m2", "", r#"{"type":"compaction","auto":true}"#),
            message("assistant", "m3", r#","summary":true"#, &text("what was")),
            message("user", "m4", r#","summary":{"diffs":[]}"#, &text("new")),
        ],
    );
    assert_eq!(
        story(&conversation),
        ["user: old", "compaction: what was", "user: new"]
    );
    assert_eq!(conversation.compactions[0].before_message, 1);
    assert_eq!(conversation.compactions[0].trigger.as_deref(), Some("auto"));
}

#[test]
fn messages_that_were_taken_back_are_left_out() {
    let conversation = only(
        r#","revert":{"messageID":"m2"}"#,
        &[
            message("user", "m1", "", &text("kept")),
            message("user", "m2", "", &text("gone")),
            message("assistant", "m3", "", &text("gone")),
        ],
    );
    assert_eq!(story(&conversation), ["user: kept"]);
    assert_eq!(conversation.problems[0].code, "rolled-back");
}

#[test]
fn several_sessions_in_one_source() {
    let one = session(
        r#","parentID":"ses_0""#,
        &[message("user", "m1", "", &text("one"))],
    );
    let two = session("", &[message("user", "m1", "", &text("two"))]);
    let source = read_text(&format!("[{one},{two}]"));
    assert_eq!(source.conversations.len(), 2);
    assert_eq!(source.conversations[0].parent_id.as_deref(), Some("ses_0"));
    assert_eq!(story(&source.conversations[1]), ["user: two"]);
}

#[test]
fn a_broken_message_does_not_hide_those_behind_it() {
    let messages = ["one", "two", "three"].map(|words| message("user", words, "", &text(words)));
    let broken = session("", &messages).replace(r#""id":"two","#, r#""id":"tw"#);
    let source = read_text(&broken);
    assert_eq!(
        story(&source.conversations[0]),
        ["user: one", "user: three"]
    );
    assert_eq!(source.conversations[0].messages[1].position.line, 4);
    assert_eq!(source.skipped[0].line, 3);
}

#[test]
fn a_torn_export_is_read_as_far_as_it_goes() {
    let whole = session(
        "",
        &[
            message("user", "m1", "", &text("one")),
            message("user", "m2", "", &text("two")),
        ],
    );
    let source = read_text(&whole[..whole.len() - 12]);
    assert_eq!(story(&source.conversations[0])[0], "user: one");
    assert_eq!(source.skipped[0].line, 3);
    assert!(OpenCode.read(&SourceText::from_text("{}")).is_err());
}

#[test]
fn the_last_words_of_a_step_follow_its_results() {
    let parts = |reason: &str| {
        format!(
            r#"{{"type":"tool","tool":"edit","callID":"c1","state":{{"status":"completed","input":{{}},"output":"ok"}}}},{},{{"type":"step-finish","reason":"{reason}"}}"#,
            text("Done.")
        )
    };
    let check = |reason: &str, expected: &[&str]| {
        let conversation = only("", &[message("assistant", "m1", "", &parts(reason))]);
        assert_eq!(story(&conversation), expected);
    };
    check(
        "stop",
        &["model: call c1 edit", "user: result c1 ok", "model: Done."],
    );
    check(
        "tool-calls",
        &["model: call c1 edit + Done.", "user: result c1 ok"],
    );
}
