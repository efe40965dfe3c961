//! Letting the conversation go first.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts requests of the conversation whose answers have not begun. They may be waiting for a rate limit, and the
/// provider's cache has what they begin with only once they are answered.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    waiting: Arc<watch::Sender<usize>>,
}

/// A request that waits for its answer to begin, until this is dropped.
#[derive(Debug)]
pub struct Waits {
    traffic: Traffic,
}

impl Traffic {
    /// No request waits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            waiting: Arc::new(watch::Sender::new(0)),
        }
    }

    /// A request waits from now on.
    #[must_use]
    pub fn begin(&self) -> Waits {
        self.waiting.send_modify(|waiting| *waiting += 1);
        Waits {
            traffic: self.clone(),
        }
    }

    /// Waits until no request waits.
    pub async fn quiet(&self) {
        // The sender lives as long as this does: there is no error.
        let _ = self
            .waiting
            .subscribe()
            .wait_for(|waiting| *waiting == 0)
            .await;
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.traffic.waiting.send_modify(|waiting| *waiting -= 1);
    }
}
