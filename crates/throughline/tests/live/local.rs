//! Against a real llama.cpp server, if there is one: its own counts say what it read from its cache.
//!
//! `scripts/test-local` starts one and runs these; or, with one that runs already,
//! `THROUGHLINE_LLAMA_URL=http://127.0.0.1:8080 cargo test -p throughline --test live -- --ignored --nocapture local`.
//! The window should be small (3,072 tokens are right), so that it is soon full.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt as _;
use throughline::compactor::{CompactorResult, LiveRequest, Styling};
use throughline::engine::{EngineEvent, Mark, UpdateOrder, VersionOrigin};
use throughline::{Compactor, ModelCompactor, Session, SessionBuilder, SessionEvent};
use throughline_providers::client::{CallOptions, Client};
use throughline_providers::models::catalogue_overrides;
use throughline_providers::transport::{BodyStream, HttpTransport, Transport, TransportError};
use throughline_store::SqliteStore;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;
use tokio_util::sync::CancellationToken;

use crate::world::chatter;

/// Of the prompt before, at least so much must be read from the cache within an epoch, percent. What is missing of a
/// whole is what the server evaluates again to have something to begin with.
const CACHED_PERCENT_MIN: u64 = 80;
/// Turns after which a small window must have been full twice.
const TURNS_MAX: usize = 80;
const CORRECTION: &str =
    "No, that is wrong: the deploy region is eu-north-3, not us-east-1. Never write to stdout.";

#[tokio::test]
#[ignore = "needs a server: THROUGHLINE_LLAMA_URL"]
async fn a_conversation_over_openai_chat_goes_past_the_window_and_reads_its_prefix_from_the_cache()
{
    goes_past_the_window(Wire::OpenAiChat).await;
}

#[tokio::test]
#[ignore = "needs a server: THROUGHLINE_LLAMA_URL"]
async fn a_conversation_over_anthropic_messages_goes_past_the_window_and_reads_its_prefix_from_the_cache()
 {
    goes_past_the_window(Wire::Anthropic).await;
}

#[expect(
    clippy::print_stdout,
    reason = "the figures are for the person who runs it"
)]
async fn goes_past_the_window(wire: Wire) {
    let server = Server::new(wire).await;
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db"))
        .await
        .unwrap();
    let session = server
        .session(24)
        .store(Arc::new(store))
        .start()
        .await
        .unwrap();
    let mut requests = vec![ask(&session, CORRECTION).await];
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "{:?}", session.status());
        requests.push(ask(&session, &chatter(turn, 30)).await);
        let second = requests.iter().filter(|request| request.epoch == 2).count();
        if second == 4 {
            break;
        }
    }
    println!("{wire}\n{}", table(&requests));

    check_cached(&requests);
    assert_eq!(server.statuses(), vec![200; requests.len()]);
    let without = session.costs().without_compaction;
    assert!(
        without.refused > 0,
        "the window was never full: {without:?}"
    );
    let memory = session.memory().unwrap();
    let last = server.last_body();
    for said in ["eu-north-3", "Never write to stdout"] {
        assert!(memory.text.contains(said), "{said}: {}", memory.text);
        assert!(last.contains(said), "{said}: {last}");
    }
    session.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs a server: THROUGHLINE_LLAMA_URL"]
async fn an_update_that_shares_the_prefix_reads_the_conversation_from_the_cache() {
    let server = Server::new(Wire::OpenAiChat).await;
    let watched = Watched {
        inner: ModelCompactor::new(server.client.clone(), &server.model)
            .catalogue(Arc::clone(&server.catalogue))
            .styling(Styling::PrefixSharing)
            .answer_tokens(200)
            .attempts_max(1),
        updates: Arc::default(),
    };
    let updates = Arc::clone(&watched.updates);
    let session = server
        .session(24)
        .compactor(watched)
        // A swap soon after the first update: a model on a processor takes its time for each.
        .settings(|settings| {
            settings.soft = Mark::Permille(450);
            settings.hard = Mark::Permille(600);
        })
        .start()
        .await
        .unwrap();
    let mut events = Box::pin(session.events());
    let mut requests = vec![ask(&session, CORRECTION).await];
    // The update is awaited where it begins, so that its counts follow those of the request before it.
    let mut first = None;
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "{:?}", session.status());
        requests.push(ask(&session, &chatter(turn, 30)).await);
        while session.status().is_updating {
            wait_for_update(&mut events).await;
            tokio::task::yield_now().await;
        }
        if first.is_none() && !updates.lock().unwrap().is_empty() {
            first = Some(requests.len() - 1);
        }
        if session.status().epoch >= 1 {
            break;
        }
    }
    requests.push(ask(&session, "Go on.").await);
    println!("requests\n{}", table(&requests));
    let made = std::mem::take(&mut *updates.lock().unwrap());
    println!("updates");
    for update in &made {
        println!("{:?}: {}", update.calls, update.outcome);
    }

    let before = &requests[first.unwrap()];
    let call = &made[0].calls[0];
    assert!(
        call.cache_read * 100 >= before.usage.prompt() * CACHED_PERCENT_MIN,
        "{call:?} after {before:?}"
    );
    // So small a model writes no memory that can be used as it is. Mended or replaced by the draft, what was said
    // stands in it.
    let memory = session.memory().unwrap();
    assert!(
        matches!(memory.origin, VersionOrigin::Draft | VersionOrigin::Model),
        "{:?}",
        memory.origin
    );
    assert!(memory.text.contains("eu-north-3"), "{}", memory.text);
    assert!(server.last_body().contains("eu-north-3"));
    session.close().await.unwrap();
}

/// The server, what it was asked, and what it said about its model.
struct Server {
    client: Client,
    transport: Arc<Recording>,
    model: String,
    catalogue: Arc<Catalogue>,
}

impl Server {
    async fn new(wire: Wire) -> Self {
        let url = std::env::var("THROUGHLINE_LLAMA_URL").unwrap();
        let transport = Arc::new(Recording {
            inner: HttpTransport::builder().without_proxy().build().unwrap(),
            seen: Mutex::default(),
        });
        let client = Client::builder(wire, url)
            .transport(Arc::clone(&transport) as Arc<dyn Transport>)
            .build()
            .unwrap();
        let models = client.models(&CallOptions::default()).await.unwrap();
        let known = Catalogue::embedded();
        let learnt = catalogue_overrides(&models, known, "llama.cpp", "2026-11-30");
        let catalogue = Arc::new(known.clone().extended(&learnt).unwrap());
        let model = models[0].id.clone();
        let window = catalogue.find(&model).unwrap().window;
        assert!(
            (2_048..=8_192).contains(&window),
            "start the server with a small window: {window}"
        );
        transport.seen.lock().unwrap().clear();
        Self {
            client,
            transport,
            model,
            catalogue,
        }
    }

    /// A session that has learnt the window from the server.
    fn session(&self, answer_tokens: u64) -> SessionBuilder {
        Session::builder(self.client.clone(), &self.model)
            .system("You are a careful assistant. Answer in one short sentence.")
            .max_tokens(answer_tokens)
            .catalogue(Arc::clone(&self.catalogue))
    }

    fn statuses(&self) -> Vec<u16> {
        let seen = self.transport.seen.lock().unwrap();
        seen.iter().map(|(_, status)| *status).collect()
    }

    fn last_body(&self) -> String {
        let seen = self.transport.seen.lock().unwrap();
        String::from_utf8(seen.last().unwrap().0.to_vec()).unwrap()
    }
}

/// Keeps what was sent, with the status of the answer.
struct Recording {
    inner: HttpTransport,
    seen: Mutex<Vec<(Bytes, u16)>>,
}

#[async_trait::async_trait]
impl Transport for Recording {
    async fn call(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        let body = request.body().clone();
        let response = self.inner.call(request).await?;
        let status = response.status().as_u16();
        self.seen.lock().unwrap().push((body, status));
        Ok(response)
    }
}

/// Keeps what updates used and what became of them.
struct Watched {
    inner: ModelCompactor,
    updates: Arc<Mutex<Vec<Update>>>,
}

struct Update {
    calls: Vec<Usage>,
    outcome: String,
}

#[async_trait::async_trait]
impl Compactor for Watched {
    async fn compact(
        &self,
        order: UpdateOrder,
        live: LiveRequest,
        stop: CancellationToken,
    ) -> CompactorResult {
        let compacted = self.inner.compact(order, live, stop).await;
        let outcome = match &compacted.result {
            Ok(_) => format!("a memory, {} findings", compacted.findings.len()),
            Err(failure) => format!("the draft: {}", failure.message),
        };
        self.updates.lock().unwrap().push(Update {
            calls: compacted.calls.iter().map(|(_, usage)| *usage).collect(),
            outcome,
        });
        compacted
    }
}

/// One request of the conversation, by the server's counts.
#[derive(Clone, Copy, Debug)]
struct Request {
    epoch: u64,
    usage: Usage,
}

async fn ask(session: &Session, text: &str) -> Request {
    let answer = session.ask(text).await.unwrap();
    Request {
        epoch: session.status().epoch,
        usage: answer.reply.usage.unwrap().last_pass,
    }
}

async fn wait_for_update(events: &mut (impl futures_util::Stream<Item = SessionEvent> + Unpin)) {
    while let Some(event) = events.next().await {
        if let SessionEvent::Engine(
            EngineEvent::Built { .. }
            | EngineEvent::Refused { .. }
            | EngineEvent::Failed { .. }
            | EngineEvent::Dropped { .. },
        ) = event
        {
            return;
        }
    }
}

/// Within an epoch each request is read from the cache up to the end of the one before; a swap starts a new prefix.
fn check_cached(requests: &[Request]) {
    for pair in requests.windows(2) {
        let [before, after] = pair else { continue };
        let cached = after.usage.cache_read;
        if before.epoch == after.epoch {
            assert!(
                cached * 100 >= before.usage.prompt() * CACHED_PERCENT_MIN,
                "{after:?} after {before:?}"
            );
            assert!(
                cached > before.usage.cache_read,
                "{after:?} after {before:?}"
            );
        } else {
            assert!(
                cached < before.usage.cache_read / 2,
                "nothing was left out: {after:?} after {before:?}"
            );
        }
    }
}

fn table(requests: &[Request]) -> String {
    let mut text = String::from("epoch prompt cached\n");
    for Request { epoch, usage } in requests {
        writeln!(
            text,
            "{epoch:5} {:6} {:6}",
            usage.prompt(),
            usage.cache_read
        )
        .unwrap();
    }
    text
}
