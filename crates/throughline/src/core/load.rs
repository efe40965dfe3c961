//! Sessions out of the store, and sessions that begin with a part of another one.

use std::time::Duration;

use throughline_engine::{CompactionSettings, Economy, Engine, Input, Pin, Time};
use throughline_memory::document::Memory;
use throughline_store::{Loaded, SessionId, Store, StoredMessage, Writer};
use throughline_transcript::catalogue::{Catalogue, Model};
use throughline_transcript::check::ANTHROPIC_BODY_BYTES_MAX;
use throughline_transcript::json::Raw;
use throughline_transcript::request::limit_names;
use throughline_transcript::wire::Wire;

use super::rows::{quoted_range, snapshot};
use super::{AdoptionRow, Core, CoreOptions, Effects, SessionRow};
use crate::costs::{Costs, Spent};
use crate::error::OpenError;

/// A session as the store has it, with the right to write it.
pub struct StoredSession {
    /// The right to write the session.
    pub writer: Box<dyn Writer>,
    /// The session, its memory and its tail.
    pub loaded: Loaded,
    /// What is kept of it besides messages and memories.
    pub row: SessionRow,
    /// Its format.
    pub wire: Wire,
    quoted: Vec<StoredMessage>,
}

impl StoredSession {
    /// Opens a session, waiting at most this long for another process that has it open.
    ///
    /// # Errors
    /// If there is none, another process has it, or it cannot be read.
    pub async fn open(
        store: &dyn Store,
        id: &SessionId,
        wait: Duration,
    ) -> Result<Self, OpenError> {
        let mut writer = store.open(id, wait).await?;
        let loaded = writer.load().await?;
        let corrupt = |what: String| OpenError::Corrupt {
            id: id.to_string(),
            what,
        };
        let wire = Wire::ALL
            .into_iter()
            .find(|wire| wire.name() == loaded.session.wire)
            .ok_or_else(|| corrupt(format!("the format {}", loaded.session.wire)))?;
        let row = SessionRow::read(&loaded.settings)
            .map_err(|error| corrupt(format!("the settings: {error}")))?;
        let quoted = match quoted_range(&loaded) {
            Some(range) => store.messages(id, range).await?,
            None => Vec::new(),
        };
        Ok(Self {
            writer,
            loaded,
            row,
            wire,
            quoted,
        })
    }

    /// The head of its requests.
    #[must_use]
    pub fn head(&self) -> Option<Raw> {
        let head = str::from_utf8(&self.loaded.head).ok()?;
        Raw::parse(head.to_owned()).ok()
    }

    /// The limit of its answers, tokens, as its last head has it.
    #[must_use]
    pub fn answer_tokens(&self) -> Option<u64> {
        let head = self.head()?;
        let mut names = limit_names(self.wire).iter();
        names.find_map(|name| head.field(name)?.as_u64())
    }

    /// The settings of the session ([`SessionRow::settings`]). `unknown_window` is the window of a model that the catalogue
    /// does not have, tokens.
    #[must_use]
    pub fn settings(
        &self,
        catalogue: &Catalogue,
        unknown_window: u64,
        opener: impl FnOnce(&mut CompactionSettings),
    ) -> CompactionSettings {
        let basis = Basis {
            wire: self.wire,
            model: catalogue.find(&self.loaded.session.model),
            unknown_window,
            answer_tokens: self.answer_tokens(),
        };
        self.row.settings(basis.settings(), opener)
    }

    /// The core of the session, and the right to write it.
    ///
    /// # Errors
    /// What of the session cannot be read.
    pub fn restore(
        self,
        settings: CompactionSettings,
        options: CoreOptions,
    ) -> Result<(Core, Box<dyn Writer>), OpenError> {
        let snapshot =
            snapshot(&self.loaded, &self.quoted, &self.row, &settings).map_err(|what| {
                OpenError::Corrupt {
                    id: self.loaded.session.id.to_string(),
                    what,
                }
            })?;
        let present = AdoptionRow::present(&snapshot);
        let engine = Engine::restore(settings, snapshot);
        let model = self.loaded.session.model;
        let mut core = Core::of(engine, self.row, model, options);
        core.present = present;
        core.epoch = self.loaded.counts.epoch;
        core.costs = Costs {
            main: Spent::stored(&self.loaded.usage.main),
            updates: Spent::stored(&self.loaded.usage.update),
            ..core.costs
        };
        Ok((core, self.writer))
    }
}

/// What the settings of a session follow from, before anyone says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// The format of its requests.
    pub wire: Wire,
    /// The model, if the catalogue has it.
    pub model: Option<&'a Model>,
    /// The window of a model that the catalogue does not have, tokens.
    pub unknown_window: u64,
    /// The limit of the answers, tokens.
    pub answer_tokens: Option<u64>,
}

impl Basis<'_> {
    /// The settings.
    #[must_use]
    pub fn settings(&self) -> CompactionSettings {
        let settings = match self.model {
            Some(model) => CompactionSettings::for_model(model),
            None => CompactionSettings::new(self.unknown_window),
        };
        let window = settings.window;
        let mut settings = settings.with_window(window, self.answer_tokens);
        if self.wire == Wire::Anthropic {
            settings.body_bytes_max = Some(ANTHROPIC_BODY_BYTES_MAX as u64);
        }
        settings
    }

    /// The settings of a session that switches to this model: what the model decides is new, the rest stays.
    #[must_use]
    pub fn settings_after(&self, before: &CompactionSettings) -> CompactionSettings {
        let of_model = self.settings();
        CompactionSettings {
            window: of_model.window,
            output_reserve: of_model.output_reserve,
            memory_tokens_max: of_model.memory_tokens_max,
            counter: of_model.counter,
            binds_thinking: of_model.binds_thinking,
            economy: Economy {
                rule: before.economy.rule,
                spending: before.economy.spending,
                ..of_model.economy
            },
            ..before.clone()
        }
    }
}

/// What a fork gets from its parent besides messages.
#[derive(Clone, Debug, Default)]
pub struct Heritage {
    /// The memory, if it covers no more than the messages of the fork.
    pub memory: Option<Memory>,
    /// What was pinned by then.
    pub pins: Vec<Pin>,
}

impl Heritage {
    /// The pins of a fork that begins with the first `messages` of its parent.
    pub(crate) fn pins(pins: &[Pin], messages: usize) -> Vec<Pin> {
        let is_before = |pin: &&Pin| pin.message <= messages;
        pins.iter().filter(is_before).cloned().collect()
    }
}

impl Core {
    /// What a fork gets that begins with the first `messages` of this session.
    #[must_use]
    pub fn heritage(&self, messages: usize) -> Heritage {
        let version = self.engine.memory();
        let fits = |cover: usize| (1..=messages).contains(&cover);
        Heritage {
            memory: version
                .filter(|version| fits(version.cover()))
                .map(|version| version.memory.clone()),
            pins: Heritage::pins(self.engine.pins(), messages),
        }
    }

    /// The session is a fork, and its messages are appended: it gets the rest of what its parent leaves it.
    pub fn inherit(&mut self, now: Time, heritage: Heritage) -> Effects {
        let mut effects = Effects::default();
        self.is_row_changed = true;
        if let Some(memory) = heritage.memory {
            self.feed(now, Input::Given(Box::new(memory)), &mut effects);
        }
        for pin in heritage.pins {
            self.feed(now, Input::Pin(pin), &mut effects);
        }
        effects
    }
}
