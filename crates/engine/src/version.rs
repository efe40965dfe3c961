//! Memories as the engine has them: rendered, measured, numbered.

use std::collections::HashSet;
use std::sync::Arc;

use throughline_memory::document::{Entry, Item, Memory, Origin, Provenance, Section, Status};
use throughline_memory::render::{markdown, restoring};
use throughline_memory::update::fit;
use throughline_transcript::digest::Digest;
use throughline_transcript::message::Message;

use crate::live::Facts;
use crate::settings::CompactionSettings;
use crate::vocabulary::{MemoryAdoption, PIN, Pin, VersionOrigin};

/// One immutable state of the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The document.
    pub memory: Memory,
    /// The block that represents it in requests.
    pub text: String,
    /// Tokens of the block, estimated.
    pub tokens: u64,
    /// Who made it.
    pub origin: VersionOrigin,
}

impl Version {
    /// Renders and measures a memory.
    #[must_use]
    pub fn new(memory: Memory, origin: VersionOrigin, settings: &CompactionSettings) -> Self {
        let text = restoring::user_message(&memory);
        let tokens = settings.counter.text(&text) as u64;
        Self {
            memory,
            text,
            tokens,
            origin,
        }
    }

    /// How many messages it covers.
    #[must_use]
    pub fn cover(&self) -> usize {
        self.memory.cover.messages
    }

    /// Whether it was made of the messages that lead to `digest`.
    #[must_use]
    pub(crate) fn fits(&self, digest: Digest) -> bool {
        self.memory.cover.digest == digest
    }

    /// The version with another number. Items that it changed last carry the new number.
    pub(crate) fn numbered(self, number: u32, settings: &CompactionSettings) -> Self {
        if self.memory.version == number {
            return self;
        }
        Self::new(numbered(self.memory, number), self.origin, settings)
    }

    /// The memory as a version whose ledger is complete: see [`Version::completed`].
    pub(crate) fn complete(
        memory: Memory,
        origin: VersionOrigin,
        ledger: &Ledger<'_>,
        settings: &CompactionSettings,
    ) -> Self {
        match ledger.complete(&memory, origin, settings) {
            Some(completed) => completed,
            None => Self::new(memory, origin, settings),
        }
    }

    /// The version with its ledger complete: with everything that is pinned and what the adopted ledger holds, and
    /// without what is not pinned any more. `None` if the version is complete as it is.
    ///
    /// A memory that was begun before a swap knows the ledger of another memory; both are made of the same messages,
    /// but a person may have added something to one of them. What would exceed the cap is not added.
    pub(crate) fn completed(
        &self,
        ledger: &Ledger<'_>,
        settings: &CompactionSettings,
    ) -> Option<Self> {
        ledger.complete(&self.memory, self.origin, settings)
    }

    /// The version within its cap; `None` if the ledger would have to be cut for that.
    pub(crate) fn fitted(self, settings: &CompactionSettings) -> Option<Self> {
        if self.tokens <= settings.memory_tokens_max {
            return Some(self);
        }
        let count = |text: &str| settings.counter.text(text);
        let frame = self
            .tokens
            .saturating_sub(count(&markdown::render(&self.memory)) as u64);
        let limit = settings.memory_tokens_max.saturating_sub(frame);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let fitted = fit(self.memory, limit, &count);
        if fitted.is_ledger_cut() {
            return None;
        }
        Some(Self::new(fitted.memory, self.origin, settings))
    }
}

/// The memory with another number. Items that it changed last carry the new number.
pub(crate) fn numbered(mut memory: Memory, number: u32) -> Memory {
    let was = memory.version;
    for item in &mut memory.items {
        if item.touched == was {
            item.touched = number;
        }
    }
    memory.version = number;
    memory
}

/// What a new memory must not lose.
pub(crate) struct Ledger<'l> {
    /// The memory in the requests.
    pub(crate) adopted: Option<&'l Memory>,
    pub(crate) pins: &'l [Pin],
}

impl Ledger<'_> {
    fn complete(
        &self,
        memory: &Memory,
        origin: VersionOrigin,
        settings: &CompactionSettings,
    ) -> Option<Version> {
        let pinned: Vec<String> = self.pins.iter().map(Pin::item_id).collect();
        let is_let_go = |id: &str| id.starts_with(PIN) && !pinned.iter().any(|pin| pin == id);
        let mut missing = self.missing(memory, &is_let_go);
        let has_let_go = memory.items.iter().any(|item| is_let_go(&item.id));
        if missing.is_empty() && !has_let_go {
            return None;
        }
        let mut plain = memory.clone();
        plain.items.retain(|item| !is_let_go(&item.id));
        if missing.is_empty() {
            return Some(Version::new(plain, origin, settings));
        }
        // Everything else makes room for the ledger; if even that is not enough, for what is pinned.
        let completed = with_items(plain.clone(), missing.clone());
        if let Some(fitted) = Version::new(completed, origin, settings).fitted(settings) {
            return Some(fitted);
        }
        missing.retain(|item| item.id.starts_with(PIN));
        if missing.is_empty() && !has_let_go {
            return None;
        }
        Some(Version::new(with_items(plain, missing), origin, settings))
    }

    /// What is pinned or in the adopted ledger, and not in the memory.
    fn missing(&self, memory: &Memory, is_let_go: &impl Fn(&str) -> bool) -> Vec<Item> {
        let mut known: HashSet<&str> = HashSet::new();
        for item in &memory.items {
            if item.entry.section().is_ledger() {
                known.insert(item.entry.text());
            }
            known.insert(&item.id);
        }
        let adopted = self.adopted.iter().flat_map(|adopted| {
            let is_active =
                |item: &&Item| item.entry.section().is_ledger() && item.status == Status::Active;
            adopted.items.iter().filter(is_active).cloned()
        });
        let mut missing: Vec<Item> = Vec::new();
        let items = self.pins.iter().map(pinned_item).chain(adopted);
        for item in items.filter(|item| !is_let_go(&item.id)) {
            let is_known = known.contains(item.id.as_str())
                || known.contains(item.entry.text())
                || missing.iter().any(|other| other.entry == item.entry);
            if !is_known {
                missing.push(item);
            }
        }
        missing
    }
}

/// The memory with these items at the end of its ledger.
fn with_items(mut memory: Memory, items: Vec<Item>) -> Memory {
    let at = memory
        .items
        .iter()
        .rposition(|item| item.entry.section() <= Section::Corrections)
        .map_or(0, |last| last + 1);
    let touched = memory.version;
    let items = items.into_iter().map(|item| Item { touched, ..item });
    memory.items.splice(at..at, items);
    memory
}

fn pinned_item(pin: &Pin) -> Item {
    Item {
        id: pin.item_id(),
        entry: Entry::Correction {
            text: pin.text.clone(),
        },
        origin: Origin::User,
        provenance: Provenance {
            message: pin.message,
            at_ms: None,
        },
        status: Status::Active,
        touched: 0,
    }
}

/// What was before a swap: enough to take it back.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// What was adopted then.
    pub(crate) adopted: Option<AdoptedVersion>,
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
pub(crate) struct AdoptedVersion {
    pub(crate) version: Arc<Version>,
    pub(crate) adoption: MemoryAdoption,
    /// The block and, where it covers the latest request, that request.
    pub(crate) text: Arc<str>,
    /// Tokens of the text, estimated.
    pub(crate) tokens: u64,
    /// The request that is quoted.
    pub(crate) request: Option<String>,
}

impl AdoptedVersion {
    pub(crate) fn new(
        version: Arc<Version>,
        adoption: MemoryAdoption,
        request: Option<&str>,
        settings: &CompactionSettings,
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

/// Tokens of the version and, where it covers the latest request, that request.
pub(crate) fn tokens_with_request(
    version: &Version,
    request: Option<&str>,
    settings: &CompactionSettings,
) -> u64 {
    let quote = request.map_or(0, |request| {
        settings.counter.text(&restoring::latest_request(request)) as u64
    });
    version.tokens + quote
}

/// The text before the tail, and its tokens.
fn with_request(
    version: &Version,
    request: Option<&str>,
    settings: &CompactionSettings,
) -> (Arc<str>, u64) {
    match request {
        None => (Arc::from(version.text.as_str()), version.tokens),
        Some(request) => {
            let quote = restoring::latest_request(request);
            let tokens = version.tokens + settings.counter.text(&quote) as u64;
            let text = restoring::with_latest_request(&version.text, request);
            (Arc::from(text), tokens)
        }
    }
}
