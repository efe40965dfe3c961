//! The simulator behind a socket.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use throughline_simulator::{Options, Recording, SimulatedProvider, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::*;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends a request and gives everything that comes until the connection ends.
async fn exchange(address: std::net::SocketAddr, body: &str) -> String {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\nanthropic-version: 2023-06-01\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn requests_are_answered_recorded_and_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut options = Options::new(1).without_latency();
    options.faults = "cut=3@2,stall=2@3".parse().unwrap();
    let recorded = Shared::default();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(serve(
        listener,
        SimulatedProvider::new(options),
        Some(Recording::to(recorded.clone())),
        shutdown.clone(),
    ));

    let mut body = ask("claude-opus-5", json!([user("hi")]));
    let pretty = serde_json::to_string_pretty(&body).unwrap();
    let whole = exchange(address, &pretty).await;
    assert!(whole.starts_with("HTTP/1.1 200 OK"), "{whole}");
    let (_, answer) = whole.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["type"], "message");

    body["stream"] = json!(true);
    let cut = exchange(address, &body.to_string()).await;
    assert!(cut.contains("event: message_start") && !cut.contains("message_stop"));
    // A body in chunks that ends in order ends with an empty one.
    assert!(!cut.ends_with("0\r\n\r\n"), "{cut}");

    let large = " ".repeat((32 << 20) + 1);
    assert!(exchange(address, &large).await.starts_with("HTTP/1.1 413"));

    // A stalled answer does not keep the server from ending.
    let body = body.to_string();
    let stalled = exchange(address, &body);
    tokio::pin!(stalled);
    let open = tokio::time::timeout(std::time::Duration::from_millis(300), &mut stalled).await;
    assert!(open.is_err());
    shutdown.cancel();
    stalled.await;
    serving.await.unwrap();

    let lines = String::from_utf8(recorded.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["path"], "/v1/messages");
    assert_eq!(lines[0]["headers"]["anthropic-version"], "2023-06-01");
    assert_eq!(lines[0]["headers"].get("x-api-key"), None);
    assert_eq!(lines[0]["body"]["model"], "claude-opus-5");
    assert!(lines[0]["at_ms"].is_u64());
}

/// A simulator behind a socket, and what ends it.
async fn serving(
    recording: Option<Recording>,
) -> (
    std::net::SocketAddr,
    CancellationToken,
    tokio::task::JoinHandle<()>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    let task = tokio::spawn(serve(listener, provider, recording, shutdown.clone()));
    (address, shutdown, task)
}

#[tokio::test]
async fn clients_that_close_their_half_are_answered() {
    let (address, shutdown, task) = serving(None).await;
    for streams in [false, true] {
        let mut body = ask("claude-opus-5", json!([user("hi")]));
        body["stream"] = json!(streams);
        let body = body.to_string();
        let mut connection = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\nanthropic-version: 2023-06-01\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(request.as_bytes()).await.unwrap();
        connection.shutdown().await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("end_turn"), "{answer}");
    }
    shutdown.cancel();
    task.await.unwrap();
}

/// Takes this many lines.
struct Full(Shared, usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.1 -= 1;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_recording_that_fails_is_told_once_and_answers_go_on() {
    let (recorded, told) = (Shared::default(), Arc::new(Mutex::new(Vec::new())));
    let telling = Arc::clone(&told);
    let recording = Recording::to(Full(recorded.clone(), 1))
        .on_failure(move |error| telling.lock().unwrap().push(error.kind()));
    let (address, shutdown, task) = serving(Some(recording)).await;
    let body = ask("claude-opus-5", json!([user("hi")])).to_string();
    for _ in 0..4 {
        let answer = exchange(address, &body).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
    shutdown.cancel();
    task.await.unwrap();
    assert_eq!(*told.lock().unwrap(), [io::ErrorKind::StorageFull]);
    let lines = String::from_utf8(recorded.0.lock().unwrap().clone()).unwrap();
    assert_eq!(lines.lines().count(), 1);
}
