//! A provider of language models that behaves as the real ones do, for tests and trials: validation, prompt cache, signatures, streaming, latency, faults.

mod api_error;
mod cache;
mod dice;
mod exchange;
mod faults;
mod headers;
mod latency;
mod limits;
mod models;
mod persona;
mod prompt;
mod reply;
mod rules;
mod signature;
mod simulator;
mod stream;
mod wire;

pub use exchange::{Ending, Exchange, Piece};
pub use faults::{BadSummary, Fault, Faults, FaultsError, FaultsErrorReason, RULES_MAX};
pub use headers::Keys;
pub use latency::Latency;
pub use limits::RateLimits;
pub use reply::{Reply, ReplyPart, Stop};
pub use simulator::{BODY_BYTES_MAX, Options, PrefixMismatch, Recorded, Simulator};
pub use stream::Chunking;
