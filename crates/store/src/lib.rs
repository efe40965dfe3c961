//! Where sessions are kept: messages, memories, events and usage, in memory or in SQLite.
//!
//! A [`Store`] holds sessions and is read without ceremony; a [`Writer`] is the exclusive right to change one session,
//! over all processes, and its one primitive is [`Writer::commit`]: a list of [`Change`]s that happen all or not at
//! all, and that outlive a killed process once the call has returned.
//!
//! What this crate deliberately does not do: it knows nothing of what a message, a memory or a state means. It keeps
//! bytes, numbers and text. It redacts nothing (callers do, before they store), chooses no ids, and reads no clock:
//! every time is an argument.
//!
//! * [`MemoryStore`]: gone with the process; for tests and for callers who keep sessions themselves.
//! * [`SqliteStore`]: one database with full-text search; for sessions that outlive the process.
//! * [`old_files`]: imports the sessions that version 0.1 kept in folders of files.
//!
//! ```
//! use std::time::Duration;
//! use throughline_store::{MemoryStore, NewMessage, NewSession, SessionId, Store, Writer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new();
//! let id = SessionId::new("first-session")?;
//! store.create(NewSession::new(id.clone(), "anthropic-messages", "a-model", 1_000), vec![]).await?;
//!
//! let mut writer = store.open(&id, Duration::ZERO).await?;
//! let body = br#"{"role":"user","content":"Hello"}"#.to_vec();
//! writer.append(2_000, 0, vec![NewMessage::new(body, [7; 32], "user", "Hello", 9)]).await?;
//!
//! // A second writer is told who is in its way; readers never are.
//! assert!(store.open(&id, Duration::ZERO).await.is_err());
//! assert_eq!(store.session(&id).await?.message_count, 1);
//! # Ok(())
//! # }
//! ```

mod change;
mod check;
mod error;
#[cfg(feature = "sqlite")]
mod lease;
pub mod limits;
mod memory;
mod memory_store;
mod message;
#[cfg(feature = "sqlite")]
pub mod old_files;
#[cfg(feature = "sqlite")]
mod private;
mod search;
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod usage;

pub use change::{Change, Counts};
pub use error::{Counter, ErrorKind, Invalid, StoreError};
pub use memory::{Adoption, MemoryInfo, MemoryRow};
pub use memory_store::MemoryStore;
pub use message::{NewMessage, StoredMessage, SupersededMessage};
pub use search::{Hit, Place, Scope, Search, Shelf};
pub use session::{ForkPoint, InvalidSessionId, NewSession, SessionId, SessionInfo};
#[cfg(feature = "sqlite")]
pub use sqlite::{Access, SqliteStore, SqliteStoreOptions};
pub use store::{Durability, Loaded, Page, Store, Writer};
pub use usage::{EventRow, Purpose, UsageRow, UsageSum, UsageTotals};
