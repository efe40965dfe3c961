//! Operations that a user requests: compact, approve, undo, pin, edit, and change the mode.

use std::sync::Arc;
use std::time::Duration;

use throughline::core::UndoError;
use throughline_engine::{
    CompactionOutcome, CompactionSettings, Mode, Pin, Preview, Requester, SessionStatus,
    SwapTiming, Version,
};
use throughline_memory::document::Memory;
use tokio::sync::oneshot;

use super::TrackedSession;

/// Longest fact that can be pinned, bytes.
pub(crate) const PIN_BYTES_MAX: usize = 8 * 1024;

/// The state of a session that the dashboard shows.
pub(crate) struct Snapshot {
    pub(crate) status: SessionStatus,
    pub(crate) model: String,
    pub(crate) mode: Mode,
    pub(crate) window: u64,
    pub(crate) pins: Vec<Pin>,
    pub(crate) can_undo: bool,
    pub(crate) in_flight: usize,
}

/// The state of a compaction after the wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompactionProgress {
    /// It has ended.
    Done(CompactionOutcome),
    /// A model is still making the memory.
    Running,
}

/// Why an operation fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OperationError {
    /// There was no swap, or the state before it is no longer known.
    #[error("there is no swap to undo")]
    NothingToUndo,
    /// The session has changed since the caller read it.
    #[error("the session has changed: reload it and try again")]
    Changed,
    /// There is no such pin.
    #[error("there is no such pin")]
    NoSuchPin,
    /// The fact is empty or too long.
    #[error("a fact to pin has 1 to {PIN_BYTES_MAX} bytes")]
    NoFact,
    /// It cannot be stored.
    #[error("it cannot be stored")]
    NotStored,
}

impl TrackedSession {
    /// The current state of the session.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.state();
        let engine = state.core.engine();
        Snapshot {
            status: engine.status(),
            model: state.core.model().to_owned(),
            mode: engine.settings().mode,
            window: engine.settings().window,
            pins: engine.pins().to_vec(),
            can_undo: !state.core.row().before.is_empty(),
            in_flight: state.in_flight,
        }
    }

    /// What a swap would do now, and the memory that requests are made with.
    pub(crate) fn preview(&self) -> Option<(Preview, Option<Arc<Version>>)> {
        let state = self.state();
        let engine = state.core.engine();
        Some((engine.preview()?, engine.memory().cloned()))
    }

    /// Makes a memory. Waits for it at most for `wait`.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub(crate) async fn compact(
        self: &Arc<Self>,
        focus: Option<String>,
        swapping: SwapTiming,
        wait: Duration,
    ) -> Result<CompactionProgress, OperationError> {
        let (told, outcome) = oneshot::channel();
        {
            let mut state = self.state();
            let at = self.shared.clock.now();
            let effects = state
                .core
                .compact(at, focus, Requester::User, swapping, told);
            self.perform(&mut state, effects);
        }
        let outcome = match tokio::time::timeout(wait, outcome).await {
            Ok(Ok(outcome)) => CompactionProgress::Done(outcome),
            Ok(Err(_)) => CompactionProgress::Done(CompactionOutcome::Discarded),
            Err(_) => CompactionProgress::Running,
        };
        self.stored().await?;
        Ok(outcome)
    }

    /// Swaps in the prepared memory if it still has this version.
    ///
    /// # Errors
    /// If another memory is prepared, or none.
    pub(crate) async fn approve(
        self: &Arc<Self>,
        version: u32,
    ) -> Result<CompactionOutcome, OperationError> {
        let is_prepared = self
            .state()
            .core
            .engine()
            .preview()
            .is_some_and(|preview| preview.is_prepared && number_of(&preview) == version);
        if !is_prepared {
            return Err(OperationError::Changed);
        }
        let wait = Duration::from_secs(10);
        match self.compact(None, SwapTiming::AtOnce, wait).await? {
            CompactionProgress::Done(outcome) => Ok(outcome),
            CompactionProgress::Running => Err(OperationError::Changed),
        }
    }

    /// Undoes the last swap: the next request contains the messages again.
    ///
    /// # Errors
    /// If there is no swap, or the state before it cannot be read or the change stored.
    pub(crate) async fn undo(self: &Arc<Self>) -> Result<(), OperationError> {
        let plan = self.state().core.undo_plan()?;
        let read = plan.read(self.shared.store.as_ref(), &self.id).await;
        let read = read.map_err(|error| {
            tracing::warn!(session = %self.id, %error, "the state before the swap cannot be read");
            OperationError::NothingToUndo
        })?;
        {
            let mut state = self.state();
            let effects = state.core.undo(self.shared.clock.now(), &plan, read)?;
            self.perform(&mut state, effects);
        }
        self.stored().await
    }

    /// Keeps a fact in the ledger of every later memory. Returns the id of the pin.
    ///
    /// # Errors
    /// If the fact is empty or too long, or cannot be stored.
    pub(crate) async fn pin(
        self: &Arc<Self>,
        text: &str,
        message: Option<usize>,
    ) -> Result<String, OperationError> {
        if text.trim().len() > PIN_BYTES_MAX {
            return Err(OperationError::NoFact);
        }
        let id = {
            let mut state = self.state();
            let pinned = state.core.pin(self.shared.clock.now(), text, message);
            let (id, effects) = pinned.map_err(|_| OperationError::NoFact)?;
            self.perform(&mut state, effects);
            id
        };
        self.stored().await?;
        Ok(id)
    }

    /// Removes a pinned fact with the next swap.
    ///
    /// # Errors
    /// If there is no such pin, or it cannot be stored.
    pub(crate) async fn unpin(self: &Arc<Self>, id: &str) -> Result<(), OperationError> {
        {
            let mut state = self.state();
            if !state.core.engine().pins().iter().any(|pin| pin.id == id) {
                return Err(OperationError::NoSuchPin);
            }
            let effects = state.core.unpin(self.shared.clock.now(), id);
            self.perform(&mut state, effects);
        }
        self.stored().await
    }

    /// Edits the memory in the requests, or the prepared one, and swaps the result in. `version` is the number of the
    /// memory that the user saw.
    ///
    /// # Errors
    /// If `version` is neither of them, if `edit` fails, or if the result cannot be stored.
    pub(crate) async fn edit<E: From<OperationError>>(
        self: &Arc<Self>,
        version: u32,
        edit: impl FnOnce(&Memory, u32) -> Result<Memory, E> + Send,
    ) -> Result<u32, E> {
        let adopted = {
            let mut state = self.state();
            let memory = state.core.version(version).ok_or(OperationError::Changed)?;
            let next = state.core.engine().newest_version() + 1;
            let memory = edit(&memory.memory, next)?;
            let (fits, effects) = state.core.set_memory(self.shared.clock.now(), memory);
            self.perform(&mut state, effects);
            let status = state.core.engine().status();
            status.version.filter(|_| fits)
        };
        self.stored().await?;
        Ok(adopted.ok_or(OperationError::Changed)?)
    }

    /// Sets when the session is compacted. Earlier swaps stay.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub(crate) async fn set_mode(self: &Arc<Self>, mode: Mode) -> Result<(), OperationError> {
        {
            let mut state = self.state();
            let set = |settings: &mut CompactionSettings| settings.mode = mode;
            let effects = state.core.configure(self.shared.clock.now(), set);
            self.perform(&mut state, effects);
        }
        self.stored().await
    }

    /// Waits until all changes are stored.
    async fn stored(&self) -> Result<(), OperationError> {
        if self.shared.archive.settled(&self.id).await {
            Ok(())
        } else {
            Err(OperationError::NotStored)
        }
    }
}

fn number_of(preview: &Preview) -> u32 {
    preview.version.memory.version
}

impl From<UndoError> for OperationError {
    fn from(error: UndoError) -> Self {
        match error {
            UndoError::NothingToUndo => Self::NothingToUndo,
            UndoError::Changed => Self::Changed,
        }
    }
}
