//! Builds that failed, and what follows: the model rests, the draft replaces its memory.

use crate::budget::Time;
use crate::vocabulary::UpdateFailure;

/// Failures in a row, and whether the model is asked.
#[derive(Debug, Default)]
pub(super) struct Failures {
    model_in_a_row: u32,
    drafts_in_a_row: u32,
    rest: Rest,
    /// Why the model has made no memory since the last one.
    last: Option<UpdateFailure>,
}

/// Whether the model rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    /// It can be asked.
    #[default]
    None,
    /// The provider wants no call before this.
    RetryAfter(Time),
    /// It failed too often, which was reported, and is not asked before this.
    Halted(Time),
}

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FailureCount {
    pub(super) in_a_row: u32,
    /// Whether that is too often.
    pub(super) is_too_often: bool,
}

impl Failures {
    /// Why the model has made no memory since the last one.
    pub(super) fn last(&self) -> Option<&UpdateFailure> {
        self.last.as_ref()
    }

    /// The last failure, while the model rests because it failed too often.
    pub(super) fn halting(&self) -> Option<&UpdateFailure> {
        self.last
            .as_ref()
            .filter(|_| matches!(self.rest, Rest::Halted(_)))
    }

    pub(super) fn is_resting(&self, now: Time) -> bool {
        match self.rest {
            Rest::None => false,
            Rest::RetryAfter(until) | Rest::Halted(until) => now < until,
        }
    }

    /// The model is asked again. Says whether its halt was reported.
    pub(super) fn end_rest(&mut self) -> bool {
        matches!(std::mem::take(&mut self.rest), Rest::Halted(_))
    }

    pub(super) fn draft_made(&mut self) {
        self.drafts_in_a_row = 0;
    }

    pub(super) fn draft_failed(&mut self, failures_max: u32) -> FailureCount {
        self.drafts_in_a_row += 1;
        let in_a_row = self.drafts_in_a_row;
        let is_too_often = in_a_row >= failures_max;
        if is_too_often {
            self.drafts_in_a_row = 0;
        }
        FailureCount {
            in_a_row,
            is_too_often,
        }
    }

    pub(super) fn model_made(&mut self) {
        self.model_in_a_row = 0;
        self.last = None;
    }

    pub(super) fn model_failed(
        &mut self,
        now: Time,
        failure: UpdateFailure,
        failures_max: u32,
        rest_ms: u64,
    ) -> FailureCount {
        self.model_in_a_row += 1;
        let in_a_row = self.model_in_a_row;
        let is_too_often = in_a_row >= failures_max;
        if is_too_often {
            self.model_in_a_row = 0;
            let ms = failure.retry_after_ms.unwrap_or(0).max(rest_ms);
            self.rest = Rest::Halted(now + ms);
        } else if let Some(ms) = failure.retry_after_ms {
            self.rest = Rest::RetryAfter(now + ms);
        }
        self.last = Some(failure);
        FailureCount {
            in_a_row,
            is_too_often,
        }
    }

    /// A request stops waiting for the model.
    pub(super) fn note(&mut self, failure: UpdateFailure) {
        self.last = Some(failure);
    }

    /// A swap begins a new account of why the model made no memory.
    pub(super) fn forget_last(&mut self) {
        self.last = None;
    }
}
