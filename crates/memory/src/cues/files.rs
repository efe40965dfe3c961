//! The rule files, and which languages they are for.
use serde::Deserialize;

use super::script::Script;

/// Where in a sentence a phrase must be.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum At {
    /// Where a clause begins, softening words aside.
    #[default]
    Start,
    /// Where the sentence begins, softening words aside.
    Lead,
    /// At the end of the sentence.
    End,
    /// It is the whole sentence, softening words aside.
    Whole,
    /// Anywhere.
    Any,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) language: String,
    /// Whether words are divided by spaces and looked up whole.
    #[serde(default = "yes")]
    pub(super) spaced: bool,
    /// Whether people also type the language without its marks ("nao" for "não").
    #[serde(default)]
    pub(super) unmarked: bool,
    /// What may be written together with the word that follows ("و" in Arabic).
    #[serde(default)]
    pub(super) prefixes: Vec<String>,
    /// Function words that distinguish the language from others. They are on one line: see [`marks`].
    #[serde(default)]
    pub(super) marks: Vec<String>,
    /// Words after which a clause begins.
    #[serde(default)]
    pub(super) conjunctions: Vec<String>,
    /// Words that may precede what a clause says.
    #[serde(default)]
    pub(super) softeners: Vec<String>,
    #[serde(default)]
    pub(super) rule: Vec<FileRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRule {
    pub(super) kind: String,
    pub(super) confidence: u8,
    #[serde(default)]
    pub(super) at: At,
    pub(super) phrases: Vec<String>,
    /// Phrases that cancel the rule if one of its own phrases begins at the same place.
    #[serde(default)]
    pub(super) unless: Vec<String>,
}

fn yes() -> bool {
    true
}

/// How many of the files are read together at first use. The others are read when their language is met.
pub(super) const CORE: usize = 4;

/// The languages, the most usual first: English is the fallback and leads a tie.
pub(super) const FILES: [(&str, Script, &str); 20] = [
    (
        "eng",
        Script::Latin,
        include_str!("../../data/cues/eng.toml"),
    ),
    (
        "deu",
        Script::Latin,
        include_str!("../../data/cues/deu.toml"),
    ),
    (
        "fra",
        Script::Latin,
        include_str!("../../data/cues/fra.toml"),
    ),
    (
        "spa",
        Script::Latin,
        include_str!("../../data/cues/spa.toml"),
    ),
    (
        "por",
        Script::Latin,
        include_str!("../../data/cues/por.toml"),
    ),
    (
        "ita",
        Script::Latin,
        include_str!("../../data/cues/ita.toml"),
    ),
    (
        "nld",
        Script::Latin,
        include_str!("../../data/cues/nld.toml"),
    ),
    (
        "pol",
        Script::Latin,
        include_str!("../../data/cues/pol.toml"),
    ),
    (
        "tur",
        Script::Latin,
        include_str!("../../data/cues/tur.toml"),
    ),
    (
        "ind",
        Script::Latin,
        include_str!("../../data/cues/ind.toml"),
    ),
    (
        "vie",
        Script::Latin,
        include_str!("../../data/cues/vie.toml"),
    ),
    (
        "rus",
        Script::Cyrillic,
        include_str!("../../data/cues/rus.toml"),
    ),
    (
        "ukr",
        Script::Cyrillic,
        include_str!("../../data/cues/ukr.toml"),
    ),
    (
        "ara",
        Script::Arabic,
        include_str!("../../data/cues/ara.toml"),
    ),
    (
        "heb",
        Script::Hebrew,
        include_str!("../../data/cues/heb.toml"),
    ),
    (
        "hin",
        Script::Devanagari,
        include_str!("../../data/cues/hin.toml"),
    ),
    (
        "tha",
        Script::Thai,
        include_str!("../../data/cues/tha.toml"),
    ),
    (
        "kor",
        Script::Hangul,
        include_str!("../../data/cues/kor.toml"),
    ),
    ("cmn", Script::Han, include_str!("../../data/cues/cmn.toml")),
    ("jpn", Script::Han, include_str!("../../data/cues/jpn.toml")),
];

/// The place of a language in [`FILES`].
pub(super) fn index_of(code: &str) -> Option<usize> {
    FILES.iter().position(|(of, ..)| *of == code)
}

/// The marks of a file, without reading the rest of it.
pub(super) fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .find(|line| line.starts_with("marks = "))
        .unwrap_or_default()
        .split('"')
        .skip(1)
        .step_by(2)
}
