use super::*;
use crate::formats::testing::story;

fn read_text(text: &str) -> Source {
    Gemini
        .read(&SourceText::from_bytes(text.as_bytes().to_vec()))
        .unwrap()
}

fn said(id: &str, kind: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:01Z","type":"{kind}","content":{text:?}}}"#
    )
}

const HEAD: &str = r#"{"sessionId":"s1","projectHash":"h","startTime":"2026-01-01T00:00:00Z"}"#;

fn log(records: &[&str]) -> Conversation {
    let text = [&[HEAD], records].concat().join("\n");
    read_text(&text).conversations.remove(0)
}

#[test]
fn a_record_with_thoughts_calls_and_tokens() {
    let answer = r#"{"id":"b","timestamp":"2026-01-01T00:00:02Z","type":"gemini","content":"on it","model":"g-1",
"thoughts":[{"subject":"Plan","description":"look"}],
"toolCalls":[
 {"id":"t1","name":"read_file","args":{"p":1},"status":"success","result":[{"functionResponse":{"id":"t1","name":"read_file","response":{"output":"text"}}}]},
 {"id":"t2","name":"run","args":{},"status":"error","result":[{"functionResponse":{"id":"t2","name":"run","response":{"error":"bad"}}}]}],
"tokens":{"input":100,"cached":40,"output":5,"thoughts":3,"tool":0,"total":108}}"#;
    let text = format!(
        "{{\"sessionId\":\"s1\",\"projectHash\":\"h\",\"messages\":[\n{},\n{answer},\n{}]}}",
        said("a", "user", "go"),
        said("c", "info", "note")
    );
    let conversation = read_text(&text).conversations.remove(0);
    assert_eq!(
        story(&conversation),
        [
            "user: go",
            "model: (Plan\nlook) + on it + call t1 read_file + call t2 run",
            "user: result t1 text + failed t2 bad",
        ]
    );
    let usage = conversation.messages[1].usage.unwrap();
    assert_eq!(
        (usage.uncached, usage.cache_read, usage.output),
        (60, 40, 8)
    );
    assert_eq!(conversation.messages[1].position.line, 3);
    assert_eq!(conversation.id, "s1");
    assert_eq!(conversation.model.as_deref(), Some("g-1"));
}

#[test]
fn a_message_that_is_written_again_replaces_the_first() {
    let conversation = log(&[
        &said("a", "user", "go"),
        &said("b", "gemini", "half"),
        &said("c", "user", "next"),
        &said("b", "gemini", "whole"),
    ]);
    assert_eq!(
        story(&conversation),
        ["user: go", "model: whole", "user: next"]
    );
}

#[test]
fn rewinding_takes_messages_back() {
    let records = [
        said("a", "user", "go"),
        said("b", "gemini", "wrong"),
        r#"{"$rewindTo":"b"}"#.to_owned(),
        said("c", "gemini", "right"),
    ];
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let conversation = log(&records);
    assert_eq!(story(&conversation), ["user: go", "model: right"]);
    assert_eq!(conversation.problems[0].code, "rolled-back");
    let conversation = log(&[
        &records[..3],
        &[r#"{"$rewindTo":"unknown"}"#],
        &records[3..],
    ]
    .concat());
    assert_eq!(story(&conversation), ["model: right"]);
}

#[test]
fn the_head_can_be_set_and_can_replace_the_messages() {
    let conversation = log(&[
        &said("a", "user", "go"),
        r#"{"$set":{"summary":"A title"}}"#,
        &format!(
            r#"{{"$set":{{"messages":[{}]}}}}"#,
            said("z", "user", "instead")
        ),
    ]);
    assert_eq!(story(&conversation), ["user: instead"]);
    assert_eq!(conversation.title.as_deref(), Some("A title"));
}

#[test]
fn checkpoints_are_contents() {
    let contents = r#"[{"role":"user","parts":[{"text":"go"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
{"role":"model","parts":[{"thought":true,"text":"hm"},{"functionCall":{"name":"ls","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"files":2}}}]}]"#;
    let expected = [
        "user: go + image ",
        "model: (hm) + call ls ls",
        "user: result ls {\"files\":2}",
    ];
    for text in [
        contents.to_owned(),
        format!(r#"{{"authType":"x","history":{contents}}}"#),
    ] {
        assert_eq!(Gemini.fits(&Probe::new(&text)), 85);
        assert_eq!(story(&read_text(&text).conversations[0]), expected);
    }
}

#[test]
fn damage_is_reported() {
    let text = format!(
        "{HEAD}\n{}\n{{\"x\":1}}\n{{\"id\":",
        said("a", "user", "go")
    );
    let source = read_text(&text);
    assert_eq!(story(&source.conversations[0]), ["user: go"]);
    let lines: Vec<_> = source.skipped.iter().map(|piece| piece.line).collect();
    assert_eq!(lines, [3, 4]);
    let text = format!(
        "{{\"sessionId\":\"s1\n{}\n{}",
        said("a", "user", "go"),
        said("b", "user", "on")
    );
    assert_eq!(
        story(&read_text(&text).conversations[0]),
        ["user: go", "user: on"]
    );
    let torn = format!(
        "{{\"sessionId\":\"s1\",\"messages\":[{},{{\"id\"",
        said("a", "user", "go")
    );
    let source = read_text(&torn);
    assert_eq!(story(&source.conversations[0]), ["user: go"]);
    assert_eq!(source.skipped.len(), 1);
    assert!(Gemini.read(&SourceText::from_text("{}")).is_err());
}
