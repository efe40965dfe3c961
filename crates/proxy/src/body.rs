//! Bodies: requests that are read whole, answers that are passed on chunk by chunk.

use std::io::Read;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio_util::task::AbortOnDropHandle;

use crate::tap::Tap;

/// The body of an answer.
#[derive(Debug)]
pub struct Body(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Option<Bytes>),
    Passing(Box<Tap>),
}

/// Why an answer was cut off.
#[derive(Debug, thiserror::Error)]
#[error("the upstream cut the answer off")]
pub struct BodyAborted;

impl Body {
    /// A body that is there.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self(Inner::Whole((!bytes.is_empty()).then_some(bytes)))
    }

    /// A body that comes from upstream.
    pub(crate) fn passing(tap: Tap) -> Self {
        Self(Inner::Passing(Box::new(tap)))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        match &mut self.get_mut().0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Passing(tap) => tap
                .poll_chunk(context)
                .map(|chunk| chunk.map(|chunk| chunk.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Inner::Passing(_) => SizeHint::default(),
        }
    }
}

/// Why a request body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// It is larger than may be.
    TooLarge,
    /// The client stopped sending it.
    BrokenOff,
}

/// How long a request may stay silent.
pub(crate) const READ_WAIT: Duration = Duration::from_secs(30);

/// How much is read of a body that is too large, in bytes.
const DROPPED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Reads a whole body of at most `bytes_max`; `announced` is its length if the sender has announced one.
///
/// A task of its own does it, which ends with the future that waits for it. What takes a chunk wakes the connection's task
/// for the next one; where that is the task that takes it, the runtime holds it for one that yields, and wakes another
/// thread to take it over: two switches of threads for each chunk.
pub(crate) async fn read<B>(body: B, announced: usize, bytes_max: usize) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let reading = tokio::spawn(whole(body, announced, bytes_max));
    // It ends without a body only with the program.
    let read = AbortOnDropHandle::new(reading).await;
    read.unwrap_or(Err(ReadError::BrokenOff))
}

async fn whole<B>(body: B, announced: usize, bytes_max: usize) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes>,
{
    let mut body = pin!(body);
    if announced > bytes_max {
        drop_rest(body).await;
        return Err(ReadError::TooLarge);
    }
    let mut whole = BytesMut::new();
    loop {
        let frame = tokio::time::timeout(READ_WAIT, body.frame()).await;
        let Some(frame) = frame.map_err(|_| ReadError::BrokenOff)? else {
            return Ok(whole.freeze());
        };
        let Ok(data) = frame.map_err(|_| ReadError::BrokenOff)?.into_data() else {
            continue;
        };
        if whole.len() + data.len() > bytes_max {
            drop_rest(body).await;
            return Err(ReadError::TooLarge);
        }
        if whole.is_empty() {
            if data.len() >= announced && body.is_end_stream() {
                // All of it came at once.
                return Ok(data);
            }
            whole.reserve(announced.min(bytes_max));
        }
        whole.extend_from_slice(&data);
    }
}

/// Takes in what is left of a body, within limits: a client that is still sending when the connection is closed never reads
/// why.
async fn drop_rest<B>(mut body: Pin<&mut B>)
where
    B: HttpBody<Data = Bytes>,
{
    let dropping = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DROPPED_BYTES_MAX {
                break;
            }
        }
    };
    // Slower clients are cut off.
    let _ = tokio::time::timeout(READ_WAIT, dropping).await;
}

/// What a body says, without its compression. `None`: it is compressed in a way that is not known here, is damaged, or
/// is larger than may be.
pub(crate) fn unpacked(headers: &HeaderMap, body: &Bytes, bytes_max: usize) -> Option<Bytes> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let coding = match codings.next() {
        Some(coding) => coding.to_str().ok()?.trim().to_ascii_lowercase(),
        None => return Some(body.clone()),
    };
    if codings.next().is_some() {
        return None;
    }
    let take = |reader: &mut dyn Read| {
        let mut out = Vec::new();
        let read = reader
            .take(bytes_max as u64 + 1)
            .read_to_end(&mut out)
            .ok()?;
        (read <= bytes_max).then(|| Bytes::from(out))
    };
    match coding.as_str() {
        "" | "identity" => Some(body.clone()),
        "gzip" | "x-gzip" => take(&mut MultiGzDecoder::new(body.as_ref())),
        "deflate" => take(&mut ZlibDecoder::new(body.as_ref())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::HeaderValue;

    use super::*;

    #[test]
    fn bodies_are_unpacked_up_to_a_limit() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&[b'x'; 1000]).unwrap();
        let packed = Bytes::from(encoder.finish().unwrap());
        let check = |coding: Option<&'static str>, body: &Bytes, max: usize| {
            let mut headers = HeaderMap::new();
            if let Some(coding) = coding {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
            unpacked(&headers, body, max).map(|body| body.len())
        };
        assert_eq!(check(Some("gzip"), &packed, 1000), Some(1000));
        assert_eq!(check(Some("gzip"), &packed, 999), None);
        assert_eq!(check(Some("gzip"), &packed.slice(..20), 1000), None);
        assert_eq!(check(Some("br"), &packed, 1000), None);
        assert_eq!(check(None, &packed, 1), Some(packed.len()));
    }
}
