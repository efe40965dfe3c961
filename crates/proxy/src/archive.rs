//! Stores in the background: changes are queued in order, and one task commits them.
//!
//! Nothing on the path of a request waits for the disk, with one exception: what a request is made of must be known
//! after a restart, so a request that begins a new epoch waits until that is stored ([`Archive::settled`]). A
//! crash can also lose the last exchange, which the next request repeats.

mod queue;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use throughline::core::PendingChange;
use throughline::folder::Folder;
use throughline_engine::Time;
use throughline_store::{Change, Counts, NewSession, SessionId, Store, StoreError, Writer};
use tokio::sync::oneshot;

use self::queue::Queue;

/// More bytes than this are made into rows in the background: that takes milliseconds.
const ASIDE_BYTES: usize = 64 * 1024;

/// Stores the changes of all sessions.
#[derive(Clone)]
pub(crate) struct Archive {
    jobs: Arc<Queue>,
    state: Arc<State>,
    folders: Arc<Folders>,
}

/// The folders of the sessions that can be written, if sessions have folders.
#[derive(Default)]
struct Folders {
    root: Option<PathBuf>,
    open: Mutex<HashMap<SessionId, Folder>>,
}

impl Folders {
    /// The folder of a session: one for the task and the tracked session.
    fn of(&self, id: &SessionId) -> Option<Folder> {
        let root = self.root.as_ref()?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = open
            .entry(id.clone())
            .or_insert_with(|| Folder::new(root.join(id.as_str())));
        Some(folder.clone())
    }

    fn close(&self, id: &SessionId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(id);
    }

    /// Brings the folder of a session up to date.
    async fn follow(&self, store: &dyn Store, id: &SessionId, counts: Counts) {
        if let Some(folder) = self.of(id) {
            folder.log_failure(id, folder.follow(store, id, counts).await);
        }
    }
}

#[derive(Default)]
struct State {
    waiting_bytes: AtomicUsize,
    commits: AtomicUsize,
    failures: AtomicUsize,
}

/// Whether a session can still be stored; shared with the session in memory.
pub(crate) type Health = Arc<AtomicBool>;

enum Job {
    Create(Box<NewSession>, Health),
    Adopt(SessionId, Box<dyn Writer>, Health),
    Commit {
        id: SessionId,
        at: Time,
        changes: Vec<PendingChange>,
        bytes: usize,
    },
    Settled(SessionId, oneshot::Sender<bool>),
    Drained(oneshot::Sender<()>),
    Close(SessionId, Option<oneshot::Sender<()>>),
}

impl Job {
    /// Whether a caller waits until it is done.
    fn is_waited_for(&self) -> bool {
        matches!(
            self,
            Self::Settled(..) | Self::Drained(_) | Self::Close(_, Some(_))
        )
    }
}

/// A session, as the task knows it.
struct OpenSession {
    writer: Option<Box<dyn Writer>>,
    health: Health,
}

impl Archive {
    /// An archive in this store, and the task that does its work until every handle is gone.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session_folder: Option<PathBuf>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (jobs, inbox) = queue::new();
        let state = Arc::new(State::default());
        let folders = Arc::new(Folders {
            root: session_folder,
            open: Mutex::default(),
        });
        let work = work(store, inbox, Arc::clone(&state), Arc::clone(&folders));
        let archive = Self {
            jobs,
            state,
            folders,
        };
        (archive, work)
    }

    /// The folder of a session, if sessions have folders.
    pub(crate) fn folder(&self, id: &SessionId) -> Option<Folder> {
        self.folders.of(id)
    }

    /// Removes the files of a session that is deleted.
    pub(crate) fn remove_folder(&self, id: &SessionId) {
        if let Some(folder) = self.folders.of(id) {
            folder.log_failure(id, folder.remove());
            self.folders.close(id);
        }
    }

    /// A session begins.
    pub(crate) fn create(&self, new: NewSession) -> Health {
        let health = Arc::new(AtomicBool::new(true));
        self.send(Job::Create(Box::new(new), Arc::clone(&health)));
        health
    }

    /// A session was loaded; the right to write it is handed over.
    pub(crate) fn go_on(&self, id: SessionId, writer: Box<dyn Writer>) -> Health {
        let health = Arc::new(AtomicBool::new(true));
        self.send(Job::Adopt(id, writer, Arc::clone(&health)));
        health
    }

    /// Stores changes, some time soon and in order.
    pub(crate) fn commit(&self, id: &SessionId, at: Time, changes: Vec<PendingChange>) {
        if changes.is_empty() {
            return;
        }
        let bytes = changes.iter().map(PendingChange::bytes).sum();
        self.state.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.send(Job::Commit {
            id: id.clone(),
            at,
            changes,
            bytes,
        });
    }

    /// Waits until everything so far is stored; false if it cannot be.
    pub(crate) async fn settled(&self, id: &SessionId) -> bool {
        let (answer, answered) = oneshot::channel();
        self.send(Job::Settled(id.clone(), answer));
        answered.await.unwrap_or(false)
    }

    /// Waits until everything so far of all sessions is stored, or cannot be.
    pub(crate) async fn drained(&self) {
        let (answer, answered) = oneshot::channel();
        self.send(Job::Drained(answer));
        let _ = answered.await;
    }

    /// Gives the right to write a session back.
    pub(crate) fn close(&self, id: &SessionId) {
        self.send(Job::Close(id.clone(), None));
    }

    /// The same, and waits for it.
    pub(crate) async fn closed(&self, id: &SessionId) {
        let (answer, answered) = oneshot::channel();
        self.send(Job::Close(id.clone(), Some(answer)));
        let _ = answered.await;
    }

    /// Bytes of messages that are not stored yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.state.waiting_bytes.load(Ordering::Relaxed)
    }

    /// Commits so far, and those of them that failed.
    pub(crate) fn commits(&self) -> (usize, usize) {
        (
            self.state.commits.load(Ordering::Relaxed),
            self.state.failures.load(Ordering::Relaxed),
        )
    }

    fn send(&self, job: Job) {
        self.jobs.push(job);
    }
}

async fn work(
    store: Arc<dyn Store>,
    inbox: queue::Inbox,
    state: Arc<State>,
    folders: Arc<Folders>,
) {
    let mut work = Work {
        store,
        state,
        folders,
        sessions: HashMap::new(),
        waiting: Vec::new(),
    };
    while let Some(batch) = inbox.gather().await {
        for job in batch {
            work.job(job).await;
        }
        work.commit_all().await;
    }
}

struct Work {
    store: Arc<dyn Store>,
    state: Arc<State>,
    folders: Arc<Folders>,
    sessions: HashMap<SessionId, OpenSession>,
    /// What is to be committed, a session at a time.
    waiting: Vec<PendingCommit>,
}

struct PendingCommit {
    id: SessionId,
    at: Time,
    changes: Vec<PendingChange>,
    bytes: usize,
}

impl Work {
    async fn job(&mut self, job: Job) {
        if let Job::Commit {
            id,
            at,
            changes,
            bytes,
        } = job
        {
            match self.waiting.iter_mut().find(|waiting| waiting.id == id) {
                Some(waiting) => {
                    waiting.changes.extend(changes);
                    waiting.bytes += bytes;
                }
                None => self.waiting.push(PendingCommit {
                    id,
                    at,
                    changes,
                    bytes,
                }),
            }
            return;
        }
        // A fork needs what its parent has; who waits, waits for everything so far.
        self.commit_all().await;
        match job {
            Job::Create(new, health) => {
                let id = new.id.clone();
                let open = begin(self.store.as_ref(), *new, health).await;
                if open.writer.is_none() {
                    self.state.failures.fetch_add(1, Ordering::Relaxed);
                }
                self.sessions.insert(id, open);
            }
            Job::Adopt(id, writer, health) => {
                let open = OpenSession {
                    writer: Some(writer),
                    health,
                };
                self.sessions.insert(id, open);
            }
            Job::Settled(id, answer) => {
                let is_healthy = self
                    .sessions
                    .get(&id)
                    .is_some_and(|open| open.health.load(Ordering::Relaxed));
                let _ = answer.send(is_healthy);
            }
            Job::Drained(answer) => {
                let _ = answer.send(());
            }
            Job::Close(id, answer) => {
                self.sessions.remove(&id);
                self.folders.close(&id);
                if let Some(answer) = answer {
                    let _ = answer.send(());
                }
            }
            Job::Commit { .. } => {}
        }
    }

    /// Commits all of them side by side, so that the store can do so in one step.
    async fn commit_all(&mut self) {
        let mut commits = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let open = self.sessions.get_mut(&waiting.id);
            let writer = open.and_then(|open| open.writer.take());
            commits.push(commit(writer, waiting));
        }
        for done in join_all(commits).await {
            self.state
                .waiting_bytes
                .fetch_sub(done.bytes, Ordering::Relaxed);
            let Some(open) = self.sessions.get_mut(&done.id) else {
                continue;
            };
            self.state.commits.fetch_add(1, Ordering::Relaxed);
            match done.writer {
                Ok((writer, counts)) => {
                    open.writer = Some(writer);
                    self.folders
                        .follow(self.store.as_ref(), &done.id, counts)
                        .await;
                }
                Err(error) => {
                    self.state.failures.fetch_add(1, Ordering::Relaxed);
                    if let Some(error) = error {
                        failed(&done.id, &error, &open.health);
                    }
                }
            }
        }
    }
}

struct Done {
    id: SessionId,
    bytes: usize,
    /// The right to write, if it is still usable. Otherwise nothing more of the session is stored: what is there is
    /// consistent, and the next request brings what is missing.
    writer: Result<(Box<dyn Writer>, Counts), Option<StoreError>>,
}

async fn commit(writer: Option<Box<dyn Writer>>, waiting: PendingCommit) -> Done {
    let PendingCommit {
        id,
        at,
        changes,
        bytes,
    } = waiting;
    let writer = match writer {
        None => Err(None),
        Some(mut writer) => {
            let changes = made(changes, bytes).await;
            let committed = writer.commit(at.ms(), changes).await;
            committed.map(|counts| (writer, counts)).map_err(Some)
        }
    };
    Done { id, bytes, writer }
}

/// The changes with their rows, which for many bytes are not made on the path of a request.
async fn made(changes: Vec<PendingChange>, bytes: usize) -> Vec<Change> {
    let make = move || {
        changes
            .into_iter()
            .map(PendingChange::into_change)
            .collect()
    };
    if bytes < ASIDE_BYTES {
        return make();
    }
    // Only a panic keeps it from ending; then there is nothing to store, which the store refuses by its counts.
    tokio::task::spawn_blocking(make).await.unwrap_or_default()
}

async fn begin(store: &dyn Store, new: NewSession, health: Health) -> OpenSession {
    let id = new.id.clone();
    let begun = async {
        store.create(new, Vec::new()).await?;
        store.open(&id, Duration::ZERO).await
    };
    let writer = match begun.await {
        Ok(writer) => Some(writer),
        Err(error) => {
            failed(&id, &error, &health);
            None
        }
    };
    OpenSession { writer, health }
}

fn failed(id: &SessionId, error: &StoreError, health: &Health) {
    health.store(false, Ordering::Relaxed);
    tracing::warn!(session = %id, %error, "a session cannot be stored; its requests are passed on as they are");
}
