//! For any input: no panic. For any valid conversation: accepted, and refused with the right code after one fault.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::known;

/// Values made of the words that the checker looks for, so that random bodies get deep into it.
fn json_like() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "model",
        "max_tokens",
        "messages",
        "input",
        "role",
        "content",
        "type",
        "text",
        "id",
        "user",
        "assistant",
        "system",
        "tool",
        "tool_use",
        "tool_result",
        "tool_use_id",
        "thinking",
        "signature",
        "cache_control",
        "ephemeral",
        "ttl",
        "1h",
        "tools",
        "name",
        "tool_calls",
        "tool_call_id",
        "function",
        "arguments",
        "function_call",
        "function_call_output",
        "call_id",
        "output",
        "reasoning",
        "summary",
        "compaction",
        "compaction_trigger",
        "server_tool_use",
        "web_search_tool_result",
        "source",
        "image",
        "base64",
        "data",
        "media_type",
        "enabled",
        "budget_tokens",
        "thread",
        "continue",
        "",
        "\u{fffd}",
        "a b",
        "a",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 120, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..8).prop_map(|fields| {
                Value::Object(
                    fields
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

/// One exchange: what the user says, how many tools are called, whether the model thinks and searches.
#[derive(Clone, Debug)]
struct Exchange {
    words: String,
    calls: usize,
    thinks: bool,
    searches: bool,
}

fn exchanges() -> impl Strategy<Value = Vec<Exchange>> {
    let exchange = (
        "[a-z]{1,9}( [a-zäß字😀]{1,9}){0,4}",
        0..4usize,
        any::<bool>(),
        any::<bool>(),
    );
    let exchange = exchange.prop_map(|(words, calls, thinks, searches)| Exchange {
        words,
        calls,
        thinks,
        searches,
    });
    prop::collection::vec(exchange, 1..6)
}

fn anthropic(exchanges: &[Exchange]) -> Value {
    let mut messages = Vec::new();
    for (turn, exchange) in exchanges.iter().enumerate() {
        messages
            .push(json!({"role": "user", "content": [{"type": "text", "text": exchange.words}]}));
        let mut blocks = Vec::new();
        if exchange.thinks {
            blocks.push(json!({"type": "thinking", "thinking": "", "signature": "s"}));
        }
        if exchange.searches {
            let id = format!("srvtoolu_{turn}");
            blocks.push(
                json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}),
            );
            blocks
                .push(json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []}));
        }
        blocks.push(json!({"type": "text", "text": "So."}));
        let ids: Vec<_> = (0..exchange.calls)
            .map(|call| format!("toolu_{turn}_{call}"))
            .collect();
        for id in &ids {
            blocks.push(json!({"type": "tool_use", "id": id, "name": "f", "input": {"a": [1e3]}}));
        }
        messages.push(json!({"role": "assistant", "content": blocks}));
        if !ids.is_empty() {
            let results: Vec<_> = ids
                .iter()
                .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": exchange.words}))
                .collect();
            messages.push(json!({"role": "user", "content": results}));
            messages.push(json!({"role": "assistant", "content": "Done."}));
        }
    }
    messages.push(json!({"role": "user", "content": "Thanks."}));
    json!({
        "model": "m",
        "max_tokens": 1000,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "web_search"}],
        "messages": messages,
    })
}

fn openai_chat(exchanges: &[Exchange]) -> Value {
    let mut messages = vec![json!({"role": "system", "content": "Be brief."})];
    for (turn, exchange) in exchanges.iter().enumerate() {
        messages.push(json!({"role": "user", "content": exchange.words}));
        let ids: Vec<_> = (0..exchange.calls)
            .map(|call| format!("call_{turn}_{call}"))
            .collect();
        if !ids.is_empty() {
            let calls: Vec<_> = ids
                .iter()
                .map(|id| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}))
                .collect();
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
            for id in ids.iter().rev() {
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": ""}));
            }
        }
        messages.push(json!({"role": "assistant", "content": "Done."}));
    }
    messages.push(json!({"role": "user", "content": "Thanks."}));
    json!({"model": "m", "messages": messages})
}

fn openai_responses(exchanges: &[Exchange]) -> Value {
    let mut items = Vec::new();
    for (turn, exchange) in exchanges.iter().enumerate() {
        items.push(json!({"role": "user", "content": exchange.words}));
        if exchange.thinks {
            items.push(json!({"type": "reasoning", "id": format!("rs_{turn}"), "summary": []}));
        }
        for call in 0..exchange.calls {
            items.push(json!({"type": "function_call", "call_id": format!("call_{turn}_{call}"), "name": "f", "arguments": "{}"}));
        }
        for call in 0..exchange.calls {
            items.push(json!({"type": "function_call_output", "call_id": format!("call_{turn}_{call}"), "output": "x"}));
        }
        items.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}));
    }
    items.push(json!({"role": "user", "content": "Thanks."}));
    json!({"model": "m", "input": items})
}

/// The places of all blocks of a type, as JSON pointers.
fn blocks(body: &Value, kind: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (message, value) in body["messages"].as_array().unwrap().iter().enumerate() {
        for (block, value) in value["content"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            if value["type"] == kind {
                found.push((message, block));
            }
        }
    }
    found
}

/// What goes wrong in one place of an Anthropic body, and the code that says so.
type Fault = (&'static str, fn(&mut Value, usize) -> bool);

fn pick(body: &Value, kind: &str, at: usize) -> Option<(usize, usize)> {
    let places = blocks(body, kind);
    (!places.is_empty()).then(|| places[at % places.len()])
}

fn drop_block(body: &mut Value, kind: &str, at: usize) -> bool {
    let Some((message, block)) = pick(body, kind, at) else {
        return false;
    };
    let content = body["messages"][message]["content"].as_array_mut().unwrap();
    content.remove(block);
    if content.is_empty() {
        body["messages"].as_array_mut().unwrap().remove(message);
    }
    true
}

fn copy_block(body: &mut Value, kind: &str, at: usize) -> bool {
    let Some((message, block)) = pick(body, kind, at) else {
        return false;
    };
    let content = body["messages"][message]["content"].as_array_mut().unwrap();
    content.insert(block, content[block].clone());
    true
}

fn set(body: &mut Value, kind: &str, at: usize, key: &str, value: Value) -> bool {
    let Some((message, block)) = pick(body, kind, at) else {
        return false;
    };
    body["messages"][message]["content"][block][key] = value;
    true
}

const FAULTS: &[Fault] = &[
    ("tool-use-without-result", |body, at| {
        drop_block(body, "tool_result", at)
    }),
    ("tool-result-without-use", |body, at| {
        drop_block(body, "tool_use", at)
    }),
    ("duplicate-tool-use-id", |body, at| {
        copy_block(body, "tool_use", at)
    }),
    ("duplicate-tool-result", |body, at| {
        copy_block(body, "tool_result", at)
    }),
    ("server-tool-without-result", |body, at| {
        drop_block(body, "web_search_tool_result", at)
    }),
    ("server-result-without-use", |body, at| {
        drop_block(body, "server_tool_use", at)
    }),
    ("empty-text", |body, at| {
        set(body, "text", at, "text", json!(""))
    }),
    ("blank-text", |body, at| {
        set(body, "text", at, "text", json!("\n \u{a0}"))
    }),
    ("wrong-type", |body, at| {
        set(body, "text", at, "text", json!(5))
    }),
    ("thinking-signature-missing", |body, at| {
        set(body, "thinking", at, "signature", json!(null))
    }),
    ("cache-marker-on-thinking", |body, at| {
        set(
            body,
            "thinking",
            at,
            "cache_control",
            json!({"type": "ephemeral"}),
        )
    }),
    ("tool-input-not-object", |body, at| {
        set(body, "tool_use", at, "input", json!("{}"))
    }),
    ("tool-id-characters", |body, at| {
        let Some((message, _)) = pick(body, "tool_use", at) else {
            return false;
        };
        let text = body["messages"].to_string().replace(
            &format!("toolu_{}", turn_of(body, message)),
            &format!("toolu:{}", turn_of(body, message)),
        );
        body["messages"] = serde_json::from_str(&text).unwrap();
        true
    }),
    ("tool-result-not-first", |body, at| {
        let Some((message, _)) = pick(body, "tool_result", at) else {
            return false;
        };
        let content = body["messages"][message]["content"].as_array_mut().unwrap();
        content.insert(0, json!({"type": "text", "text": "Note."}));
        true
    }),
    ("too-many-cache-markers", |body, _| {
        let mark = json!({"type": "ephemeral"});
        let text = json!({"type": "text", "text": "x", "cache_control": mark});
        body["system"] = json!([text, text, text, text]);
        body["tools"][0]["cache_control"] = mark;
        true
    }),
    ("cache-ttl-order", |body, at| {
        body["tools"][0]["cache_control"] = json!({"type": "ephemeral"});
        set(
            body,
            "text",
            at,
            "cache_control",
            json!({"type": "ephemeral", "ttl": "1h"}),
        )
    }),
    ("unknown-role", |body, at| {
        let count = body["messages"].as_array().unwrap().len();
        body["messages"][at % count]["role"] = json!("model");
        true
    }),
    ("system-first", |body, _| {
        let messages = body["messages"].as_array_mut().unwrap();
        messages.insert(0, json!({"role": "system", "content": "x"}));
        true
    }),
    ("messages-empty", |body, _| {
        body["messages"] = json!([]);
        true
    }),
    ("first-message-not-user", |body, _| {
        body["messages"].as_array_mut().unwrap().remove(0);
        true
    }),
    ("missing-field", |body, _| {
        body["max_tokens"].take();
        true
    }),
];

fn turn_of(body: &Value, message: usize) -> String {
    let id = body["messages"][message]["content"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|block| block["id"].as_str().filter(|id| id.starts_with("toolu_")))
        .unwrap();
    id["toolu_".len()..].split('_').next().unwrap().to_owned() + "_"
}

/// Faults of the other two formats: which item goes, and what is then missing.
fn drop_item(body: &mut Value, list: &str, at: usize, fits: impl Fn(&Value) -> bool) -> bool {
    let items = body[list].as_array_mut().unwrap();
    let places: Vec<_> = (0..items.len())
        .filter(|index| fits(&items[*index]))
        .collect();
    if places.is_empty() {
        return false;
    }
    items.remove(places[at % places.len()]);
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_body_makes_the_checker_panic(value in json_like(), wrap in any::<bool>()) {
        let value = if wrap {
            json!({"model": "m", "max_tokens": 9, "messages": [value.clone()], "input": [value.clone()], "tools": value})
        } else {
            value
        };
        for wire in Wire::ALL {
            let _ = check_text(&value.to_string(), wire, &known());
            let _ = check_text(&value.to_string(), wire, &CheckOptions::default());
        }
    }

    #[test]
    fn no_text_makes_the_checker_panic(text in "[\\[\\]{}:,\"\\\\uda8f01 -]{0,40}") {
        for wire in Wire::ALL {
            let _ = check_text(&text, wire, &CheckOptions::default());
        }
    }

    #[test]
    fn valid_conversations_are_accepted(exchanges in exchanges()) {
        for (wire, body) in [
            (Wire::Anthropic, anthropic(&exchanges)),
            (Wire::OpenAiChat, openai_chat(&exchanges)),
            (Wire::OpenAiResponses, openai_responses(&exchanges)),
        ] {
            let report = check_text(&body.to_string(), wire, &known());
            prop_assert_eq!(report.findings, []);
        }
    }

    #[test]
    fn one_fault_is_refused_with_its_code(exchanges in exchanges(), at in any::<usize>()) {
        for (code, break_it) in FAULTS {
            let mut body = anthropic(&exchanges);
            if break_it(&mut body, at) {
                let report = check_text(&body.to_string(), Wire::Anthropic, &known());
                prop_assert!(report.errors().any(|finding| finding.code == *code), "{} {}", code, body);
            }
        }
    }

    #[test]
    fn a_lost_half_of_a_pair_is_refused(exchanges in exchanges(), at in any::<usize>()) {
        let mut chat = openai_chat(&exchanges);
        if drop_item(&mut chat, "messages", at, |message| message["role"] == "tool") {
            let report = check_text(&chat.to_string(), Wire::OpenAiChat, &known());
            prop_assert!(report.has("tool-use-without-result"));
        }
        let mut chat = openai_chat(&exchanges);
        if drop_item(&mut chat, "messages", at, |message| message["tool_calls"].is_array()) {
            let report = check_text(&chat.to_string(), Wire::OpenAiChat, &known());
            prop_assert!(report.has("tool-result-without-use"));
        }
        let mut items = openai_responses(&exchanges);
        if drop_item(&mut items, "input", at, |item| item["type"] == "function_call_output") {
            let report = check_text(&items.to_string(), Wire::OpenAiResponses, &known());
            prop_assert!(report.has("tool-use-without-result"));
        }
        let mut items = openai_responses(&exchanges);
        if drop_item(&mut items, "input", at, |item| item["type"] == "function_call") {
            let report = check_text(&items.to_string(), Wire::OpenAiResponses, &known());
            prop_assert!(report.has("tool-result-without-use"));
        }
    }
}
