//! What is refused, in which order and how.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use throughline_simulator::{Keys, Options, RateLimits, Simulator};

use crate::support::*;

const MODEL: &str = "claude-opus-5";

#[track_caller]
fn refused(body: &Value, message: &str) {
    let exchange = send(&mut simulator(), body);
    let answer = json_of(&exchange);
    assert_eq!(exchange.status, 400, "{answer}");
    assert_eq!(answer["type"], "error");
    assert_eq!(answer["error"]["type"], "invalid_request_error");
    assert_eq!(answer["error"]["message"], message);
    let id = exchange.headers["request-id"].to_str().unwrap();
    assert_eq!(answer["request_id"], id);
    assert!(id.starts_with("req_"));
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
}

fn tool_result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
}

#[test]
fn bodies_are_refused_in_the_words_of_the_provider() {
    let hi = || user("hi");
    refused(
        &json!({"model": MODEL, "messages": [hi()]}),
        "max_tokens: Field required",
    );
    refused(
        &ask(MODEL, json!([])),
        "messages: at least one message is required",
    );
    refused(
        &ask(MODEL, json!([user("")])),
        "messages.0: all messages must have non-empty content except for the optional final assistant message",
    );
    refused(
        &ask(MODEL, json!([user(json!([{"type": "text", "text": ""}]))])),
        "messages: text content blocks must be non-empty",
    );
    refused(
        &ask(MODEL, json!([user(" \n")])),
        "messages: text content blocks must contain non-whitespace text",
    );
    refused(
        &ask(
            MODEL,
            json!([
                hi(),
                assistant(json!([tool_use("a"), tool_use("b")])),
                user("go on")
            ]),
        ),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a, b. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
    );
    refused(
        &ask(
            MODEL,
            json!([hi(), assistant("ok"), user(json!([tool_result("a")]))]),
        ),
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a. Each `tool_result` block \
         must have a corresponding `tool_use` block in the previous message.",
    );
    refused(
        &ask(MODEL, json!([hi(), assistant("I will")])),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    );
    refused(
        &ask("claude-opus-4-5", json!([hi(), assistant("I will ")])),
        "messages: final assistant content cannot end with trailing whitespace",
    );
    let mut unknown = ask(MODEL, json!([hi()]));
    unknown["max_completion_tokens"] = json!(10);
    refused(
        &unknown,
        "max_completion_tokens: Extra inputs are not permitted",
    );
    let marked =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    refused(
        &ask(MODEL, json!([user(vec![marked("a"); 6])])),
        "A maximum of 4 blocks with cache_control may be provided. Found 6.",
    );
    refused(
        &json!({"model": MODEL, "max_tokens": 300_000, "messages": [hi()]}),
        "max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens for claude-opus-5",
    );
    let thinking = |model, mode: Value| json!({"model": model, "max_tokens": 4000, "thinking": mode, "messages": [hi()]});
    refused(
        &thinking("claude-opus-4-5", json!({"type": "adaptive"})),
        "adaptive thinking is not supported on this model",
    );
    refused(
        &thinking(MODEL, json!({"type": "enabled", "budget_tokens": 2000})),
        "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \
         \"output_config.effort\" to control thinking behavior.",
    );
    refused(
        &ask(
            "claude-opus-4-7",
            json!([hi(), json!({"role": "system", "content": "Be brief."})]),
        ),
        "role 'system' is not supported on this model",
    );
}

#[test]
fn what_comes_first_is_said_first() {
    let check = |request: Request<Bytes>, status: u16, kind: &str, part: &str| {
        let exchange = simulator().request(Duration::ZERO, request);
        let answer = json_of(&exchange);
        assert_eq!(exchange.status, status, "{answer}");
        assert_eq!(answer["error"]["type"], kind);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
        assert!(exchange.headers.contains_key("request-id"));
    };
    let (key, version) = (("x-api-key", KEY), ("anthropic-version", "2026-10-21"));
    let at = |headers: &[(&str, &str)], body: &str| post("/v1/messages?beta=true", headers, body);
    let bad_beta = ("anthropic-beta", "nonsense-2026-01-01");
    check(
        at(&[], "{"),
        401,
        "authentication_error",
        "x-api-key header is required",
    );
    check(
        at(&[("x-api-key", " ")], "{"),
        401,
        "authentication_error",
        "required",
    );
    check(
        at(&[key], "{"),
        400,
        "invalid_request_error",
        "anthropic-version: header is required",
    );
    check(
        at(&[key, ("anthropic-version", "2020-01-01"), bad_beta], "{"),
        400,
        "invalid_request_error",
        "not a valid version",
    );
    check(
        at(&[key, version, bad_beta], "{"),
        400,
        "invalid_request_error",
        "Unexpected value(s) `nonsense-2026-01-01` for the `anthropic-beta` header",
    );
    check(
        at(&[key, version], "{"),
        400,
        "invalid_request_error",
        "not valid JSON",
    );
    check(
        at(&[key, version], "[]"),
        400,
        "invalid_request_error",
        "not valid JSON",
    );
    check(
        at(&[key, version], r#"{"model":"nobody","messages":[]}"#),
        400,
        "invalid_request_error",
        "max_tokens: Field required",
    );
    let unknown = |model: &str| {
        format!(
            r#"{{"model":"{model}","max_tokens":9,"messages":[{{"role":"user","content":" "}}]}}"#
        )
    };
    check(
        at(&[key, version], &unknown("nobody")),
        404,
        "not_found_error",
        "model: nobody",
    );
    check(
        at(&[key, version], &unknown("gpt-6-sol")),
        404,
        "not_found_error",
        "model: gpt-6-sol",
    );
    check(
        at(&[key, version], &unknown(MODEL)),
        400,
        "invalid_request_error",
        "non-whitespace",
    );
    check(
        post("/v1/nothing/messages", &[key, version], "{}"),
        404,
        "not_found_error",
        "Not Found",
    );
}

#[test]
fn both_ways_of_giving_the_key_are_taken() {
    let body = ask(MODEL, json!([user("hi")])).to_string();
    let bearer = format!("Bearer {KEY}");
    for header in [("x-api-key", KEY), ("authorization", bearer.as_str())] {
        let request = post(
            "/v1/messages",
            &[header, ("anthropic-version", "2023-06-01")],
            &body,
        );
        assert_eq!(simulator().request(Duration::ZERO, request).status, 200);
    }
    let mut options = Options::new(1);
    options.keys = Keys::Only(vec!["another".to_owned()]);
    let exchange = Simulator::new(options).request(Duration::ZERO, raw_messages_request(&body));
    assert_eq!(exchange.status, 401);
    assert!(exchange.text().contains("invalid x-api-key"));
}

#[test]
fn compressed_bodies_are_unpacked_and_large_ones_refused() {
    let body = ask(MODEL, json!([user("hi")])).to_string();
    let packed = |plain: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(plain).unwrap();
        let mut request = raw_messages_request("").map(|_| Bytes::from(encoder.finish().unwrap()));
        request
            .headers_mut()
            .insert("content-encoding", "gzip".parse().unwrap());
        simulator().request(Duration::ZERO, request)
    };
    assert_eq!(packed(body.as_bytes()).status, 200);
    assert_eq!(packed(&vec![b' '; 33 << 20]).status, 413);
    let mut request = raw_messages_request(&body);
    request
        .headers_mut()
        .insert("content-encoding", "gzip".parse().unwrap());
    let exchange = simulator().request(Duration::ZERO, request);
    assert_eq!(
        json_of(&exchange)["error"]["details"]["error_code"],
        "request_body_encoding_invalid"
    );
    let large = raw_messages_request(&" ".repeat((32 << 20) + 1));
    let exchange = simulator().request(Duration::ZERO, large);
    assert_eq!(exchange.status, 413);
    assert_eq!(json_of(&exchange)["error"]["type"], "request_too_large");
}

#[test]
fn prompts_that_do_not_fit_are_told_by_how_much() {
    let mut options = Options::new(1).without_latency();
    options.window = Some(2000);
    let mut simulator = Simulator::new(options);
    let exchange = send(&mut simulator, &ask(MODEL, json!([user(words(3000, 0))])));
    assert_eq!(exchange.status, 400);
    let answer = json_of(&exchange);
    let message = answer["error"]["message"].as_str().unwrap();
    let (tokens, rest) = message
        .strip_prefix("prompt is too long: ")
        .unwrap()
        .split_once(" tokens > ")
        .unwrap();
    assert!(tokens.parse::<u64>().unwrap() > 2000);
    assert_eq!(rest, "2000 maximum");
    let answer = send(&mut simulator, &ask(MODEL, json!([user("hi")])));
    assert_eq!(answer.status, 200);
}

#[test]
fn what_fits_beside_little_room_is_cut_at_the_window() {
    let mut options = Options::new(1).without_latency();
    options.window = Some(60);
    let answer = answered(
        &mut Simulator::new(options),
        &ask(MODEL, json!([user("Tell me about the parser.")])),
    );
    assert_eq!(answer["stop_reason"], "model_context_window_exceeded");
    assert!(answer["usage"]["output_tokens"].as_u64().unwrap() <= 60);
}

#[test]
fn rate_limits_answer_429_with_the_time_to_wait() {
    let mut options = Options::new(1).without_latency();
    options.limits = Some(RateLimits {
        requests_per_min: 2,
        ..RateLimits::start_tier()
    });
    let mut simulator = Simulator::new(options);
    let body = ask(MODEL, json!([user("hi")]));
    let first = send(&mut simulator, &body);
    assert_eq!(first.headers["anthropic-ratelimit-requests-remaining"], "1");
    assert_eq!(send(&mut simulator, &body).status, 200);
    let third = send(&mut simulator, &body);
    assert_eq!(third.status, 429);
    assert_eq!(json_of(&third)["error"]["type"], "rate_limit_error");
    assert_eq!(third.headers["retry-after"], "30");
    assert_eq!(send_at(&mut simulator, 30, &body).status, 200);
}

#[test]
fn models_are_listed_for_both_providers() {
    let get = |path: &str, headers: &[(&str, &str)]| {
        let mut request = post(path, headers, "");
        *request.method_mut() = http::Method::GET;
        simulator().request(Duration::ZERO, request)
    };
    let bearer = format!("Bearer {KEY}");
    let anthropic = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];
    let openai = [("authorization", bearer.as_str())];
    let list = json_of(&get("/v1/models", &anthropic));
    let ids = |list: &Value| {
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(
        ids(&list).contains(&MODEL.to_owned()) && !ids(&list).contains(&"gpt-6-sol".to_owned())
    );
    let list = json_of(&get("/v1/models", &openai));
    assert!(
        ids(&list).contains(&"gpt-6-sol".to_owned()) && !ids(&list).contains(&MODEL.to_owned())
    );
    let model = json_of(&get("/v1/models/claude-opus-5", &anthropic));
    assert_eq!(model["max_input_tokens"], 1_000_000);
    assert_eq!(
        model["capabilities"]["thinking"]["types"]["enabled"]["supported"],
        false
    );
    assert_eq!(get("/v1/models/nobody", &anthropic).status, 404);
    assert_eq!(get("/v1/models/nobody", &openai).status, 404);
}

#[test]
fn betas_that_claude_code_sends_are_known() {
    let betas = "claude-code-20250219,interleaved-thinking-2025-05-14,thinking-token-count-2026-05-13,\
                 context-management-2025-06-27,mid-conversation-system-2026-04-07,per-turn-control-2026-07-01,\
                 mid-conversation-tool-changes-2026-07-01,advanced-tool-use-2025-11-20,effort-2025-11-24,\
                 dangerous-tool-use-2026-09-03,thinking-display-updates-2026-08-18";
    // With the message of the system that it puts behind the user's.
    let system = json!({"role": "system", "content": "x", "output_config": {"effort": "medium"}});
    let mut request = messages_request(&ask("claude-opus-5-5", json!([user("hi"), system])));
    request
        .headers_mut()
        .insert("anthropic-beta", betas.parse().unwrap());
    let exchange = simulator().request(Duration::ZERO, request);
    assert_eq!(exchange.status, 200, "{}", exchange.text());
}

#[test]
fn threads_are_turned_down_so_that_clients_go_on_without() {
    let mut body = ask(MODEL, json!([user("hi")]));
    body["thread"] = json!({"type": "create"});
    let mut request = messages_request(&body);
    request.headers_mut().insert(
        "anthropic-beta",
        "message-threads-2026-08-12".parse().unwrap(),
    );
    let exchange = simulator().request(Duration::ZERO, request);
    assert_eq!(exchange.status, 400);
    assert_eq!(
        json_of(&exchange)["error"]["details"]["error_code"],
        "thread_unsupported_request"
    );
}

#[test]
fn fields_of_the_documentation_are_never_unknown() {
    let fields = "model max_tokens messages system tools tool_choice thinking output_config cache_control \
                  stop_sequences stream metadata service_tier speed inference_geo container diagnostics compaction \
                  context_management thread mcp_servers fallbacks fallback_credit_token billing_policy temperature \
                  top_p top_k";
    for field in fields.split(' ') {
        let mut body = ask(MODEL, json!([user("hi")]));
        body[field] = json!(7);
        let text = send(&mut simulator(), &body).text();
        assert!(!text.contains("Extra inputs"), "{text}");
    }
    let openai = |path: &str, start: Value, fields: &str| {
        for field in fields.split(' ') {
            let mut body = start.clone();
            body[field] = json!({"x": 7});
            let exchange = simulator().request(Duration::ZERO, openai_request(path, &body));
            let text = exchange.text();
            assert!(!text.contains("Unrecognized request argument"), "{text}");
            assert!(!text.contains("Unknown parameter"), "{text}");
        }
    };
    openai(
        "/v1/chat/completions",
        json!({"model": "gpt-5.4", "messages": [user("hi")]}),
        "max_completion_tokens max_tokens reasoning_effort verbosity parallel_tool_calls tools tool_choice \
         response_format stop n seed logprobs top_logprobs logit_bias store metadata service_tier stream \
         stream_options prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier user \
         modalities audio prediction web_search_options moderation temperature top_p frequency_penalty \
         presence_penalty functions function_call",
    );
    openai(
        "/v1/responses",
        json!({"model": "gpt-5.4", "input": "hi"}),
        "instructions previous_response_id conversation store include reasoning text tools tool_choice \
         parallel_tool_calls max_output_tokens max_tool_calls truncation context_management prompt_cache_key \
         prompt_cache_options prompt_cache_retention background stream stream_options metadata service_tier \
         safety_identifier user prompt temperature top_p top_logprobs moderation",
    );
}
