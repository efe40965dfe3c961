//! Streams, event for event, and that they say what the whole answer says.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_simulator::{Chunking, Ending, Latency, Options, Reply, Simulator};

use crate::support::*;

const MODEL: &str = "claude-opus-5";

/// Events of a stream: name and data.
pub(crate) fn events(text: &str) -> Vec<(String, Value)> {
    text.split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data = data.strip_prefix("data: ").unwrap();
            (
                name.strip_prefix("event: ").unwrap().to_owned(),
                serde_json::from_str(data).unwrap(),
            )
        })
        .collect()
}

/// Puts a message together as a client does.
fn reassembled(events: &[(String, Value)]) -> Value {
    let mut message = Value::Null;
    let mut partial = String::new();
    for (name, data) in events {
        assert_eq!(data["type"], json!(name));
        let index = data["index"].as_u64().unwrap_or(0) as usize;
        match name.as_str() {
            "message_start" => message = data["message"].clone(),
            "content_block_start" => {
                let content = message["content"].as_array_mut().unwrap();
                assert_eq!(content.len(), index);
                content.push(data["content_block"].clone());
                partial.clear();
            }
            "content_block_delta" => {
                let delta = &data["delta"];
                let block = &mut message["content"][index];
                let append = |block: &mut Value, field: &str, more: &Value| {
                    let text = block[field].as_str().unwrap().to_owned() + more.as_str().unwrap();
                    block[field] = json!(text);
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => append(block, "text", &delta["text"]),
                    "thinking_delta" => append(block, "thinking", &delta["thinking"]),
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    "input_json_delta" => partial.push_str(delta["partial_json"].as_str().unwrap()),
                    "compaction_delta" => {
                        block["content"] = delta["content"].clone();
                        block["encrypted_content"] = delta["encrypted_content"].clone();
                    }
                    other => panic!("{other}"),
                }
            }
            "content_block_stop" => {
                if !partial.is_empty() {
                    message["content"][index]["input"] = serde_json::from_str(&partial).unwrap();
                }
            }
            "message_delta" => {
                for (field, value) in data["delta"].as_object().unwrap() {
                    message[field] = value.clone();
                }
                message["usage"] = data["usage"].clone();
            }
            "message_stop" | "ping" => {}
            other => panic!("{other}"),
        }
    }
    message
}

fn tools() -> Value {
    json!([{
        "name": "read_file", "description": "Reads a file.",
        "input_schema": {"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 9},
        }},
    }])
}

#[test]
fn a_streamed_reply_is_the_reply() {
    for seed in 0..12 {
        let simulator = || Simulator::new(Options::new(seed).without_latency());
        let mut body = ask(
            MODEL,
            json!([user(format!("Fix bug number {seed} in the parser."))]),
        );
        body["thinking"] = json!({"type": "adaptive", "display": if seed % 2 == 0 { "summarized" } else { "omitted" }});
        body["tools"] = tools();
        let whole = answered(&mut simulator(), &body);
        body["stream"] = json!(true);
        let exchange = send(&mut simulator(), &body);
        assert_eq!(
            exchange.headers["content-type"],
            "text/event-stream; charset=utf-8"
        );
        assert_eq!(reassembled(&events(&exchange.text())), whole);
    }
}

#[test]
fn events_come_in_their_order() {
    let mut simulator = Simulator::new(Options::new(1).without_latency());
    simulator.script(
        Reply::text("Yes.")
            .thinking("Is it?")
            .tool_call("read_file", r#"{"path":"a"}"#),
    );
    let mut body = ask(MODEL, json!([user("hi")]));
    body["stream"] = json!(true);
    body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
    body["tools"] = tools();
    let exchange = send(&mut simulator, &body);
    let names: Vec<String> = events(&exchange.text())
        .iter()
        .map(|(name, data)| match data["delta"]["type"].as_str() {
            Some(kind) => format!("{name} {kind}"),
            None => name.clone(),
        })
        .collect();
    insta::assert_snapshot!(names.join("\n"), @r"
    message_start
    content_block_start
    ping
    content_block_delta thinking_delta
    content_block_delta signature_delta
    content_block_stop
    content_block_start
    content_block_delta text_delta
    content_block_stop
    content_block_start
    content_block_delta input_json_delta
    content_block_delta input_json_delta
    content_block_stop
    message_delta
    message_stop
    ");
    let all = events(&exchange.text());
    let (_, last) = &all[all.len() - 2];
    assert_eq!(last["delta"]["stop_reason"], "tool_use");
    let usage = &last["usage"];
    assert!(
        usage["output_tokens_details"]["thinking_tokens"]
            .as_u64()
            .unwrap()
            > 0
    );
    assert!(
        usage["output_tokens"].as_u64()
            > usage["output_tokens_details"]["thinking_tokens"].as_u64()
    );
}

#[test]
fn a_long_answer_takes_the_time_that_a_model_takes() {
    let mut options = Options::new(1);
    options.chunking = Chunking::Events;
    let mut simulator = Simulator::new(options);
    simulator.script(Reply::text(
        "one two three four five six seven eight nine ten ".repeat(130),
    ));
    let mut body = ask(MODEL, json!([user("hi")]));
    body["stream"] = json!(true);
    body["thinking"] = json!({"type": "disabled"});
    let exchange = send(&mut simulator, &body);
    let usage = exchange.usage.unwrap();
    assert!((1900..2001).contains(&usage.output), "{usage:?}");
    let first = Latency::real().first_token(&usage);
    assert_eq!(exchange.head_after, first);
    assert_eq!(
        exchange.finished_after(),
        first + Latency::real().output(usage.output)
    );
    assert!(exchange.finished_after() > Duration::from_secs(27));
    assert_eq!(exchange.ending, Ending::Complete);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let all = |seed| {
        let mut simulator = Simulator::new(Options::new(seed));
        let mut body = ask(MODEL, json!([user("Look at the cache layer.")]));
        body["stream"] = json!(true);
        let exchange = send(&mut simulator, &body);
        exchange.pieces
    };
    assert_eq!(all(5), all(5));
    assert_ne!(all(5), all(6));
}

#[test]
fn replies_end_at_their_limits() {
    let check = |field: &str, value: Value, stop: &str, text: &str| {
        let mut simulator = simulator();
        simulator.script(Reply::text("alpha beta gamma delta").tool_call("read_file", "{}"));
        let mut body = ask("claude-sonnet-4-6", json!([user("hi")]));
        body[field] = value;
        let answer = answered(&mut simulator, &body);
        assert_eq!(answer["stop_reason"], stop, "{answer}");
        assert_eq!(text_of(&answer), text);
        assert_eq!(
            answer["content"].as_array().unwrap().len() == 2,
            stop == "tool_use"
        );
    };
    check(
        "stop_sequences",
        json!(["gamma", "zeta"]),
        "stop_sequence",
        "alpha beta ",
    );
    check("max_tokens", json!(2), "max_tokens", "alpha b");
    check(
        "max_tokens",
        json!(900),
        "tool_use",
        "alpha beta gamma delta",
    );
}
