//! The memories that are being made, and when the last ones were ordered.

use crate::budget::Time;
use crate::event::{BuildKind, DueReason};
use crate::output::BuildOrder;
use crate::vocabulary::Ticket;

/// A memory that is being made.
#[derive(Clone, Debug)]
pub(super) struct RunningBuild {
    pub(super) ticket: Ticket,
    /// Swaps before it was ordered.
    pub(super) swaps: u64,
    pub(super) cover: usize,
    pub(super) at: Time,
    pub(super) reason: DueReason,
    pub(super) order: BuildOrder,
}

/// At most one draft and one memory by the model are made at a time.
#[derive(Debug, Default)]
pub(super) struct Builds {
    drafting: Option<RunningBuild>,
    updating: Option<RunningBuild>,
    tickets: u64,
    /// Live tokens when the last order was made in this epoch.
    ordered_at: Option<u64>,
    /// Live tokens when the model was last asked in this epoch.
    model_ordered_at: Option<u64>,
    calls_since_order: u32,
}

impl Builds {
    pub(super) fn drafting(&self) -> Option<&RunningBuild> {
        self.drafting.as_ref()
    }

    pub(super) fn updating(&self) -> Option<&RunningBuild> {
        self.updating.as_ref()
    }

    fn slot(&mut self, kind: BuildKind) -> &mut Option<RunningBuild> {
        match kind {
            BuildKind::Draft => &mut self.drafting,
            BuildKind::Model => &mut self.updating,
        }
    }

    pub(super) fn is_running(&self, ticket: Ticket) -> bool {
        [&self.drafting, &self.updating]
            .into_iter()
            .flatten()
            .any(|running| running.ticket == ticket)
    }

    pub(super) fn next_ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    pub(super) fn start(&mut self, kind: BuildKind, running: RunningBuild) {
        *self.slot(kind) = Some(running);
    }

    /// Ends the build with this ticket; `None` if no such build runs.
    pub(super) fn finish(&mut self, kind: BuildKind, ticket: Ticket) -> Option<RunningBuild> {
        self.slot(kind).take_if(|running| running.ticket == ticket)
    }

    pub(super) fn give_up(&mut self, kind: BuildKind) -> Option<RunningBuild> {
        self.slot(kind).take()
    }

    /// Live tokens when the last order was made in this epoch.
    pub(super) fn ordered_at(&self) -> Option<u64> {
        self.ordered_at
    }

    /// Live tokens when the model was last asked in this epoch.
    pub(super) fn model_ordered_at(&self) -> Option<u64> {
        self.model_ordered_at
    }

    pub(super) fn calls_since_order(&self) -> u32 {
        self.calls_since_order
    }

    pub(super) fn note_calls(&mut self, calls: u32) {
        self.calls_since_order += calls;
    }

    /// An order is made at this many live tokens.
    pub(super) fn note_order(&mut self, live_tokens: u64) {
        self.ordered_at = Some(live_tokens);
        self.calls_since_order = 0;
    }

    /// The next order waits for a step of growth from here.
    pub(super) fn wait_for_growth(&mut self, live_tokens: u64) {
        self.ordered_at = Some(live_tokens);
    }

    pub(super) fn note_model_order(&mut self, live_tokens: u64) {
        self.model_ordered_at = Some(live_tokens);
    }

    pub(super) fn recounted(&mut self) {
        self.ordered_at = None;
    }

    pub(super) fn history_changed(&mut self) {
        self.ordered_at = None;
        self.model_ordered_at = None;
        self.calls_since_order = 0;
    }
}
