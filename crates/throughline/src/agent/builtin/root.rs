//! The folder that tools work in.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};

use crate::agent::tool::ToolError;

/// A folder that tools work in and that no path leads out of: neither an absolute one, nor `..`, nor a link. Clones are
/// the same folder.
#[derive(Clone, Debug)]
pub struct Root {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Every file is opened from here; the system does not look above it.
    folder: Dir,
}

/// Larger files are not read.
pub(super) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What has a NUL byte in its beginning is no text; bytes.
const BINARY_LOOK_BYTES: usize = 8 * 1024;

impl Root {
    /// The folder at this path.
    ///
    /// # Errors
    /// If there is none, or it cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().canonicalize()?;
        let folder = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self {
            inner: Arc::new(Inner { path, folder }),
        })
    }

    /// Its path, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    pub(super) fn folder(&self) -> &Dir {
        &self.inner.folder
    }

    /// The place in this folder that a model means. Whether it is inside is seen when it is opened.
    pub(super) fn place(&self, path: &str) -> Result<PathBuf, ToolError> {
        let path = Path::new(path.trim());
        let place = if path.is_absolute() {
            path.strip_prefix(self.path())
                .map_err(|_| self.outside(path))?
        } else {
            path
        };
        if place.as_os_str().is_empty() {
            return Ok(PathBuf::from("."));
        }
        Ok(place.to_owned())
    }

    fn outside(&self, path: &Path) -> ToolError {
        ToolError::new(format!(
            "{} is outside of the folder {}; paths are relative to it",
            path.display(),
            self.path().display()
        ))
    }

    /// What went wrong with a place.
    pub(super) fn failed(&self, place: &Path, error: &io::Error) -> ToolError {
        // A path that leads out is refused before the system is asked, which has a number for each of its refusals.
        let leads_out =
            error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
        match leads_out {
            true => self.outside(place),
            false => ToolError::new(format!("{}: {error}", place.display())),
        }
    }

    /// The bytes of a file.
    pub(super) fn read(&self, place: &Path) -> Result<Vec<u8>, ToolError> {
        let of_file = |error: io::Error| self.failed(place, &error);
        let metadata = self.folder().metadata(place).map_err(of_file)?;
        if metadata.is_dir() {
            return Err(ToolError::new(format!("{} is a folder", place.display())));
        }
        // Pipes and devices may never end.
        if !metadata.is_file() {
            return Err(ToolError::new(format!("{} is not a file", place.display())));
        }
        if metadata.len() > FILE_BYTES_MAX {
            return Err(ToolError::new(format!(
                "{} has {} bytes; files of up to {FILE_BYTES_MAX} are read",
                place.display(),
                metadata.len()
            )));
        }
        let file = self.folder().open(place).map_err(of_file)?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(of_file)?;
        Ok(bytes)
    }

    /// The files below a place, or the file that it is: paths in this folder, sorted, without those that ignore files
    /// name. `each` says whether it wants more.
    pub(super) fn walk(
        &self,
        place: &Path,
        glob: Option<&str>,
        mut each: impl FnMut(&Path) -> bool,
    ) -> Result<(), ToolError> {
        // Without links that lead out of the folder: the walk itself is one by path.
        let place = self
            .folder()
            .canonicalize(place)
            .map_err(|error| self.failed(place, &error))?;
        let glob = glob.map(globs).transpose()?;
        let walk = WalkBuilder::new(self.path().join(place))
            .hidden(false)
            .follow_links(false)
            .git_global(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .sort_by_file_path(Ord::cmp)
            .build();
        for entry in walk {
            // What cannot be looked into has no files that could be named.
            let Ok(entry) = entry else { continue };
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            let Ok(path) = entry.path().strip_prefix(self.path()) else {
                continue;
            };
            let is_meant = glob
                .as_ref()
                .is_none_or(|glob| glob.matched(path, false).is_whitelist());
            if is_file && is_meant && !each(path) {
                break;
            }
        }
        Ok(())
    }
}

/// Whether these bytes are not text.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(BINARY_LOOK_BYTES).any(|byte| *byte == 0)
}

/// Work with files blocks, which what is asynchronous must not.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await?
}

fn globs(pattern: &str) -> Result<Override, ToolError> {
    let mut globs = OverrideBuilder::new("");
    globs.add(pattern)?;
    Ok(globs.build()?)
}

#[cfg(test)]
mod tests;
