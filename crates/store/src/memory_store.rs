//! Sessions in memory: gone with the process.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::change::{Change, Counts};
use crate::check;
use crate::error::{Invalid, StoreError};
use crate::memory::{Adoption, MemoryInfo, MemoryRow};
use crate::message::{StoredMessage, SupersededMessage};
use crate::search::{Hit, Place, Scope, Search, Words, in_order};
use crate::session::{NewSession, SessionId, SessionInfo};
use crate::store::{Loaded, Page, Store, Writer};
use crate::usage::{EventRow, UsageRow, UsageTotals};

/// How long one wait for a lease lasts before it is tried again.
const RETRY: Duration = Duration::from_millis(2);

/// A store that is gone with the process. Clones share their sessions.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    sessions: BTreeMap<SessionId, Record>,
    leased: HashSet<SessionId>,
}

/// One session, whole.
#[derive(Debug, Clone)]
struct Record {
    info: SessionInfo,
    counts: Counts,
    head: Bytes,
    settings: String,
    messages: Vec<(StoredMessage, String)>,
    superseded: Vec<(SupersededMessage, String)>,
    memories: Vec<MemoryRow>,
    adoption: Option<Adoption>,
    events: Vec<EventRow>,
    usage: Vec<UsageRow>,
}

impl MemoryStore {
    /// A store with no sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// A poisoned lock is taken all the same: no change is ever half done while it is held.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(
        &self,
        id: &SessionId,
        read: impl FnOnce(&Record) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        read(self.lock().record(id)?)
    }
}

impl Shared {
    fn record(&self, id: &SessionId) -> Result<&Record, StoreError> {
        self.sessions
            .get(id)
            .ok_or_else(|| StoreError::SessionNotFound {
                session: id.clone(),
            })
    }
}

impl Record {
    fn new(new: NewSession, parent: Option<&Self>) -> Result<Self, StoreError> {
        let messages = match (&new.parent, parent) {
            (Some(fork), Some(parent)) => usize::try_from(fork.message_count)
                .ok()
                .and_then(|count| parent.messages.get(..count))
                .ok_or(StoreError::Invalid {
                    reason: Invalid::ForkPastEnd,
                })?
                .to_vec(),
            _ => Vec::new(),
        };
        let message_count = messages.len() as u64;
        Ok(Self {
            info: SessionInfo {
                id: new.id,
                parent: new.parent,
                wire: new.wire,
                model: new.model,
                title: new.title,
                created_ms: new.created_ms,
                updated_ms: new.created_ms,
                message_count,
                tokens: messages
                    .iter()
                    .map(|(message, _)| u64::from(message.tokens))
                    .sum(),
                memory_version: 0,
            },
            counts: Counts {
                message_count,
                ..Counts::default()
            },
            head: new.head,
            settings: new.settings,
            messages,
            superseded: Vec::new(),
            memories: Vec::new(),
            adoption: None,
            events: Vec::new(),
            usage: Vec::new(),
        })
    }

    fn commit(&mut self, at_ms: i64, changes: Vec<Change>) -> Result<Counts, StoreError> {
        check::changes(&changes)?;
        let counts = self.counts.after(&changes)?;
        // From here on nothing can fail.
        for change in changes {
            self.apply(at_ms, change);
        }
        self.counts = counts;
        self.info.message_count = counts.message_count;
        self.info.memory_version = counts.memory_version;
        self.info.updated_ms = at_ms;
        Ok(counts)
    }

    fn apply(&mut self, at_ms: i64, change: Change) {
        match change {
            Change::Append { messages, .. } => {
                for new in messages {
                    self.info.tokens += u64::from(new.tokens);
                    let message = StoredMessage {
                        position: self.messages.len() as u64,
                        original: new.original,
                        sent: new.sent,
                        digest: new.digest,
                        at_ms: new.at_ms,
                        role: new.role,
                        tokens: new.tokens,
                    };
                    self.messages.push((message, new.text));
                }
            }
            Change::Truncate { to_count } => {
                let first = usize::try_from(to_count)
                    .unwrap_or(usize::MAX)
                    .min(self.messages.len());
                for (message, text) in self.messages.drain(first..) {
                    let sequence = self.superseded.len() as u64;
                    self.info.tokens -= u64::from(message.tokens);
                    self.superseded.push((
                        SupersededMessage {
                            sequence,
                            superseded_ms: at_ms,
                            message,
                        },
                        text,
                    ));
                }
            }
            Change::Memory(memory) => self.memories.push(memory),
            Change::Adopt { adoption, .. } => self.adoption = Some(adoption),
            Change::Head(head) => self.head = head,
            Change::Settings(settings) => self.settings = settings,
            Change::Title(title) => self.info.title = title,
            Change::Model(model) => self.info.model = model,
            Change::Event { kind, json } => {
                self.events.push(EventRow {
                    sequence: self.events.len() as u64,
                    kind,
                    json,
                    at_ms,
                });
            }
            Change::Usage(usage) => self.usage.push(usage),
        }
    }

    fn memory(&self, version: u64) -> Option<&MemoryRow> {
        version
            .checked_sub(1)
            .and_then(|index| self.memories.get(usize::try_from(index).ok()?))
    }

    fn messages_from(&self, position: u64) -> &[(StoredMessage, String)] {
        let first = usize::try_from(position)
            .unwrap_or(usize::MAX)
            .min(self.messages.len());
        &self.messages[first..]
    }

    fn load(&self) -> Loaded {
        let adopted = self
            .adoption
            .as_ref()
            .and_then(|adoption| adoption.memory_version);
        let tail = self.messages_from(self.counts.covered_count);
        let covered = &self.messages[..self.messages.len() - tail.len()];
        let mut usage = UsageTotals::default();
        self.usage.iter().for_each(|row| usage.add(row));
        Loaded {
            session: self.info.clone(),
            counts: self.counts,
            head: self.head.clone(),
            settings: self.settings.clone(),
            adoption: self.adoption.clone(),
            memory: adopted.and_then(|version| self.memory(version)).cloned(),
            newer_memory: self
                .memories
                .last()
                .filter(|memory| Some(memory.version) != adopted)
                .cloned(),
            covered_digest: covered.last().map(|(message, _)| message.digest),
            tail: tail.iter().map(|(message, _)| message.clone()).collect(),
            usage,
        }
    }

    /// Every text that the search looks through.
    fn texts(&self, search: &Search) -> impl Iterator<Item = (Place, &str)> {
        let archive = search.shelf.has_archive();
        let memories = search.shelf.has_memories();
        let messages = self.messages.iter().map(|(message, text)| {
            (
                Place::Message {
                    position: message.position,
                },
                text.as_str(),
            )
        });
        let superseded = self.superseded.iter().map(|(message, text)| {
            (
                Place::Superseded {
                    sequence: message.sequence,
                },
                text.as_str(),
            )
        });
        let versions = self.memories.iter().map(|memory| {
            (
                Place::Memory {
                    version: memory.version,
                },
                memory.markdown.as_str(),
            )
        });
        messages
            .chain(superseded)
            .filter(move |_| archive)
            .chain(versions.filter(move |_| memories))
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, new: NewSession, changes: Vec<Change>) -> Result<Counts, StoreError> {
        check::session(&new)?;
        let mut shared = self.lock();
        if shared.sessions.contains_key(&new.id) {
            return Err(StoreError::Exists { session: new.id });
        }
        let parent = new
            .parent
            .as_ref()
            .map(|fork| shared.record(&fork.session))
            .transpose()?;
        let (id, created_ms) = (new.id.clone(), new.created_ms);
        let mut record = Record::new(new, parent)?;
        let counts = record.commit(created_ms, changes)?;
        shared.sessions.insert(id, record);
        Ok(counts)
    }

    async fn open(&self, id: &SessionId, wait: Duration) -> Result<Box<dyn Writer>, StoreError> {
        let started = std::time::Instant::now();
        loop {
            {
                let mut shared = self.lock();
                shared.record(id)?;
                if shared.leased.insert(id.clone()) {
                    return Ok(Box::new(MemoryWriter {
                        store: self.clone(),
                        id: id.clone(),
                    }));
                }
            }
            if started.elapsed() >= wait {
                return Err(StoreError::Busy {
                    session: id.clone(),
                    pid: Some(std::process::id()),
                });
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        let mut shared = self.lock();
        shared.record(id)?;
        if shared.leased.contains(id) {
            return Err(StoreError::Busy {
                session: id.clone(),
                pid: Some(std::process::id()),
            });
        }
        shared.sessions.remove(id);
        Ok(())
    }

    async fn sessions(&self, page: Page) -> Result<Vec<SessionInfo>, StoreError> {
        let mut infos: Vec<_> = self
            .lock()
            .sessions
            .values()
            .map(|record| record.info.clone())
            .collect();
        infos.sort_by(|a, b| {
            b.updated_ms
                .cmp(&a.updated_ms)
                .then_with(|| a.id.cmp(&b.id))
        });
        Ok(page.of(&infos).to_vec())
    }

    async fn session(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        self.read(id, |record| Ok(record.info.clone()))
    }

    async fn load(&self, id: &SessionId) -> Result<Loaded, StoreError> {
        self.read(id, |record| Ok(record.load()))
    }

    async fn messages(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        self.read(id, |record| {
            let messages = record
                .messages_from(positions.start)
                .iter()
                .map(|(message, _)| message);
            Ok(messages
                .take_while(|message| message.position < positions.end)
                .cloned()
                .collect())
        })
    }

    async fn superseded(
        &self,
        id: &SessionId,
        page: Page,
    ) -> Result<Vec<SupersededMessage>, StoreError> {
        self.read(id, |record| {
            Ok(page
                .of(&record.superseded)
                .iter()
                .map(|(message, _)| message.clone())
                .collect())
        })
    }

    async fn memories(&self, id: &SessionId, page: Page) -> Result<Vec<MemoryInfo>, StoreError> {
        self.read(id, |record| {
            Ok(page
                .of(&record.memories)
                .iter()
                .map(MemoryInfo::from)
                .collect())
        })
    }

    async fn memory(&self, id: &SessionId, version: u64) -> Result<MemoryRow, StoreError> {
        self.read(id, |record| {
            record
                .memory(version)
                .cloned()
                .ok_or(StoreError::MemoryNotFound { version })
        })
    }

    async fn events(&self, id: &SessionId, page: Page) -> Result<Vec<EventRow>, StoreError> {
        self.read(id, |record| Ok(page.of(&record.events).to_vec()))
    }

    async fn usage(&self, id: &SessionId, page: Page) -> Result<Vec<UsageRow>, StoreError> {
        self.read(id, |record| Ok(page.of(&record.usage).to_vec()))
    }

    async fn search(&self, search: &Search) -> Result<Vec<Hit>, StoreError> {
        let words = Words::of(search)?;
        let shared = self.lock();
        let records: Vec<&Record> = match &search.scope {
            Scope::All => shared.sessions.values().collect(),
            Scope::Session(id) => vec![shared.record(id)?],
        };
        let mut hits = Vec::new();
        for record in records {
            for (place, text) in record.texts(search) {
                if let Some(snippet) = words.snippet(text) {
                    let session = record.info.id.clone();
                    hits.push((
                        record.info.updated_ms,
                        Hit {
                            session,
                            place,
                            snippet,
                        },
                    ));
                }
            }
        }
        Ok(in_order(hits, Page::first(search.limit).rows()))
    }
}

#[derive(Debug)]
struct MemoryWriter {
    store: MemoryStore,
    id: SessionId,
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        self.store.lock().leased.remove(&self.id);
    }
}

#[async_trait]
impl Writer for MemoryWriter {
    fn id(&self) -> &SessionId {
        &self.id
    }

    async fn commit(&mut self, at_ms: i64, changes: Vec<Change>) -> Result<Counts, StoreError> {
        let mut shared = self.store.lock();
        let record =
            shared
                .sessions
                .get_mut(&self.id)
                .ok_or_else(|| StoreError::SessionNotFound {
                    session: self.id.clone(),
                })?;
        record.commit(at_ms, changes)
    }

    async fn load(&mut self) -> Result<Loaded, StoreError> {
        self.store.load(&self.id).await
    }
}
