//! The session memory of a conversation with a language model.
pub mod compact;
pub mod cues;
pub mod document;
pub mod extract;
pub mod json_form;
pub mod redact;
pub mod render;
pub mod schema;
pub mod update;
pub mod verify;

#[cfg(test)]
mod testing;
