//! What is shown of sessions and memories: the answers of the API, and what the pages are made of.

use serde::Serialize;
use throughline::driver::Kept;
use throughline_engine::{Engine, Mode, Pin, SessionStatus as Standing};
use throughline_memory::document::{Item, Memory, Origin, Status};
use throughline_memory::redact::Redactor;
use throughline_store::{MemoryInfo, MemoryRow, SessionId, SessionInfo, StoreError};
use throughline_transcript::wire::Wire;

use super::figures::Sums;
use crate::Proxy;
use crate::sessions::by_id::is_ours;
use crate::tracked::Seen;

/// The sizes at which something is due, tokens.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Marks {
    pub(super) soft: u64,
    pub(super) hard: u64,
    /// The largest prompt.
    pub(super) limit: u64,
    pub(super) window: u64,
}

/// A session in a list.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) wire: String,
    pub(super) model: String,
    pub(super) parent: Option<Parent>,
    pub(super) created_ms: i64,
    pub(super) updated_ms: i64,
    pub(super) messages: u64,
    pub(super) archive_tokens: u64,
    /// The newest memory version; 0 for none.
    pub(super) newest_version: u64,
    /// Whether it is in memory.
    pub(super) is_live: bool,
    /// Whether it was begun by a proxy, so that it can be acted upon here.
    pub(super) is_ours: bool,
    pub(super) in_flight: usize,
    /// Tokens of the next request; of the last prompt and its answer where the session is not in memory.
    pub(super) context_tokens: u64,
    pub(super) marks: Marks,
    pub(super) sums: Sums,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Parent {
    pub(super) id: String,
    pub(super) messages: u64,
}

/// What is known of one session besides.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Detail {
    /// `instant`, `traditional` or `off`.
    pub(super) mode: &'static str,
    pub(super) epoch: u64,
    /// Messages that the memory in the requests stands for.
    pub(super) covered: u64,
    /// Number of the memory in the requests.
    pub(super) version: Option<u64>,
    pub(super) memory_tokens: u64,
    pub(super) overhead_tokens: u64,
    /// Messages that the memory would cover that is ready.
    pub(super) ready_cover: Option<usize>,
    pub(super) is_updating: bool,
    /// Why nothing is compacted.
    pub(super) halt: Option<&'static str>,
    pub(super) can_undo: bool,
    pub(super) pins: Vec<PinView>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct PinView {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) message: usize,
}

/// A memory version.
#[derive(Clone, Debug, Serialize)]
pub(super) struct VersionView {
    pub(super) version: u64,
    pub(super) covered: u64,
    pub(super) origin: String,
    pub(super) created_ms: i64,
    pub(super) tokens: u32,
}

/// An item of a memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ItemView {
    pub(super) id: String,
    pub(super) section: &'static str,
    /// The main text and what belongs to it, in the order in which edits name them.
    pub(super) texts: Vec<NamedText>,
    /// Whose words they are.
    pub(super) origin: &'static str,
    /// Index of the message that it comes from.
    pub(super) message: usize,
    /// `active`, `resolved` or `superseded`.
    pub(super) status: &'static str,
    pub(super) superseded_by: Option<String>,
    /// The version that added or last changed it.
    pub(super) touched: u32,
    pub(super) is_ledger: bool,
    pub(super) is_pin: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct NamedText {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// A section of a memory.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SectionView {
    pub(super) name: &'static str,
    pub(super) items: Vec<ItemView>,
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
    pub(super) fn of(item: &Item) -> Self {
        let section = item.entry.section();
        let names: &[&'static str] = match section.name() {
            "key_decisions" => &["decision", "reason", "constraint"],
            "eliminated_approaches" => &["approach", "ruled out because"],
            "errors" => &["text", "resolution"],
            "relevant_tool_results" => &["summary", "key"],
            _ => &["text"],
        };
        let mut entry = item.entry.clone();
        // A decision without a reason has a constraint all the same.
        let has_no_reason = matches!(
            &entry,
            throughline_memory::document::Entry::KeyDecision {
                reason: None,
                constraint: Some(_),
                ..
            }
        );
        let names: Vec<&'static str> = if has_no_reason {
            vec!["decision", "constraint"]
        } else {
            names.to_vec()
        };
        let texts = entry
            .texts_mut()
            .zip(names)
            .map(|(text, name)| NamedText {
                name,
                text: std::mem::take(text),
            })
            .collect();
        let (status, superseded_by) = match &item.status {
            Status::Active => ("active", None),
            Status::Resolved => ("resolved", None),
            Status::SupersededBy(by) => ("superseded", Some(by.clone())),
        };
        Self {
            id: item.id.clone(),
            section: section.name(),
            texts,
            origin: match item.origin {
                Origin::User => "user",
                Origin::Assistant => "assistant",
                Origin::Tool => "tool",
                Origin::Code => "code",
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
pub(super) fn sections(memory: &Memory) -> Vec<SectionView> {
    throughline_memory::document::Section::ALL
        .into_iter()
        .map(|section| SectionView {
            name: section.name(),
            items: memory.section(section).map(ItemView::of).collect(),
        })
        .filter(|section| !section.items.is_empty())
        .collect()
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "off",
        Mode::Traditional => "traditional",
        Mode::Instant => "instant",
    }
}

impl From<&Standing> for Detail {
    fn from(status: &Standing) -> Self {
        Self {
            epoch: status.epoch,
            covered: status.cover as u64,
            version: status.version.map(u64::from),
            memory_tokens: status.memory,
            overhead_tokens: status.overhead,
            ready_cover: status.ready_cover,
            is_updating: status.is_updating,
            halt: status.halt.as_ref().map(|halt| match halt {
                throughline_engine::Halt::Overhead { .. } => {
                    "system prompt and tools alone are above the mark"
                }
                throughline_engine::Halt::NoGain { .. } => "the last swap made it hardly smaller",
                throughline_engine::Halt::Failures { .. } => "the model failed too often in a row",
            }),
            ..Self::default()
        }
    }
}

impl Proxy {
    /// The marks of a session, by what it says of its model.
    pub(super) fn marks(&self, info: &SessionInfo) -> Marks {
        if let Some(session) = self.sessions.live(&info.id) {
            return marks(&session.seen());
        }
        let wire = Wire::ALL.into_iter().find(|wire| wire.name() == info.wire);
        let settings =
            self.shared
                .config
                .settings(wire.unwrap_or(Wire::OpenAiChat), &info.model, None);
        let window = settings.window;
        let status = Engine::new(settings).status();
        Marks {
            soft: status.soft,
            hard: status.hard,
            limit: status.limit,
            window,
        }
    }

    /// A session as a list shows it.
    pub(super) async fn session_view(&self, info: &SessionInfo) -> Result<Session, StoreError> {
        let sums = self.figures(info).await?;
        let seen = self.sessions.live(&info.id).map(|session| session.seen());
        Ok(Session {
            id: info.id.to_string(),
            title: shown_title(info),
            wire: info.wire.clone(),
            model: seen
                .as_ref()
                .map_or_else(|| info.model.clone(), |seen| seen.model.clone()),
            parent: info.parent.as_ref().map(|parent| Parent {
                id: parent.session.to_string(),
                messages: parent.message_count,
            }),
            created_ms: info.created_ms,
            updated_ms: info.updated_ms,
            messages: info.message_count,
            archive_tokens: info.tokens,
            newest_version: info.memory_version,
            is_live: seen.is_some(),
            is_ours: is_ours(&info.id),
            in_flight: seen.as_ref().map_or(0, |seen| seen.in_flight),
            context_tokens: seen.as_ref().map_or_else(
                || sums.last_prompt + sums.last_output,
                |seen| seen.status.tokens,
            ),
            marks: self.marks(info),
            sums,
        })
    }

    /// What is known of one session besides; read from the store where it is not in memory.
    pub(super) async fn detail(&self, id: &SessionId) -> Result<Detail, StoreError> {
        if let Some(session) = self.sessions.live(id) {
            let seen = session.seen();
            return Ok(Detail {
                mode: mode_name(seen.mode),
                pins: seen.pins.iter().map(PinView::from).collect(),
                can_undo: seen.can_undo,
                ..Detail::from(&seen.status)
            });
        }
        let loaded = self.shared.store.load(id).await?;
        let kept: Kept = serde_json::from_str(&loaded.settings).unwrap_or_default();
        let wire = Wire::ALL
            .into_iter()
            .find(|wire| wire.name() == loaded.session.wire)
            .unwrap_or(Wire::OpenAiChat);
        let mut settings = self
            .shared
            .config
            .settings(wire, &loaded.session.model, None);
        kept.go_on(&mut settings);
        let pins: Vec<Pin> = kept.pins.iter().map(Pin::from).collect();
        Ok(Detail {
            mode: mode_name(settings.mode),
            epoch: loaded.counts.epoch,
            covered: loaded.counts.covered_count,
            version: loaded.memory.as_ref().map(|row| row.version),
            memory_tokens: loaded
                .memory
                .as_ref()
                .map_or(0, |row| u64::from(row.tokens)),
            ready_cover: loaded
                .newer_memory
                .as_ref()
                .filter(|row| row.version > kept.undone_versions)
                .and_then(|row| usize::try_from(row.covered_count).ok()),
            can_undo: !kept.before.is_empty(),
            pins: pins.iter().map(PinView::from).collect(),
            ..Detail::default()
        })
    }
}

fn marks(seen: &Seen) -> Marks {
    Marks {
        soft: seen.status.soft,
        hard: seen.status.hard,
        limit: seen.status.limit,
        window: seen.window,
    }
}

fn shown_title(info: &SessionInfo) -> String {
    if info.title.is_empty() {
        return "untitled".to_owned();
    }
    Redactor::embedded().redact(&info.title).into_owned()
}
