//! A provider of language models that behaves as the real ones do, for tests and trials, with no key and no network.
//!
//! It refuses what they refuse, with their errors; caches prompts by their rules and splits usage accordingly; signs
//! thinking and checks it; streams event for event; takes the time of a large model; and fails on demand. Its
//! replies come from a script, or from a talkative assistant that uses the tools of the request, answers questions from
//! the request and writes a session memory on demand.
//!
//! It speaks Anthropic Messages (`/v1/messages`, `/v1/messages/count_tokens`, `/v1/models`), OpenAI Chat Completions
//! (`/v1/chat/completions`) and OpenAI Responses (`/v1/responses`, `/v1/responses/compact`,
//! `/v1/responses/input_tokens`).
//!
//! # Contents
//!
//! | to | use |
//! | --- | --- |
//! | call it in virtual time, without a runtime | [`Simulator::request`], which returns an [`Exchange`]: every byte with its moment |
//! | use it as a transport | [`SimulatedProvider`], on the clock of tokio (which tests can pause) |
//! | let other programs call it | [`serve`], or `throughline simulate` |
//! | choose how it behaves | [`Options`]: [`Latency`], [`Faults`], [`RateLimits`], [`Keys`], [`Chunking`] |
//! | script its answers | [`Simulator::script`] with a [`Reply`] |
//! | list its requests and their costs | [`Simulator::ledger`] |
//!
//! # What it does not do
//!
//! It runs no model and knows nothing: its replies are invented, or taken from the request. It has no clock, socket or
//! random source except in [`SimulatedProvider`] and [`serve`]: the same seed and the same requests at the same moments
//! give the same bytes. Whether a body is valid is decided by [`throughline_transcript::check`], tokens are counted by
//! [`throughline_transcript::tokens`], prices and rules of models come from its catalogue: where these are wrong, the
//! simulator is wrong too. It has no batches, files or message threads.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use throughline_simulator::{Options, Simulator};
//!
//! let mut simulator = Simulator::new(Options::new(7));
//! let ask = |body: &str| {
//!     http::Request::post("/v1/messages")
//!         .header("x-api-key", "any")
//!         .header("anthropic-version", "2023-06-01")
//!         .body(Bytes::from(body.to_owned()))
//!         .unwrap()
//! };
//! let body = r#"{"model": "claude-sonnet-5", "max_tokens": 500, "messages": [
//!     {"role": "user", "content": "Remember: the deploy region is eu-north-3. What is the deploy region?"}]}"#;
//! let exchange = simulator.request(Duration::ZERO, ask(body));
//! assert_eq!(exchange.status, 200);
//! assert!(exchange.text().contains("eu-north-3"));
//! assert!(exchange.head_after > Duration::from_millis(600));
//!
//! let refused = simulator.request(Duration::from_secs(9), ask(r#"{"model": "claude-sonnet-5", "max_tokens": 500, "messages": []}"#));
//! assert_eq!(refused.status, 400);
//! assert!(refused.text().contains("at least one message is required"));
//! assert_eq!(simulator.ledger().len(), 2);
//! ```

mod api_error;
mod cache;
mod call;
mod dice;
mod exchange;
mod faults;
mod headers;
mod latency;
mod limits;
mod models;
mod options;
mod persona;
mod prompt;
mod reply;
mod rules;
mod server;
mod signature;
mod simulator;
mod stream;
mod transport;
mod wire;

pub use exchange::{Ending, Exchange, Piece};
pub use faults::{BadSummary, Fault, Faults, FaultsError, FaultsErrorReason, RULES_MAX};
pub use headers::Keys;
pub use latency::Latency;
pub use limits::RateLimits;
pub use options::{Options, PrefixMismatch};
pub use reply::{Reply, ReplyPart, StopReason};
pub use server::{Recording, serve};
pub use simulator::{BODY_BYTES_MAX, LedgerEntry, Simulator};
pub use stream::Chunking;
pub use transport::SimulatedProvider;

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
