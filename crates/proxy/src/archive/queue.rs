//! The jobs of the archive on their way to the task that does them.
//!
//! A job that is pushed wakes the task only if it is the first, or if a caller waits for it: a wake besides those that a
//! request needs has the runtime wake another thread, which takes longer than all else that is done for the request here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Job;

/// How long jobs are gathered: what belongs to one exchange is one commit, and not made while that is under way.
const GATHERING: Duration = Duration::from_millis(20);
/// The task is woken at this many jobs.
const JOBS_MAX: usize = 256;

/// Where jobs are put.
pub(super) struct Queue(Arc<Shared>);

/// Where they are taken from.
pub(super) struct Inbox(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Backlog>,
    bell: Notify,
}

#[derive(Default)]
struct Backlog {
    jobs: Vec<Job>,
    /// Whether they are to be done at once.
    is_urgent: bool,
    /// Whether there will be no more.
    is_closed: bool,
}

/// A queue, and its other end.
pub(super) fn new() -> (Arc<Queue>, Inbox) {
    let shared = Arc::new(Shared::default());
    (Arc::new(Queue(Arc::clone(&shared))), Inbox(shared))
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Backlog> {
        // Nothing under this lock can panic half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    pub(super) fn push(&self, job: Job) {
        let is_to_wake = {
            let mut waiting = self.0.waiting();
            let is_urgent = job.is_waited_for() || waiting.jobs.len() + 1 == JOBS_MAX;
            waiting.is_urgent |= is_urgent;
            waiting.jobs.push(job);
            is_urgent || waiting.jobs.len() == 1
        };
        if is_to_wake {
            self.0.bell.notify_one();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.0.waiting().is_closed = true;
        self.0.bell.notify_one();
    }
}

impl Inbox {
    /// The next jobs, those of a moment together; none when the other end is gone and nothing is left.
    pub(super) async fn gather(&self) -> Option<Vec<Job>> {
        loop {
            {
                let waiting = self.0.waiting();
                if !waiting.jobs.is_empty() {
                    break;
                }
                if waiting.is_closed {
                    return None;
                }
            }
            self.0.bell.notified().await;
        }
        let moment = tokio::time::sleep(GATHERING);
        tokio::pin!(moment);
        loop {
            {
                let waiting = self.0.waiting();
                if waiting.is_urgent || waiting.is_closed {
                    break;
                }
            }
            tokio::select! {
                () = &mut moment => break,
                () = self.0.bell.notified() => {}
            }
        }
        let mut waiting = self.0.waiting();
        waiting.is_urgent = false;
        Some(std::mem::take(&mut waiting.jobs))
    }
}
