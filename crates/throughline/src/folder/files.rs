//! Files and folders that only their owner may look into.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Makes a folder, and those above it that are missing, for the owner alone. One that exists is left as it is: it may
/// be the user's own.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a file for reading and writing, making it if it is missing, for the owner alone.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes a file, with what a killed process left of writing it, if they exist.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for path in [path, &new_file(path)] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Where the next text of a file is written.
fn new_file(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

/// Replaces a file whole: a reader sees the old text or the new one.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = new_file(path);
    let mut file = open(&new)?;
    file.set_len(0)?;
    file.write_all(text)?;
    file.sync_data()?;
    fs::rename(&new, path)
}

/// The text of a file; none if there is no such file.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    let bytes = read_bytes(path)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The bytes of a file; none if there is no such file.
pub(super) fn read_bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
