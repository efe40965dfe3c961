//! One tracked session: a core behind a lock, and what is known of the messages of its requests.
//!
//! A lock is held while decisions are made, which takes microseconds, and never across a wait.

mod completion;
mod effects;
mod operations;
mod request;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use throughline::core::{Core, Effects};
use throughline::folder::Folder;
use throughline_engine::{Plan, Time};
use throughline_store::SessionId;
use throughline_transcript::json::Raw;
use throughline_transcript::wire::Wire;
use tokio::sync::oneshot;

pub(crate) use self::operations::{CompactionProgress, OperationError, PIN_BYTES_MAX, Snapshot};
pub(crate) use self::request::{Claim, Flight, PlannedRequest, ReadyRequest, Rewind};
use crate::archive::Health;
use crate::headers::Tenant;
use crate::known::KnownMessage;
use crate::shared::Shared;
use crate::updates::Account;

/// A session.
pub(crate) struct TrackedSession {
    pub(crate) id: SessionId,
    shared: Arc<Shared>,
    account: Arc<Account>,
    health: Health,
    /// Files for people that follow the session.
    folder: Option<Folder>,
    state: Mutex<State>,
}

/// What is known of it.
pub(crate) struct State {
    wire: Wire,
    core: Core,
    /// All messages, those of an answer that no request has had yet at the end.
    known: Vec<KnownMessage>,
    /// Messages of such an answer.
    unconfirmed: usize,
    /// Number of the last request.
    number: u64,
    in_flight: usize,
    /// What the requests say besides their messages, as a hash.
    head: u64,
    /// What the last request was made of.
    plan: Option<Plan>,
    /// The request that waits for one.
    waiting: Option<oneshot::Sender<Plan>>,
    /// What an update can share with the conversation.
    live: Option<Live>,
    /// Whether what requests are made of has changed since the last was planned.
    has_swapped: bool,
}

/// The last request as it went to the provider: what an update can share with it, and with whose credential.
pub(crate) struct Live {
    pub(crate) base: String,
    pub(crate) headers: Arc<HeaderMap>,
    /// The body, until its answer has come.
    pub(crate) body: Option<Raw>,
    /// Messages that it has.
    pub(crate) end: usize,
}

/// The parts of a new or loaded session.
pub(crate) struct SessionParts {
    pub(crate) id: SessionId,
    pub(crate) tenant: Tenant,
    pub(crate) wire: Wire,
    pub(crate) core: Core,
    pub(crate) known: Vec<KnownMessage>,
    pub(crate) health: Health,
}

impl TrackedSession {
    pub(crate) fn new(shared: Arc<Shared>, begun: SessionParts) -> Arc<Self> {
        let account = shared.accounts.of(begun.tenant);
        let folder = shared.archive.folder(&begun.id);
        Arc::new(Self {
            id: begun.id,
            shared,
            account,
            health: begun.health,
            folder,
            state: Mutex::new(State {
                wire: begun.wire,
                core: begun.core,
                known: begun.known,
                unconfirmed: 0,
                number: 0,
                in_flight: 0,
                head: 0,
                plan: None,
                waiting: None,
                live: None,
                has_swapped: false,
            }),
        })
    }

    /// Takes in what a person changed in the memory file.
    fn take_hand_edit(&self, state: &mut State, at: Time) -> Effects {
        let Some(folder) = &self.folder else {
            return Effects::default();
        };
        match folder.log_failure(&self.id, folder.hand_edit()).flatten() {
            Some(edit) => state.core.apply_hand_edit(at, &edit),
            None => Effects::default(),
        }
    }

    /// Does what follows from how it began.
    pub(crate) fn begin(self: &Arc<Self>, effects: Effects) {
        self.perform(&mut self.state(), effects);
    }

    /// Whether what happens can still be stored.
    pub(crate) fn is_healthy(&self) -> bool {
        self.health.load(Ordering::Relaxed)
    }

    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing of it is under way, so that it can leave memory.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.in_flight == 0 && !state.core.is_updating()
    }

    /// About how many bytes of messages it keeps.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.state().core.engine().bytes()
    }

    /// Gives up what runs beside it.
    pub(crate) fn stop(&self) {
        self.state().core.stop();
    }
}
