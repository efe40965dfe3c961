//! Gets at the conversations: reads a file, standard input, a folder, a database or a zip archive, and has it read by the
//! library.
//!
//! Every input becomes one text in a format that the library knows. What is skipped on the way is reported on
//! standard error. The text is held once; nothing of it is copied that can be shared.

mod archive;
mod database;
mod folder;
mod zstd;

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use throughline_formats::read;
use throughline_formats::source::{ReadError, SkippedPart, Source, SourceText};

use crate::error::{Failure, Kind, reason};
use crate::files::unreadable;
use crate::output::Console;
use crate::progress::Progress;
use crate::words;

/// Most bytes of text that are read. Everything is in memory at once, and an endless pipe should end with a sentence.
const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// How many skipped places are listed one by one.
const SKIPPED_SHOWN_MAX: usize = 5;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// An archive with files, and an empty one.
const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
const SQLITE: &[u8] = b"SQLite format 3\0";
/// What else is packed, and what unpacks it.
const PACKED: &[(&[u8], &str, &str)] = &[
    (
        b"\xfd7zXZ\0",
        "compressed with xz",
        "unpack it first: xz -dc FILE | throughline ... -",
    ),
    (
        b"BZh",
        "compressed with bzip2",
        "unpack it first: bzip2 -dc FILE | throughline ... -",
    ),
    (b"%PDF-", "a PDF document", "give the session file itself"),
];

/// A text that was read, and what it is called in messages.
pub(crate) struct Input {
    pub(crate) text: SourceText,
    /// The path as typed, or `standard input`.
    pub(crate) name: String,
    /// The gzip data ended early, a file of a folder could not be read, ...
    pub(crate) warnings: Vec<String>,
}

/// Reads everything that `path` names, which is one text.
pub(crate) fn open(path: &Path, console: &Console, progress: &Progress) -> Result<Input, Failure> {
    let mut inputs = open_all(path, console, progress)?;
    match inputs.pop() {
        Some(only) if inputs.is_empty() => Ok(only),
        _ => {
            let name = path.display();
            let count = words::counted(inputs.len() + 1, "file");
            Err(
                Failure::new(Kind::Input, format!("{name} is a zip archive of {count}"))
                    .hint("unpack it and give one of them"),
            )
        }
    }
}

/// Reads everything that `path` names: the files of a zip archive, or one text.
fn open_all(path: &Path, console: &Console, progress: &Progress) -> Result<Vec<Input>, Failure> {
    if path.as_os_str() == "-" {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            console.note("reading from the terminal; end the input with Ctrl-D");
        }
        return stream(stdin.lock(), None, "standard input".to_owned(), progress);
    }
    let name = path.display().to_string();
    let metadata = path.metadata().map_err(|error| unreadable(path, &error))?;
    if metadata.is_dir() {
        return folder::read(path, name).map(|input| vec![input]);
    }
    let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
    if metadata.is_file() {
        let mut start = [0; 16];
        let length = read_start(&mut file, &mut start).map_err(|error| unreadable(path, &error))?;
        if start[..length].starts_with(SQLITE) {
            return database::read(path, name).map(|input| vec![input]);
        }
        // Opened again, so that the file is read from its start.
        file = File::open(path).map_err(|error| unreadable(path, &error))?;
    }
    stream(
        file,
        metadata.is_file().then_some(metadata.len()),
        name,
        progress,
    )
}

/// Reads all conversations of the file and reports what was skipped; `from` is the name of a format or `auto`.
pub(crate) fn conversations(
    path: &Path,
    from: &str,
    console: &Console,
    progress: &Progress,
) -> Result<(Source, Input), Failure> {
    let inputs = open_all(path, console, progress)?;
    let count = inputs.len();
    let mut found: Option<(Source, Input)> = None;
    let mut first_failure = None;
    let mut unread = 0;
    for input in inputs {
        progress.working("reading the conversations", input.text.text.len());
        let read = match read::read(&input.text, Some(from)) {
            Ok(read) => read,
            Err(error) => {
                unread += 1;
                first_failure.get_or_insert_with(|| no_conversation(&input, &error));
                continue;
            }
        };
        progress.finish();
        for warning in &input.warnings {
            console.warning(warning);
        }
        tell_skipped(&read.skipped, &input.name, console);
        match &mut found {
            Some((source, _)) => {
                source.conversations.extend(read.conversations);
                source.skipped.extend(read.skipped);
            }
            None => found = Some((read, input)),
        }
    }
    progress.finish();
    match (found, first_failure) {
        (Some((source, mut input)), _) => {
            if count > 1 {
                input.name = path.display().to_string();
            }
            if unread > 0 {
                let files = words::counted(unread, "file");
                console.note(&format!("{}: no conversation is in {files}", input.name));
            }
            Ok((source, input))
        }
        (None, Some(failure)) => Err(failure),
        // Not without an input.
        (None, None) => Err(Failure::new(Kind::Input, "the input is empty").at(path.display())),
    }
}

fn is_zip(start: &[u8]) -> bool {
    ZIP.iter().any(|magic| start.starts_with(magic))
}

fn tell_skipped(skipped: &[SkippedPart], name: &str, console: &Console) {
    for piece in skipped.iter().take(SKIPPED_SHOWN_MAX) {
        let line = words::number(piece.line as u64);
        let skipped = match piece.bytes {
            // A note about the file.
            0 => String::new(),
            bytes => format!("skipped {}: ", words::counted(bytes, "byte")),
        };
        let reason = &piece.reason;
        console.warning(&format!("{name}: line {line}: {skipped}{reason}"));
    }
    if let Some(rest) = skipped
        .get(SKIPPED_SHOWN_MAX..)
        .filter(|rest| !rest.is_empty())
    {
        let bytes: usize = rest.iter().map(|piece| piece.bytes).sum();
        console.warning(&format!(
            "{name}: skipped {} in {} more; `throughline inspect --json` lists them",
            words::counted(bytes, "byte"),
            words::counted(rest.len(), "place"),
        ));
    }
}

fn no_conversation(input: &Input, error: &ReadError) -> Failure {
    let kind = match error {
        ReadError::NoMessage { .. } => Kind::NothingToDo,
        _ => Kind::Input,
    };
    let failure = Failure::new(kind, error.to_string()).at(&input.name);
    match error {
        ReadError::NoMessage { .. } => failure,
        ReadError::Misread { .. } => failure.hint(
            "a newer version of the program may write another form; if it is of another format, name that with --from",
        ),
        ReadError::Empty if !input.text.skipped.is_empty() => {
            failure.hint("there are only NUL bytes in it: the file was lost when it was written")
        }
        ReadError::Empty => failure.hint("give a session file, a chat export or a request body"),
        ReadError::UnknownFormat { .. } if is_binary(&input.text) => {
            failure.hint("this looks like binary data; give a text or JSON file")
        }
        ReadError::UnknownFormat { .. } => failure.hint(
            "if you know the format, name it with --from; `throughline formats` says what each is",
        ),
        _ => {
            failure.hint("leave --from out to have the format found, or see `throughline formats`")
        }
    }
}

/// Much of it had to be repaired to be text.
fn is_binary(text: &SourceText) -> bool {
    let repaired: usize = text.skipped.iter().map(|piece| piece.bytes).sum();
    repaired * 50 > text.text.len()
}

fn stream(
    reader: impl Read,
    length: Option<u64>,
    name: String,
    progress: &Progress,
) -> Result<Vec<Input>, Failure> {
    let mut reader = reader;
    let failed = |error: io::Error| {
        Failure::new(
            Kind::Input,
            format!("{name}: cannot be read: {}", reason(&error)),
        )
    };
    let mut start = [0; 16];
    let start_length = read_start(&mut reader, &mut start).map_err(failed)?;
    let start = &start[..start_length];
    progress.reading(length);
    let watched = ProgressReader {
        inner: start.chain(reader),
        progress,
    };
    let mut warnings = Vec::new();
    let is_gzip = start.starts_with(GZIP);
    let bytes = if is_gzip || start.starts_with(ZSTD) {
        let mut bytes = Vec::new();
        let (packing, unpacked) = match is_gzip {
            true => ("gzip", all(MultiGzDecoder::new(watched), &mut bytes)),
            false => ("zstd", zstd::unpack(watched, &mut bytes)),
        };
        match unpacked {
            Ok(()) => {}
            // A copy that stopped: what there is can be read.
            Err(error) if !bytes.is_empty() && error.kind() != io::ErrorKind::OutOfMemory => {
                warnings.push(format!(
                    "{name}: the {packing} data is damaged after {}: {}",
                    words::counted(bytes.len(), "byte"),
                    reason(&error)
                ));
            }
            Err(error) => return Err(failed(error)),
        }
        bytes
    } else if start.starts_with(SQLITE) {
        return Err(Failure::new(
            Kind::Input,
            format!("{name}: a database cannot be read from a pipe"),
        )
        .hint("give the database file itself"));
    } else if let Some((_, what, hint)) =
        PACKED.iter().find(|(magic, _, _)| start.starts_with(magic))
    {
        return Err(Failure::new(Kind::Input, format!("{name} is {what}")).hint(*hint));
    } else {
        let mut bytes = Vec::new();
        let length = usize::try_from(length.unwrap_or(0).min(BYTES_MAX)).unwrap_or(0);
        bytes
            .try_reserve_exact(length + 1)
            .map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
        all(watched, &mut bytes).map_err(failed)?;
        bytes
    };
    progress.finish();
    if is_zip(&bytes) && bytes.len() as u64 <= BYTES_MAX {
        return archive::read(&bytes, &name);
    }
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::new(
            Kind::Input,
            format!("{name} has more than {} GiB of text", BYTES_MAX >> 30),
        )
        .hint("split it: in JSONL files every part with whole lines can be read"));
    }
    Ok(vec![Input {
        text: SourceText::from_bytes(bytes),
        name,
        warnings,
    }])
}

fn all(reader: impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    reader.take(BYTES_MAX + 1).read_to_end(bytes).map(drop)
}

fn read_start(reader: &mut impl Read, start: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < start.len() {
        match reader.read(&mut start[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Tells the bar how far the reading is.
struct ProgressReader<'a, R> {
    inner: R,
    progress: &'a Progress,
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.read(count);
        Ok(count)
    }
}

/// When a file was last written, for lists.
fn modified(metadata: &Metadata) -> Option<std::time::SystemTime> {
    metadata.modified().ok()
}
