//! Inputs on which real tools failed: whether the provider takes them as they are, and why not.
//!
//! Long texts are written as generator objects (`$gen`), which are expanded here.

use serde_json::{Map, Value, json};

use super::super::*;

const CASES: &str = include_str!("../../../tests/cases/wire.jsonl");

/// The reasons for which the broken ones are refused.
const REASONS: &[(&str, &[&str])] = &[
    ("c02-dangling-call-then-text", &["tool-use-without-result"]),
    ("c16-lone-surrogate", &["lone-surrogate"]),
    (
        "x03-double-part-same-id",
        &["duplicate-tool-use-id", "duplicate-tool-result"],
    ),
];

#[test]
fn cases_are_judged_as_the_provider_does() {
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let (wire, body) = match case["format"].as_str().unwrap() {
            "anthropic-messages" => (Wire::Anthropic, json!({"model": "m", "max_tokens": 1000})),
            "openai-chat" => (Wire::OpenAiChat, json!({"model": "m"})),
            "openai-responses" => (Wire::OpenAiResponses, json!({"model": "m"})),
            "raw" => {
                let report = check_text(
                    case["body"].as_str().unwrap(),
                    Wire::Anthropic,
                    &CheckOptions::default(),
                );
                check_case(id, &report, &case);
                continue;
            }
            other => panic!("{id}: unknown format {other}"),
        };
        let mut body = body.as_object().unwrap().clone();
        body.extend(expand(&case["body"]).as_object().unwrap().clone());
        let text = Value::Object(body).to_string();
        let raw = Raw::parse(text).unwrap();
        assert_eq!(Wire::detect(&raw), Some(wire), "{id}");
        check_case(id, &check(&raw, wire, &CheckOptions::default()), &case);
    }
}

fn check_case(id: &str, report: &Report, case: &Value) {
    let errors: Vec<_> = report.errors().map(|finding| finding.code).collect();
    let expected = REASONS
        .iter()
        .find(|(name, _)| *name == id)
        .map_or(&[][..], |(_, codes)| codes);
    // c16 also answers a call without defining tools, so only errors are compared.
    let mut unique = errors.clone();
    unique.dedup();
    assert_eq!(unique, expected, "{id}");
    assert_eq!(
        report.is_valid(),
        case["wire_valid"].as_bool().unwrap(),
        "{id}"
    );
}

/// Replaces generator objects with what they generate.
fn expand(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(expand).collect(),
        Value::Object(fields) => match fields.get("$gen").and_then(Value::as_str) {
            Some(generator) => Value::String(generate(generator, fields)),
            None => fields
                .iter()
                .map(|(key, value)| (key.clone(), expand(value)))
                .collect(),
        },
        other => other.clone(),
    }
}

fn generate(generator: &str, fields: &Map<String, Value>) -> String {
    let string = |key: &str| fields[key].as_str().unwrap();
    let number = |key: &str| fields[key].as_u64().unwrap();
    match generator {
        "repeat" => string("text").repeat(number("times") as usize),
        "concat" => fields["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| expand(part).as_str().unwrap().to_owned())
            .collect(),
        "lines" => (0..number("count"))
            .map(|line| format!("{}{line}", string("prefix")))
            .collect::<Vec<_>>()
            .join("\n"),
        "base64" => pseudo_base64(number("bytes") as usize, number("seed")),
        other => panic!("unknown generator {other}"),
    }
}

/// As many base64 characters as `bytes` random bytes have.
fn pseudo_base64(bytes: usize, seed: u64) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut out = String::with_capacity(bytes.div_ceil(3) * 4);
    for _ in 0..bytes.div_ceil(3) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        for shift in [58, 52, 46, 40] {
            out.push(char::from(ALPHABET[(state >> shift) as usize & 63]));
        }
    }
    out
}
