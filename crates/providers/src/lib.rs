//! Calls to language models over HTTP: Anthropic Messages, OpenAI Chat Completions and Responses, and the servers that
//! imitate them (llama.cpp, Ollama, vLLM, LM Studio, routers), streamed or whole.
//!
//! A [`Client`](client::Client) takes a complete request body and returns a [`Call`](call::Call): a stream of
//! [`Event`](reply::Event)s that ends in a [`Reply`](reply::Reply) or in a [`CallError`](error::CallError). The reply
//! holds what the next request has to carry back, byte for byte as it was received.
//!
//! | to | use |
//! | --- | --- |
//! | send requests, with retries, limits on silence, cancellation | [`client`], [`call`] |
//! | read an answer without a network, from a tee or a test | [`decode`] |
//! | know what to do after an answer | [`StopReason::next`](stop::StopReason::next) |
//! | know what to do after a failure | [`CallError::kind`](error::CallError::kind) |
//! | hold a key without showing it | [`credential`] |
//! | list models, count tokens, correct the catalogue | [`models`] |
//! | replace the network | [`transport`] |
//!
//! # What it does not do
//!
//! It knows no sessions, no memory and no budget, and never changes messages: of a body it sets at most `stream`, and
//! only if asked to. It runs no tools and follows no redirects. It writes nothing to disk. Its spans and log events
//! (`tracing`) have ids and numbers and no content; a credential appears in none of its errors,
//! even if a server repeats it.
//!
//! # Example
//!
//! Here a transport replaces the network and answers at once:
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use throughline_providers::client::{CallOptions, Client};
//! use throughline_providers::stop::Next;
//! use throughline_providers::transport::{BodyStream, Transport, TransportError};
//! use throughline_transcript::wire::Wire;
//!
//! struct Parrot;
//!
//! #[async_trait::async_trait]
//! impl Transport for Parrot {
//!     async fn call(
//!         &self,
//!         _request: http::Request<Bytes>,
//!     ) -> Result<http::Response<BodyStream>, TransportError> {
//!         let answer = r#"{"content":[{"type":"text","text":"Hello!"}],"stop_reason":"end_turn"}"#;
//!         let body = futures_util::stream::iter([Ok(Bytes::from(answer))]);
//!         Ok(http::Response::new(Box::pin(body)))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let client = Client::builder(Wire::Anthropic, "https://api.anthropic.com")
//!     .transport(Arc::new(Parrot))
//!     .build()?;
//! let body = r#"{"model":"claude-opus-5-5","max_tokens":99,"messages":[{"role":"user","content":"Hi"}]}"#;
//! let reply = client.send(body.into(), CallOptions::default()).await?.reply().await?;
//! assert_eq!(reply.text(), "Hello!");
//! assert_eq!(reply.stop.map(|stop| stop.next()), Some(Next::Done));
//! assert_eq!(
//!     reply.messages[0].as_str(),
//!     r#"{"role":"assistant","content":[{"type":"text","text":"Hello!"}]}"#
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod call;
pub mod client;
pub mod credential;
pub mod decode;
pub mod endpoint;
pub mod error;
mod exchange;
pub mod models;
pub mod rate_limits;
mod refused;
pub mod reply;
pub mod retry;
mod sse;
pub mod stop;
pub mod transport;

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
