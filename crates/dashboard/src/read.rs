//! Reads sessions, memories and messages for the API and the pages.

use schemars::JsonSchema;
use serde::Serialize;
use throughline_memory::document::Memory;
use throughline_store::{
    Hit, MemoryRow, Page, Place, Scope, Search, SessionId, SessionInfo, Shelf, StoreError,
};

use crate::Dashboard;
use crate::diff::{Diff, diff};
use crate::messages::{Extent, MessageView};
use crate::view::{SectionView, Session, VersionView, sections};

/// Memory versions that are listed.
const VERSIONS_MAX: u32 = 1_000;

/// A memory version with its items.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct MemoryView {
    #[serde(flatten)]
    pub(crate) version: VersionView,
    pub(crate) sections: Vec<SectionView>,
}

impl MemoryView {
    pub(crate) fn of(row: &MemoryRow, memory: &Memory) -> Self {
        Self {
            version: VersionView::from(row),
            sections: sections(memory),
        }
    }
}

/// What a swap would do now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Preview")]
pub(crate) struct PreviewView {
    pub(crate) version: u32,
    /// Whether it was prepared by request, so that it can be approved.
    pub(crate) is_prepared: bool,
    pub(crate) covered_before: usize,
    pub(crate) covered_after: usize,
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    pub(crate) memory_tokens: u64,
    pub(crate) sections: Vec<SectionView>,
    /// Differences from the memory in the requests, if there is one.
    pub(crate) diff: Option<Diff>,
}

/// A place that contains the words of a search.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Hit")]
pub(crate) struct HitView {
    pub(crate) session: String,
    pub(crate) place: HitPlace,
    /// Position of the message, sequence among the superseded ones, or number of the version.
    pub(crate) number: u64,
    pub(crate) snippet: String,
}

/// Where a hit is.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HitPlace {
    Message,
    Superseded,
    Memory,
}

/// What a search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchShelf {
    Messages,
    Memories,
}

impl SearchShelf {
    /// The shelf of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "messages" => Some(Self::Messages),
            "memories" => Some(Self::Memories),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Memories => "memories",
        }
    }
}

impl From<Hit> for HitView {
    fn from(hit: Hit) -> Self {
        let (place, number) = match hit.place {
            Place::Message { position } => (HitPlace::Message, position),
            Place::Superseded { sequence } => (HitPlace::Superseded, sequence),
            Place::Memory { version } => (HitPlace::Memory, version),
        };
        Self {
            session: hit.session.to_string(),
            place,
            number,
            snippet: hit.snippet,
        }
    }
}

impl Dashboard {
    /// Sessions, the most recently changed first.
    pub(crate) async fn sessions_view(&self, page: Page) -> Result<Vec<Session>, StoreError> {
        let mut views = Vec::new();
        for info in self.store.sessions(page).await? {
            match self.session_view(&info).await {
                Ok(view) => views.push(view),
                // Deleted since the list was read.
                Err(StoreError::SessionNotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(views)
    }

    pub(crate) async fn info(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        self.store.session(id).await
    }

    pub(crate) async fn versions(&self, id: &SessionId) -> Result<Vec<VersionView>, StoreError> {
        let info = self.info(id).await?;
        let page = Page {
            skip: info.memory_version.saturating_sub(VERSIONS_MAX.into()),
            limit: VERSIONS_MAX,
        };
        let rows = self.store.memories(id, page).await?;
        Ok(rows.iter().map(VersionView::from).collect())
    }

    /// A memory version.
    pub(crate) async fn memory_at(
        &self,
        id: &SessionId,
        version: u64,
    ) -> Result<(MemoryRow, Memory), StoreError> {
        let row = self.store.memory(id, version).await?;
        let memory = Memory::from_json(&row.json).map_err(|error| StoreError::Unavailable {
            source: error.to_string().into(),
        })?;
        Ok((row, memory))
    }

    pub(crate) async fn memory_view(
        &self,
        id: &SessionId,
        version: u64,
    ) -> Result<MemoryView, StoreError> {
        let (row, memory) = self.memory_at(id, version).await?;
        Ok(MemoryView::of(&row, &memory))
    }

    pub(crate) async fn diff_view(
        &self,
        id: &SessionId,
        before: u64,
        after: u64,
    ) -> Result<Diff, StoreError> {
        let (_, before) = self.memory_at(id, before).await?;
        let (_, after) = self.memory_at(id, after).await?;
        Ok(diff(&before, &after))
    }

    /// What a swap would do; none if no memory is ready or the session is not in memory.
    pub(crate) fn preview_view(&self, id: &SessionId) -> Option<PreviewView> {
        let (preview, adopted) = self.backend.preview(id)?;
        let memory = &preview.version.memory;
        Some(PreviewView {
            version: memory.version,
            is_prepared: preview.is_prepared,
            covered_before: preview.covers.0,
            covered_after: preview.covers.1,
            tokens_before: preview.tokens_before,
            tokens_after: preview.tokens_after,
            memory_tokens: preview.version.tokens,
            sections: sections(memory),
            diff: adopted.map(|adopted| diff(&adopted.memory, memory)),
        })
    }

    pub(crate) async fn messages_view(
        &self,
        id: &SessionId,
        page: Page,
        extent: Extent,
    ) -> Result<Vec<MessageView>, StoreError> {
        let end = page.skip.saturating_add(page.limit.into());
        let stored = self.store.messages(id, page.skip..end).await?;
        Ok(stored
            .iter()
            .map(|message| MessageView::of(message, extent))
            .collect())
    }

    /// Searches for words, in one session or in all.
    pub(crate) async fn search(
        &self,
        text: &str,
        session: Option<SessionId>,
        shelf: Option<SearchShelf>,
        limit: u32,
    ) -> Result<Vec<HitView>, StoreError> {
        let search = Search {
            text: text.to_owned(),
            scope: session.map_or(Scope::All, Scope::Session),
            shelf: match shelf {
                Some(SearchShelf::Messages) => Shelf::Archive,
                Some(SearchShelf::Memories) => Shelf::Memories,
                None => Shelf::Both,
            },
            limit,
        };
        let hits = self.store.search(&search).await?;
        Ok(hits.into_iter().map(HitView::from).collect())
    }
}
