//! What can go wrong.

use std::sync::Arc;

use throughline_providers::error::CallError;
use throughline_store::StoreError;

/// A session cannot be started or resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The store says no.
    #[error("the session cannot be opened")]
    Store(#[from] StoreError),
    /// What is stored cannot be read.
    #[error("what is stored of session {id} cannot be read: {what}")]
    Corrupt {
        /// The session.
        id: String,
        /// What is wrong.
        what: String,
    },
    /// The messages with which the session was to begin would be refused; nothing was stored.
    #[error("a session cannot begin with these messages: {finding}")]
    History {
        /// The first broken rule.
        finding: String,
    },
    /// The session was held in the format of another provider.
    #[error("session {id} is in the format {stored}, and the client speaks {client}")]
    OtherWire {
        /// The session.
        id: String,
        /// Its format.
        stored: String,
        /// The client's.
        client: String,
    },
}

/// A request was not answered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// Another request of the session is under way.
    #[error("the session is waiting for an answer already")]
    Busy,
    /// The session has ended.
    #[error("the session is closed")]
    Closed,
    /// There is nothing to say.
    #[error("an empty message cannot be sent")]
    Empty,
    /// Results of tools were given that no open call asks for.
    #[error("no open call has the id {id}")]
    NoSuchCall {
        /// The id.
        id: String,
    },
    /// Calls are open, and not all of them are answered.
    #[error("the call {id} is not answered")]
    CallOpen {
        /// The first of them.
        id: String,
    },
    /// The request would not be taken by the provider, and nothing can be left out of it.
    #[error(
        "the request has about {tokens} tokens, and the model takes {limit}; nothing more can be left out of it"
    )]
    TooLarge {
        /// Tokens, estimated.
        tokens: u64,
        /// The largest prompt, tokens.
        limit: u64,
    },
    /// Messages that were given in the wire's form would be refused; nothing was stored or sent.
    #[error("the messages would be refused: {finding}")]
    NotSendable {
        /// The first broken rule.
        finding: String,
    },
    /// A request that was made here would be refused; it was not sent. This is a fault of this library.
    #[error("the request would be refused: {finding}; please report this")]
    Invalid {
        /// The first broken rule.
        finding: String,
    },
    /// The provider did not answer.
    #[error("the provider did not answer")]
    Call(#[source] Arc<CallError>),
    /// The message could not be stored, and was not sent.
    #[error("the session cannot be stored")]
    Store(#[source] Arc<StoreError>),
    /// The answer came, all of it, and could not be stored yet. The session continues with it, and it is stored with
    /// whatever is stored next; until then the end of the process would lose it.
    #[error("the answer cannot be stored")]
    AnswerNotStored(#[source] Arc<StoreError>),
}

/// An operation on a session failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session has ended.
    #[error("the session is closed")]
    Closed,
    /// It cannot be done while a request is under way.
    #[error("the session is waiting for an answer")]
    Busy,
    /// There is no text that could be pinned.
    #[error("there is no text to pin")]
    NothingToPin,
    /// There is no swap to undo.
    #[error("there is no swap to take back")]
    NothingToUndo,
    /// The session has fewer messages than that.
    #[error("the session has {messages} messages, not {asked}")]
    NoSuchMessage {
        /// What was asked for.
        asked: usize,
        /// How many there are.
        messages: usize,
    },
    /// The memory does not fit the session.
    #[error("the memory does not cover the first messages of this session")]
    OtherHistory,
    /// The store says no.
    #[error("the session cannot be stored or read")]
    Store(#[from] StoreError),
    /// The stored session cannot be resumed.
    #[error(transparent)]
    Open(#[from] OpenError),
}
