//! Answers of providers on their way to the client: what is done when they begin and end.

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::StreamExt as _;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Response};
use throughline::core::Waits;
use throughline_providers::decode::{DecodeError, Decoder, read_whole};
use throughline_providers::reply::Reply;
use throughline_providers::transport::BodyStream;
use throughline_transcript::wire::Wire;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::record::Record;
use crate::Proxy;
use crate::body::{self, Body};
use crate::headers;
use crate::tap::{AnswerCopy, End, Listener, Tap, TapLimits};
use crate::tracked::Flight;

/// An answer that no session needs.
pub(super) struct ForwardedAnswer {
    record: Record,
    /// While the conversation waits for the answer to begin, updates wait too.
    waits: Option<Waits>,
}

impl ForwardedAnswer {
    pub(super) fn new(record: Record, waits: Option<Waits>) -> Self {
        Self { record, waits }
    }
}

impl Listener for ForwardedAnswer {
    fn begins(&mut self) {
        drop(self.waits.take());
    }

    fn ends(mut self: Box<Self>, copy: AnswerCopy) {
        self.record.answer_ends(copy.end, copy.bytes, None);
    }
}

/// The answer to a request of a session.
pub(super) struct SessionAnswer {
    pub(super) forwarded: ForwardedAnswer,
    pub(super) flight: Flight,
    pub(super) wire: Wire,
    pub(super) headers: HeaderMap,
    /// The longest answer that is read, unpacked, bytes.
    pub(super) bytes_max: usize,
    pub(super) tasks: TaskTracker,
}

impl Listener for SessionAnswer {
    fn begins(&mut self) {
        self.forwarded.begins();
    }

    fn ends(mut self: Box<Self>, copy: AnswerCopy) {
        drop(self.forwarded.waits.take());
        // The connection flushes the end of the answer only after this.
        match Handle::try_current() {
            Ok(runtime) => {
                let tasks = self.tasks.clone();
                drop(tasks.spawn_on(async move { self.read(&copy) }, &runtime));
            }
            Err(_) => self.read(&copy),
        }
    }
}

impl SessionAnswer {
    fn read(self: Box<Self>, copy: &AnswerCopy) {
        let read = read(self.wire, &self.headers, copy, self.bytes_max);
        let reply = read
            .as_ref()
            .map(|read| read.as_ref().unwrap_or_else(|partial| partial));
        let usage = reply.and_then(|reply| Some(reply.usage?.billed));
        let mut record = self.forwarded.record;
        record.answer_ends(copy.end, copy.bytes, usage);
        match read {
            Some(Ok(reply)) if copy.end == End::Whole => self.flight.complete(&reply),
            Some(Ok(partial) | Err(partial)) => self.flight.break_off(Some(&partial)),
            None => self.flight.break_off(None),
        }
    }
}

impl Proxy {
    /// The response to the client: the head of an answer, and its chunks as they come.
    pub(super) fn respond(
        &self,
        head: &http::response::Parts,
        headers: HeaderMap,
        chunks: BodyStream,
        copy_bytes_max: usize,
        listener: Box<dyn Listener>,
    ) -> Response<Body> {
        let limits = TapLimits {
            copy_bytes_max,
            idle_wait: self.shared.config.limits.idle_wait,
        };
        let announced = headers::content_length(&head.headers);
        let tap = Tap::new(chunks, announced, limits, listener);
        let mut response = Response::new(Body::passing(tap));
        *response.status_mut() = head.status;
        *response.headers_mut() = headers;
        response
    }
}

/// Decodes an answer up to where it ended; an error holds the part that counts. `None` if it cannot be read.
fn read(
    wire: Wire,
    headers: &HeaderMap,
    copy: &AnswerCopy,
    bytes_max: usize,
) -> Option<Result<Reply, Reply>> {
    let chunks = copy.chunks.as_ref()?;
    let is_packed = headers.contains_key(CONTENT_ENCODING);
    let is_stream = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let unpacked;
    let chunks: &[Bytes] = if is_packed {
        let whole = Bytes::from(chunks.concat());
        unpacked = [body::unpacked(headers, &whole, bytes_max)?];
        &unpacked
    } else {
        chunks
    };
    if !is_stream {
        let whole = ByteString::try_from(Bytes::from(chunks.concat())).ok()?;
        return read_whole(wire, &whole).ok().map(Ok);
    }
    let mut decoder = Decoder::new(wire);
    let mut events = Vec::new();
    for chunk in chunks {
        events.clear();
        if let Err(error) = decoder.push(chunk, &mut events) {
            return Some(Err(partial(&decoder, &error)));
        }
    }
    Some(decoder.finish().map_err(|error| partial(&decoder, &error)))
}

fn partial(decoder: &Decoder, error: &DecodeError) -> Reply {
    tracing::debug!(%error, "an answer was not whole");
    decoder.partial()
}

/// Reads a body of at most `bytes_max`, nothing if it is longer, and gives all of it back.
pub(super) async fn short(mut chunks: BodyStream, bytes_max: usize) -> (Option<Bytes>, BodyStream) {
    let mut begun = Vec::new();
    let mut bytes = 0;
    let mut is_whole = false;
    while bytes <= bytes_max {
        match chunks.next().await {
            Some(Ok(chunk)) => {
                bytes += chunk.len();
                begun.push(Ok(chunk));
            }
            Some(Err(error)) => {
                begun.push(Err(error));
                break;
            }
            None => {
                is_whole = true;
                break;
            }
        }
    }
    let read = is_whole.then(|| {
        let parts: Vec<Bytes> = begun.iter().flatten().cloned().collect();
        Bytes::from(parts.concat())
    });
    let begun = futures_util::stream::iter(begun);
    let all: BodyStream = if is_whole {
        Box::pin(begun)
    } else {
        Box::pin(begun.chain(chunks))
    };
    (read, all)
}
