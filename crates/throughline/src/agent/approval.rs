//! Approvals: whether a call may be run.

use std::sync::Arc;

use async_trait::async_trait;
use throughline_transcript::message::ToolCall;

/// Whether a call needs an approval before it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It is run.
    NotNeeded,
    /// The [`Approver`] is asked.
    Needed {
        /// What would be done, in one line.
        summary: String,
    },
}

/// A call that needs an approval.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The call.
    pub call: ToolCall,
    /// What would be done, in one line.
    pub summary: String,
}

/// What to do with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is run.
    Allow,
    /// It is not run, and the model is told so.
    Deny {
        /// What the user says to it, in their own words: it follows the results as a text of theirs, and memories
        /// keep it as such. Empty if there is nothing to say.
        reason: String,
    },
    /// There is no answer yet: the turn ends, the call stays open, and [`Agent::go_on`](super::Agent::go_on) asks again.
    Later,
}

/// Says whether calls may be run. Asked for one call after the other, in their order, before any of them is run.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Whether this call may be run.
    async fn approve(&self, request: ApprovalRequest) -> Decision;
}

#[async_trait]
impl<T: Approver + ?Sized> Approver for Arc<T> {
    async fn approve(&self, request: ApprovalRequest) -> Decision {
        T::approve(self, request).await
    }
}

/// Agrees to everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

#[async_trait]
impl Approver for AllowAll {
    async fn approve(&self, _request: ApprovalRequest) -> Decision {
        Decision::Allow
    }
}
