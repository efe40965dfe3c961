//! Sessions in one SQLite database.
//!
//! Several processes may use one database. Commits are `BEGIN IMMEDIATE` transactions on one connection for each
//! process; readers have connections of their own and see whole commits, because the journal is a write-ahead log. The
//! right to write a session is a lock on a file beside the database.

mod checkpoint;
mod connect;
mod delete;
mod group;
mod read;
mod reserve;
mod search;
mod write;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Transaction;
use sqlx::sqlite::{Sqlite, SqlitePool};
use tempfile::TempDir;

use crate::change::{Change, Counts};
use crate::check;
use crate::error::{ErrorKind, StoreError};
use crate::lease::Lease;
use crate::memory::{MemoryInfo, MemoryRow};
use crate::message::{StoredMessage, SupersededMessage};
use crate::search::{Hit, Search};
use crate::session::{NewSession, SessionId, SessionInfo};
use crate::store::{Durability, Loaded, Page, Store, Writer};
use crate::usage::{EventRow, UsageRow};
use checkpoint::Checkpoints;
use group::Commits;
use read::SessionRow;
use reserve::Reserve;

/// Takes the right to write at once, so that no commit fails half way because another came between.
const BEGIN: &str = "BEGIN IMMEDIATE";

/// A store in one SQLite database. Clones share it.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    locks: PathBuf,
    access: Access,
    /// One connection: SQLite has one writer at a time, and waiting here is fairer than waiting there.
    writing: SqlitePool,
    reading: SqlitePool,
    commits: Commits,
    checkpoints: Checkpoints,
    /// Where it may be changed.
    reserve: Option<Reserve>,
    /// Where what is read is a copy, the folder that goes with it.
    _copy: Option<TempDir>,
}

/// How a database is to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteStoreOptions {
    /// What survives once a commit has returned.
    pub durability: Durability,
    /// Whether it may be changed.
    pub access: Access,
    /// How long a commit waits for one of another process, in milliseconds.
    pub busy_wait_ms: u64,
    /// How large the database may become, in bytes, rounded down to pages. None: as the disk allows.
    pub database_bytes_max: Option<u64>,
}

/// Whether a database may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Access {
    /// It is made if it is missing, brought to the newest format, and changed.
    #[default]
    ReadWrite,
    /// As [`ReadWrite`](Self::ReadWrite) where the place can be written, and else as [`ReadOnly`](Self::ReadOnly).
    AsAllowed,
    /// It must exist, in the newest format, and is not changed.
    ReadOnly,
}

impl Default for SqliteStoreOptions {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            access: Access::default(),
            busy_wait_ms: 5_000,
            database_bytes_max: None,
        }
    }
}

impl SqliteStore {
    /// Opens the database, or makes it.
    ///
    /// # Errors
    /// As [`Self::open_with`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, SqliteStoreOptions::default()).await
    }

    /// Opens the database in this way.
    ///
    /// # Errors
    /// [`Newer`](StoreError::Newer) for the format of a later program, [`Corrupt`](StoreError::Corrupt) for a file that
    /// is no such database, [`ReadOnly`](StoreError::ReadOnly), or what the system says.
    pub async fn open_with(
        path: impl AsRef<Path>,
        options: SqliteStoreOptions,
    ) -> Result<Self, StoreError> {
        let inner = connect::open(path.as_ref(), &options).await?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Closes the database for all clones and writers, and waits until that is done. A store that is dropped closes
    /// as well, only without anybody waiting for it.
    pub async fn close(&self) {
        self.inner.checkpoints.close().await;
        self.inner.reading.close().await;
        self.inner.writing.close().await;
    }

    /// Gives the room of deleted sessions back to the disk, and puts the index for search in order. Meanwhile other
    /// commits wait, and the disk holds the database twice.
    ///
    /// # Errors
    /// [`DatabaseBusy`](StoreError::DatabaseBusy) if others do not let go of it, [`Full`](StoreError::Full),
    /// [`ReadOnly`](StoreError::ReadOnly), or what the system says. Nothing is lost by that.
    pub async fn shrink(&self) -> Result<(), StoreError> {
        const STEPS: [&str; 4] = [
            "INSERT INTO message_search (message_search) VALUES ('optimize')",
            "INSERT INTO memory_search (memory_search) VALUES ('optimize')",
            "VACUUM",
            // The file itself becomes smaller when the log is carried over.
            "PRAGMA wal_checkpoint(TRUNCATE)",
        ];
        self.inner.writable()?;
        for step in STEPS {
            sqlx::query(step)
                .execute(&self.inner.writing)
                .await
                .map_err(|error| self.inner.error(error))?;
        }
        Ok(())
    }

    async fn reading(&self) -> Result<Reading<'_>, StoreError> {
        let transaction = self
            .inner
            .reading
            .begin()
            .await
            .map_err(|error| self.inner.error(error))?;
        Ok(Reading {
            store: &self.inner,
            transaction,
        })
    }
}

impl Inner {
    fn error(&self, error: sqlx::Error) -> StoreError {
        connect::error(&self.path, error)
    }

    fn writable(&self) -> Result<(), StoreError> {
        match self.access {
            Access::ReadWrite | Access::AsAllowed => Ok(()),
            Access::ReadOnly => Err(StoreError::ReadOnly { source: None }),
        }
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        delete::delete(self, &mut transaction, id).await?;
        transaction
            .commit()
            .await
            .map_err(|error| self.error(error))
    }

    /// Deletes in steps, with the room that is kept for this and that of the log, which is emptied between them. If this
    /// is broken off, the session has lost its memories and its last messages, and can be deleted again.
    async fn delete_when_full(&self, id: &SessionId) -> Result<(), StoreError> {
        if let Some(reserve) = &self.reserve {
            reserve.give_up();
        }
        self.empty_log().await;
        loop {
            let mut transaction = self.begin().await?;
            let is_shorter = delete::shorten(self, &mut transaction, id).await?;
            transaction
                .commit()
                .await
                .map_err(|error| self.error(error))?;
            self.empty_log().await;
            if !is_shorter {
                return self.delete(id).await;
            }
        }
    }

    /// Carries the log into the database and cuts it off, as far as readers and the disk let it.
    async fn empty_log(&self) {
        self.attempt("PRAGMA wal_checkpoint(TRUNCATE)").await;
    }

    /// For what may fail.
    async fn attempt(&self, statement: &'static str) {
        drop(sqlx::query(statement).execute(&self.writing).await);
    }

    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.writable()?;
        match self.writing.begin_with(BEGIN).await {
            Err(sqlx::Error::InvalidSavePointStatement) => self.begin_on_new_connection().await,
            begun => begun,
        }
        .map_err(|error| self.error(error))
    }

    /// SQLite itself ends the transaction after some errors, such as a full disk. The driver does not notice, and would
    /// never begin another on the same connection.
    async fn begin_on_new_connection(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.writing.acquire().await?.close().await?;
        self.writing.begin_with(BEGIN).await
    }
}

/// A look at the database as it was at one moment.
struct Reading<'a> {
    store: &'a Inner,
    transaction: Transaction<'static, Sqlite>,
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, new: NewSession, changes: Vec<Change>) -> Result<Counts, StoreError> {
        check::session(&new)?;
        check::changes(&changes)?;
        let mut transaction = self.inner.begin().await?;
        let counts = write::create(&self.inner, &mut transaction, &new, &changes).await?;
        transaction
            .commit()
            .await
            .map_err(|error| self.inner.error(error))?;
        self.inner.checkpoints.committed(&changes);
        Ok(counts)
    }

    async fn open(&self, id: &SessionId, wait: Duration) -> Result<Box<dyn Writer>, StoreError> {
        self.inner.writable()?;
        self.session(id).await?;
        let lease = Lease::of_session(&self.inner.locks, id, wait).await?;
        // It may have been deleted while we waited.
        if let Err(error) = self.session(id).await {
            lease.remove();
            return Err(error);
        }
        Ok(Box::new(SqliteWriter {
            store: self.clone(),
            id: id.clone(),
            known: None,
            _lease: lease,
        }))
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        self.inner.writable()?;
        self.session(id).await?;
        let lease = Lease::of_session(&self.inner.locks, id, Duration::ZERO).await?;
        match self.inner.delete(id).await {
            Err(full) if full.kind() == ErrorKind::Full => self.inner.delete_when_full(id).await,
            deleted => deleted,
        }?;
        lease.remove();
        // The log still has the deleted pages. Where a reader is in the way, a later commit overwrites them.
        self.inner.empty_log().await;
        if let Some(reserve) = &self.inner.reserve {
            reserve.make();
        }
        Ok(())
    }

    async fn sessions(&self, page: Page) -> Result<Vec<SessionInfo>, StoreError> {
        self.reading().await?.sessions(page).await
    }

    async fn session(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        Ok(self.reading().await?.session(id).await?.info)
    }

    async fn load(&self, id: &SessionId) -> Result<Loaded, StoreError> {
        self.reading().await?.load(id).await
    }

    async fn messages(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let mut reading = self.reading().await?;
        let session = reading.session(id).await?;
        reading.messages(session.key, positions).await
    }

    async fn digests(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<[u8; 32]>, StoreError> {
        let mut reading = self.reading().await?;
        let session = reading.session(id).await?;
        reading.digests(session.key, positions).await
    }

    async fn superseded(
        &self,
        id: &SessionId,
        page: Page,
    ) -> Result<Vec<SupersededMessage>, StoreError> {
        let mut reading = self.reading().await?;
        let session = reading.session(id).await?;
        reading.superseded(session.key, page).await
    }

    async fn memories(&self, id: &SessionId, page: Page) -> Result<Vec<MemoryInfo>, StoreError> {
        let mut reading = self.reading().await?;
        let session = reading.session(id).await?;
        reading.memories(session.key, page).await
    }

    async fn memory(&self, id: &SessionId, version: u64) -> Result<MemoryRow, StoreError> {
        let mut reading = self.reading().await?;
        let session = reading.session(id).await?;
        reading
            .memory(session.key, version)
            .await?
            .ok_or(StoreError::MemoryNotFound { version })
    }

    async fn events(&self, id: &SessionId, page: Page) -> Result<Vec<EventRow>, StoreError> {
        let mut reading = self.reading().await?;
        let session = reading.session(id).await?;
        reading.events(session.key, page).await
    }

    async fn usage(&self, id: &SessionId, page: Page) -> Result<Vec<UsageRow>, StoreError> {
        let mut reading = self.reading().await?;
        let session = reading.session(id).await?;
        reading.usage(session.key, page).await
    }

    async fn search(&self, search: &Search) -> Result<Vec<Hit>, StoreError> {
        self.reading().await?.search(search).await
    }
}

#[derive(Debug)]
struct SqliteWriter {
    store: SqliteStore,
    id: SessionId,
    /// The session after the last commit. Only this writer can change it.
    known: Option<SessionRow>,
    _lease: Lease,
}

#[async_trait]
impl Writer for SqliteWriter {
    fn id(&self) -> &SessionId {
        &self.id
    }

    async fn commit(&mut self, at_ms: i64, changes: Vec<Change>) -> Result<Counts, StoreError> {
        check::changes(&changes)?;
        self.store.inner.writable()?;
        let known = self.known.take();
        let session = group::commit(&self.store.inner, &self.id, known, at_ms, changes).await?;
        let counts = session.counts;
        self.known = Some(session);
        Ok(counts)
    }

    async fn load(&mut self) -> Result<Loaded, StoreError> {
        self.store.load(&self.id).await
    }
}
