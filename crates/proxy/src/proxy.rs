//! The proxy: what all requests share, from its start to its end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use throughline::core::{self, Clock};
use throughline_dashboard::{Backend, Dashboard};
use throughline_providers::transport::Transport;
use throughline_store::{Store, StoreError};
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::archive::Archive;
use crate::config::{Config, Mode};
use crate::dashboard::Source;
use crate::metrics::{Metrics, Report};
use crate::sessions::Sessions;
use crate::shared::Shared;
use crate::updates::Accounts;

/// How often sessions in memory are looked at.
const TIDYING: Duration = Duration::from_secs(1);

/// A proxy. Clones are the same one.
#[derive(Clone)]
pub struct Proxy {
    pub(crate) shared: Arc<Shared>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) under_way: Arc<Semaphore>,
    source: Arc<Source>,
    pub(crate) dashboard: Arc<Dashboard>,
}

impl Proxy {
    /// Starts a proxy. To be called within a tokio runtime.
    ///
    /// # Errors
    /// If the store cannot tell which sessions it has.
    pub async fn start(
        config: Config,
        store: Arc<dyn Store>,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, StoreError> {
        Self::start_by(Clock::new(), config, store, transport).await
    }

    /// The same by this clock.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_by(
        clock: Clock,
        config: Config,
        store: Arc<dyn Store>,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, StoreError> {
        let tasks = TaskTracker::new();
        let (archive, work) = Archive::new(Arc::clone(&store), config.session_folder.clone());
        tasks.spawn(work);
        // The first request does not wait for it.
        tasks.spawn_blocking(core::warm_up);
        let under_way = Arc::new(Semaphore::new(config.limits.requests_max));
        let shared = Arc::new(Shared {
            config,
            transport,
            store,
            archive,
            accounts: Accounts::default(),
            metrics: Metrics::default(),
            clock,
            tasks,
            stop: CancellationToken::new(),
        });
        let sessions = Arc::new(Sessions::new(Arc::clone(&shared)));
        sessions.look().await?;
        shared
            .tasks
            .spawn(tidy(Arc::downgrade(&sessions), shared.stop.clone()));
        let source = Arc::new(Source {
            sessions: Arc::clone(&sessions),
            under_way: Arc::clone(&under_way),
        });
        let dashboard = Arc::new(Dashboard::new(
            Arc::clone(&source) as Arc<dyn Backend>,
            Arc::clone(&shared.store),
            Arc::clone(&shared.config.catalogue),
            shared.config.token.as_ref(),
        ));
        Ok(Self {
            shared,
            sessions,
            under_way,
            source,
            dashboard,
        })
    }

    /// What it does with requests.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.shared.config.mode
    }

    /// What it has counted, in Prometheus' text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.source.metrics()
    }

    /// What it has done so far.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared.metrics.report()
    }

    /// Waits until all changes are stored, at most for this time.
    pub async fn settle(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.shared.archive.drained()).await;
    }

    /// Ends it: requests that are under way may finish within the limit, updates are given up, everything is stored.
    pub async fn close(self, limit: Duration) {
        let requests = u32::try_from(self.shared.config.limits.requests_max).unwrap_or(u32::MAX);
        let finished = self.under_way.acquire_many(requests);
        let _ = tokio::time::timeout(limit, finished).await;
        self.shared.stop.cancel();
        // What is queued is stored before the right to write is given back.
        let _ = tokio::time::timeout(limit, self.sessions.close()).await;
    }
}

/// Lets sessions that rest go where there are too many in memory.
async fn tidy(sessions: Weak<Sessions>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(TIDYING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let Some(sessions) = sessions.upgrade() else {
            return;
        };
        sessions.tidy();
    }
}
