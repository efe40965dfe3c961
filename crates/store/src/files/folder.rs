//! The folder of one session: reading bytes out of it and writing commits into it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::record::{Commit, Entry, Hex, MemoryEntry, MessageEntry, Span};
use super::state::{Ends, State};
use crate::change::Change;
use crate::error::StoreError;
use crate::message::{NewMessage, StoredMessage};
use crate::private;
use crate::store::Durability;

/// The truth: one line for each commit.
pub(super) const LOG: &str = "commits.log";
/// Every message that was ever part of the session, one on a line, in the order in which they came.
pub(super) const TRANSCRIPT: &str = "transcript.jsonl";
/// All other bytes: texts for search, memories, heads, states.
pub(super) const PARTS: &str = "parts.bin";

/// The bytes of a session, for reading.
pub(super) struct Bodies {
    path: PathBuf,
    transcript: BufReader<File>,
    parts: BufReader<File>,
}

impl Bodies {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.to_owned(),
            transcript: BufReader::new(File::open(path.join(TRANSCRIPT))?),
            parts: BufReader::new(File::open(path.join(PARTS))?),
        })
    }

    pub(super) fn part(&mut self, span: Span) -> Result<Vec<u8>, StoreError> {
        read(&mut self.parts, span).map_err(|error| self.error(error))
    }

    pub(super) fn text(&mut self, span: Span) -> Result<String, StoreError> {
        String::from_utf8(self.part(span)?).map_err(|_| self.corrupt("a text is not UTF-8"))
    }

    pub(super) fn message(
        &mut self,
        position: u64,
        entry: &MessageEntry,
    ) -> Result<StoredMessage, StoreError> {
        Ok(StoredMessage {
            position,
            original: self.original(entry)?,
            sent: entry
                .sent
                .map(|span| self.part(span))
                .transpose()?
                .map(Bytes::from),
            digest: entry.digest.0,
            at_ms: entry.at_ms,
            role: entry.role.to_string(),
            tokens: entry.tokens,
        })
    }

    fn original(&mut self, entry: &MessageEntry) -> Result<Bytes, StoreError> {
        let bytes = match entry.original {
            Some(span) => self.part(span)?,
            None => read(&mut self.transcript, entry.line).map_err(|error| self.error(error))?,
        };
        Ok(bytes.into())
    }

    /// The message as it was once appended: what a fork begins with.
    pub(super) fn new_message(&mut self, entry: &MessageEntry) -> Result<NewMessage, StoreError> {
        let message = self.message(0, entry)?;
        Ok(NewMessage {
            original: message.original,
            sent: message.sent,
            digest: message.digest,
            at_ms: message.at_ms,
            role: message.role,
            text: self.text(entry.text)?,
            tokens: message.tokens,
        })
    }

    fn error(&self, error: io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                self.corrupt("a file is shorter than what was written to it")
            }
            _ => error.into(),
        }
    }

    fn corrupt(&self, what: &'static str) -> StoreError {
        StoreError::Corrupt {
            path: self.path.clone(),
            what,
        }
    }
}

fn read(file: &mut BufReader<File>, Span(offset, length): Span) -> io::Result<Vec<u8>> {
    // Relative, so that what is buffered already serves the next message.
    let position = file.stream_position()?;
    match i64::try_from(i128::from(offset) - i128::from(position)) {
        Ok(distance) => file.seek_relative(distance)?,
        Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
    }
    // A damaged length must not make us ask for all the memory there is.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(usize::MAX).min(1 << 20));
    file.by_ref().take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// The files of a session, for writing. Only the holder of the lease has one.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    log: File,
    transcript: File,
    parts: File,
    durability: Durability,
}

impl Folder {
    pub(super) fn open(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.to_owned(),
            log: private::open_file(&path.join(LOG))?,
            transcript: private::open_file(&path.join(TRANSCRIPT))?,
            parts: private::open_file(&path.join(PARTS))?,
            durability,
        })
    }

    /// Takes away what a commit left that never ended.
    pub(super) fn repair(&self, ends: Ends) -> Result<(), StoreError> {
        for (file, end) in [
            (&self.log, ends.log),
            (&self.transcript, ends.transcript),
            (&self.parts, ends.parts),
        ] {
            let length = file.metadata()?.len();
            if length < end {
                let what = "a file is shorter than what was written to it";
                return Err(StoreError::Corrupt {
                    path: self.path.clone(),
                    what,
                });
            }
            if length > end {
                file.set_len(end)?;
            }
        }
        Ok(())
    }

    /// Begins a commit after what these ends say.
    pub(super) fn begin(&self, ends: Ends) -> Result<Draft<'_>, StoreError> {
        self.repair(ends)?;
        Ok(Draft {
            folder: self,
            transcript: Tail::new(&self.transcript, ends.transcript)?,
            parts: Tail::new(&self.parts, ends.parts)?,
            ends,
            entries: Vec::new(),
        })
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        match self.durability {
            Durability::PowerLoss => file.sync_data(),
            Durability::ProcessKill => Ok(()),
        }
    }
}

/// A file that is being added to.
struct Tail<'a> {
    file: BufWriter<&'a File>,
    end: u64,
}

impl<'a> Tail<'a> {
    fn new(mut file: &'a File, end: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(end))?;
        Ok(Self {
            file: BufWriter::new(file),
            end,
        })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<Span> {
        self.file.write_all(bytes)?;
        let span = Span(self.end, bytes.len() as u64);
        self.end += bytes.len() as u64;
        Ok(span)
    }
}

/// A commit under way: bytes are in the files already, but nothing counts before its line in the log.
pub(super) struct Draft<'a> {
    folder: &'a Folder,
    transcript: Tail<'a>,
    parts: Tail<'a>,
    ends: Ends,
    entries: Vec<Entry>,
}

impl Draft<'_> {
    pub(super) fn part(&mut self, bytes: &[u8]) -> Result<Span, StoreError> {
        Ok(self.parts.put(bytes)?)
    }

    pub(super) fn entry(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn change(&mut self, change: &Change) -> Result<(), StoreError> {
        let entry = match change {
            Change::Append { messages, .. } => {
                return messages
                    .iter()
                    .try_for_each(|message| self.message(message));
            }
            Change::Truncate { to_count } => Entry::Truncate {
                to_count: *to_count,
            },
            Change::Memory(memory) => Entry::Memory(MemoryEntry {
                version: memory.version,
                covered_count: memory.covered_count,
                digest: Hex(memory.digest),
                origin: memory.origin.clone(),
                created_ms: memory.created_ms,
                tokens: memory.tokens,
                json: self.part(memory.json.as_bytes())?,
                markdown: self.part(memory.markdown.as_bytes())?,
            }),
            Change::Adopt { adoption, .. } => Entry::Adopt {
                epoch: adoption.epoch,
                memory_version: adoption.memory_version,
                covered_count: adoption.covered_count,
                state: self.part(adoption.state.as_bytes())?,
                at_ms: adoption.at_ms,
            },
            Change::Head(head) => Entry::Head(self.part(head)?),
            Change::Settings(settings) => Entry::Settings(self.part(settings.as_bytes())?),
            Change::Title(title) => Entry::Title(title.clone()),
            Change::Model(model) => Entry::Model(model.clone()),
            Change::Event { kind, json } => Entry::Event {
                kind: kind.clone(),
                json: self.part(json.as_bytes())?,
            },
            Change::Usage(usage) => Entry::Usage(usage.into()),
        };
        self.entries.push(entry);
        Ok(())
    }

    pub(super) fn message(&mut self, message: &NewMessage) -> Result<(), StoreError> {
        // Outside of strings, the end of a line is white space like any other, and within them there is none.
        let is_line = !message
            .original
            .iter()
            .any(|byte| matches!(byte, b'\n' | b'\r'));
        let (line, original) = if is_line {
            (self.transcript.put(&message.original)?, None)
        } else {
            let mut line = message.original.to_vec();
            line.iter_mut()
                .filter(|byte| matches!(byte, b'\n' | b'\r'))
                .for_each(|byte| *byte = b' ');
            (
                self.transcript.put(&line)?,
                Some(self.part(&message.original)?),
            )
        };
        self.transcript.put(b"\n")?;
        let entry = MessageEntry {
            line,
            original,
            sent: message
                .sent
                .as_ref()
                .map(|sent| self.part(sent))
                .transpose()?,
            text: self.part(message.text.as_bytes())?,
            digest: Hex(message.digest),
            at_ms: message.at_ms,
            role: message.role.as_str().into(),
            tokens: message.tokens,
        };
        self.entries.push(Entry::Message(entry));
        Ok(())
    }

    /// Writes everything, then the line that makes it count. Gives the commit and the length of its line.
    pub(super) fn finish(mut self, at_ms: i64) -> Result<(Commit, u64), StoreError> {
        self.transcript.file.flush()?;
        self.parts.file.flush()?;
        if self.transcript.end > self.ends.transcript {
            self.folder.sync(&self.folder.transcript)?;
        }
        if self.parts.end > self.ends.parts {
            self.folder.sync(&self.folder.parts)?;
        }
        let commit = Commit {
            at_ms,
            transcript_bytes: self.transcript.end,
            parts_bytes: self.parts.end,
            entries: self.entries,
        };
        let line = commit.to_line()?;
        let mut log = &self.folder.log;
        log.seek(SeekFrom::Start(self.ends.log))?;
        log.write_all(&line)?;
        self.folder.sync(log)?;
        Ok((commit, line.len() as u64))
    }
}

/// Replaces a file whole: nobody ever sees half of it.
pub(super) fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".writing-")
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    private::restrict(file.path(), 0o600)?;
    if durability == Durability::PowerLoss {
        file.as_file().sync_data()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    if durability == Durability::PowerLoss {
        private::sync_folder(folder)?;
    }
    Ok(())
}

/// The log of a session, for reading. None where there is no session.
pub(super) fn open_log(path: &Path) -> io::Result<Option<File>> {
    match File::open(path.join(LOG)) {
        Ok(log) => Ok(Some(log)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Reads a session from its beginning.
pub(super) fn read_state(path: &Path, log: &mut File) -> Result<State, StoreError> {
    let state = State::read(log).map_err(|error| error.at(&path.join(LOG)))?;
    state.ok_or_else(|| StoreError::Corrupt {
        path: path.join(LOG),
        what: "the log has no whole commit",
    })
}
