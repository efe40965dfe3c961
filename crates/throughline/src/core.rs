//! The heart of a session: one synchronous core, driven by two front ends.
//!
//! A [`Core`] owns the engine of one session and everything that follows from it: what is kept of the session in the
//! store, what it costs, which changes are pending, who waits for a compaction, and which updates run. It reads no
//! clock and no store, and starts no task: the time is an argument, every change of the engine is drained before a
//! method returns, and what needs the world outside comes back as [`Effects`]. The changes to store are taken with
//! [`Core::take_changes`].
//!
//! [`crate::Session`] drives a core from a task of its own; the proxy drives one under the lock of a tracked session.
//! Neither decides anything about a session itself. The module is public only so that the proxy, which is another
//! crate, can reach it: it is no part of the library's stable interface.

mod answers;
mod effect;
mod history;
mod jobs;
mod load;
mod rows;
mod session_row;
mod settings;

use std::collections::HashMap;
use std::sync::Arc;

use throughline_engine::{
    Compaction, CompactionOutcome, CompactionSettings, Engine, EngineEvent, Input, MemoryAdoption,
    Output, Pin, Requester, SwapTiming, Ticket, Time, Version,
};
use throughline_memory::document::Memory;
use throughline_memory::redact::Redactor;
use throughline_store::Change;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::digest::{Chain, Digest};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::effect::{Effect, Effects};
pub(crate) use self::history::newest_memory_within;
pub use self::history::{UndoError, UndoPlan};
pub use self::jobs::{DraftJob, DraftMaker, FinishedDraft, FinishedUpdate, UpdateJob, guarded};
pub use self::load::{Basis, Heritage, StoredSession};
pub use self::rows::{PendingChange, ReadMessage, message_of, version_of};
pub(crate) use self::rows::{adoption_change, append, memory_change, read, text_of};
pub use self::session_row::{AdoptionRow, BaselineRow, PinRow, SavingsRow, SessionRow};
pub use crate::clock::Clock;
pub use crate::compactor::{draft, warm_up};
use crate::costs::Costs;
use crate::event::{EventRecord, SessionEvent};
use crate::folder::{HandEdit, no_memory};
pub use crate::traffic::{Traffic, Waits};

/// What a core knows about its front end.
#[derive(Clone, Debug)]
pub struct CoreOptions {
    /// Models with their prices.
    pub catalogue: Arc<Catalogue>,
    /// Whether requests are sent as the engine plans them. Otherwise they are only observed.
    pub is_rewriting: bool,
    /// Makes drafts.
    pub draft: DraftMaker,
}

impl CoreOptions {
    /// The options of a front end that sends requests as they are planned.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>) -> Self {
        Self {
            catalogue,
            is_rewriting: true,
            draft,
        }
    }
}

/// The core of one session.
#[derive(Debug)]
pub struct Core {
    engine: Engine,
    row: SessionRow,
    /// What requests are made with.
    present: AdoptionRow,
    /// The epoch of the store once every pending change is stored.
    epoch: u64,
    model: String,
    costs: Costs,
    /// Tokens that swaps have taken out of the requests.
    removed_tokens: u64,
    options: CoreOptions,
    changes: Vec<PendingChange>,
    /// Whether `kept` has changed since the changes were last taken.
    is_row_changed: bool,
    /// Updates that run, and what cancels them.
    updates: HashMap<Ticket, CancellationToken>,
    compactions: u64,
    /// Callers that wait for the outcome of a compaction.
    waiters: HashMap<u64, oneshot::Sender<CompactionOutcome>>,
}

/// A text to pin has nothing in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no text to pin")]
pub struct NothingToPin;

impl Core {
    /// The core of a new session.
    #[must_use]
    pub fn new(
        settings: CompactionSettings,
        row: SessionRow,
        model: String,
        options: CoreOptions,
    ) -> Self {
        Self::of(Engine::new(settings), row, model, options)
    }

    fn of(engine: Engine, row: SessionRow, model: String, options: CoreOptions) -> Self {
        let epoch = engine.status().epoch;
        let costs = Costs {
            without_compaction: row.compared.without(),
            ..Costs::default()
        };
        Self {
            engine,
            present: AdoptionRow::default(),
            epoch,
            model,
            costs,
            removed_tokens: row.compared.removed_tokens,
            row,
            options,
            changes: Vec::new(),
            is_row_changed: false,
            updates: HashMap::new(),
            compactions: 0,
            waiters: HashMap::new(),
        }
    }

    /// Takes in what happened at `now`.
    pub fn handle(&mut self, now: Time, input: Input) -> Effects {
        let mut effects = Effects::default();
        self.feed(now, input, &mut effects);
        effects
    }

    /// Feeds the engine, and takes every output that follows.
    fn feed(&mut self, now: Time, input: Input, effects: &mut Effects) {
        self.engine.handle(now, input);
        while let Some(output) = self.engine.poll() {
            self.output(now, output, effects);
        }
    }

    fn output(&mut self, now: Time, output: Output, effects: &mut Effects) {
        match output {
            Output::Draft(order) => {
                let counter = self.engine.settings().counter;
                let job = DraftJob::new(order, counter, self.options.draft);
                effects.push(Effect::Draft(job));
            }
            Output::Update(order) => {
                let stop = CancellationToken::new();
                self.updates.insert(order.order.ticket, stop.clone());
                effects.push(Effect::Update(UpdateJob::new(order, stop)));
            }
            Output::CancelUpdate(ticket) => {
                if let Some(stop) = self.updates.remove(&ticket) {
                    stop.cancel();
                }
            }
            Output::Request(plan) => effects.push(Effect::Request(plan)),
            Output::Wait { at_most_ms, .. } => effects.push(Effect::Wait { at_most_ms }),
            Output::Keep(version) => self.changes.push(memory_change(&version, now).into()),
            Output::Adopt(adoption) => {
                self.adopt(now, &adoption);
                effects.push(Effect::Adopted);
            }
            Output::Reload { messages } => effects.push(Effect::Reload { messages }),
            Output::Event(event) => self.event(event, effects),
        }
    }

    fn adopt(&mut self, now: Time, adoption: &MemoryAdoption) {
        self.changes
            .push(adoption_change(adoption, self.epoch, now).into());
        self.epoch = adoption.epoch;
        let next = AdoptionRow {
            version: adoption.version,
            quoted: adoption.quoted,
            removed_tokens: 0,
        };
        self.row.adopted(self.present, next);
        self.present = next;
        self.is_row_changed = true;
    }

    fn event(&mut self, event: EngineEvent, effects: &mut Effects) {
        if let EngineEvent::Swapped {
            tokens_before,
            tokens_after,
            ..
        } = &event
        {
            let removed = tokens_before.saturating_sub(*tokens_after);
            self.removed_tokens += removed;
            if let Some(before) = self.row.before.last_mut() {
                before.removed_tokens = removed;
            }
        }
        if let EngineEvent::Compaction { id, outcome } = &event
            && let Some(waiter) = self.waiters.remove(id)
        {
            effects.push(Effect::Answer(waiter, outcome.clone()));
        }
        self.tell(SessionEvent::Engine(event), effects);
    }

    /// Stores an event, and has it told.
    fn tell(&mut self, event: SessionEvent, effects: &mut Effects) {
        if let Some(record) = EventRecord::of(&event) {
            let kind = record.kind();
            let json = record.to_json(&event);
            let change = Change::Event {
                kind: kind.to_owned(),
                json: json.clone(),
            };
            self.changes.push(change.into());
            effects.push(Effect::Event { event, kind, json });
        }
    }

    /// The changes to store, in order.
    pub fn take_changes(&mut self) -> Vec<PendingChange> {
        if std::mem::take(&mut self.is_row_changed) {
            let json = self.row_json();
            self.changes.push(Change::Settings(json).into());
        }
        std::mem::take(&mut self.changes)
    }

    /// What is kept of the session as it is now.
    fn row_json(&mut self) -> String {
        let row = &mut self.row;
        row.pins = self.engine.pins().iter().cloned().map(PinRow).collect();
        row.compared = BaselineRow::of(&self.costs.without_compaction, self.removed_tokens);
        row.ratio_permille = self.engine.ratio_permille();
        row.savings = Some(SavingsRow(self.engine.savings()));
        row.to_json()
    }

    /// The engine, to look at.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What is kept of the session besides messages and memories.
    #[must_use]
    pub fn row(&self) -> &SessionRow {
        &self.row
    }

    /// The model that answers.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// What the session has cost, and what it would have cost.
    #[must_use]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Tokens that swaps have taken out of the requests.
    #[must_use]
    pub fn removed_tokens(&self) -> u64 {
        self.removed_tokens
    }

    /// Whether a model is making a memory.
    #[must_use]
    pub fn is_updating(&self) -> bool {
        !self.updates.is_empty()
    }

    /// Index of the first message of the tail.
    #[must_use]
    pub fn tail_begins(&self) -> usize {
        self.engine.messages() - self.engine.tail().len()
    }

    /// Cancels every update that runs.
    pub fn stop(&mut self) {
        for (_, stop) in self.updates.drain() {
            stop.cancel();
        }
    }

    /// Adds a message at the end, and has it stored. Returns the digest of everything up to it.
    pub fn append(&mut self, now: Time, read: ReadMessage) -> (Digest, Effects) {
        let expected_count = self.engine.messages() as u64;
        let ReadMessage {
            mut message,
            original,
        } = read;
        message.at_ms = Some(now.ms());
        // Messages share their text.
        let effects = self.handle(now, Input::Appended(message.clone()));
        let chain = self.engine.digest();
        self.changes.push(PendingChange::Message {
            expected_count,
            message: Box::new(message),
            original,
            chain,
            at: now,
            counter: self.engine.settings().counter,
        });
        (chain, effects)
    }

    /// The change that stores messages before the session has them.
    #[must_use]
    pub fn append_change(&self, now: Time, messages: &[ReadMessage]) -> Change {
        let counter = self.engine.settings().counter;
        let count = self.engine.messages();
        append(
            messages,
            count,
            Chain::at(self.engine.digest()),
            now,
            counter,
        )
    }

    /// Adds messages at the end that are stored already.
    pub fn append_stored(&mut self, now: Time, messages: Vec<ReadMessage>) -> Effects {
        let mut effects = Effects::default();
        for mut read in messages {
            read.message.at_ms = Some(now.ms());
            self.feed(now, Input::Appended(read.message), &mut effects);
        }
        effects
    }

    /// Has a memory made now. `waiter` gets the outcome through [`Effect::Answer`].
    pub fn compact(
        &mut self,
        now: Time,
        focus: Option<String>,
        by: Requester,
        swapping: SwapTiming,
        waiter: oneshot::Sender<CompactionOutcome>,
    ) -> Effects {
        self.compactions += 1;
        let id = self.compactions;
        self.waiters.insert(id, waiter);
        let compaction = Compaction {
            id,
            focus: focus.filter(|focus| !focus.trim().is_empty()),
            by,
            swapping,
        };
        self.handle(now, Input::Compact(compaction))
    }

    /// Keeps a fact in the ledger of every memory from now on, without secrets. Returns the id of the pin.
    ///
    /// # Errors
    /// If the text is empty.
    pub fn pin(
        &mut self,
        now: Time,
        text: &str,
        message: Option<usize>,
    ) -> Result<(String, Effects), NothingToPin> {
        let text = Redactor::embedded().redact(text.trim());
        if text.is_empty() {
            return Err(NothingToPin);
        }
        let id = uuid::Uuid::now_v7().simple().to_string();
        let pin = Pin {
            id: id.clone(),
            text: text.into_owned(),
            message: message.unwrap_or(self.engine.messages()),
        };
        self.is_row_changed = true;
        Ok((id, self.handle(now, Input::Pin(pin))))
    }

    /// Removes a pin; the fact leaves the ledger with the next swap.
    pub fn unpin(&mut self, now: Time, id: &str) -> Effects {
        self.is_row_changed = true;
        self.handle(now, Input::Unpin { id: id.to_owned() })
    }

    /// Changes the settings. The change is kept, and outlives a restart.
    pub fn configure(
        &mut self,
        now: Time,
        change: impl FnOnce(&mut CompactionSettings),
    ) -> Effects {
        let before = self.engine.settings();
        let mut settings = before.clone();
        change(&mut settings);
        self.row.change(before, &settings);
        self.is_row_changed = true;
        self.handle(now, Input::Configured(Box::new(settings)))
    }

    /// The caller chose another model, with these settings. They are kept as the caller's.
    pub fn choose_model(
        &mut self,
        now: Time,
        model: String,
        settings: CompactionSettings,
    ) -> Effects {
        self.row.choose_model(&settings);
        self.switch_model(now, model, settings)
    }

    /// The client's requests name another model now, with these settings of its own. Of those that `opener` asks for,
    /// only those are kept that a session would begin with, `begun`.
    pub fn follow_model(
        &mut self,
        now: Time,
        model: String,
        begun: &SessionRow,
        plain: CompactionSettings,
        opener: impl FnOnce(&mut CompactionSettings),
    ) -> Effects {
        self.row.follow_model(begun);
        let settings = self.row.settings(plain, opener);
        self.switch_model(now, model, settings)
    }

    fn switch_model(&mut self, now: Time, model: String, settings: CompactionSettings) -> Effects {
        self.model.clone_from(&model);
        self.changes.push(Change::Model(model).into());
        self.is_row_changed = true;
        self.handle(now, Input::Configured(Box::new(settings)))
    }

    /// Replaces what requests have besides messages and memory.
    pub fn set_head(&mut self, head: String) {
        self.changes
            .push(Change::Head(head.into_bytes().into()).into());
    }

    /// Swaps in a memory that was edited or brought from elsewhere. Says whether it fits the session.
    pub fn set_memory(&mut self, now: Time, memory: Memory) -> (bool, Effects) {
        let epoch = self.engine.status().epoch;
        let effects = self.handle(now, Input::Given(Box::new(memory)));
        self.is_row_changed = true;
        (self.engine.status().epoch != epoch, effects)
    }

    /// Swaps in the present memory with what a person changed in its file, if that fits the session.
    pub fn apply_hand_edit(&mut self, now: Time, edit: &HandEdit) -> Effects {
        let mut effects = Effects::default();
        for id in edit.unpinned(self.engine.pins()) {
            effects.extend(self.unpin(now, &id));
        }
        let none = no_memory();
        let present = self.engine.memory();
        let present = present.map_or(&none, |version| &version.memory);
        let edited = edit.apply(present, self.engine.newest_version() + 1);
        let (fits, swapped) = self.set_memory(now, edited);
        if !fits {
            tracing::warn!("the edited memory file does not fit the session, and is not used");
        }
        effects.extend(swapped);
        effects
    }

    /// The memory version of this number, if it is in the requests or would be swapped in.
    #[must_use]
    pub fn version(&self, number: u32) -> Option<Arc<Version>> {
        let is_it = |found: &Arc<Version>| found.memory.version == number;
        let adopted = self.engine.memory().cloned().filter(is_it);
        adopted.or_else(|| Some(self.engine.preview()?.version).filter(is_it))
    }
}
