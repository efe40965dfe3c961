use super::*;
use crate::body::{read_body, read_message};
use crate::wire::Wire;

fn digest(message: &str) -> Digest {
    message_digest(&read_message(&Raw::parse(message).unwrap()).unwrap())
}

#[track_caller]
fn check_same(messages: &[&str]) {
    for message in messages {
        assert_eq!(digest(messages[0]), digest(message), "{message}");
    }
}

#[track_caller]
fn check_all_differ(messages: &[&str]) {
    for (index, message) in messages.iter().enumerate() {
        for other in &messages[..index] {
            assert_ne!(digest(message), digest(other), "{message} {other}");
        }
    }
}

#[test]
fn a_text_is_the_same_in_every_form() {
    check_same(&[
        r#"{"role":"user","content":"h\u00e9\n"}"#,
        r#"{"role":"user","content":"hé\n"}"#,
        r#"{"content" : "hé\n", "role" : "user"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"h\u00e9\u000a"}]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"hé\n","cache_control":{"type":"ephemeral","ttl":"1h"}}]}"#,
        r#"{"type":"message","id":"msg_7","status":"completed","role":"user","content":[{"type":"input_text","text":"hé\n"}]}"#,
    ]);
}

#[test]
fn markers_and_volatile_fields_do_not_count() {
    check_same(&[
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"run","input":{"a":"\u00e9"}}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"run","input": { "a" : "é" },"cache_control":{"type":"ephemeral"}}]}"#,
        r#"{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"run","arguments":"{\"a\": \"é\"}"}}]}"#,
        r#"{"type":"function_call","id":"fc_1","call_id":"t1","name":"run","arguments":"{\"a\":\"é\"}","status":"completed"}"#,
    ]);
    check_same(&[
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}"#,
        r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"E","status":null}"#,
    ]);
    check_same(&[
        r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"}}]}"#,
        r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"},"cache_control":{"type":"ephemeral"}}]}"#,
    ]);
    check_same(&[
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":false,"content":[{"type":"text","text":"ok"}]}]}"#,
    ]);
}

#[test]
fn content_changes_the_digest() {
    check_all_differ(&[
        r#"{"role":"user","content":"a"}"#,
        r#"{"role":"assistant","content":"a"}"#,
        r#"{"role":"user","content":"b"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
        r#"{"role":"user","content":"ab"}"#,
        r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"a"}}]}"#,
        r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"b"}}]}"#,
        r#"{"role":"user","content":[{"type":"new","status_code":1}]}"#,
        r#"{"role":"user","content":[{"type":"new","status_code":2}]}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"a"}]}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"b"}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"run","input":{"a":1}}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"run","input":{"a":1.0}}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"run","input":{"a":1}}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"run","input":{"a":"1"}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"no"}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no"}]}"#,
    ]);
}

#[test]
fn long_texts_are_hashed_whole() {
    let long = |text: &str| {
        format!(
            r#"{{"role":"user","content":"{}{text}"}}"#,
            "x".repeat(10_000)
        )
    };
    check_all_differ(&[&long("a"), &long("b"), &long("")]);
    check_same(&[&long("é"), &long("\\u00e9")]);
}

#[test]
fn a_chain_names_the_prefix() {
    let chain = |body: &str| {
        let body = Raw::parse(body).unwrap();
        prefix_digests(&read_body(&body, Wire::OpenAiChat).unwrap().messages)
    };
    let a = r#"{"role":"user","content":"a"}"#;
    let b = r#"{"role":"assistant","content":"b"}"#;
    let short = chain(&format!(r#"{{"messages":[{a},{b}]}}"#));
    let long = chain(&format!(r#"{{"messages":[{a},{b},{a}]}}"#));
    assert_eq!(short[..], long[..2]);
    let other = chain(&format!(r#"{{"messages":[{b},{a}]}}"#));
    assert_ne!(short[1], other[1]);
    assert_eq!(long[0].to_string().len(), 64);
}
