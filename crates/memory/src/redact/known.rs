//! Values that a rule has detected once, to be found where nothing tells that they are secrets.

use std::collections::HashMap;
use std::ops::Range;

use super::value;

/// The most values that are kept.
const VALUES_MAX: usize = 4096;

/// A value is looked up by this many of its first bytes; no shorter one is kept.
const KEY_BYTES: usize = 8;

/// The most values with the same first bytes.
const VALUES_PER_KEY_MAX: usize = 32;

/// The longest value that is kept, in bytes.
const VALUE_BYTES_MAX: usize = 2048;

/// The values that were detected, in memory only.
#[derive(Clone, Default)]
pub(super) struct KnownSecrets {
    by_key: HashMap<[u8; KEY_BYTES], Vec<(Box<str>, usize)>>,
    count: usize,
    /// The pairs of bytes that a value begins with, as a set of bits; empty while there is no value.
    pairs: Vec<u64>,
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "KnownSecrets({})", self.count)
    }
}

impl KnownSecrets {
    /// Keeps a value that the rule with this index has detected, unless it could be an ordinary word.
    pub(super) fn add(&mut self, value: &str, rule: usize) {
        let Some(key) = key_at(value.as_bytes(), 0) else {
            return;
        };
        if self.count >= VALUES_MAX
            || value.len() > VALUE_BYTES_MAX
            || !value::is_unmistakable(value)
        {
            return;
        }
        let values = self.by_key.entry(key).or_default();
        if values.len() >= VALUES_PER_KEY_MAX || values.iter().any(|(known, _)| **known == *value) {
            return;
        }
        values.push((value.into(), rule));
        // The longest that fits is taken.
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        self.count += 1;
        if self.pairs.is_empty() {
            self.pairs = vec![0; 1024];
        }
        let pair = pair(key[0], key[1]);
        self.pairs[pair / 64] |= 1 << (pair % 64);
    }

    /// How many values are kept. It only grows.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds where these values are in `text`, and the rules that detected them.
    pub(super) fn find(&self, text: &str, found: &mut Vec<(Range<usize>, usize)>) {
        if self.count == 0 {
            return;
        }
        let bytes = text.as_bytes();
        let mut from = 0;
        for (at, two) in bytes.windows(2).enumerate() {
            let pair = pair(two[0], two[1]);
            if self.pairs[pair / 64] & (1 << (pair % 64)) == 0 || at < from {
                continue;
            }
            let Some(values) = key_at(bytes, at).and_then(|key| self.by_key.get(&key)) else {
                continue;
            };
            if continues_word(bytes, at) {
                continue;
            }
            let hit = values.iter().find(|(value, _)| {
                let end = at + value.len();
                bytes[at..].starts_with(value.as_bytes())
                    && !(bytes[end - 1].is_ascii_alphanumeric()
                        && bytes.get(end).is_some_and(u8::is_ascii_alphanumeric))
            });
            if let Some((value, rule)) = hit {
                from = at + value.len();
                found.push((at..from, *rule));
            }
        }
    }
}

fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

fn key_at(bytes: &[u8], at: usize) -> Option<[u8; KEY_BYTES]> {
    bytes.get(at..at + KEY_BYTES)?.try_into().ok()
}

/// Whether what begins at `at` is the middle of a longer run of letters and digits.
fn continues_word(bytes: &[u8], at: usize) -> bool {
    bytes[at].is_ascii_alphanumeric()
        && at > 0
        && bytes[at - 1].is_ascii_alphanumeric()
        && !super::is_boundary(bytes, at)
}
