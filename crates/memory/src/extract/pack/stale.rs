//! Values that the person has since changed: nothing may show them as if they still held.

use super::Packer;
use crate::extract::Extractor;
use crate::verify::identifiers;

/// A value that a later statement of the person replaced.
pub(super) struct StaleValue {
    value: String,
    /// The values that came instead: beside one of them, the line tells of the change.
    successors: Vec<String>,
    /// The message from which on it holds no longer.
    since: usize,
}

/// Values that are looked for.
const VALUES_MAX: usize = 64;

/// The values that entries of the ledger had and their successors have not.
pub(super) fn stale_values(extractor: &Extractor<'_>) -> Vec<StaleValue> {
    let mut stale = Vec::new();
    for rule in extractor.ledger.iter().rev() {
        let Some(later) = rule.superseded_by.map(|later| &extractor.ledger[later]) else {
            continue;
        };
        let successors: Vec<String> = values(&later.text)
            .filter(|value| !is_word_of(&rule.text, value))
            .map(str::to_owned)
            .collect();
        for value in values(&rule.text) {
            if !is_word_of(&later.text, value) && stale.len() < VALUES_MAX {
                stale.push(StaleValue {
                    value: value.to_owned(),
                    successors: successors.clone(),
                    since: later.message,
                });
            }
        }
    }
    // What holds again is not stale.
    let holding = || {
        extractor
            .ledger
            .iter()
            .filter(|rule| rule.superseded_by.is_none())
    };
    stale.retain(|stale| {
        !holding().any(|rule| rule.message >= stale.since && is_word_of(&rule.text, &stale.value))
    });
    stale
}

impl Packer<'_> {
    /// Whether a text of a message has a value that was changed after it, and not the one that holds.
    pub(super) fn is_stale(&self, text: &str, message: usize) -> bool {
        self.stale.iter().any(|stale| {
            message <= stale.since
                && is_word_of(text, &stale.value)
                && !stale.successors.iter().any(|value| is_word_of(text, value))
        })
    }
}

/// Names, dates and numbers in a statement that could not be said of much else.
fn values(text: &str) -> impl Iterator<Item = &str> {
    identifiers(text).filter(|value| {
        let digits = value.bytes().filter(u8::is_ascii_digit).count();
        value.len() >= 3 && (digits > 0 || value.contains(['/', '_']))
    })
}

/// Whether a text has a value as a word of its own.
fn is_word_of(text: &str, value: &str) -> bool {
    text.match_indices(value).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let before = text[..at].chars().next_back();
        let after = text[at + value.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
