//! Bodies that are larger than anybody would keep in memory.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use throughline_providers::transport::{BodyStream, Transport, TransportError};
use throughline_proxy::{Config, Proxy};
use throughline_store::MemoryStore;

use crate::world::config;

const CHUNK: &[u8] = &[7; 1024 * 1024];

/// An upstream that takes a body in, chunk by chunk, and keeps none of it.
#[derive(Default)]
struct Upstream {
    taken: Arc<AtomicUsize>,
    headers: Mutex<HeaderMap>,
    /// How the body ended, and how many bytes it had.
    ended: Mutex<Option<(bool, usize)>>,
}

#[async_trait]
impl Transport for Upstream {
    async fn call(&self, _: Request<Bytes>) -> Result<Response<BodyStream>, TransportError> {
        panic!("the body was collected");
    }

    async fn call_streamed(
        &self,
        request: Request<BodyStream>,
    ) -> Result<Response<BodyStream>, TransportError> {
        *self.headers.lock().unwrap() = request.headers().clone();
        let mut body = request.into_body();
        let mut bytes = 0;
        while let Some(chunk) = body.next().await {
            match chunk {
                Ok(chunk) => bytes += chunk.len(),
                Err(error) => {
                    *self.ended.lock().unwrap() = Some((false, bytes));
                    return Err(error);
                }
            }
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        *self.ended.lock().unwrap() = Some((true, bytes));
        let answer = futures_util::stream::iter([Ok(Bytes::from_static(b"{\"id\":\"file_1\"}"))]);
        Ok(Response::new(Box::pin(answer)))
    }
}

/// A client that sends this many chunks, each when the one before has reached the upstream, and then ends or aborts.
struct Sending {
    chunks: usize,
    sent: usize,
    taken: Arc<AtomicUsize>,
    breaks_off: bool,
}

impl Body for Sending {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        assert_eq!(
            self.taken.load(Ordering::Relaxed),
            self.sent,
            "a chunk is kept back"
        );
        if self.sent == self.chunks {
            let broken = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            return Poll::Ready(self.breaks_off.then(|| Err(broken())));
        }
        self.sent += 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(CHUNK)))))
    }
}

async fn sent(
    config: Config,
    chunks: usize,
    announced: Option<usize>,
    breaks_off: bool,
) -> (StatusCode, String, Arc<Upstream>) {
    let upstream = Arc::new(Upstream::default());
    let transport = Arc::clone(&upstream) as Arc<dyn Transport>;
    let proxy = Proxy::start(config, Arc::new(MemoryStore::new()), transport)
        .await
        .unwrap();
    let mut request = Request::post("/v1/files")
        .header("x-api-key", "k")
        .header("anthropic-version", "2023-06-01")
        .body(Sending {
            chunks,
            sent: 0,
            taken: Arc::clone(&upstream.taken),
            breaks_off,
        })
        .unwrap();
    if let Some(bytes) = announced {
        request.headers_mut().insert("content-length", bytes.into());
    }
    let (head, body) = proxy.answer(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    (head.status, text, upstream)
}

#[tokio::test]
async fn files_are_passed_on_chunk_by_chunk() {
    // 400 MB, of which never more than one chunk is there.
    let bytes = 400 * CHUNK.len();
    for announced in [None, Some(bytes)] {
        let (status, text, upstream) = sent(config(), 400, announced, false).await;
        assert_eq!(
            (status, text.as_str()),
            (StatusCode::OK, "{\"id\":\"file_1\"}")
        );
        assert_eq!(*upstream.ended.lock().unwrap(), Some((true, bytes)));
        let headers = upstream.headers.lock().unwrap();
        let length = headers.get("content-length");
        let length = length.map(|length| length.to_str().unwrap().parse().unwrap());
        assert_eq!(length, announced);
        assert_eq!(headers.get("x-api-key").unwrap(), "k");
    }
}

#[tokio::test]
async fn files_that_are_too_large_or_broken_off_end_as_that() {
    let mut config = config();
    // Of files, sixteen times as much may come.
    config.limits.body_bytes_max = CHUNK.len() / 4;
    let (status, text, upstream) = sent(config.clone(), 5, None, false).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{text}");
    assert!(text.contains("request_too_large"), "{text}");
    assert_eq!(
        *upstream.ended.lock().unwrap(),
        Some((false, 4 * CHUNK.len()))
    );
    // What is announced as too large is not begun.
    let announced = Some(5 * CHUNK.len());
    let (status, _, upstream) = sent(config.clone(), 5, announced, false).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(*upstream.ended.lock().unwrap(), None);
    let (status, text, upstream) = sent(config, 3, None, true).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    assert!(text.contains("the request body ended early"), "{text}");
    assert_eq!(
        *upstream.ended.lock().unwrap(),
        Some((false, 3 * CHUNK.len()))
    );
}
