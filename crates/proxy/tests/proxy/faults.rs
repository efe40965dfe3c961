//! What goes wrong on either side.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;
use throughline_proxy::Config;
use throughline_proxy::config::Updates;
use throughline_simulator::Options;
use throughline_store::{SqliteStore, SqliteStoreOptions};
use throughline_transcript::wire::Wire;

use crate::world::{Client, World, chatter, config};

fn options(faults: &str) -> Options {
    let mut options = Options::new(3).without_latency();
    options.faults = faults.parse().unwrap();
    options
}

/// The three ways in which an upstream fails a stream, as clients meet them: before it, in it, and before it again.
#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_after_its_head_is_no_answer() {
    let world = World::new(options("529@1,cut=3@2,529@3")).await;
    let mut client = Client::new(Wire::Anthropic);
    client
        .messages
        .push(json!({"role": "user", "content": "Write a long poem."}));
    for attempt in 1..=3 {
        let got = world.ask(client.request()).await;
        if attempt == 2 {
            assert_eq!(got.status, StatusCode::OK);
            let text = String::from_utf8(got.body.to_vec()).unwrap();
            assert!(text.contains("message_start"), "{text}");
            assert!(!text.contains("message_delta") && !text.contains("message_stop"));
            assert!(!got.is_whole);
        } else {
            assert_eq!(got.status.as_u16(), 529);
            assert_eq!(got.json()["error"]["type"], "overloaded_error");
        }
    }
    // What came of it is no turn of the conversation, and nothing was compacted for it.
    world.proxy.settle(std::time::Duration::from_secs(1)).await;
    let sessions = world
        .store
        .sessions(throughline_store::Page::first(10))
        .await
        .unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].message_count, 1);
    assert!(!world.proxy.metrics().contains("build-started"));
}

/// What is stored of a session is good still when nothing more can be stored: each of its requests goes with the memory.
#[tokio::test]
async fn a_full_disk_takes_no_request_from_its_session() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("full-disk");
    let _ = std::fs::remove_dir_all(&folder);
    let mut limits = SqliteStoreOptions::default();
    limits.database_bytes_max = Some(700_000);
    let store = SqliteStore::open_with(folder.join("sessions.db"), limits)
        .await
        .unwrap();
    let config = Config {
        window: Some(8_000),
        updates: Updates::Code,
        ..config()
    };
    let world = World::over(Arc::new(store), Options::new(3).without_latency(), config).await;
    let mut client = Client::new(Wire::Anthropic);
    let mut since = 0;
    for turn in 0..200 {
        let got = client.say(&world, &chatter(turn, 100)).await;
        assert_eq!(got.status, StatusCode::OK);
        world.proxy.settle(std::time::Duration::from_secs(5)).await;
        let is_full = !world
            .proxy
            .metrics()
            .contains("throughline_commits_failed_total 0");
        if is_full && since > 0 {
            assert!(got.told("x-throughline-session").is_some(), "{since}");
            assert_ne!(got.told("x-throughline-epoch"), Some("0"));
        }
        since += usize::from(is_full);
        if since > 8 {
            return;
        }
    }
    panic!("the disk is never full");
}

/// Half a character, as cut output leaves it, is no reason to touch a request.
#[tokio::test(start_paused = true)]
async fn half_characters_pass_as_they_are() {
    let world = World::new(Options::new(3).without_latency()).await;
    let body = r#"{"model":"claude-opus-4-6","max_tokens":100,"tools":[{"name":"shell","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Show the log."},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"shell","input":{"cmd":"tail log"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok \ud83d cut here, ok \ud83d\ude00 whole, \ude00 tail"}]}]}"#;
    let headers = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
    let got = world
        .ask(crate::world::post("/v1/messages", &headers, body))
        .await;
    assert_eq!(got.told("x-throughline"), Some("tracked"));
    assert_eq!(world.last_body(), body);
}

/// An error after the head breaks the stream, for the client as for everybody; nothing of it is taken for an answer.
#[tokio::test(start_paused = true)]
async fn a_broken_answer_never_looks_whole() {
    for wire in Wire::ALL {
        let world = World::new(options("cut=2@1")).await;
        let mut client = Client::new(wire);
        client
            .messages
            .push(json!({"role": "user", "content": "Write a long poem."}));
        let got = world.ask(client.request()).await;
        assert_eq!(got.status, StatusCode::OK);
        assert!(!got.is_whole, "{got:?}");
        let text = String::from_utf8(got.body.to_vec()).unwrap();
        for end in ["message_stop", "[DONE]", "response.completed"] {
            assert!(!text.contains(end), "{text}");
        }
        // The same again is the same session, and is answered.
        let again = world.ask(client.request()).await;
        assert!(again.is_whole);
        assert_eq!(
            again.told("x-throughline-session"),
            got.told("x-throughline-session")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_pass_with_their_headers_and_are_not_repeated_here() {
    for (fault, status) in [
        ("429=30@1", StatusCode::TOO_MANY_REQUESTS),
        ("500@1", StatusCode::INTERNAL_SERVER_ERROR),
    ] {
        let world = World::new(options(fault)).await;
        let mut client = Client::new(Wire::Anthropic);
        client
            .messages
            .push(json!({"role": "user", "content": "Hello."}));
        let got = world.ask(client.request()).await;
        assert_eq!(got.status, status);
        assert_eq!(got.json()["type"], "error");
        if fault.starts_with("429") {
            assert_eq!(got.told("retry-after"), Some("30"));
        }
        assert_eq!(world.provider.ledger().len(), 1);
        client.messages.pop();
        client.say(&world, "Hello.").await;
    }
}

/// A window that is smaller than anybody knew: the request is made smaller and sent once more.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_large_is_sent_again_with_a_memory() {
    for wire in Wire::ALL {
        let mut options = Options::new(3).without_latency();
        options.window = Some(20_000);
        let mut config = config();
        config.window = None;
        let world = World::with(options, config).await;
        let mut client = Client::new(wire);
        client.say(&world, "Remember: the port is 8431.").await;
        let mut retried = false;
        for turn in 0..20 {
            let got = client.say(&world, &chatter(turn, 120)).await;
            retried |= got.told("x-throughline") == Some("rewritten");
        }
        assert!(retried);
        let refused = world.refused();
        assert!((1..=3).contains(&refused), "{wire}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_cannot_be_reached_is_said_in_the_clients_format() {
    let world = World::new(options("cut=0@1")).await;
    let mut client = Client::new(Wire::Anthropic);
    client
        .messages
        .push(json!({"role": "user", "content": "Hello."}));
    let got = world.ask(client.request()).await;
    assert!(
        got.status == StatusCode::BAD_GATEWAY || !got.is_whole,
        "{got:?}"
    );
    if got.status == StatusCode::BAD_GATEWAY {
        assert_eq!(got.json()["error"]["type"], "api_error");
    }
}
