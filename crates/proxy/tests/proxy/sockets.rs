//! What only a real connection shows: chunks that are not held back, hang-ups, cuts, endings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throughline_providers::transport::HttpTransport;
use throughline_proxy::config::{Updates, Upstreams};
use throughline_proxy::{Config, Proxy, serve};
use throughline_store::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// An upstream that a test plays by hand, and a proxy before it.
struct Wires {
    upstream: TcpListener,
    proxy: SocketAddr,
    shutdown: CancellationToken,
    served: tokio::task::JoinHandle<()>,
}

impl Wires {
    async fn new() -> Self {
        let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config {
            upstreams: Upstreams {
                anthropic: format!("http://{}", upstream.local_addr().unwrap()),
                ..Upstreams::default()
            },
            updates: Updates::Code,
            ..Config::default()
        };
        let transport = HttpTransport::builder().without_proxy().build().unwrap();
        let proxy = Proxy::start(config, Arc::new(MemoryStore::new()), Arc::new(transport))
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(serve(
            listener,
            proxy,
            None,
            shutdown.clone(),
            Duration::from_secs(10),
        ));
        Self {
            upstream,
            proxy: address,
            shutdown,
            served,
        }
    }

    /// A client that has asked, and the upstream's side of what came of it.
    async fn asked(&self) -> (TcpStream, TcpStream) {
        let mut client = TcpStream::connect(self.proxy).await.unwrap();
        let body = r#"{"model":"claude-opus-4-6","max_tokens":9,"stream":true,"tools":[{"name":"t","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"a"}]}"#;
        let request = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let (mut upstream, _) = self.upstream.accept().await.unwrap();
        let mut received = Vec::new();
        while !String::from_utf8_lossy(&received).ends_with(body) {
            let mut buffer = [0; 4096];
            let count = upstream.read(&mut buffer).await.unwrap();
            assert!(count > 0);
            received.extend_from_slice(&buffer[..count]);
        }
        (client, upstream)
    }

    /// The same, and the first chunk of the answer has come.
    async fn begun(&self) -> (TcpStream, TcpStream) {
        let (mut client, mut upstream) = self.asked().await;
        let first = format!("{HEAD}{}", chunk("event: ping\ndata: {}\n\n"));
        upstream.write_all(first.as_bytes()).await.unwrap();
        until(&mut client, "ping").await;
        (client, upstream)
    }
}

/// A file is forwarded while it still arrives.
#[tokio::test]
async fn no_chunk_of_a_file_waits_for_the_next() {
    let wires = Wires::new().await;
    let mut client = TcpStream::connect(wires.proxy).await.unwrap();
    let head = "POST /v1/files HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: 15\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(b"part0").await.unwrap();
    let (mut upstream, _) = wires.upstream.accept().await.unwrap();
    let got = until(&mut upstream, "part0").await.to_lowercase();
    assert!(got.starts_with("post /v1/files "), "{got}");
    assert!(got.contains("content-length: 15\r\n"), "{got}");
    for part in ["part1", "part2"] {
        client.write_all(part.as_bytes()).await.unwrap();
        until(&mut upstream, part).await;
    }
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    upstream.write_all(answer.as_bytes()).await.unwrap();
    let got = until(&mut client, "{}").await;
    assert!(got.contains("x-throughline-reason: path"), "{got}");
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Reads until this has come.
async fn until(stream: &mut TcpStream, what: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(what) {
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut buffer));
        let count = read.await.expect("it comes").unwrap();
        assert!(count > 0, "the end before {what:?}: {text}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}

#[tokio::test]
async fn no_chunk_waits_for_the_next() {
    let wires = Wires::new().await;
    let (mut client, mut upstream) = wires.asked().await;
    upstream.write_all(HEAD.as_bytes()).await.unwrap();
    for number in 0..5 {
        let text = format!("event: ping\ndata: {{\"n\":{number}}}\n\n");
        upstream.write_all(chunk(&text).as_bytes()).await.unwrap();
        // The upstream says nothing more before this has come.
        let got = until(&mut client, &format!("\"n\":{number}")).await;
        assert!(
            number > 0 || got.contains("x-throughline: tracked"),
            "{got}"
        );
    }
    upstream.write_all(b"0\r\n\r\n").await.unwrap();
    until(&mut client, "0\r\n\r\n").await;
}

#[tokio::test]
async fn a_cut_reaches_the_client_as_a_cut() {
    let wires = Wires::new().await;
    let (mut client, upstream) = wires.begun().await;
    drop(upstream);
    let mut rest = Vec::new();
    // Either an error or an end, but not the chunk that ends a body.
    let _ = client.read_to_end(&mut rest).await;
    assert!(!String::from_utf8_lossy(&rest).contains("0\r\n\r\n"));
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_the_upstreams_answer() {
    let wires = Wires::new().await;
    let (client, mut upstream) = wires.begun().await;
    drop(client);
    let ended = async {
        loop {
            // What still arrives is not read.
            let text = chunk("event: ping\ndata: {}\n\n");
            if upstream.write_all(text.as_bytes()).await.is_err() {
                return;
            }
            let mut buffer = [0; 16];
            let read = tokio::time::timeout(Duration::from_millis(50), upstream.read(&mut buffer));
            if matches!(read.await, Ok(Ok(0) | Err(_))) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended)
        .await
        .expect("the connection upstream is closed");
}

/// Nothing is written to the client meanwhile that would tell it.
#[tokio::test]
async fn a_client_that_hangs_up_before_the_answer_ends_the_request_upstream() {
    let wires = Wires::new().await;
    let (client, mut upstream) = wires.asked().await;
    drop(client);
    let mut rest = Vec::new();
    let ended = upstream.read_to_end(&mut rest);
    // Whether it is closed or aborted.
    let _ = tokio::time::timeout(Duration::from_secs(20), ended)
        .await
        .expect("the connection upstream is closed");
}

#[tokio::test]
async fn a_client_reads_why_its_body_is_too_large() {
    let wires = Wires::new().await;
    let mut client = TcpStream::connect(wires.proxy).await.unwrap();
    let bytes = 40 * 1024 * 1024;
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {bytes}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&vec![b'x'; bytes]).await.unwrap();
    let got = until(&mut client, "request_too_large").await;
    assert!(got.starts_with("HTTP/1.1 413"), "{got}");
}

#[tokio::test]
async fn an_answer_under_way_finishes_when_the_proxy_ends() {
    let wires = Wires::new().await;
    let (mut client, mut upstream) = wires.begun().await;
    wires.shutdown.cancel();
    upstream
        .write_all(format!("{}0\r\n\r\n", chunk("event: last\ndata: {}\n\n")).as_bytes())
        .await
        .unwrap();
    let got = until(&mut client, "0\r\n\r\n").await;
    assert!(got.contains("event: last"));
    tokio::time::timeout(Duration::from_secs(20), wires.served)
        .await
        .expect("the proxy ends")
        .unwrap();
    assert!(TcpStream::connect(wires.proxy).await.is_err());
}

#[tokio::test]
async fn a_body_that_ends_early_is_refused_and_never_sent_on() {
    let wires = Wires::new().await;
    let mut client = TcpStream::connect(wires.proxy).await.unwrap();
    client
        .write_all(
            b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{\"model\"",
        )
        .await
        .unwrap();
    client.shutdown().await.unwrap();
    let mut rest = String::new();
    let _ = client.read_to_string(&mut rest).await;
    let accepted = tokio::time::timeout(Duration::from_millis(200), wires.upstream.accept());
    assert!(accepted.await.is_err(), "nothing was sent on: {rest}");
}

#[tokio::test]
async fn clients_are_answered_over_tls() {
    use tokio_rustls::rustls::pki_types::ServerName;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = throughline_proxy::Tls::from_pem(
        made.cert.pem().as_bytes(),
        made.signing_key.serialize_pem().as_bytes(),
    )
    .unwrap();
    let transport = HttpTransport::builder().without_proxy().build().unwrap();
    let store = Arc::new(MemoryStore::new());
    let proxy = Proxy::start(Config::default(), store, Arc::new(transport));
    let proxy = proxy.await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let limit = Duration::from_secs(1);
    let served = tokio::spawn(serve(listener, proxy, Some(tls), shutdown.clone(), limit));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    shutdown.cancel();
    served.await.unwrap();
}
