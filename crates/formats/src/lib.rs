//! Reads session files of other programs in any supported format and writes them as requests.
//!
//! A source is a text in one of the formats of [`ALL`]: the session file of a coding agent, the export of a chat
//! program, a transcript in plain text, a request body. [`read::read`] detects the format and returns the
//! conversations, with every piece that could not be read and its line. [`convert`] writes a conversation as a request
//! of any [`Wire`](throughline_transcript::wire::Wire) format.
//!
//! # Contents
//!
//! | to | use |
//! | --- | --- |
//! | turn the bytes of a file into a text | [`SourceText`](source::SourceText) |
//! | read a file of any format | [`read::read`] |
//! | add a format | [`Format`] |
//! | write a request | [`convert`] |
//! | read damaged JSONL files | [`lines`] |
//!
//! # What it does not do
//!
//! Like `throughline-transcript`, it has no clock, file, socket, environment or random source: bytes go in, values come
//! out. It never panics on an input, takes time linear in its length and has a limit on everything that an input could
//! make grow. A live session does not need it: messages, requests and tokens are in `throughline-transcript`.
//!
//! # Example
//!
//! Convert a session of a coding agent into another provider's request:
//!
//! ```
//! use throughline_formats::convert::{self, convert};
//! use throughline_formats::read::read;
//! use throughline_formats::source::SourceText;
//! use throughline_transcript::check::{CheckOptions, check_text};
//! use throughline_transcript::cut::{Tail, cut_for_tail};
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
//!     "\n{\"type\":\"us", // the agent died here
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
//! # Ok::<(), throughline_formats::source::ReadError>(())
//! ```

pub mod convert;
mod document;
mod formats;
pub mod lines;
pub mod read;
pub mod source;

pub use formats::{ALL, Format, Probe};

/// The example of the README is tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
