//! A provider that does what a script says, in process and in virtual time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use throughline_providers::client::{Client, ClientBuilder};
use throughline_providers::credential::Credential;
use throughline_providers::retry::RetryPolicy;
use throughline_providers::transport::{BodyStream, Transport, TransportError, TransportErrorKind};
use throughline_transcript::wire::Wire;
use tokio::time::{Instant, sleep};

/// A body of a request that may be streamed.
pub(crate) const STREAMED: &str =
    r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

/// A credential joined from parts, so that the source has none.
pub(crate) fn key() -> String {
    ["sk-", "ant-", "api03-", "Zk9Zk9Zk9Zk9Zk9Zk9"].concat()
}

/// What happens to one request.
pub(crate) enum Answer {
    /// No connection.
    Fails(TransportErrorKind),
    /// Nothing, forever.
    Stalls,
    /// A head, and a body in parts.
    Is(u16, Vec<(&'static str, String)>, Vec<Part>),
}

/// A part of a body.
#[derive(Clone)]
pub(crate) enum Part {
    Bytes(String),
    Pause(Duration),
    Breaks,
}

impl Answer {
    pub(crate) fn error(status: u16, headers: &[(&'static str, &str)], body: &str) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        Self::Is(status, headers, vec![Part::Bytes(body.to_owned())])
    }

    pub(crate) fn stream(parts: Vec<Part>) -> Self {
        let headers = vec![
            (
                "content-type",
                "text/event-stream; charset=utf-8".to_owned(),
            ),
            ("request-id", "req_1".to_owned()),
            ("anthropic-ratelimit-requests-remaining", "59".to_owned()),
        ];
        Self::Is(200, headers, parts)
    }

    pub(crate) fn whole(body: &str) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self::Is(200, headers, vec![Part::Bytes(body.to_owned())])
    }

    /// A stream that says `text` and ends well.
    pub(crate) fn says(text: &str) -> Self {
        Self::stream(vec![Part::Bytes(start()), said(text), ended()])
    }
}

pub(crate) fn start() -> String {
    event(
        "message_start",
        r#","message":{"id":"msg_1","model":"claude","content":[],"usage":{"input_tokens":9,"output_tokens":1}}"#,
    )
}

pub(crate) fn said(text: &str) -> Part {
    Part::Bytes(
        [
            event(
                "content_block_start",
                r#","index":0,"content_block":{"type":"text","text":""}"#,
            ),
            event(
                "content_block_delta",
                &format!(r#","index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#),
            ),
        ]
        .concat(),
    )
}

pub(crate) fn ended() -> Part {
    Part::Bytes(
        [
            event("content_block_stop", r#","index":0"#),
            event(
                "message_delta",
                r#","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}"#,
            ),
            event("message_stop", ""),
        ]
        .concat(),
    )
}

pub(crate) fn event(name: &str, fields: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\"{fields}}}\n\n")
}

/// What was asked, and when.
pub(crate) struct ReceivedRequest {
    pub(crate) at: Instant,
    pub(crate) request: http::Request<Bytes>,
}

/// The provider.
pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    pub(crate) seen: Mutex<Vec<ReceivedRequest>>,
}

impl Scripted {
    pub(crate) fn new(answers: Vec<Answer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into()),
            seen: Mutex::new(Vec::new()),
        })
    }

    /// A client of it, with a key and waits that are the same every time.
    pub(crate) fn client(self: &Arc<Self>, wire: Wire) -> Client {
        self.builder(wire).build().unwrap()
    }

    pub(crate) fn builder(self: &Arc<Self>, wire: Wire) -> ClientBuilder {
        Client::builder(wire, "https://provider.test")
            .credential(Credential::new(&key()).unwrap())
            .retry(RetryPolicy {
                seed: Some(1),
                ..RetryPolicy::default()
            })
            .transport(Arc::clone(self) as Arc<dyn Transport>)
    }

    /// How many seconds after the first request each one came.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .map(|one| (one.at - seen[0].at).as_secs_f64())
            .collect()
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub(crate) fn header(&self, at: usize, name: &str) -> Option<String> {
        let seen = self.seen.lock().unwrap();
        let value = seen[at].request.headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }

    pub(crate) fn uri(&self, at: usize) -> String {
        self.seen.lock().unwrap()[at].request.uri().to_string()
    }

    pub(crate) fn body(&self, at: usize) -> String {
        let seen = self.seen.lock().unwrap();
        String::from_utf8(seen[at].request.body().to_vec()).unwrap()
    }
}

#[async_trait]
impl Transport for Scripted {
    async fn call(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        self.seen.lock().unwrap().push(ReceivedRequest {
            at: Instant::now(),
            request,
        });
        let answer = self.answers.lock().unwrap().pop_front();
        match answer.expect("more requests than the script has answers") {
            Answer::Fails(kind) => Err(TransportError::new(kind, "scripted")),
            Answer::Stalls => std::future::pending().await,
            Answer::Is(status, headers, parts) => {
                let mut response = http::Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                let body = futures_util::stream::iter(parts).filter_map(|part| async {
                    match part {
                        Part::Bytes(text) => Some(Ok(Bytes::from(text))),
                        Part::Pause(time) => {
                            sleep(time).await;
                            None
                        }
                        Part::Breaks => Some(Err(TransportError::new(
                            TransportErrorKind::Broken,
                            "scripted",
                        ))),
                    }
                });
                Ok(response.body(Box::pin(body) as BodyStream).unwrap())
            }
        }
    }
}
