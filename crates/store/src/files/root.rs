//! The folder that holds the sessions' folders, and everything that is done to one of them. All of this may wait for
//! the disk.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::folder::{Bodies, Folder, LOG, PARTS, TRANSCRIPT, open_log, read_state, replace};
use super::record::{Created, Entry, MemoryEntry, Span, Summary};
use super::state::{Ends, State};
use crate::change::{Change, Counts};
use crate::error::{ErrorKind, Invalid, StoreError};
use crate::limits;
use crate::memory::{Adoption, MemoryRow};
use crate::message::StoredMessage;
use crate::private;
use crate::search::{Hit, Place, Scope, Search, Words, in_order};
use crate::session::{DamagedSession, NewSession, SessionId, SessionInfo};
use crate::store::{Durability, Loaded, Page};

/// How many sessions' logs are kept in memory once they were read, besides those of writers.
const STATES_MAX: usize = 16;
/// A folder that was being made so long ago is not being made any more.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
const NEW: &str = ".new-";
const DELETED: &str = ".deleted-";
const SUMMARY: &str = "session.json";
const MARKDOWN: &str = "session-memory.md";

/// What is known of a session, or nothing yet.
pub(super) type Known = Arc<Mutex<Option<State>>>;

#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    pub(super) durability: Durability,
    states: Mutex<HashMap<SessionId, Known>>,
}

impl Root {
    pub(super) fn open(path: PathBuf, durability: Durability) -> Result<Self, StoreError> {
        private::create_folder(&path)?;
        sweep(&path)?;
        Ok(Self {
            path,
            durability,
            states: Mutex::default(),
        })
    }

    pub(super) fn folder(&self, id: &SessionId) -> PathBuf {
        self.path.join(id.as_str())
    }

    pub(super) fn locks(&self) -> PathBuf {
        self.path.join(".locks")
    }

    /// What is known of a session. It stays known as long as somebody holds it.
    pub(super) fn state(&self, id: &SessionId) -> Known {
        let mut states = lock(&self.states);
        if states.len() >= STATES_MAX && !states.contains_key(id) {
            states.retain(|_, state| Arc::strong_count(state) > 1);
        }
        Arc::clone(states.entry(id.clone()).or_default())
    }

    /// Works on a session as its last commit left it.
    pub(super) fn with_state<T>(
        &self,
        id: &SessionId,
        with: impl FnOnce(&mut State) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let entry = self.state(id);
        let mut entry = lock(&entry);
        let path = self.folder(id);
        let not_found = || StoreError::SessionNotFound {
            session: id.clone(),
        };
        let mut log = open_log(&path)?.ok_or_else(not_found)?;
        let known = entry.take().map(|mut state| -> Result<_, StoreError> {
            let is_same = state.catch_up(&mut log).map_err(|error| error.at(&path))?;
            Ok(is_same.then_some(state))
        });
        let mut state = match known.transpose()?.flatten() {
            Some(state) => state,
            None => read_state(&path, &mut log)?,
        };
        if state.info.id != *id {
            return Err(StoreError::Corrupt {
                path,
                what: "the folder has the name of another session",
            });
        }
        let done = with(&mut state);
        *entry = Some(state);
        done
    }

    pub(super) fn create(
        &self,
        new: &NewSession,
        changes: &[Change],
    ) -> Result<Counts, StoreError> {
        limits::check_session(new)?;
        limits::check_changes(changes)?;
        let folder = self.folder(&new.id);
        if open_log(&folder)?.is_some() {
            return Err(StoreError::Exists {
                session: new.id.clone(),
            });
        }
        let parent = match &new.parent {
            Some(fork) => {
                let count = usize::try_from(fork.message_count).unwrap_or(usize::MAX);
                let messages = self.with_state(&fork.session, |state| {
                    let messages = state.messages.get(..count);
                    Ok(messages
                        .ok_or(StoreError::Invalid {
                            reason: Invalid::ForkPastEnd,
                        })?
                        .to_vec())
                })?;
                Some((messages, Bodies::open(&self.folder(&fork.session))?))
            }
            None => None,
        };
        let message_count = parent
            .as_ref()
            .map_or(0, |(messages, _)| messages.len() as u64);
        let counts = Counts {
            message_count,
            ..Counts::default()
        }
        .after(changes)?;

        let making = tempfile::Builder::new()
            .prefix(NEW)
            .tempdir_in(&self.path)?;
        private::restrict(making.path(), 0o700)?;
        let files = Folder::open(making.path(), self.durability)?;
        let mut draft = files.begin(Ends::default())?;
        let (head, settings) = (draft.part(&new.head)?, draft.part(new.settings.as_bytes())?);
        let birth = making
            .path()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        draft.entry(Entry::Created(Created::new(
            new,
            birth.unwrap_or_default(),
            head,
            settings,
        )));
        if let Some((messages, mut bodies)) = parent {
            for message in &messages {
                draft.message(&bodies.new_message(message)?)?;
            }
        }
        changes.iter().try_for_each(|change| draft.change(change))?;
        draft.finish(new.created_ms)?;
        drop(files);
        if self.durability == Durability::PowerLoss {
            private::sync_folder(making.path())?;
        }
        let made = making.keep();
        if let Err(error) = fs::rename(&made, &folder) {
            drop(fs::remove_dir_all(&made));
            return match open_log(&folder)? {
                Some(_) => Err(StoreError::Exists {
                    session: new.id.clone(),
                }),
                None => Err(error.into()),
            };
        }
        if self.durability == Durability::PowerLoss {
            private::sync_folder(&self.path)?;
        }
        // The files for people follow; where they cannot be written, the next writer makes them.
        drop(self.with_state(&new.id, |state| self.write_readable(state, true)));
        Ok(counts)
    }

    pub(super) fn commit(
        &self,
        id: &SessionId,
        files: &Folder,
        at_ms: i64,
        changes: &[Change],
    ) -> Result<Counts, StoreError> {
        limits::check_changes(changes)?;
        self.with_state(id, |state| {
            let counts = state.counts.after(changes)?;
            let written = files.begin(state.ends).and_then(|mut draft| {
                changes.iter().try_for_each(|change| draft.change(change))?;
                draft.finish(at_ms)
            });
            let (commit, line_bytes) = match written {
                Ok(written) => written,
                Err(error) => {
                    // Where even this fails, the next commit or the next writer does it.
                    drop(files.repair(state.ends));
                    return Err(error);
                }
            };
            let path = self.folder(id);
            state
                .apply(commit, line_bytes)
                .map_err(|what| StoreError::Corrupt { path, what })?;
            let has_memory = changes
                .iter()
                .any(|change| matches!(change, Change::Memory(_)));
            // What was accepted is accepted, whether the files for people could be written or not.
            drop(self.write_readable(state, has_memory));
            Ok(counts)
        })
    }

    /// Writes the files that are made from the others.
    pub(super) fn write_readable(&self, state: &State, has_memory: bool) -> Result<(), StoreError> {
        let folder = self.folder(&state.info.id);
        if has_memory && let Some(memory) = state.memories.last() {
            let mut bodies = Bodies::open(&folder)?;
            let (json, markdown) = (bodies.part(memory.json)?, bodies.part(memory.markdown)?);
            let memories = folder.join("memory");
            private::create_folder(&memories)?;
            let json_path = memories.join(format!("{}.json", state.info.id));
            // Reading is cheaper than writing to the disk what is there already.
            for (path, bytes) in [(json_path, json), (folder.join(MARKDOWN), markdown)] {
                if fs::read(&path).ok().as_deref() != Some(&bytes[..]) {
                    replace(&path, &bytes, self.durability)?;
                }
            }
        }
        let summary = Summary::new(state.ends.log, &state.info, state.counts);
        let mut json =
            serde_json::to_vec_pretty(&summary).map_err(|error| StoreError::Unavailable {
                source: error.into(),
            })?;
        json.push(b'\n');
        // It is checked against the log before it is believed, so that it needs not reach the disk.
        Ok(replace(
            &folder.join(SUMMARY),
            &json,
            Durability::ProcessKill,
        )?)
    }

    pub(super) fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        // Another name in the same folder: on a full disk there is room for nothing else.
        let tomb = self.path.join(format!("{DELETED}{id}"));
        if tomb.exists() {
            // Of a session of this name that was deleted before.
            drop(fs::remove_dir_all(&tomb));
        }
        match fs::rename(self.folder(id), &tomb) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::SessionNotFound {
                    session: id.clone(),
                });
            }
            Err(error) => return Err(error.into()),
        }
        lock(&self.states).remove(id);
        if self.durability == Durability::PowerLoss {
            private::sync_folder(&self.path)?;
        }
        match fs::remove_dir_all(&tomb) {
            // Another process that was opening the store has done it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// The ids of everything that looks like a session.
    fn ids(&self) -> Result<Vec<SessionId>, StoreError> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            ids.extend(name.to_str().and_then(|name| SessionId::new(name).ok()));
        }
        Ok(ids)
    }

    /// The sessions that cannot be read.
    pub(super) fn damaged(&self) -> Result<Vec<DamagedSession>, StoreError> {
        let mut damaged = Vec::new();
        for id in self.ids()? {
            let folder = self.folder(&id);
            let error = match self.info(&id) {
                Ok(_) => continue,
                Err(StoreError::SessionNotFound { .. }) if folder.join(TRANSCRIPT).exists() => {
                    StoreError::Corrupt {
                        path: folder.join(LOG),
                        what: "the log is missing",
                    }
                }
                // It is no session, or is being deleted.
                Err(StoreError::SessionNotFound { .. }) => continue,
                Err(error) => error,
            };
            let written = [LOG, TRANSCRIPT, PARTS].map(|name| written_ms(&folder.join(name)));
            damaged.push(DamagedSession {
                id,
                changed_ms: written.into_iter().flatten().max(),
                error,
            });
        }
        damaged.sort_by(|a, b| {
            b.changed_ms
                .cmp(&a.changed_ms)
                .then_with(|| a.id.cmp(&b.id))
        });
        Ok(damaged)
    }

    /// All sessions that can be read. Damage to one does not hide the others; asking for it says what is wrong.
    pub(super) fn infos(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let mut infos = Vec::new();
        for id in self.ids()? {
            infos.extend(self.info(&id).ok());
        }
        infos.sort_by(|a, b| {
            b.updated_ms
                .cmp(&a.updated_ms)
                .then_with(|| a.id.cmp(&b.id))
        });
        Ok(infos)
    }

    pub(super) fn info(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        let folder = self.folder(id);
        let log = open_log(&folder)?.ok_or_else(|| StoreError::SessionNotFound {
            session: id.clone(),
        })?;
        let log_bytes = log.metadata()?.len();
        let summary = fs::read(folder.join(SUMMARY)).ok();
        let summary = summary.and_then(|json| serde_json::from_slice::<Summary>(&json).ok());
        let summary = summary
            .filter(|summary| summary.log_bytes == log_bytes)
            .and_then(Summary::into_info);
        match summary.filter(|info| info.id == *id) {
            Some(info) => Ok(info),
            None => self.with_state(id, |state| Ok(state.info.clone())),
        }
    }

    pub(super) fn search(&self, search: &Search) -> Result<Vec<Hit>, StoreError> {
        let words = Words::of(search)?;
        let limit = Page::first(search.limit).rows();
        let infos = match &search.scope {
            Scope::All => self.infos()?,
            Scope::Session(id) => vec![self.info(id)?],
        };
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut hits = Vec::new();
        for info in infos {
            let looked = self.with_state(&info.id, |state| {
                let mut bodies = Bodies::open(&self.folder(&info.id))?;
                for (place, span) in places(state, search) {
                    if let Some(snippet) = words.snippet(&bodies.text(span)?) {
                        let session = info.id.clone();
                        hits.push((
                            info.updated_ms,
                            Hit {
                                session,
                                place,
                                snippet,
                            },
                        ));
                    }
                }
                Ok(())
            });
            match looked.as_ref().map_err(StoreError::kind) {
                // It was deleted meanwhile, or is damaged: that does not hide the others.
                Err(ErrorKind::NotFound | ErrorKind::Corrupt) if search.scope == Scope::All => {}
                _ => looked?,
            }
            // Sessions come in the order of the answer.
            if hits.len() >= limit as usize {
                break;
            }
        }
        Ok(in_order(hits, limit))
    }
}

/// When a file was last written, in milliseconds since 1970.
fn written_ms(path: &Path) -> Option<i64> {
    let written = path.metadata().ok()?.modified().ok()?;
    let since = written.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// Every text that a search looks through.
fn places(state: &State, search: &Search) -> Vec<(Place, Span)> {
    let mut places = Vec::new();
    if search.shelf.has_archive() {
        let messages = (0..).zip(&state.messages);
        places.extend(
            messages.map(|(position, message)| (Place::Message { position }, message.text)),
        );
        let superseded = (0..).zip(&state.superseded);
        places.extend(
            superseded.map(|(sequence, cut)| (Place::Superseded { sequence }, cut.message.text)),
        );
    }
    if search.shelf.has_memories() {
        let memories = state.memories.iter();
        places.extend(memories.map(|memory| {
            (
                Place::Memory {
                    version: memory.version,
                },
                memory.markdown,
            )
        }));
    }
    places
}

pub(super) fn memory_row(
    bodies: &mut Bodies,
    memory: &MemoryEntry,
) -> Result<MemoryRow, StoreError> {
    Ok(MemoryRow {
        version: memory.version,
        covered_count: memory.covered_count,
        digest: memory.digest.0,
        origin: memory.origin.clone(),
        json: bodies.text(memory.json)?,
        markdown: bodies.text(memory.markdown)?,
        created_ms: memory.created_ms,
        tokens: memory.tokens,
    })
}

pub(super) fn messages(
    state: &State,
    bodies: &mut Bodies,
    positions: Range<u64>,
) -> Result<Vec<StoredMessage>, StoreError> {
    let end = positions.end.min(state.counts.message_count);
    let start = positions.start.min(end);
    // Both are at most the length of a list in memory.
    let entries = &state.messages[start as usize..end as usize];
    (start..)
        .zip(entries)
        .map(|(position, entry)| bodies.message(position, entry))
        .collect()
}

pub(super) fn load(state: &State, bodies: &mut Bodies) -> Result<Loaded, StoreError> {
    let adoption = match &state.adoption {
        Some(adoption) => Some(Adoption {
            epoch: adoption.epoch,
            memory_version: adoption.memory_version,
            covered_count: adoption.covered_count,
            state: bodies.text(adoption.state)?,
            at_ms: adoption.at_ms,
        }),
        None => None,
    };
    let adopted = adoption
        .as_ref()
        .and_then(|adoption| adoption.memory_version);
    let memory = adopted.and_then(|version| state.memory(version));
    let newer = state
        .memories
        .last()
        .filter(|memory| Some(memory.version) != adopted);
    let covered_count = state.counts.covered_count;
    let covered = covered_count
        .checked_sub(1)
        .and_then(|last| state.messages.get(usize::try_from(last).ok()?));
    Ok(Loaded {
        session: state.info.clone(),
        counts: state.counts,
        head: bodies.part(state.head)?.into(),
        settings: bodies.text(state.settings)?,
        adoption,
        memory: memory
            .map(|memory| memory_row(bodies, memory))
            .transpose()?,
        newer_memory: newer.map(|memory| memory_row(bodies, memory)).transpose()?,
        covered_digest: covered.map(|message| message.digest.0),
        tail: messages(state, bodies, covered_count..u64::MAX)?,
        usage: state.usage_totals,
    })
}

/// Takes away what deleting left, and what a killed process was making.
fn sweep(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_abandoned = || {
            let made = entry.metadata().and_then(|metadata| metadata.modified());
            made.is_ok_and(|made| {
                SystemTime::now()
                    .duration_since(made)
                    .is_ok_and(|age| age > ABANDONED)
            })
        };
        if name.starts_with(DELETED) || (name.starts_with(NEW) && is_abandoned()) {
            // It is in nobody's way; the next opening tries again.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
    Ok(())
}

/// A poisoned lock is taken all the same: what it guards is read anew from the files.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
