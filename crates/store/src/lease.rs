//! The exclusive right to change something, over all processes: a lock on an open file, which the system releases when
//! the process dies.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::private;
use crate::session::SessionId;

/// How long one wait lasts before the next attempt: the release of a lock is not announced.
const RETRY: Duration = Duration::from_millis(5);

/// The right, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    file: File,
    path: PathBuf,
}

/// The process that has the right, if the file names it.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) pid: Option<u32>,
}

impl Lease {
    /// Takes the right to change a session.
    pub(crate) async fn of_session(
        folder: &Path,
        id: &SessionId,
        wait: Duration,
    ) -> Result<Self, StoreError> {
        let lease = Self::acquire(&folder.join(format!("{id}.lock")), wait).await?;
        lease.map_err(|Holder { pid }| StoreError::Busy {
            session: id.clone(),
            pid,
        })
    }

    /// Takes the lock of this file, waiting for it at most this long.
    pub(crate) async fn acquire(
        path: &Path,
        wait: Duration,
    ) -> Result<Result<Self, Holder>, StoreError> {
        let started = Instant::now();
        loop {
            match Self::attempt(path)? {
                Err(holder) if started.elapsed() >= wait => return Ok(Err(holder)),
                Err(_) => tokio::time::sleep(RETRY).await,
                Ok(Some(lease)) => return Ok(Ok(lease)),
                Ok(None) => {}
            }
        }
    }

    /// `None` if the file was removed meanwhile: the next attempt creates another.
    fn attempt(path: &Path) -> io::Result<Result<Option<Self>, Holder>> {
        if let Some(folder) = path.parent() {
            private::create_folder(folder)?;
        }
        let mut file = private::open_file(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(Err(Holder {
                    pid: written_pid(&mut file),
                }));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if !is_same_file(&file, path) {
            return Ok(Ok(None));
        }
        // The number only helps people: a full disk must not keep a writer out.
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        drop(written);
        Ok(Ok(Some(Self {
            file,
            path: path.to_owned(),
        })))
    }

    /// Ends the right and removes its file.
    pub(crate) fn remove(self) {
        // While the lock is held, so that no other process has it on this file. A file that stays does no harm.
        drop(fs::remove_file(&self.path));
        drop(self.file);
    }
}

fn written_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

/// Whether the file still has this name: otherwise a lock on it excludes no other process.
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
