//! The state of a session, and the effect of a swap.

use std::sync::Arc;

use super::Engine;
use crate::event::Halt;
use crate::version::Version;

/// The state of a session, for users and dashboards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// Tokens of the next request, estimated and corrected.
    pub tokens: u64,
    /// The part of it that is system prompt and tools.
    pub overhead: u64,
    /// Tokens of the memory in it.
    pub memory: u64,
    /// Where building begins.
    pub soft: u64,
    /// Where the memory is swapped in.
    pub hard: u64,
    /// The largest prompt.
    pub limit: u64,
    /// The epoch.
    pub epoch: u64,
    /// Messages that the adopted memory covers.
    pub cover: usize,
    /// Messages of the transcript.
    pub messages: usize,
    /// Number of the adopted version.
    pub version: Option<u32>,
    /// Cover of the memory that would be swapped in now.
    pub ready_cover: Option<usize>,
    /// Whether code is making a memory.
    pub is_drafting: bool,
    /// Whether a model is making a memory.
    pub is_updating: bool,
    /// Why nothing is compacted.
    pub halt: Option<Halt>,
}

/// What a swap would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The memory that would be swapped in.
    pub version: Arc<Version>,
    /// Whether it was made for review: [`crate::Input::Compact`] with [`crate::SwapTiming::AtOnce`] swaps in this one.
    pub is_prepared: bool,
    /// Messages that would be covered, on top of those that are.
    pub covers: (usize, usize),
    /// Tokens of the context before.
    pub tokens_before: u64,
    /// Tokens of the context after.
    pub tokens_after: u64,
    /// What the adopted memory says and the new one does not: ids and texts.
    pub drops: Vec<(String, String)>,
}

impl Engine {
    /// The state of the session.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        let budget = self.budget();
        SessionStatus {
            tokens: self.context(),
            overhead: self.overhead.tokens,
            memory: self.memories.adopted_tokens(),
            soft: budget.at(self.settings.soft),
            hard: budget.at(self.mark()),
            limit: budget.limit(),
            epoch: self.epoch,
            cover: self.live.first(),
            messages: self.live.end(),
            version: self.memory().map(|version| version.memory.version),
            ready_cover: self.candidate().map(|version| version.cover()),
            is_drafting: self.builds.drafting().is_some(),
            is_updating: self.builds.updating().is_some(),
            halt: self
                .halts
                .stopped()
                .map(|stopped| stopped.halt.clone())
                .or_else(|| self.rest_halt()),
        }
    }

    /// The halt of the model alone, while it lasts.
    fn rest_halt(&self) -> Option<Halt> {
        let last = self.failures.halting()?.clone();
        Some(Halt::Failures {
            in_a_row: self.settings.failures_max,
            last,
        })
    }

    /// What a swap would do now; `None` if no memory is ready. [`crate::Input::Compact`] with
    /// [`crate::SwapTiming::Preview`] has one prepared.
    #[must_use]
    pub fn preview(&self) -> Option<Preview> {
        let version = self.candidate()?;
        let kept: Vec<&str> = version
            .memory
            .items
            .iter()
            .map(|item| item.id.as_str())
            .collect();
        let drops = self.memory().map_or_else(Vec::new, |adopted| {
            adopted
                .memory
                .items
                .iter()
                .filter(|item| !kept.contains(&item.id.as_str()))
                .map(|item| (item.id.clone(), item.entry.text().to_owned()))
                .collect()
        });
        Some(Preview {
            is_prepared: self
                .prepared()
                .is_some_and(|prepared| Arc::ptr_eq(&prepared, version)),
            covers: (self.live.first(), version.cover()),
            tokens_before: self.context(),
            tokens_after: self.context_with(version),
            drops,
            version: Arc::clone(version),
        })
    }
}
