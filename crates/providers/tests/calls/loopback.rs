//! Over real sockets: streams that are cut inside an event, stalled, or not HTTP at all.

use std::sync::Arc;
use std::time::Duration;

use throughline_providers::client::{CallOptions, Client};
use throughline_providers::credential::Credential;
use throughline_providers::error::{CallError, CallErrorKind, Failure};
use throughline_providers::reply::Reply;
use throughline_providers::retry::RetryPolicy;
use throughline_providers::transport::{HttpTransport, TransportErrorKind};
use throughline_transcript::wire::Wire;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::scripted::{Part, STREAMED, ended, key, said, start};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n";

/// What the server does with each connection, one after the other.
enum Deed {
    /// Writes this and closes.
    Writes(Vec<String>),
    /// Writes this and stays silent until the client leaves.
    Stalls(Vec<String>),
    /// Closes at once.
    Leaves,
}

fn chunk(part: Part) -> String {
    let Part::Bytes(text) = part else {
        return String::new();
    };
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn whole_stream() -> Vec<String> {
    let mut parts = vec![HEAD.to_owned()];
    parts.extend([Part::Bytes(start()), said("Grüße"), ended()].map(chunk));
    parts.push("0\r\n\r\n".to_owned());
    parts
}

/// A server and what it was sent. It ends with the set.
struct Server {
    address: String,
    tasks: JoinSet<Vec<String>>,
}

impl Server {
    async fn start(deeds: Vec<Deed>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut requests = Vec::new();
            for deed in deeds {
                let (mut socket, _) = listener.accept().await.unwrap();
                let (parts, stays) = match deed {
                    Deed::Writes(parts) => (parts, false),
                    Deed::Stalls(parts) => (parts, true),
                    Deed::Leaves => continue,
                };
                requests.push(read_request(&mut socket).await);
                for part in parts {
                    // Byte by byte would be slow; in odd pieces characters are cut as well.
                    for piece in part.as_bytes().chunks(7) {
                        if socket.write_all(piece).await.is_err() {
                            break;
                        }
                    }
                }
                socket.flush().await.unwrap();
                if stays {
                    let mut rest = [0; 64];
                    while socket.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                }
            }
            requests
        });
        Self { address, tasks }
    }

    async fn requests(mut self) -> Vec<String> {
        self.tasks.join_next().await.unwrap().unwrap()
    }

    fn client(&self) -> Client {
        client(&self.address)
    }
}

fn client(address: &str) -> Client {
    let transport = HttpTransport::builder()
        .connect_timeout(Duration::from_secs(5))
        .without_proxy()
        .build()
        .unwrap();
    Client::builder(Wire::Anthropic, address)
        .credential(Credential::new(&key()).unwrap())
        .transport(Arc::new(transport))
        .retry(RetryPolicy {
            delay_first: Duration::from_millis(1),
            ..RetryPolicy::default()
        })
        .build()
        .unwrap()
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = socket.read(&mut part).await.unwrap();
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        assert!(read > 0, "the request ended early");
    }
}

async fn send(client: &Client) -> Result<Reply, CallError> {
    client
        .send(STREAMED.into(), CallOptions::default())
        .await?
        .reply()
        .await
}

#[tokio::test]
async fn a_stream_arrives_over_the_network() {
    let server = Server::start(vec![Deed::Writes(whole_stream())]).await;
    let reply = send(&server.client()).await.unwrap();
    assert_eq!(reply.text(), "Grüße");
    assert_eq!(reply.request_id.as_deref(), Some("req_1"));
    let request = server.requests().await.remove(0);
    assert!(
        request.starts_with("POST /v1/messages HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.ends_with(STREAMED), "{request}");
    assert!(
        request.contains(&format!("x-api-key: {}", key())),
        "{request}"
    );
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_stream() {
    // The server serves both requests on the one connection that it accepts.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            read_request(&mut socket).await;
            socket
                .write_all(whole_stream().concat().as_bytes())
                .await
                .unwrap();
        }
        socket
    };
    let ask = async {
        let client = client(&address);
        (send(&client).await, send(&client).await)
    };
    let (_socket, (first, second)) = tokio::join!(serve, ask);
    assert_eq!(
        (first.unwrap().text(), second.unwrap().text()),
        ("Grüße".to_owned(), "Grüße".to_owned())
    );
}

#[tokio::test]
async fn a_stream_that_is_cut_inside_an_event_is_no_answer() {
    let mut parts = whole_stream();
    parts.truncate(3);
    parts.push("40\r\nevent: message_delta\ndata: {\"type\"".to_owned());
    let server = Server::start(vec![Deed::Writes(parts)]).await;
    let error = send(&server.client()).await.unwrap_err();
    assert_eq!(
        error.failure,
        Failure::Transport(TransportErrorKind::Broken)
    );
    assert_eq!(error.partial.unwrap().text(), "Grüße");
}

#[tokio::test]
async fn a_connection_that_breaks_at_once_is_tried_again() {
    let server = Server::start(vec![Deed::Leaves, Deed::Writes(whole_stream())]).await;
    let reply = send(&server.client()).await.unwrap();
    assert_eq!((reply.text().as_str(), reply.attempts), ("Grüße", 2));
}

#[tokio::test]
async fn silence_in_the_middle_has_a_limit() {
    let server = Server::start(vec![Deed::Stalls(whole_stream()[..3].to_vec())]).await;
    let client = server.client();
    let limit = Duration::from_millis(200);
    let options = CallOptions::default().idle_timeout(limit);
    let call = client.send(STREAMED.into(), options).await.unwrap();
    let error = call.reply().await.unwrap_err();
    assert_eq!(error.failure, Failure::Idle(limit));
    assert_eq!(error.partial.unwrap().text(), "Grüße");
    // The connection was closed: the server's read has ended.
    assert_eq!(server.requests().await.len(), 1);
}

#[tokio::test]
async fn junk_is_no_answer() {
    let junk = || Deed::Writes(vec!["\u{1}\u{2}junk\r\n\r\n".to_owned()]);
    let server = Server::start(vec![junk(), junk(), junk()]).await;
    let error = send(&server.client()).await.unwrap_err();
    assert_eq!(
        error.failure,
        Failure::Transport(TransportErrorKind::Broken)
    );
    assert_eq!(error.attempts, 3);
}

#[tokio::test]
async fn a_refused_connection_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = send(&client(&address)).await.unwrap_err();
    assert_eq!(
        error.failure,
        Failure::Transport(TransportErrorKind::Connect)
    );
    assert_eq!((error.kind(), error.attempts), (CallErrorKind::Retry, 3));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let away = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(vec![Deed::Writes(vec![away.to_owned()])]).await;
    let error = send(&server.client()).await.unwrap_err();
    assert_eq!(
        (error.status, error.kind()),
        (Some(307), CallErrorKind::FixConfiguration)
    );
}

#[tokio::test]
async fn without_tls_on_the_other_side_there_is_no_connection() {
    let server = Server::start(vec![Deed::Leaves, Deed::Leaves, Deed::Leaves]).await;
    let address = server.address.replace("http://", "https://");
    let error = send(&client(&address)).await.unwrap_err();
    assert_eq!(
        error.failure,
        Failure::Transport(TransportErrorKind::Connect)
    );
}

/// Set in the process of its own in which the second half of a test runs, with other environment variables.
const CHILD: &str = "THROUGHLINE_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs the test `name` again, in a process of its own.
async fn run_again(name: &'static str, variables: Vec<(&'static str, String)>) {
    let mut child = JoinSet::new();
    child.spawn_blocking(move || {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        for name in [
            "NO_PROXY",
            "no_proxy",
            "HTTP_PROXY",
            "http_proxy",
            "REQUEST_METHOD",
        ] {
            command.env_remove(name);
        }
        command.args(["--exact", name]).env(CHILD, "1");
        command.envs(variables).output().unwrap()
    });
    let output = child.join_next().await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

#[tokio::test]
async fn the_proxy_of_the_environment_is_asked() {
    if is_child() {
        let client = Client::builder(Wire::Anthropic, "http://provider.invalid")
            .retry(RetryPolicy::never())
            .build()
            .unwrap();
        assert_eq!(send(&client).await.unwrap().text(), "Grüße");
        return;
    }
    let server = Server::start(vec![Deed::Writes(whole_stream())]).await;
    run_again(
        "loopback::the_proxy_of_the_environment_is_asked",
        vec![("http_proxy", server.address.clone())],
    )
    .await;
    let request = server.requests().await.remove(0);
    assert!(
        request.starts_with("POST http://provider.invalid/v1/messages HTTP/1.1\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_system_without_certificates_can_still_ask_local_servers() {
    if is_child() {
        let server = Server::start(vec![Deed::Writes(whole_stream())]).await;
        assert_eq!(send(&server.client()).await.unwrap().text(), "Grüße");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none").display().to_string();
    run_again(
        "loopback::a_system_without_certificates_can_still_ask_local_servers",
        vec![("SSL_CERT_FILE", none.clone()), ("SSL_CERT_DIR", none)],
    )
    .await;
}

#[tokio::test]
async fn a_certificate_authority_that_is_none_is_refused() {
    let broken =
        "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n";
    let error = HttpTransport::builder().extra_root_pem(broken).build();
    assert_eq!(error.unwrap_err().kind, TransportErrorKind::Request);
}
