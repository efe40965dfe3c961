//! What the driver has to do.

use std::sync::Arc;

use throughline_memory::document::Memory;
use throughline_transcript::digest::Digest;
use throughline_transcript::message::Message;

use crate::event::{BuildKind, EngineEvent};
use crate::version::Version;
use crate::vocabulary::{MemoryAdoption, Ticket};

/// Something to do.
#[derive(Clone, Debug)]
pub enum Output {
    /// Have code make a memory, beside the session, and answer with [`crate::Input::Drafted`].
    Draft(BuildOrder),
    /// Have a model make a memory, beside the session, and answer with [`crate::Input::Updated`].
    Update(UpdateOrder),
    /// The update is not wanted any more. It need not be answered; if it is, the answer is dropped.
    CancelUpdate(Ticket),
    /// Send this request.
    Request(Plan),
    /// The request has to wait for a memory. Send [`crate::Input::WaitedEnough`] if it takes longer than this.
    Wait {
        /// What is waited for.
        waited: AwaitedBuild,
        /// Milliseconds.
        at_most_ms: u64,
    },
    /// Store this version of the memory.
    Keep(Arc<Version>),
    /// Store that requests are made with this from now on. To be done before the next request is sent.
    Adopt(MemoryAdoption),
    /// The transcript was cut back into what the memory covers. Build the engine anew from what is stored, with the
    /// newest memory that covers no more than what is left ([`crate::Engine::restore`]).
    Reload {
        /// Messages that are left.
        messages: usize,
    },
    /// Tell whoever wants to know.
    Event(EngineEvent),
}

/// Everything that a memory is made of.
#[derive(Clone, Debug)]
pub struct BuildOrder {
    /// Names the order.
    pub ticket: Ticket,
    /// The epoch in which it was made.
    pub epoch: u64,
    /// The memory so far.
    pub prior: Option<Arc<Version>>,
    /// Digest of everything before the messages.
    pub chain: Digest,
    /// Index of the first of the messages.
    pub first: usize,
    /// The messages after the prior memory's cover, up to the cut.
    pub messages: Arc<[Message]>,
    /// The largest memory, tokens.
    pub tokens_max: u64,
    /// What it should be about.
    pub focus: Option<String>,
}

impl BuildOrder {
    /// Messages that the memory will stand for.
    #[must_use]
    pub fn cover(&self) -> usize {
        self.first + self.messages.len()
    }
}

/// What a model's memory is made of: the order, and the draft of the same cover.
#[derive(Clone, Debug)]
pub struct UpdateOrder {
    /// The order.
    pub order: BuildOrder,
    /// What code made of the same messages.
    pub draft: Arc<Memory>,
    /// The request as it would be sent now, to be shared by the update so that the provider's cache is read.
    pub live: Plan,
}

/// What a request is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The epoch. Within it each request is a prefix of the next, unless the transcript was cut back, or system prompt,
    /// tools or model have changed ([`Plan::thinking_from`] moves then).
    pub epoch: u64,
    /// What stands before the messages.
    pub memory: Option<Arc<str>>,
    /// Index of the first message; all from there on are sent.
    pub first: usize,
    /// Index of the message after the last.
    pub end: usize,
    /// Reasoning is left out of messages before this index.
    pub thinking_from: usize,
    /// Where the last request that was answered ended, if it began as this one does: index of the message after its
    /// last.
    pub last_end: Option<usize>,
    /// Tokens, estimated and corrected by what the provider has reported.
    pub tokens: u64,
    /// Whether the tokens are more than the model takes, so that the request will be refused.
    pub is_too_large: bool,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedBuild {
    /// The order.
    pub ticket: Ticket,
    /// Who makes it.
    pub kind: BuildKind,
}
