//! The simulator as a transport, in paused time.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use throughline_providers::transport::{Transport, TransportErrorKind};
use throughline_simulator::{Options, SimulatedProvider};
use tokio::time::{Instant, timeout};

use crate::support::*;

fn provider(faults: &str) -> SimulatedProvider {
    let mut options = Options::new(1);
    options.faults = faults.parse().unwrap();
    SimulatedProvider::new(options)
}

fn request() -> http::Request<bytes::Bytes> {
    let mut body = ask("claude-opus-5", json!([user("Look at the parser.")]));
    body["stream"] = json!(true);
    messages_request(&body)
}

#[tokio::test(start_paused = true)]
async fn answers_take_their_time_on_the_clock_of_the_runtime() {
    let provider = provider("");
    let start = Instant::now();
    let response = provider.call(request()).await.unwrap();
    assert_eq!(response.status(), 200);
    let head_after = start.elapsed();
    assert!(head_after >= Duration::from_millis(600));
    let pieces: Vec<_> = response.into_body().collect().await;
    let text: Vec<u8> = pieces
        .into_iter()
        .flat_map(|piece| piece.unwrap())
        .collect();
    assert!(
        String::from_utf8(text)
            .unwrap()
            .ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
    );
    let took = start.elapsed();
    assert!(took > head_after + Duration::from_secs(1));
    let entry = provider.ledger().remove(0);
    assert!(took.abs_diff(entry.took) < Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn broken_answers_end_in_an_error_and_stalled_ones_never() {
    let response = provider("cut=3").call(request()).await.unwrap();
    let pieces: Vec<_> = response.into_body().collect().await;
    let last = pieces.last().unwrap().as_ref().unwrap_err();
    assert_eq!(last.kind, TransportErrorKind::Broken);
    let response = provider("stall=3").call(request()).await.unwrap();
    let all = response.into_body().collect::<Vec<_>>();
    assert!(timeout(Duration::from_secs(3600), all).await.is_err());
}
