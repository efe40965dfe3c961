//! Notes that an agent itself writes to the model in a conversation. They are neither user input nor tool output, so
//! memories leave them out.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;

/// After an answer that was cut off.
pub const CUT_OFF: &str = "<note>Your last answer was cut off at its limit. A call that was not whole was not run. Go on \
                           from there; make such a call again with less in it, in several calls if need be.</note>";
/// Result of a call that was not started.
pub const NOT_RUN: &str = "This call was not run: the user went on without it.";
/// Result of a call that was interrupted, so that its effect is unknown.
pub const BROKEN_OFF: &str = "This call was broken off before it had a result. Some or all of what it does may have been \
                              done: look before you make it again.";
/// Result of a call that needed an approval when no user could give it.
pub const NOBODY_TO_APPROVE: &str = "This call was not run: it needs somebody's approval, and nobody is there to give it. \
                                     Go on without it, or say what you would have done.";
/// Result of a call that the user refused. The user's words about it follow the results.
pub const DENIED: &str =
    "The user denied this operation; it was not run. Do not try to reach the same by another way.";

/// Whether a text is one of these and nothing else, as any of the formats has it.
pub(crate) fn is_note(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    [CUT_OFF, NOT_RUN, BROKEN_OFF, NOBODY_TO_APPROVE, DENIED].contains(&text)
}

/// Whether it is the note of a call that may have been done in part.
pub(crate) fn is_of_half_done(text: &str) -> bool {
    text.contains(BROKEN_OFF)
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    elements: Vec<String>,
    headings: Vec<String>,
    preface: Vec<Preface>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Preface {
    start: String,
    request: String,
}

const TEXT: &str = include_str!("../data/notes.toml");

// A file that does not parse leaves everything in: a test keeps that from being shipped.
static FILE: LazyLock<File> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// A message of the user's without what the agent has put into it.
pub(crate) fn without_notes(text: &str) -> Cow<'_, str> {
    let own = FILE.preface.iter().find_map(|preface| {
        let rest = text.trim_start().strip_prefix(preface.start.as_str())?;
        Some(rest.split_once(preface.request.as_str())?.1.trim())
    });
    let text = own.unwrap_or(text);
    let mut kept = String::new();
    let mut from = 0;
    let mut line = 0;
    // Whether the line has nothing but white space up to here.
    let mut is_blank = true;
    // A name whose closing tag is missing once is missing for the rest of the text.
    let mut unclosed = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + found;
        let passed = &text[at..start];
        if let Some(end) = passed.rfind('\n') {
            line = at + end + 1;
            is_blank = true;
        }
        is_blank &= text[line.max(at)..start].trim().is_empty();
        let end = is_blank.then(|| note_end(&text[start..], &mut unclosed));
        let Some(end) = end.flatten() else {
            at = start + 1;
            is_blank = false;
            continue;
        };
        let before = &text[from..line.max(from)];
        kept.push_str(&before[..before.len() - heading(before)]);
        at = start + end;
        from = at;
        line = at;
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    kept.push_str(&text[from..]);
    Cow::Owned(kept.trim().to_owned())
}

/// Where the note ends that `text` begins with, if it begins with one.
fn note_end(text: &str, unclosed: &mut Vec<&'static str>) -> Option<usize> {
    if text.starts_with(CUT_OFF) {
        return Some(CUT_OFF.len());
    }
    let (name, rest) = FILE.elements.iter().find_map(|name| {
        let rest = text.strip_prefix('<')?.strip_prefix(name.as_str())?;
        Some((name.as_str(), rest.strip_prefix('>')?))
    })?;
    if unclosed.contains(&name) {
        return None;
    }
    let closing = format!("</{name}>");
    let Some(inside) = rest.find(&closing) else {
        unclosed.push(name);
        return None;
    };
    Some(text.len() - rest.len() + inside + closing.len())
}

/// How many bytes at the end are a heading of what follows.
fn heading(before: &str) -> usize {
    let trimmed = before.trim_end();
    let line = trimmed.rfind('\n').map_or(0, |end| end + 1);
    let is_heading = FILE
        .headings
        .iter()
        .any(|heading| trimmed[line..].starts_with(heading.as_str()));
    if is_heading { before.len() - line } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_parses() {
        toml::from_str::<File>(TEXT)
            .map(drop)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(without_notes(text), expected, "{text:?}");
    }

    #[test]
    fn agent_insertions_are_left_out() {
        check("Fix the ferry.", "Fix the ferry.");
        check(
            "<environment_context>\n  <cwd>/srv/quay</cwd>\n</environment_context>",
            "",
        );
        check(
            "# AGENTS.md instructions for /srv/quay\n\n<INSTRUCTIONS>\nAlways use tabs.\n</INSTRUCTIONS>\nFix the ferry.",
            "Fix the ferry.",
        );
        check(
            "Fix the ferry.\n  <system-reminder>Mind the tide.</system-reminder>\nAnd the quay.\n<turn_aborted>\nx\n</turn_aborted>",
            "Fix the ferry.\n\nAnd the quay.",
        );
        check(
            "<permissions instructions>\nread-only\n</permissions instructions>\nGo.",
            "Go.",
        );
        check(
            "# Context from my IDE setup:\n\n## Open tabs:\n- quay.rs\n\n## My request for Codex:\nFix the ferry.\n",
            "Fix the ferry.",
        );
        check(&format!("Fix the ferry.\n\n{CUT_OFF}"), "Fix the ferry.");
    }

    #[test]
    fn words_about_notes_stay() {
        for text in [
            "What does <environment_context>x</environment_context> mean?",
            "<environment_context> is never closed",
            "a < b\n<b>bold</b>",
            "# AGENTS.md instructions are what I want to write",
            "# Context from my IDE setup: what is that?",
            "",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn many_open_elements_take_linear_time() {
        for text in [
            "<skill>\n".repeat(200_000),
            "<".repeat(1_000_000),
            " <skill>".repeat(200_000),
        ] {
            check(&text, &text);
        }
    }
}
