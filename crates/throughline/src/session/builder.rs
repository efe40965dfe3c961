//! Settings of a session before it starts or resumes.

mod opening;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use throughline_engine::{CompactionSettings, Pin};
use throughline_memory::document::Memory;
use throughline_providers::client::{CallOptions, Client};
use throughline_providers::error::CallError;
use throughline_providers::models::catalogue_overrides;
use throughline_store::{MemoryStore, SessionId, Store};
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::json::Raw;
use throughline_transcript::request::CacheTtl;
use throughline_transcript::request::{self, Caching, MemoryPlace};
use throughline_transcript::wire::Wire;

use crate::compactor::{Compactor, draft};
use crate::core::DraftMaker;
use crate::folder::Folder;
use crate::hooks::Hooks;

/// Settings of a session.
///
/// Stores, compactors and hooks are given as values (`.store(MemoryStore::new())`). What is shared is given as an
/// [`Arc`] (`.store(Arc::clone(&store))`, also of a `dyn` type): an `Arc` of a store is a store, and so on.
#[must_use = "a builder does nothing until it is started"]
pub struct SessionBuilder {
    client: Client,
    frame: request::Settings,
    store: Arc<dyn Store>,
    id: Option<SessionId>,
    title: String,
    catalogue: Arc<Catalogue>,
    window: Option<u64>,
    changes: Vec<SettingsChange>,
    compactor: CompactorChoice,
    memory: Option<Memory>,
    history: Vec<Raw>,
    history_times: Vec<Option<i64>>,
    hooks: Option<Arc<dyn Hooks>>,
    result_bytes_max: Option<usize>,
    open_wait: Duration,
    folder: Option<FolderPlace>,
    draft: DraftMaker,
}

/// What makes memories.
enum CompactorChoice {
    /// Code alone.
    Code,
    /// The client of the session, with this model, or with the one that the session opens with.
    OwnClient(Option<String>),
    /// What the caller gives.
    Given(Arc<dyn Compactor>),
}

type SettingsChange = Box<dyn FnOnce(&mut CompactionSettings) + Send>;

/// What the engine begins the ids of pinned facts with.
const PIN: &str = throughline_engine::PIN;
/// Default limit of an answer, tokens.
const MAX_TOKENS: u64 = 16_000;
/// Default size of the longest tool result that goes into requests whole, bytes.
const RESULT_BYTES_MAX: usize = 100_000;
/// Events that a slow watcher may leave lying.
const EVENTS_MAX: usize = 1024;
/// Commands that wait for the session.
const COMMANDS_MAX: usize = 64;

impl SessionBuilder {
    pub(super) fn new(client: Client, model: String) -> Self {
        let caching = match client.wire() {
            Wire::Anthropic => Caching::For(CacheTtl::Minutes5),
            Wire::OpenAiChat | Wire::OpenAiResponses => Caching::Off,
        };
        let max_tokens = (client.wire() == Wire::Anthropic).then_some(MAX_TOKENS);
        Self {
            client,
            frame: request::Settings {
                model,
                max_tokens,
                caching,
                ..request::Settings::default()
            },
            store: Arc::new(MemoryStore::new()),
            id: None,
            title: String::new(),
            catalogue: Arc::new(Catalogue::embedded().clone()),
            window: None,
            changes: Vec::new(),
            compactor: CompactorChoice::Code,
            memory: None,
            history: Vec::new(),
            history_times: Vec::new(),
            hooks: None,
            result_bytes_max: None,
            open_wait: Duration::ZERO,
            folder: None,
            draft,
        }
    }

    /// The system prompt.
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.frame.system = system.into();
        self
    }

    /// Tools: a JSON array in the wire's form.
    pub fn tools(mut self, tools: Raw) -> Self {
        self.frame.tools = Some(tools);
        self
    }

    /// Tools behind those that there are.
    pub(crate) fn more_tools(mut self, tools: &[Raw]) -> Self {
        if tools.is_empty() {
            return self;
        }
        let given = self.frame.tools.iter().flat_map(Raw::array);
        let all: Vec<String> = given
            .chain(tools.iter().cloned())
            .map(|tool| tool.as_str().to_owned())
            .collect();
        // JSON values between commas are JSON.
        if let Ok(all) = Raw::parse(format!("[{}]", all.join(","))) {
            self.frame.tools = Some(all);
        }
        self
    }

    pub(crate) fn wire(&self) -> Wire {
        self.client.wire()
    }

    /// The limit of an answer, tokens.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.frame.max_tokens = Some(tokens);
        self
    }

    /// A further field of every request: thinking, effort, tool choice, ...
    pub fn field(mut self, name: impl Into<String>, value: Raw) -> Self {
        self.frame.fields.push((name.into(), value));
        self
    }

    /// Whether and for how long an Anthropic provider is asked to cache; five minutes by default.
    pub fn caching(mut self, caching: Caching) -> Self {
        self.frame.caching = caching;
        self
    }

    /// Where the memory goes: the first message of the user by default.
    pub fn memory_place(mut self, place: MemoryPlace) -> Self {
        self.frame.memory_place = place;
        self
    }

    /// Where the session is kept: a store, or an [`Arc`] of one; in memory by default.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// The session's id; a new one by default.
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// A title for lists.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Models with their windows, prices and abilities; the embedded ones by default.
    pub fn catalogue(mut self, catalogue: Arc<Catalogue>) -> Self {
        self.catalogue = catalogue;
        self
    }

    /// The model's window, tokens, where the catalogue does not know it or less is to be used.
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// Asks the provider what it says of the model: window, longest answer, abilities. That counts for more than what the
    /// catalogue says, and for less than [`SessionBuilder::window`]. To be called when catalogue and window are set.
    ///
    /// Worth it for local servers, whose windows are settings of theirs (llama.cpp, vLLM, LM Studio, Ollama). One that
    /// does not tell the window leaves it as it was.
    ///
    /// # Errors
    /// If the provider has no list of models, or does not answer.
    pub async fn learn_model(mut self) -> Result<Self, CallError> {
        let models = self.client.models(&CallOptions::default()).await?;
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        let known = self.window_of_catalogue();
        let learnt = catalogue_overrides(&models, &self.catalogue, "this endpoint", &date);
        match Catalogue::clone(&self.catalogue).extended(&learnt) {
            Ok(catalogue) => self.catalogue = Arc::new(catalogue),
            Err(error) => tracing::warn!(%error, "what the provider says of its models"),
        }
        let told = match models.as_slice() {
            // A server of one model answers with that, whatever it is asked for.
            [only] => self.window_of_catalogue().or(only.window),
            _ => self.window_of_catalogue(),
        };
        if told != known {
            // It is stored with the session, which is then resumed with the same window.
            self.window = self.window.or(told);
        }
        Ok(self)
    }

    fn window_of_catalogue(&self) -> Option<u64> {
        let model = self.catalogue.find(&self.frame.model);
        model.map(|model| model.window)
    }

    /// Changes when and how the session is compacted.
    pub fn settings(
        mut self,
        change: impl FnOnce(&mut CompactionSettings) + Send + 'static,
    ) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// What makes memories: a compactor, or an [`Arc`] of one; code alone by default.
    pub fn compactor(mut self, compactor: impl Compactor + 'static) -> Self {
        self.compactor = CompactorChoice::Given(Arc::new(compactor));
        self
    }

    /// Has the session's own client and model make memories, as a [`ModelCompactor`](crate::ModelCompactor) with its defaults.
    ///
    /// The model is the one that the session opens with; a later [`Session::set_model`](crate::Session::set_model) does
    /// not change it.
    pub fn compact_with_model(mut self) -> Self {
        self.compactor = CompactorChoice::OwnClient(None);
        self
    }

    /// Has the session's own client make memories with another model, such as a cheaper one.
    pub fn compact_with_model_named(mut self, model: impl Into<String>) -> Self {
        self.compactor = CompactorChoice::OwnClient(Some(model.into()));
        self
    }

    /// A memory from another session, to begin with. It replaces a memory of this one, and the memories to
    /// come carry it on.
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Messages that were said elsewhere, in the wire's form: the session begins behind them. They are archived as if they
    /// had been said here; when it is due, a memory is made of them.
    pub fn history(mut self, messages: Vec<Raw>) -> Self {
        self.history = messages;
        self
    }

    /// When each of the messages of [`SessionBuilder::history`] was said, in milliseconds since 1970 UTC. A message
    /// without a time gets that at which the session starts.
    pub fn history_times(mut self, at_ms: Vec<Option<i64>>) -> Self {
        self.history_times = at_ms;
        self
    }

    /// What is asked before and after a memory is made: hooks, or an [`Arc`] of them.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// From which length a result of a tool goes into requests shortened, bytes; a quarter of the window by
    /// default. The archive has all of it.
    pub fn result_bytes_max(mut self, bytes: usize) -> Self {
        self.result_bytes_max = Some(bytes);
        self
    }

    /// Makes drafts by other means; for tests.
    #[doc(hidden)]
    pub fn draft_by(mut self, draft: DraftMaker) -> Self {
        self.draft = draft;
        self
    }

    /// A folder where people read the session: `transcript.jsonl` and `session-memory.md` follow it. What a person
    /// changes in `session-memory.md` replaces the memory before the next request. The store remains the truth.
    pub fn folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.folder = Some(FolderPlace::At(path.into()));
        self
    }

    /// Like [`Self::folder`], in a folder inside this one that is named by the session's id.
    pub fn folder_in(mut self, root: impl Into<PathBuf>) -> Self {
        self.folder = Some(FolderPlace::In(root.into()));
        self
    }

    /// How long to wait if another process has the session open; not at all by default.
    pub fn open_wait(mut self, wait: Duration) -> Self {
        self.open_wait = wait;
        self
    }
}

/// Where the folder of a session is.
enum FolderPlace {
    At(PathBuf),
    /// In a folder with the id as its name.
    In(PathBuf),
}

impl FolderPlace {
    fn of(self, id: &SessionId) -> Folder {
        match self {
            Self::At(path) => Folder::new(path),
            Self::In(root) => Folder::new(root.join(id.as_str())),
        }
    }
}

/// What a fork begins with.
pub(super) struct Parent {
    pub(super) id: SessionId,
    pub(super) messages: usize,
    pub(super) pins: Vec<Pin>,
    pub(super) cleared_versions: u64,
}

pub(super) fn caching_name(caching: Caching) -> Option<&'static str> {
    match caching {
        Caching::Off => None,
        Caching::For(CacheTtl::Minutes5) => Some("5m"),
        Caching::For(CacheTtl::Hour1) => Some("1h"),
    }
}

fn caching_of(name: Option<&str>) -> Caching {
    match name {
        Some("1h") => Caching::For(CacheTtl::Hour1),
        Some(_) => Caching::For(CacheTtl::Minutes5),
        None => Caching::Off,
    }
}
