//! Renderings of the document. Each is a pure function of the memory: same memory, same bytes.
//!
//! * the full JSON form: [`crate::document::Memory::to_json`], the only one that can be read back;
//! * [`object::render`]: the compact JSON object;
//! * [`markdown::render`]: the session memory for people and models;
//! * [`restoring::system_block`], [`restoring::user_message`]: the Markdown inside marks, to be put into a request.

pub mod markdown;
pub mod object;
pub mod restoring;
