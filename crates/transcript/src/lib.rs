//! Conversations with language models, read from wherever they are written down.
pub mod catalogue;
pub mod check;
pub mod conversation;
pub mod convert;
pub mod cut;
pub mod digest;
pub mod formats;
pub mod json;
pub mod message;
pub mod refusal;
pub mod splice;
pub mod text;
pub mod tokens;
pub mod usage;
pub mod window;
pub mod wire;
