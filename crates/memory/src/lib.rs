//! The session memory of a conversation with a language model.
pub mod cues;
pub mod document;
