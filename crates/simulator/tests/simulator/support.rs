//! Requests, and what comes back.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Request};
use serde_json::{Value, json};
use throughline_simulator::{Exchange, Options, Simulator};

pub(crate) const KEY: &str = "a key";

/// A simulator in which no time passes.
pub(crate) fn simulator() -> Simulator {
    Simulator::new(Options::new(1).without_latency())
}

pub(crate) fn with_faults(faults: &str) -> Simulator {
    let mut options = Options::new(1).without_latency();
    options.faults = faults.parse().unwrap();
    Simulator::new(options)
}

pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &str) -> Request<Bytes> {
    let mut request = Request::post(path)
        .body(Bytes::from(body.to_owned()))
        .unwrap();
    for (name, value) in headers {
        let name = HeaderName::try_from(*name).unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    request
}

pub(crate) fn messages_request(body: &Value) -> Request<Bytes> {
    raw_messages_request(&body.to_string())
}

pub(crate) fn raw_messages_request(body: &str) -> Request<Bytes> {
    let headers = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];
    post("/v1/messages", &headers, body)
}

pub(crate) fn openai_request(path: &str, body: &Value) -> Request<Bytes> {
    let bearer = format!("Bearer {KEY}");
    post(path, &[("authorization", &bearer)], &body.to_string())
}

/// Sends an Anthropic body at this second.
pub(crate) fn send_at(simulator: &mut Simulator, at_s: u64, body: &Value) -> Exchange {
    simulator.request(Duration::from_secs(at_s), messages_request(body))
}

pub(crate) fn send(simulator: &mut Simulator, body: &Value) -> Exchange {
    send_at(simulator, 0, body)
}

pub(crate) fn json_of(exchange: &Exchange) -> Value {
    serde_json::from_str(&exchange.text()).unwrap()
}

/// The answer to a body that has to be taken.
pub(crate) fn answered(simulator: &mut Simulator, body: &Value) -> Value {
    let exchange = send(simulator, body);
    assert_eq!(exchange.status, 200, "{}", exchange.text());
    json_of(&exchange)
}

/// `input`, `5m`, `1h`, `read` of an answer's usage.
pub(crate) fn split(answer: &Value) -> [u64; 4] {
    let usage = &answer["usage"];
    [
        &usage["input_tokens"],
        &usage["cache_creation"]["ephemeral_5m_input_tokens"],
        &usage["cache_creation"]["ephemeral_1h_input_tokens"],
        &usage["cache_read_input_tokens"],
    ]
    .map(|count| count.as_u64().unwrap())
}

pub(crate) fn ask(model: &str, messages: Value) -> Value {
    json!({"model": model, "max_tokens": 2000, "messages": messages})
}

pub(crate) fn user(content: impl Into<Value>) -> Value {
    json!({"role": "user", "content": content.into()})
}

pub(crate) fn assistant(content: impl Into<Value>) -> Value {
    json!({"role": "assistant", "content": content.into()})
}

pub(crate) fn text_of(answer: &Value) -> String {
    answer["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect()
}

/// So many words that nothing else says.
pub(crate) fn words(count: usize, salt: usize) -> String {
    (0..count)
        .map(|at| format!("word{} ", at * 7919 + salt))
        .collect()
}
