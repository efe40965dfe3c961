//! Answers of providers, read along.

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::StreamExt as _;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use throughline_providers::decode::{DecodeError, Decoder, read_whole};
use throughline_providers::reply::Reply;
use throughline_providers::transport::BodyStream;
use throughline_transcript::wire::Wire;

use crate::body;
use crate::tap::Seen;

/// The answer of a provider, as far as it came; an error holds what of it counts.
pub(super) fn read_along(
    wire: Wire,
    headers: &HeaderMap,
    seen: &Seen,
    bytes_max: usize,
) -> Option<Result<Reply, Reply>> {
    let chunks = seen.chunks.as_ref()?;
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
