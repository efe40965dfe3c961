//! What a session's commit log says, in memory: numbers, names and where the bytes are, not the bytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::record::{Commit, Entry, FORMAT, MemoryEntry, MessageEntry, Span, whole};
use crate::change::Counts;
use crate::error::StoreError;
use crate::session::SessionInfo;
use crate::usage::{UsageRow, UsageTotals};

/// How much of a line tells that a log is still the one that was read before.
const BIRTH_BYTES: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) info: SessionInfo,
    pub(super) counts: Counts,
    pub(super) head: Span,
    pub(super) settings: Span,
    pub(super) messages: Vec<MessageEntry>,
    pub(super) superseded: Vec<Superseded>,
    pub(super) memories: Vec<MemoryEntry>,
    pub(super) adoption: Option<AdoptionEntry>,
    pub(super) events: Vec<EventEntry>,
    pub(super) usage: Vec<UsageRow>,
    pub(super) usage_totals: UsageTotals,
    pub(super) ends: Ends,
    birth: [u8; BIRTH_BYTES],
}

/// How long the files are, as far as commits go. What comes after is of a commit that never ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) log: u64,
    pub(super) transcript: u64,
    pub(super) parts: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Superseded {
    pub(super) position: u64,
    pub(super) superseded_ms: i64,
    pub(super) message: MessageEntry,
}

#[derive(Debug, Clone)]
pub(super) struct AdoptionEntry {
    pub(super) epoch: u64,
    pub(super) memory_version: Option<u64>,
    pub(super) covered_count: u64,
    pub(super) state: Span,
    pub(super) at_ms: i64,
}

#[derive(Debug, Clone)]
pub(super) struct EventEntry {
    pub(super) kind: String,
    pub(super) json: Span,
    pub(super) at_ms: i64,
}

/// Why a log could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    Corrupt(&'static str),
    Newer(i64),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl ReadError {
    pub(super) fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Io(error) => error.into(),
            Self::Corrupt(what) => StoreError::Corrupt {
                path: path.to_owned(),
                what,
            },
            Self::Newer(found) => StoreError::Newer {
                found,
                known: FORMAT,
            },
        }
    }
}

impl State {
    /// Reads a log. None where not even the first commit is whole.
    pub(super) fn read(log: &mut File) -> Result<Option<Self>, ReadError> {
        let mut lines = Vec::new();
        log.rewind()?;
        log.read_to_end(&mut lines)?;
        let mut commits = Commits { lines: &lines };
        let Some((line, first)) = commits.next()? else {
            return Ok(None);
        };
        let mut birth = [0; BIRTH_BYTES];
        birth.copy_from_slice(&line[..BIRTH_BYTES]);
        let Some(Entry::Created(created)) = first.entries.first() else {
            return Err(ReadError::Corrupt(
                "the log does not begin with the session",
            ));
        };
        if created.format > FORMAT {
            return Err(ReadError::Newer(created.format));
        }
        let mut state = Self {
            info: created
                .info()
                .ok_or(ReadError::Corrupt("a session id is none"))?,
            counts: Counts::default(),
            head: created.head,
            settings: created.settings,
            messages: Vec::new(),
            superseded: Vec::new(),
            memories: Vec::new(),
            adoption: None,
            events: Vec::new(),
            usage: Vec::new(),
            usage_totals: UsageTotals::default(),
            ends: Ends::default(),
            birth,
        };
        state
            .apply(first, line.len() as u64 + 1)
            .map_err(ReadError::Corrupt)?;
        state.apply_all(commits)?;
        Ok(Some(state))
    }

    /// Reads what was added to the log since. False if this is another log.
    pub(super) fn catch_up(&mut self, log: &mut File) -> Result<bool, ReadError> {
        let mut birth = [0; BIRTH_BYTES];
        log.rewind()?;
        if log.read_exact(&mut birth).is_err() || birth != self.birth {
            return Ok(false);
        }
        match log.metadata()?.len() {
            length if length < self.ends.log => return Ok(false),
            length if length == self.ends.log => return Ok(true),
            _ => {}
        }
        let mut lines = Vec::new();
        log.seek(SeekFrom::Start(self.ends.log))?;
        log.read_to_end(&mut lines)?;
        self.apply_all(Commits { lines: &lines })?;
        Ok(true)
    }

    fn apply_all(&mut self, mut commits: Commits<'_>) -> Result<(), ReadError> {
        while let Some((line, commit)) = commits.next()? {
            self.apply(commit, line.len() as u64 + 1)
                .map_err(ReadError::Corrupt)?;
        }
        Ok(())
    }

    /// Applies a commit whose line, with its end, has this length.
    pub(super) fn apply(&mut self, commit: Commit, line_bytes: u64) -> Result<(), &'static str> {
        let at_ms = commit.at_ms;
        for entry in commit.entries {
            self.apply_entry(entry, at_ms)?;
        }
        self.info.updated_ms = at_ms;
        self.info.message_count = self.counts.message_count;
        self.info.memory_version = self.counts.memory_version;
        self.ends = Ends {
            log: self.ends.log + line_bytes,
            transcript: commit.transcript_bytes,
            parts: commit.parts_bytes,
        };
        Ok(())
    }

    fn apply_entry(&mut self, entry: Entry, at_ms: i64) -> Result<(), &'static str> {
        match entry {
            Entry::Created(_) => {}
            Entry::Message(message) => {
                self.info.tokens = self.info.tokens.saturating_add(u64::from(message.tokens));
                self.messages.push(message);
                self.counts.message_count += 1;
            }
            Entry::Truncate { to_count } => {
                let first = usize::try_from(to_count)
                    .ok()
                    .filter(|&first| first <= self.messages.len());
                let first = first.ok_or("the session is cut to more messages than it has")?;
                for (position, message) in (to_count..).zip(self.messages.drain(first..)) {
                    self.info.tokens = self.info.tokens.saturating_sub(u64::from(message.tokens));
                    self.superseded.push(Superseded {
                        position,
                        superseded_ms: at_ms,
                        message,
                    });
                }
                self.counts.message_count = to_count;
            }
            Entry::Memory(memory) => {
                if memory.version != self.memories.len() as u64 + 1 {
                    return Err("a memory version is missing");
                }
                self.counts.memory_version = memory.version;
                self.memories.push(memory);
            }
            Entry::Adopt {
                epoch,
                memory_version,
                covered_count,
                state,
                at_ms,
            } => {
                self.counts.epoch = epoch;
                self.counts.covered_count = covered_count;
                self.adoption = Some(AdoptionEntry {
                    epoch,
                    memory_version,
                    covered_count,
                    state,
                    at_ms,
                });
            }
            Entry::Head(head) => self.head = head,
            Entry::Settings(settings) => self.settings = settings,
            Entry::Title(title) => self.info.title = title,
            Entry::Model(model) => self.info.model = model,
            Entry::Event { kind, json } => self.events.push(EventEntry { kind, json, at_ms }),
            Entry::Usage(usage) => {
                let usage = usage.into_row().ok_or("a purpose is unknown")?;
                self.usage_totals.add(&usage);
                self.usage.push(usage);
            }
        }
        Ok(())
    }

    pub(super) fn memory(&self, version: u64) -> Option<&MemoryEntry> {
        self.memories
            .get(usize::try_from(version.checked_sub(1)?).ok()?)
    }
}

/// The commits of some lines, up to the first that is not whole.
struct Commits<'a> {
    lines: &'a [u8],
}

impl<'a> Commits<'a> {
    fn next(&mut self) -> Result<Option<(&'a [u8], Commit)>, ReadError> {
        let Some(end) = self.lines.iter().position(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        let (line, rest) = (&self.lines[..end], &self.lines[end + 1..]);
        match Commit::from_line(line) {
            Some(commit) => {
                self.lines = rest;
                Ok(Some((line, commit)))
            }
            // A commit that a killed process or a power cut left half done is the last one. A whole one after it
            // means that something that was accepted is damaged, and nothing may be built on that.
            None if rest
                .split(|&byte| byte == b'\n')
                .any(|line| whole(line).is_some()) =>
            {
                Err(ReadError::Corrupt(
                    "a commit in the middle of the log is damaged",
                ))
            }
            None if whole(line).is_some() => Err(ReadError::Corrupt(
                "a commit is of a kind that is not known",
            )),
            None => Ok(None),
        }
    }
}
