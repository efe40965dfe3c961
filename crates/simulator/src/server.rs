//! The simulator behind a socket, in real time: for programs that are not written in Rust, and for trials by hand.

use std::convert::Infallible;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::stream;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::{Map, Value, json};
use throughline_transcript::json::{Raw, write_string};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::exchange::{Ending, Exchange, Piece};
use crate::simulator::{BODY_BYTES_MAX, unpacked};
use crate::transport::SimulatedProvider;

/// Headers that are recorded. Any other header may hold a credential of some gateway.
const RECORDED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-version",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
    "x-claude-code-session-id",
];
/// Prefix of the headers that name an SDK; they are recorded too.
const RECORDED_PREFIX: &str = "x-stainless-";

/// After a failure to accept a connection, such as too many open files.
const ACCEPT_WAIT: Duration = Duration::from_secs(1);
/// Between the last bytes and the cut.
const CUT_AFTER: Duration = Duration::from_millis(20);

/// Where received requests are written to: one JSON object a line, `{"at_ms", "path", "headers", "body"}`.
///
/// The body is JSON, byte for byte, except that line breaks between its parts become spaces. A body that is not JSON is
/// a string, or null if it is not text. Only headers that are known to hold no credential are recorded.
pub struct Recording {
    /// `None` after a line could not be written: a recording with a gap is worse than one that ends.
    writer: Mutex<Option<Box<dyn Write + Send>>>,
    failed: Box<dyn Fn(&io::Error) + Send + Sync>,
}

impl Recording {
    /// Writes to this.
    #[must_use]
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Mutex::new(Some(Box::new(writer))),
            failed: Box::new(|_| {}),
        }
    }

    /// Calls `failed` when a line cannot be written. No further line is written then.
    #[must_use]
    pub fn on_failure(self, failed: impl Fn(&io::Error) + Send + Sync + 'static) -> Self {
        Self {
            failed: Box::new(failed),
            ..self
        }
    }

    fn write(&self, line: &str) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = writer.as_mut() else { return };
        if let Err(error) = open.write_all(line.as_bytes()).and_then(|()| open.flush()) {
            *writer = None;
            (self.failed)(&error);
        }
    }
}

/// The body of an answer. An error in it makes the server close the connection.
type Body = UnsyncBoxBody<Bytes, io::Error>;

struct Service {
    provider: SimulatedProvider,
    recording: Option<Recording>,
    shutdown: CancellationToken,
}

/// Answers connections of `listener` until `shutdown` is cancelled; answers that are under way break off then.
///
/// A client may close its side of a connection when it has sent its request, and is answered nevertheless.
pub async fn serve(
    listener: TcpListener,
    provider: SimulatedProvider,
    recording: Option<Recording>,
    shutdown: CancellationToken,
) {
    let service = Arc::new(Service {
        provider,
        recording,
        shutdown: shutdown.clone(),
    });
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, service.clone()));
            }
            Err(error) if is_of_the_connection(&error) => {}
            Err(_) => tokio::time::sleep(ACCEPT_WAIT).await,
        }
    }
    connections.close();
    connections.wait().await;
}

/// Whether only the connection failed that was about to be accepted.
fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

/// Answers all requests of one connection.
async fn serve_connection(stream: TcpStream, service: Arc<Service>) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().half_close(true);
    let shutdown = service.shutdown.clone();
    let answer = service_fn(move |request| answer(service.clone(), request));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
    // How a connection ends is the client's affair.
    let _ = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}

async fn answer(
    service: Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let at = service.provider.now();
    let collected = Limited::new(body, BODY_BYTES_MAX).collect().await;
    // What is larger is not read to its end; one byte too many says the same.
    let body = match collected {
        Ok(collected) => collected.to_bytes(),
        Err(error) if !error.is::<LengthLimitError>() => {
            // The client ended its body early, or it is no HTTP.
            let mut response = Response::new(whole(Bytes::new()));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return Ok(response);
        }
        Err(_) => {
            let exchange = service
                .provider
                .with(|simulator| simulator.too_large(at, head.uri.path(), &head.headers));
            return Ok(respond(&service, Instant::now(), exchange));
        }
    };
    if let Some(recording) = &service.recording {
        recording.write(&line(at, head.uri.path(), &head.headers, &body));
    }
    let start = Instant::now();
    let exchange = service.provider.exchange(Request::from_parts(head, body));
    tokio::select! {
        () = tokio::time::sleep_until(start + exchange.head_after) => {}
        () = service.shutdown.cancelled() => {}
    }
    Ok(respond(&service, start, exchange))
}

fn respond(service: &Service, start: Instant, exchange: Exchange) -> Response<Body> {
    // A complete body is sent with its length.
    let is_whole = exchange.pieces.len() == 1
        && exchange.ending == Ending::Complete
        && exchange.finished_after() <= exchange.head_after;
    let body = if is_whole {
        let piece = exchange.pieces.into_iter().next();
        whole(piece.map_or_else(Bytes::new, |piece| piece.bytes))
    } else {
        paced(
            start,
            exchange.pieces,
            exchange.ending,
            service.shutdown.clone(),
        )
    };
    let mut response = Response::new(body);
    *response.status_mut() = exchange.status;
    *response.headers_mut() = exchange.headers;
    response
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// The pieces, each at its time.
fn paced(start: Instant, pieces: Vec<Piece>, ending: Ending, shutdown: CancellationToken) -> Body {
    let state = (pieces.into_iter(), Some(ending), shutdown);
    let frames = stream::unfold(state, move |state| async move {
        let (mut pieces, mut ending, shutdown) = state;
        let cut = || io::Error::new(io::ErrorKind::ConnectionReset, "the connection is cut");
        if let Some(piece) = pieces.next() {
            let at = start + piece.after;
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = shutdown.cancelled() => return Some((Err(cut()), (Vec::new().into_iter(), None, shutdown))),
            }
            return Some((Ok(Frame::data(piece.bytes)), (pieces, ending, shutdown)));
        }
        match ending.take()? {
            Ending::Complete => None,
            Ending::Cut => {
                // Earlier chunks are sent first: the server flushes when the body is pending.
                tokio::time::sleep(CUT_AFTER).await;
                Some((Err(cut()), (pieces, None, shutdown)))
            }
            Ending::Stall => {
                shutdown.cancelled().await;
                Some((Err(cut()), (pieces, None, shutdown)))
            }
        }
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// One line of the recording.
fn line(at: Duration, path: &str, headers: &HeaderMap, body: &Bytes) -> String {
    let shown: Map<String, Value> = headers
        .iter()
        .filter(|(name, _)| {
            RECORDED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(RECORDED_PREFIX)
        })
        .filter_map(|(name, value)| Some((name.to_string(), json!(value.to_str().ok()?))))
        .collect();
    let plain = unpacked(headers, body.clone()).unwrap_or_default();
    let mut line = format!(
        "{{\"at_ms\":{},\"path\":{},\"headers\":{},\"body\":",
        at.as_millis(),
        json!(path),
        Value::Object(shown)
    );
    match ByteString::try_from(plain) {
        Ok(text) if text.is_empty() => line.push_str("null"),
        Ok(text) => match Raw::parse(text.clone()) {
            // Line breaks are between the parts of JSON only: in strings they are escaped.
            Ok(raw) => line.push_str(&raw.as_str().replace(['\n', '\r'], " ")),
            Err(_) => write_string(&text, &mut line),
        },
        Err(_) => line.push_str("null"),
    }
    line.push_str("}\n");
    line
}
