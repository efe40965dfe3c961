//! The memories of a session: the one in the requests, the one before it, and those that may be swapped in.

use std::sync::Arc;

use super::builds::RunningBuild;
use crate::event::DueReason;
use crate::live::{Live, recount};
use crate::settings::CompactionSettings;
use crate::version::{AdoptedVersion, Past, Version};
use crate::vocabulary::Pin;

/// All memories that the engine holds.
#[derive(Debug)]
pub(super) struct Memories {
    adopted: Option<AdoptedVersion>,
    /// What the last swap replaced.
    past: Option<Past>,
    /// The newest memory by the model that is not adopted.
    ready: Option<Arc<Version>>,
    /// Number of the version in `ready` that was made to be previewed.
    prepared: Option<u32>,
    draft: Option<Draft>,
    /// Number of the newest version that was kept.
    number: u32,
    pins: Vec<Pin>,
}

/// The newest draft, and what it was made of.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) version: Arc<Version>,
    pub(super) running: RunningBuild,
    pub(super) storage: DraftStorage,
    /// Why the model is asked once the provider has begun to answer.
    pub(super) held: Option<DueReason>,
}

/// Whether a draft is stored before it is adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DraftStorage {
    Kept,
    NotKept,
}

impl Draft {
    /// The memory that it continues.
    pub(super) fn prior(&self) -> Option<&Arc<Version>> {
        self.running.order.prior.as_ref()
    }
}

impl Memories {
    pub(super) fn new(
        adopted: Option<AdoptedVersion>,
        ready: Option<Arc<Version>>,
        number: u32,
        pins: Vec<Pin>,
    ) -> Self {
        Self {
            adopted,
            past: None,
            ready,
            prepared: None,
            draft: None,
            number,
            pins,
        }
    }

    pub(super) fn adopted(&self) -> Option<&AdoptedVersion> {
        self.adopted.as_ref()
    }

    /// Tokens of the memory in the requests.
    pub(super) fn adopted_tokens(&self) -> u64 {
        self.adopted.as_ref().map_or(0, |adopted| adopted.tokens)
    }

    /// Bytes of the memory in the requests.
    pub(super) fn adopted_bytes(&self) -> u64 {
        self.adopted
            .as_ref()
            .map_or(0, |adopted| adopted.text.len() as u64)
    }

    pub(super) fn ready(&self) -> Option<&Arc<Version>> {
        self.ready.as_ref()
    }

    /// The version in `ready`, if it was made to be previewed.
    pub(super) fn prepared(&self) -> Option<&Arc<Version>> {
        self.ready
            .as_ref()
            .filter(|version| self.prepared == Some(version.memory.version))
    }

    pub(super) fn draft(&self) -> Option<&Draft> {
        self.draft.as_ref()
    }

    /// Number of the newest version that was kept.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Number of the next version.
    pub(super) fn next_number(&self) -> u32 {
        self.number.saturating_add(1)
    }

    pub(super) fn pins(&self) -> &[Pin] {
        &self.pins
    }

    pub(super) fn can_undo(&self) -> bool {
        self.past.is_some()
    }

    /// Whether the draft is the model's memory with what came after it.
    pub(super) fn is_catch_up(&self) -> bool {
        let (Some(ready), Some(draft)) = (&self.ready, &self.draft) else {
            return false;
        };
        draft.prior().is_some_and(|prior| Arc::ptr_eq(prior, ready))
    }

    /// Whether the version is stored already.
    pub(super) fn is_kept(&self, version: &Arc<Version>) -> bool {
        self.ready
            .as_ref()
            .is_some_and(|ready| Arc::ptr_eq(ready, version))
            || self.draft.as_ref().is_some_and(|draft| {
                draft.storage == DraftStorage::Kept && Arc::ptr_eq(&draft.version, version)
            })
    }

    /// Gives the version the next number.
    pub(super) fn number_next(
        &mut self,
        version: Version,
        settings: &CompactionSettings,
    ) -> Arc<Version> {
        self.number = self.next_number();
        Arc::new(version.numbered(self.number, settings))
    }

    pub(super) fn set_draft(&mut self, draft: Draft) {
        self.draft = Some(draft);
    }

    pub(super) fn forget_draft(&mut self) {
        self.draft = None;
    }

    /// Holds the model's memory of the draft back until the provider has begun to answer.
    pub(super) fn hold_model(&mut self, reason: DueReason) {
        if let Some(draft) = &mut self.draft {
            draft.held = Some(reason);
        }
    }

    /// Why the model is asked now that the provider has begun to answer.
    pub(super) fn release_model(&mut self) -> Option<DueReason> {
        self.draft.as_mut().and_then(|draft| draft.held.take())
    }

    pub(super) fn set_ready(&mut self, version: Arc<Version>) {
        self.ready = Some(version);
    }

    pub(super) fn prepare(&mut self, version: Arc<Version>) {
        self.prepared = Some(version.memory.version);
        self.ready = Some(version);
    }

    /// Forgets what may be swapped in.
    pub(super) fn forget_candidates(&mut self) {
        self.ready = None;
        self.draft = None;
    }

    /// Forgets what covers messages that were cut off.
    pub(super) fn truncate(&mut self, messages: usize) {
        self.ready.take_if(|version| version.cover() > messages);
        self.draft.take_if(|draft| draft.version.cover() > messages);
    }

    /// Forgets what covers no more than is covered now.
    pub(super) fn forget_overtaken(&mut self, first: usize) {
        self.ready.take_if(|version| version.cover() <= first);
        self.draft.take_if(|draft| draft.version.cover() <= first);
    }

    pub(super) fn clear(&mut self) {
        self.forget_candidates();
        self.past = None;
        self.adopted = None;
        self.pins.clear();
    }

    /// Adopts a version. Gives back what it replaces.
    pub(super) fn adopt(&mut self, adopted: Option<AdoptedVersion>) -> Option<AdoptedVersion> {
        std::mem::replace(&mut self.adopted, adopted)
    }

    pub(super) fn set_past(&mut self, past: Past) {
        self.past = Some(past);
    }

    pub(super) fn take_past(&mut self) -> Option<Past> {
        self.past.take()
    }

    /// Reasoning before this message belongs to another prefix.
    pub(super) fn reason_from(&mut self, messages: usize) {
        if let Some(adopted) = &mut self.adopted {
            adopted.adoption.at_messages = messages;
        }
    }

    pub(super) fn pin(&mut self, pin: Pin) {
        self.pins.retain(|known| known.id != pin.id);
        self.pins.push(pin);
    }

    /// The fact leaves the ledger with the next swap.
    pub(super) fn unpin(&mut self, id: &str) {
        self.pins.retain(|pin| pin.id != id);
    }

    /// Counts tokens again, by another model's tokenizer.
    pub(super) fn recount(&mut self, settings: &CompactionSettings) {
        let recount_version = |version: &mut Arc<Version>| {
            let tokens = settings.counter.text(&version.text) as u64;
            Arc::make_mut(version).tokens = tokens;
        };
        self.ready.as_mut().map(recount_version);
        if let Some(draft) = &mut self.draft {
            recount_version(&mut draft.version);
        }
        if let Some(adopted) = &mut self.adopted {
            adopted.tokens = settings.counter.text(&adopted.text) as u64;
        }
        if let Some(past) = &mut self.past {
            recount(&past.messages, &mut past.facts, &settings.counter);
            if let Some(adopted) = &mut past.adopted {
                adopted.tokens = settings.counter.text(&adopted.text) as u64;
            }
        }
    }
}

/// The memory that a stored session would swap in next, if it still fits the transcript.
pub(super) fn stored_ready(
    ready: Option<Version>,
    cover: usize,
    live: &Live,
) -> Option<Arc<Version>> {
    ready
        .filter(|version| version.cover() > cover)
        .filter(|version| {
            live.chain_at(version.cover())
                .is_some_and(|chain| version.fits(chain))
        })
        .map(Arc::new)
}
