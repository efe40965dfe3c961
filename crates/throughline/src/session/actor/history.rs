//! Going back: to the memory before, to an earlier message, to the beginning.

use throughline_engine::{Engine, Input};
use throughline_store::Change;

use super::Actor;
use crate::error::SessionError;
use crate::session::kept::KeptAdoption;
use crate::session::{builder, stored};

impl Actor {
    pub(super) async fn undo(&mut self) -> Result<(), SessionError> {
        let Some(before) = self.parts.kept.before.last().copied() else {
            return Err(SessionError::NothingToUndo);
        };
        if !self.engine.can_undo() {
            let covered = self.engine.status().cover as u64;
            let settings = self.engine.settings();
            let id = self.parts.writer.id();
            let store = self.parts.store.as_ref();
            let before = stored::before(store, id, before, covered, settings).await?;
            self.handle(Input::Before(Box::new(before)));
        }
        if !self.engine.can_undo() {
            return Err(SessionError::NothingToUndo);
        }
        self.parts.kept.before.pop();
        self.present = before;
        self.removed_tokens = self.removed_tokens.saturating_sub(before.removed_tokens);
        self.handle(Input::Undo);
        self.drain().await;
        self.parts.kept.undone_versions = self.expected_version();
        self.keep().await
    }

    pub(super) async fn truncate(&mut self, messages: usize) -> Result<(), SessionError> {
        let known = self.engine.messages();
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
        if messages >= self.engine.status().cover {
            self.commit_with(Change::Truncate {
                to_count: messages as u64,
            })
            .await?;
            self.handle(Input::Truncated { messages });
            self.drain().await;
            return Ok(self.flush().await?);
        }
        self.go_back_behind_the_memory(messages).await
    }

    /// The messages that are left are covered by the memory: an older one, or none, takes its place.
    async fn go_back_behind_the_memory(&mut self, messages: usize) -> Result<(), SessionError> {
        self.flush().await?;
        self.handle(Input::Truncated { messages });
        self.drain().await;
        let now = self.parts.clock.now();
        let id = self.parts.writer.id().clone();
        let newest = builder::newest_memory_within(
            self.parts.store.as_ref(),
            &id,
            messages as u64,
            self.parts.kept.cleared_versions,
        )
        .await?;
        let epoch = self.engine.status().epoch;
        let adoption = throughline_engine::MemoryAdoption {
            epoch: epoch + 1,
            version: newest
                .as_ref()
                .and_then(|(row, _)| u32::try_from(row.version).ok()),
            cover: newest
                .as_ref()
                .map_or(0, |(row, _)| row.covered_count as usize),
            at_messages: messages,
            quoted: None,
        };
        let changes = vec![
            Change::Truncate {
                to_count: messages as u64,
            },
            stored::adoption_change(&adoption, self.parts.counts.epoch, now),
        ];
        self.parts.counts = self.parts.writer.commit(now.ms(), changes).await?;
        let loaded = self.parts.writer.load().await?;
        let settings = self.engine.settings().clone();
        let pins = self.engine.pins().to_vec();
        let snapshot = stored::snapshot(&loaded, &[], pins, &settings).map_err(|what| {
            crate::error::OpenError::Corrupt {
                id: id.to_string(),
                what,
            }
        })?;
        self.stop_tasks().await;
        self.present = KeptAdoption {
            version: adoption.version,
            ..KeptAdoption::default()
        };
        // What stood before it stood for messages that are gone.
        self.parts.kept.before.clear();
        self.push_kept();
        self.engine = Engine::restore(settings, snapshot);
        self.tell_overhead();
        self.drain().await;
        Ok(())
    }

    pub(super) async fn clear(&mut self) -> Result<(), SessionError> {
        if self.is_busy() {
            return Err(SessionError::Busy);
        }
        self.handle(Input::Cleared);
        self.changes.push(Change::Truncate { to_count: 0 });
        self.drain().await;
        self.parts.kept.cleared_versions = self.expected_version();
        self.parts.kept.before.clear();
        self.keep().await
    }
}
