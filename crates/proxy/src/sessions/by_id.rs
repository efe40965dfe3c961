//! Sessions that are asked for by their ids.

use std::sync::Arc;

use throughline_store::{SessionId, StoreError};

use super::{Sessions, prefix_of};
use crate::headers::Tenant;
use crate::tracked::TrackedSession;

/// Whether a session was begun by a proxy: only these can be acted upon here.
pub(crate) fn is_ours(id: &SessionId) -> bool {
    prefix_of(id).is_some()
}

impl Sessions {
    /// A session that is in memory.
    pub(crate) fn live(&self, id: &SessionId) -> Option<Arc<TrackedSession>> {
        let inner = self.inner();
        let entries = inner.live.get(prefix_of(id)?)?;
        entries
            .iter()
            .find(|entry| entry.session.id == *id)
            .map(|entry| Arc::clone(&entry.session))
    }

    /// A session; it is loaded if it is not in memory.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`] also for one that no proxy has begun, [`StoreError::Busy`] if another process
    /// has it, or what the store says.
    pub(crate) async fn by_id(&self, id: &SessionId) -> Result<Arc<TrackedSession>, StoreError> {
        if let Some(session) = self.live(id) {
            if session.is_healthy() {
                return Ok(session);
            }
            // What is stored of it is whole; what is in memory is more than that.
            self.forget(id).await;
        }
        let tenant = prefix_of(id).and_then(|_| Tenant::from_hex(id.as_str().get(..16)?));
        let (Some(prefix), Some(tenant)) = (prefix_of(id), tenant) else {
            return Err(StoreError::SessionNotFound {
                session: id.clone(),
            });
        };
        match self.load_one(id, tenant).await {
            Ok(session) => Ok(self.insert(prefix, session)),
            // A request may have loaded it meanwhile.
            Err(error @ StoreError::Busy { .. }) => self.live(id).ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// Removes a session from memory and from the store, with its folder and everything that was derived from it.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) async fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        self.forget(id).await;
        self.shared.store.delete(id).await?;
        self.shared.archive.remove_folder(id);
        let mut inner = self.inner();
        if let Some(prefix) = prefix_of(id)
            && let Some(known) = inner.stored.get_mut(prefix)
        {
            known.retain(|known| known != id);
            if known.is_empty() {
                inner.stored.remove(prefix);
            }
        }
        inner.runs.retain(|_, last| last != id);
        Ok(())
    }
}
