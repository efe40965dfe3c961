//! Conversations with language models that continue past their context window.
//!
//! A [`Session`] is one conversation. While it runs, a memory of it is built in the background; when the context is
//! nearly full, the memory replaces the old messages in an instant, and every message stays in an archive that
//! can be searched. Sessions are stored as they go, and resume after a restart with the byte-identical request.
//!
//! ```
//! use throughline::prelude::*;
//! use throughline_simulator::{Options, SimulatedProvider};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A provider that takes any key. With a key in the environment: `Client::from_env()?`.
//! let provider = SimulatedProvider::new(Options::new(1).without_latency());
//! let client = Client::anthropic()
//!     .credential(Credential::new("any")?)
//!     .transport(provider)
//!     .build()?;
//!
//! let session = Session::builder(client, "claude-opus-4-6")
//!     .system("You are a careful assistant.")
//!     .store(MemoryStore::new())
//!     .compact_with_model()
//!     .open_or_start(&SessionId::new("deployment")?)
//!     .await?;
//! let answer = session.ask("Remember: the deploy region is eu-north-3.").await?;
//! assert!(!answer.text().is_empty());
//! assert_eq!(session.status().messages, 2);
//! session.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! An [`Agent`] is a session whose model has [`Tools`]. The [`prelude`] has what nearly every program needs; the crates
//! below are the modules [`engine`], [`memory`], [`providers`], [`store`] and [`transcript`]. Where a store, a
//! compactor, hooks, an approver or a transport is taken, a value does, and an `Arc` of one where it is shared.
//!
//! What it deliberately does not do: it decides nothing (`throughline-engine` does), makes no memory
//! (`throughline-memory`), speaks no wire format (`throughline-providers`, `throughline-transcript`) and knows no
//! database (`throughline-store`). It puts them together: it does what the engine says and feeds the answers back.

pub mod agent;
mod clock;
pub mod compactor;
#[doc(hidden)]
pub mod core;
pub mod costs;
mod error;
mod event;
pub mod folder;
pub mod hooks;
pub mod prelude;
mod session;
mod traffic;

pub use futures_util as futures;
pub use schemars;

pub use agent::{Agent, AgentEvent, Tool, Tools};
pub use compactor::{Compactor, ModelCompactor};
pub use costs::Costs;
pub use error::{OpenError, SendError, SessionError};
pub use event::{EventRecord, SessionEvent};
pub use hooks::Hooks;
pub use session::{Session, SessionBuilder, SessionSearch, Turn, TurnAnswer, TurnEvent, UserInput};
pub use throughline_engine as engine;
pub use throughline_memory as memory;
pub use throughline_providers as providers;
pub use throughline_store as store;
pub use throughline_transcript as transcript;

pub use throughline_providers::client::Client;
pub use throughline_providers::credential::Credential;
#[cfg(feature = "sqlite")]
pub use throughline_store::SqliteStore;
pub use throughline_store::{MemoryStore, SessionId, Store};
pub use throughline_transcript::wire::Wire;

/// The examples of the READMEs and of the guide are tested too.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    struct OfThisCrate;
    #[doc = include_str!("../docs/project.md")]
    struct OfTheProject;
    #[doc = include_str!("../docs/library.md")]
    struct Guide;
}
