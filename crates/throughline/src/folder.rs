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

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use throughline_engine::VersionOrigin;
use throughline_memory::document::{Cover, Memory};
use throughline_store::{Counts, MemoryRow, SessionId, Store, StoreError};
use throughline_transcript::digest::Chain;

pub use self::edit::HandEdit;

const MEMORY: &str = "session-memory.md";
const BASE: &str = ".session-memory.json";

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
}

/// What the memory file was written from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Base {
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
}

impl Folder {
    /// The folder at this path. It is made when there is something to write.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into().into(),
            state: Arc::default(),
        }
    }

    /// Brings the files up to date with what is stored: to be called after each commit, by one task at a time.
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
            self.write_memory(&mut state, memory.as_ref())?;
            state.epoch = Some(counts.epoch);
        }
        Ok(())
    }

    /// What a person has changed in the memory file since it was written or last looked at. One look at the file's date
    /// where nothing has changed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn hand_edit(&self) -> Result<Option<HandEdit>, FolderError> {
        let mut state = self.state();
        let stamp = self.stamp();
        if stamp.is_none() || stamp == state.seen {
            return Ok(None);
        }
        let Some(text) = files::read(&self.path.join(MEMORY))? else {
            return Ok(None);
        };
        let base = self.base(&mut state)?;
        let edit = base.edit(&text);
        state.seen = stamp;
        if edit.is_some() {
            state.handed_over = Some(text);
        }
        Ok(edit)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is half known after a panic is read from the files again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stamp(&self) -> Option<Stamp> {
        let metadata = fs::metadata(self.path.join(MEMORY)).ok()?;
        Some(Stamp(metadata.modified().ok(), metadata.len()))
    }

    fn base(&self, state: &mut State) -> io::Result<Base> {
        if let Some(base) = &state.base {
            return Ok(base.clone());
        }
        let json = files::read(&self.path.join(BASE))?;
        let base: Base = json
            .and_then(|json| serde_json::from_str(&json).ok())
            .unwrap_or_default();
        state.base = Some(base.clone());
        Ok(base)
    }

    /// Writes the memory, unless the file has changes that this memory does not have.
    fn write_memory(&self, state: &mut State, row: Option<&MemoryRow>) -> io::Result<()> {
        let path = self.path.join(MEMORY);
        let text = row.map_or("", |row| &row.markdown);
        let base = self.base(state)?;
        let present = files::read(&path)?;
        if let Some(present) = &present
            && let Some(edit) = base.edit(present)
        {
            let is_given = row.is_some_and(|row| row.origin == VersionOrigin::Given.name());
            let is_handed_over = state.handed_over.as_ref() == Some(present);
            let memory = row.and_then(|row| Memory::from_json(&row.json).ok());
            let has_edit = memory.is_some_and(|memory| edit.apply(&memory, 0) == memory);
            if !(has_edit || is_given && is_handed_over) {
                // It is looked at again before the next request.
                state.seen = None;
                return Ok(());
            }
        }
        let mut base = Base {
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
        Ok(())
    }

    fn write_base(&self, base: &Base) -> io::Result<()> {
        let json = serde_json::to_string(base).map_err(io::Error::other)?;
        files::replace(&self.path.join(BASE), json.as_bytes())
    }
}

impl Base {
    /// What a person has changed to get this text. An empty file is one that an editor is about to write.
    fn edit(&self, text: &str) -> Option<HandEdit> {
        if text == self.text || text == self.replaced || text.trim().is_empty() {
            return None;
        }
        let memory = Memory::from_json(&self.memory).unwrap_or_else(|_| no_memory());
        let edit = HandEdit::between(&memory, &self.text, text);
        (!edit.is_empty()).then_some(edit)
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
