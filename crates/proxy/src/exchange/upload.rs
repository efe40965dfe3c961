//! A body that is forwarded while it is read: files, which are too large to be kept in memory.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body::Body as HttpBody;
use http_body_util::BodyExt as _;
use throughline_providers::transport::{BodyStream, TransportError, TransportErrorKind};
use tokio::time::Instant;

use crate::body::{READ_WAIT, ReadError};

/// How much of a body has arrived.
#[derive(Clone)]
pub(super) struct Upload(Arc<Mutex<Progress>>);

struct Progress {
    bytes: usize,
    /// When the last chunk arrived.
    at: Instant,
    /// Why no more of it is forwarded.
    unread: Option<ReadError>,
}

impl Upload {
    /// The body as a stream of at most `bytes_max`, and its progress.
    pub(super) fn begin<B>(body: B, bytes_max: usize) -> (BodyStream, Self)
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let upload = Self(Arc::new(Mutex::new(Progress {
            bytes: 0,
            at: Instant::now(),
            unread: None,
        })));
        let state = Some((Box::pin(body), upload.clone()));
        let chunks = stream::unfold(state, move |state| async move {
            let (mut body, upload) = state?;
            match upload.next(&mut body, bytes_max).await {
                Ok(Some(chunk)) => Some((Ok(chunk), Some((body, upload)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        (Box::pin(chunks), upload)
    }

    async fn next<B>(
        &self,
        body: &mut Pin<Box<B>>,
        bytes_max: usize,
    ) -> Result<Option<Bytes>, TransportError>
    where
        B: HttpBody<Data = Bytes>,
    {
        loop {
            let frame = match tokio::time::timeout(READ_WAIT, body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) | Err(_) => return Err(self.ends(ReadError::BrokenOff)),
            };
            let Ok(chunk) = frame.into_data() else {
                continue;
            };
            let mut progress = self.progress();
            progress.bytes += chunk.len();
            progress.at = Instant::now();
            if progress.bytes > bytes_max {
                drop(progress);
                return Err(self.ends(ReadError::TooLarge));
            }
            return Ok(Some(chunk));
        }
    }

    fn ends(&self, why: ReadError) -> TransportError {
        self.progress().unread = Some(why);
        TransportError::new(
            TransportErrorKind::Broken,
            "the body of the request ended early",
        )
    }

    /// How much of it has arrived.
    pub(super) fn bytes(&self) -> usize {
        self.progress().bytes
    }

    /// Why not all of it was forwarded, if it was not.
    pub(super) fn unread(&self) -> Option<ReadError> {
        self.progress().unread
    }

    /// Returns when none of it has arrived for `wait`.
    pub(super) async fn stalled(&self, wait: Duration) {
        loop {
            let due = self.progress().at + wait;
            if due <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
