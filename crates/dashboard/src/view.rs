//! Sessions and memories as the API answers them; the pages are made from the same types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_engine::{Halt, Mode, Pin};
use throughline_memory::document::{Entry, Item, Memory, Origin, Section, Status};
use throughline_memory::redact::Redactor;
use throughline_store::{MemoryInfo, MemoryRow, SessionId, SessionInfo, StoreError};

use crate::Dashboard;
use crate::backend::{Marks, SessionState};
use crate::figures::Sums;

/// A session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) wire: String,
    pub(crate) model: String,
    /// The session that this one is a fork of.
    pub(crate) parent: Option<Parent>,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) messages: u64,
    pub(crate) archive_tokens: u64,
    /// The newest memory version; 0 without one.
    pub(crate) newest_version: u64,
    /// Whether it is in memory.
    pub(crate) is_live: bool,
    /// Whether a proxy began it, so that actions are possible here.
    pub(crate) is_ours: bool,
    /// Requests without a complete answer.
    pub(crate) in_flight: usize,
    /// Tokens of the next request; of the last prompt and its answer if the session is not in memory.
    pub(crate) context_tokens: u64,
    pub(crate) marks: Marks,
    pub(crate) sums: Sums,
}

/// Where a fork begins.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Parent {
    pub(crate) id: String,
    /// Messages that both have in common.
    pub(crate) messages: u64,
}

/// The memory and the settings of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Detail {
    pub(crate) mode: SessionMode,
    pub(crate) epoch: u64,
    /// Messages that the memory in the requests represents.
    pub(crate) covered: u64,
    /// Number of the memory in the requests.
    pub(crate) version: Option<u64>,
    pub(crate) memory_tokens: u64,
    /// Tokens of system prompt and tools.
    pub(crate) overhead_tokens: u64,
    /// Messages that the memory that is ready would cover.
    pub(crate) ready_cover: Option<usize>,
    /// Whether a model is making a memory.
    pub(crate) is_updating: bool,
    /// Why nothing is compacted.
    pub(crate) halt: Option<&'static str>,
    /// Whether the last swap can be undone.
    pub(crate) can_undo: bool,
    pub(crate) pins: Vec<PinView>,
}

/// When a session is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionMode {
    Instant,
    Traditional,
    Off,
}

/// A fact that every memory contains.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pin")]
pub(crate) struct PinView {
    pub(crate) id: String,
    pub(crate) text: String,
    /// Index of the message that it comes from.
    pub(crate) message: usize,
}

/// A memory version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Version")]
pub(crate) struct VersionView {
    pub(crate) version: u64,
    /// Messages that it represents.
    pub(crate) covered: u64,
    #[schemars(extend("enum" = ["draft", "model", "given"]))]
    pub(crate) origin: String,
    pub(crate) created_ms: i64,
    pub(crate) tokens: u32,
}

/// An item of a memory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Item")]
pub(crate) struct ItemView {
    pub(crate) id: String,
    pub(crate) section: &'static str,
    /// The main text and what belongs to it, in the order in which edits list them.
    pub(crate) texts: Vec<NamedText>,
    /// Whose words they are.
    pub(crate) origin: ItemOrigin,
    /// Index of the message that it comes from, from 0.
    pub(crate) message: usize,
    pub(crate) status: ItemStatus,
    /// Id of the item that supersedes it.
    pub(crate) superseded_by: Option<String>,
    /// The version that added or last changed it.
    pub(crate) touched: u32,
    pub(crate) is_ledger: bool,
    pub(crate) is_pin: bool,
}

/// A text of an item.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct NamedText {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

/// Whose words an item holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ItemOrigin {
    User,
    Assistant,
    Tool,
    Code,
}

/// Whether an item still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ItemStatus {
    Active,
    Resolved,
    Superseded,
}

/// A section of a memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Section")]
pub(crate) struct SectionView {
    pub(crate) name: &'static str,
    pub(crate) items: Vec<ItemView>,
}

impl From<&MemoryRow> for VersionView {
    fn from(row: &MemoryRow) -> Self {
        Self::from(&MemoryInfo::from(row))
    }
}

impl From<&MemoryInfo> for VersionView {
    fn from(row: &MemoryInfo) -> Self {
        Self {
            version: row.version,
            covered: row.covered_count,
            origin: row.origin.clone(),
            created_ms: row.created_ms,
            tokens: row.tokens,
        }
    }
}

impl From<&Pin> for PinView {
    fn from(pin: &Pin) -> Self {
        Self {
            id: pin.id.clone(),
            text: pin.text.clone(),
            message: pin.message,
        }
    }
}

impl ItemView {
    pub(crate) fn of(item: &Item) -> Self {
        let section = item.entry.section();
        let names: &[&'static str] = match section.name() {
            "key_decisions" => &["decision", "reason", "constraint"],
            "eliminated_approaches" => &["approach", "ruled out because"],
            "errors" => &["text", "resolution"],
            "relevant_tool_results" => &["summary", "key"],
            _ => &["text"],
        };
        let mut entry = item.entry.clone();
        // A decision without a reason can still have a constraint.
        let has_no_reason = matches!(
            &entry,
            Entry::KeyDecision {
                reason: None,
                constraint: Some(_),
                ..
            }
        );
        let names = if has_no_reason {
            &["decision", "constraint"]
        } else {
            names
        };
        let texts = entry
            .texts_mut()
            .zip(names.iter().copied())
            .map(|(text, name)| NamedText {
                name,
                text: std::mem::take(text),
            })
            .collect();
        let (status, superseded_by) = match &item.status {
            Status::Active => (ItemStatus::Active, None),
            Status::Resolved => (ItemStatus::Resolved, None),
            Status::SupersededBy(by) => (ItemStatus::Superseded, Some(by.clone())),
        };
        Self {
            id: item.id.clone(),
            section: section.name(),
            texts,
            origin: match item.origin {
                Origin::User => ItemOrigin::User,
                Origin::Assistant => ItemOrigin::Assistant,
                Origin::Tool => ItemOrigin::Tool,
                Origin::Code => ItemOrigin::Code,
            },
            message: item.provenance.message,
            status,
            superseded_by,
            touched: item.touched,
            is_ledger: section.is_ledger(),
            is_pin: item.id.starts_with("pin-"),
        }
    }
}

/// The sections of a memory that have items.
pub(crate) fn sections(memory: &Memory) -> Vec<SectionView> {
    Section::ALL
        .into_iter()
        .map(|section| SectionView {
            name: section.name(),
            items: memory.section(section).map(ItemView::of).collect(),
        })
        .filter(|section| !section.items.is_empty())
        .collect()
}

impl SessionMode {
    /// The mode of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "instant" => Some(Self::Instant),
            "traditional" => Some(Self::Traditional),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

impl From<Mode> for SessionMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Off => Self::Off,
            Mode::Traditional => Self::Traditional,
            Mode::Instant => Self::Instant,
        }
    }
}

impl From<SessionMode> for Mode {
    fn from(mode: SessionMode) -> Self {
        match mode {
            SessionMode::Off => Self::Off,
            SessionMode::Traditional => Self::Traditional,
            SessionMode::Instant => Self::Instant,
        }
    }
}

impl From<SessionState> for Detail {
    fn from(state: SessionState) -> Self {
        Self {
            mode: state.mode.into(),
            epoch: state.epoch,
            covered: state.covered,
            version: state.version,
            memory_tokens: state.memory_tokens,
            overhead_tokens: state.overhead_tokens,
            ready_cover: state.ready_cover,
            is_updating: state.is_updating,
            halt: state.halt.as_ref().map(halt_reason),
            can_undo: state.can_undo,
            pins: state.pins.iter().map(PinView::from).collect(),
        }
    }
}

fn halt_reason(halt: &Halt) -> &'static str {
    match halt {
        Halt::Overhead { .. } => "system prompt and tools alone are above the mark",
        Halt::NoGain { .. } => "the last swap made it hardly smaller",
        Halt::Failures { .. } => "the model failed too often in a row",
    }
}

impl Dashboard {
    /// The marks of a session: its own if it is in memory, else those of its model.
    pub(crate) fn marks(&self, info: &SessionInfo) -> Marks {
        match self.backend.live(&info.id) {
            Some(live) => live.marks,
            None => self.backend.marks(&info.wire, &info.model),
        }
    }

    /// A session as a list shows it.
    pub(crate) async fn session_view(&self, info: &SessionInfo) -> Result<Session, StoreError> {
        let sums = self.figures(info).await?;
        let live = self.backend.live(&info.id);
        Ok(Session {
            id: info.id.to_string(),
            title: title(info),
            wire: info.wire.clone(),
            model: live
                .as_ref()
                .map_or_else(|| info.model.clone(), |live| live.model.clone()),
            parent: info.parent.as_ref().map(|parent| Parent {
                id: parent.session.to_string(),
                messages: parent.message_count,
            }),
            created_ms: info.created_ms,
            updated_ms: info.updated_ms,
            messages: info.message_count,
            archive_tokens: info.tokens,
            newest_version: info.memory_version,
            is_live: live.is_some(),
            is_ours: self.backend.is_ours(&info.id),
            in_flight: live.as_ref().map_or(0, |live| live.in_flight),
            context_tokens: live
                .as_ref()
                .map_or(sums.last_prompt + sums.last_output, |live| {
                    live.context_tokens
                }),
            marks: self.marks(info),
            sums,
        })
    }

    /// The memory and the settings of a session; read from the store if it is not in memory.
    pub(crate) async fn detail(&self, id: &SessionId) -> Result<Detail, StoreError> {
        let state = match self.backend.live(id) {
            Some(live) => live.state,
            None => self.backend.stored(id).await?,
        };
        Ok(Detail::from(state))
    }
}

/// The title without secrets.
fn title(info: &SessionInfo) -> String {
    if info.title.is_empty() {
        return "untitled".to_owned();
    }
    Redactor::embedded().redact(&info.title).into_owned()
}
