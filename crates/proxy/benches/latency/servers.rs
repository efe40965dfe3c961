//! The servers of the bench: an upstream that answers at once, a bare proxy, and the proxy.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use throughline_providers::transport::HttpTransport;
use throughline_proxy::config::{Mode, Updates, Upstreams};
use throughline_proxy::{Config, Proxy, serve};
use throughline_simulator::{Options, SimulatedProvider};
use throughline_store::{Durability, SqliteStore, SqliteStoreOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What the model says.
pub(crate) const ANSWER: &str = "Looked at it; nothing to change.";

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(work);
}

async fn listen() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    listener
}

/// Reads a request whole and answers at once.
pub(crate) fn upstream() {
    run(async {
        let listener = listen().await;
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| async {
                    let mut body = request.into_body();
                    let mut tail: Vec<u8> = Vec::new();
                    let mut is_streaming = false;
                    while let Some(frame) = body.frame().await {
                        let Ok(frame) = frame else { break };
                        let Ok(data) = frame.into_data() else {
                            continue;
                        };
                        if tail.is_empty() {
                            tail.extend_from_slice(&data[..data.len().min(200)]);
                            is_streaming =
                                tail.windows(13).any(|window| window == b"\"stream\":true");
                        }
                    }
                    Ok::<_, Infallible>(answer(is_streaming))
                });
                let _ = Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
}

/// The simulated provider, whose answers take no time.
pub(crate) fn simulator() {
    run(async {
        let listener = listen().await;
        let mut options = Options::new(1).without_latency();
        options.keeps_bodies = false;
        throughline_simulator::serve(
            listener,
            SimulatedProvider::new(options),
            None,
            CancellationToken::new(),
        )
        .await;
    });
}

fn answer(is_streaming: bool) -> Response<BoxBody<Bytes, Infallible>> {
    if !is_streaming {
        let body = format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{{"type":"text","text":"{ANSWER}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":100,"output_tokens":10}}}}"#
        );
        return Response::builder()
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)).boxed())
            .unwrap();
    }
    let mut events = vec![
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-6\",\"content\":[],\"usage\":{\"input_tokens\":100,\"output_tokens\":1}}}\n\n".to_owned(),
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n".to_owned(),
    ];
    for word in ANSWER.split_inclusive(' ') {
        events.push(format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{word}\"}}}}\n\n"
        ));
    }
    events.push(
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
            .to_owned(),
    );
    events.push("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":10}}\n\n".to_owned());
    events.push("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".to_owned());
    let frames = events
        .into_iter()
        .map(|event| Ok::<_, Infallible>(Frame::data(Bytes::from(event))));
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(BodyExt::boxed(StreamBody::new(futures_util::stream::iter(
            frames,
        ))))
        .unwrap()
}

/// A streaming reverse proxy and nothing else.
pub(crate) fn bare(upstream: SocketAddr) {
    run(async move {
        let listener = listen().await;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let client = client.clone();
            tokio::spawn(async move {
                let service = service_fn(move |mut request: Request<Incoming>| {
                    let client = client.clone();
                    async move {
                        let path = request.uri().path_and_query().unwrap().as_str();
                        let uri: Uri = format!("http://{upstream}{path}").parse().unwrap();
                        *request.uri_mut() = uri;
                        client.request(request).await
                    }
                });
                let _ = Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
}

/// The proxy, with everything on.
pub(crate) fn proxy(upstream: SocketAddr, kind: &str) {
    let folder = std::env::temp_dir().join(format!("throughline-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = Config {
        upstreams: Upstreams {
            anthropic: format!("http://{upstream}"),
            ..Upstreams::default()
        },
        // Small enough that all but the first requests have a memory, or so large that none has.
        window: Some(match kind {
            "rewritten" => 2_500,
            "drafting" | "updating" => 20_000,
            _ => 10_000_000,
        }),
        updates: if kind == "updating" {
            Updates::Client
        } else {
            Updates::Code
        },
        mode: if kind == "off" {
            Mode::Off
        } else {
            Mode::Rewrite
        },
        ..Config::default()
    };
    run(async move {
        let listener = listen().await;
        let mut options = SqliteStoreOptions::default();
        options.durability = Durability::ProcessKill;
        let store = SqliteStore::open_with(folder.join("sessions.db"), options)
            .await
            .unwrap();
        let transport = HttpTransport::new().unwrap();
        let proxy = Proxy::start(config, Arc::new(store), Arc::new(transport))
            .await
            .unwrap();
        serve(
            listener,
            proxy,
            None,
            CancellationToken::new(),
            Duration::from_secs(1),
        )
        .await;
    });
}
