//! Spans on their way to a collector, with the feature `otel`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::proxied::{Proxied, ask, body, said};
use crate::simulate::Running;

/// A collector: what it is sent, one request after the other.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sent, received) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = BufReader::new(connection.unwrap());
            loop {
                let mut head = String::new();
                while connection.read_line(&mut head).unwrap_or(0) > 2 {}
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    let is_length = name.eq_ignore_ascii_case("content-length");
                    is_length.then(|| value.trim().parse::<usize>().unwrap())
                });
                let Some(length) = length else { break };
                let mut body = vec![0; length];
                connection.read_exact(&mut body).unwrap();
                let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
                connection.get_mut().write_all(answer.as_bytes()).unwrap();
                if sent.send((head, body)).is_err() {
                    return;
                }
            }
        }
    });
    (address, received)
}

/// Protobuf has texts verbatim, after their length.
fn has(body: &[u8], text: &str) -> bool {
    let mut told = vec![u8::try_from(text.len()).unwrap()];
    told.extend(text.as_bytes());
    body.windows(told.len()).any(|part| part == told)
}

#[test]
fn requests_and_updates_become_spans_of_ids_and_numbers() {
    let home = tempfile::tempdir().unwrap();
    let simulator = Running::start(&[]);
    let (collector, received) = collector();
    let endpoint = format!("http://{collector}");
    let proxy = Proxied::start_with(
        home.path(),
        &simulator.address,
        &["--window", "20000"],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=here"),
            ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ],
    );
    let mut messages = Vec::new();
    for turn in 0..20 {
        messages.push(said(turn));
        let (head, answer) = ask(&proxy.address, &body(&messages)).unwrap();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        messages.push(serde_json::json!({"role": "assistant", "content": answer["content"]}));
    }
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    while !all.iter().any(|(_, body)| has(body, "made")) {
        all.push(received.recv_timeout(Duration::from_secs(60)).unwrap());
    }
    // What is on its way is sent before the end.
    messages.push(said(99));
    ask(&proxy.address, &body(&messages)).unwrap();
    proxy.end();
    let before = all.len();
    all.extend(received.try_iter());
    assert!(all.len() > before);
    for (head, _) in &all {
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        assert!(head.contains("x-tenant: here"), "{head}");
    }
    let any = |text: &str| all.iter().any(|(_, body)| has(body, text));
    for text in [
        "service.name",
        "throughline",
        "request",
        "wire",
        "anthropic",
        "kind",
        "answer",
        "done",
        "tracked",
        "ended",
        "whole",
        "session",
        "prompt_tokens",
        "update",
        "outcome",
        "made",
    ] {
        assert!(any(text), "{text}");
    }
    // Nothing that was said, no key, and nothing of other spans.
    for (_, body) in &all {
        let text = String::from_utf8_lossy(body);
        for word in [
            "item",
            "value-",
            "Remember",
            "x-api-key",
            "in part",
            "127.0.0.1",
        ] {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn no_spans_are_sent_unless_somebody_says_where() {
    let home = tempfile::tempdir().unwrap();
    let simulator = Running::start(&[]);
    let (collector, received) = collector();
    let endpoint = format!("http://{collector}");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_TRACES_EXPORTER", "none"),
    ];
    let proxy = Proxied::start_with(home.path(), &simulator.address, &[], &variables);
    ask(&proxy.address, &body(&[said(1)])).unwrap();
    proxy.end();
    assert!(received.recv_timeout(Duration::from_millis(100)).is_err());
}
