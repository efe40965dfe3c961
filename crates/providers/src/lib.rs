//! Calls to language models over HTTP: Anthropic Messages and the OpenAI compatible APIs, streamed or whole.

pub mod call;
pub mod client;
pub mod credential;
pub mod decode;
pub mod endpoint;
pub mod error;
mod exchange;
pub mod models;
pub mod rate_limits;
mod refused;
pub mod reply;
pub mod retry;
mod sse;
pub mod stop;
pub mod transport;
