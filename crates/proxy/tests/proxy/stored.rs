//! Sessions that the proxy of an earlier version stored are recognised and continued.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use http::Method;
use serde_json::Value;
use throughline_simulator::Options;
use throughline_store::{Page, SessionId, SqliteStore, Store};
use throughline_transcript::wire::Wire;

use crate::admin::{API, request};
use crate::world::{Client, World, config};

/// The database of the earlier version, in a folder that the test may write to.
async fn database(folder: &Path) -> Arc<dyn Store> {
    const PACKED: &[u8] = include_bytes!("../../../throughline/tests/data/stored/sessions.db.gz");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(PACKED)
        .read_to_end(&mut unpacked)
        .unwrap();
    let path = folder.join("sessions.db");
    std::fs::write(&path, unpacked).unwrap();
    Arc::new(SqliteStore::open(path).await.unwrap())
}

/// The id of the stored session that begins like this and has as many messages.
async fn id_of(store: &dyn Store, root: &str, messages: u64) -> SessionId {
    let sessions = store.sessions(Page::first(10)).await.unwrap();
    let is_it =
        |id: &str, count| id.get(16..).is_some_and(|id| id.starts_with(root)) && count == messages;
    sessions
        .into_iter()
        .find(|session| is_it(session.id.as_str(), session.message_count))
        .unwrap()
        .id
}

/// A client that has the messages of a stored session.
async fn client_of(store: &dyn Store, id: &SessionId, wire: Wire) -> Client {
    let mut client = Client::new(wire);
    let stored = store.messages(id, 0..u64::MAX).await.unwrap();
    client.messages = stored
        .iter()
        .map(|message| serde_json::from_slice::<Value>(&message.original).unwrap())
        // The client adds it to each request.
        .filter(|message| message["role"] != "system")
        .map(without_marker)
        .collect();
    client.result_lines = 5;
    client
}

/// A client marks its last message alone for the cache.
fn without_marker(mut message: Value) -> Value {
    for block in message["content"].as_array_mut().into_iter().flatten() {
        if let Some(block) = block.as_object_mut() {
            block.remove("cache_control");
        }
    }
    message
}

async fn call(world: &World, method: Method, path: &str, status: u16) -> Value {
    let got = world
        .ask(request(method, &format!("{API}{path}"), &[], "{}"))
        .await;
    assert_eq!(got.status.as_u16(), status, "{path}: {got:?}");
    got.json()
}

#[tokio::test]
async fn conversations_of_an_earlier_version_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let store = database(folder.path()).await;
    let mut config = config();
    config.window = Some(60_000);
    let id = id_of(store.as_ref(), "-r-", 48).await;
    let fork = id_of(store.as_ref(), "-r-", 20).await;
    let named = id_of(store.as_ref(), "-n-", 11).await;
    let world = World::over(store, Options::new(23).without_latency(), config).await;

    let mut client = client_of(world.store.as_ref(), &id, Wire::Anthropic).await;
    let got = client.say(&world, "And the region?").await;
    assert_eq!(
        (got.told("x-throughline"), got.told("x-throughline-session")),
        (Some("rewritten"), Some(id.as_str()))
    );
    let body = world.last_body();
    for fact in [
        "the deploy region is eu-north-3",
        "The customer is Ada Example.",
        "And the region?",
    ] {
        assert!(body.contains(fact), "{fact} is missing: {body}");
    }
    let of_a_covered_message = "line1x24";
    assert!(!body.contains(of_a_covered_message), "{body}");
    let detail = call(&world, Method::GET, &format!("/sessions/{id}"), 200).await;
    assert_eq!(detail["detail"]["version"], 2);
    let undo = format!("/sessions/{id}/undo");
    call(&world, Method::POST, &undo, 200).await;
    call(&world, Method::POST, &undo, 200).await;
    call(&world, Method::POST, &undo, 409).await;
    let got = client.say(&world, "And now?").await;
    assert_eq!(
        (got.told("x-throughline"), got.told("x-throughline-session")),
        (Some("tracked"), Some(id.as_str()))
    );
    assert!(world.last_body().contains(of_a_covered_message));

    let mut client = client_of(world.store.as_ref(), &fork, Wire::Anthropic).await;
    let got = client.say(&world, "Go on.").await;
    assert_eq!(got.told("x-throughline-session"), Some(fork.as_str()));

    let mut client = client_of(world.store.as_ref(), &named, Wire::OpenAiChat).await;
    let name = ("x-throughline-session".to_owned(), "orders".to_owned());
    client.headers.push(name);
    let got = client.say(&world, "And then?").await;
    assert_eq!(got.told("x-throughline-session"), Some(named.as_str()));
    assert_eq!(world.refused(), 0);
}
