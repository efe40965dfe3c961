//! What the dashboard shows of this proxy, and how its actions reach a session.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Response, request};
use http_body::Body as HttpBody;
use throughline::core::SessionRow;
use throughline_dashboard::{
    ActError, Action, Backend, COMPACTION_WAIT, Effect, LiveSession, Marks, ProxyMode,
    SessionState, Totals, edited,
};
use throughline_engine::{Engine, Preview, Version};
use throughline_memory::document::Memory;
use throughline_store::{SessionId, StoreError};
use throughline_transcript::wire::Wire;
use tokio::sync::Semaphore;

use crate::Proxy;
use crate::body::{self, Body, ReadError};
use crate::config::Mode;
use crate::metrics::Gauges;
use crate::sessions::Sessions;
use crate::sessions::by_id::is_ours;
use crate::tracked::{CompactionProgress, OperationError, PIN_BYTES_MAX, Snapshot};

/// The proxy as its dashboard sees it.
pub(crate) struct Source {
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) under_way: Arc<Semaphore>,
}

impl Proxy {
    /// The answer to a request for a page, the admin API, health or metrics.
    pub(crate) async fn dashboard_answer<B>(&self, head: &request::Parts, body: B) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let read = |bytes_max| async move {
            body::read(body, 0, bytes_max)
                .await
                .map_err(|error| match error {
                    ReadError::TooLarge => throughline_dashboard::BodyError::TooLarge,
                    ReadError::BrokenOff => throughline_dashboard::BodyError::Broken,
                })
        };
        self.dashboard.answer(head, read).await.map(Body::whole)
    }
}

#[async_trait]
impl Backend for Source {
    fn now_ms(&self) -> i64 {
        self.sessions.shared().clock.now().ms()
    }

    fn mode(&self) -> ProxyMode {
        match self.sessions.shared().config.mode {
            Mode::Rewrite => ProxyMode::Rewrite,
            Mode::Observe => ProxyMode::Observe,
            Mode::Off => ProxyMode::Off,
        }
    }

    fn is_ending(&self) -> bool {
        self.sessions.shared().stop.is_cancelled()
    }

    fn totals(&self) -> Totals {
        let shared = self.sessions.shared();
        let report = shared.metrics.report();
        Totals {
            mode: self.mode(),
            is_ending: self.is_ending(),
            sessions_in_memory: self.sessions.count() as u64,
            unstored_bytes: shared.archive.waiting_bytes() as u64,
            requests: report.requests,
            rewritten: report.rewritten,
            swaps: report.swaps,
            saved_tokens: report.saved_tokens,
            main_nanodollars: report.main.nano_dollars(),
            update_nanodollars: report.updates.nano_dollars(),
            without_nanodollars: report.without.nano_dollars(),
        }
    }

    fn metrics(&self) -> String {
        let shared = self.sessions.shared();
        let (commits, commits_failed) = shared.archive.commits();
        let requests_max = shared.config.limits.requests_max;
        shared.metrics.text(Gauges {
            sessions_in_memory: self.sessions.count(),
            requests_under_way: requests_max - self.under_way.available_permits(),
            unstored_bytes: shared.archive.waiting_bytes(),
            commits,
            commits_failed,
        })
    }

    fn marks(&self, wire: &str, model: &str) -> Marks {
        let settings = self
            .sessions
            .shared()
            .config
            .settings(wire_of(wire), model, None);
        let window = settings.window;
        Marks::new(&Engine::new(settings).status(), window)
    }

    fn is_ours(&self, id: &SessionId) -> bool {
        is_ours(id)
    }

    fn live(&self, id: &SessionId) -> Option<LiveSession> {
        self.sessions
            .live(id)
            .map(|session| live_session(session.snapshot()))
    }

    async fn stored(&self, id: &SessionId) -> Result<SessionState, StoreError> {
        let shared = self.sessions.shared();
        let loaded = shared.store.load(id).await?;
        let kept = SessionRow::read(&loaded.settings).unwrap_or_default();
        let (session, config) = (&loaded.session, &shared.config);
        let basis = config.basis(wire_of(&session.wire), &session.model, None);
        let settings = kept.settings(basis.settings(), |settings| config.apply(None, settings));
        let memory = loaded.memory.as_ref();
        let newer = loaded.newer_memory.as_ref();
        Ok(SessionState {
            mode: settings.mode,
            epoch: loaded.counts.epoch,
            covered: loaded.counts.covered_count,
            version: memory.map(|row| row.version),
            memory_tokens: memory.map_or(0, |row| u64::from(row.tokens)),
            overhead_tokens: 0,
            ready_cover: newer
                .filter(|row| row.version > kept.undone_versions)
                .and_then(|row| usize::try_from(row.covered_count).ok()),
            is_updating: false,
            halt: None,
            can_undo: !kept.before.is_empty(),
            pins: kept.pins.iter().map(|row| row.0.clone()).collect(),
        })
    }

    fn preview(&self, id: &SessionId) -> Option<(Preview, Option<Arc<Version>>)> {
        self.sessions.live(id)?.preview()
    }

    async fn act(&self, id: &SessionId, action: Action) -> Result<Effect, ActError> {
        if matches!(action, Action::Delete) {
            self.sessions.delete(id).await?;
            return Ok(Effect::Deleted);
        }
        let session = self.sessions.by_id(id).await?;
        match action {
            Action::Compact { focus, swapping } => {
                match session.compact(focus, swapping, COMPACTION_WAIT).await? {
                    CompactionProgress::Running => Ok(Effect::Running),
                    CompactionProgress::Done(outcome) => outcome.try_into(),
                }
            }
            Action::Approve { version } => session.approve(version).await?.try_into(),
            Action::Undo => {
                session.undo().await?;
                Ok(Effect::Undone)
            }
            Action::Pin { text, message } => Ok(Effect::Pinned {
                id: session.pin(&text, message).await?,
            }),
            Action::Unpin { id } => {
                session.unpin(&id).await?;
                Ok(Effect::Unpinned)
            }
            Action::Edit { version, changes } => {
                let edit = |memory: &Memory, next: u32| Ok(edited(memory, next, &changes)?);
                let version = session.edit::<ActError>(version, edit).await?;
                Ok(Effect::Edited { version })
            }
            Action::Configure { mode } => {
                session.set_mode(mode).await?;
                Ok(Effect::Configured)
            }
            Action::Delete => Ok(Effect::Deleted),
        }
    }
}

impl From<OperationError> for ActError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::NothingToUndo => Self::NothingToUndo,
            OperationError::Changed => Self::Changed,
            OperationError::NoSuchPin => Self::NoSuchPin,
            OperationError::NoFact => Self::NoFact {
                bytes_max: PIN_BYTES_MAX,
            },
            OperationError::NotStored => Self::NotStored,
        }
    }
}

fn live_session(snapshot: Snapshot) -> LiveSession {
    LiveSession {
        context_tokens: snapshot.status.tokens,
        marks: Marks::new(&snapshot.status, snapshot.window),
        state: SessionState::new(
            &snapshot.status,
            snapshot.mode,
            snapshot.pins,
            snapshot.can_undo,
        ),
        model: snapshot.model,
        in_flight: snapshot.in_flight,
    }
}

/// The wire of a stored session.
fn wire_of(name: &str) -> Wire {
    let known = Wire::ALL.into_iter().find(|wire| wire.name() == name);
    known.unwrap_or(Wire::OpenAiChat)
}
