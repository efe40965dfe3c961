//! Who makes the memories of a chat: another model's turn comes with `/model`.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use throughline::compactor::{CompactorResult, LiveRequest};
use throughline::engine::UpdateOrder;
use throughline::{Compactor, ModelCompactor};
use tokio_util::sync::CancellationToken;

/// The model that makes the memories from now on. Clones are the same one: the session has one, the chat another.
#[derive(Clone)]
pub(crate) struct MemoryMaker(Arc<Mutex<ModelCompactor>>);

impl MemoryMaker {
    pub(crate) fn new(compactor: ModelCompactor) -> Self {
        Self(Arc::new(Mutex::new(compactor)))
    }

    /// The next memory is made by this one; a memory that is being made is not interrupted.
    pub(crate) fn change(&self, compactor: ModelCompactor) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = compactor;
    }

    fn current(&self) -> ModelCompactor {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}

#[async_trait]
impl Compactor for MemoryMaker {
    async fn compact(
        &self,
        order: UpdateOrder,
        live: LiveRequest,
        stop: CancellationToken,
    ) -> CompactorResult {
        self.current().compact(order, live, stop).await
    }
}
