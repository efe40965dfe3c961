//! Commits of several sessions in one transaction.
//!
//! While a transaction is under way, further commits wait; those that wait go together into the next one, so that many
//! sessions at a time wait for the disk no oftener than one does. Where such a transaction fails, each commit is made
//! alone: what one of them cannot do, the others can.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::read::SessionRow;
use super::{Inner, write};
use crate::change::Change;
use crate::error::StoreError;
use crate::session::SessionId;

/// The most commits in one transaction: the next commit waits for all of them.
const GROUP_MAX: usize = 64;

/// Those that wait.
#[derive(Debug, Default)]
pub(super) struct Commits(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Whether a task commits them.
    is_worked_on: bool,
}

#[derive(Debug)]
struct Waiting {
    id: SessionId,
    known: Option<SessionRow>,
    at_ms: i64,
    changes: Vec<Change>,
    told: oneshot::Sender<Result<SessionRow, StoreError>>,
}

impl Commits {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a commit. True if no task works on the queue yet.
    fn add(&self, waiting: Waiting) -> bool {
        let mut queue = self.queue();
        queue.waiting.push(waiting);
        !std::mem::replace(&mut queue.is_worked_on, true)
    }

    /// The next ones; when there are none, the work has ended.
    fn next(&self) -> Vec<Waiting> {
        let mut queue = self.queue();
        let count = queue.waiting.len().min(GROUP_MAX);
        queue.is_worked_on = count > 0;
        queue.waiting.drain(..count).collect()
    }
}

/// Commits changes of a session, together with those that others commit meanwhile. A caller that goes away has its
/// changes committed all the same.
pub(super) async fn commit(
    store: &Arc<Inner>,
    id: &SessionId,
    known: Option<SessionRow>,
    at_ms: i64,
    changes: Vec<Change>,
) -> Result<SessionRow, StoreError> {
    let (told, outcome) = oneshot::channel();
    let waiting = Waiting {
        id: id.clone(),
        known,
        at_ms,
        changes,
        told,
    };
    if store.commits.add(waiting) {
        let store = Arc::clone(store);
        tokio::spawn(async move { work(&store).await });
    }
    outcome.await.unwrap_or_else(|_| {
        Err(StoreError::Unavailable {
            source: "the program ended before it was committed".into(),
        })
    })
}

async fn work(store: &Inner) {
    let mut broken_off = BrokenOff(Some(&store.commits));
    loop {
        let mut group = store.commits.next();
        if group.is_empty() {
            broken_off.0 = None;
            return;
        }
        match together(store, &group).await {
            Ok(sessions) => {
                for (waiting, session) in group.into_iter().zip(sessions) {
                    waiting.tell(Ok(session));
                }
            }
            Err(error) if group.len() == 1 => {
                if let Some(waiting) = group.pop() {
                    waiting.tell(Err(error));
                }
            }
            Err(_) => {
                for waiting in group {
                    let alone = together(store, std::slice::from_ref(&waiting)).await;
                    waiting.tell(alone.map(|mut sessions| sessions.remove(0)));
                }
            }
        }
    }
}

impl Waiting {
    fn tell(self, outcome: Result<SessionRow, StoreError>) {
        // The caller may have stopped waiting.
        let _ = self.told.send(outcome);
    }
}

/// Clears the queue if the work ends early because its runtime ends: the next caller starts again.
struct BrokenOff<'a>(Option<&'a Commits>);

impl Drop for BrokenOff<'_> {
    fn drop(&mut self) {
        if let Some(commits) = self.0 {
            *commits.queue() = Queue::default();
        }
    }
}

/// One transaction with all of them, or an error and none.
async fn together(store: &Inner, group: &[Waiting]) -> Result<Vec<SessionRow>, StoreError> {
    let mut transaction = store.begin().await?;
    let mut sessions = Vec::with_capacity(group.len());
    for waiting in group {
        let Waiting {
            id,
            known,
            at_ms,
            changes,
            ..
        } = waiting;
        let session =
            write::commit(store, &mut transaction, id, known.clone(), *at_ms, changes).await?;
        sessions.push(session);
    }
    transaction
        .commit()
        .await
        .map_err(|error| store.error(error))?;
    for waiting in group {
        store.checkpoints.committed(&waiting.changes);
    }
    Ok(sessions)
}
