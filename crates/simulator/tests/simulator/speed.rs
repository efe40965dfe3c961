//! Long conversations: the work is linear, and what was seen before costs next to nothing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::*;

/// A body of about 800 KB: 400 messages of tool calls and results.
fn long() -> Value {
    let mut messages = vec![user("Fix all bugs.")];
    for at in 0..200 {
        let id = format!("t{at}");
        messages.push(assistant(json!([{"type": "tool_use", "id": id, "name": "read", "input": {"path": format!("src/{at}.rs")}}])));
        messages.push(user(json!([{"type": "tool_result", "tool_use_id": id, "content": words(330, at * 1_000_003)}])));
    }
    let mut body = ask("claude-opus-5", json!(messages));
    body["cache_control"] = json!({"type": "ephemeral"});
    body["tools"] = json!([{"name": "read", "input_schema": {"type": "object"}}]);
    body
}

#[test]
fn a_long_conversation_is_measured_once() {
    let mut simulator = simulator();
    let mut body = long();
    assert!(body.to_string().len() > 700_000);
    let start = Instant::now();
    let first = answered(&mut simulator, &body);
    let cold = start.elapsed();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(vec![json!({"type": "text", "text": "ok"})]));
    messages.push(user("Go on."));
    let request = messages_request(&body);
    let start = Instant::now();
    let exchange = simulator.request(Duration::ZERO, request);
    let warm = start.elapsed();
    let second = split(&json_of(&exchange));
    assert_eq!(second[3], split(&first)[1]);
    println!(
        "{} KB: {cold:?} the first time, {warm:?} with one message more",
        body.to_string().len() / 1000
    );
    // Generous: machines that build at the same time are slow.
    assert!(warm < Duration::from_secs(5));
}
