//! Commits: what a session stores, and how a failed commit is handled.

use throughline_store::{Change, StoreError};

use super::Actor;
use crate::core::{Effects, PendingChange};
use crate::error::SessionError;

impl Actor {
    /// Does what the core needs, and stores everything that is pending. If that fails, it is tried again with the next
    /// change.
    pub(super) async fn store(&mut self, effects: Effects) -> Result<(), SessionError> {
        self.perform(effects).await;
        Ok(self.flush().await?)
    }

    /// Stores everything that is pending, and this change. If that fails, this change is forgotten.
    pub(super) async fn commit_with(&mut self, change: Change) -> Result<(), StoreError> {
        self.take_changes();
        self.changes.push(change);
        let result = self.flush().await;
        if result.is_err() {
            self.changes.pop();
        }
        result
    }

    /// Stores everything that is pending.
    pub(super) async fn flush(&mut self) -> Result<(), StoreError> {
        self.take_changes();
        self.settle_doubt().await?;
        if self.changes.is_empty() {
            return Ok(());
        }
        let at = self.parts.clock.now().ms();
        match self.parts.writer.commit(at, self.changes.clone()).await {
            Ok(counts) => {
                self.changes.clear();
                self.parts.counts = counts;
                self.write_folder().await;
                Ok(())
            }
            Err(error) => {
                if matches!(error, StoreError::Unavailable { .. }) {
                    self.doubtful = Some(self.changes.len());
                }
                Err(error)
            }
        }
    }

    /// Brings the session's folder up to date with the store.
    async fn write_folder(&mut self) {
        let Some(folder) = &self.parts.folder else {
            return;
        };
        let (store, id) = (self.parts.store.as_ref(), self.parts.writer.id());
        folder.log_failure(id, folder.follow(store, id, self.parts.counts).await);
    }

    /// Takes in what a person changed in the session's folder.
    pub(super) async fn read_folder(&mut self) {
        let Some(folder) = &self.parts.folder else {
            return;
        };
        let found = folder.log_failure(self.parts.writer.id(), folder.hand_edit());
        if let Some(edit) = found.flatten() {
            let effects = self.core.apply_hand_edit(self.parts.clock.now(), &edit);
            self.perform(effects).await;
        }
    }

    fn take_changes(&mut self) {
        let changes = self.core.take_changes();
        self.changes
            .extend(changes.into_iter().map(PendingChange::into_change));
    }

    /// Finds out whether the store has taken what it could not say that it has.
    async fn settle_doubt(&mut self) -> Result<(), StoreError> {
        let Some(doubtful) = self.doubtful else {
            return Ok(());
        };
        let counts = self.parts.writer.load().await?.counts;
        self.doubtful = None;
        if counts == self.parts.counts {
            return Ok(());
        }
        self.parts.counts = counts;
        self.changes.drain(..doubtful.min(self.changes.len()));
        let known = self
            .changes
            .iter()
            .find_map(|change| match change {
                Change::Append { expected_count, .. } => Some(*expected_count),
                _ => None,
            })
            .unwrap_or(self.core.engine().messages() as u64);
        if counts.message_count > known {
            // The caller was told that this message is not stored.
            self.changes.insert(0, Change::Truncate { to_count: known });
        }
        Ok(())
    }
}
