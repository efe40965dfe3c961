//! Checks that a memory says only what the transcript says.
//!
//! Two things can be checked without understanding: words that are given as the user's or a tool's must occur in a
//! text of that speaker, and an identifier (a path, an address, a version, a name in code, a number of three digits or
//! more) must occur somewhere. What fails was invented or altered. The check does not tell whether a true identifier
//! is in a true sentence.
//!
//! White space is folded on both sides, and `…` or `[...]` in an item marks words that were left out, ` · ` for the
//! end of a line. Where an item names the folder that paths are relative to, paths are compared without it. If the memory
//! was redacted, the texts must be redacted with the same rules before they are compared.

use std::borrow::Cow;
use std::collections::HashMap;

use aho_corasick::AhoCorasick;

use crate::document::{Item, Memory, Origin};

/// A statement of a memory that the transcript does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Id of the item.
    pub item: String,
    /// The unsupported part of it.
    pub unsupported: UnsupportedClaim,
}

/// The part of an item that the transcript does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnsupportedClaim {
    /// The item quotes this speaker, who never said the words.
    Quote(Origin),
    /// An identifier that does not occur in the transcript.
    Identifier(String),
}

/// Begins the item that names the folder which paths are relative to.
pub(crate) const RELATIVE_TO: &str = "Paths are relative to ";

/// How many bytes of patterns are searched for at once. A memory that claims more is not a memory, and all of it counts as
/// unsupported.
const PATTERN_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Compares a memory with the texts that it was made from, each with its speaker; tool calls count as the model's.
/// Findings are in the order of the items. Time is linear in the texts.
#[must_use]
pub fn verify<'a>(
    memory: &Memory,
    texts: impl IntoIterator<Item = (Origin, Cow<'a, str>)>,
) -> Vec<Finding> {
    let mut claims = Claims::default();
    for (index, item) in memory.items.iter().enumerate() {
        claims.add(index, item);
    }
    let is_said = claims.look_up(texts);
    claims
        .claims
        .iter()
        .filter(|claim| !is_said[claim.pattern].by(claim.speaker))
        .map(|claim| Finding {
            item: memory.items[claim.item].id.clone(),
            unsupported: match claim.speaker {
                Some(speaker) => UnsupportedClaim::Quote(speaker),
                None => UnsupportedClaim::Identifier(claims.patterns[claim.pattern].clone()),
            },
        })
        .fold(Vec::new(), |mut findings, finding| {
            // A quote of several parts is one finding.
            if findings.last() != Some(&finding) {
                findings.push(finding);
            }
            findings
        })
}

/// What a memory claims to have been said.
#[derive(Default)]
struct Claims {
    claims: Vec<Claim>,
    /// White space folded, each once.
    patterns: Vec<String>,
    indices: HashMap<String, usize>,
    pattern_bytes: usize,
    /// The folder that paths are relative to, with a slash at its end.
    folder: Option<String>,
}

/// A pattern that must occur in a text.
struct Claim {
    /// Index of the item.
    item: usize,
    /// Index of the pattern.
    pattern: usize,
    /// In whose texts; for identifiers, anyone's.
    speaker: Option<Origin>,
}

/// Where a pattern was found.
#[derive(Clone, Copy, Default)]
struct Mentions {
    by_user: bool,
    by_assistant: bool,
    by_tool: bool,
    /// By anyone, as a word of its own.
    as_word: bool,
}

impl Mentions {
    fn by(self, speaker: Option<Origin>) -> bool {
        match speaker {
            None => self.as_word,
            Some(Origin::User) => self.by_user,
            Some(Origin::Tool) => self.by_tool,
            Some(Origin::Assistant | Origin::Code) => self.by_assistant,
        }
    }
}

impl Claims {
    fn add(&mut self, index: usize, item: &Item) {
        if let (Origin::Code, Some(folder)) =
            (item.origin, item.entry.text().strip_prefix(RELATIVE_TO))
        {
            self.folder = Some(format!("{folder}/"));
        }
        // What a model or code says is put together by them: there only the identifiers are checked.
        if matches!(item.origin, Origin::User | Origin::Tool) {
            for part in quoted_parts(item.entry.text()) {
                self.claim(index, part, Some(item.origin));
            }
        }
        for text in item.entry.texts() {
            for identifier in identifiers(text) {
                self.claim(index, identifier.to_owned(), None);
            }
        }
    }

    fn claim(&mut self, item: usize, pattern: String, speaker: Option<Origin>) {
        let pattern = match self.indices.get(&pattern) {
            Some(known) => *known,
            None => {
                self.pattern_bytes += pattern.len();
                self.patterns.push(pattern.clone());
                self.indices.insert(pattern, self.patterns.len() - 1);
                self.patterns.len() - 1
            }
        };
        self.claims.push(Claim {
            item,
            pattern,
            speaker,
        });
    }

    /// Which patterns occur in the texts.
    fn look_up<'a>(
        &self,
        texts: impl IntoIterator<Item = (Origin, Cow<'a, str>)>,
    ) -> Vec<Mentions> {
        let mut said = vec![Mentions::default(); self.patterns.len()];
        if self.pattern_bytes > PATTERN_BYTES_MAX {
            return said;
        }
        let Ok(automaton) = AhoCorasick::new(&self.patterns) else {
            return said;
        };
        for (speaker, text) in texts {
            let short = self
                .folder
                .as_ref()
                .filter(|folder| text.contains(folder.as_str()));
            let short = short.map(|folder| text.replace(folder.as_str(), ""));
            for text in std::iter::once(folded(&text)).chain(short.as_deref().map(folded)) {
                for found in automaton.find_overlapping_iter(text.as_ref()) {
                    let said = &mut said[found.pattern().as_usize()];
                    match speaker {
                        Origin::User => said.by_user = true,
                        Origin::Tool => said.by_tool = true,
                        Origin::Assistant | Origin::Code => said.by_assistant = true,
                    }
                    said.as_word |= stands_alone(&text, found.start(), found.end());
                }
            }
        }
        said
    }
}

/// Whether the match is not a piece of a longer name. Identifiers are ASCII: where words are not set apart by
/// spaces, letters of other scripts are right beside them.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    let after = text.get(end..).and_then(|text| text.chars().next());
    !before.is_some_and(is_name) && !after.is_some_and(is_name)
}

/// White space folded to one space.
fn folded(text: &str) -> Cow<'_, str> {
    let is_folded = !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.contains("  ")
        && text
            .chars()
            .all(|character| character == ' ' || !character.is_whitespace());
    if is_folded {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    Cow::Owned(folded)
}

/// Begins the words of the model that words of the person reply to; `]` ends them, and the text.
pub(crate) const IN_REPLY_TO: &str = " [on: ";

/// What must occur in a text word for word: all but the marks of an omission and what the words reply to.
fn quoted_parts(text: &str) -> impl Iterator<Item = String> {
    let own = match text.find(IN_REPLY_TO) {
        Some(at) if text.ends_with(']') => &text[..at],
        _ => text,
    };
    own.split('…')
        .flat_map(|part| part.split("[...]"))
        .flat_map(|part| part.split(" · "))
        .map(|part| folded(part).trim().to_owned())
        .filter(|part| !part.is_empty())
}

/// The words of a text that name one thing: a change of one character would name another.
pub(crate) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| {
        character.is_whitespace()
            || "\"'`()[]{}<>,;|*=…“”‘’«»、。，：；（）「」".contains(character)
    })
    .map(|word| word.trim_matches(|character: char| ".:!?-&\\".contains(character)))
    .filter(|word| is_identifier(word))
}

fn is_identifier(word: &str) -> bool {
    if !word.is_ascii() || word.len() < 3 {
        return false;
    }
    let bytes = word.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = bytes
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    let joins = |mark: u8| {
        bytes.windows(3).any(|three| {
            three[1] == mark && three[0].is_ascii_alphanumeric() && three[2].is_ascii_alphanumeric()
        })
    };
    let is_camel = bytes
        .windows(2)
        .any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    if letters == 0 {
        return digits >= 3;
    }
    digits > 0
        || is_camel
        || joins(b'.')
        || joins(b'_')
        || joins(b'/')
        || joins(b'@')
        || word.contains("::")
}

#[cfg(test)]
mod tests;
