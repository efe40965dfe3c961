//! Calls to language models over HTTP: Anthropic Messages and the OpenAI compatible APIs, streamed or whole.

pub mod credential;
pub mod decode;
pub mod error;
pub mod rate_limits;
pub mod reply;
pub mod retry;
mod sse;
pub mod stop;
pub mod transport;
