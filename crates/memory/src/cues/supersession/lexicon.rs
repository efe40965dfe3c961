//! The words for comparing statements: `data/cues/supersession.toml`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    stop: Vec<String>,
    negative: Vec<String>,
    change: Vec<String>,
    link: Vec<String>,
    /// What follows is what the statement is about.
    about: Vec<String>,
    /// What follows is given up.
    replacing: Vec<String>,
    /// What comes instead follows.
    instead: Vec<String>,
    /// What precedes is given up.
    replaced: Vec<String>,
    /// Verbs of change, and the words that then precede the old and the new.
    changing: Vec<String>,
    from: Vec<String>,
    /// Before one of these, "not" forbids and gives nothing up.
    modals: Vec<String>,
    preferring: Vec<String>,
    /// Words that belong to a number.
    measures: Vec<String>,
    to: Vec<String>,
    /// What a correction begins with.
    rejecting: Vec<String>,
    /// Who has many things said of them.
    beings: Vec<String>,
    /// Words that tell nothing about whose matter it is.
    generic: Vec<String>,
    matter: Vec<FileMatter>,
    class: Vec<FileClass>,
    relation: Vec<FileRelation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileMatter {
    #[expect(dead_code, reason = "the name is for the reader of the file")]
    name: String,
    value: ValueKind,
    /// Whether there can be several, told apart by the words around them.
    scoped: bool,
    words: Vec<String>,
    /// Words of the values, where the kind is made of words.
    #[serde(default)]
    values: Vec<Vec<String>>,
}

/// What a matter has one of at a time.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum ValueKind {
    /// A sum of money.
    Amount,
    /// A day.
    Date,
    /// A person.
    Name,
    /// A name with digits, slashes or the like.
    Identifier,
    /// One of listed words.
    Words,
}

/// A matter of which one value holds at a time, however it is worded: a limit of money, a date, who is on duty.
pub(super) struct Matter {
    pub(super) value: ValueKind,
    pub(super) scoped: bool,
    pub(super) words: Vec<String>,
    pub(super) values: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRelation {
    #[expect(dead_code, reason = "the name is for the reader of the file")]
    name: String,
    phrases: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileClass {
    #[expect(dead_code, reason = "the name is for the reader of the file")]
    name: String,
    values: Vec<Vec<String>>,
}

#[derive(Default)]
pub(super) struct Lexicon {
    pub(super) roles: HashMap<String, Role>,
    /// Phrases of several words, as written, with what they do.
    pub(super) replacing: Vec<Vec<String>>,
    pub(super) instead: Vec<Vec<String>>,
    pub(super) replaced: Vec<Vec<String>>,
    pub(super) changing: Vec<String>,
    pub(super) beings: Vec<String>,
    pub(super) modals: Vec<String>,
    pub(super) preferring: Vec<String>,
    pub(super) measures: Vec<String>,
    pub(super) rejecting: Vec<String>,
    pub(super) from: Vec<Vec<String>>,
    pub(super) to: Vec<Vec<String>>,
    pub(super) about: Vec<String>,
    pub(super) relations: Vec<Vec<Vec<String>>>,
    pub(super) classes: HashMap<String, (usize, usize)>,
    pub(super) generic: HashSet<String>,
    pub(super) matters: Vec<Matter>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Stop,
    Negative,
    Change,
    Link,
}

const TEXT: &str = include_str!("../../../data/cues/supersession.toml");

pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    // A file that does not parse leaves the lexicon empty: a test keeps that from being shipped.
    let Ok(file) = toml::from_str::<File>(TEXT) else {
        return Lexicon::default();
    };
    let mut lexicon = Lexicon::default();
    for (words, role) in [
        (file.stop, Role::Stop),
        (file.negative, Role::Negative),
        (file.change, Role::Change),
        (file.link, Role::Link),
    ] {
        for word in words {
            lexicon.roles.insert(word, role);
        }
    }
    let phrases = |list: &[String]| -> Vec<Vec<String>> {
        list.iter()
            .map(|phrase| phrase.split(' ').flat_map(words_of).collect())
            .collect()
    };
    lexicon.replacing = phrases(&file.replacing);
    lexicon.instead = phrases(&file.instead);
    lexicon.replaced = phrases(&file.replaced);
    lexicon.from = phrases(&file.from);
    lexicon.to = phrases(&file.to);
    lexicon.about = file.about;
    lexicon.rejecting = file.rejecting;
    lexicon.changing = file.changing;
    lexicon.beings = file.beings;
    lexicon.modals = file.modals;
    lexicon.preferring = file.preferring;
    lexicon.measures = file.measures.iter().map(|word| fold(word)).collect();
    lexicon.relations = file
        .relation
        .iter()
        .map(|file| phrases(&file.phrases))
        .collect();
    let folded = |words: Vec<String>| words.iter().map(|word| fold(word)).collect();
    lexicon.generic = file.generic.iter().map(|word| fold(word)).collect();
    lexicon.matters = file
        .matter
        .into_iter()
        .map(|file| Matter {
            value: file.value,
            scoped: file.scoped,
            words: folded(file.words),
            values: file.values.into_iter().map(folded).collect(),
        })
        .collect();
    for (class, file) in file.class.into_iter().enumerate() {
        for (group, values) in file.values.into_iter().enumerate() {
            for value in values {
                lexicon.classes.insert(fold(&value), (class, group));
            }
        }
    }
    lexicon
});

impl Lexicon {
    /// Whether a number is an amount ("3 May", "20 euros", "a limit of 100") and names nothing ("gate 35").
    pub(super) fn is_amount(&self, raw: &[String], at: usize) -> bool {
        if !raw[at].starts_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        let before = at.checked_sub(1).map(|before| raw[before].as_str());
        let after = raw.get(at + 1).map(String::as_str);
        let is_measure =
            |word: Option<&str>| word.is_some_and(|word| self.measures.contains(&fold(word)));
        let is_named = before.is_some_and(|word| !self.roles.contains_key(word))
            || after.is_some_and(|word| word.starts_with(is_wide));
        is_measure(before) || is_measure(after) || !is_named
    }

    /// For each word of a clause, whether the clause says that it is to be no longer ("not Y", "stop Y", "from Y to").
    pub(super) fn given_up(&self, raw: &[String]) -> Vec<bool> {
        /// Words after or before a phrase that it gives up.
        const REACH: usize = 8;
        let mut given_up = vec![false; raw.len()];
        let mut mark = |range: std::ops::Range<usize>| {
            for at in range {
                given_up[at] = true;
            }
        };
        let is_in = |phrases: &[Vec<String>], at: usize| {
            phrases
                .iter()
                .filter(|phrase| starts_with(&raw[at..], phrase))
                .map(Vec::len)
                .max()
        };
        for at in 0..raw.len() {
            // What is named after these words is given up, until the clause says what comes instead.
            let is_forbidding = at > 0 && self.modals.contains(&raw[at - 1]);
            if let Some(length) = is_in(&self.replacing, at).filter(|_| !is_forbidding) {
                let start = at + length;
                let end = (start..raw.len().min(start + REACH))
                    .find(|next| is_in(&self.instead, *next).is_some())
                    .unwrap_or(raw.len().min(start + REACH));
                mark(start..end);
            }
            // What precedes these words is given up.
            if is_in(&self.replaced, at).is_some() {
                mark(at.saturating_sub(REACH)..at);
            }
            // "prefer Z to Y".
            if at > 1
                && is_in(&self.to, at).is_some()
                && raw[..at - 1]
                    .iter()
                    .any(|word| self.preferring.contains(word))
            {
                mark(at + 1..raw.len().min(at + 4));
            }
            // "from Y to Z", where something is said to change.
            if is_in(&self.from, at).is_some()
                && raw[..at].iter().any(|word| self.changing.contains(word))
                && let Some(to) = (at + 1..raw.len().min(at + REACH))
                    .find(|next| is_in(&self.to, *next).is_some())
            {
                mark(at + 1..to);
            }
        }
        given_up
    }
}

pub(super) fn starts_with(words: &[String], phrase: &[String]) -> bool {
    words
        .get(..phrase.len())
        .is_some_and(|words| words == phrase)
}

/// The words of a run without spaces: itself in lower case, or its characters one by one where the script has no spaces.
pub(super) fn words_of(run: &str) -> Vec<String> {
    let run = run.trim_matches(|c: char| !(c.is_alphanumeric() || c == '#' || c == '+'));
    if run.is_empty() {
        return Vec::new();
    }
    if !run.chars().any(is_wide) {
        return vec![run.to_lowercase().replace('’', "'")];
    }
    let mut words = Vec::new();
    let mut narrow = String::new();
    for c in run.chars() {
        if is_wide(c) {
            if !narrow.is_empty() {
                words.push(std::mem::take(&mut narrow).to_lowercase());
            }
            words.push(c.to_string());
        } else {
            narrow.push(c);
        }
    }
    if !narrow.is_empty() {
        words.push(narrow.to_lowercase());
    }
    words
}

/// Whether a letter belongs to a script that is written without spaces.
pub(crate) fn is_wide(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// Drops a plural or possessive ending.
pub(super) fn fold(word: &str) -> String {
    let word = word.strip_suffix("'s").unwrap_or(word);
    let word = ["l'", "d'", "qu'"]
        .iter()
        .find_map(|elided| word.strip_prefix(elided))
        .unwrap_or(word);
    let is_plural = word.len() > 3
        && word.is_ascii()
        && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if let Some(stem) = word.strip_suffix('s').filter(|_| is_plural) {
        return stem.to_owned();
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lexicon_parses() {
        toml::from_str::<File>(TEXT)
            .map(|_| ())
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
