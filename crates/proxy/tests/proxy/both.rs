//! The library's session and the proxy's are two front ends of one core: each rule holds in both.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::Method;
use serde_json::{Value, json};
use throughline::compactor::{Compactor, CompactorResult, LiveRequest};
use throughline::core::{DraftMaker, draft};
use throughline::engine::{
    BuildKind, BuildOrder, CompactionOutcome, EngineEvent, Time, UpdateFailure, UpdateOrder,
};
use throughline::{EventRecord, ModelCompactor, Session, SessionBuilder, SessionEvent};
use throughline_memory::document::Memory;
use throughline_providers::client::Client as ModelClient;
use throughline_providers::credential::Credential;
use throughline_providers::transport::{BodyStream, Transport, TransportError};
use throughline_proxy::config::{Operator, Updates};
use throughline_proxy::{Config, Proxy};
use throughline_simulator::{Options, SimulatedProvider};
use throughline_store::{MemoryStore, Page, SessionId, Store};
use throughline_transcript::tokens::Counter;
use throughline_transcript::wire::Wire;
use tokio_util::sync::CancellationToken;

use crate::admin::{API, request};
use crate::world::{Client, WINDOW, World, chatter, config};

const MODEL: &str = "claude-opus-4-6";

fn simulator() -> Options {
    Options::new(9).without_latency()
}

/// A session of the library with the requests of a proxy's client.
fn library(provider: &SimulatedProvider, store: &Arc<dyn Store>) -> SessionBuilder {
    Session::builder(model_client(provider), MODEL)
        .system("You are careful.")
        .max_tokens(2_000)
        .store(Arc::clone(store))
}

fn model_client(provider: &SimulatedProvider) -> ModelClient {
    ModelClient::builder(Wire::Anthropic, "http://simulator")
        .credential(Credential::new("key-1").unwrap())
        .transport(Arc::new(provider.clone()))
        .build()
        .unwrap()
}

async fn kept(store: &Arc<dyn Store>, id: &SessionId) -> Value {
    serde_json::from_str(&store.load(id).await.unwrap().settings).unwrap()
}

async fn records(store: &Arc<dyn Store>, id: &SessionId) -> Vec<EventRecord> {
    let rows = store.events(id, Page::first(1_000)).await.unwrap();
    rows.iter().map(EventRecord::read).collect()
}

fn session_id(told: &crate::world::Got) -> SessionId {
    SessionId::new(told.told("x-throughline-session").unwrap()).unwrap()
}

async fn settled(world: &World) {
    world.proxy.settle(Duration::from_secs(5)).await;
}

/// Has the proxy compact a session now.
async fn compact(world: &World, id: &SessionId) -> Value {
    let path = format!("{API}/sessions/{id}/compact");
    let got = world.ask(request(Method::POST, &path, &[], "{}")).await;
    assert!(got.status.is_success(), "{got:?}");
    got.json()
}

#[track_caller]
fn check_goes_on(before: &Value, after: &Value) {
    let requests = |kept: &Value| kept["savings"]["requests"].as_u64().unwrap();
    assert!(requests(before) >= 3, "{before}");
    assert_eq!(requests(after), requests(before) + 1);
    assert!(before["ratio_permille"].is_u64(), "{before}");
    assert!(after["ratio_permille"].is_u64(), "{after}");
}

#[tokio::test(start_paused = true)]
async fn savings_and_calibration_survive_a_resume() {
    let provider = SimulatedProvider::new(simulator());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let session = library(&provider, &store).start().await.unwrap();
    for turn in 0..4 {
        session.ask(chatter(turn, 60)).await.unwrap();
    }
    let id = session.id().clone();
    session.close().await.unwrap();
    let before = kept(&store, &id).await;
    let session = library(&provider, &store).resume(&id).await.unwrap();
    session.ask(chatter(4, 60)).await.unwrap();
    session.close().await.unwrap();
    check_goes_on(&before, &kept(&store, &id).await);

    let mut world = World::with(
        simulator(),
        Config {
            window: None,
            ..config()
        },
    )
    .await;
    let mut client = Client::new(Wire::Anthropic);
    client.tools = None;
    client.messages = vec![
        json!({"role": "user", "content": "Hello."}),
        json!({"role": "assistant", "content": "Hello."}),
    ];
    let mut got = client.say(&world, &chatter(0, 60)).await;
    for turn in 1..4 {
        got = client.say(&world, &chatter(turn, 60)).await;
    }
    let id = session_id(&got);
    settled(&world).await;
    let before = kept(&world.store, &id).await;
    world.restart().await;
    client.say(&world, &chatter(4, 60)).await;
    settled(&world).await;
    check_goes_on(&before, &kept(&world.store, &id).await);
}

/// How often drafts were made, by test.
static DRAFTS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

fn panics_once<const OF: usize>(
    order: &BuildOrder,
    counter: Counter,
) -> Result<Memory, UpdateFailure> {
    assert!(DRAFTS[OF].fetch_add(1, Ordering::Relaxed) > 0, "a test");
    draft(order, counter)
}

/// What the events say of a panic, and that a later memory was swapped in.
#[track_caller]
fn check_reported(records: &[EventRecord], of: &str) {
    let failed = records.iter().position(|record| {
        matches!(record, EventRecord::Failed { kind, class, message, .. }
            if kind == of && class == "internal" && message.contains("report this"))
    });
    let swapped = records
        .iter()
        .position(|record| matches!(record, EventRecord::Swapped { .. }));
    assert!(failed.is_some() && failed < swapped, "{records:?}");
}

#[tokio::test(start_paused = true)]
async fn a_panicking_draft_is_reported_and_blocks_nothing() {
    let provider = SimulatedProvider::new(simulator());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let made: DraftMaker = panics_once::<0>;
    let builder = library(&provider, &store).window(WINDOW).draft_by(made);
    let session = builder.start().await.unwrap();
    let mut events = Box::pin(session.events());
    let mut turn = 0;
    while session.status().epoch == 0 {
        turn += 1;
        assert!(turn < 100);
        session.ask(chatter(turn, 60)).await.unwrap();
    }
    let is_told = std::iter::from_fn(|| events.next().now_or_never().flatten()).any(|event| {
        matches!(event, SessionEvent::Engine(EngineEvent::Failed { kind: BuildKind::Draft, reason, .. })
            if reason.class.as_str() == "internal")
    });
    assert!(is_told);
    session.close().await.unwrap();
    check_reported(&records(&store, session.id()).await, "draft");

    let world = World::with(
        simulator(),
        Config {
            draft: panics_once::<1>,
            ..config()
        },
    )
    .await;
    let mut client = Client::new(Wire::Anthropic);
    let id = crate::admin::swapped(&world, &mut client, 1).await;
    let id = SessionId::new(id).unwrap();
    check_reported(&records(&world.store, &id).await, "draft");
    let metrics = world.proxy.metrics();
    assert!(
        metrics.contains(r#"engine_events_total{event="failed"} 1"#),
        "{metrics}"
    );
}

/// A compactor that panics.
struct Panicking;

#[async_trait]
impl Compactor for Panicking {
    async fn compact(
        &self,
        _order: UpdateOrder,
        _live: LiveRequest,
        _stop: CancellationToken,
    ) -> CompactorResult {
        panic!("a test");
    }
}

/// Panics where a memory is asked for, and passes everything else on.
struct PanickingTransport(SimulatedProvider);

#[async_trait]
impl Transport for PanickingTransport {
    async fn call(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        assert_ne!(request.uri().host(), Some("memories"), "a test");
        self.0.call(request).await
    }
}

fn operator() -> Updates {
    Updates::Operator(Box::new(Operator {
        wire: Wire::Anthropic,
        base_url: "http://memories".to_owned(),
        credential: Some(Credential::new("key-2").unwrap()),
        model: MODEL.to_owned(),
    }))
}

#[tokio::test(start_paused = true)]
async fn a_panicking_update_is_reported_and_blocks_nothing() {
    let provider = SimulatedProvider::new(simulator());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builder = library(&provider, &store)
        .window(WINDOW)
        .compactor(Panicking);
    let session = builder.start().await.unwrap();
    for turn in 0..4 {
        session.ask(chatter(turn, 60)).await.unwrap();
    }
    let outcome = session.compact(None).await.unwrap();
    assert_eq!(outcome, CompactionOutcome::Committed { version: 1 });
    session.close().await.unwrap();
    check_reported(&records(&store, session.id()).await, "model");

    let provider = SimulatedProvider::new(simulator());
    let clock = throughline::core::Clock::showing(Time::from_ms(1_780_000_000_000));
    let mut config = Config {
        updates: operator(),
        ..config()
    };
    config.limits.kept_bytes_max = 0;
    let transport = Arc::new(PanickingTransport(provider.clone()));
    let mut world = World::over(Arc::new(MemoryStore::new()), simulator(), config.clone()).await;
    let store = Arc::clone(&world.store);
    world.proxy = Proxy::start_by(clock, config, store, transport)
        .await
        .unwrap();
    let mut client = Client::new(Wire::Anthropic);
    let mut got = client.say(&world, &chatter(0, 60)).await;
    for turn in 1..4 {
        got = client.say(&world, &chatter(turn, 60)).await;
    }
    let id = session_id(&got);
    compact(&world, &id).await;
    settled(&world).await;
    check_reported(&records(&world.store, &id).await, "model");
    client.say(&world, &chatter(4, 60)).await;
    settled(&world).await;
    // Nothing of the session runs any more, so it leaves memory.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let metrics = world.proxy.metrics();
    assert!(
        metrics.contains("throughline_sessions_in_memory 0"),
        "{metrics}"
    );
}

#[track_caller]
fn check_checked(records: &[EventRecord]) {
    let checked = records.iter().find_map(|record| match record {
        EventRecord::Checked { calls, .. } => Some(*calls),
        _ => None,
    });
    assert!(checked.is_some_and(|calls| calls >= 1), "{records:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_found_in_a_model_s_memory_is_among_the_events() {
    let provider = SimulatedProvider::new(simulator());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let compactor = ModelCompactor::new(model_client(&provider), MODEL);
    let builder = library(&provider, &store)
        .window(WINDOW)
        .compactor(compactor);
    let session = builder.start().await.unwrap();
    let mut events = Box::pin(session.events());
    for turn in 0..4 {
        session.ask(chatter(turn, 60)).await.unwrap();
    }
    session.compact(None).await.unwrap();
    let is_told = std::iter::from_fn(|| events.next().now_or_never().flatten())
        .any(|event| matches!(event, SessionEvent::Checked { calls: 1.., .. }));
    assert!(is_told);
    session.close().await.unwrap();
    check_checked(&records(&store, session.id()).await);

    let world = World::with(
        simulator(),
        Config {
            updates: Updates::Client,
            ..config()
        },
    )
    .await;
    let mut client = Client::new(Wire::Anthropic);
    let mut got = client.say(&world, &chatter(0, 60)).await;
    for turn in 1..4 {
        got = client.say(&world, &chatter(turn, 60)).await;
    }
    let id = session_id(&got);
    compact(&world, &id).await;
    settled(&world).await;
    check_checked(&records(&world.store, &id).await);
    // The dashboard lists it.
    let page = world
        .get(&format!("{API}/sessions/{id}/timeline"))
        .await
        .json();
    let events = page["events"].as_array().unwrap();
    let checked = events.iter().find(|event| event["kind"] == "checked");
    let words = checked.unwrap()["words"].as_str().unwrap();
    assert!(words.contains("put back"), "{words}");
}

/// The largest prompt of a session, as the proxy's API has it.
async fn limit(world: &World, id: &SessionId) -> u64 {
    let path = format!("{API}/sessions/{id}/pins");
    let body = json!({"text": "The region is eu-north-3."}).to_string();
    // An action loads the session.
    let got = world.ask(request(Method::POST, &path, &[], body)).await;
    assert!(got.status.is_success(), "{got:?}");
    let got = world.get(&format!("{API}/sessions/{id}")).await.json();
    got["marks"]["limit"].as_u64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_session_has_the_same_marks_wherever_it_is_opened() {
    for (window, model, answer_tokens, expected) in [
        (None, MODEL, 2_000, 998_000),
        (Some(20_000), MODEL, 2_000, 18_000),
        // An answer reserves at most half of the window.
        (Some(20_000), MODEL, 16_000, 10_000),
        (None, "unknown-model", 2_000, 998_000),
    ] {
        let mut world = World::with(simulator(), Config { window, ..config() }).await;
        let mut client = Client::new(Wire::Anthropic);
        client.fields = json!({"max_tokens": answer_tokens, "model": model});
        let got = world.ask({
            client
                .messages
                .push(json!({"role": "user", "content": "Hello."}));
            client.request()
        });
        let id = session_id(&got.await);
        settled(&world).await;
        let of = format!("{window:?} {model} {answer_tokens}");
        assert_eq!(limit(&world, &id).await, expected, "{of}");
        // The library, which is told nothing but the store.
        world.proxy.clone().close(Duration::from_secs(1)).await;
        let session = Session::builder(model_client(&world.provider), "any")
            .store(Arc::clone(&world.store))
            .resume(&id)
            .await
            .unwrap();
        assert_eq!(session.status().limit, expected, "{of}");
        session.close().await.unwrap();
        drop(session);
        // Another proxy, which is not told the window either.
        world.config.window = None;
        world.restart().await;
        assert_eq!(limit(&world, &id).await, expected, "{of}");
    }
}
