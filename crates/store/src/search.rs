//! Search: the same meaning in every store.
//!
//! A text is found when it contains every word of the query, in any order, anywhere, whatever the case. There is no
//! query language, so that nothing a user types can be a mistake. Words may be parts of words: that is what finds
//! identifiers and scripts without spaces.

use std::cmp::Reverse;

use crate::error::StoreError;
use crate::limits::SEARCH_BYTES_MAX;
use crate::session::SessionId;

/// How many characters a snippet shows before and after the place that was found.
const SNIPPET_CHARS_AROUND: usize = 80;

/// What is searched, where, and how much of it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The words, divided by white space. Without words nothing is found.
    pub text: String,
    /// In which sessions.
    pub scope: Scope,
    /// In what.
    pub shelf: Shelf,
    /// How many hits at most; a page's limit applies too.
    pub limit: u32,
}

/// In which sessions to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// In all of them.
    All,
    /// In this one.
    Session(SessionId),
}

/// In what to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shelf {
    /// In the messages, superseded ones too.
    Archive,
    /// In the memory versions.
    Memories,
    /// In both.
    Both,
}

impl Shelf {
    pub(crate) fn has_archive(self) -> bool {
        self != Self::Memories
    }

    pub(crate) fn has_memories(self) -> bool {
        self != Self::Archive
    }
}

/// Where something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the message at this position.
    Message {
        /// The position, from 0.
        position: u64,
    },
    /// In a message that was cut off.
    Superseded {
        /// Its place among the superseded messages, from 0.
        sequence: u64,
    },
    /// In this memory version.
    Memory {
        /// The version.
        version: u64,
    },
}

/// Something that was found.
///
/// Hits come by session, the last changed first; within a session messages, superseded messages, memories, each the
/// newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// Where in the session.
    pub place: Place,
    /// The text around the first word, on one line.
    pub snippet: String,
}

/// The words of a search, ready to be looked for.
#[derive(Debug)]
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn of(search: &Search) -> Result<Self, StoreError> {
        let bytes = search.text.len();
        if bytes > SEARCH_BYTES_MAX {
            return Err(StoreError::TooLarge {
                what: "search text",
                bytes,
                bytes_max: SEARCH_BYTES_MAX,
            });
        }
        Ok(Self(
            fold(&search.text)
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
        ))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The snippet, if every word occurs.
    pub(crate) fn snippet(&self, text: &str) -> Option<String> {
        let folded = fold(text);
        let first = folded.find(self.0.first()?.as_str())?;
        self.0
            .iter()
            .all(|word| folded.contains(word.as_str()))
            .then(|| snippet_at(text, first))
    }
}

/// The form in which texts and words are compared: lower case by character, NUL as a space.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    text.chars().for_each(|c| fold_char(c, &mut folded));
    folded
}

fn fold_char(c: char, folded: &mut String) {
    match c {
        '\0' => folded.push(' '),
        c if c.is_ascii() => folded.push(c.to_ascii_lowercase()),
        c => folded.extend(c.to_lowercase()),
    }
}

/// The text around the character at this byte of the folded text.
fn snippet_at(text: &str, folded_at: usize) -> String {
    let mut folded = String::new();
    let at = text
        .char_indices()
        .find(|&(_, c)| {
            fold_char(c, &mut folded);
            folded.len() > folded_at
        })
        .map_or(text.len(), |(at, _)| at);
    let (before, after) = text.split_at(at);
    let start = before
        .char_indices()
        .rev()
        .nth(SNIPPET_CHARS_AROUND - 1)
        .map_or(0, |(start, _)| start);
    let end = after
        .char_indices()
        .nth(SNIPPET_CHARS_AROUND)
        .map_or(text.len(), |(end, _)| at + end);
    let shown = text[start..end].replace('\0', " ");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let (left, right) = (
        if start > 0 { "…" } else { "" },
        if end < text.len() { "…" } else { "" },
    );
    format!("{left}{shown}{right}")
}

/// Hits with when their session was last changed, in the order that every store gives.
pub(crate) fn in_order(mut hits: Vec<(i64, Hit)>, limit: u32) -> Vec<Hit> {
    let rank = |place: Place| match place {
        Place::Message { position } => (0, Reverse(position)),
        Place::Superseded { sequence } => (1, Reverse(sequence)),
        Place::Memory { version } => (2, Reverse(version)),
    };
    hits.sort_by(|(updated_a, a), (updated_b, b)| {
        updated_b
            .cmp(updated_a)
            .then_with(|| a.session.cmp(&b.session))
            .then_with(|| rank(a.place).cmp(&rank(b.place)))
    });
    hits.into_iter()
        .map(|(_, hit)| hit)
        .take(limit as usize)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words {
        Words::of(&Search {
            text: text.into(),
            scope: Scope::All,
            shelf: Shelf::Both,
            limit: 1,
        })
        .unwrap()
    }

    #[track_caller]
    fn check(query: &str, text: &str, snippet: Option<&str>) {
        assert_eq!(words(query).snippet(text).as_deref(), snippet);
    }

    #[test]
    fn finds_every_word_anywhere_in_any_case() {
        check(
            "WRITE rows",
            "call write_rows()\n  now",
            Some("call write_rows() now"),
        );
        check("rows absent", "call write_rows()", None);
        check("ÄPFEL", "drei äpfel", Some("drei äpfel"));
        check("\"a\" OR b*", "x \"A\" or B* y", Some("x \"A\" or B* y"));
        check("日本", "これは日本語です", Some("これは日本語です"));
        check("🦀", "a 🦀 b", Some("a 🦀 b"));
        check("a\0b", "b\0a", Some("b a"));
        check(" \0\t", "anything", None);
        check("", "anything", None);
        check("i̇stanbul", "İstanbul", Some("İstanbul"));
    }

    #[test]
    fn a_snippet_is_short_and_shows_what_was_found() {
        let text = format!("{} needle {}", "ü".repeat(500), "İ".repeat(500));
        let snippet = words("NEEDLE").snippet(&text).unwrap();
        assert!(
            snippet.contains("needle") && snippet.starts_with('…') && snippet.ends_with('…'),
            "{snippet}"
        );
        assert!(snippet.chars().count() <= 2 * SNIPPET_CHARS_AROUND + 2);
    }
}
