//! Remarks of the user in a chat that no rule recognised, as far as they fit.
//!
//! Wording is without end, and a fact can be stated in words that no list has. Where no tool was called, what the person
//! says is most of what there is to know, so a part of the limit goes to their other sentences: those first whose
//! words they use least often elsewhere, because small talk repeats itself and facts do not.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::cues::Claim;
use crate::document::{Entry, Origin, Provenance};

use super::Packer;
use crate::extract::person::SUPERSEDES_MIN;
use crate::extract::{Extractor, Remark};

/// Sentences beyond this are talk about a topic, bytes.
const SENTENCE_BYTES_MAX: usize = 200;
/// Sentences that are tried.
const SENTENCES_MAX: usize = 120;
/// Words a sentence must have to say something.
const WORDS_MIN: usize = 3;

impl Packer<'_> {
    /// Adds the sentences that say most, within `share` tokens.
    pub(super) fn remarks(&mut self, mut share: usize) {
        let said = &self.extractor.remarks;
        let mut count: HashMap<String, u32> = HashMap::new();
        for word in said.iter().flat_map(|said| words(&said.text)) {
            *count.entry(word).or_default() += 1;
        }
        let mut seen = HashSet::new();
        let mut order: Vec<(u32, Reverse<usize>, usize)> = Vec::new();
        for (index, said) in said.iter().enumerate().rev() {
            let words: Vec<String> = words(&said.text).collect();
            let length = if said.text.is_ascii() {
                words.len()
            } else {
                said.text.len() / 3
            };
            if length < WORDS_MIN
                || said.text.len() > SENTENCE_BYTES_MAX
                || !seen.insert(said.text.to_lowercase())
            {
                continue;
            }
            // The rarer half of its words is what a sentence is about.
            let mut counts: Vec<u32> = words.iter().map(|word| count[word]).collect();
            counts.sort_unstable();
            counts.truncate(counts.len().div_ceil(2));
            let commonness = counts.iter().sum::<u32>() * 16 / counts.len().max(1) as u32;
            order.push((commonness, Reverse(index), index));
        }
        order.sort_unstable();
        for (_, _, index) in order.into_iter().take(SENTENCES_MAX) {
            let extractor = self.extractor;
            let said = &extractor.remarks[index];
            if share == 0 || extractor.is_overtaken(said) {
                continue;
            }
            let provenance = Provenance {
                message: said.message,
                at_ms: said.at_ms,
            };
            let entry = Entry::Reference {
                text: said.text.clone(),
            };
            self.add(entry, Origin::User, provenance, &mut share);
        }
    }
}

impl Extractor<'_> {
    /// Whether an entry of the ledger that came later takes the sentence's place.
    fn is_overtaken(&self, said: &Remark) -> bool {
        let claim = Claim::of(&said.text);
        let later = self
            .ledger
            .iter()
            .rev()
            .take_while(|rule| rule.message > said.message);
        later
            .filter(|rule| rule.is_standing || rule.confidence >= 60)
            .any(|rule| {
                rule.claim
                    .supersedes(&claim)
                    .is_some_and(|sure| sure >= SUPERSEDES_MIN)
            })
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
