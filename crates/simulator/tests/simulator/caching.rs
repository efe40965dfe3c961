//! The prompt cache as a client sees it: in the usage.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_simulator::{Latency, Options, Simulator};

use crate::support::*;

const MODEL: &str = "claude-opus-5";

fn marked(text: String, ttl: Option<&str>) -> Value {
    let mut marker = json!({"type": "ephemeral"});
    if let Some(ttl) = ttl {
        marker["ttl"] = json!(ttl);
    }
    json!({"type": "text", "text": text, "cache_control": marker})
}

/// A conversation of this many blocks, one a message, with a marker at the last.
fn blocks(count: usize) -> Value {
    let mut body = ask(MODEL, json!([]));
    let messages: Vec<Value> = (1..=count)
        .map(|at| {
            let text = format!("Block {at}: {}", words(60, at * 100_000));
            let content = if at == count {
                json!([marked(text, None)])
            } else {
                json!(text)
            };
            if at % 2 == 1 {
                user(content)
            } else {
                assistant(content)
            }
        })
        .collect();
    body["messages"] = json!(messages);
    if count.is_multiple_of(2) {
        body["messages"]
            .as_array_mut()
            .unwrap()
            .push(user("Go on."));
    }
    body
}

fn split_of(simulator: &mut Simulator, at_s: u64, body: &Value) -> [u64; 4] {
    let exchange = send_at(simulator, at_s, body);
    assert_eq!(exchange.status, 200, "{}", exchange.text());
    split(&json_of(&exchange))
}

#[test]
fn the_window_of_a_marker_has_twenty_places() {
    let mut simulator = simulator();
    let [_, written, _, read] = split_of(&mut simulator, 0, &blocks(15));
    assert!(written > 1000 && read == 0);
    assert_eq!(split_of(&mut simulator, 1, &blocks(34))[3], written);
    let mut fresh = crate::support::simulator();
    split_of(&mut fresh, 0, &blocks(15));
    assert_eq!(split_of(&mut fresh, 1, &blocks(35))[3], 0);
}

#[test]
fn a_conversation_that_grows_reads_what_it_wrote() {
    let mut simulator = simulator();
    let mut body = ask(MODEL, json!([user(words(1200, 0))]));
    body["cache_control"] = json!({"type": "ephemeral"});
    let first = answered(&mut simulator, &body);
    let [input, written, long, read] = split(&first);
    assert!(
        input == 0 && written > 1000 && long == 0 && read == 0,
        "{first}"
    );
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(first["content"].clone()));
    messages.push(user("Go on."));
    let [input, more, _, read] = split(&answered(&mut simulator, &body));
    assert_eq!((input, read), (0, written));
    assert!(more > 0);
}

#[test]
fn what_changes_a_part_of_the_prompt_invalidates_it() {
    let body = || {
        let mut body = ask(MODEL, json!([user(json!([marked(words(1500, 0), None)]))]));
        body["system"] = json!([marked(words(1500, 1_000_000), None)]);
        body["tools"] = json!([{
            "name": "read", "description": words(1500, 2_000_000), "input_schema": {"type": "object"},
            "cache_control": {"type": "ephemeral"},
        }]);
        body
    };
    let [all, system, tools] = {
        let mut simulator = simulator();
        let all = split(&answered(&mut simulator, &body()))[1];
        let mut only = body();
        only["messages"] = json!([user("hi")]);
        let system = split(&answered(&mut simulator, &only))[3];
        only["system"] = json!("Be brief.");
        let tools = split(&answered(&mut simulator, &only))[3];
        [all, system, tools]
    };
    assert!(all > system && system > tools && tools > 1000);
    let check = |change: fn(&mut Value), expected: u64| {
        let mut simulator = simulator();
        answered(&mut simulator, &body());
        let mut changed = body();
        change(&mut changed);
        let read = split(&answered(&mut simulator, &changed))[3];
        assert_eq!(read, expected, "{}", changed["tool_choice"]);
    };
    check(|_| (), all);
    check(|body| body["max_tokens"] = json!(77), all);
    check(|body| body["stop_sequences"] = json!(["zzz"]), all);
    check(|body| body["metadata"] = json!({"user_id": "u"}), all);
    check(|body| body["tool_choice"] = json!({"type": "auto"}), all);
    check(|body| body["thinking"] = json!({"type": "adaptive"}), all);
    check(
        |body| body["output_config"] = json!({"effort": "high"}),
        all,
    );
    check(|body| body["tool_choice"] = json!({"type": "none"}), system);
    check(
        |body| body["thinking"] = json!({"type": "disabled"}),
        system,
    );
    check(
        |body| body["output_config"] = json!({"effort": "low"}),
        system,
    );
    check(
        |body| body["messages"][0]["content"][0]["text"] = json!("other"),
        system,
    );
    check(|body| body["system"][0]["text"] = json!("other"), tools);
    check(|body| body["tools"][0]["name"] = json!("write"), 0);
    check(|body| body["model"] = json!("claude-opus-4-8"), 0);
    check(
        |body| {
            // The marker moves; what is marked stays.
            body["messages"][0]["content"] = json!([{"type": "text", "text": words(1500, 0)}]);
            body["messages"]
                .as_array_mut()
                .unwrap()
                .push(assistant("ok"));
            body["messages"]
                .as_array_mut()
                .unwrap()
                .push(user(json!([marked("Go on.".to_owned(), None)])));
        },
        all,
    );
}

#[test]
fn a_text_and_its_block_are_the_same_prefix() {
    let mut simulator = simulator();
    let mut body = ask(MODEL, json!([user(json!([marked(words(1500, 0), None)]))]));
    let written = split(&answered(&mut simulator, &body))[1];
    body["messages"] = json!([
        user(words(1500, 0)),
        assistant("ok"),
        user(json!([marked("on".to_owned(), None)]))
    ]);
    assert_eq!(split(&answered(&mut simulator, &body))[3], written);
}

#[test]
fn credentials_do_not_share() {
    let mut simulator = simulator();
    let body = ask(MODEL, json!([user(json!([marked(words(1500, 0), None)]))]));
    answered(&mut simulator, &body);
    let headers = [
        ("x-api-key", "another"),
        ("anthropic-version", "2023-06-01"),
    ];
    let exchange = simulator.request(
        Duration::ZERO,
        post("/v1/messages", &headers, &body.to_string()),
    );
    assert_eq!(split(&json_of(&exchange))[3], 0);
}

#[test]
fn entries_are_ready_when_the_first_answer_begins_and_live_from_its_start() {
    let mut options = Options::new(1);
    options.latency = Latency {
        base: Duration::from_secs(240),
        uncached_tokens_per_s: 0,
        cached_tokens_per_s: 0,
        ..Latency::real()
    };
    let mut simulator = Simulator::new(options);
    let body = ask(MODEL, json!([user(json!([marked(words(1500, 0), None)]))]));
    let long = ask(
        MODEL,
        json!([user(json!([marked(words(1500, 50), Some("1h"))]))]),
    );
    let written = split_of(&mut simulator, 0, &body)[1];
    split_of(&mut simulator, 0, &long);
    let read = |simulator: &mut Simulator, at| split_of(simulator, at, &body)[3];
    assert_eq!(read(&mut simulator, 239), 0);
    // The second request wrote the same entry again, with a lifetime from its own start.
    assert_eq!(read(&mut simulator, 538), written);
    assert_eq!(read(&mut simulator, 838), 0);
    assert!(split_of(&mut simulator, 3599, &long)[3] > 0);
    assert_eq!(split_of(&mut simulator, 3599 + 3600, &long)[3], 0);
}

#[test]
fn prices_follow_the_split() {
    let mut simulator = simulator();
    let mut body = ask(MODEL, json!([user(json!([marked(words(1500, 0), None)]))]));
    body["max_tokens"] = json!(0);
    let written = split(&answered(&mut simulator, &body))[1];
    assert_eq!(split(&answered(&mut simulator, &body))[3], written);
    let costs: Vec<u64> = simulator
        .ledger()
        .map(|entry| entry.cost.unwrap().nano_dollars())
        .collect();
    assert_eq!(costs, [written * 6250, written * 500]);
    assert_eq!(simulator.total_cost().nano_dollars(), written * 6750);
}

#[test]
fn a_request_for_nothing_fills_the_cache() {
    let mut simulator = simulator();
    let mut body = ask(MODEL, json!([user(json!([marked(words(1500, 0), None)]))]));
    body["max_tokens"] = json!(0);
    let answer = answered(&mut simulator, &body);
    assert_eq!(answer["content"], json!([]));
    assert_eq!(answer["stop_reason"], "max_tokens");
    assert_eq!(answer["usage"]["output_tokens"], 0);
    body["max_tokens"] = json!(100);
    assert!(split(&answered(&mut simulator, &body))[3] > 1000);
}
