//! Memories as the engine has them: rendered, measured, numbered.

use std::sync::Arc;

use throughline_memory::document::{Entry, Item, Memory, Origin, Provenance, Section, Status};
use throughline_memory::render::restoring;
use throughline_transcript::digest::Digest;
use throughline_transcript::message::Message;

use crate::input::Pin;
use crate::live::Facts;
use crate::output::Adoption;
use crate::settings::Settings;

/// One immutable state of the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The document.
    pub memory: Memory,
    /// The block that stands for it in requests.
    pub text: String,
    /// Tokens of the block, estimated.
    pub tokens: u64,
    /// Who made it.
    pub origin: VersionOrigin,
}

/// Who made a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionOrigin {
    /// Code alone.
    Draft,
    /// A model, checked and completed by code.
    Model,
    /// It was brought from elsewhere or edited by a person.
    Given,
}

impl VersionOrigin {
    /// Name in stores, logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Model => "model",
            Self::Given => "given",
        }
    }

    /// The origin of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Draft, Self::Model, Self::Given]
            .into_iter()
            .find(|origin| origin.name() == name)
    }
}

impl Version {
    /// Renders and measures a memory.
    #[must_use]
    pub fn new(memory: Memory, origin: VersionOrigin, settings: &Settings) -> Self {
        let text = restoring::user_message(&memory);
        let tokens = settings.counter.text(&text) as u64;
        Self {
            memory,
            text,
            tokens,
            origin,
        }
    }

    /// How many messages it stands for.
    #[must_use]
    pub fn cover(&self) -> usize {
        self.memory.cover.messages
    }

    /// Whether it was made of the messages that lead to `digest`.
    #[must_use]
    pub(crate) fn fits(&self, digest: Digest) -> bool {
        self.memory.cover.digest == digest.to_string()
    }

    /// The version with another number. What it changed last says so.
    pub(crate) fn numbered(mut self, number: u32, settings: &Settings) -> Self {
        if self.memory.version == number {
            return self;
        }
        let was = self.memory.version;
        for item in &mut self.memory.items {
            if item.touched == was {
                item.touched = number;
            }
        }
        self.memory.version = number;
        Self::new(self.memory, self.origin, settings)
    }

    /// The version with all pinned facts in the ledger.
    pub(crate) fn with_pins(mut self, pins: &[Pin], settings: &Settings) -> Self {
        let missing: Vec<&Pin> = pins
            .iter()
            .filter(|pin| {
                !self.memory.items.iter().any(|item| {
                    item.entry.section() == Section::Corrections && item.entry.text() == pin.text
                })
            })
            .collect();
        if missing.is_empty() {
            return self;
        }
        let at = self
            .memory
            .items
            .iter()
            .rposition(|item| item.entry.section() <= Section::Corrections)
            .map_or(0, |last| last + 1);
        let version = self.memory.version;
        let items = missing.into_iter().map(|pin| Item {
            id: pin_id(pin),
            entry: Entry::Correction {
                text: pin.text.clone(),
            },
            origin: Origin::User,
            provenance: Provenance {
                message: pin.message,
                at_ms: None,
            },
            status: Status::Active,
            touched: version,
        });
        self.memory.items.splice(at..at, items);
        Self::new(self.memory, self.origin, settings)
    }

    /// The version without what was pinned as `pin`.
    pub(crate) fn without_pin(mut self, pin: &Pin, settings: &Settings) -> Self {
        let id = pin_id(pin);
        let count = self.memory.items.len();
        self.memory.items.retain(|item| item.id != id);
        if self.memory.items.len() == count {
            return self;
        }
        Self::new(self.memory, self.origin, settings)
    }
}

fn pin_id(pin: &Pin) -> String {
    Item::id_for(Section::Corrections, pin.message, &pin.text)
}

/// What was before a swap: enough to take it back.
#[derive(Clone, Debug)]
pub struct Past {
    /// What was adopted then.
    pub(crate) adopted: Option<Adopted>,
    /// Index of the first of the messages.
    pub(crate) first: usize,
    /// Digest of everything before it.
    pub(crate) chain: Digest,
    /// The messages that the swap covered.
    pub(crate) messages: Vec<Message>,
    pub(crate) facts: Vec<Facts>,
}

/// The version that requests are made with.
#[derive(Clone, Debug)]
pub(crate) struct Adopted {
    pub(crate) version: Arc<Version>,
    pub(crate) adoption: Adoption,
    /// The block and, where it covers the latest request, that request.
    pub(crate) text: Arc<str>,
    /// Tokens of the text, estimated.
    pub(crate) tokens: u64,
    /// The request that is quoted.
    pub(crate) request: Option<String>,
}

impl Adopted {
    pub(crate) fn new(
        version: Arc<Version>,
        adoption: Adoption,
        request: Option<&str>,
        settings: &Settings,
    ) -> Self {
        let (text, tokens) = with_request(&version, request, settings);
        Self {
            version,
            adoption,
            text,
            tokens,
            request: request.map(str::to_owned),
        }
    }
}

/// What stands before the tail, and its tokens.
pub(crate) fn with_request(
    version: &Version,
    request: Option<&str>,
    settings: &Settings,
) -> (Arc<str>, u64) {
    match request {
        None => (Arc::from(version.text.as_str()), version.tokens),
        Some(request) => {
            let quote = restoring::latest_request(request);
            let tokens = version.tokens + settings.counter.text(&quote) as u64;
            (Arc::from(format!("{}\n{quote}", version.text)), tokens)
        }
    }
}
