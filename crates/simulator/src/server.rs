//! The simulator behind a socket, in real time: for programs that are not written in Rust, and for trials by hand.

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use bytestring::ByteString;
use futures::stream;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Map, Value, json};
use throughline_transcript::json::{Raw, write_string};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Ending, Exchange, Piece};
use crate::simulator::{BODY_BYTES_MAX, unpacked};
use crate::transport::SimulatedProvider;

/// Headers that are recorded: what is not known to be harmless may be a credential of some gateway.
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
/// Beginning of the names with which SDKs say what they are; they are recorded too.
const RECORDED_PREFIX: &str = "x-stainless-";

/// Between the last bytes and the cut.
const CUT_AFTER: Duration = Duration::from_millis(20);

/// Where received requests are written to: one JSON object a line, `{"at_ms", "path", "headers", "body"}`.
///
/// The body stands there as JSON, byte for byte but for line breaks between its parts, which become spaces. A body that
/// is no JSON stands there as a string, or as null if it is no text. Of the headers those stand
/// there that are known to hold no credential.
pub struct Recording(Mutex<Box<dyn Write + Send>>);

impl Recording {
    /// Writes to this.
    #[must_use]
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(writer)))
    }

    fn write(&self, line: &str) -> io::Result<()> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(line.as_bytes())?;
        writer.flush()
    }
}

/// Why the server ended before it was told to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Connections cannot be accepted.
    #[error("cannot accept connections: {0}")]
    Accept(#[source] io::Error),
    /// The recording cannot be written.
    #[error("cannot write the recording: {0}")]
    Record(#[source] io::Error),
}

struct Served {
    provider: SimulatedProvider,
    recording: Option<Recording>,
    recording_error: Mutex<Option<io::Error>>,
    shutdown: CancellationToken,
}

/// Answers connections of `listener` until `shutdown` is cancelled; answers that are under way break off then.
///
/// # Errors
/// When connections cannot be accepted, or the recording cannot be written.
pub async fn serve(
    listener: TcpListener,
    provider: SimulatedProvider,
    recording: Option<Recording>,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let served = Arc::new(Served {
        provider,
        recording,
        recording_error: Mutex::new(None),
        shutdown: shutdown.child_token(),
    });
    let app = Router::new()
        .fallback(answer)
        .with_state(Arc::clone(&served));
    let told = served.shutdown.clone();
    axum::serve(listener, app)
        .with_graceful_shutdown(async move { told.cancelled().await })
        .await
        .map_err(ServeError::Accept)?;
    let error = served
        .recording_error
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    error.map_or(Ok(()), |error| Err(ServeError::Record(error)))
}

async fn answer(
    State(served): State<Arc<Served>>,
    request: Request,
) -> Result<Response, Infallible> {
    let (head, body) = request.into_parts();
    let at = served.provider.now();
    let collected = Limited::new(body, BODY_BYTES_MAX).collect().await;
    // What is larger is not read to its end; one byte too many says the same.
    let body = match collected {
        Ok(collected) => collected.to_bytes(),
        Err(error) if !error.is::<LengthLimitError>() => {
            // The client ended its body early, or it is no HTTP.
            return Ok(StatusCode::BAD_REQUEST.into_response());
        }
        Err(_) => {
            let exchange = served
                .provider
                .with(|simulator| simulator.too_large(at, head.uri.path(), &head.headers));
            return Ok(respond(&served, Instant::now(), exchange));
        }
    };
    if let Some(recording) = &served.recording {
        let line = line(at, head.uri.path(), &head.headers, &body);
        if let Err(error) = recording.write(&line) {
            served
                .recording_error
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
            served.shutdown.cancel();
        }
    }
    let start = Instant::now();
    let exchange = served
        .provider
        .exchange(http::Request::from_parts(head, body));
    tokio::select! {
        () = tokio::time::sleep_until(start + exchange.head_after) => {}
        () = served.shutdown.cancelled() => {}
    }
    Ok(respond(&served, start, exchange))
}

fn respond(served: &Arc<Served>, start: Instant, exchange: Exchange) -> Response {
    // A body that is there as a whole is sent with its length.
    let whole = exchange.pieces.len() == 1
        && exchange.ending == Ending::Complete
        && exchange.finished_after() <= exchange.head_after;
    let body = if whole {
        Body::from(
            exchange
                .pieces
                .into_iter()
                .next()
                .map_or_else(Bytes::new, |piece| piece.bytes),
        )
    } else {
        paced(
            start,
            exchange.pieces,
            exchange.ending,
            served.shutdown.clone(),
        )
    };
    let mut response = Response::new(body);
    *response.status_mut() = exchange.status;
    *response.headers_mut() = exchange.headers;
    response
}

/// The pieces, each at its time. An error in the body makes the server close the connection.
fn paced(start: Instant, pieces: Vec<Piece>, ending: Ending, shutdown: CancellationToken) -> Body {
    let state = (pieces.into_iter(), Some(ending), shutdown);
    Body::from_stream(stream::unfold(state, move |state| async move {
        let (mut pieces, mut ending, shutdown) = state;
        let cut = || io::Error::new(io::ErrorKind::ConnectionReset, "the connection is cut");
        if let Some(piece) = pieces.next() {
            let at = start + piece.after;
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = shutdown.cancelled() => return Some((Err(cut()), (Vec::new().into_iter(), None, shutdown))),
            }
            return Some((Ok(piece.bytes), (pieces, ending, shutdown)));
        }
        match ending.take()? {
            Ending::Complete => None,
            Ending::Cut => {
                // What came before goes out first: the server sends when the body has nothing to give.
                tokio::time::sleep(CUT_AFTER).await;
                Some((Err(cut()), (pieces, None, shutdown)))
            }
            Ending::Stall => {
                shutdown.cancelled().await;
                Some((Err(cut()), (pieces, None, shutdown)))
            }
        }
    }))
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
            // Line breaks stand between the parts of JSON only: in strings they are escaped.
            Ok(raw) => line.push_str(&raw.as_str().replace(['\n', '\r'], " ")),
            Err(_) => write_string(&text, &mut line),
        },
        Err(_) => line.push_str("null"),
    }
    line.push_str("}\n");
    line
}
