//! Actions on sessions, from a form or from the API.

use std::time::Duration;

use http::StatusCode;
use throughline_engine::{CompactionOutcome, Mode, SwapTiming};
use throughline_store::{ErrorKind, SessionId, StoreError};

use crate::Dashboard;
use crate::edit::{Change, EditError};

/// How long an answer waits for a memory. A model may take longer; the preview shows its memory later.
pub const COMPACTION_WAIT: Duration = Duration::from_secs(5);
/// Longest focus, bytes.
const FOCUS_BYTES_MAX: usize = 4 * 1024;

/// Something that a person does to a session.
#[derive(Clone, Debug)]
pub enum Action {
    /// Make a memory, and swap it in or only prepare it.
    Compact {
        /// What the memory should be about.
        focus: Option<String>,
        /// Whether it is swapped in at once.
        swapping: SwapTiming,
    },
    /// Swap in the prepared memory.
    Approve {
        /// Number of the memory that was looked at.
        version: u32,
    },
    /// Undo the last swap.
    Undo,
    /// Put a fact into every memory from now on.
    Pin {
        /// The fact.
        text: String,
        /// Index of the message that it comes from.
        message: Option<usize>,
    },
    /// Remove a pinned fact.
    Unpin {
        /// Id of the pin.
        id: String,
    },
    /// Change the memory in use, or the prepared one.
    Edit {
        /// Number of the memory that was looked at.
        version: u32,
        /// The changes, item by item; [`edited`](crate::edited) applies them.
        changes: Vec<Change>,
    },
    /// Set when the session is compacted.
    Configure {
        /// The new mode.
        mode: Mode,
    },
    /// Delete the session and everything derived from it.
    Delete,
}

/// What an action did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A memory is in the requests from the next one on.
    Swapped {
        /// Its number.
        version: u32,
    },
    /// A memory is ready to be approved.
    Prepared,
    /// A model is making the memory.
    Running,
    /// The next request has the messages again.
    Undone,
    /// Every memory from now on contains the fact.
    Pinned {
        /// Id of the pin.
        id: String,
    },
    /// The fact leaves the memory with the next swap.
    Unpinned,
    /// The changed memory is in the requests from the next one on.
    Edited {
        /// Its number.
        version: u32,
    },
    /// The session has the new mode.
    Configured,
    /// The session is deleted.
    Deleted,
}

/// Why an action did nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// No session has this id, or no proxy began it.
    #[error("there is no such session here")]
    NoSession,
    /// Another process has opened the session.
    #[error("another process has the session")]
    Busy,
    /// No memory has replaced messages, or the state before it is unknown.
    #[error("there is no swap to undo")]
    NothingToUndo,
    /// The session is no longer as it was when it was looked at.
    #[error("the session has changed since: look at it again")]
    Changed,
    /// No pin has this id.
    #[error("there is no such pin")]
    NoSuchPin,
    /// The fact is empty or too long.
    #[error("a fact to pin has 1 to {bytes_max} bytes")]
    NoFact {
        /// The longest fact, bytes.
        bytes_max: usize,
    },
    /// The store does not accept the change.
    #[error("the change cannot be stored")]
    NotStored,
    /// The changes do not fit the memory.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The engine made no memory.
    #[error("no memory: {0}")]
    Refused(String),
    /// The request is wrong.
    #[error("{0}")]
    Invalid(&'static str),
    /// The store does not answer.
    #[error("the store cannot be read")]
    Store,
}

impl ActError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NoSession | Self::NoSuchPin => StatusCode::NOT_FOUND,
            Self::Busy | Self::Refused(_) | Self::Changed | Self::NothingToUndo => {
                StatusCode::CONFLICT
            }
            Self::NoFact { .. } | Self::Edit(_) | Self::Invalid(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::NotStored | Self::Store => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NoSession => "no-session",
            Self::Busy => "busy",
            Self::NothingToUndo => "nothing-to-undo",
            Self::Changed => "changed",
            Self::NoSuchPin => "no-pin",
            Self::NoFact { .. } => "no-fact",
            Self::NotStored | Self::Store => "store",
            Self::Edit(_) => "edit",
            Self::Refused(_) => "refused",
            Self::Invalid(_) => "invalid",
        }
    }
}

impl From<StoreError> for ActError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy { .. } => Self::Busy,
            error if error.kind() == ErrorKind::NotFound => Self::NoSession,
            error => {
                tracing::warn!(%error, "the store cannot be read");
                Self::Store
            }
        }
    }
}

impl TryFrom<CompactionOutcome> for Effect {
    type Error = ActError;

    fn try_from(outcome: CompactionOutcome) -> Result<Self, ActError> {
        match outcome {
            CompactionOutcome::Committed { version } => Ok(Self::Swapped { version }),
            CompactionOutcome::Prepared => Ok(Self::Prepared),
            CompactionOutcome::Joined => Ok(Self::Running),
            CompactionOutcome::Refused { reason } => Err(ActError::Refused(reason)),
            _ => Err(ActError::Refused("it was given up".to_owned())),
        }
    }
}

impl Action {
    fn name(&self) -> &'static str {
        match self {
            Self::Compact { .. } => "compact",
            Self::Approve { .. } => "approve",
            Self::Undo => "undo",
            Self::Pin { .. } => "pin",
            Self::Unpin { .. } => "unpin",
            Self::Edit { .. } => "edit",
            Self::Configure { .. } => "configure",
            Self::Delete => "delete",
        }
    }

    fn is_too_long(&self) -> bool {
        matches!(self, Self::Compact { focus: Some(focus), .. } if focus.len() > FOCUS_BYTES_MAX)
    }
}

impl Dashboard {
    /// Performs an action and logs it: what was done to which session, never the words of a conversation.
    pub(crate) async fn act(&self, id: &SessionId, action: Action) -> Result<Effect, ActError> {
        let name = action.name();
        let is_delete = matches!(action, Action::Delete);
        let result = if action.is_too_long() {
            Err(ActError::Invalid("a focus has at most 4096 bytes"))
        } else {
            self.backend.act(id, action).await
        };
        match &result {
            Ok(_) => {
                if is_delete {
                    self.cache().forget(id);
                }
                tracing::info!(session = %id, action = name, "done");
            }
            Err(error) => {
                tracing::info!(session = %id, action = name, code = error.code(), "not done");
            }
        }
        result
    }
}
