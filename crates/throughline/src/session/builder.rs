//! Starting a session, or going on with one.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use throughline_engine::{Compactor as EngineCompactor, Engine, Pin, Settings, Snapshot};
use throughline_memory::document::{Memory, Status};
use throughline_providers::client::{CallOptions, Client};
use throughline_providers::error::CallError;
use throughline_providers::models::catalogue_overrides;
use throughline_store::{ForkPoint, MemoryStore, NewSession, SessionId, Store, StoreError, Writer};
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::convert::CacheTtl;
use throughline_transcript::cut::TailBegins;
use throughline_transcript::digest::Chain;
use throughline_transcript::json::Raw;
use throughline_transcript::request::{self, Caching, Frame, MemoryPlace};
use throughline_transcript::window::WINDOW_DEFAULT;
use throughline_transcript::wire::Wire;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::actor::{Actor, Parts};
use super::kept::{self, Kept, KeptPin};
use super::stored;
use super::{Session, Shared};
use crate::compactor::Compactor;
use crate::costs::{Costs, Spent};
use crate::error::{OpenError, SessionError};
use crate::hooks::Hooks;
use crate::traffic::Traffic;

/// Settings of a session.
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
    compactor: Option<Arc<dyn Compactor>>,
    memory: Option<Memory>,
    history: Vec<Raw>,
    hooks: Option<Arc<dyn Hooks>>,
    result_bytes_max: Option<usize>,
    open_wait: Duration,
}

type SettingsChange = Box<dyn FnOnce(&mut Settings) + Send>;

/// What the engine begins the ids of pinned facts with.
const PIN: &str = throughline_engine::PIN;
/// Limit of an answer where nobody says one, tokens.
const MAX_TOKENS: u64 = 16_000;
/// The longest result of a tool that goes into requests whole where nobody says otherwise, bytes.
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
            compactor: None,
            memory: None,
            history: Vec::new(),
            hooks: None,
            result_bytes_max: None,
            open_wait: Duration::ZERO,
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

    /// Whether and for how long an Anthropic provider is asked to cache; five minutes unless said otherwise.
    pub fn caching(mut self, caching: Caching) -> Self {
        self.frame.caching = caching;
        self
    }

    /// Where the memory goes: the first message of the user unless said otherwise.
    pub fn memory_place(mut self, place: MemoryPlace) -> Self {
        self.frame.memory_place = place;
        self
    }

    /// Where the session is kept; in memory unless said otherwise.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// The session's id; a new one unless said otherwise.
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// A title for lists.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Models with their windows, prices and abilities; the embedded ones unless said otherwise.
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
    pub fn settings(mut self, change: impl FnOnce(&mut Settings) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Who makes memories; the extractive compactor alone unless said otherwise.
    pub fn compactor(mut self, compactor: impl Compactor + 'static) -> Self {
        self.compactor = Some(Arc::new(compactor));
        self
    }

    /// A memory from another session, to begin with. It stands where a memory of this one would stand, and goes on in
    /// the memories to come.
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

    /// Who is asked before and after a memory is made.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// From which length a result of a tool goes into requests shortened, bytes; a quarter of the window unless said
    /// otherwise. The archive has all of it.
    pub fn result_bytes_max(mut self, bytes: usize) -> Self {
        self.result_bytes_max = Some(bytes);
        self
    }

    /// How long to wait if another process has the session open; not at all unless said otherwise.
    pub fn open_wait(mut self, wait: Duration) -> Self {
        self.open_wait = wait;
        self
    }

    /// Begins a session.
    ///
    /// # Errors
    /// If it cannot be stored, one with this id exists, or the provider would refuse the messages that it begins with.
    pub async fn start(mut self) -> Result<Session, OpenError> {
        if !self.history.is_empty() {
            return self.start_behind_history().await;
        }
        let Beginning {
            id,
            clock,
            frame,
            settings,
            kept,
        } = self.beginning();
        let new = self.new_session(&id, &frame, clock.now().ms(), &kept);
        self.store.create(new, Vec::new()).await?;
        let writer = self.store.open(&id, self.open_wait).await?;
        let mut snapshot = Snapshot::default();
        let mut parts = self.parts(writer, frame, clock, &settings, kept);
        if let Some(memory) = parts.given.take() {
            snapshot.chain = Chain::new().digest();
            parts.given = Some(brought(memory));
        }
        Ok(launch(parts, snapshot, settings).await?)
    }

    /// What every session begins with.
    fn beginning(&mut self) -> Beginning {
        let frame = Frame::new(self.client.wire(), self.frame.clone());
        let of_model = self.settings_of_model(&frame);
        let mut settings = of_model.clone();
        self.change(&mut settings);
        Beginning {
            id: self.id.clone().unwrap_or_else(new_id),
            clock: crate::clock::Clock::new(),
            kept: self.kept(&of_model, &settings),
            frame,
            settings,
        }
    }

    async fn start_behind_history(mut self) -> Result<Session, OpenError> {
        let Beginning {
            id,
            clock,
            frame,
            settings,
            kept,
        } = self.beginning();
        let history = std::mem::take(&mut self.history);
        let append = stored::history(
            &history,
            &frame,
            clock.now(),
            self.shortened_from(&settings),
            &settings,
        )
        .map_err(|finding| OpenError::History { finding })?;
        let new = self.new_session(&id, &frame, clock.now().ms(), &kept);
        self.store.create(new, vec![append]).await?;
        let memory = self.memory.take();
        let session = self.resume(&id).await?;
        if let Some(memory) = memory {
            // It stands before the first message.
            let begun = session.set_memory(brought(memory)).await;
            begun.map_err(|error| match error {
                SessionError::Store(error) => OpenError::Store(error),
                error => OpenError::History {
                    finding: error.to_string(),
                },
            })?;
        }
        Ok(session)
    }

    /// Goes on with a stored session. Nothing is sent or compacted by that.
    ///
    /// Model, system prompt, tools, fields and pins are those that are stored. Settings are those with which the session
    /// began, then what the builder says, then what was changed while it ran ([`Session::configure`],
    /// [`Session::set_model`]).
    ///
    /// # Errors
    /// If there is none, another process has it open, or it cannot be read.
    pub async fn resume(mut self, id: &SessionId) -> Result<Session, OpenError> {
        let mut writer = self.store.open(id, self.open_wait).await?;
        let mut loaded = writer.load().await?;
        let corrupt = |what: String| OpenError::Corrupt {
            id: id.to_string(),
            what,
        };
        let wire = self.client.wire();
        if loaded.session.wire != wire.name() {
            return Err(OpenError::OtherWire {
                id: id.to_string(),
                stored: loaded.session.wire.clone(),
                client: wire.name().to_owned(),
            });
        }
        let kept: Kept = if loaded.settings.is_empty() {
            Kept::default()
        } else {
            serde_json::from_str(&loaded.settings)
                .map_err(|error| corrupt(format!("the settings: {error}")))?
        };
        let head = std::str::from_utf8(&loaded.head)
            .ok()
            .and_then(|head| Raw::parse(head.to_owned()).ok())
            .ok_or_else(|| corrupt("the head of its requests is not JSON".to_owned()))?;
        let place = if kept.is_memory_in_system {
            MemoryPlace::SystemPrompt
        } else {
            MemoryPlace::FirstUserMessage
        };
        let frame = Frame::read(wire, &head, caching_of(kept.caching.as_deref()), place)
            .map_err(|error| corrupt(error.to_string()))?;
        self.id = Some(id.clone());
        self.frame = frame.settings().clone();
        let mut settings = self.settings_of_model(&frame);
        kept.begin(&mut settings);
        self.change(&mut settings);
        kept.go_on(&mut settings);
        let quoted = match stored::quoted_range(&loaded) {
            Some(range) => self.store.messages(id, range).await?,
            None => Vec::new(),
        };
        loaded
            .newer_memory
            .take_if(|row| row.version <= kept.undone_versions);
        let pins = kept.pins.iter().map(Pin::from).collect();
        let snapshot = stored::snapshot(&loaded, &quoted, pins, &settings).map_err(corrupt)?;
        self.memory = None;
        let clock = crate::clock::Clock::new();
        let mut parts = self.parts(writer, frame, clock, &settings, kept);
        parts.counts = loaded.counts;
        parts.costs = Costs {
            main: Spent::stored(&loaded.usage.main),
            updates: Spent::stored(&loaded.usage.update),
            ..Costs::default()
        };
        Ok(launch(parts, snapshot, settings).await?)
    }

    /// Begins a session with the first messages of another one.
    pub(super) async fn fork_of(mut self, parent: Parent) -> Result<Session, OpenError> {
        let messages = parent.messages;
        let Beginning {
            id,
            clock,
            frame,
            settings,
            mut kept,
        } = self.beginning();
        let now = clock.now();
        kept.pins = parent.pins.iter().map(KeptPin::from).collect();
        let mut new = self.new_session(&id, &frame, now.ms(), &kept);
        new.parent = Some(ForkPoint {
            session: parent.id.clone(),
            message_count: messages as u64,
        });
        let mut changes = Vec::new();
        // The newest memory of the parent that stands for no more than what the fork begins with.
        let newest = newest_memory_within(
            self.store.as_ref(),
            &parent.id,
            messages as u64,
            parent.cleared_versions,
        );
        if let Some((row, digest)) = newest.await? {
            let mut version =
                stored::version_of(&row, &settings).map_err(|what| OpenError::Corrupt {
                    id: parent.id.to_string(),
                    what,
                })?;
            version.memory.version = 1;
            version.memory.cover.digest = digest;
            changes.push(stored::memory_change(&version, now));
            changes.push(stored::adoption_change(
                &throughline_engine::Adoption {
                    epoch: 1,
                    version: Some(1),
                    cover: version.cover(),
                    at_messages: messages,
                    quoted: None,
                },
                0,
                now,
            ));
        }
        self.store.create(new, changes).await?;
        self.memory = None;
        self.resume(&id).await
    }

    fn new_session(&self, id: &SessionId, frame: &Frame, now_ms: i64, kept: &Kept) -> NewSession {
        NewSession {
            id: id.clone(),
            parent: None,
            wire: self.client.wire().name().to_owned(),
            model: self.frame.model.clone(),
            title: self.title.clone(),
            created_ms: now_ms,
            head: frame.head().into_bytes().into(),
            // Names and numbers only: this cannot fail.
            settings: serde_json::to_string(kept).unwrap_or_default(),
        }
    }

    fn kept(&self, of_model: &Settings, settings: &Settings) -> Kept {
        let mut begun = kept::difference(of_model, settings);
        if self.window.is_some() {
            // It counts whatever the catalogue says by the time that the session is resumed.
            begun.extend(kept::of_window(settings));
        }
        Kept {
            is_memory_in_system: self.frame.memory_place == MemoryPlace::SystemPrompt,
            caching: caching_name(self.frame.caching).map(str::to_owned),
            begun,
            ..Kept::default()
        }
    }

    /// What follows from model, frame and compactor.
    fn settings_of_model(&self, frame: &Frame) -> Settings {
        let model = self.catalogue.find(&self.frame.model);
        let mut settings = match model {
            Some(model) => Settings::for_model(model),
            None => Settings::new(WINDOW_DEFAULT),
        };
        if let Some(limit) = self.frame.max_tokens {
            settings.output_reserve = limit.min(settings.window / 2);
        }
        if frame.wire() == Wire::Anthropic {
            settings.body_bytes_max =
                Some(throughline_transcript::check::ANTHROPIC_BODY_BYTES_MAX as u64);
        }
        if self.frame.memory_place == MemoryPlace::SystemPrompt {
            settings.tail_begins = TailBegins::WithUser;
        }
        if self.compactor.is_some() {
            settings.compactor = EngineCompactor::Model;
        }
        settings
    }

    /// What the caller says.
    fn change(&mut self, settings: &mut Settings) {
        if let Some(window) = self.window {
            let of_window = Settings::new(window);
            settings.window = window;
            settings.memory_tokens_max = of_window.memory_tokens_max;
            settings.output_reserve = self
                .frame
                .max_tokens
                .unwrap_or(of_window.output_reserve)
                .min(window / 2);
        }
        for change in std::mem::take(&mut self.changes) {
            change(settings);
        }
    }

    /// About a quarter of the window, at four bytes a token. Of a large window less: there are results of a token a byte.
    fn shortened_from(&self, settings: &Settings) -> usize {
        let window_bytes = usize::try_from(settings.window).unwrap_or(usize::MAX);
        self.result_bytes_max
            .unwrap_or(window_bytes.clamp(4_000, RESULT_BYTES_MAX))
    }

    fn parts(
        self,
        writer: Box<dyn Writer>,
        frame: Frame,
        clock: crate::clock::Clock,
        settings: &Settings,
        kept: Kept,
    ) -> Parts {
        let result_bytes_max = self.shortened_from(settings);
        Parts {
            client: self.client,
            frame: Arc::new(frame),
            writer,
            store: self.store,
            clock,
            catalogue: self.catalogue,
            compactor: self.compactor,
            given: self.memory,
            hooks: self.hooks,
            result_bytes_max,
            counts: Default::default(),
            kept,
            costs: Costs::default(),
            stop: CancellationToken::new(),
            traffic: Traffic::new(),
        }
    }
}

struct Beginning {
    id: SessionId,
    clock: crate::clock::Clock,
    frame: Frame,
    settings: Settings,
    kept: Kept,
}

/// What a fork begins with.
pub(super) struct Parent {
    pub(super) id: SessionId,
    pub(super) messages: usize,
    pub(super) pins: Vec<Pin>,
    pub(super) cleared_versions: u64,
}

/// A memory from elsewhere, before the first message.
fn brought(mut memory: Memory) -> Memory {
    memory.cover.messages = 0;
    memory.cover.turns = 0;
    memory.cover.digest = Chain::new().digest().to_string();
    memory.version = 0;
    forget_pins(&mut memory);
    memory
}

/// What was pinned elsewhere is part of what is remembered here, and nobody here has a pin to take out.
fn forget_pins(memory: &mut Memory) {
    let plain = |id: &mut String| {
        if let Some(rest) = id.strip_prefix(PIN) {
            *id = rest.to_owned();
        }
    };
    for item in &mut memory.items {
        plain(&mut item.id);
        if let Status::SupersededBy(id) = &mut item.status {
            plain(id);
        }
    }
}

async fn launch(
    parts: Parts,
    snapshot: Snapshot,
    settings: Settings,
) -> Result<Session, StoreError> {
    let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
    let (events, _) = broadcast::channel(EVENTS_MAX);
    let tasks = TaskTracker::new();
    let stop = parts.stop.clone();
    let id = parts.writer.id().clone();
    let store = Arc::clone(&parts.store);
    let result_bytes_max = parts.result_bytes_max;
    let engine = Engine::restore(settings, snapshot);
    let mut actor = Actor::new(parts, engine, events.clone());
    actor.begin().await?;
    let status = actor.watch();
    tasks.spawn(actor.run(inbox));
    Ok(Session {
        shared: Arc::new(Shared {
            id,
            store,
            commands,
            events,
            status,
            tasks,
            stop,
            compactions: AtomicU64::new(1),
            result_bytes_max,
        }),
    })
}

/// The newest memory of a session that stands for at most so many messages as they are now, and their digest.
pub(super) async fn newest_memory_within(
    store: &dyn Store,
    id: &SessionId,
    messages: u64,
    cleared_versions: u64,
) -> Result<Option<(throughline_store::MemoryRow, String)>, StoreError> {
    // The latest request of the user stays verbatim.
    let cover_max = latest_turn(store, id, messages).await?;
    const PAGE_ROWS: u32 = 500;
    let mut page = throughline_store::Page::first(PAGE_ROWS);
    page.skip = cleared_versions;
    let mut versions = Vec::new();
    loop {
        let rows = store.memories(id, page).await?;
        let is_last = rows.len() < PAGE_ROWS as usize;
        page.skip += u64::from(PAGE_ROWS);
        versions.extend(rows);
        if is_last {
            break;
        }
    }
    for info in versions.iter().rev() {
        if info.covered_count > cover_max {
            continue;
        }
        let digest = match info.covered_count.checked_sub(1) {
            // A memory that was brought from another session.
            None => *Chain::new().digest().as_bytes(),
            Some(last) => store.message(id, last).await?.digest,
        };
        if digest == info.digest {
            let digest = throughline_transcript::digest::Digest::from_bytes(info.digest);
            return Ok(Some((
                store.memory(id, info.version).await?,
                digest.to_string(),
            )));
        }
    }
    Ok(None)
}

/// Index of the message with which the last turn begins, among the first `messages`.
async fn latest_turn(store: &dyn Store, id: &SessionId, messages: u64) -> Result<u64, StoreError> {
    const PAGE_MESSAGES: u64 = 50;
    let mut end = messages;
    while end > 0 {
        let begin = end.saturating_sub(PAGE_MESSAGES);
        let page = store.messages(id, begin..end).await?;
        let turn = page
            .iter()
            .rev()
            .find(|stored| stored::message_of(stored).is_some_and(|message| message.begins_turn()));
        if let Some(stored) = turn {
            return Ok(stored.position);
        }
        end = begin;
    }
    Ok(0)
}

fn new_id() -> SessionId {
    let id = uuid::Uuid::now_v7().to_string();
    match SessionId::new(id) {
        Ok(id) => id,
        // Hexadecimal digits and hyphens are what an id may have.
        Err(_) => unreachable!("a UUID is an id"),
    }
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
