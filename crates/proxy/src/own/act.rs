//! What is done to sessions from outside, whether by a form or by the API.

use std::time::Duration;

use http::StatusCode;
use throughline_engine::{CompactionOutcome, Mode, Swapping};
use throughline_memory::document::Memory;
use throughline_store::{ErrorKind, SessionId, StoreError};

use super::edit::{Change, EditError, edited};
use crate::Proxy;
use crate::tracked::{Compacted, Unasked};

/// How long an answer waits for a memory. A model may take longer; then it is looked at later.
const COMPACTION_WAIT: Duration = Duration::from_secs(5);
/// Longest focus, bytes.
const FOCUS_BYTES_MAX: usize = 4 * 1024;

/// Something that is asked for.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// A memory is made, and swapped in at once or only prepared.
    Compact {
        focus: Option<String>,
        swapping: Swapping,
    },
    /// The memory that was prepared is swapped in.
    Approve {
        version: u32,
    },
    Undo,
    Pin {
        text: String,
        message: Option<usize>,
    },
    Unpin {
        id: String,
    },
    Edit {
        version: u32,
        changes: Vec<Change>,
    },
    Configure {
        mode: Mode,
    },
    Delete,
}

/// What has been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Swapped {
        version: u32,
    },
    Prepared,
    /// A model is making the memory.
    Running,
    Undone,
    Pinned {
        id: String,
    },
    Unpinned,
    Edited {
        version: u32,
    },
    Configured,
    Deleted,
}

/// Why it has not.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    #[error("there is no such session here")]
    NoSession,
    #[error("another process has the session")]
    Busy,
    #[error(transparent)]
    Session(Unasked),
    #[error(transparent)]
    Edit(EditError),
    #[error("no memory: {0}")]
    Refused(String),
    #[error("{0}")]
    Invalid(&'static str),
    #[error("the store cannot be read")]
    Store,
}

impl ActError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoSession => StatusCode::NOT_FOUND,
            Self::Session(Unasked::NoSuchPin) => StatusCode::NOT_FOUND,
            Self::Busy
            | Self::Refused(_)
            | Self::Session(Unasked::Changed | Unasked::NothingToUndo) => StatusCode::CONFLICT,
            Self::Session(Unasked::NoFact) | Self::Edit(_) | Self::Invalid(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::Session(Unasked::NotStored) | Self::Store => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::NoSession => "no-session",
            Self::Busy => "busy",
            Self::Session(Unasked::NothingToUndo) => "nothing-to-undo",
            Self::Session(Unasked::Changed) => "changed",
            Self::Session(Unasked::NoSuchPin) => "no-pin",
            Self::Session(Unasked::NoFact) => "no-fact",
            Self::Session(Unasked::NotStored) | Self::Store => "store",
            Self::Edit(_) => "edit",
            Self::Refused(_) => "refused",
            Self::Invalid(_) => "invalid",
        }
    }
}

impl From<Unasked> for ActError {
    fn from(error: Unasked) -> Self {
        Self::Session(error)
    }
}

impl From<EditError> for ActError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Session(error) => Self::Session(error),
            error => Self::Edit(error),
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
}

impl Proxy {
    /// Does it, and says so in the log: what and to whom, never what was said.
    pub(super) async fn act(&self, id: &SessionId, action: Action) -> Result<Done, ActError> {
        let name = action.name();
        let result = self.act_on(id, action).await;
        match &result {
            Ok(_) => tracing::info!(session = %id, action = name, "done"),
            Err(error) => {
                tracing::info!(session = %id, action = name, code = error.code(), "not done");
            }
        }
        result
    }

    async fn act_on(&self, id: &SessionId, action: Action) -> Result<Done, ActError> {
        if matches!(action, Action::Delete) {
            self.sessions.delete(id).await?;
            self.cache().forget(id);
            return Ok(Done::Deleted);
        }
        let session = self.sessions.by_id(id).await?;
        match action {
            Action::Compact { focus, swapping } => {
                if focus
                    .as_ref()
                    .is_some_and(|focus| focus.len() > FOCUS_BYTES_MAX)
                {
                    return Err(ActError::Invalid("a focus has at most 4096 bytes"));
                }
                match session.compact(focus, swapping, COMPACTION_WAIT).await? {
                    Compacted::Running => Ok(Done::Running),
                    Compacted::Done(outcome) => done(outcome),
                }
            }
            Action::Approve { version } => done(session.approve(version).await?),
            Action::Undo => {
                session.undo().await?;
                Ok(Done::Undone)
            }
            Action::Pin { text, message } => Ok(Done::Pinned {
                id: session.pin(&text, message).await?,
            }),
            Action::Unpin { id } => {
                session.unpin(&id).await?;
                Ok(Done::Unpinned)
            }
            Action::Edit { version, changes } => {
                let edit = |memory: &Memory, next: u32| edited(memory, next, &changes);
                let version = session.edit::<EditError>(version, edit).await?;
                Ok(Done::Edited { version })
            }
            Action::Configure { mode } => {
                session.set_mode(mode).await?;
                Ok(Done::Configured)
            }
            Action::Delete => Ok(Done::Deleted),
        }
    }
}

fn done(outcome: CompactionOutcome) -> Result<Done, ActError> {
    match outcome {
        CompactionOutcome::Committed { version } => Ok(Done::Swapped { version }),
        CompactionOutcome::Prepared => Ok(Done::Prepared),
        CompactionOutcome::Joined => Ok(Done::Running),
        CompactionOutcome::Refused { reason } => Err(ActError::Refused(reason)),
        _ => Err(ActError::Refused("it was given up".to_owned())),
    }
}
