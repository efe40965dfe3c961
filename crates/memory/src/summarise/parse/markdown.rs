//! The six headings, and headings that mean the same.

use super::{ITEMS_MAX, entry_of};
use crate::document::{Entry, Item, RequestKind, Section, Status};
use crate::render::markdown::{ANSWER, Heading, item_lines};
use crate::summarise::answer::NewItem;

/// The line of an item as it is compared with what a model wrote; empty for an item that says nothing.
pub(in crate::summarise) fn line_of(item: &Item) -> String {
    bare(item_lines(item).trim()).to_owned()
}

/// The items below known headings. `None` if there is no such heading.
pub(super) fn read(text: &str) -> Option<Vec<NewItem>> {
    let mut is_known = false;
    let mut under = None;
    let mut is_answered = false;
    let mut is_fenced = false;
    let mut said: Vec<NewItem> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim().trim_start_matches("| ");
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_fenced = !is_fenced;
            continue;
        }
        if trimmed.is_empty() || trimmed.chars().all(|c| matches!(c, '-' | '=' | '*' | '_')) {
            continue;
        }
        if let Some(title) = heading(trimmed)
            && (!is_fenced || !is_known)
        {
            let found = under_title(&title);
            is_known |= found.is_some();
            // Below a heading of the model's own, lines describe the state.
            under = Some(found.unwrap_or(Under::State));
            is_answered = false;
            continue;
        }
        // What comes before the first heading is talk.
        let Some(under) = under else { continue };
        if said.len() >= ITEMS_MAX {
            break;
        }
        match trimmed {
            "Answered:" => is_answered = true,
            "Open:" => is_answered = false,
            _ => {
                let starts_item = bullet(trimmed).is_some() || !line.starts_with([' ', '\t']);
                match said.last_mut() {
                    Some(last) if is_fenced || !starts_item => push_line(last, trimmed),
                    _ => said.extend(item(under, trimmed, is_answered)),
                }
            }
        }
    }
    is_known.then_some(said)
}

/// What a heading says about the lines below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    /// The goal.
    Intent,
    /// Finished work.
    Done,
    /// Corrections, errors and what was ruled out.
    Trouble,
    /// The state of things, and decisions.
    State,
    /// Decisions only.
    Decisions,
    /// Next steps and questions.
    Pending,
    /// Questions only.
    Questions,
    /// References and results.
    References,
    /// The ledger.
    Rules,
}

/// The title, if the line is a heading: `## Title`, `**Title**` or `**Title:**`.
fn heading(line: &str) -> Option<String> {
    let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = if (1..=6).contains(&hashes) && line[hashes..].starts_with([' ', '\t', '*']) {
        &line[hashes..]
    } else {
        let bold = line.strip_prefix("**")?;
        bold.strip_suffix("**")
            .or_else(|| bold.strip_suffix("**:"))
            .filter(|title| !title.contains("**"))?
    };
    let title = title.trim_matches(|c: char| {
        c.is_whitespace() || c.is_ascii_digit() || c.is_ascii_punctuation()
    });
    Some(title.to_lowercase().replace('&', "and"))
}

fn under_title(title: &str) -> Option<Under> {
    for heading in Heading::ALL {
        if title == heading.title().to_lowercase().replace('&', "and") {
            return Some(match heading {
                Heading::UserIntent => Under::Intent,
                Heading::CompletedWork => Under::Done,
                Heading::ErrorsAndCorrections => Under::Trouble,
                Heading::ActiveWork => Under::State,
                Heading::PendingTasks => Under::Pending,
                Heading::KeyReferences => Under::References,
            });
        }
    }
    /// Words of a title, the first that fits.
    const WORDS: [(Under, &[&str]); 9] = [
        (
            Under::Rules,
            &[
                "constraint",
                "preference",
                "user rules",
                "instructions from",
            ],
        ),
        (Under::Questions, &["open question", "question", "blocker"]),
        (
            Under::Trouble,
            &[
                "error",
                "correction",
                "ruled out",
                "eliminated",
                "problem",
                "issue",
            ],
        ),
        (Under::Decisions, &["decision"]),
        (
            Under::Done,
            &[
                "done",
                "completed",
                "progress",
                "accomplish",
                "changes made",
            ],
        ),
        (
            Under::Pending,
            &[
                "next",
                "pending",
                "todo",
                "to do",
                "remaining",
                "left to do",
            ],
        ),
        (
            Under::Intent,
            &["goal", "intent", "task", "objective", "request"],
        ),
        (
            Under::State,
            &[
                "state", "status", "active", "current", "context", "summary", "overview",
            ],
        ),
        (
            Under::References,
            &[
                "file",
                "reference",
                "identifier",
                "key value",
                "result",
                "fact",
            ],
        ),
    ];
    WORDS
        .into_iter()
        .find(|(_, words)| words.iter().any(|word| title.contains(word)))
        .map(|(under, _)| under)
}

/// The line without its bullet.
fn bullet(line: &str) -> Option<&str> {
    if let Some(rest) = line
        .strip_prefix("- ")
        .or_else(|| line.strip_prefix("* "))
        .or_else(|| line.strip_prefix("+ "))
        .or_else(|| line.strip_prefix("• "))
        .or_else(|| line.strip_prefix("> "))
    {
        return Some(rest.trim_start_matches("[ ] ").trim_start_matches("[x] "));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=3).contains(&digits) {
        let rest = &line[digits..];
        return rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
    }
    None
}

fn bare(line: &str) -> &str {
    let line = bullet(line).unwrap_or(line).trim();
    line.strip_prefix('\\').unwrap_or(line)
}

/// One line below a heading.
fn item(under: Under, line: &str, is_answered: bool) -> Option<NewItem> {
    let is_tool = line.starts_with("> ");
    let content = bare(line);
    // What was superseded leaves; the ledger's own are put in by code.
    if content.is_empty() || content.starts_with("(superseded)") {
        return None;
    }
    let unlabelled = content
        .strip_prefix("[assistant] ")
        .or_else(|| content.strip_prefix("[tool] "))
        .unwrap_or(content);
    let (text, mut status) = without_state(unlabelled);
    let labelled = |label: &str| {
        let head = text.get(..label.len())?;
        head.eq_ignore_ascii_case(label)
            .then(|| text[label.len()..].trim().to_owned())
    };
    let whole = |section, text: &str| entry_of(section, text.to_owned(), None, None);
    let entry = if let Some(rest) = labelled("Decided:") {
        decision(&rest)
    } else if let Some(rest) = labelled("Ruled out:") {
        let (text, detail) = bracketed(&rest);
        entry_of(Section::EliminatedApproaches, text, detail, None)
    } else if let Some(rest) = labelled("Open:") {
        whole(Section::OpenQuestions, &rest)
    } else if let Some(rest) = labelled("Error:") {
        let (text, how) = resolved(&rest);
        entry_of(Section::Errors, text, how, None)
    } else if let Some(rest) = labelled("(implied)") {
        Entry::NextStep {
            text: rest,
            requested: RequestKind::Implied,
        }
    } else {
        match under {
            Under::Intent => match text.split_once(ANSWER) {
                Some((text, answer)) => entry_of(
                    Section::Task,
                    text.trim().to_owned(),
                    Some(answer.trim().to_owned()),
                    None,
                ),
                None => whole(Section::Task, text),
            },
            Under::Done => whole(Section::CompletedWork, text),
            Under::Trouble if is_tool || text.contains(RESOLVED) => {
                let (text, how) = resolved(text);
                entry_of(Section::Errors, text, how, None)
            }
            // The user's own words, which only code may write: what is not in the ledger yet is judged later.
            Under::Trouble | Under::Rules => whole(Section::Corrections, text),
            Under::State => whole(Section::CurrentState, text),
            Under::Decisions => decision(text),
            Under::Questions => whole(Section::OpenQuestions, text),
            Under::Pending => Entry::NextStep {
                text: text.to_owned(),
                requested: RequestKind::Explicit,
            },
            Under::References if is_tool => match text.split_once(": ") {
                Some((key, summary)) => Entry::ToolResult {
                    key: key.to_owned(),
                    summary: summary.to_owned(),
                },
                None => whole(Section::References, text),
            },
            Under::References => whole(Section::References, text),
        }
    };
    if is_answered && matches!(entry, Entry::Task { .. }) {
        status = Status::Resolved;
    }
    if let Entry::Error {
        resolution: Some(_),
        ..
    } = &entry
    {
        status = Status::Resolved;
    }
    Some(NewItem {
        status,
        line: Some(content.to_owned()),
        ..NewItem::new(entry)
    })
}

/// Goes on with an item that has several lines.
fn push_line(said: &mut NewItem, line: &str) {
    if let Some(text) = said.entry.texts_mut().next() {
        text.push('\n');
        text.push_str(line);
    }
    said.line = None;
}

/// The text without the words at its end that say whether the matter is open.
fn without_state(text: &str) -> (&str, Status) {
    for end in [" (done)", " (answered)", " (resolved)"] {
        if let Some(text) = text.strip_suffix(end) {
            return (text, Status::Resolved);
        }
    }
    (text, Status::Active)
}

const RESOLVED: &str = " → resolved: ";

fn resolved(text: &str) -> (String, Option<String>) {
    match text.split_once(RESOLVED) {
        Some((text, how)) => (text.to_owned(), Some(how.to_owned())),
        None => (text.to_owned(), None),
    }
}

fn decision(text: &str) -> Entry {
    let (decision, inside) = bracketed(text);
    let (reason, constraint) = match inside {
        None => (None, None),
        Some(inside) => match inside.strip_prefix("constraint: ") {
            Some(constraint) => (None, Some(constraint.to_owned())),
            None => match inside.split_once("; constraint: ") {
                Some((reason, constraint)) => {
                    (Some(reason.to_owned()), Some(constraint.to_owned()))
                }
                None => (Some(inside), None),
            },
        },
    };
    entry_of(Section::KeyDecisions, decision, reason, constraint)
}

/// The text, and the part in brackets at its end.
fn bracketed(text: &str) -> (String, Option<String>) {
    let whole = || (text.to_owned(), None);
    let Some(inner) = text.strip_suffix(')') else {
        return whole();
    };
    let mut depth = 1_usize;
    for (at, byte) in inner.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let before = inner[..at].trim_end();
            if before.is_empty() || before.len() == at {
                return whole();
            }
            return (before.to_owned(), Some(inner[at + 1..].to_owned()));
        }
    }
    whole()
}
