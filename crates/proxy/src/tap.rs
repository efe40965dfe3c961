//! An answer on its way to the client, and what is told when it ends.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use throughline_providers::transport::BodyStream;
use tokio::time::{Instant, Sleep};

use crate::body::BrokenOff;

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The upstream sent all of it.
    Whole,
    /// The upstream broke it off, or said nothing for too long.
    BrokenOff,
    /// The client hung up.
    HungUp,
}

/// What an answer was, as far as it came.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) ended: Ended,
    /// How much of it came.
    pub(crate) bytes: usize,
    /// Everything that came; nothing if it was more than is read along.
    pub(crate) chunks: Option<Vec<Bytes>>,
}

type Hook = Box<dyn FnOnce(Seen) + Send>;

/// Passes chunks on as they come, keeps a copy, and tells how it ended: once, however that is.
pub(crate) struct Tap {
    chunks: BodyStream,
    seen: Vec<Bytes>,
    seen_bytes: usize,
    /// How many the upstream has announced.
    announced: Option<usize>,
    bytes_max: usize,
    idle_wait: Duration,
    idle: std::pin::Pin<Box<Sleep>>,
    /// Called at the first chunk.
    begun: Option<Box<dyn FnOnce() + Send>>,
    hook: Option<Hook>,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap")
            .field("seen_bytes", &self.seen_bytes)
            .finish_non_exhaustive()
    }
}

impl Tap {
    pub(crate) fn new(
        chunks: BodyStream,
        bytes_max: usize,
        idle_wait: Duration,
        begun: impl FnOnce() + Send + 'static,
        hook: impl FnOnce(Seen) + Send + 'static,
    ) -> Self {
        Self {
            chunks,
            seen: Vec::new(),
            seen_bytes: 0,
            announced: None,
            bytes_max,
            idle_wait,
            idle: Box::pin(tokio::time::sleep(idle_wait)),
            begun: Some(Box::new(begun)),
            hook: Some(Box::new(hook)),
        }
    }

    /// The upstream has announced so many bytes: a server asks for no more once it has sent them.
    pub(crate) fn announce(&mut self, bytes: usize) {
        self.announced = Some(bytes);
    }

    pub(crate) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        if self.hook.is_none() {
            // It has ended.
            return Poll::Ready(None);
        }
        let chunk = match self.chunks.poll_next_unpin(context) {
            Poll::Ready(chunk) => chunk,
            Poll::Pending => {
                if self.idle.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.end(Ended::BrokenOff);
                return Poll::Ready(Some(Err(BrokenOff)));
            }
        };
        match chunk {
            Some(Ok(chunk)) => {
                if let Some(begun) = self.begun.take() {
                    begun();
                }
                self.idle.as_mut().reset(Instant::now() + self.idle_wait);
                self.seen_bytes = self.seen_bytes.saturating_add(chunk.len());
                if self.seen_bytes <= self.bytes_max {
                    self.seen.push(chunk.clone());
                } else {
                    self.seen = Vec::new();
                }
                Poll::Ready(Some(Ok(chunk)))
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "an answer broke off");
                self.end(Ended::BrokenOff);
                Poll::Ready(Some(Err(BrokenOff)))
            }
            None => {
                self.end(Ended::Whole);
                Poll::Ready(None)
            }
        }
    }

    fn end(&mut self, ended: Ended) {
        drop(self.begun.take());
        if let Some(hook) = self.hook.take() {
            let chunks = std::mem::take(&mut self.seen);
            hook(Seen {
                ended,
                bytes: self.seen_bytes,
                chunks: (self.seen_bytes <= self.bytes_max).then_some(chunks),
            });
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.end(if self.announced == Some(self.seen_bytes) {
            Ended::Whole
        } else {
            Ended::HungUp
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::stream;
    use http_body_util::BodyExt as _;
    use throughline_providers::transport::{TransportError, TransportErrorKind};

    use super::*;
    use crate::body::Body;

    type Chunk = Result<Bytes, TransportError>;

    fn tapped(chunks: BodyStream, bytes_max: usize) -> (Body, Arc<Mutex<Vec<String>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let (begun, ended) = (Arc::clone(&told), Arc::clone(&told));
        let tap = Tap::new(
            chunks,
            bytes_max,
            Duration::from_secs(5),
            move || begun.lock().unwrap().push("begun".to_owned()),
            move |seen| {
                let text = seen.chunks.map(|chunks| chunks.concat());
                let text = text.map(|text| String::from_utf8(text).unwrap());
                ended
                    .lock()
                    .unwrap()
                    .push(format!("{:?} {text:?}", seen.ended));
            },
        );
        (Body::passing(tap), told)
    }

    fn chunks(list: Vec<Chunk>) -> BodyStream {
        Box::pin(stream::iter(list))
    }

    #[tokio::test]
    async fn a_whole_answer_is_told_once() {
        let list = vec![Ok("ab".into()), Ok("c".into())];
        let (body, told) = tapped(chunks(list), 10);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        assert_eq!(*told.lock().unwrap(), ["begun", "Whole Some(\"abc\")"]);
    }

    #[tokio::test]
    async fn a_break_reaches_the_client_as_one() {
        let broken = TransportError::new(TransportErrorKind::Broken, "x");
        let (mut body, told) = tapped(chunks(vec![Ok("ab".into()), Err(broken)]), 10);
        assert!(body.frame().await.unwrap().is_ok());
        assert!(body.frame().await.unwrap().is_err());
        assert!(body.frame().await.is_none());
        drop(body);
        assert_eq!(*told.lock().unwrap(), ["begun", "BrokenOff Some(\"ab\")"]);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_a_break() {
        let (body, told) = tapped(Box::pin(stream::pending::<Chunk>()), 10);
        assert!(body.collect().await.is_err());
        assert_eq!(*told.lock().unwrap(), ["BrokenOff Some(\"\")"]);
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_is_told_as_that() {
        let (mut body, told) = tapped(chunks(vec![Ok("ab".into()), Ok("c".into())]), 10);
        assert!(body.frame().await.unwrap().is_ok());
        drop(body);
        assert_eq!(*told.lock().unwrap(), ["begun", "HungUp Some(\"ab\")"]);
    }

    #[tokio::test]
    async fn what_was_announced_is_whole_once_it_was_asked_for() {
        for (announced, ended) in [(2, "HungUp"), (3, "Whole"), (4, "HungUp")] {
            let (mut body, told) = tapped(chunks(vec![Ok("abc".into()), Ok("d".into())]), 10);
            body.announce(announced);
            assert!(body.frame().await.unwrap().is_ok());
            drop(body);
            let expected = format!("{ended} Some(\"abc\")");
            assert_eq!(*told.lock().unwrap(), ["begun", &expected]);
        }
    }

    #[tokio::test]
    async fn what_is_too_long_is_passed_on_all_the_same() {
        let (body, told) = tapped(chunks(vec![Ok("abc".into()), Ok("d".into())]), 3);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abcd");
        assert_eq!(*told.lock().unwrap(), ["begun", "Whole None"]);
    }
}
