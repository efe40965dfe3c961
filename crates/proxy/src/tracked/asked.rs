//! What a person asks of a session: to compact, to take a swap back, to keep a fact, another memory, to rest.

use std::sync::Arc;
use std::time::Duration;

use throughline::driver::{self, KeptAdoption};
use throughline_engine::{
    Compaction, CompactionOutcome, Engine, Input, Mode, Pin, Preview, Requester, SessionStatus,
    Swapping, Version,
};
use throughline_memory::document::Memory;
use throughline_memory::redact::Redactor;
use tokio::sync::oneshot;

use super::{State, Tracked};

/// Longest fact that can be pinned, bytes.
pub(crate) const PIN_BYTES_MAX: usize = 8 * 1024;

/// A session as it stands.
pub(crate) struct Seen {
    pub(crate) status: SessionStatus,
    pub(crate) model: String,
    pub(crate) mode: Mode,
    pub(crate) window: u64,
    pub(crate) pins: Vec<Pin>,
    pub(crate) can_undo: bool,
    pub(crate) in_flight: usize,
}

/// What has become of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Compacted {
    /// This.
    Done(CompactionOutcome),
    /// Nothing yet: a model is making the memory.
    Running,
}

/// Why something that was asked for is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unasked {
    /// No memory has taken the place of messages, or what was before is not known any more.
    #[error("there is no swap to take back")]
    NothingToUndo,
    /// The session went on meanwhile.
    #[error("the session has changed meanwhile: look at it again")]
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

impl Tracked {
    /// The session as it stands.
    pub(crate) fn seen(&self) -> Seen {
        let state = self.state();
        let engine = &state.engine;
        Seen {
            status: engine.status(),
            model: state.model.clone(),
            mode: engine.settings().mode,
            window: engine.settings().window,
            pins: engine.pins().to_vec(),
            can_undo: !state.kept.before.is_empty(),
            in_flight: state.in_flight,
        }
    }

    /// What a swap would do now, and the memory that requests are made with.
    pub(crate) fn preview(&self) -> Option<(Preview, Option<Arc<Version>>)> {
        let state = self.state();
        let preview = state.engine.preview()?;
        Some((preview, state.engine.memory().cloned()))
    }

    /// Makes a memory, and waits at most so long for it.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub(crate) async fn compact(
        self: &Arc<Self>,
        focus: Option<String>,
        swapping: Swapping,
        wait: Duration,
    ) -> Result<Compacted, Unasked> {
        let (told, outcome) = oneshot::channel();
        {
            let mut state = self.state();
            state.compactions += 1;
            let id = state.compactions;
            state.asked.insert(id, told);
            let at = self.shared.clock.now();
            let compaction = Compaction {
                id,
                focus,
                by: Requester::User,
                swapping,
            };
            state.engine.handle(at, Input::Compact(compaction));
            self.drain(&mut state);
        }
        let outcome = match tokio::time::timeout(wait, outcome).await {
            Ok(Ok(outcome)) => Compacted::Done(outcome),
            Ok(Err(_)) => Compacted::Done(CompactionOutcome::Discarded),
            Err(_) => Compacted::Running,
        };
        self.stored().await?;
        Ok(outcome)
    }

    /// Swaps in the memory that was prepared, if it still is the one of this number.
    ///
    /// # Errors
    /// If there is another one by now, or none.
    pub(crate) async fn approve(
        self: &Arc<Self>,
        version: u32,
    ) -> Result<CompactionOutcome, Unasked> {
        let is_it = self
            .state()
            .engine
            .preview()
            .is_some_and(|preview| preview.is_prepared && number_of(&preview) == version);
        if !is_it {
            return Err(Unasked::Changed);
        }
        let wait = Duration::from_secs(10);
        match self.compact(None, Swapping::AtOnce, wait).await? {
            Compacted::Done(outcome) => Ok(outcome),
            Compacted::Running => Err(Unasked::Changed),
        }
    }

    /// Takes the last swap back: the next request has the messages again.
    ///
    /// # Errors
    /// If there is none, or it cannot be read or stored.
    pub(crate) async fn undo(self: &Arc<Self>) -> Result<(), Unasked> {
        let (before, known) = {
            let state = self.state();
            let before = state.kept.before.last().copied();
            let before = before.ok_or(Unasked::NothingToUndo)?;
            let engine = &state.engine;
            let known = (
                engine.can_undo(),
                engine.status(),
                engine.settings().clone(),
            );
            (before, known)
        };
        let (can_undo, status, settings) = known;
        let read = if can_undo {
            None
        } else {
            let store = self.shared.store.as_ref();
            let covered = status.cover as u64;
            let read = driver::before(store, &self.id, before, covered, &settings).await;
            Some(read.map_err(|error| {
                tracing::warn!(session = %self.id, %error, "what was before a swap cannot be read");
                Unasked::NothingToUndo
            })?)
        };
        {
            let mut state = self.state();
            if state.engine.status().epoch != status.epoch
                || state.kept.before.last() != Some(&before)
            {
                return Err(Unasked::Changed);
            }
            let at = self.shared.clock.now();
            if let Some(read) = read {
                state.engine.handle(at, Input::Before(Box::new(read)));
            }
            if !state.engine.can_undo() {
                return Err(Unasked::NothingToUndo);
            }
            state.kept.before.pop();
            state.present = KeptAdoption {
                removed_tokens: 0,
                ..before
            };
            state.removed_tokens = state.removed_tokens.saturating_sub(before.removed_tokens);
            state.engine.handle(at, Input::Undo);
            self.drain(&mut state);
            // The memory that was not wanted does not come back after a restart either.
            state.kept.undone_versions = u64::from(state.engine.newest_version());
            state.keep();
            self.drain(&mut state);
        }
        self.stored().await
    }

    /// Keeps a fact in the ledger of every memory from now on; gives the id of the pin.
    ///
    /// # Errors
    /// If there is nothing to keep, or it cannot be stored.
    pub(crate) async fn pin(
        self: &Arc<Self>,
        text: &str,
        message: Option<usize>,
    ) -> Result<String, Unasked> {
        let text = text.trim();
        if text.is_empty() || text.len() > PIN_BYTES_MAX {
            return Err(Unasked::NoFact);
        }
        let id = uuid::Uuid::now_v7().simple().to_string();
        {
            let mut state = self.state();
            let pin = Pin {
                id: id.clone(),
                text: Redactor::embedded().redact(text).into_owned(),
                message: message.unwrap_or_else(|| state.engine.messages()),
            };
            self.handled(&mut state, Input::Pin(pin));
        }
        self.stored().await?;
        Ok(id)
    }

    /// Lets a pinned fact go with the next swap.
    ///
    /// # Errors
    /// If there is no such pin, or it cannot be stored.
    pub(crate) async fn unpin(self: &Arc<Self>, id: &str) -> Result<(), Unasked> {
        {
            let mut state = self.state();
            if !state.engine.pins().iter().any(|pin| pin.id == id) {
                return Err(Unasked::NoSuchPin);
            }
            self.handled(&mut state, Input::Unpin { id: id.to_owned() });
        }
        self.stored().await
    }

    /// Changes the memory in the requests, or the one that is prepared, by `edit`; it takes its place at once. `version`
    /// is the number of the memory that was looked at.
    ///
    /// # Errors
    /// If it is neither of them, what `edit` says, or if it cannot be stored.
    pub(crate) async fn edit<E: From<Unasked>>(
        self: &Arc<Self>,
        version: u32,
        edit: impl FnOnce(&Memory, u32) -> Result<Memory, E> + Send,
    ) -> Result<u32, E> {
        let adopted = {
            let mut state = self.state();
            let memory = base(&state.engine, version).ok_or(Unasked::Changed)?;
            let next = state.engine.newest_version() + 1;
            let memory = edit(&memory.memory, next)?;
            let epoch = state.engine.status().epoch;
            self.handled(&mut state, Input::Given(Box::new(memory)));
            let status = state.engine.status();
            status.version.filter(|_| status.epoch != epoch)
        };
        self.stored().await?;
        Ok(adopted.ok_or(Unasked::Changed)?)
    }

    /// Whether memories are made and swapped in. What was swapped in already stays.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub(crate) async fn set_mode(self: &Arc<Self>, mode: Mode) -> Result<(), Unasked> {
        {
            let mut state = self.state();
            let before = state.engine.settings().clone();
            let mut settings = before.clone();
            settings.mode = mode;
            state.kept.change(&before, &settings);
            self.handled(&mut state, Input::Configured(Box::new(settings)));
        }
        self.stored().await
    }

    /// Has the engine take something in, and what it keeps stored.
    fn handled(self: &Arc<Self>, state: &mut State, input: Input) {
        state.engine.handle(self.shared.clock.now(), input);
        self.drain(state);
        state.keep();
        self.drain(state);
    }

    /// Waits until everything so far is stored.
    async fn stored(&self) -> Result<(), Unasked> {
        if self.shared.archive.settled(&self.id).await {
            Ok(())
        } else {
            Err(Unasked::NotStored)
        }
    }
}

fn number_of(preview: &Preview) -> u32 {
    preview.version.memory.version
}

/// The memory of this number, if it is the one in the requests or the one that would be swapped in.
fn base(engine: &Engine, version: u32) -> Option<Arc<Version>> {
    let is_it = |found: &Arc<Version>| found.memory.version == version;
    engine
        .memory()
        .cloned()
        .filter(is_it)
        .or_else(|| Some(engine.preview()?.version).filter(is_it))
}
