//! A store as plain as can be, to compare with: lists that are cloned.

use std::collections::BTreeMap;

use crate::change::{Change, Counts};
use crate::memory::{Adoption, MemoryInfo, MemoryRow};
use crate::message::{NewMessage, StoredMessage, SupersededMessage};
use crate::search::{Hit, Place, Search, Shelf};
use crate::session::{NewSession, SessionId, SessionInfo};
use crate::store::Loaded;
use crate::usage::{EventRow, Purpose, UsageRow, UsageSum, UsageTotals};

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) sessions: BTreeMap<SessionId, Session>,
}

#[derive(Debug, Clone)]
pub(super) struct Session {
    new: NewSession,
    updated_ms: i64,
    pub(super) messages: Vec<NewMessage>,
    superseded: Vec<(i64, u64, NewMessage)>,
    pub(super) memories: Vec<MemoryRow>,
    pub(super) adoption: Option<Adoption>,
    events: Vec<EventRow>,
    usage: Vec<UsageRow>,
}

impl Session {
    pub(super) fn new(new: NewSession, messages: Vec<NewMessage>) -> Self {
        Self {
            updated_ms: new.created_ms,
            new,
            messages,
            superseded: Vec::new(),
            memories: Vec::new(),
            adoption: None,
            events: Vec::new(),
            usage: Vec::new(),
        }
    }

    /// Applies changes that are known to be right.
    pub(super) fn commit(&mut self, at_ms: i64, changes: &[Change]) {
        self.updated_ms = at_ms;
        for change in changes.iter().cloned() {
            match change {
                Change::Append { messages, .. } => self.messages.extend(messages),
                Change::Truncate { to_count } => {
                    let cut = self.messages.split_off(to_count as usize);
                    self.superseded.extend(
                        (to_count..)
                            .zip(cut)
                            .map(|(position, cut)| (at_ms, position, cut)),
                    );
                }
                Change::Memory(memory) => self.memories.push(memory),
                Change::Adopt { adoption, .. } => self.adoption = Some(adoption),
                Change::Head(head) => self.new.head = head,
                Change::Settings(settings) => self.new.settings = settings,
                Change::Title(title) => self.new.title = title,
                Change::Model(model) => self.new.model = model,
                Change::Event { kind, json } => {
                    self.events.push(EventRow {
                        sequence: self.events.len() as u64,
                        kind,
                        json,
                        at_ms,
                    });
                }
                Change::Usage(usage) => self.usage.push(usage),
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            message_count: self.messages.len() as u64,
            memory_version: self.memories.len() as u64,
            epoch: self.adoption.as_ref().map_or(0, |adoption| adoption.epoch),
            covered_count: self
                .adoption
                .as_ref()
                .map_or(0, |adoption| adoption.covered_count),
        }
    }

    pub(super) fn info(&self) -> SessionInfo {
        SessionInfo {
            id: self.new.id.clone(),
            parent: self.new.parent.clone(),
            wire: self.new.wire.clone(),
            model: self.new.model.clone(),
            title: self.new.title.clone(),
            created_ms: self.new.created_ms,
            updated_ms: self.updated_ms,
            message_count: self.messages.len() as u64,
            tokens: self
                .messages
                .iter()
                .map(|message| u64::from(message.tokens))
                .sum(),
            memory_version: self.memories.len() as u64,
        }
    }

    pub(super) fn stored(&self) -> Vec<StoredMessage> {
        (0..)
            .zip(&self.messages)
            .map(|(position, message)| stored(position, message))
            .collect()
    }

    pub(super) fn superseded(&self) -> Vec<SupersededMessage> {
        (0..)
            .zip(&self.superseded)
            .map(
                |(sequence, (superseded_ms, position, message))| SupersededMessage {
                    sequence,
                    superseded_ms: *superseded_ms,
                    message: stored(*position, message),
                },
            )
            .collect()
    }

    pub(super) fn memory_infos(&self) -> Vec<MemoryInfo> {
        self.memories.iter().map(MemoryInfo::from).collect()
    }

    pub(super) fn events(&self) -> &[EventRow] {
        &self.events
    }

    pub(super) fn usage(&self) -> &[UsageRow] {
        &self.usage
    }

    pub(super) fn loaded(&self) -> Loaded {
        let counts = self.counts();
        let adopted = self
            .adoption
            .as_ref()
            .and_then(|adoption| adoption.memory_version);
        let (covered, tail) = self.messages.split_at(counts.covered_count as usize);
        Loaded {
            session: self.info(),
            counts,
            head: self.new.head.clone(),
            settings: self.new.settings.clone(),
            adoption: self.adoption.clone(),
            memory: self
                .memories
                .iter()
                .find(|memory| Some(memory.version) == adopted)
                .cloned(),
            newer_memory: self
                .memories
                .last()
                .filter(|memory| Some(memory.version) != adopted)
                .cloned(),
            covered_digest: covered.last().map(|message| message.digest),
            tail: (counts.covered_count..)
                .zip(tail)
                .map(|(position, message)| stored(position, message))
                .collect(),
            usage: UsageTotals {
                main: self.sum(Purpose::Main),
                update: self.sum(Purpose::Update),
            },
        }
    }

    fn sum(&self, purpose: Purpose) -> UsageSum {
        let rows: Vec<_> = self
            .usage
            .iter()
            .filter(|row| row.purpose == purpose)
            .collect();
        UsageSum {
            calls: rows.len() as u64,
            unpriced_calls: rows
                .iter()
                .filter(|row| row.cost_nanodollars.is_none())
                .count() as u64,
            uncached: rows.iter().map(|row| row.uncached).sum(),
            cache_write: rows.iter().map(|row| row.cache_write).sum(),
            cache_write_long: rows.iter().map(|row| row.cache_write_long).sum(),
            cache_read: rows.iter().map(|row| row.cache_read).sum(),
            output: rows.iter().map(|row| row.output).sum(),
            cost_nanodollars: rows.iter().filter_map(|row| row.cost_nanodollars).sum(),
        }
    }

    /// Where the words are, in the order of an answer.
    pub(super) fn places(&self, search: &Search) -> Vec<Place> {
        let text = search.text.to_lowercase().replace('\0', " ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let found = |text: &str| {
            let text = text.to_lowercase().replace('\0', " ");
            !words.is_empty() && words.iter().all(|word| text.contains(word))
        };
        let mut places = Vec::new();
        if search.shelf != Shelf::Memories {
            let messages = (0..self.messages.len() as u64)
                .rev()
                .zip(self.messages.iter().rev());
            places.extend(
                messages
                    .filter(|(_, message)| found(&message.text))
                    .map(|(position, _)| Place::Message { position }),
            );
            let cut = (0..self.superseded.len() as u64)
                .rev()
                .zip(self.superseded.iter().rev());
            places.extend(
                cut.filter(|(_, (_, _, message))| found(&message.text))
                    .map(|(sequence, _)| Place::Superseded { sequence }),
            );
        }
        if search.shelf != Shelf::Archive {
            let memories = self.memories.iter().rev();
            places.extend(
                memories
                    .filter(|memory| found(&memory.markdown))
                    .map(|memory| Place::Memory {
                        version: memory.version,
                    }),
            );
        }
        places
    }
}

impl Model {
    pub(super) fn infos(&self) -> Vec<SessionInfo> {
        let mut infos: Vec<_> = self.sessions.values().map(Session::info).collect();
        infos.sort_by_key(|info| (std::cmp::Reverse(info.updated_ms), info.id.clone()));
        infos
    }

    /// Where hits must be; their snippets are another matter.
    pub(super) fn places(&self, search: &Search) -> Vec<(SessionId, Place)> {
        let infos = self.infos().into_iter();
        let places = infos.flat_map(|info| {
            let places = self.sessions[&info.id].places(search);
            places
                .into_iter()
                .map(move |place| (info.id.clone(), place))
        });
        places.take(search.limit as usize).collect()
    }
}

pub(super) fn places_of(hits: Vec<Hit>) -> Vec<(SessionId, Place)> {
    hits.into_iter()
        .map(|hit| (hit.session, hit.place))
        .collect()
}

fn stored(position: u64, message: &NewMessage) -> StoredMessage {
    StoredMessage {
        position,
        original: message.original.clone(),
        sent: message.sent.clone(),
        digest: message.digest,
        at_ms: message.at_ms,
        role: message.role.clone(),
        tokens: message.tokens,
    }
}
