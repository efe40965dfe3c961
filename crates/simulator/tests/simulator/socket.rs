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
    serving.await.unwrap().unwrap();

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
