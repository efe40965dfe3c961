//! Signatures of thinking: what is given back unchanged is taken, on models that bind it also after the same prefix.

use serde_json::{Value, json};
use throughline_simulator::{Options, PrefixMismatch, Reply, Simulator};

use crate::support::*;

const BINDING: &str = "claude-opus-5-5";
const FREE: &str = "claude-opus-5";
const CONTROLS: &str = "thinking-binding-controls-2026-08-01";

/// A conversation in which the model has thought once.
fn conversation(simulator: &mut Simulator, model: &str) -> Value {
    simulator.script(Reply::text("It is in src/a.rs.").thinking("Where may it be? ".repeat(40)));
    let mut body = ask(model, json!([user("Where is the bug?")]));
    body["system"] = json!("You are a helper.");
    let answer = answered(simulator, &body);
    assert_eq!(answer["content"][0]["type"], "thinking");
    assert_eq!(answer["content"][0]["thinking"], "");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(answer["content"].clone()));
    messages.push(user("Fix it."));
    body
}

#[track_caller]
fn check(model: &str, change: impl Fn(&mut Value), expected: Option<&str>) {
    let mut simulator = simulator();
    let mut body = conversation(&mut simulator, model);
    change(&mut body);
    let exchange = send(&mut simulator, &body);
    match expected {
        None => assert_eq!(exchange.status, 200, "{}", exchange.text()),
        Some(part) => {
            assert_eq!(exchange.status, 400);
            let answer = json_of(&exchange);
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(part), "{message}");
        }
    }
}

#[test]
fn thinking_holds_for_its_text_and_its_prefix() {
    let forged = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let bound = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
    let earlier =
        |body: &mut Value| body["messages"][0]["content"] = json!("Where is the other bug?");
    let marked = |body: &mut Value| {
        body["messages"][0]["content"] = json!([{"type": "text", "text": "Where is the bug?", "cache_control": {"type": "ephemeral"}}]);
    };
    for model in [BINDING, FREE] {
        check(model, |_| (), None);
        check(model, marked, None);
        check(
            model,
            |body| body["messages"][1]["content"][0]["thinking"] = json!("other"),
            Some(forged),
        );
        check(
            model,
            |body| body["messages"][1]["content"][0]["signature"] = json!("c2ln"),
            Some(forged),
        );
        check(
            model,
            |body| {
                drop(
                    body["messages"][1]["content"]
                        .as_array_mut()
                        .unwrap()
                        .remove(0),
                )
            },
            None,
        );
        check(
            model,
            |body| body["messages"][2]["content"] = json!("Leave it."),
            None,
        );
    }
    check(FREE, earlier, None);
    check(BINDING, earlier, Some(bound));
    check(
        BINDING,
        |body| body["system"] = json!("You are another."),
        Some(bound),
    );
    check(
        BINDING,
        |body| body["tools"] = json!([{"name": "t", "input_schema": {"type": "object"}}]),
        Some(bound),
    );
    check(
        BINDING,
        |body| {
            body["tools"] =
                json!([{"name": "t", "input_schema": {"type": "object"}, "defer_loading": true}])
        },
        None,
    );
}

#[test]
fn blocks_that_do_not_fit_can_be_dropped() {
    let mut simulator = simulator();
    let mut body = conversation(&mut simulator, BINDING);
    let kept = answered(&mut simulator, &body)["usage"]["input_tokens"]
        .as_u64()
        .unwrap();
    body["messages"][0]["content"] = json!("Where is that bug?");
    body["thinking"] =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    // Without the beta the control does not count.
    assert_eq!(send(&mut simulator, &body).status, 400);
    let mut request = messages_request(&body);
    request
        .headers_mut()
        .insert("anthropic-beta", CONTROLS.parse().unwrap());
    let exchange = simulator.request(std::time::Duration::ZERO, request);
    assert_eq!(exchange.status, 200, "{}", exchange.text());
    let answer = json_of(&exchange);
    assert_eq!(
        answer["input_transformations"],
        json!([{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}])
    );
    assert!(answer["usage"]["input_tokens"].as_u64().unwrap() + 50 < kept);
}

#[test]
fn older_accounts_are_let_through() {
    let mut options = Options::new(1).without_latency();
    options.prefix_mismatch = PrefixMismatch::Allow;
    let mut simulator = Simulator::new(options);
    let mut body = conversation(&mut simulator, BINDING);
    body["system"] = json!("You are another.");
    assert_eq!(send(&mut simulator, &body).status, 200);
}

#[test]
fn thinking_of_another_model_is_left_out_in_silence() {
    let mut simulator = simulator();
    let mut body = conversation(&mut simulator, FREE);
    let own = answered(&mut simulator, &body)["usage"]["input_tokens"]
        .as_u64()
        .unwrap();
    body["model"] = json!("claude-opus-4-8");
    let other = answered(&mut simulator, &body)["usage"]["input_tokens"]
        .as_u64()
        .unwrap();
    assert!(other + 50 < own, "{other} {own}");
}

#[test]
fn a_compaction_keeps_what_follows_it_valid() {
    let beta = |body: &Value| {
        let mut request = messages_request(body);
        request
            .headers_mut()
            .insert("anthropic-beta", "compact-2026-09-04".parse().unwrap());
        request
    };
    let mut simulator = simulator();
    let now = std::time::Duration::ZERO;
    let full = conversation(&mut simulator, BINDING);
    // The first message is compacted; the reply with its thinking stays.
    let mut body = full.clone();
    body["messages"].as_array_mut().unwrap().truncate(1);
    body["compaction"] = json!({"type": "summarize"});
    let exchange = simulator.request(now, beta(&body));
    let compacted = json_of(&exchange);
    assert_eq!(exchange.status, 200, "{compacted}");
    assert_eq!(compacted["stop_reason"], "compaction");
    assert!(
        compacted["content"][0]["content"]
            .as_str()
            .unwrap()
            .contains("Where is the bug?")
    );
    let mut kept = full.clone();
    kept["messages"][0] = assistant(compacted["content"].clone());
    let exchange = simulator.request(now, beta(&kept));
    assert_eq!(exchange.status, 200, "{}", exchange.text());
    kept["messages"][0]["content"][0]["content"] = json!("Something else.");
    let exchange = simulator.request(now, beta(&kept));
    assert_eq!(
        json_of(&exchange)["error"]["details"]["error_code"],
        "compaction_content_mismatch"
    );
}

#[test]
fn older_models_forget_what_they_thought_in_earlier_turns() {
    let mut simulator = simulator();
    let mut body = ask("claude-sonnet-4-5", json!([user("Where is the bug?")]));
    body["max_tokens"] = json!(4000);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    simulator.script(Reply::text("There.").thinking("Where may it be? ".repeat(60)));
    let answer = answered(&mut simulator, &body);
    let thought = answer["usage"]["output_tokens_details"]["thinking_tokens"]
        .as_u64()
        .unwrap();
    assert!(thought > 100);
    let before = answer["usage"]["input_tokens"].as_u64().unwrap();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(answer["content"].clone()));
    messages.push(user("Fix it."));
    let after = answered(&mut simulator, &body)["usage"]["input_tokens"]
        .as_u64()
        .unwrap();
    assert!(after < before + thought);
}
