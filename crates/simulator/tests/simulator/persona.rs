//! The talkative assistant.

use serde_json::{Value, json};
use throughline_simulator::{Options, Simulator};

use crate::support::*;

fn tools() -> Value {
    json!([
        {"name": "read_file", "input_schema": {"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "limit": {"type": "integer", "minimum": 3, "maximum": 5}}}},
        {"name": "edit", "input_schema": {"type": "object", "required": ["path", "mode", "changes"], "properties": {
            "path": {"type": "string", "maxLength": 40}, "mode": {"enum": ["insert", "replace"]}, "dry": {"type": "boolean"},
            "changes": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/change"}}},
            "$defs": {"change": {"type": "object", "required": ["old_text", "at"], "properties": {
                "old_text": {"type": "string"}, "at": {"anyOf": [{"type": "null"}, {"type": "number"}]}}}}}},
        {"name": "stop", "input_schema": {"type": "object"}},
    ])
}

#[test]
fn tools_are_used_with_arguments_that_fit_and_the_loop_ends() {
    let mut used = std::collections::BTreeSet::new();
    let (mut parallel, mut texts) = (0, 0);
    for seed in 0..30 {
        let mut simulator = Simulator::new(Options::new(seed).without_latency());
        let mut body = ask(
            "claude-opus-5",
            json!([user(format!("Fix bug {seed} in the queue."))]),
        );
        body["tools"] = tools();
        for step in 0.. {
            assert!(step < 8, "the loop does not end");
            let answer = answered(&mut simulator, &body);
            let content = answer["content"].as_array().unwrap().clone();
            let calls: Vec<&Value> = content
                .iter()
                .filter(|block| block["type"] == "tool_use")
                .collect();
            assert_eq!(answer["stop_reason"] == "tool_use", !calls.is_empty());
            if calls.is_empty() {
                assert!(!text_of(&answer).is_empty());
                texts += 1;
                break;
            }
            parallel += usize::from(calls.len() > 1);
            let mut results = Vec::new();
            for call in calls {
                let input = &call["input"];
                used.insert(call["name"].as_str().unwrap().to_owned());
                match call["name"].as_str().unwrap() {
                    "read_file" => {
                        assert!(input["path"].is_string());
                        assert!(
                            input["limit"].is_null()
                                || (3..=5).contains(&input["limit"].as_u64().unwrap())
                        );
                    }
                    "edit" => {
                        assert!(input["path"].as_str().unwrap().len() <= 40);
                        assert!(["insert", "replace"].contains(&input["mode"].as_str().unwrap()));
                        let changes = input["changes"].as_array().unwrap();
                        assert!(!changes.is_empty());
                        assert!(changes.iter().all(
                            |change| change["old_text"].is_string() && change["at"].is_number()
                        ));
                    }
                    _ => assert_eq!(input, &json!({})),
                }
                results.push(json!({"type": "tool_result", "tool_use_id": call["id"], "content": format!("result of {}", call["id"])}));
            }
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(assistant(content));
            messages.push(user(results));
        }
    }
    assert_eq!(used.len(), 3);
    assert!(parallel > 5 && texts == 30);
}

#[test]
fn the_choice_of_tools_is_kept_to() {
    let check = |choice: Value, calls: bool| {
        for seed in 0..8 {
            let mut simulator = Simulator::new(Options::new(seed).without_latency());
            let mut body = ask(
                "claude-sonnet-4-6",
                json!([user(format!("Go on with {seed}."))]),
            );
            body["tools"] = tools();
            body["tool_choice"] = choice.clone();
            let answer = answered(&mut simulator, &body);
            assert_eq!(answer["stop_reason"] == "tool_use", calls, "{answer}");
        }
    };
    check(json!({"type": "none"}), false);
    check(json!({"type": "any"}), true);
    check(json!({"type": "tool", "name": "edit"}), true);
}

#[test]
fn what_it_says_hangs_on_what_was_said_last() {
    let say = |before: usize, last: &str| {
        let mut simulator = simulator();
        for _ in 0..before {
            answered(
                &mut simulator,
                &ask("claude-opus-5", json!([user("Something else.")])),
            );
        }
        text_of(&answered(
            &mut simulator,
            &ask("claude-opus-5", json!([user(last)])),
        ))
    };
    assert_eq!(say(0, "Look at the router."), say(3, "Look at the router."));
    assert_ne!(say(0, "Look at the router."), say(0, "Look at the cache."));
}

#[test]
fn a_forced_choice_leaves_no_words_before_the_call() {
    let tools = json!([{"name": "read", "input_schema": {"type": "object"}}, {"name": "run", "input_schema": {"type": "object"}}]);
    let questions = [
        "Look at the parser.",
        "Remember: the port is 8431. What is the port?",
        "Summarize the conversation so far.",
    ];
    for seed in 0..20 {
        for question in questions {
            for choice in [
                json!({"type": "any"}),
                json!({"type": "tool", "name": "run"}),
            ] {
                let mut simulator = Simulator::new(Options::new(seed).without_latency());
                let mut body = ask("claude-opus-5", json!([user(question)]));
                body["tools"] = tools.clone();
                body["tool_choice"] = choice;
                body["thinking"] = json!({"type": "disabled"});
                let answer = answered(&mut simulator, &body);
                let blocks = answer["content"].as_array().unwrap();
                assert!(
                    blocks.iter().all(|block| block["type"] == "tool_use"),
                    "{answer}"
                );
                assert!(!blocks.is_empty());
                assert_eq!(answer["stop_reason"], "tool_use");
            }
        }
    }
}

#[test]
fn one_call_at_a_time_is_one_where_the_request_says_so() {
    let mut most = [0, 0, 0];
    for seed in 0..40 {
        let mut simulator = Simulator::new(Options::new(seed).without_latency());
        for (at, most) in [json!(false), json!(true)].into_iter().zip(&mut most) {
            let mut body = ask("claude-opus-5", json!([user("Look at the parser.")]));
            body["tools"] = tools();
            body["tool_choice"] = json!({"type": "any", "disable_parallel_tool_use": at});
            body["thinking"] = json!({"type": "disabled"});
            let answer = answered(&mut simulator, &body);
            *most = (*most).max(answer["content"].as_array().unwrap().len());
        }
        let body = json!({"model": "gpt-5.4", "messages": [user("Look at the parser.")], "tool_choice": "required",
            "parallel_tool_calls": false, "tools": [{"type": "function", "function": {"name": "read"}}]});
        let request = openai_request("/v1/chat/completions", &body);
        let answer = json_of(&simulator.request(std::time::Duration::ZERO, request));
        let message = &answer["choices"][0]["message"];
        assert_eq!(message["content"], Value::Null, "{answer}");
        most[2] = most[2].max(message["tool_calls"].as_array().unwrap().len());
    }
    assert_eq!(most, [4, 1, 1]);
}
