//! Caches the counts of messages, so that counting a request that mostly repeats the last one costs almost nothing.

use std::collections::HashMap;

use crate::json::Raw;
use crate::message::{Message, Role};

use super::Counter;

/// Counts by digest of the bytes of a message.
///
/// A repeated request comes as new bytes; finding that they are the same costs one digest (blake3) over them. When the
/// cache is full, the half that was used longest ago is forgotten.
#[derive(Debug)]
pub struct CountCache {
    counter: Counter,
    half_entries_max: usize,
    recent: HashMap<Key, u32>,
    older: HashMap<Key, u32>,
}

/// The first half of a blake3 digest: no input collides by chance, or by anybody's design.
type Key = [u8; 16];

impl CountCache {
    /// A cache of at most `entries_max` counts (some 50 bytes each) made by `counter`.
    #[must_use]
    pub fn new(counter: Counter, entries_max: usize) -> Self {
        Self {
            counter,
            half_entries_max: entries_max.div_ceil(2).max(1),
            recent: HashMap::new(),
            older: HashMap::new(),
        }
    }

    /// What counts.
    #[must_use]
    pub fn counter(&self) -> Counter {
        self.counter
    }

    /// Counts that are remembered now.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    /// Like [`Counter::message`]. A message is not cached if neither it nor all of its blocks have JSON.
    pub fn message(&mut self, message: &Message) -> usize {
        let counter = self.counter;
        match message_key(message) {
            Some(key) => self.remembered(key, || counter.message(message)),
            None => counter.message(message),
        }
    }

    /// As [`Counter::tools`].
    pub fn tools(&mut self, tools: &Raw) -> usize {
        let counter = self.counter;
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"tools");
        hasher.update(tools.as_str().as_bytes());
        self.remembered(key(&hasher), || counter.tools(tools))
    }

    fn remembered(&mut self, key: Key, count: impl FnOnce() -> usize) -> usize {
        if let Some(known) = self.recent.get(&key) {
            return *known as usize;
        }
        let tokens = match self.older.remove(&key) {
            Some(known) => known,
            None => u32::try_from(count()).unwrap_or(u32::MAX),
        };
        if self.recent.len() >= self.half_entries_max {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, tokens);
        tokens as usize
    }
}

fn message_key(message: &Message) -> Option<Key> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(match message.role {
        Role::System => b"s",
        Role::User => b"u",
        Role::Assistant => b"a",
        Role::Tool => b"t",
    });
    match &message.raw {
        Some(raw) => {
            hasher.update(raw.as_str().as_bytes());
        }
        None => {
            for block in &message.blocks {
                let raw = block.raw.as_ref()?;
                hasher.update(&(raw.len() as u64).to_le_bytes());
                hasher.update(raw.as_str().as_bytes());
            }
        }
    }
    // A reader may make other blocks of the same bytes: a compaction takes some away, a wire format another.
    hasher.update(&(message.blocks.len() as u64).to_le_bytes());
    Some(key(&hasher))
}

fn key(hasher: &blake3::Hasher) -> Key {
    let mut key = Key::default();
    for (to, from) in key.iter_mut().zip(hasher.finalize().as_bytes()) {
        *to = *from;
    }
    key
}
