//! Conversations with language models, read from wherever they are written down.
pub mod conversation;
mod document;
pub mod formats;
pub mod json;
pub mod lines;
pub mod message;
pub mod read;
pub mod source;
pub mod usage;
