//! How a session begins: anew, behind messages of another, where it ended, or as a fork.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use throughline_engine::{
    CompactionSettings, CompactorChoice as EngineCompactor, Engine, Pin, Snapshot,
};
use throughline_memory::document::{Memory, Status};
use throughline_store::{ForkPoint, NewSession, SessionId, StoreError, Writer};
use throughline_transcript::cut::TailBegins;
use throughline_transcript::digest::Chain;
use throughline_transcript::json::Raw;
use throughline_transcript::request::{Frame, MemoryPlace};
use throughline_transcript::window::WINDOW_DEFAULT;
use throughline_transcript::wire::Wire;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{
    COMMANDS_MAX, EVENTS_MAX, PIN, Parent, RESULT_BYTES_MAX, SessionBuilder, caching_name,
    caching_of, newest_memory_within,
};
use crate::costs::{Costs, Spent};
use crate::error::{OpenError, SessionError};
use crate::session::actor::{Actor, Parts};
use crate::session::kept::{self, Kept, KeptPin};
use crate::session::{Session, Shared, stored};
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
    /// Model, system prompt, tools, fields and pins are those that are stored. CompactionSettings are those with which the session
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
    pub(in crate::session) async fn fork_of(
        mut self,
        parent: Parent,
    ) -> Result<Session, OpenError> {
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

    fn kept(&self, of_model: &CompactionSettings, settings: &CompactionSettings) -> Kept {
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
    fn settings_of_model(&self, frame: &Frame) -> CompactionSettings {
        let model = self.catalogue.find(&self.frame.model);
        let mut settings = match model {
            Some(model) => CompactionSettings::for_model(model),
            None => CompactionSettings::new(WINDOW_DEFAULT),
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
    fn change(&mut self, settings: &mut CompactionSettings) {
        if let Some(window) = self.window {
            let of_window = CompactionSettings::new(window);
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
    fn shortened_from(&self, settings: &CompactionSettings) -> usize {
        let window_bytes = usize::try_from(settings.window).unwrap_or(usize::MAX);
        self.result_bytes_max
            .unwrap_or(window_bytes.clamp(4_000, RESULT_BYTES_MAX))
    }

    fn parts(
        self,
        writer: Box<dyn Writer>,
        frame: Frame,
        clock: crate::clock::Clock,
        settings: &CompactionSettings,
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
    settings: CompactionSettings,
    kept: Kept,
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
    settings: CompactionSettings,
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

fn new_id() -> SessionId {
    let id = uuid::Uuid::now_v7().to_string();
    match SessionId::new(id) {
        Ok(id) => id,
        // Hexadecimal digits and hyphens are what an id may have.
        Err(_) => unreachable!("a UUID is an id"),
    }
}
