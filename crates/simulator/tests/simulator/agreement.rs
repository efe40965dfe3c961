//! The simulator agrees with the wire checker, and what it counts with what it charges.
//!
//! What the checker cannot know is left out of the bodies here: thinking with signatures, prompts that are too long,
//! threads, and unknown models.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use throughline_simulator::{Options, Simulator};
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::check::{CheckOptions, check_text};
use throughline_transcript::wire::Wire;

use crate::support::*;

/// Whether the checker takes a body, as the simulator's request is sent.
fn is_valid(body: &str, wire: Wire, model: &str) -> bool {
    let betas: [&str; 0] = [];
    let options = CheckOptions {
        model: Catalogue::embedded().find(model),
        anthropic_version: Some("2023-06-01"),
        betas: Some(&betas),
        ..CheckOptions::default()
    };
    check_text(body, wire, &options).is_valid()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z]{1,8}( [a-z]{1,8}){0,3}",
        1 => Just(String::new()),
        1 => Just(" \n".to_owned()),
        1 => Just("ends in space ".to_owned()),
    ]
}

fn marker() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        8 => Just(None),
        2 => Just(Some(json!({"type": "ephemeral"}))),
        1 => Just(Some(json!({"type": "ephemeral", "ttl": "1h"}))),
        1 => Just(Some(json!({"type": "persistent"}))),
    ]
}

fn block() -> impl Strategy<Value = Value> {
    let ids = prop_oneof![Just("t1"), Just("t2"), Just("t3")];
    let kinds = prop_oneof![
        6 => text().prop_map(|text| json!({"type": "text", "text": text})),
        2 => ids.clone().prop_map(|id| json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": "a"}})),
        2 => ids.prop_map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "fine"})),
        1 => Just(json!({"type": "tool_use", "id": "t 4", "name": "read", "input": "a"})),
        1 => Just(json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}})),
        1 => Just(json!({"type": "mystery", "x": 1})),
        1 => Just(json!({"text": "no type"})),
    ];
    (kinds, marker()).prop_map(|(mut block, marker)| {
        if let Some(marker) = marker {
            block["cache_control"] = marker;
        }
        block
    })
}

fn message() -> impl Strategy<Value = Value> {
    let role = prop_oneof![4 => Just("user"), 4 => Just("assistant"), 1 => Just("system"), 1 => Just("owner")];
    let content = prop_oneof![
        text().prop_map(Value::from),
        vec(block(), 0..4).prop_map(Value::from)
    ];
    (role, content).prop_map(|(role, content)| json!({"role": role, "content": content}))
}

/// A conversation that is in order, with a tool call now and then.
fn orderly() -> impl Strategy<Value = Vec<Value>> {
    vec(("[a-z]{1,9}", any::<bool>()), 1..5).prop_map(|turns| {
        let mut messages = Vec::new();
        for (at, (words, calls)) in turns.into_iter().enumerate() {
            messages.push(user(words.clone()));
            if calls {
                let id = format!("call_{at}");
                messages.push(assistant(
                    json!([{"type": "tool_use", "id": id, "name": "read", "input": {}}]),
                ));
                messages.push(user(
                    json!([{"type": "tool_result", "tool_use_id": id, "content": words}]),
                ));
            }
            messages.push(assistant("done"));
        }
        messages.push(user("go on"));
        messages
    })
}

/// A body, valid or spoilt in one place or in many.
fn body() -> impl Strategy<Value = (String, Value)> {
    let model = prop_oneof![
        Just("claude-opus-5"),
        Just("claude-opus-4-5"),
        Just("claude-sonnet-4-6"),
        Just("claude-haiku-5-5")
    ];
    let spoilt = (
        orderly(),
        vec((any::<prop::sample::Index>(), message()), 0..2),
        vec(any::<prop::sample::Index>(), 0..2),
    )
        .prop_map(|(mut messages, extra, removed)| {
            for (at, message) in extra {
                messages.insert(at.index(messages.len()), message);
            }
            for at in removed {
                if !messages.is_empty() {
                    messages.remove(at.index(messages.len()));
                }
            }
            messages
        });
    let messages = prop_oneof![3 => spoilt, 1 => vec(message(), 0..6)];
    let settings = vec(
        prop_oneof![
            Just(("max_tokens", json!(0))),
            Just(("max_tokens", json!(-1))),
            Just(("max_tokens", json!(9_000_000))),
            Just(("max_tokens", Value::Null)),
            Just(("thinking", json!({"type": "adaptive"}))),
            Just((
                "thinking",
                json!({"type": "enabled", "budget_tokens": 1024})
            )),
            Just(("thinking", json!({"type": "enabled", "budget_tokens": 1}))),
            Just(("thinking", json!({"type": "disabled"}))),
            Just(("temperature", json!(0.2))),
            Just(("top_k", json!("many"))),
            Just(("system", json!("Be brief."))),
            Just(("system", json!([{"type": "image"}]))),
            Just(("tool_choice", json!({"type": "any"}))),
            Just(("tool_choice", json!({"type": "tool", "name": "nothing"}))),
            Just(("cache_control", json!({"type": "ephemeral"}))),
            Just(("stop_sequences", json!(["x"]))),
            Just(("stream", json!(true))),
            Just(("stream", json!("yes"))),
            Just(("compaction", json!({"type": "summarize"}))),
            Just(("tools", json!([]))),
        ],
        0..3,
    );
    (model, messages, settings).prop_map(|(model, messages, settings)| {
        let mut body = json!({"model": model, "max_tokens": 3000, "messages": messages});
        body["tools"] = json!([{"name": "read", "input_schema": {"type": "object"}}]);
        for (field, value) in settings {
            body[field] = value;
        }
        (model.to_owned(), body)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_body_is_refused_exactly_when_the_checker_finds_an_error((model, body) in body()) {
        let body = body.to_string();
        let exchange = simulator().request(Duration::ZERO, raw_messages_request(&body));
        let is_taken = exchange.status == 200;
        prop_assert!(is_taken || exchange.status == 400, "{}", exchange.text());
        prop_assert_eq!(is_taken, is_valid(&body, Wire::Anthropic, &model), "{}\n{}", body, exchange.text());
    }

    #[test]
    fn what_is_counted_is_what_is_charged((_, mut body) in body(), earlier in "[a-z ]{0,20}") {
        body["stream"] = json!(false);
        body["cache_control"] = json!({"type": "ephemeral"});
        body["system"] = json!(format!("{earlier}{}", words(800, 3)));
        let mut simulator = simulator();
        let charged = send(&mut simulator, &body);
        let again = send(&mut simulator, &body);
        let headers = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];
        let counted = simulator.request(Duration::ZERO, post("/v1/messages/count_tokens", &headers, &body.to_string()));
        if charged.status == 200 {
            prop_assert_eq!(counted.status, 200);
            let counted = json_of(&counted)["input_tokens"].as_u64().unwrap();
            for exchange in [charged, again] {
                let sum: u64 = split(&json_of(&exchange)).iter().sum();
                prop_assert_eq!(sum, counted);
                prop_assert_eq!(exchange.usage.unwrap().prompt(), counted);
            }
        }
    }

    #[test]
    fn what_the_simulator_says_can_be_sent_back((_, body) in body(), seed in 0u64..1000) {
        let mut simulator = Simulator::new(Options::new(seed).without_latency());
        let mut body = body;
        body["stream"] = json!(false);
        // A prefill is continued, not answered.
        let is_prefill = body["messages"].as_array().and_then(|messages| messages.last())
            .is_none_or(|last| last["role"] != "user");
        if is_prefill {
            return Ok(());
        }
        if body["max_tokens"] == json!(0) || body.get("compaction").is_some() {
            return Ok(());
        }
        for _ in 0..4 {
            let exchange = send(&mut simulator, &body);
            if exchange.status != 200 {
                return Ok(());
            }
            let answer = json_of(&exchange);
            let calls: Vec<Value> = answer["content"].as_array().unwrap().iter()
                .filter(|block| block["type"] == "tool_use")
                .map(|block| json!({"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}))
                .collect();
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(assistant(answer["content"].clone()));
            messages.push(if calls.is_empty() { user("go on") } else { user(calls) });
            let next = send(&mut simulator, &body);
            prop_assert_eq!(next.status, 200, "{}\n{}", next.text(), body);
        }
    }

    #[test]
    fn nothing_makes_it_panic(path in "/v1/(messages|messages/count_tokens|chat/completions|responses|responses/compact)", body in ".{0,60}|[\\[\\]{}\":,a-z0-9]{0,60}") {
        let bearer = format!("Bearer {KEY}");
        let headers = [("authorization", bearer.as_str()), ("anthropic-version", "2023-06-01")];
        let exchange = simulator().request(Duration::ZERO, post(&path, &headers, &body));
        prop_assert!(exchange.status.is_client_error());
    }

    #[test]
    fn the_wires_of_openai_agree_too(
        roles in vec(prop_oneof![Just("system"), Just("user"), Just("assistant"), Just("tool"), Just("owner")], 0..5),
        calls in any::<bool>(),
        content in prop_oneof![Just(json!("hi")), Just(Value::Null), Just(json!([])), Just(json!([{"type": "text", "text": "x"}])), Just(json!(7))],
        setting in prop_oneof![
            Just(("n", json!(1))), Just(("stop", json!(["a"]))), Just(("stop", json!(7))), Just(("stream_options", json!({"include_usage": true}))),
            Just(("response_format", json!({"type": "xml"}))), Just(("tool_choice", json!("required"))), Just(("max_completion_tokens", json!(0))),
        ],
    ) {
        let mut messages: Vec<Value> = roles.iter().map(|role| match *role {
            "tool" => json!({"role": "tool", "tool_call_id": "c1", "content": content}),
            "assistant" if calls => json!({"role": "assistant", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
            role => json!({"role": role, "content": content}),
        }).collect();
        messages.push(user("go on"));
        let mut body = json!({"model": "gpt-4.1", "messages": messages});
        body[setting.0] = setting.1;
        let exchange = simulator().request(Duration::ZERO, openai_request("/v1/chat/completions", &body));
        let text = body.to_string();
        prop_assert_eq!(exchange.status == 200, is_valid(&text, Wire::OpenAiChat, "gpt-4.1"), "{}\n{}", text, exchange.text());
        // The same as items.
        let items: Vec<Value> = roles.iter().map(|role| match *role {
            "tool" => json!({"type": "function_call_output", "call_id": "c1", "output": "ok"}),
            "assistant" if calls => json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}),
            role => json!({"role": role, "content": content}),
        }).chain([user("go on")]).collect();
        let body = json!({"model": "gpt-4.1", "input": items});
        let exchange = simulator().request(Duration::ZERO, openai_request("/v1/responses", &body));
        let text = body.to_string();
        prop_assert_eq!(exchange.status == 200, is_valid(&text, Wire::OpenAiResponses, "gpt-4.1"), "{}\n{}", text, exchange.text());
    }
}
