//! The two traits, and what reading gives.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::change::{Change, Counts};
use crate::error::StoreError;
use crate::limits::PAGE_ROWS_MAX;
use crate::memory::{Adoption, MemoryInfo, MemoryRow};
use crate::message::{NewMessage, StoredMessage, SupersededMessage};
use crate::search::{Hit, Search};
use crate::session::{NewSession, SessionId, SessionInfo};
use crate::usage::{EventRow, UsageRow, UsageTotals};

/// A place where sessions are kept.
///
/// Reading needs no permission and sees whole commits only. Futures may be dropped at any time; what a dropped
/// [`Writer::commit`] was to do is then done whole or not at all.
#[async_trait]
pub trait Store: Send + Sync {
    /// Begins a session, with its first changes, in one step. With a parent, its first messages are the parent's.
    ///
    /// # Errors
    /// [`Exists`](StoreError::Exists), [`SessionNotFound`](StoreError::SessionNotFound) for the parent,
    /// [`Invalid`](StoreError::Invalid), [`TooLarge`](StoreError::TooLarge), or what the system says.
    async fn create(&self, new: NewSession, changes: Vec<Change>) -> Result<Counts, StoreError>;

    /// Takes the exclusive right to change a session, over all processes, waiting at most so long for it. It ends
    /// when the writer is dropped or its process dies.
    ///
    /// # Errors
    /// [`Busy`](StoreError::Busy) if another has it, [`SessionNotFound`](StoreError::SessionNotFound),
    /// [`ReadOnly`](StoreError::ReadOnly), or what the system says.
    async fn open(&self, id: &SessionId, wait: Duration) -> Result<Box<dyn Writer>, StoreError>;

    /// Removes a session and everything that was derived from it. Forks keep their own archive. A full disk does not
    /// stop this, as far as the kind of store can do without room; where it works in steps for that and is broken off,
    /// what is left is a shorter session.
    ///
    /// # Errors
    /// [`Busy`](StoreError::Busy) while a writer has it, [`SessionNotFound`](StoreError::SessionNotFound), or what the
    /// system says.
    async fn delete(&self, id: &SessionId) -> Result<(), StoreError>;

    /// All sessions that can be read, the last changed first.
    ///
    /// # Errors
    /// What the system says.
    async fn sessions(&self, page: Page) -> Result<Vec<SessionInfo>, StoreError>;

    /// One session.
    ///
    /// # Errors
    /// [`SessionNotFound`](StoreError::SessionNotFound), or what the system says. This holds for all that follow.
    async fn session(&self, id: &SessionId) -> Result<SessionInfo, StoreError>;

    /// Everything that is needed to go on with a session. Costs time and room for the tail, not for the archive.
    async fn load(&self, id: &SessionId) -> Result<Loaded, StoreError>;

    /// The messages at these positions, as far as there are any.
    async fn messages(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>, StoreError>;

    /// One message.
    ///
    /// # Errors
    /// [`MessageNotFound`](StoreError::MessageNotFound) too.
    async fn message(&self, id: &SessionId, position: u64) -> Result<StoredMessage, StoreError> {
        let messages = self
            .messages(id, position..position.saturating_add(1))
            .await?;
        messages
            .into_iter()
            .next()
            .ok_or(StoreError::MessageNotFound { position })
    }

    /// The digests of the messages at these positions, as far as there are any.
    async fn digests(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<[u8; 32]>, StoreError> {
        let messages = self.messages(id, positions).await?;
        Ok(messages.into_iter().map(|message| message.digest).collect())
    }

    /// The messages that were cut off, in the order in which that happened.
    async fn superseded(
        &self,
        id: &SessionId,
        page: Page,
    ) -> Result<Vec<SupersededMessage>, StoreError>;

    /// The memory versions, the oldest first.
    async fn memories(&self, id: &SessionId, page: Page) -> Result<Vec<MemoryInfo>, StoreError>;

    /// One memory version.
    ///
    /// # Errors
    /// [`MemoryNotFound`](StoreError::MemoryNotFound) too.
    async fn memory(&self, id: &SessionId, version: u64) -> Result<MemoryRow, StoreError>;

    /// What happened, the oldest first.
    async fn events(&self, id: &SessionId, page: Page) -> Result<Vec<EventRow>, StoreError>;

    /// What each call used, the oldest first.
    async fn usage(&self, id: &SessionId, page: Page) -> Result<Vec<UsageRow>, StoreError>;

    /// Looks for words.
    ///
    /// # Errors
    /// [`TooLarge`](StoreError::TooLarge) for the text too.
    async fn search(&self, search: &Search) -> Result<Vec<Hit>, StoreError>;
}

/// A shared store is a store. Every method is passed on, those with a default too: a store may do them better.
#[async_trait]
impl<T: Store + ?Sized> Store for Arc<T> {
    async fn create(&self, new: NewSession, changes: Vec<Change>) -> Result<Counts, StoreError> {
        T::create(self, new, changes).await
    }

    async fn open(&self, id: &SessionId, wait: Duration) -> Result<Box<dyn Writer>, StoreError> {
        T::open(self, id, wait).await
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        T::delete(self, id).await
    }

    async fn sessions(&self, page: Page) -> Result<Vec<SessionInfo>, StoreError> {
        T::sessions(self, page).await
    }

    async fn session(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        T::session(self, id).await
    }

    async fn load(&self, id: &SessionId) -> Result<Loaded, StoreError> {
        T::load(self, id).await
    }

    async fn messages(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        T::messages(self, id, positions).await
    }

    async fn message(&self, id: &SessionId, position: u64) -> Result<StoredMessage, StoreError> {
        T::message(self, id, position).await
    }

    async fn digests(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<[u8; 32]>, StoreError> {
        T::digests(self, id, positions).await
    }

    async fn superseded(
        &self,
        id: &SessionId,
        page: Page,
    ) -> Result<Vec<SupersededMessage>, StoreError> {
        T::superseded(self, id, page).await
    }

    async fn memories(&self, id: &SessionId, page: Page) -> Result<Vec<MemoryInfo>, StoreError> {
        T::memories(self, id, page).await
    }

    async fn memory(&self, id: &SessionId, version: u64) -> Result<MemoryRow, StoreError> {
        T::memory(self, id, version).await
    }

    async fn events(&self, id: &SessionId, page: Page) -> Result<Vec<EventRow>, StoreError> {
        T::events(self, id, page).await
    }

    async fn usage(&self, id: &SessionId, page: Page) -> Result<Vec<UsageRow>, StoreError> {
        T::usage(self, id, page).await
    }

    async fn search(&self, search: &Search) -> Result<Vec<Hit>, StoreError> {
        T::search(self, search).await
    }
}

/// The exclusive right to change one session.
#[async_trait]
pub trait Writer: Send {
    /// The session.
    fn id(&self) -> &SessionId;

    /// Applies the changes, all or none. Once this has returned, a killed process loses none of them; whether a power
    /// cut may, is the store's [`Durability`].
    ///
    /// # Errors
    /// [`Conflict`](StoreError::Conflict), [`Invalid`](StoreError::Invalid), [`TooLarge`](StoreError::TooLarge),
    /// [`Full`](StoreError::Full), or what the system says. In every case nothing was applied, except that after
    /// [`Unavailable`](StoreError::Unavailable) it may turn out on the next opening that all was.
    async fn commit(&mut self, at_ms: i64, changes: Vec<Change>) -> Result<Counts, StoreError>;

    /// Everything that is needed to go on.
    ///
    /// # Errors
    /// What the system says.
    async fn load(&mut self) -> Result<Loaded, StoreError>;

    /// Adds messages at the end, where that is where the caller believes it to be.
    ///
    /// # Errors
    /// As [`Self::commit`].
    async fn append(
        &mut self,
        at_ms: i64,
        expected_count: u64,
        messages: Vec<NewMessage>,
    ) -> Result<Counts, StoreError> {
        self.commit(
            at_ms,
            vec![Change::Append {
                expected_count,
                messages,
            }],
        )
        .await
    }

    /// Adds a memory version.
    ///
    /// # Errors
    /// As [`Self::commit`].
    async fn put_memory(&mut self, at_ms: i64, memory: MemoryRow) -> Result<Counts, StoreError> {
        self.commit(at_ms, vec![Change::Memory(memory)]).await
    }

    /// Adopts a memory version, or none, where the epoch is what the caller believes it to be.
    ///
    /// # Errors
    /// As [`Self::commit`].
    async fn adopt(
        &mut self,
        expected_epoch: u64,
        adoption: Adoption,
    ) -> Result<Counts, StoreError> {
        self.commit(
            adoption.at_ms,
            vec![Change::Adopt {
                expected_epoch,
                adoption,
            }],
        )
        .await
    }
}

/// What is needed to go on with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The session.
    pub session: SessionInfo,
    /// The numbers that changes are compared with.
    pub counts: Counts,
    /// The request body without its messages.
    pub head: Bytes,
    /// The settings.
    pub settings: String,
    /// The last adoption.
    pub adoption: Option<Adoption>,
    /// The memory that it adopted.
    pub memory: Option<MemoryRow>,
    /// The newest memory version, where that is another one.
    pub newer_memory: Option<MemoryRow>,
    /// The digest of the covered messages; none where nothing is covered.
    pub covered_digest: Option<[u8; 32]>,
    /// The messages from the covered count on.
    pub tail: Vec<StoredMessage>,
    /// What the session used so far.
    pub usage: UsageTotals,
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// How many rows come before it.
    pub skip: u64,
    /// How many rows it has at most; never more than [`PAGE_ROWS_MAX`].
    pub limit: u32,
}

impl Page {
    /// The first rows.
    pub fn first(limit: u32) -> Self {
        Self { skip: 0, limit }
    }

    pub(crate) fn rows(self) -> u32 {
        self.limit.min(PAGE_ROWS_MAX)
    }

    /// The part of these rows that the page shows.
    pub(crate) fn of<T>(self, rows: &[T]) -> &[T] {
        let start = usize::try_from(self.skip)
            .unwrap_or(usize::MAX)
            .min(rows.len());
        let end = start.saturating_add(self.rows() as usize).min(rows.len());
        &rows[start..end]
    }
}

/// What survives once a commit has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A killed process, a crashed system and a power cut lose nothing: every commit waits for the disk.
    #[default]
    PowerLoss,
    /// A killed process loses nothing. A crashed system or a power cut may lose the last commits, but what is left is
    /// whole.
    ProcessKill,
}
