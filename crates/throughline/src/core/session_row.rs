//! The row of a session: what is stored besides its messages, its memories and the head of its requests.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throughline_engine::{CompactionSettings, Pin, Savings};
use throughline_transcript::catalogue::Money;

use super::settings;
use crate::costs::Without;

/// What is stored of a session besides messages and memories.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    /// Pinned facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<PinRow>,
    /// Whether the memory goes into the system prompt.
    #[serde(default)]
    pub is_memory_in_system: bool,
    /// For how long the provider is to cache: `5m`, `1h`, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caching: Option<String>,
    /// Settings that the session began with, where they are not those of the model: fields of a settings row.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub begun: Map<String, Value>,
    /// Settings that were changed while it ran: fields of a settings row.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub changed: Map<String, Value>,
    /// Memory versions up to this one are of a conversation that was cleared.
    #[serde(default)]
    pub cleared_versions: u64,
    /// Memory versions up to this one were undone, and are not loaded again.
    #[serde(default)]
    pub undone_versions: u64,
    /// What requests were made with before the present memory, oldest first: what can be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<AdoptionRow>,
    /// What the session would have cost without compaction, so far.
    #[serde(default)]
    pub compared: BaselineRow,
    /// What estimates of tokens are multiplied with, in thousandths, by what the provider has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_permille: Option<u64>,
    /// What was saved and spent so far, which says whether a model can be paid for the next memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savings: Option<SavingsRow>,
}

/// Savings, as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavingsRow(#[serde(with = "SavingsFields")] pub Savings);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Savings")]
struct SavingsFields {
    removed: u64,
    saved: i64,
    spent: i64,
    hits_permille: u64,
    requests: u64,
}

/// A pinned fact, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinRow(#[serde(with = "PinFields")] pub Pin);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Pin")]
struct PinFields {
    id: String,
    text: String,
    message: usize,
}

/// A memory that requests were made with, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptionRow {
    /// Number of its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The messages that are quoted behind it: index of the first, and of the one after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted: Option<(usize, usize)>,
    /// Tokens that the swap after it has taken out of the requests.
    #[serde(default)]
    pub removed_tokens: u64,
}

/// Swaps that can be undone, one after the other.
const SWAPS_MAX: usize = 32;

/// The same session without compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BaselineRow {
    calls: u64,
    refused: u64,
    cost_nanodollars: u64,
    last_prompt: u64,
    /// Tokens that swaps have taken out of the requests.
    pub removed_tokens: u64,
}

impl BaselineRow {
    /// What is kept of these figures.
    #[must_use]
    pub fn of(without: &Without, removed_tokens: u64) -> Self {
        Self {
            calls: without.calls,
            refused: without.refused,
            cost_nanodollars: without.cost.nano_dollars(),
            last_prompt: without.last_prompt,
            removed_tokens,
        }
    }

    /// The figures that were kept.
    #[must_use]
    pub fn without(&self) -> Without {
        Without {
            calls: self.calls,
            refused: self.refused,
            cost: Money::from_nano_dollars(self.cost_nanodollars),
            last_prompt: self.last_prompt,
        }
    }
}

impl SessionRow {
    /// Reads what a store has; nothing where it has nothing.
    ///
    /// # Errors
    /// If it is not what [`SessionRow::to_json`] writes.
    pub fn read(json: &str) -> Result<Self, serde_json::Error> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(json)
    }

    /// As it is stored.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Names and numbers only: this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What is kept of a session that begins with these settings, where they are not those that follow from its model
    /// alone, `plain`. `is_known`: the window is the one of the catalogue; any other is kept, whatever the catalogue
    /// says later.
    #[must_use]
    pub fn begun(
        plain: &CompactionSettings,
        settings: &CompactionSettings,
        is_known: bool,
    ) -> Self {
        let mut begun = settings::difference(plain, settings);
        if !is_known {
            begun.extend(settings::of_the_window(settings));
        }
        Self {
            begun,
            ..Self::default()
        }
    }

    /// The settings of the session: those that follow from its model alone, `plain`, then those that it began with, those
    /// that its opener asks for, and those that were changed while it ran.
    #[must_use]
    pub fn settings(
        &self,
        mut plain: CompactionSettings,
        opener: impl FnOnce(&mut CompactionSettings),
    ) -> CompactionSettings {
        settings::apply(&self.begun, &mut plain);
        opener(&mut plain);
        settings::apply(&self.changed, &mut plain);
        plain
    }

    /// Another memory, or none, replaces the present one.
    pub(super) fn adopted(&mut self, present: AdoptionRow, next: AdoptionRow) {
        if present.version != next.version {
            self.before.push(present);
            let excess = self.before.len().saturating_sub(SWAPS_MAX);
            self.before.drain(..excess);
        }
    }

    /// Keeps what differs between two settings.
    pub(super) fn change(&mut self, before: &CompactionSettings, after: &CompactionSettings) {
        self.changed.extend(settings::difference(before, after));
    }

    /// Keeps the settings of a model that the caller chose, instead of those of the model before.
    pub(super) fn choose_model(&mut self, settings: &CompactionSettings) {
        self.begun
            .retain(|name, _| !settings::is_of_the_model(name));
        self.changed.extend(settings::of_the_model(settings));
    }

    /// Keeps the settings of a model that the client names, as they are kept of a session that begins with it.
    pub(super) fn follow_model(&mut self, begun: &Self) {
        self.begun
            .retain(|name, _| !settings::is_of_the_model(name));
        let of_model = begun.begun.clone().into_iter();
        self.begun
            .extend(of_model.filter(|(name, _)| settings::is_of_the_model(name)));
    }
}
