//! From the text of an answer to what it says: JSON in three forms, and the six headings.
//!
//! Reading is tolerant of what stands around the answer (reasoning in marks, code fences, a sentence before it) and
//! strict about its shape. Markdown headings are taken by what they mean, because models rename them.

mod json;
mod markdown;

use std::sync::LazyLock;

use regex::Regex;

use crate::document::{Entry, Requested, Section, Status};

pub(super) use json::whole_entries;
pub(super) use markdown::line_of;

/// The form that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The compact JSON object.
    Object,
    /// A list of items.
    Items,
    /// A list of edits.
    Edits,
    /// The six headings.
    Markdown,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole memory.
    Whole(Vec<Said>),
    /// A memory where edits were asked for: it may hold only what is new, so nothing is dropped because of it.
    Additions(Vec<Said>),
    /// Changes.
    Edits(Vec<Change>),
}

/// One item, as a model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What it says.
    pub entry: Entry,
    /// Number of the message that it stands in, counted from 1, where the model names one.
    pub message: Option<u64>,
    /// How the matter stands, as far as the form can say it.
    pub status: Status,
    /// The line that it was, in Markdown: an item that is repeated word for word is recognised by it.
    pub line: Option<String>,
}

/// One change, as a model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new item.
    Add(Said),
    /// Other words for an item.
    Replace {
        /// The item.
        id: String,
        /// The words.
        text: String,
        /// What the section has besides the text.
        detail: Option<String>,
        /// What limits a decision.
        limit: Option<String>,
    },
    /// The matter is done or answered.
    Resolve {
        /// The item.
        id: String,
        /// How.
        resolution: Option<String>,
    },
    /// Another item takes its place.
    Supersede {
        /// The item.
        id: String,
        /// The one that takes its place.
        by: String,
    },
    /// The item is not needed any more.
    Drop {
        /// The item.
        id: String,
        /// Why.
        reason: String,
    },
}

/// Why an answer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    /// The JSON stops in the middle.
    CutOff,
    /// It begins like JSON and is none.
    InvalidJson { reason: String },
    /// It is JSON of another shape.
    WrongShape { path: String, reason: String },
    /// There is nothing in it that the form has.
    NoStructure,
}

/// Items and edits that are read from one answer; what comes after them is no memory.
pub(super) const ITEMS_MAX: usize = 2_000;

/// The longest answer that is read, bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reads an answer.
pub(super) fn parse(text: &str, wanted: Wanted) -> Result<Parsed, ParseError> {
    let text = without_scratch(text);
    if wanted == Wanted::Markdown {
        return match markdown::read(&text) {
            Some(said) => Ok(Parsed::Whole(said)),
            // The content counts, not the dress.
            None => json::read(&text, Wanted::Object).map_err(|_| ParseError::NoStructure),
        };
    }
    match json::read(&text, wanted) {
        Err(error) => match markdown::read(&text) {
            Some(said) if wanted == Wanted::Edits => Ok(Parsed::Additions(said)),
            Some(said) => Ok(Parsed::Whole(said)),
            None => Err(error),
        },
        parsed => parsed,
    }
}

impl Said {
    /// An item that holds.
    fn new(entry: Entry) -> Self {
        Self {
            entry,
            message: None,
            status: Status::Active,
            line: None,
        }
    }
}

/// An entry of `section` with this main text and what else the section has.
pub(super) fn entry_of(
    section: Section,
    text: String,
    detail: Option<String>,
    limit: Option<String>,
) -> Entry {
    let detail = detail.filter(|detail| says_something(detail));
    let limit = limit.filter(|limit| says_something(limit));
    match section {
        Section::Task => Entry::Task { text },
        Section::CurrentState => Entry::CurrentState { text },
        Section::CompletedWork => Entry::CompletedWork { text },
        Section::KeyDecisions => Entry::KeyDecision {
            decision: text,
            reason: detail,
            constraint: limit,
        },
        Section::EliminatedApproaches => Entry::EliminatedApproach {
            approach: text,
            reason_ruled_out: detail,
        },
        Section::Errors => Entry::Error {
            text,
            resolution: detail,
        },
        Section::Corrections => Entry::Correction { text },
        Section::OpenQuestions => Entry::OpenQuestion { text },
        Section::NextSteps => Entry::NextStep {
            text,
            requested: match detail.as_deref() {
                Some("explicit") => Requested::Explicit,
                _ => Requested::Implied,
            },
        },
        Section::RelevantToolResults => Entry::ToolResult {
            key: detail.unwrap_or_default(),
            summary: text,
        },
        Section::References => Entry::Reference { text },
    }
}

/// Whether a text is more than a word for nothing.
pub(super) fn says_something(text: &str) -> bool {
    const NOTHING: [&str; 30] = [
        "none",
        "n/a",
        "na",
        "nil",
        "null",
        "nothing",
        "nothing yet",
        "no",
        "empty",
        "unknown",
        "tbd",
        "todo",
        "not applicable",
        "not specified",
        "none so far",
        "none yet",
        "none mentioned",
        "none identified",
        "no errors",
        "no pending tasks",
        "no open questions",
        "keine",
        "keiner",
        "nichts",
        "aucun",
        "aucune",
        "ninguno",
        "ninguna",
        "无",
        "なし",
    ];
    let bare = text.trim().trim_matches(|c: char| {
        c.is_whitespace() || c.is_ascii_punctuation() || "…–—（）。、・".contains(c)
    });
    if bare.is_empty() {
        return false;
    }
    let bare = bare.to_lowercase();
    !NOTHING.contains(&bare.as_str())
}

/// Marks in which models think aloud.
const SCRATCH: &str = "analysis|think|thinking|thought|thoughts|scratchpad|scratch|reasoning|reflection|plan|planning";

static OPENING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"(?im)^[ \t]*<({SCRATCH})(?:\s[^>\n]*)?>")).ok());
static CLOSING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)</({SCRATCH})\s*>")).ok());
static WRAPPER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?im)^[ \t]*</?(?:summary|memory|answer|output|result|session[_-]?memory|prior_memory|updated_memory)(?:\s[^>\n]*)?>[ \t]*").ok()
});

/// The text without what the model thought aloud, and without marks around the whole.
///
/// A block counts only if its mark begins a line: in JSON and in items of Markdown no text does.
pub(super) fn without_scratch(text: &str) -> String {
    let (Some(opening), Some(closing), Some(wrapper)) =
        (OPENING.as_ref(), CLOSING.as_ref(), WRAPPER.as_ref())
    else {
        return text.to_owned();
    };
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    // The opening mark may stand in the prompt of the server, so that only the closing one arrives.
    if let Some(first) = closing.find(rest)
        && opening
            .find(rest)
            .is_none_or(|open| open.start() > first.start())
        && !rest[..first.start()].contains(['{', '#'])
    {
        rest = &rest[first.end()..];
    }
    while let Some(open) = opening.captures(rest) {
        let Some(mark) = open.get(0) else { break };
        let name = open.get(1).map_or("", |name| name.as_str());
        kept.push_str(&rest[..mark.start()]);
        let close = closing
            .captures_iter(&rest[mark.end()..])
            .find(|close| {
                close
                    .get(1)
                    .is_some_and(|close| close.as_str().eq_ignore_ascii_case(name))
            })
            .and_then(|close| close.get(0));
        match close {
            Some(close) => rest = &rest[mark.end() + close.end()..],
            // Never closed: all of it is thought.
            None => rest = "",
        }
    }
    kept.push_str(rest);
    wrapper.replace_all(&kept, "").into_owned()
}

#[cfg(test)]
mod tests;
