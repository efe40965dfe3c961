//! Requests to language models: their messages read, checked, measured, cut and written again, without changing a byte
//! on the way.
//!
//! A request body is a text. It is not turned into a tree but into *views*: a [`Message`] has its role and its
//! [`Block`]s, and each of them is a slice of the text. Unknown parts pass through unchanged; broken parts are left out
//! and reported, and the rest is read.
//!
//! [`Message`]: message::Message
//! [`Block`]: message::Block
//!
//! # Contents
//!
//! | to | use |
//! | --- | --- |
//! | read a request body or a part of one | [`body`] |
//! | look at a conversation | [`Conversation`](conversation::Conversation), [`message`] |
//! | read only the new messages of a long body | [`outline`] |
//! | know what else a client's request asks for | [`client`] |
//! | check whether the provider accepts a request | [`check`] |
//! | write the requests of a session | [`request`]; [`splice`] for single changes |
//! | find where a conversation may be cut in two | [`cut`] |
//! | recognise the same messages again | [`digest`] |
//! | count tokens before the provider does | [`tokens`] |
//! | know windows, prices and abilities of models | [`catalogue`], [`window`] |
//! | understand the provider's answers | [`usage`], [`refusal`] |
//!
//! [`json`] is the ground for all of it: JSON as slices.
//!
//! # What it does not do
//!
//! It has no clock, file, socket, environment or random source: bytes go in, values come out, the same each time. It
//! never panics on an input, takes time linear in its length and has a limit on everything that an input could make
//! grow. It knows no session files of other programs: those are in `throughline-formats`. What a conversation is
//! *about*, and which part of it a memory should cover, is decided elsewhere.
//!
//! # Example
//!
//! ```
//! use throughline_transcript::body::read_body;
//! use throughline_transcript::check::{CheckOptions, check};
//! use throughline_transcript::cut::{Tail, cut_for_tail};
//! use throughline_transcript::json::Raw;
//! use throughline_transcript::tokens::Counter;
//! use throughline_transcript::wire::Wire;
//!
//! let body = Raw::parse(concat!(
//!     r#"{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Is it done?"},"#,
//!     r#"{"role":"assistant","content":"Yes."},{"role":"user","content":"Thanks!"}]}"#,
//! ))?;
//! assert!(check(&body, Wire::Anthropic, &CheckOptions::default()).is_valid());
//!
//! let conversation = read_body(&body, Wire::Anthropic).unwrap();
//! assert_eq!(conversation.messages[1].texts().next().unwrap().decode(), "Yes.");
//!
//! let counter = Counter::reference();
//! assert_eq!(counter.text("Is it done?"), 4);
//! let cut = cut_for_tail(&conversation.messages, Tail::Messages(1), |message| counter.message(message));
//! assert_eq!(cut, 2);
//! # Ok::<(), throughline_transcript::json::JsonError>(())
//! ```

pub mod body;
pub mod catalogue;
pub mod check;
pub mod client;
pub mod command;
pub mod conversation;
pub mod cut;
pub mod digest;
pub mod json;
pub mod message;
pub mod outline;
pub mod refusal;
pub mod request;
pub mod splice;
pub mod text;
pub mod text_result;
pub mod tokens;
pub mod usage;
pub mod window;
pub mod wire;

/// The example of the README is tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
