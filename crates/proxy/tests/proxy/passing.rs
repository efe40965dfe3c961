//! What passes byte for byte.

use http::{Method, StatusCode};
use serde_json::json;
use throughline_proxy::Config;
use throughline_proxy::config::Mode;
use throughline_simulator::Options;
use throughline_transcript::wire::Wire;

use crate::admin::request;
use crate::world::{Client, World, chatter, config, post};

/// A body that no serialiser would write.
const STRANGE: &str = "{ \"model\" : \"claude-opus-4-6\",\n \"max_tokens\":1e2, \"messages\" :[ {\"content\":\"H\\u0065llo.\",\"role\":\"user\"} ], \"tools\":[] }";

#[tokio::test(start_paused = true)]
async fn bodies_pass_byte_for_byte_until_a_memory_takes_their_place() {
    for path in [
        "/v1/messages",
        "/v1/messages?beta=true",
        "/passthrough/v1/messages",
    ] {
        let world = World::new(Options::new(3).without_latency()).await;
        let headers = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
        let got = world.ask(post(path, &headers, STRANGE)).await;
        assert_eq!(got.status, StatusCode::OK, "{got:?}");
        assert_eq!(world.last_body(), STRANGE);
    }
}

#[tokio::test(start_paused = true)]
async fn answers_pass_byte_for_byte() {
    for wire in Wire::ALL {
        for is_streaming in [false, true] {
            let mut client = Client::new(wire);
            client.is_streaming = is_streaming;
            client
                .messages
                .push(json!({"role": "user", "content": "Hello."}));
            // Two providers that are alike: one is asked directly.
            let world = World::new(Options::new(3).without_latency()).await;
            let mut off = config();
            off.mode = Mode::Off;
            let plain = World::with(Options::new(3).without_latency(), off).await;
            let (got, expected) = (
                world.ask(client.request()).await,
                plain.ask(client.request()).await,
            );
            assert_eq!(got.body, expected.body);
            assert_eq!(got.status, expected.status);
            for (name, value) in &expected.headers {
                if name.as_str() != "x-throughline" && name.as_str() != "x-throughline-reason" {
                    assert_eq!(got.headers.get(name), Some(value), "{name}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_conversation_is_passed_on() {
    let world = World::new(Options::new(3).without_latency()).await;
    let headers = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
    let check = async |body: &str, reason: &str| {
        let got = world
            .ask(post("/v1/messages", &headers, body.to_owned()))
            .await;
        assert_eq!(got.told("x-throughline"), Some("passed"), "{body}");
        assert_eq!(got.told("x-throughline-reason"), Some(reason), "{body}");
        assert_eq!(world.last_body(), body);
    };
    check("", "unreadable").await;
    check("{", "unreadable").await;
    check("[1]", "unreadable").await;
    check(
        r#"{"model":"m","max_tokens":9,"messages":"x"}"#,
        "unreadable",
    )
    .await;
    check(
        r#"{"model":"m","max_tokens":9,"messages":[7]}"#,
        "unreadable",
    )
    .await;
    check(r#"{"model":"claude-opus-4-6","max_tokens":9,"messages":[{"role":"user","content":"title?"}]}"#, "side-call").await;
    check(r#"{"model":"claude-opus-4-6","max_tokens":9,"context_management":{"edits":[{"type":"compact_20260112"}]},"messages":[{"role":"user","content":"a"}]}"#, "native-compaction").await;
    assert_eq!(
        world
            .proxy
            .metrics()
            .matches("sessions_begun_total 0")
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn requests_can_be_switched_off() {
    let world = World::new(Options::new(3).without_latency()).await;
    let mut client = Client::new(Wire::Anthropic);
    client
        .headers
        .push(("x-throughline".to_owned(), "off".to_owned()));
    client
        .messages
        .push(json!({"role": "user", "content": "Hello."}));
    let got = world.ask(client.request()).await;
    assert_eq!(got.told("x-throughline-reason"), Some("switched-off"));
    assert_eq!(world.last_body(), client.body());
}

#[tokio::test(start_paused = true)]
async fn message_threads_are_declined_so_that_clients_send_their_history() {
    let world = World::new(Options::new(3).without_latency()).await;
    let body = r#"{"model":"claude-opus-4-6","max_tokens":9,"thread":{"type":"create"},"messages":[{"role":"user","content":"a"}]}"#;
    let headers = [("x-api-key", "k"), ("anthropic-version", "2026-10-21")];
    let got = world.ask(post("/v1/messages", &headers, body)).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        got.json()["error"]["details"]["error_code"],
        "thread_unsupported_request"
    );
    assert!(world.provider.ledger().is_empty());
}

#[tokio::test(start_paused = true)]
async fn web_sockets_are_declined_so_that_clients_go_on_over_http() {
    let world = World::new(Options::new(3).without_latency()).await;
    for (path, key) in [
        ("/v1/responses", "authorization"),
        ("/responses", "authorization"),
        ("/v1/chat/completions", "authorization"),
        ("/v1/realtime?model=m", "authorization"),
        ("/passthrough/v1/responses", "authorization"),
        ("/v1/messages", "x-api-key"),
    ] {
        let headers = [
            (key, "k"),
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "x3JJHMbDL1EzLkh9GBhXDw=="),
        ];
        let got = world.ask(request(Method::GET, path, &headers, "")).await;
        assert_eq!(got.status, StatusCode::UPGRADE_REQUIRED, "{path}");
        // A server says to what it would change.
        assert_eq!(got.told("upgrade"), Some("HTTP/1.1"));
        let error = &got.json()["error"];
        assert_eq!(error["type"], "invalid_request_error", "{path} {got:?}");
        assert_eq!(
            error["message"],
            "throughline serves no web sockets: send the request over HTTP"
        );
    }
    assert!(world.provider.ledger().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_observed_is_not_rewritten() {
    let config = Config {
        mode: Mode::Observe,
        ..config()
    };
    let world = World::with(Options::new(3).without_latency(), config).await;
    let mut client = Client::new(Wire::Anthropic);
    let mut saved = 0;
    for turn in 0..30 {
        let got = client.say(&world, &chatter(turn, 60)).await;
        assert_eq!(got.told("x-throughline"), Some("tracked"));
        assert_eq!(got.told("x-throughline-covered"), Some("0"));
        if let Some(tokens) = got.told("x-throughline-saved-tokens") {
            saved = tokens.parse().unwrap();
        }
    }
    assert!(saved > 5_000, "{saved}");
    // All of it, and none of ours.
    let sent = world.last_body();
    assert!(sent.contains("line0x1 ") && sent.contains("line29x1 "));
}

#[tokio::test(start_paused = true)]
async fn compressed_bodies_are_read_and_passed_on_as_they_are() {
    use std::io::Write;
    let world = World::new(Options::new(3).without_latency()).await;
    let mut client = Client::new(Wire::Anthropic);
    client
        .messages
        .push(json!({"role": "user", "content": "Hello."}));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(client.body().as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let headers = [
        ("x-api-key", "k"),
        ("anthropic-version", "2023-06-01"),
        ("content-encoding", "gzip"),
    ];
    let got = world
        .ask(post("/v1/messages", &headers, packed.clone()))
        .await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    assert_eq!(got.told("x-throughline"), Some("tracked"));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_refused_in_the_providers_words() {
    let mut config = config();
    config.limits.body_bytes_max = 1000;
    let world = World::with(Options::new(3).without_latency(), config).await;
    let mut client = Client::new(Wire::Anthropic);
    client
        .messages
        .push(json!({"role": "user", "content": chatter(1, 200)}));
    let got = world.ask(client.request()).await;
    assert_eq!(got.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(got.json()["error"]["type"], "request_too_large");
    assert!(world.provider.ledger().is_empty());
}
