//! The folder that tools work in.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder that tools work in and cannot leave by a path. Clones are the same folder.
#[derive(Clone, Debug)]
pub struct Root {
    path: Arc<PathBuf>,
}

impl Root {
    /// The folder at this path.
    ///
    /// # Errors
    /// If there is none, or it cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self {
            path: Arc::new(path.as_ref().canonicalize()?),
        })
    }

    /// Its path, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
