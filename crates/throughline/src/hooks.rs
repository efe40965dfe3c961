//! Who is asked before and after a memory is made.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use throughline_memory::document::Memory;
use throughline_transcript::message::Message;

/// What a program does about compactions: looks at them, forbids them, adds what must be kept, changes the memory.
///
/// Hooks run in the background, before anything is swapped in. A request waits for them only where it has to wait
/// for a memory at all.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// A memory is about to be made.
    async fn before_compaction(&self, compaction: BeforeCompaction<'_>) -> Verdict {
        let _ = compaction;
        Verdict::go_on()
    }

    /// A memory was made and is not used yet: it can be changed or replaced. It has to cover the same messages;
    /// what it leaves out of the ledger is put back. A memory by a model follows one by code, each comes here.
    async fn after_compaction(&self, by: MadeBy, memory: &mut Memory) {
        let _ = (by, memory);
    }
}

#[async_trait]
impl<T: Hooks + ?Sized> Hooks for Arc<T> {
    async fn before_compaction(&self, compaction: BeforeCompaction<'_>) -> Verdict {
        T::before_compaction(self, compaction).await
    }

    async fn after_compaction(&self, by: MadeBy, memory: &mut Memory) {
        T::after_compaction(self, by, memory).await;
    }
}

/// A memory that is about to be made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeCompaction<'a> {
    /// The messages that the memory is to cover and that no memory covers yet, by index.
    pub messages: Range<usize>,
    /// Those messages.
    pub new: &'a [Message],
    /// The memory of everything before them.
    pub memory: Option<&'a Memory>,
    /// What it should focus on, if the caller asked for that.
    pub focus: Option<&'a str>,
}

/// What is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The memory is made.
    Compact {
        /// Facts that are pinned first: they stay in the ledger of every memory from now on. Secrets are taken out.
        keep: Vec<String>,
    },
    /// It is not. What fits into no request any more is refused by then, with
    /// [`SendError::TooLarge`](crate::SendError::TooLarge).
    Veto {
        /// Why, for events.
        reason: String,
    },
}

impl Verdict {
    /// The memory is made as usual.
    #[must_use]
    pub fn go_on() -> Self {
        Self::Compact { keep: Vec::new() }
    }
}

/// Who has made a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MadeBy {
    /// Code alone.
    Code,
    /// A model, checked and completed by code.
    Model,
}
