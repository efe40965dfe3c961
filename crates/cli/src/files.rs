//! Small files: settings, prompts, memories.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Failure, Kind, reason};

/// Most bytes of a small file.
const SMALL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads a settings file, a prompt or a memory.
pub(crate) fn small_file(path: &Path) -> Result<String, Failure> {
    // Standard input is for the conversation.
    let metadata = path
        .metadata()
        .map_err(|error| match unreadable(path, &error) {
            failure if error.kind() == io::ErrorKind::NotFound => failure.hint("check the path"),
            failure => failure,
        })?;
    if metadata.is_dir() {
        return Err(
            Failure::new(Kind::Input, format!("{} is a folder", path.display()))
                .hint("give a file"),
        );
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(SMALL_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > SMALL_BYTES_MAX {
        return Err(Failure::new(
            Kind::Input,
            format!("{} has more than {SMALL_BYTES_MAX} bytes", path.display()),
        ));
    }
    String::from_utf8(bytes)
        .map(|text| {
            text.strip_prefix('\u{feff}')
                .map(str::to_owned)
                .unwrap_or(text)
        })
        .map_err(|_| {
            Failure::new(
                Kind::Input,
                format!("{} is not text in UTF-8", path.display()),
            )
        })
}

/// Why a file cannot be read, and what to do.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let name = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let failure = Failure::new(Kind::Input, format!("there is no file {name}"));
            match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => failure.hint(
                    format!("the folder {} does not exist either", folder.display()),
                ),
                _ => failure.hint("check the path; `-` reads standard input"),
            }
        }
        io::ErrorKind::PermissionDenied => {
            Failure::new(Kind::Input, format!("{name} may not be read"))
                .hint(format!("see who may: ls -l {name}"))
        }
        _ => Failure::new(
            Kind::Input,
            format!("{name}: cannot be read: {}", reason(error)),
        ),
    }
}
