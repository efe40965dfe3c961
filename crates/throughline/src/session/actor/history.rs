//! Going back: to the memory before, to an earlier message, to the beginning.

use throughline_engine::Input;
use throughline_store::Change;

use super::Actor;
use crate::core::{UndoError, newest_memory_within};
use crate::error::{OpenError, SessionError};

impl Actor {
    pub(super) async fn undo(&mut self) -> Result<(), SessionError> {
        let nothing = |_: UndoError| SessionError::NothingToUndo;
        let plan = self.core.undo_plan().map_err(nothing)?;
        let (store, id) = (self.parts.store.as_ref(), self.parts.writer.id());
        let before = plan.read(store, id).await?;
        let now = self.parts.clock.now();
        let effects = self.core.undo(now, &plan, before).map_err(nothing)?;
        self.store(effects).await
    }

    pub(super) async fn truncate(&mut self, messages: usize) -> Result<(), SessionError> {
        let known = self.core.engine().messages();
        if self.is_busy() {
            return Err(SessionError::Busy);
        }
        if messages > known {
            return Err(SessionError::NoSuchMessage {
                asked: messages,
                messages: known,
            });
        }
        if messages == 0 {
            return self.clear().await;
        }
        if messages >= self.core.engine().status().cover {
            self.commit_with(Change::Truncate {
                to_count: messages as u64,
            })
            .await?;
            self.handle(Input::Truncated { messages }).await;
            return Ok(self.flush().await?);
        }
        self.go_back_behind_the_memory(messages).await
    }

    /// The memory covers the messages that are left: an older one, or none, takes its place.
    async fn go_back_behind_the_memory(&mut self, messages: usize) -> Result<(), SessionError> {
        self.flush().await?;
        self.handle(Input::Truncated { messages }).await;
        let now = self.parts.clock.now();
        let id = self.parts.writer.id().clone();
        let cleared = self.core.row().cleared_versions;
        let store = self.parts.store.as_ref();
        let older = newest_memory_within(store, &id, messages as u64, cleared).await?;
        let older = older.as_ref().map(|(row, _)| row);
        let counts = self.parts.counts;
        let changes = self.core.cut_behind_memory(now, messages, older, counts);
        self.parts.counts = self.parts.writer.commit(now.ms(), changes).await?;
        let loaded = self.parts.writer.load().await?;
        self.stop_tasks().await;
        let reloaded = self.core.reload(&loaded);
        reloaded.map_err(|what| OpenError::Corrupt {
            id: id.to_string(),
            what,
        })?;
        let effects = self.tell_overhead();
        self.perform(effects).await;
        Ok(())
    }

    pub(super) async fn clear(&mut self) -> Result<(), SessionError> {
        if self.is_busy() {
            return Err(SessionError::Busy);
        }
        let effects = self.core.clear(self.parts.clock.now());
        self.store(effects).await
    }
}
