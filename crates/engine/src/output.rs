//! Actions for the driver.

use std::sync::Arc;

use throughline_memory::document::Memory;
use throughline_transcript::digest::Digest;
use throughline_transcript::message::Message;

use crate::event::{BuildKind, EngineEvent};
use crate::version::Version;
use crate::vocabulary::{MemoryAdoption, Ticket};

/// An action.
#[derive(Clone, Debug)]
pub enum Output {
    /// Make a memory by code in the background, and answer with [`crate::Input::Drafted`].
    Draft(BuildOrder),
    /// Make a memory by a model in the background, and answer with [`crate::Input::Updated`].
    Update(UpdateOrder),
    /// Cancel the update. An answer is optional and is dropped.
    CancelUpdate(Ticket),
    /// Send this request.
    Request(Plan),
    /// The request has to wait for a memory. Send [`crate::Input::WaitedEnough`] if it takes longer than this.
    Wait {
        /// The build that it waits for.
        waited: AwaitedBuild,
        /// Milliseconds.
        at_most_ms: u64,
    },
    /// Store this version of the memory.
    Keep(Arc<Version>),
    /// Store that requests use this from now on, before the next request is sent.
    Adopt(MemoryAdoption),
    /// The transcript was cut back into what the memory covers. Load the engine from the store again, with the
    /// newest memory that covers no more than what is left ([`crate::Engine::restore`]).
    Reload {
        /// Messages that are left.
        messages: usize,
    },
    /// Report this event.
    Event(EngineEvent),
}

/// Everything that the maker of a memory needs.
#[derive(Clone, Debug)]
pub struct BuildOrder {
    /// Its id.
    pub ticket: Ticket,
    /// The epoch of the order.
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
    /// Topic to focus on.
    pub focus: Option<String>,
}

impl BuildOrder {
    /// Messages that the memory will cover.
    #[must_use]
    pub fn cover(&self) -> usize {
        self.first + self.messages.len()
    }
}

/// An order for a model: the build order, and the draft of the same cover.
#[derive(Clone, Debug)]
pub struct UpdateOrder {
    /// The order.
    pub order: BuildOrder,
    /// The memory of the same messages by code.
    pub draft: Arc<Memory>,
    /// The request as it would be sent now. An update that shares its beginning reads the provider's cache.
    pub live: Plan,
}

/// What a request is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The epoch. Within it each request is a prefix of the next, unless the transcript was cut back, or system prompt,
    /// tools or model have changed ([`Plan::thinking_from`] moves then).
    pub epoch: u64,
    /// The memory before the messages.
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
    /// Whether the tokens exceed the model's limit, so that the provider will refuse the request.
    pub is_too_large: bool,
}

/// The build that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedBuild {
    /// The order.
    pub ticket: Ticket,
    /// Who makes it.
    pub kind: BuildKind,
}
