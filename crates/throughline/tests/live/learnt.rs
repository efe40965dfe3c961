//! Sessions that go by the window that the provider names.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response};
use throughline::compactor::{Compactor, CompactorResult, LiveRequest, Styling};
use throughline::engine::UpdateOrder;
use throughline::{ModelCompactor, Session};
use throughline_providers::client::Client;
use throughline_providers::credential::Credential;
use throughline_providers::transport::{BodyStream, Transport, TransportError};
use throughline_simulator::{Options, SimulatedProvider};
use throughline_store::MemoryStore;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::window::WINDOW_DEFAULT;
use throughline_transcript::wire::Wire;
use tokio_util::sync::CancellationToken;

use crate::world::{MODEL, World, chatter};

/// A local server: what it says of its models, and the simulator for everything else.
struct Local {
    provider: SimulatedProvider,
    pages: &'static [(&'static str, &'static str)],
}

#[async_trait]
impl Transport for Local {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, TransportError> {
        let path = request.uri().path();
        let Some((_, page)) = self.pages.iter().find(|(at, _)| *at == path) else {
            if request.method() == Method::GET || path.starts_with("/api/") {
                let mut missing = Response::new(Box::pin(stream::empty()) as BodyStream);
                *missing.status_mut() = http::StatusCode::NOT_FOUND;
                return Ok(missing);
            }
            return self.provider.call(request).await;
        };
        let page = Bytes::from_static(page.as_bytes());
        let body: BodyStream = Box::pin(stream::iter([Ok(page)]));
        Ok(Response::new(body))
    }
}

fn local(pages: &'static [(&'static str, &'static str)]) -> (Client, SimulatedProvider) {
    let mut options = Options::new(3).without_latency();
    options.catalogue = Catalogue::empty()
        .extended(
            "[[model]]\nid = \"small\"\nprovider = \"local\"\nwindow = 12000\n\
                   source = \"made up\"\ndate = \"2026-11-30\"\nconfidence = \"high\"",
        )
        .unwrap();
    let provider = SimulatedProvider::new(options);
    let transport = Local {
        provider: provider.clone(),
        pages,
    };
    // Local servers want no key, but the simulator does.
    let client = Client::builder(Wire::OpenAiChat, "http://local")
        .credential(Credential::new("any").unwrap())
        .transport(Arc::new(transport))
        .build()
        .unwrap();
    (client, provider)
}

/// The largest prompt that a session of this model would send.
async fn limit(client: &Client, model: &str) -> u64 {
    let session = Session::builder(client.clone(), model)
        .max_tokens(1_000)
        .learn_model()
        .await
        .unwrap()
        .start()
        .await
        .unwrap();
    session.status().limit
}

#[tokio::test(start_paused = true)]
async fn the_window_of_a_local_server_is_learnt_wherever_it_tells_it() {
    let vllm: &[_] = &[(
        "/v1/models",
        r#"{"data":[{"id":"small","owned_by":"vllm","max_model_len":12000}]}"#,
    )];
    let llama_cpp: &[_] = &[(
        "/v1/models",
        r#"{"data":[{"id":"small","owned_by":"llamacpp","meta":{"n_ctx":12000,"n_ctx_train":131072}}]}"#,
    )];
    let older_llama_cpp: &[_] = &[
        (
            "/v1/models",
            r#"{"data":[{"id":"small","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}"#,
        ),
        (
            "/props",
            r#"{"default_generation_settings":{"n_ctx":12000}}"#,
        ),
    ];
    let lm_studio: &[_] = &[
        (
            "/v1/models",
            r#"{"data":[{"id":"other","owned_by":"organization_owner"},{"id":"small","owned_by":"organization_owner"}]}"#,
        ),
        (
            "/api/v0/models",
            r#"{"data":[{"id":"other","loaded_context_length":4096},{"id":"small","loaded_context_length":12000}]}"#,
        ),
    ];
    let ollama: &[_] = &[
        (
            "/v1/models",
            r#"{"data":[{"id":"small","owned_by":"library"}]}"#,
        ),
        (
            "/api/ps",
            r#"{"models":[{"name":"small","context_length":12000}]}"#,
        ),
    ];
    for pages in [vllm, llama_cpp, older_llama_cpp, lm_studio, ollama] {
        let (client, _) = local(pages);
        assert_eq!(limit(&client, "small").await, 11_000, "{pages:?}");
    }
    // A server of one model answers with it, whatever it is called.
    let (client, _) = local(llama_cpp);
    assert_eq!(limit(&client, "whatever").await, 11_000);
    let (client, _) = local(lm_studio);
    assert_eq!(limit(&client, "whatever").await, WINDOW_DEFAULT - 1_000);
    // One that does not say leaves it as it was; one that has no list says so.
    let silent: &[_] = &[("/v1/models", r#"{"data":[{"id":"small"}]}"#)];
    let (client, _) = local(silent);
    assert_eq!(limit(&client, "small").await, WINDOW_DEFAULT - 1_000);
    let (client, _) = local(&[]);
    let builder = Session::builder(client, "small");
    assert!(builder.learn_model().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_session_stays_below_a_window_that_it_has_learnt_also_when_it_is_resumed() {
    let (client, provider) = local(&[(
        "/v1/models",
        r#"{"data":[{"id":"small","owned_by":"vllm","max_model_len":12000}]}"#,
    )]);
    let store = Arc::new(MemoryStore::new());
    let session = Session::builder(client.clone(), "small")
        .max_tokens(1_000)
        .store(store.clone())
        .compactor(ModelCompactor::new(client.clone(), "small").styling(Styling::Forked))
        .learn_model()
        .await
        .unwrap()
        .start()
        .await
        .unwrap();
    let id = session.id().clone();
    for turn in 0..20 {
        session.ask(chatter(turn, 120)).await.unwrap();
    }
    assert!(session.status().epoch >= 1, "{:?}", session.status());
    let limit = session.status().limit;
    session.close().await.unwrap();
    assert!(
        provider
            .ledger()
            .iter()
            .all(|call| call.status.is_success())
    );

    let session = Session::builder(client, "small")
        .store(store)
        .resume(&id)
        .await
        .unwrap();
    assert_eq!(session.status().limit, limit);
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_says_counts_for_more_than_the_catalogue_and_less_than_the_caller() {
    let mut options = Options::new(3);
    options.window = Some(20_000);
    let world = World::new(options);
    for (said, limit) in [(None, 18_000), (Some(9_000), 7_000)] {
        let mut builder = world.session();
        if let Some(window) = said {
            builder = builder.window(window);
        }
        let session = builder.learn_model().await.unwrap().start().await.unwrap();
        assert_eq!(session.status().limit, limit);
    }
    let session = world.session().start().await.unwrap();
    let of_catalogue = Catalogue::embedded().find(MODEL).unwrap().window;
    assert_eq!(session.status().limit, of_catalogue - 2_000);
}

/// Notes the window that it is told.
struct Told(Arc<std::sync::atomic::AtomicU64>);

#[async_trait]
impl Compactor for Told {
    async fn compact(
        &self,
        order: UpdateOrder,
        live: LiveRequest,
        _: CancellationToken,
    ) -> CompactorResult {
        self.0
            .store(live.window(), std::sync::atomic::Ordering::SeqCst);
        CompactorResult {
            result: Ok(order.draft.as_ref().clone()),
            calls: Vec::new(),
            findings: Vec::new(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_compactor_is_told_the_window() {
    let world = World::new(Options::new(3).without_latency());
    let told = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let session = world
        .session()
        .window(20_000)
        .compactor(Told(Arc::clone(&told)))
        .start()
        .await
        .unwrap();
    for turn in 0..6 {
        session.ask(chatter(turn, 200)).await.unwrap();
    }
    session.compact(None).await.unwrap();
    assert_eq!(told.load(std::sync::atomic::Ordering::SeqCst), 20_000);
}
