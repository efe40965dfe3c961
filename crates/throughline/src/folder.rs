//! A session as files that people can read and edit, beside its store.
//!
//! ```text
//! <folder>/transcript.jsonl       every message of the session, one on a line
//!          superseded.jsonl       messages that were cut off, by an edit or a rewind
//!          session-memory.md      the memory that requests are made with
//!          .session-memory.json   what that file was written from
//! ```
//!
//! The store stays the truth: the files follow it after each commit ([`Folder::follow`]). What a person changes in
//! `session-memory.md` is found before the next request ([`Folder::hand_edit`]) and becomes a memory version of the
//! session like any other. A file that a person has changed is only written again once the memory has the changes.

mod edit;
mod files;
mod transcript;

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use throughline_engine::VersionOrigin;
use throughline_memory::document::{Cover, Memory};
use throughline_store::{Counts, MemoryRow, SessionId, Store, StoreError};
use throughline_transcript::digest::Chain;

pub use self::edit::HandEdit;

const MEMORY: &str = "session-memory.md";
const BASE: &str = ".session-memory.json";
/// How long a file that looks half written is left alone: an editor empties it before it writes the new text.
const WRITING: Duration = Duration::from_secs(2);

/// The folder of a session. Clones share it.
#[derive(Clone, Debug)]
pub struct Folder {
    path: Arc<Path>,
    state: Arc<Mutex<State>>,
}

/// What is known of the files.
#[derive(Debug, Default)]
struct State {
    transcript: Option<transcript::End>,
    /// The epoch whose memory was written, or left for an edit to be taken in first.
    epoch: Option<u64>,
    base: Option<Base>,
    /// The memory file when it was last looked at.
    seen: Option<Stamp>,
    /// The edited text that was last given to the session.
    handed_over: Option<String>,
    /// Failures that were logged.
    logged: HashSet<String>,
}

/// What the memory file was written from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Base {
    /// Id of the session whose files these are. Empty in files of earlier versions.
    #[serde(default)]
    session: String,
    /// What was written.
    text: String,
    /// What is there until that is written: a process may die in between. Empty afterwards.
    replaced: String,
    /// The memory, in JSON; empty for none.
    memory: String,
}

/// When a file was written, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp(Option<SystemTime>, u64);

impl Stamp {
    /// Whether the file may be in the middle of being written.
    fn is_fresh(self) -> bool {
        let age = self.0.map(|at| match at.elapsed() {
            Ok(age) => age,
            // The file is on a machine whose clock is ahead.
            Err(ahead) => ahead.duration(),
        });
        age.is_some_and(|age| age < WRITING)
    }
}

/// What is in the memory file.
enum Contents {
    /// The memory that was written, or nothing.
    Unchanged,
    /// Perhaps half of what an editor is writing.
    Unfinished,
    /// No text, or one without any heading of a memory.
    Unreadable,
    Edited(HandEdit),
}

/// The files of a session cannot be read or written. The session itself is not affected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The files.
    #[error("the session's folder cannot be used")]
    Io(#[from] io::Error),
    /// The store.
    #[error("the session cannot be read for its folder")]
    Store(#[from] StoreError),
    /// The memory file was replaced by something else. It is left as it is.
    #[error("session-memory.md has none of the headings of a memory: correct it, or delete it")]
    Unreadable,
    /// The folder has the files of another session, which are left as they are.
    #[error("the folder has the files of session {session}: choose another folder")]
    OtherSession {
        /// Id of the other session.
        session: String,
    },
}

impl Folder {
    /// The folder at this path. The first write creates it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into().into(),
            state: Arc::default(),
        }
    }

    /// Brings the files up to date with what is stored. Call it after each commit, from one task at a time.
    ///
    /// # Errors
    /// [`FolderError`]; the next call tries again.
    pub async fn follow(
        &self,
        store: &dyn Store,
        id: &SessionId,
        counts: Counts,
    ) -> Result<(), FolderError> {
        files::create_folder(&self.path)?;
        self.claim(id)?;
        let known = self.state().transcript.clone();
        // A failure leaves the end unknown: it is then read from the file.
        self.state().transcript = None;
        let end = transcript::follow(&self.path, store, id, known, counts.message_count).await?;
        self.state().transcript = Some(end);
        if self.state().epoch != Some(counts.epoch) {
            let memory = match counts.epoch {
                0 => None,
                _ => store.load(id).await?.memory,
            };
            let mut state = self.state();
            if self.write_memory(&mut state, memory.as_ref())? {
                state.epoch = Some(counts.epoch);
            }
        }
        Ok(())
    }

    /// Id of the session whose files are in the folder, if there are any and say so.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn owner(&self) -> io::Result<Option<String>> {
        let mut state = self.state();
        let session = &self.base(&mut state)?.session;
        Ok((!session.is_empty()).then(|| session.clone()))
    }

    /// Marks the folder as that of this session.
    fn claim(&self, id: &SessionId) -> Result<(), FolderError> {
        let mut state = self.state();
        let base = self.base(&mut state)?;
        if base.session == id.as_str() {
            return Ok(());
        }
        if !base.session.is_empty() {
            return Err(FolderError::OtherSession {
                session: base.session.clone(),
            });
        }
        let base = Base {
            session: id.as_str().to_owned(),
            ..base.clone()
        };
        self.write_base(&base)?;
        state.base = Some(base);
        Ok(())
    }

    /// What a person has changed in the memory file since it was written or last looked at. One look at the file's date
    /// where nothing has changed.
    ///
    /// # Errors
    /// If the file cannot be read, or is no memory.
    pub fn hand_edit(&self) -> Result<Option<HandEdit>, FolderError> {
        let mut state = self.state();
        let Some(stamp) = self.stamp() else {
            return Ok(None);
        };
        if state.seen == Some(stamp) {
            return Ok(None);
        }
        let Some(bytes) = files::read_bytes(&self.path.join(MEMORY))? else {
            return Ok(None);
        };
        let contents = self.base(&mut state)?.contents(&bytes, stamp.is_fresh());
        if !matches!(contents, Contents::Unfinished) {
            state.seen = Some(stamp);
        }
        match contents {
            Contents::Unchanged | Contents::Unfinished => Ok(None),
            Contents::Unreadable => Err(FolderError::Unreadable),
            Contents::Edited(edit) => {
                state.handed_over = String::from_utf8(bytes).ok();
                Ok(Some(edit))
            }
        }
    }

    /// Logs a failure the first time that it occurs. The files must not stop the session.
    pub fn log_failure<T>(&self, session: &SessionId, result: Result<T, FolderError>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let reason = error.source().map(ToString::to_string).unwrap_or_default();
        if self.state().logged.insert(format!("{error}: {reason}")) {
            let folder = self.path.display();
            tracing::warn!(%session, %folder, %error, reason, "the files of a session are not up to date");
        }
        None
    }

    /// Removes the files of the session, and the folder if nothing else is in it.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self) -> Result<(), FolderError> {
        for name in [MEMORY, BASE, transcript::TRANSCRIPT, transcript::SUPERSEDED] {
            files::remove(&self.path.join(name))?;
        }
        // What else a person put there is not ours.
        let _ = fs::remove_dir(&self.path);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is half known after a panic is read from the files again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stamp(&self) -> Option<Stamp> {
        let metadata = fs::metadata(self.path.join(MEMORY)).ok()?;
        Some(Stamp(metadata.modified().ok(), metadata.len()))
    }

    fn base<'s>(&self, state: &'s mut State) -> io::Result<&'s Base> {
        let base = match state.base.take() {
            Some(base) => base,
            None => files::read(&self.path.join(BASE))?
                .and_then(|json| serde_json::from_str(&json).ok())
                .unwrap_or_default(),
        };
        Ok(state.base.insert(base))
    }

    /// Writes the memory, unless the file has changes that this memory does not have. Says whether it is done with this
    /// memory.
    fn write_memory(&self, state: &mut State, row: Option<&MemoryRow>) -> io::Result<bool> {
        let path = self.path.join(MEMORY);
        let text = row.map_or("", |row| &row.markdown);
        let is_fresh = self.stamp().is_some_and(Stamp::is_fresh);
        let present = files::read_bytes(&path)?;
        let base = self.base(state)?;
        let session = base.session.clone();
        let contents = match &present {
            Some(present) => base.contents(present, is_fresh),
            None => Contents::Unchanged,
        };
        let present = present.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        match contents {
            Contents::Unchanged => {}
            Contents::Unfinished => return Ok(false),
            Contents::Unreadable => return Ok(true),
            Contents::Edited(edit) => {
                let is_given = row.is_some_and(|row| row.origin == VersionOrigin::Given.name());
                let is_handed_over = state.handed_over == present;
                let memory = row.and_then(|row| Memory::from_json(&row.json).ok());
                let has_edit = memory.is_some_and(|memory| edit.apply(&memory, 0) == memory);
                if !(has_edit || is_given && is_handed_over) {
                    // It is looked at again before the next request.
                    state.seen = None;
                    return Ok(true);
                }
            }
        }
        let mut base = Base {
            session,
            text: text.to_owned(),
            replaced: present.clone().unwrap_or_default(),
            memory: row.map(|row| row.json.clone()).unwrap_or_default(),
        };
        self.write_base(&base)?;
        match row {
            Some(_) => files::replace(&path, text.as_bytes())?,
            None if present.is_some() => fs::remove_file(&path)?,
            None => {}
        }
        base.replaced.clear();
        self.write_base(&base)?;
        state.base = Some(base);
        state.seen = self.stamp();
        state.handed_over = None;
        Ok(true)
    }

    fn write_base(&self, base: &Base) -> io::Result<()> {
        let json = serde_json::to_string(base).map_err(io::Error::other)?;
        files::replace(&self.path.join(BASE), json.as_bytes())
    }
}

impl Base {
    /// What the bytes of the memory file are.
    fn contents(&self, bytes: &[u8], is_fresh: bool) -> Contents {
        let odd = |otherwise| match is_fresh {
            true => Contents::Unfinished,
            false => otherwise,
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            return odd(Contents::Unreadable);
        };
        if text.trim().is_empty() && !self.text.is_empty() {
            return odd(Contents::Unchanged);
        }
        if text == self.text || text == self.replaced {
            return Contents::Unchanged;
        }
        if !self.text.is_empty() && !edit::has_heading(text) {
            return odd(Contents::Unreadable);
        }
        let memory = Memory::from_json(&self.memory).unwrap_or_else(|_| no_memory());
        let (edit, has_last) = HandEdit::between(&memory, &self.text, text);
        if edit.is_empty() {
            Contents::Unchanged
        } else if has_last && text.ends_with('\n') {
            Contents::Edited(edit)
        } else {
            odd(Contents::Edited(edit))
        }
    }
}

/// The memory of no messages: what a person writes into an empty folder is added to it.
#[must_use]
pub fn no_memory() -> Memory {
    Memory {
        version: 0,
        cover: Cover {
            digest: Chain::new().digest(),
            ..Cover::default()
        },
        language: None,
        items: Vec::new(),
    }
}
