//! How a session begins: empty, behind messages from elsewhere, where it ended, or as a fork.

use std::sync::Arc;

use throughline_engine::{CompactionSettings, CompactorChoice as EngineCompactor, Time};
use throughline_memory::document::{Memory, Status};
use throughline_store::{ForkPoint, NewSession, SessionId, StoreError, Writer};
use throughline_transcript::cut::TailBegins;
use throughline_transcript::digest::Chain;
use throughline_transcript::request::{Frame, MemoryPlace};
use throughline_transcript::window::WINDOW_DEFAULT;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{
    COMMANDS_MAX, CompactorChoice, EVENTS_MAX, PIN, Parent, RESULT_BYTES_MAX, SessionBuilder,
    caching_name, caching_of,
};
use crate::clock::Clock;
use crate::compactor::{Compactor, ModelCompactor};
use crate::core::{
    self, Basis, Core, CoreOptions, PinRow, SessionRow, StoredSession, newest_memory_within,
};
use crate::error::{OpenError, SessionError};
use crate::session::actor::{Actor, Parts};
use crate::session::input::{self, RequestChecker};
use crate::session::{Session, Shared};
use crate::traffic::Traffic;

impl SessionBuilder {
    /// Begins a session.
    ///
    /// # Errors
    /// If it cannot be stored, one with this id exists, or the provider would refuse the messages that it begins with.
    pub async fn start(mut self) -> Result<Session, OpenError> {
        if !self.history.is_empty() {
            return self.start_behind_history().await;
        }
        let start = self.first_state();
        let new = self.new_session(&start, start.clock.now());
        self.store.create(new, Vec::new()).await?;
        let writer = self.store.open(&start.id, self.open_wait).await?;
        self.memory = self.memory.take().map(brought);
        let model = self.frame.model.clone();
        let core = Core::new(start.settings.clone(), start.row, model, self.options());
        let parts = self.parts(writer, start.frame, start.clock, &start.settings);
        Ok(launch(parts, core).await?)
    }

    /// What every session begins with.
    fn first_state(&mut self) -> SessionStart {
        let frame = Frame::new(self.client.wire(), self.frame.clone());
        let model = self.catalogue.find(&self.frame.model);
        let basis = Basis {
            wire: frame.wire(),
            model,
            unknown_window: WINDOW_DEFAULT,
            answer_tokens: self.frame.max_tokens,
        };
        let plain = basis.settings();
        let is_known = self.window.is_none() && model.is_some();
        let mut settings = plain.clone();
        self.change(&mut settings);
        let row = SessionRow {
            is_memory_in_system: self.frame.memory_place == MemoryPlace::SystemPrompt,
            caching: caching_name(self.frame.caching).map(str::to_owned),
            ..SessionRow::begun(&plain, &settings, is_known)
        };
        SessionStart {
            id: self.id.clone().unwrap_or_else(new_id),
            clock: Clock::new(),
            row,
            frame,
            settings,
        }
    }

    async fn start_behind_history(mut self) -> Result<Session, OpenError> {
        let start = self.first_state();
        let history = std::mem::take(&mut self.history);
        let checker = RequestChecker {
            client: &self.client,
            model: self.catalogue.find(&self.frame.model),
        };
        let append = input::history(
            &history,
            &self.history_times,
            &start.frame,
            &checker,
            start.clock.now(),
            self.shortened_from(&start.settings),
            &start.settings,
        )
        .map_err(|finding| OpenError::History { finding })?;
        let new = self.new_session(&start, start.clock.now());
        self.store.create(new, vec![append]).await?;
        let memory = self.memory.take();
        let session = self.resume(&start.id).await?;
        if let Some(memory) = memory {
            // It comes before the first message.
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

    /// Resumes the session with this id if the store has it; otherwise starts it. This replaces [`SessionBuilder::id`].
    ///
    /// A session that is resumed keeps its model, system prompt, tools, fields and pins, as in
    /// [`SessionBuilder::resume`]; what the builder says of them, and its `memory` and `history`, are for a session that
    /// starts. [`SessionBuilder::settings`], `window`, store, compactor and hooks count in both cases.
    ///
    /// # Errors
    /// As [`SessionBuilder::resume`] or [`SessionBuilder::start`].
    pub async fn open_or_start(mut self, id: &SessionId) -> Result<Session, OpenError> {
        match self.store.session(id).await {
            Ok(_) => self.resume(id).await,
            Err(StoreError::SessionNotFound { .. }) => {
                self.id = Some(id.clone());
                self.start().await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Resumes a stored session. Nothing is sent or compacted by that.
    ///
    /// Model, system prompt, tools, fields and pins are those that are stored. Settings are those with which the session
    /// began, then what the builder says, then what was changed while it ran ([`Session::configure`],
    /// [`Session::set_model`]).
    ///
    /// # Errors
    /// If there is none, another process has it open, or it cannot be read.
    pub async fn resume(mut self, id: &SessionId) -> Result<Session, OpenError> {
        let stored = StoredSession::open(self.store.as_ref(), id, self.open_wait).await?;
        let wire = self.client.wire();
        if stored.wire != wire {
            return Err(OpenError::OtherWire {
                id: id.to_string(),
                stored: stored.wire.name().to_owned(),
                client: wire.name().to_owned(),
            });
        }
        let corrupt = |what: String| OpenError::Corrupt {
            id: id.to_string(),
            what,
        };
        let head = stored
            .head()
            .ok_or_else(|| corrupt("the head of its requests is not JSON".to_owned()))?;
        let row = &stored.row;
        let place = if row.is_memory_in_system {
            MemoryPlace::SystemPrompt
        } else {
            MemoryPlace::FirstUserMessage
        };
        let frame = Frame::read(wire, &head, caching_of(row.caching.as_deref()), place)
            .map_err(|error| corrupt(error.to_string()))?;
        self.id = Some(id.clone());
        self.frame = frame.settings().clone();
        self.memory = None;
        let catalogue = Arc::clone(&self.catalogue);
        let settings = stored.settings(&catalogue, WINDOW_DEFAULT, |settings| {
            self.change(settings);
        });
        let counts = stored.loaded.counts;
        let (core, writer) = stored.restore(settings.clone(), self.options())?;
        let mut parts = self.parts(writer, frame, Clock::new(), &settings);
        parts.counts = counts;
        Ok(launch(parts, core).await?)
    }

    /// Begins a session with the first messages of another one.
    pub(in crate::session) async fn fork_of(
        mut self,
        parent: Parent,
    ) -> Result<Session, OpenError> {
        let messages = parent.messages;
        let mut start = self.first_state();
        let now = start.clock.now();
        start.row.pins = parent.pins.iter().cloned().map(PinRow).collect();
        let mut new = self.new_session(&start, now);
        new.parent = Some(ForkPoint {
            session: parent.id.clone(),
            message_count: messages as u64,
        });
        let mut changes = Vec::new();
        // The newest memory of the parent that covers no more than what the fork begins with.
        let newest = newest_memory_within(
            self.store.as_ref(),
            &parent.id,
            messages as u64,
            parent.cleared_versions,
        );
        if let Some((row, digest)) = newest.await? {
            let mut version =
                core::version_of(&row, &start.settings).map_err(|what| OpenError::Corrupt {
                    id: parent.id.to_string(),
                    what,
                })?;
            version.memory.version = 1;
            version.memory.cover.digest = digest;
            changes.push(core::memory_change(&version, now));
            changes.push(core::adoption_change(
                &throughline_engine::MemoryAdoption {
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
        self.resume(&start.id).await
    }

    fn new_session(&self, start: &SessionStart, now: Time) -> NewSession {
        NewSession {
            id: start.id.clone(),
            parent: None,
            wire: self.client.wire().name().to_owned(),
            model: self.frame.model.clone(),
            title: self.title.clone(),
            created_ms: now.ms(),
            head: start.frame.head().into_bytes().into(),
            settings: start.row.to_json(),
        }
    }

    /// What the caller asks for, and what follows from client and compactor.
    fn change(&mut self, settings: &mut CompactionSettings) {
        if self.frame.memory_place == MemoryPlace::SystemPrompt {
            settings.tail_begins = TailBegins::WithUser;
        }
        if !matches!(self.compactor, CompactorChoice::Code) {
            settings.compactor = EngineCompactor::Model;
        }
        if let Some(window) = self.window {
            *settings = settings.clone().with_window(window, self.frame.max_tokens);
        }
        for change in std::mem::take(&mut self.changes) {
            change(settings);
        }
    }

    fn options(&self) -> CoreOptions {
        CoreOptions {
            draft: self.draft,
            ..CoreOptions::new(Arc::clone(&self.catalogue))
        }
    }

    /// About a quarter of the window, at four bytes a token. Of a large window less: there are results of a token a byte.
    fn shortened_from(&self, settings: &CompactionSettings) -> usize {
        let window_bytes = usize::try_from(settings.window).unwrap_or(usize::MAX);
        self.result_bytes_max
            .unwrap_or(window_bytes.clamp(4_000, RESULT_BYTES_MAX))
    }

    fn parts(
        self,
        writer: Box<dyn Writer>,
        frame: Frame,
        clock: Clock,
        settings: &CompactionSettings,
    ) -> Parts {
        let result_bytes_max = self.shortened_from(settings);
        let compactor: Option<Arc<dyn Compactor>> = match self.compactor {
            CompactorChoice::Code => None,
            CompactorChoice::Given(compactor) => Some(compactor),
            CompactorChoice::OwnClient(model) => {
                let model = model.unwrap_or_else(|| self.frame.model.clone());
                let compactor = ModelCompactor::new(self.client.clone(), model);
                Some(Arc::new(compactor.catalogue(Arc::clone(&self.catalogue))))
            }
        };
        let folder = self.folder.map(|place| place.of(writer.id()));
        Parts {
            client: self.client,
            frame: Arc::new(frame),
            writer,
            store: self.store,
            clock,
            catalogue: self.catalogue,
            compactor,
            given: self.memory,
            hooks: self.hooks,
            folder,
            result_bytes_max,
            counts: Default::default(),
            stop: CancellationToken::new(),
            traffic: Traffic::new(),
        }
    }
}

struct SessionStart {
    id: SessionId,
    clock: Clock,
    frame: Frame,
    settings: CompactionSettings,
    row: SessionRow,
}

/// A memory from elsewhere, before the first message.
fn brought(mut memory: Memory) -> Memory {
    memory.cover.messages = 0;
    memory.cover.turns = 0;
    memory.cover.digest = Chain::new().digest();
    memory.version = 0;
    forget_pins(&mut memory);
    memory
}

/// What was pinned elsewhere is an ordinary item here: this session has no pin for it to remove.
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

async fn launch(parts: Parts, core: Core) -> Result<Session, StoreError> {
    let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
    let (events, _) = broadcast::channel(EVENTS_MAX);
    let tasks = TaskTracker::new();
    let stop = parts.stop.clone();
    let id = parts.writer.id().clone();
    let store = Arc::clone(&parts.store);
    let result_bytes_max = parts.result_bytes_max;
    let mut actor = Actor::new(parts, core, events.clone());
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
            result_bytes_max,
        }),
    })
}

fn new_id() -> SessionId {
    let id = uuid::Uuid::now_v7().to_string();
    match SessionId::new(id) {
        Ok(id) => id,
        // Hexadecimal digits and hyphens are what an id may have.
        Err(_) => unreachable!("a UUID is an id"),
    }
}
