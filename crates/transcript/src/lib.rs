//! Conversations with language models, read from wherever they are written down.
pub mod check;
pub mod conversation;
pub mod convert;
pub mod cut;
pub mod digest;
pub mod formats;
pub mod json;
pub mod message;
pub mod splice;
pub mod usage;
pub mod wire;
