//! What all sessions have in common.

use std::sync::Arc;

use throughline::core::{Clock, CoreOptions};
use throughline_providers::transport::Transport;
use throughline_store::Store;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::archive::Archive;
use crate::config::{Config, Mode};
use crate::metrics::Metrics;
use crate::updates::Accounts;

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) archive: Archive,
    pub(crate) accounts: Accounts,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Clock,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the proxy ends: updates are given up.
    pub(crate) stop: CancellationToken,
}

impl Shared {
    /// What the cores of all sessions are told.
    pub(crate) fn options(&self) -> CoreOptions {
        CoreOptions {
            is_rewriting: self.config.mode == Mode::Rewrite,
            draft: self.config.draft,
            ..CoreOptions::new(Arc::clone(&self.config.catalogue))
        }
    }
}
