//! What can go wrong, and what the caller can do about it.

use std::io;
use std::path::PathBuf;

use crate::session::SessionId;

/// An operation on a store failed. Nothing that was accepted earlier is lost, and nothing of the failed operation
/// remains.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer has the session.
    #[error("session {session} is being written by another process or task{}", by(.pid))]
    Busy {
        /// The session that was asked for.
        session: SessionId,
        /// The process that has it, as far as it is known.
        pid: Option<u32>,
    },
    /// The database is locked by another process for longer than the configured wait.
    #[error("the database is in use by another process")]
    DatabaseBusy,
    /// There is no such session.
    #[error("there is no session {session}")]
    SessionNotFound {
        /// The session that was asked for.
        session: SessionId,
    },
    /// The session has no such message.
    #[error("the session has no message {position}")]
    MessageNotFound {
        /// The position that was asked for, from 0.
        position: u64,
    },
    /// The session has no such memory version.
    #[error("the session has no memory version {version}")]
    MemoryNotFound {
        /// The version that was asked for.
        version: u64,
    },
    /// A session of this id exists already.
    #[error("session {session} exists already")]
    Exists {
        /// The id that is taken.
        session: SessionId,
    },
    /// The session is not at the point at which the caller believed it to be.
    #[error("expected {counter} {expected}, found {found}")]
    Conflict {
        /// What differs.
        counter: Counter,
        /// What the caller expected.
        expected: u64,
        /// What is stored.
        found: u64,
    },
    /// The changes contradict themselves or the session.
    #[error("changes that cannot be applied: {reason}")]
    Invalid {
        /// Which rule they break.
        reason: Invalid,
    },
    /// Something is larger than its limit.
    #[error("{what} of {bytes} bytes is above the limit of {bytes_max} bytes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// There is no room left for what was to be written.
    #[error("no room left to write")]
    Full {
        /// What the system said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The place can be read but not written.
    #[error("the store is read-only")]
    ReadOnly {
        /// What the system said, where it was asked.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// What is stored is not what this store writes.
    #[error("{}: {what}", .path.display())]
    Corrupt {
        /// The file or database.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The store was written by a newer version of this program.
    #[error("the store has format {found}, this program knows formats up to {known}")]
    Newer {
        /// The format that was found.
        found: i64,
        /// The newest format that this program knows.
        known: i64,
    },
    /// The store cannot be reached or the system refused: everything else.
    #[error("the store cannot be used")]
    Unavailable {
        /// What the system said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn by(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

/// A number that callers compare before they set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Counter {
    /// How many messages the session has.
    MessageCount,
    /// The newest memory version.
    MemoryVersion,
    /// The epoch of the adopted memory.
    Epoch,
}

impl std::fmt::Display for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MessageCount => "message count",
            Self::MemoryVersion => "memory version",
            Self::Epoch => "epoch",
        })
    }
}

/// Which rule a list of changes breaks: a mistake of the calling program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The session has fewer messages than it is to be cut to.
    #[error("a session cannot be cut to more messages than it has")]
    TruncatePastEnd,
    /// The memory covers more messages than there are.
    #[error("a memory cannot cover more messages than the session has")]
    CoversTooMuch,
    /// There is no version 0.
    #[error("memory versions begin with 1")]
    VersionZero,
    /// The adopted memory version does not exist.
    #[error("the adopted memory version does not exist")]
    AdoptsMissingMemory,
    /// Epochs only go up.
    #[error(
        "an epoch must be greater than the one before if it covers other messages, and never smaller"
    )]
    EpochNotRising,
    /// The parent has fewer messages than the fork is to begin with.
    #[error("a fork cannot begin with more messages than its parent has")]
    ForkPastEnd,
    /// A number is beyond what a store keeps; see [`limits`](crate::limits).
    #[error("a number is larger than a store keeps")]
    NumberTooLarge,
}

/// What the caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Wait, or ask the user to close the other program.
    Busy,
    /// Nothing is there: give up or create it.
    NotFound,
    /// Another writer was quicker: read again, decide again.
    Conflict,
    /// Make room.
    Full,
    /// Choose another place or fix its permissions.
    ReadOnly,
    /// Restore a backup, or repair by hand.
    Corrupt,
    /// Make it smaller.
    TooLarge,
    /// Update this program.
    Newer,
    /// A mistake of the calling program: report it.
    Invalid,
    /// Try again later; the source says why.
    Unavailable,
}

impl StoreError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy { .. } | Self::DatabaseBusy => ErrorKind::Busy,
            Self::SessionNotFound { .. }
            | Self::MessageNotFound { .. }
            | Self::MemoryNotFound { .. } => ErrorKind::NotFound,
            Self::Exists { .. } | Self::Conflict { .. } => ErrorKind::Conflict,
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Full { .. } => ErrorKind::Full,
            Self::ReadOnly { .. } => ErrorKind::ReadOnly,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Newer { .. } => ErrorKind::Newer,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A file-size limit is met in the same way as a full disk: make room.
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full {
                source: error.into(),
            },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::ReadOnly {
                source: Some(error.into()),
            },
            _ => Self::Unavailable {
                source: error.into(),
            },
        }
    }
}
