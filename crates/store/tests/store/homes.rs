//! Where stores live in tests.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tempfile::TempDir;
use throughline_store::testing::Home;
use throughline_store::{Durability, MemoryStore, SqliteStore, SqliteStoreOptions, Store};

#[derive(Default)]
pub(crate) struct InMemory(MemoryStore);

#[async_trait]
impl Home for InMemory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }
}

pub(crate) struct InSqlite {
    pub(crate) folder: TempDir,
    pub(crate) durability: Durability,
}

impl InSqlite {
    pub(crate) fn new(durability: Durability) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            durability,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("new").join("sessions.db")
    }
}

#[async_trait]
impl Home for InSqlite {
    async fn open(&self) -> Arc<dyn Store> {
        let mut options = SqliteStoreOptions::default();
        options.durability = self.durability;
        Arc::new(SqliteStore::open_with(self.path(), options).await.unwrap())
    }
}
