//! The session memory of a conversation with a language model.
pub mod document;
