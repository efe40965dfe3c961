//! Conversations with language models: read from wherever they are written down, checked, measured, cut and written
//! again, without a byte of them being changed on the way.
//!
//! A session file or a request body is a text. It is not turned into a tree but into *views*: a [`Message`] has its
//! role and its [`Block`]s, and each of them still is the slice of the text that it was. What is not known here passes
//! through unchanged; what is broken is left out and reported, and the rest is read.
//!
//! [`Message`]: message::Message
//! [`Block`]: message::Block
//!
//! # What there is
//!
//! | to | use |
//! | --- | --- |
//! | make a text of the bytes of a file | [`SourceText`](conversation::SourceText) |
//! | read a file, whatever format it has | [`read::read`], which asks every one of [`formats::ALL`] |
//! | look at a conversation | [`Conversation`](conversation::Conversation), [`message`] |
//! | read a request body or a part of one | [`formats::request`] |
//! | ask whether the provider would take a request | [`check`] |
//! | write a request of any [`Wire`](wire::Wire) format | [`convert`]; [`splice`] for single changes |
//! | find where a conversation may be cut in two | [`cut`] |
//! | recognise the same messages again | [`digest`] |
//! | count tokens before the provider does | [`tokens`] |
//! | know windows, prices and abilities of models | [`catalogue`], [`window`] |
//! | understand what the provider answers | [`usage`], [`refusal`] |
//!
//! [`json`] and [`lines`] are the ground that this stands on: JSON as slices, and JSONL files in whatever state.
//!
//! # What it does not do
//!
//! There is no clock, file, socket, environment or random source in it: bytes go in, values come out, the same each
//! time. It never panics on an input, takes time linear in its length and has a limit on everything that an input
//! could make grow. What a conversation is *about*, and which part of it should be covered by a memory, is decided
//! elsewhere.
//!
//! # Example
//!
//! A session of a coding tool becomes a request of another provider's, its last message kept apart:
//!
//! ```
//! use throughline_transcript::check::{CheckOptions, check_text};
//! use throughline_transcript::conversation::SourceText;
//! use throughline_transcript::convert::{self, convert};
//! use throughline_transcript::cut::{Tail, cut_for_tail};
//! use throughline_transcript::read::read;
//! use throughline_transcript::tokens::Counter;
//! use throughline_transcript::wire::Wire;
//!
//! let file = concat!(
//!     r#"{"type":"user","uuid":"a","sessionId":"s","message":{"role":"user","content":"Is it done?"}}"#,
//!     "\n",
//!     r#"{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"role":"assistant","#,
//!     r#""content":[{"type":"text","text":"Yes."}]}}"#,
//!     "\n",
//!     r#"{"type":"user","uuid":"c","parentUuid":"b","sessionId":"s","message":{"role":"user","content":"Thanks!"}}"#,
//!     "\n{\"type\":\"us", // the tool died here
//! );
//! let source = read(&SourceText::from_bytes(file.into()), None)?;
//! assert_eq!(source.format, "claude-code");
//! assert_eq!(source.skipped[0].line, 4);
//!
//! let conversation = &source.conversations[0];
//! assert_eq!(conversation.messages[1].texts().next().unwrap().decode(), "Yes.");
//!
//! let counter = Counter::reference();
//! assert_eq!(counter.text("Is it done?"), 4);
//! let cut = cut_for_tail(&conversation.messages, Tail::Messages(1), |message| counter.message(message));
//! assert_eq!(cut, 2);
//!
//! let options = convert::Options {
//!     model: Some("gpt-5".to_owned()),
//!     ..convert::Options::default()
//! };
//! let request = convert(conversation, Wire::OpenAiChat, &options);
//! assert!(request.losses.is_empty());
//! assert!(check_text(&request.body, Wire::OpenAiChat, &CheckOptions::default()).is_valid());
//! # Ok::<(), throughline_transcript::conversation::ReadError>(())
//! ```

pub mod catalogue;
pub mod check;
pub mod conversation;
pub mod convert;
pub mod cut;
pub mod digest;
mod document;
pub mod formats;
pub mod json;
pub mod lines;
pub mod message;
pub mod outline;
pub mod read;
pub mod refusal;
pub mod request;
pub mod source;
pub mod splice;
pub mod text;
pub mod tokens;
pub mod usage;
pub mod window;
pub mod wire;

/// The example of the README is tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
