//! Going back: to the memory before, to an earlier message, to the beginning.

use throughline_engine::{
    CompactionSettings, Engine, Input, MemoryAdoption, PreviousEpoch, Time, Version,
};
use throughline_store::{
    Change, Counts, Loaded, MemoryRow, Page, SessionId, Store, StoreError, StoredMessage,
};
use throughline_transcript::digest::{Chain, Digest};

use super::rows::{adoption_change, message_of, snapshot, version_of};
use super::{AdoptionRow, Core, Effects, PinRow, SavingsRow};
use crate::error::OpenError;

/// The swap that an undo takes back, and what it has to read for that.
#[derive(Clone, Debug)]
pub struct UndoPlan {
    epoch: u64,
    before: AdoptionRow,
    covered: u64,
    /// Whether the engine does not know what was before.
    is_read: bool,
    settings: CompactionSettings,
}

/// Why a swap cannot be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// There is no swap, or what was before it is not known.
    #[error("there is no swap to take back")]
    NothingToUndo,
    /// Something else was swapped in meanwhile.
    #[error("the session has changed meanwhile")]
    Changed,
}

impl UndoPlan {
    /// Reads what requests were made with before the swap, where the core does not know it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn read(
        &self,
        store: &dyn Store,
        id: &SessionId,
    ) -> Result<Option<PreviousEpoch>, OpenError> {
        if !self.is_read {
            return Ok(None);
        }
        let version = match self.before.version {
            Some(number) => {
                let row = store.memory(id, u64::from(number)).await?;
                let version = version_of(&row, &self.settings);
                Some(version.map_err(|what| OpenError::Corrupt {
                    id: id.to_string(),
                    what,
                })?)
            }
            None => None,
        };
        let first = version.as_ref().map_or(0, Version::cover) as u64;
        let chain = match first.checked_sub(1) {
            Some(last) => Digest::from_bytes(store.message(id, last).await?.digest),
            None => Chain::new().digest(),
        };
        let messages = |stored: Vec<StoredMessage>| stored.iter().filter_map(message_of).collect();
        let quoted = match self.before.quoted {
            Some((first, end)) => {
                let stored = store.messages(id, first as u64..end as u64).await?;
                Some((first, messages(stored)))
            }
            None => None,
        };
        Ok(Some(PreviousEpoch {
            version,
            quoted,
            chain,
            messages: messages(store.messages(id, first..self.covered).await?),
        }))
    }
}

impl AdoptionRow {
    /// What the requests of a restored session are made with.
    pub(super) fn present(snapshot: &throughline_engine::Snapshot) -> Self {
        Self {
            version: snapshot
                .version
                .as_ref()
                .map(|version| version.memory.version),
            quoted: snapshot
                .adoption
                .as_ref()
                .and_then(|adoption| adoption.quoted),
            removed_tokens: 0,
        }
    }
}

impl Core {
    /// What an undo would revert.
    ///
    /// # Errors
    /// [`UndoError::NothingToUndo`].
    pub fn undo_plan(&self) -> Result<UndoPlan, UndoError> {
        let before = self.row.before.last().copied();
        let status = self.engine.status();
        Ok(UndoPlan {
            epoch: status.epoch,
            before: before.ok_or(UndoError::NothingToUndo)?,
            covered: status.cover as u64,
            is_read: !self.engine.can_undo(),
            settings: self.engine.settings().clone(),
        })
    }

    /// Takes the last swap back, with what the plan has read.
    ///
    /// # Errors
    /// If it cannot be undone, or another swap has happened since the plan was made.
    pub fn undo(
        &mut self,
        now: Time,
        plan: &UndoPlan,
        read: Option<PreviousEpoch>,
    ) -> Result<Effects, UndoError> {
        if self.engine.status().epoch != plan.epoch || self.row.before.last() != Some(&plan.before)
        {
            return Err(UndoError::Changed);
        }
        let mut effects = Effects::default();
        if let Some(read) = read {
            self.feed(now, Input::Before(Box::new(read)), &mut effects);
        }
        if !self.engine.can_undo() {
            return Err(UndoError::NothingToUndo);
        }
        self.row.before.pop();
        self.present = AdoptionRow {
            removed_tokens: 0,
            ..plan.before
        };
        self.removed_tokens = self
            .removed_tokens
            .saturating_sub(plan.before.removed_tokens);
        self.feed(now, Input::Undo, &mut effects);
        // The memory that was not wanted is not swapped in after a restart either.
        self.row.undone_versions = u64::from(self.engine.newest_version());
        self.is_row_changed = true;
        Ok(effects)
    }

    /// Cuts the transcript back to its first `messages`, which are at least those that the memory covers.
    pub fn truncate(&mut self, now: Time, messages: usize) -> Effects {
        let to_count = messages as u64;
        self.changes.push(Change::Truncate { to_count }.into());
        self.handle(now, Input::Truncated { messages })
    }

    /// Starts over, without messages and memory.
    pub fn clear(&mut self, now: Time) -> Effects {
        self.changes.push(Change::Truncate { to_count: 0 }.into());
        let effects = self.handle(now, Input::Cleared);
        self.row.cleared_versions = u64::from(self.engine.newest_version());
        self.row.before.clear();
        self.removed_tokens = 0;
        self.is_row_changed = true;
        effects
    }

    /// The changes that cut the stored session back into what the memory covers: an older memory, or none, takes its
    /// place. [`Core::reload`] follows once they are stored.
    #[must_use]
    pub fn cut_behind_memory(
        &self,
        now: Time,
        messages: usize,
        older: Option<&MemoryRow>,
        stored: Counts,
    ) -> Vec<Change> {
        let adoption = MemoryAdoption {
            epoch: self.engine.status().epoch + 1,
            version: older.and_then(|row| u32::try_from(row.version).ok()),
            cover: older.map_or(0, |row| row.covered_count as usize),
            at_messages: messages,
            quoted: None,
        };
        vec![
            Change::Truncate {
                to_count: messages as u64,
            },
            adoption_change(&adoption, stored.epoch, now),
        ]
    }

    /// Resumes with what is stored now, after [`Core::cut_behind_memory`].
    ///
    /// # Errors
    /// What of it cannot be read.
    pub fn reload(&mut self, loaded: &Loaded) -> Result<(), String> {
        let settings = self.engine.settings().clone();
        self.row.pins = self.engine.pins().iter().cloned().map(PinRow).collect();
        self.row.ratio_permille = self.engine.ratio_permille();
        self.row.savings = Some(SavingsRow(self.engine.savings()));
        let snapshot = snapshot(loaded, &[], &self.row, &settings)?;
        self.stop();
        self.present = AdoptionRow::present(&snapshot);
        self.epoch = loaded.counts.epoch;
        // What the swaps since then took out of the requests is gone.
        let swaps = &self.row.before;
        let since = swaps
            .iter()
            .position(|before| before.version == self.present.version);
        let removed = since.map_or(self.removed_tokens, |since| {
            swaps[since..].iter().map(|swap| swap.removed_tokens).sum()
        });
        self.removed_tokens = self.removed_tokens.saturating_sub(removed);
        self.row.before.clear();
        self.engine = Engine::restore(settings, snapshot);
        self.is_row_changed = true;
        Ok(())
    }
}

/// The newest memory of a session that covers at most the first `messages` as they are now, and their digest.
pub(crate) async fn newest_memory_within(
    store: &dyn Store,
    id: &SessionId,
    messages: u64,
    cleared_versions: u64,
) -> Result<Option<(MemoryRow, Digest)>, StoreError> {
    // The latest request of the user stays verbatim.
    let cover_max = latest_turn(store, id, messages).await?;
    const PAGE_ROWS: u32 = 500;
    let mut page = Page::first(PAGE_ROWS);
    page.skip = cleared_versions;
    let mut versions = Vec::new();
    loop {
        let rows = store.memories(id, page).await?;
        let is_last = rows.len() < PAGE_ROWS as usize;
        page.skip += u64::from(PAGE_ROWS);
        versions.extend(rows);
        if is_last {
            break;
        }
    }
    for info in versions.iter().rev() {
        if info.covered_count > cover_max {
            continue;
        }
        let digest = match info.covered_count.checked_sub(1) {
            // A memory that was brought from another session.
            None => *Chain::new().digest().as_bytes(),
            Some(last) => store.message(id, last).await?.digest,
        };
        if digest == info.digest {
            let row = store.memory(id, info.version).await?;
            return Ok(Some((row, Digest::from_bytes(digest))));
        }
    }
    Ok(None)
}

/// Index of the message with which the last turn begins, among the first `messages`.
async fn latest_turn(store: &dyn Store, id: &SessionId, messages: u64) -> Result<u64, StoreError> {
    const PAGE_MESSAGES: u64 = 50;
    let mut end = messages;
    while end > 0 {
        let begin = end.saturating_sub(PAGE_MESSAGES);
        let page = store.messages(id, begin..end).await?;
        let turn = page
            .iter()
            .rev()
            .find(|stored| message_of(stored).is_some_and(|message| message.begins_turn()));
        if let Some(stored) = turn {
            return Ok(stored.position);
        }
        end = begin;
    }
    Ok(0)
}
