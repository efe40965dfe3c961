//! Calls to language models over HTTP: Anthropic Messages and the OpenAI compatible APIs, streamed or whole.

pub mod error;
pub mod rate_limits;
pub mod reply;
pub mod stop;
pub mod transport;
