//! The three wire formats: reading what is asked, and writing the answer whole or event by event.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod responses;
