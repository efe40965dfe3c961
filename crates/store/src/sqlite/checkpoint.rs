//! Carries the write-ahead log into the database beside the commits: a caller that waits for a commit never waits for a
//! checkpoint.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlx::sqlite::SqlitePool;
use tokio::task::JoinSet;

use crate::change::Change;

/// The log is carried over after this many bytes, SQLite's own number. Readers search the log, so it must stay short.
const LOG_BYTES: u64 = 4 * 1024 * 1024;
/// What even a small commit adds: a dozen pages.
const COMMIT_BYTES: u64 = 12 * 4096;

#[derive(Debug)]
pub(super) struct Checkpoints {
    pool: SqlitePool,
    /// About how much was added since the last time.
    log_bytes: AtomicU64,
    /// At most one. It ends with the store.
    running: Mutex<JoinSet<()>>,
}

impl Checkpoints {
    pub(super) fn new(pool: SqlitePool) -> Self {
        Self {
            pool,
            log_bytes: AtomicU64::new(0),
            running: Mutex::default(),
        }
    }

    /// Takes note of a commit.
    pub(super) fn committed(&self, changes: &[Change]) {
        let bytes = COMMIT_BYTES + changes.iter().map(bytes).sum::<u64>();
        if self.log_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes < LOG_BYTES {
            return;
        }
        let mut running = self.running();
        while running.try_join_next().is_some() {}
        if running.is_empty() {
            self.log_bytes.store(0, Ordering::Relaxed);
            let pool = self.pool.clone();
            running.spawn(async move {
                // Where it fails, the next one does it, or the commit at which SQLite loses its patience.
                drop(
                    sqlx::query("PRAGMA wal_checkpoint(PASSIVE)")
                        .execute(&pool)
                        .await,
                );
            });
        }
    }

    pub(super) async fn close(&self) {
        let mut running = std::mem::take(&mut *self.running());
        while running.join_next().await.is_some() {}
        self.pool.close().await;
    }

    fn running(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a change adds to the log, more or less: a text is written once as it is and about once more into the index.
fn bytes(change: &Change) -> u64 {
    let bytes = match change {
        Change::Append { messages, .. } => messages
            .iter()
            .map(|message| {
                message.original.len()
                    + message.sent.as_ref().map_or(0, |sent| sent.len())
                    + 2 * message.text.len()
            })
            .sum(),
        Change::Memory(memory) => memory.json.len() + 2 * memory.markdown.len(),
        Change::Adopt { adoption, .. } => adoption.state.len(),
        Change::Head(head) => head.len(),
        Change::Settings(settings) => settings.len(),
        Change::Event { json, .. } => json.len(),
        Change::Truncate { .. } | Change::Title(_) | Change::Model(_) | Change::Usage(_) => 0,
    };
    bytes as u64
}
