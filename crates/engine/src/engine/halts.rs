//! What keeps swaps from happening, and what forces one.

use std::mem::{Discriminant, discriminant};

use crate::event::{DueReason, Halt, SkipReason};

/// Why nothing is compacted, or why something has to be.
#[derive(Debug, Default)]
pub(super) struct Halts {
    halt: Option<HaltState>,
    /// What was skipped last, so that it is reported once.
    skipped: Option<(DueReason, Discriminant<SkipReason>)>,
    /// Live tokens when a swap was undone: no swap happens without a request for it before they have grown.
    undone_at: Option<u64>,
    /// Whether the provider refused the last request as too large.
    must_shrink: bool,
    /// The window that the provider named.
    window_learned: Option<u64>,
}

/// Why nothing is compacted, and the state in which that was found.
#[derive(Clone, Debug)]
pub(super) struct HaltState {
    pub(super) halt: Halt,
    pub(super) live_tokens: u64,
    /// How much could have been covered at most.
    pub(super) cut: usize,
}

impl HaltState {
    /// Whether only another overhead, window or model can end it.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.halt, Halt::Overhead { .. })
    }
}

impl Halts {
    pub(super) fn stopped(&self) -> Option<&HaltState> {
        self.halt.as_ref()
    }

    pub(super) fn undone_at(&self) -> Option<u64> {
        self.undone_at
    }

    pub(super) fn must_shrink(&self) -> bool {
        self.must_shrink
    }

    /// The window, unless the provider has named a smaller one.
    pub(super) fn window(&self, known: u64) -> u64 {
        self.window_learned
            .map_or(known, |learned| learned.min(known))
    }

    /// Says whether a halt ends.
    pub(super) fn look_again(&mut self) -> bool {
        self.skipped = None;
        self.halt.take().is_some()
    }

    /// Says whether this was not reported yet.
    pub(super) fn skip(&mut self, due: DueReason, reason: SkipReason) -> bool {
        let skipped = Some((due, discriminant(&reason)));
        let is_new = self.skipped != skipped;
        self.skipped = skipped;
        is_new
    }

    pub(super) fn is_stopped_by(&self, halt: &Halt) -> bool {
        self.halt
            .as_ref()
            .is_some_and(|stopped| discriminant(&stopped.halt) == discriminant(halt))
    }

    pub(super) fn stop(&mut self, stopped: HaltState) {
        self.halt = Some(stopped);
    }

    pub(super) fn learn_window(&mut self, window: u64) {
        self.window_learned = Some(window);
    }

    /// Another model: what was learned of the window is void.
    pub(super) fn forget_window(&mut self) {
        self.window_learned = None;
    }

    pub(super) fn overflow(&mut self) {
        self.must_shrink = true;
        self.undone_at = None;
    }

    /// Nothing more can be done about a refused request.
    pub(super) fn give_up_shrinking(&mut self) {
        self.must_shrink = false;
    }

    pub(super) fn undo(&mut self, live_tokens: u64) {
        self.undone_at = Some(live_tokens);
    }

    pub(super) fn forget_undo(&mut self) {
        self.undone_at = None;
    }
}
