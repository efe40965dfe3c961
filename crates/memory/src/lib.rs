//! The session memory of a conversation with a language model: a small document from which the work can continue.
//!
//! A conversation that outgrows its context window is cut in two. The first part is *covered* by a memory, which says
//! what the user wants, what they corrected and forbade, what was decided and why, what went wrong, the state of things
//! and what comes next; the rest stays unchanged. This crate makes such a memory without a model, updates it, checks it
//! against the conversation and renders it.
//!
//! # What there is
//!
//! | to | use |
//! | --- | --- |
//! | make a memory of a given size, in one call | [`compact`](compact::compact) |
//! | read messages one by one and have a memory at any time | [`Extractor`](extract::Extractor) |
//! | look at a memory | [`Memory`](document::Memory), [`Item`](document::Item), [`Section`](document::Section) |
//! | store it and read it back | [`Memory::to_json`](document::Memory::to_json), [`json_form::read`] |
//! | show it, or put it back into a conversation | [`render`] |
//! | change it by item ids, or merge what is new into it | [`update`] |
//! | have it made by a model, checked and repaired | [`Job`](summarise::Job) |
//! | check that it says only what the transcript says | [`verify`](verify::verify) |
//! | take secrets out of a text | [`Redactor`](redact::Redactor) |
//! | recognise corrections, decisions and errors in a text | [`cues`] |
//! | publish the forms to other programs | [`schema`] |
//!
//! # What it does not do
//!
//! It knows no wire format and no session file: messages come from [`throughline_transcript`]. It calls no model: a
//! [`Job`](summarise::Job) only says what one is to be asked. There is no clock, file, socket, environment or random
//! source in it: the same messages (and answers) give the same memory, byte for byte. The compactor does not rephrase:
//! what its memories say was said in the conversation, apart from the few words that say how it came there. When to
//! compact, and where to cut, is decided elsewhere.
//!
//! # Example
//!
//! A first memory, and its update after two more messages, of which alone it is made:
//!
//! ```
//! use throughline_memory::compact::{Options, compact};
//! use throughline_memory::document::{Memory, Section};
//! use throughline_transcript::message::{Block, Message, Role};
//! use throughline_transcript::tokens::Counter;
//!
//! let say = |role, text: &str| Message::new(role, vec![Block::text(text)]);
//! let mut messages = vec![
//!     say(Role::User, "Port the importer to Go. Please never touch vendor/."),
//!     say(Role::Assistant, "I'll start with src/importer.go."),
//! ];
//! let counter = Counter::reference();
//! let count = |text: &str| counter.text(text);
//! let first = compact(&messages, &Options::new(500, &count))?;
//! assert!(first.tokens <= 500);
//! let stored = first.memory.to_json();
//!
//! messages.push(say(Role::User, "From now on, write the tests first."));
//! messages.push(say(Role::Assistant, "Understood."));
//! let prior = Memory::from_json(&stored)?;
//! let options = Options {
//!     prior: Some(&prior),
//!     ..Options::new(500, &count)
//! };
//! let second = compact(&messages, &options)?;
//! assert_eq!(second.prior_fits, Some(true));
//! assert_eq!((second.memory.version, second.memory.cover.messages), (2, 4));
//! let ledger: Vec<_> = second.memory.section(Section::Corrections).map(|item| item.entry.text()).collect();
//! assert_eq!(ledger, ["Please never touch vendor/.", "From now on, write the tests first."]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod authors;
pub mod compact;
pub mod cues;
pub mod document;
pub mod extract;
pub mod json_form;
pub mod notes;
pub mod redact;
pub mod render;
pub mod schema;
pub mod summarise;
pub mod update;
pub mod verify;

#[cfg(test)]
mod testing;

/// The example of the README is tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
