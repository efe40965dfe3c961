//! Reads the text of an answer: JSON in two forms, and the six headings.
//!
//! Reading is tolerant of what surrounds the answer (reasoning in marks, code fences, a sentence before it) and
//! strict about its shape. Markdown headings are taken by what they mean, because models rename them.

mod json;
mod markdown;

use std::sync::LazyLock;

use regex::Regex;

use super::answer::{AnswerContent, AnswerForm, ParseError};
use crate::document::{Entry, RequestKind, Section};

pub(super) use json::whole_entries;
pub(super) use markdown::line_of;

/// Items and edits that are read from one answer; what comes after them is no memory.
pub(super) const ITEMS_MAX: usize = 2_000;

/// The longest answer that is read, bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reads an answer.
pub(super) fn parse(text: &str, wanted: AnswerForm) -> Result<AnswerContent, ParseError> {
    let text = without_scratch(text);
    // The content counts, not its form.
    let whole = |said| match wanted {
        AnswerForm::Edits => AnswerContent::Additions(said),
        AnswerForm::Items | AnswerForm::Markdown => AnswerContent::Whole(said),
    };
    if wanted == AnswerForm::Markdown {
        return match markdown::read(&text) {
            Some(said) => Ok(whole(said)),
            None => json::read(&text, wanted).map_err(|_| ParseError::NoStructure),
        };
    }
    json::read(&text, wanted).or_else(|error| markdown::read(&text).map(whole).ok_or(error))
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
        Section::Task => Entry::Task {
            text,
            answer: detail,
        },
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
                Some("explicit") => RequestKind::Explicit,
                _ => RequestKind::Implied,
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
    // The opening mark may be in the server's prompt, so that only the closing one arrives.
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
