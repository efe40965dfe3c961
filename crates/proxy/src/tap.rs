//! An answer on its way to the client: chunks are forwarded, a copy is kept, and a listener is told how it ended.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use throughline_providers::transport::BodyStream;
use tokio::time::{Instant, Sleep};

use crate::body::BodyAborted;

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The upstream sent all of it.
    Whole,
    /// The upstream cut it off, or sent nothing for too long.
    BrokenOff,
    /// The client hung up.
    HungUp,
}

impl End {
    /// Its code in logs and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::BrokenOff => "broken-off",
            Self::HungUp => "hung-up",
        }
    }
}

/// The copy of an answer, up to where it ended.
#[derive(Debug)]
pub(crate) struct AnswerCopy {
    pub(crate) end: End,
    /// Bytes of the answer.
    pub(crate) bytes: usize,
    /// The answer; none if it was longer than a copy may be.
    pub(crate) chunks: Option<Vec<Bytes>>,
}

/// Is told about an answer as it passes.
pub(crate) trait Listener: Send {
    /// The first chunk has arrived.
    fn begins(&mut self) {}
    /// The answer has ended. This is called once, also where the answer never began.
    fn ends(self: Box<Self>, copy: AnswerCopy);
}

/// Limits of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TapLimits {
    /// The longest copy.
    pub(crate) copy_bytes_max: usize,
    /// How long the upstream may send nothing.
    pub(crate) idle_wait: Duration,
}

/// A stream of chunks that is copied as it passes.
pub(crate) struct Tap {
    chunks: BodyStream,
    copy: Vec<Bytes>,
    bytes: usize,
    /// How many bytes the upstream has announced.
    announced: Option<usize>,
    limits: TapLimits,
    idle: Pin<Box<Sleep>>,
    has_begun: bool,
    /// None once the answer has ended.
    listener: Option<Box<dyn Listener>>,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Tap {
    /// `announced`: the length of the answer, if the upstream has announced one. A server does not ask for the end of a
    /// body once it has sent that much.
    pub(crate) fn new(
        chunks: BodyStream,
        announced: Option<usize>,
        limits: TapLimits,
        listener: Box<dyn Listener>,
    ) -> Self {
        Self {
            chunks,
            copy: Vec::new(),
            bytes: 0,
            announced,
            limits,
            idle: Box::pin(tokio::time::sleep(limits.idle_wait)),
            has_begun: false,
            listener: Some(listener),
        }
    }

    pub(crate) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyAborted>>> {
        let Some(listener) = &mut self.listener else {
            return Poll::Ready(None);
        };
        let chunk = match self.chunks.poll_next_unpin(context) {
            Poll::Ready(chunk) => chunk,
            Poll::Pending if self.idle.as_mut().poll(context).is_pending() => return Poll::Pending,
            Poll::Pending => {
                self.end(End::BrokenOff);
                return Poll::Ready(Some(Err(BodyAborted)));
            }
        };
        match chunk {
            Some(Ok(chunk)) => {
                if !std::mem::replace(&mut self.has_begun, true) {
                    listener.begins();
                }
                let idle_until = Instant::now() + self.limits.idle_wait;
                self.idle.as_mut().reset(idle_until);
                self.bytes = self.bytes.saturating_add(chunk.len());
                if self.bytes <= self.limits.copy_bytes_max {
                    self.copy.push(chunk.clone());
                } else {
                    self.copy = Vec::new();
                }
                Poll::Ready(Some(Ok(chunk)))
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "an answer was cut off");
                self.end(End::BrokenOff);
                Poll::Ready(Some(Err(BodyAborted)))
            }
            None => {
                self.end(End::Whole);
                Poll::Ready(None)
            }
        }
    }

    fn end(&mut self, end: End) {
        if let Some(listener) = self.listener.take() {
            let chunks = std::mem::take(&mut self.copy);
            listener.ends(AnswerCopy {
                end,
                bytes: self.bytes,
                chunks: (self.bytes <= self.limits.copy_bytes_max).then_some(chunks),
            });
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.end(if self.announced == Some(self.bytes) {
            End::Whole
        } else {
            End::HungUp
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

    /// Writes down what it hears.
    #[derive(Clone, Default)]
    struct Notes(Arc<Mutex<Vec<String>>>);

    impl Notes {
        fn lock(&self) -> std::sync::LockResult<std::sync::MutexGuard<'_, Vec<String>>> {
            self.0.lock()
        }
    }

    impl Listener for Notes {
        fn begins(&mut self) {
            self.lock().unwrap().push("begun".to_owned());
        }

        fn ends(self: Box<Self>, copy: AnswerCopy) {
            let text = copy.chunks.map(|chunks| chunks.concat());
            let text = text.map(|text| String::from_utf8(text).unwrap());
            let note = format!("{:?} {text:?}", copy.end);
            self.lock().unwrap().push(note);
        }
    }

    fn tapped(chunks: BodyStream, copy_bytes_max: usize) -> (Body, Notes) {
        announced(chunks, copy_bytes_max, None)
    }

    fn announced(
        chunks: BodyStream,
        copy_bytes_max: usize,
        announced: Option<usize>,
    ) -> (Body, Notes) {
        let notes = Notes::default();
        let limits = TapLimits {
            copy_bytes_max,
            idle_wait: Duration::from_secs(5),
        };
        let tap = Tap::new(chunks, announced, limits, Box::new(notes.clone()));
        (Body::passing(tap), notes)
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
        for (bytes, ended) in [(2, "HungUp"), (3, "Whole"), (4, "HungUp")] {
            let list = vec![Ok("abc".into()), Ok("d".into())];
            let (mut body, told) = announced(chunks(list), 10, Some(bytes));
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
