//! Import of sessions that version 0.1 kept in its `files` store: a folder for each session.
//!
//! ```text
//! <root>/<session>/commits.log        one line for each commit: a checksum, a space, JSON
//!                  transcript.jsonl   every message as it was received, one on a line
//!                  parts.bin          all other bytes
//! <root>/.locks/<session>.lock        the right to write a session
//! ```
//!
//! The log says where the bytes of each commit are in the two other files. [`import`] reads the commits of a session and
//! applies them to another store in the same order, so that everything comes along: superseded messages, memory
//! versions, events and usage. It changes nothing in the old folder.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::change::{Change, Counts};
use crate::error::StoreError;
use crate::lease::Lease;
use crate::memory::{Adoption, MemoryRow};
use crate::message::NewMessage;
use crate::session::{ForkPoint, NewSession, SessionId};
use crate::store::Store;
use crate::usage::{Purpose, UsageRow};

const LOG: &str = "commits.log";
/// How many hexadecimal characters of a digest begin a line.
const CHECK_CHARS: usize = 16;
/// The only format that was ever written.
const FORMAT: i64 = 1;

/// What came of an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// Sessions that are in the other store now.
    pub sessions: usize,
    /// Sessions that cannot be read, or that another process is writing, and why.
    pub failed: Vec<(SessionId, StoreError)>,
}

/// Whether the folder is a `files` store of version 0.1 with sessions in it.
#[must_use]
pub fn is_old_store(root: &Path) -> bool {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .into_iter()
        .any(|entry| entry.path().join(LOG).is_file())
}

/// Copies all sessions of the old folder into a store. Those that are there already are left as they are, unless an
/// import that was interrupted left only their beginning.
///
/// # Errors
/// If the folder cannot be listed, or the other store cannot be written.
pub async fn import(root: &Path, into: &dyn Store) -> Result<Imported, StoreError> {
    let mut imported = Imported::default();
    let mut waiting = ids(root)?;
    // Parents come before their forks, which begin with their messages.
    let mut parents: HashMap<SessionId, Option<SessionId>> = HashMap::new();
    for id in &waiting {
        let parent = created(&root.join(id.as_str())).ok();
        let parent = parent.and_then(|created| SessionId::new(created.parent?.0).ok());
        parents.insert(id.clone(), parent);
    }
    let depth = |id: &SessionId| {
        let mut depth = 0;
        let mut at = id;
        while let Some(Some(parent)) = parents.get(at)
            && depth < parents.len()
        {
            depth += 1;
            at = parent;
        }
        depth
    };
    waiting.sort_by_key(|id| (depth(id), id.clone()));
    for id in waiting {
        match import_one(root, &id, into).await {
            Ok(()) => imported.sessions += 1,
            Err(
                error @ (StoreError::Corrupt { .. }
                | StoreError::Newer { .. }
                | StoreError::Busy { .. }
                | StoreError::Invalid { .. }
                | StoreError::Conflict { .. }),
            ) => imported.failed.push((id, error)),
            Err(error) => return Err(error),
        }
    }
    Ok(imported)
}

fn ids(root: &Path) -> io::Result<Vec<SessionId>> {
    let mut ids = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.path().join(LOG).is_file() {
            let name = entry.file_name();
            ids.extend(name.to_str().and_then(|name| SessionId::new(name).ok()));
        }
    }
    Ok(ids)
}

async fn import_one(root: &Path, id: &SessionId, into: &dyn Store) -> Result<(), StoreError> {
    // An old version that has the session open must not go on writing behind us.
    let _lease = Lease::of_session(&root.join(".locks"), id, Duration::ZERO).await?;
    let folder = root.join(id.as_str());
    let read = tokio::task::spawn_blocking(move || read(&folder)).await;
    let Session { mut new, commits } = read.map_err(|error| StoreError::Unavailable {
        source: error.into(),
    })??;
    match into.session(id).await {
        Ok(there) => {
            let updated_ms = commits.last().map_or(0, |(at_ms, _)| *at_ms);
            if there.created_ms != new.created_ms || there.updated_ms >= updated_ms {
                return Ok(());
            }
            into.delete(id).await?;
        }
        Err(StoreError::SessionNotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut commits = commits.into_iter();
    let mut first = commits.next().map_or_else(Vec::new, |(_, changes)| changes);
    new.parent = inherit(new.parent, &mut first, into).await;
    let mut counts = Counts {
        message_count: new.parent.as_ref().map_or(0, |fork| fork.message_count),
        ..Counts::default()
    };
    expect(&mut first, &mut counts)?;
    into.create(new, first).await?;
    let mut writer = into.open(id, Duration::ZERO).await?;
    for (at_ms, mut changes) in commits {
        expect(&mut changes, &mut counts)?;
        writer.commit(at_ms, changes).await?;
    }
    Ok(())
}

/// The fork point, if the other store has the same parent: its messages are then not appended but inherited. A parent
/// that was deleted or cut back is left out; the fork has all its messages.
async fn inherit(
    parent: Option<ForkPoint>,
    changes: &mut Vec<Change>,
    into: &dyn Store,
) -> Option<ForkPoint> {
    let fork = parent?;
    let count = usize::try_from(fork.message_count).ok()?;
    let digests = into.digests(&fork.session, 0..fork.message_count).await;
    let Some(Change::Append { messages, .. }) = changes.first_mut() else {
        return (count == 0 && digests.is_ok()).then_some(fork);
    };
    let own: Vec<[u8; 32]> = messages.iter().map(|message| message.digest).collect();
    if own.get(..count)? != digests.ok()? {
        return None;
    }
    messages.drain(..count);
    if messages.is_empty() {
        changes.remove(0);
    }
    Some(fork)
}

/// Sets the counts that the changes are compared with: the log has them only in effect.
fn expect(changes: &mut [Change], counts: &mut Counts) -> Result<(), StoreError> {
    for change in changes {
        match change {
            Change::Append { expected_count, .. } => *expected_count = counts.message_count,
            Change::Adopt { expected_epoch, .. } => *expected_epoch = counts.epoch,
            _ => {}
        }
        counts.apply(change)?;
    }
    Ok(())
}

/// What the log of a session says.
struct Session {
    new: NewSession,
    /// When each commit was made, and what it changed.
    commits: Vec<(i64, Vec<Change>)>,
}

/// Reads a session. What follows its last whole commit is of one that never ended.
fn read(folder: &Path) -> Result<Session, StoreError> {
    let log = fs::read(folder.join(LOG))?;
    let mut files = Files::open(folder)?;
    let mut new = None;
    let mut commits = Vec::new();
    let mut lines = log.split(|&byte| byte == b'\n');
    while let Some(line) = lines.next() {
        let Some(json) = whole(line) else {
            if lines.any(|line| whole(line).is_some()) {
                return Err(files.corrupt("a commit in the middle of the log is damaged"));
            }
            break;
        };
        let commit: Commit = serde_json::from_slice(json)
            .map_err(|_| files.corrupt("a commit is of a kind that is not known"))?;
        let mut changes = Vec::new();
        for entry in commit.entries {
            match entry {
                Entry::Created(created) => new = Some(files.new_session(created)?),
                entry => files.add(entry, &mut changes)?,
            }
        }
        commits.push((commit.at_ms, changes));
    }
    let new = new.ok_or_else(|| files.corrupt("the log has no whole commit"))?;
    if folder.file_name().and_then(|name| name.to_str()) != Some(new.id.as_str()) {
        return Err(files.corrupt("the folder has the name of another session"));
    }
    Ok(Session { new, commits })
}

/// How the session began.
fn created(folder: &Path) -> Result<Created, StoreError> {
    let corrupt = || StoreError::Corrupt {
        path: folder.join(LOG),
        what: "the log does not begin with the session",
    };
    let log = fs::read(folder.join(LOG))?;
    let first = log.split(|&byte| byte == b'\n').next().and_then(whole);
    let first: Commit = first
        .and_then(|json| serde_json::from_slice(json).ok())
        .ok_or_else(corrupt)?;
    match first.entries.into_iter().next() {
        Some(Entry::Created(created)) => Ok(created),
        _ => Err(corrupt()),
    }
}

/// The JSON of a line whose checksum holds.
fn whole(line: &[u8]) -> Option<&[u8]> {
    let (found, rest) = line.split_at_checked(CHECK_CHARS)?;
    let json = rest.strip_prefix(b" ")?;
    (blake3::hash(json).to_hex()[..CHECK_CHARS].as_bytes() == found).then_some(json)
}

/// The files with the bytes of a session.
struct Files {
    folder: PathBuf,
    transcript: File,
    parts: File,
}

impl Files {
    fn open(folder: &Path) -> Result<Self, StoreError> {
        let open = |name: &str| {
            File::open(folder.join(name)).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => StoreError::Corrupt {
                    path: folder.join(name),
                    what: "the file is missing",
                },
                _ => error.into(),
            })
        };
        Ok(Self {
            transcript: open("transcript.jsonl")?,
            parts: open("parts.bin")?,
            folder: folder.to_owned(),
        })
    }

    fn corrupt(&self, what: &'static str) -> StoreError {
        StoreError::Corrupt {
            path: self.folder.join(LOG),
            what,
        }
    }

    fn new_session(&mut self, created: Created) -> Result<NewSession, StoreError> {
        if created.format > FORMAT {
            return Err(StoreError::Newer {
                found: created.format,
                known: FORMAT,
            });
        }
        let no_id = |_| self.corrupt("a session id is none");
        let parent = match created.parent {
            Some((id, message_count)) => Some(ForkPoint {
                session: SessionId::new(id).map_err(no_id)?,
                message_count,
            }),
            None => None,
        };
        Ok(NewSession {
            id: SessionId::new(created.id).map_err(no_id)?,
            parent,
            wire: created.wire,
            model: created.model,
            title: created.title,
            created_ms: created.created_ms,
            head: self.part(created.head)?.into(),
            settings: self.text(created.settings)?,
        })
    }

    fn add(&mut self, entry: Entry, changes: &mut Vec<Change>) -> Result<(), StoreError> {
        let change = match entry {
            Entry::Created(_) => return Err(self.corrupt("the session begins twice")),
            Entry::Message(entry) => {
                let message = self.message(entry)?;
                if let Some(Change::Append { messages, .. }) = changes.last_mut() {
                    messages.push(message);
                    return Ok(());
                }
                Change::Append {
                    expected_count: 0,
                    messages: vec![message],
                }
            }
            Entry::Truncate { to_count } => Change::Truncate { to_count },
            Entry::Memory(memory) => Change::Memory(MemoryRow {
                version: memory.version,
                covered_count: memory.covered_count,
                digest: memory.digest.0,
                origin: memory.origin,
                json: self.text(memory.json)?,
                markdown: self.text(memory.markdown)?,
                created_ms: memory.created_ms,
                tokens: memory.tokens,
            }),
            Entry::Adopt {
                epoch,
                memory_version,
                covered_count,
                state,
                at_ms,
            } => Change::Adopt {
                expected_epoch: 0,
                adoption: Adoption {
                    epoch,
                    memory_version,
                    covered_count,
                    state: self.text(state)?,
                    at_ms,
                },
            },
            Entry::Head(head) => Change::Head(self.part(head)?.into()),
            Entry::Settings(settings) => Change::Settings(self.text(settings)?),
            Entry::Title(title) => Change::Title(title),
            Entry::Model(model) => Change::Model(model),
            Entry::Event { kind, json } => Change::Event {
                kind,
                json: self.text(json)?,
            },
            Entry::Usage(usage) => Change::Usage(UsageRow {
                at_ms: usage.at_ms,
                purpose: Purpose::named(&usage.purpose)
                    .ok_or_else(|| self.corrupt("a purpose is unknown"))?,
                model: usage.model,
                uncached: usage.uncached,
                cache_write: usage.cache_write,
                cache_write_long: usage.cache_write_long,
                cache_read: usage.cache_read,
                output: usage.output,
                cost_nanodollars: usage.cost_nanodollars,
                request_id: usage.request_id,
            }),
        };
        changes.push(change);
        Ok(())
    }

    fn message(&mut self, entry: MessageEntry) -> Result<NewMessage, StoreError> {
        let original = match entry.original {
            Some(span) => self.part(span)?,
            None => self.bytes(entry.line, |files| &mut files.transcript)?,
        };
        let sent = entry.sent.map(|span| self.part(span)).transpose()?;
        Ok(NewMessage {
            original: original.into(),
            sent: sent.map(Into::into),
            digest: entry.digest.0,
            at_ms: entry.at_ms,
            role: entry.role,
            text: self.text(entry.text)?,
            tokens: entry.tokens,
        })
    }

    fn part(&mut self, span: Span) -> Result<Vec<u8>, StoreError> {
        self.bytes(span, |files| &mut files.parts)
    }

    fn text(&mut self, span: Span) -> Result<String, StoreError> {
        String::from_utf8(self.part(span)?).map_err(|_| self.corrupt("a text is not UTF-8"))
    }

    fn bytes(
        &mut self,
        Span(offset, length): Span,
        of: impl FnOnce(&mut Self) -> &mut File,
    ) -> Result<Vec<u8>, StoreError> {
        let file = of(self);
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == length {
            Ok(bytes)
        } else {
            Err(self.corrupt("a file is shorter than what was written to it"))
        }
    }
}

/// Where some bytes are in a file: offset and length.
#[derive(Clone, Copy, Deserialize)]
struct Span(u64, u64);

#[derive(Deserialize)]
struct Commit {
    at_ms: i64,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Created(Created),
    Message(MessageEntry),
    Truncate {
        to_count: u64,
    },
    Memory(MemoryEntry),
    Adopt {
        epoch: u64,
        memory_version: Option<u64>,
        covered_count: u64,
        state: Span,
        at_ms: i64,
    },
    Head(Span),
    Settings(Span),
    Title(String),
    Model(String),
    Event {
        kind: String,
        json: Span,
    },
    Usage(UsageEntry),
}

#[derive(Deserialize)]
struct Created {
    format: i64,
    id: String,
    parent: Option<(String, u64)>,
    wire: String,
    model: String,
    title: String,
    created_ms: i64,
    head: Span,
    settings: Span,
}

#[derive(Deserialize)]
struct MessageEntry {
    /// The line of the transcript, without its end.
    line: Span,
    /// The message as it was received, where that is not one line.
    #[serde(default)]
    original: Option<Span>,
    #[serde(default)]
    sent: Option<Span>,
    text: Span,
    digest: Hex,
    #[serde(default)]
    at_ms: Option<i64>,
    role: String,
    tokens: u32,
}

#[derive(Deserialize)]
struct MemoryEntry {
    version: u64,
    covered_count: u64,
    digest: Hex,
    origin: String,
    created_ms: i64,
    tokens: u32,
    json: Span,
    markdown: Span,
}

#[derive(Deserialize)]
struct UsageEntry {
    at_ms: i64,
    purpose: String,
    model: String,
    uncached: u64,
    cache_write: u64,
    cache_write_long: u64,
    cache_read: u64,
    output: u64,
    cost_nanodollars: Option<i64>,
    request_id: Option<String>,
}

/// A digest, written as hexadecimal characters.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Hex([u8; 32]);

impl TryFrom<String> for Hex {
    type Error = blake3::HexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Ok(Self(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}
