//! Sessions in plain files: a folder for each.
//!
//! ```text
//! <root>/<session>/transcript.jsonl        every message as it was received, one on a line
//!                  session-memory.md       the newest memory, for readers
//!                  memory/<session>.json   the newest memory, whole
//!                  session.json            what a list shows
//!                  commits.log             the truth: one checked line for each commit
//!                  parts.bin               all other bytes
//! <root>/.locks/<session>.lock             the right to write a session
//! ```
//!
//! A commit adds its bytes to `transcript.jsonl` and `parts.bin`, and then one line to `commits.log`, which says where
//! they are; only with this line does it count. What comes after the last whole line is of a commit that never ended,
//! and the next writer takes it away. The other files are made from these, again where they are missing or old.
//! Messages that were cut off stay in the transcript: it is the archive.

mod folder;
mod record;
mod root;
mod state;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::change::{Change, Counts};
use crate::error::StoreError;
use crate::lease::Lease;
use crate::memory::{MemoryInfo, MemoryRow};
use crate::message::{StoredMessage, SupersededMessage};
use crate::search::{Hit, Search};
use crate::session::{DamagedSession, NewSession, SessionId, SessionInfo};
use crate::store::{Durability, Loaded, Page, Store, Writer};
use crate::usage::{EventRow, UsageRow};
use folder::{Bodies, Folder, open_log};
use root::{Known, Root, load, lock, memory_row, messages};
use state::State;

/// A store of plain files. Clones share it.
#[derive(Debug, Clone)]
pub struct FileStore {
    root: Arc<Root>,
}

/// How a store of plain files is to be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStoreOptions {
    /// What survives once a commit has returned.
    pub durability: Durability,
}

impl FileStore {
    /// Opens the folder, or makes it.
    ///
    /// # Errors
    /// What the system says.
    pub async fn open(root: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(root, FileStoreOptions::default()).await
    }

    /// Opens the folder in this way.
    ///
    /// # Errors
    /// What the system says.
    pub async fn open_with(
        root: impl AsRef<Path>,
        options: FileStoreOptions,
    ) -> Result<Self, StoreError> {
        let path = root.as_ref().to_owned();
        let root = blocking(move || Root::open(path, options.durability)).await?;
        Ok(Self {
            root: Arc::new(root),
        })
    }

    /// Reads a session as its last commit left it.
    async fn read<T: Send + 'static>(
        &self,
        id: &SessionId,
        read: impl FnOnce(&State, &mut Bodies) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (root, id) = (Arc::clone(&self.root), id.clone());
        blocking(move || {
            root.with_state(&id, |state| {
                read(state, &mut Bodies::open(&root.folder(&id))?)
            })
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(StoreError::Unavailable {
            source: error.into(),
        }),
    }
}

#[async_trait]
impl Store for FileStore {
    async fn create(&self, new: NewSession, changes: Vec<Change>) -> Result<Counts, StoreError> {
        let root = Arc::clone(&self.root);
        blocking(move || root.create(&new, &changes)).await
    }

    async fn open(&self, id: &SessionId, wait: Duration) -> Result<Box<dyn Writer>, StoreError> {
        self.session(id).await?;
        let lease = Lease::of_session(&self.root.locks(), id, wait).await?;
        let (root, of) = (Arc::clone(&self.root), id.clone());
        let opened = blocking(move || {
            root.with_state(&of, |state| {
                let files = Folder::open(&root.folder(&of), root.durability)?;
                files.repair(state.ends)?;
                drop(root.write_readable(state, true));
                Ok(files)
            })
        });
        match opened.await {
            Ok(files) => {
                let held = Arc::new(Held {
                    files: Mutex::new(files),
                    _known: self.root.state(id),
                    _lease: lease,
                });
                Ok(Box::new(FileWriter {
                    store: self.clone(),
                    id: id.clone(),
                    held,
                }))
            }
            // It was deleted while we waited.
            Err(error @ StoreError::SessionNotFound { .. }) => {
                lease.remove();
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        let (root, of) = (Arc::clone(&self.root), id.clone());
        if blocking(move || Ok(open_log(&root.folder(&of))?))
            .await?
            .is_none()
        {
            return Err(StoreError::SessionNotFound {
                session: id.clone(),
            });
        }
        let lease = Lease::of_session(&self.root.locks(), id, Duration::ZERO).await?;
        let (root, of) = (Arc::clone(&self.root), id.clone());
        blocking(move || root.delete(&of)).await?;
        lease.remove();
        Ok(())
    }

    async fn sessions(&self, page: Page) -> Result<Vec<SessionInfo>, StoreError> {
        let root = Arc::clone(&self.root);
        blocking(move || Ok(page.of(&root.infos()?).to_vec())).await
    }

    async fn damaged(&self) -> Result<Vec<DamagedSession>, StoreError> {
        let root = Arc::clone(&self.root);
        blocking(move || root.damaged()).await
    }

    async fn session(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        let (root, id) = (Arc::clone(&self.root), id.clone());
        blocking(move || root.info(&id)).await
    }

    async fn load(&self, id: &SessionId) -> Result<Loaded, StoreError> {
        self.read(id, load).await
    }

    async fn messages(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        self.read(id, move |state, bodies| messages(state, bodies, positions))
            .await
    }

    async fn superseded(
        &self,
        id: &SessionId,
        page: Page,
    ) -> Result<Vec<SupersededMessage>, StoreError> {
        self.read(id, move |state, bodies| {
            let rows = (page.skip..).zip(page.of(&state.superseded));
            rows.map(|(sequence, cut)| {
                let message = bodies.message(cut.position, &cut.message)?;
                Ok(SupersededMessage {
                    sequence,
                    superseded_ms: cut.superseded_ms,
                    message,
                })
            })
            .collect()
        })
        .await
    }

    async fn memories(&self, id: &SessionId, page: Page) -> Result<Vec<MemoryInfo>, StoreError> {
        self.read(id, move |state, _| {
            let rows = page.of(&state.memories).iter();
            let infos = rows.map(|memory| MemoryInfo {
                version: memory.version,
                covered_count: memory.covered_count,
                digest: memory.digest.0,
                origin: memory.origin.clone(),
                created_ms: memory.created_ms,
                tokens: memory.tokens,
            });
            Ok(infos.collect())
        })
        .await
    }

    async fn memory(&self, id: &SessionId, version: u64) -> Result<MemoryRow, StoreError> {
        self.read(id, move |state, bodies| {
            memory_row(
                bodies,
                state
                    .memory(version)
                    .ok_or(StoreError::MemoryNotFound { version })?,
            )
        })
        .await
    }

    async fn events(&self, id: &SessionId, page: Page) -> Result<Vec<EventRow>, StoreError> {
        self.read(id, move |state, bodies| {
            let rows = (page.skip..).zip(page.of(&state.events));
            rows.map(|(sequence, event)| {
                let json = bodies.text(event.json)?;
                Ok(EventRow {
                    sequence,
                    kind: event.kind.clone(),
                    json,
                    at_ms: event.at_ms,
                })
            })
            .collect()
        })
        .await
    }

    async fn usage(&self, id: &SessionId, page: Page) -> Result<Vec<UsageRow>, StoreError> {
        self.read(id, move |state, _| Ok(page.of(&state.usage).to_vec()))
            .await
    }

    async fn search(&self, search: &Search) -> Result<Vec<Hit>, StoreError> {
        let (root, search) = (Arc::clone(&self.root), search.clone());
        blocking(move || root.search(&search)).await
    }
}

#[derive(Debug)]
struct FileWriter {
    store: FileStore,
    id: SessionId,
    held: Arc<Held>,
}

/// What a commit needs, held by the commit itself: its caller may be gone before it ends.
#[derive(Debug)]
struct Held {
    files: Mutex<Folder>,
    _known: Known,
    _lease: Lease,
}

#[async_trait]
impl Writer for FileWriter {
    fn id(&self) -> &SessionId {
        &self.id
    }

    async fn commit(&mut self, at_ms: i64, changes: Vec<Change>) -> Result<Counts, StoreError> {
        let (root, id, held) = (
            Arc::clone(&self.store.root),
            self.id.clone(),
            Arc::clone(&self.held),
        );
        blocking(move || {
            let files = lock(&held.files);
            root.commit(&id, &files, at_ms, &changes)
        })
        .await
    }

    async fn load(&mut self) -> Result<Loaded, StoreError> {
        self.store.load(&self.id).await
    }
}
