//! Folders and files that only their owner may look into, whatever the umask says.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a folder, and those above it that are missing, for the owner alone. One that exists is left as it is: it may
/// be the user's own.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        create_folder(parent)?;
    }
    match fs::create_dir(path) {
        Ok(()) => restrict(path, 0o700),
        // Another process was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a file for reading and writing, making it if it is missing, for the owner alone.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    restrict(path, 0o600)?;
    Ok(file)
}

#[cfg(unix)]
pub(crate) fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & 0o777 == mode {
        return Ok(());
    }
    permissions.set_mode(mode);
    fs::set_permissions(path, permissions)
}

/// Elsewhere a user's folders are private by inheritance.
#[cfg(not(unix))]
pub(crate) fn restrict(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}
