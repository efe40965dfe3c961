//! The exclusive right to change something, over all processes: a lock that the system holds on an open file, and
//! gives back when the process dies, however it dies.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::private;
use crate::session::SessionId;

/// How long one wait lasts before it is tried again. A lock that another process gives back tells nobody.
const RETRY: Duration = Duration::from_millis(5);

/// The right, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    file: File,
    path: PathBuf,
}

/// The right belongs to this process, if it said so.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) pid: Option<u32>,
}

impl Lease {
    /// Takes the right to change a session.
    pub(crate) async fn of_session(
        folder: &Path,
        id: &SessionId,
        wait: Duration,
    ) -> Result<Self, StoreError> {
        let taken = Self::acquire(&folder.join(format!("{id}.lock")), wait).await?;
        taken.map_err(|Taken { pid }| StoreError::Busy {
            session: id.clone(),
            pid,
        })
    }

    /// Takes the right that this file stands for, waiting at most so long.
    pub(crate) async fn acquire(
        path: &Path,
        wait: Duration,
    ) -> Result<Result<Self, Taken>, StoreError> {
        let started = Instant::now();
        loop {
            match Self::attempt(path)? {
                Err(taken) if started.elapsed() >= wait => return Ok(Err(taken)),
                Err(_) => tokio::time::sleep(RETRY).await,
                Ok(Some(lease)) => return Ok(Ok(lease)),
                Ok(None) => {}
            }
        }
    }

    /// `None` if the file was removed under our hands: the next attempt makes a new one.
    fn attempt(path: &Path) -> io::Result<Result<Option<Self>, Taken>> {
        if let Some(folder) = path.parent() {
            private::create_folder(folder)?;
        }
        let mut file = private::open_file(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(Err(Taken {
                    pid: said_pid(&mut file),
                }));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if !is_same_file(&file, path) {
            return Ok(Ok(None));
        }
        // The number is only a help for people, so that a full disk does not keep anybody from writing.
        let said = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        drop(said);
        Ok(Ok(Some(Self {
            file,
            path: path.to_owned(),
        })))
    }

    /// Ends the right and takes its file away.
    pub(crate) fn remove(self) {
        // While the lock is held, so that no other can have taken it on this file. Where it stays, it does no harm.
        drop(fs::remove_file(&self.path));
        drop(self.file);
    }
}

fn said_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

/// A lock on a file that has no name any more keeps nobody out.
#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(named)) => (ours.dev(), ours.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Elsewhere an open file cannot be removed.
#[cfg(not(unix))]
fn is_same_file(_file: &File, _path: &Path) -> bool {
    true
}
