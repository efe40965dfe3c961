//! A proxy that gives unmodified clients of language models a session memory.
//!
//! A client whose base URL is set to it works as before: its requests and answers are forwarded byte for byte. Meanwhile
//! the proxy recognises its conversations, has a memory of each built in the background, and, when a window is nearly
//! full, replaces the old messages by the memory. The client need not know.
//!
//! [`Proxy::answer`] takes a request and gives the answer; [`serve`] puts it behind a socket.
//!
//! What it deliberately does not do: it knows no provider's field names (`throughline-transcript` does), decides
//! nothing about memories (`throughline-engine` does), and opens no connections but through a
//! [`Transport`](throughline_providers::transport::Transport). What it cannot read, decide or store, it forwards
//! unchanged.

mod archive;
mod body;
pub mod config;
mod dashboard;
mod exchange;
mod headers;
mod incoming;
mod known;
mod metrics;
mod proxy;
mod reason;
mod refusals;
mod rewrite;
mod route;
mod server;
mod sessions;
mod shared;
mod spans;
mod tap;
mod tls;
mod tracked;
mod updates;

pub use body::{Body, BodyAborted};
pub use config::Config;
pub use headers::{SESSION, SWITCH};
pub use metrics::Report;
pub use proxy::Proxy;
pub use route::PASS_PREFIX;
pub use server::serve;
pub use spans::SPANS;
pub use tls::{Tls, TlsError};
