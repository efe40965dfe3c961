//! One request and its answer, over as many attempts as the policy allows.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::StreamExt as _;
use http::{HeaderMap, Method, Uri};
use throughline_transcript::wire::Wire;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, warn};

use crate::call::Head;
use crate::credential::Credential;
use crate::decode::ANSWER_BYTES_MAX;
use crate::error::{CallError, Failure};
use crate::refused::in_head;
use crate::reply::Reply;
use crate::retry::{Backoff, RetryPolicy};
use crate::transport::{BodyStream, Transport, TransportError};

/// Longest error body that is read, bytes.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// A request that can be sent again.
#[derive(Clone)]
pub(crate) struct PreparedRequest {
    pub(crate) wire: Wire,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) asks_for_stream: bool,
}

/// Everything that a call needs.
pub(crate) struct Exchange {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) request: PreparedRequest,
    pub(crate) credential: Option<Credential>,
    pub(crate) policy: RetryPolicy,
    pub(crate) backoff: Backoff,
    pub(crate) cancel: CancellationToken,
    /// How long to wait for the head of an answer.
    pub(crate) response_timeout: Duration,
    /// The longest silence within the body.
    pub(crate) idle_timeout: Duration,
    pub(crate) span: Span,
}

/// What a body is read for: its limit depends on it.
#[derive(Clone, Copy)]
pub(crate) enum Whole {
    Answer,
    Error,
}

impl Exchange {
    pub(crate) fn wire(&self) -> Wire {
        self.request.wire
    }

    pub(crate) fn asks_for_stream(&self) -> bool {
        self.request.asks_for_stream
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.backoff.attempts()
    }

    pub(crate) fn restarts_broken_answers(&self) -> bool {
        self.policy.restarts_broken_answers
    }

    /// Sends the request until a successful answer begins.
    pub(crate) async fn begin(&mut self) -> Result<Head, CallError> {
        let span = self.span.clone();
        async {
            match self.attempt().await {
                Ok(head) => Ok(head),
                Err(error) => self.retry(error).await,
            }
        }
        .instrument(span)
        .await
    }

    /// After `error`, sends the request again if that may help and the policy allows it.
    pub(crate) async fn again(&mut self, error: CallError) -> Result<Head, CallError> {
        let span = self.span.clone();
        self.retry(error).instrument(span).await
    }

    async fn retry(&mut self, mut error: CallError) -> Result<Head, CallError> {
        loop {
            let wait = error
                .is_worth_retrying()
                .then(|| self.backoff.wait(error.retry_after))
                .flatten();
            let Some(wait) = wait else {
                return Err(self.numbered(error));
            };
            warn!(
                attempt = self.attempts(),
                wait_ms = wait.as_millis() as u64,
                class = ?error.class,
                status = error.status,
                code = error.report.code,
                request_id = error.report.request_id,
                "the call failed and is retried"
            );
            self.or_cancelled(sleep(wait)).await?;
            match self.attempt().await {
                Ok(head) => return Ok(head),
                Err(next) => error = next,
            }
        }
    }

    async fn attempt(&mut self) -> Result<Head, CallError> {
        self.backoff.begin_attempt();
        let sent = Instant::now();
        let mut request = http::Request::new(self.request.body.clone());
        *request.method_mut() = self.request.method.clone();
        *request.uri_mut() = self.request.uri.clone();
        *request.headers_mut() = self.request.headers.clone();
        let answered = timeout(self.response_timeout, self.transport.call(request));
        let response = match self.or_cancelled(answered).await? {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.transport_failed(error)),
            Err(_) => {
                let limit = self.response_timeout;
                return Err(CallError::new(Failure::Idle(limit), ""));
            }
        };
        let (head, mut body) = response.into_parts();
        let status = head.status.as_u16();
        debug!(
            status,
            attempt = self.attempts(),
            head_ms = sent.elapsed().as_millis() as u64,
            "answer begins"
        );
        if head.status.is_success() {
            return Ok(Head {
                headers: head.headers,
                body,
                sent,
            });
        }
        // An error counts by its status even if its body is cut off.
        let said = match self.read_body(&mut body, Whole::Error).await {
            Err(error) if error.failure == Failure::Cancelled => return Err(error),
            said => said.unwrap_or_default(),
        };
        let error = in_head(status, &head.headers, &said, SystemTime::now());
        Err(self.without_secrets(error))
    }

    /// The next chunk of a body; `None` at its end.
    pub(crate) async fn next_chunk(
        &self,
        body: &mut BodyStream,
    ) -> Result<Option<Bytes>, CallError> {
        match self
            .or_cancelled(timeout(self.idle_timeout, body.next()))
            .await?
        {
            Ok(Some(Ok(chunk))) => Ok(Some(chunk)),
            Ok(Some(Err(error))) => Err(self.transport_failed(error)),
            Ok(None) => Ok(None),
            Err(_) => Err(CallError::new(Failure::Idle(self.idle_timeout), "")),
        }
    }

    /// A whole body as text. Only the beginning of an error is read.
    pub(crate) async fn read_body(
        &self,
        body: &mut BodyStream,
        whole: Whole,
    ) -> Result<ByteString, CallError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next_chunk(body).await? {
            match whole {
                Whole::Answer if bytes.len() + chunk.len() > ANSWER_BYTES_MAX => {
                    return Err(CallError::new(Failure::TooLarge, ""));
                }
                Whole::Error if bytes.len() + chunk.len() > ERROR_BYTES_MAX => {
                    let room = ERROR_BYTES_MAX - bytes.len();
                    bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                    break;
                }
                _ => bytes.extend_from_slice(&chunk),
            }
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => String::from_utf8_lossy(error.as_bytes())
                .into_owned()
                .into(),
        })
    }

    /// Records how a call ended.
    pub(crate) fn log_end(&self, reply: &Reply) {
        let usage = reply.usage.map(|usage| usage.billed).unwrap_or_default();
        self.span.in_scope(|| {
            debug!(
                request_id = reply.request_id,
                attempts = reply.attempts,
                first_event_ms = reply
                    .time_to_first_event
                    .map(|time| time.as_millis() as u64),
                uncached_tokens = usage.uncached,
                cache_write_tokens = usage.cache_write,
                cache_read_tokens = usage.cache_read,
                output_tokens = usage.output,
                "the answer is complete"
            );
        });
    }

    /// Removes the credential from everything that the server sent.
    pub(crate) fn without_secrets(&self, mut error: CallError) -> CallError {
        if let Some(credential) = &self.credential {
            let report = &mut *error.report;
            credential.redact(&mut report.message);
            let named = [
                &mut report.error_type,
                &mut report.code,
                &mut report.request_id,
            ];
            for text in named.into_iter().flatten() {
                credential.redact(text);
            }
        }
        error
    }

    pub(crate) fn numbered(&self, mut error: CallError) -> CallError {
        error.attempts = self.attempts();
        if let Some(partial) = &mut error.partial {
            partial.attempts = error.attempts;
        }
        error
    }

    fn transport_failed(&self, error: TransportError) -> CallError {
        self.without_secrets(CallError::new(Failure::Transport(error.kind), error.detail))
    }

    async fn or_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, CallError> {
        // What is cancelled before it began does not begin, even if it could end at once.
        let done = if self.cancel.is_cancelled() {
            None
        } else {
            self.cancel.run_until_cancelled(work).await
        };
        done.ok_or_else(|| CallError::new(Failure::Cancelled, ""))
    }
}
