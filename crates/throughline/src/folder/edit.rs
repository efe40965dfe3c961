//! What a person changed in `session-memory.md`, and the memory with these changes.
//!
//! The edited text is compared with the text that was written, line by line under each heading. A line that is
//! unchanged leaves its item alone; a similar line rewords its item, which keeps its id; a missing line removes its item;
//! a new line adds one. The person may change everything, the ledger included.

use std::collections::{HashMap, HashSet, VecDeque};

use throughline_engine::{PIN, Pin};
use throughline_memory::document::{
    Entry, Item, Memory, Origin, Provenance, RequestKind, Section, Status,
};
use throughline_memory::redact::Redactor;
use throughline_memory::render::markdown::{ANSWER, ANSWERED, Heading, OPEN, item_lines};

/// Lines that share at least this part of their words are the same item, reworded.
const SIMILAR_PERCENT: usize = 50;

/// The changes that a person made to the memory file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandEdit {
    changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    Reword {
        id: String,
        new: NewItem,
    },
    Remove {
        id: String,
    },
    /// Items behind another, or at the end of their sections.
    Add {
        after: Option<String>,
        new: Vec<NewItem>,
    },
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
struct NewItem {
    entry: Entry,
    status: Status,
    origin: Origin,
}

impl HandEdit {
    /// What differs between the text that was written for a memory and the text that is there now, and whether the last
    /// line that was written is still there, perhaps reworded.
    pub(super) fn between(memory: &Memory, written: &str, edited: &str) -> (Self, bool) {
        let base = with_items(memory, lines(written));
        let mut is_used = vec![false; base.len()];
        let edited = lines(edited);
        let mut found: Vec<Option<usize>> = edited
            .iter()
            .map(|line| {
                let same = (0..base.len()).find(|&at| {
                    !is_used[at]
                        && base[at].0.heading == line.heading
                        && base[at].0.text == line.text
                })?;
                is_used[same] = true;
                Some(same)
            })
            .collect();
        for (line, found) in edited.iter().zip(&mut found) {
            if found.is_none() {
                let similar = (0..base.len())
                    .filter(|&at| {
                        !is_used[at] && base[at].1.is_some() && base[at].0.heading == line.heading
                    })
                    .map(|at| (similarity(&base[at].0.text, &line.text), at))
                    .filter(|(percent, _)| *percent >= SIMILAR_PERCENT)
                    .max_by_key(|(percent, at)| (*percent, std::cmp::Reverse(*at)));
                if let Some((_, at)) = similar {
                    is_used[at] = true;
                    *found = Some(at);
                }
            }
        }
        let mut changes = Vec::new();
        let mut after: Option<(Option<Heading>, String)> = None;
        for (line, found) in edited.iter().zip(found) {
            let Some(at) = found else {
                let after = after
                    .as_ref()
                    .filter(|(heading, _)| *heading == line.heading);
                let after = after.map(|(_, id)| id.clone());
                match changes.last_mut() {
                    Some(Change::Add { after: before, new }) if *before == after => {
                        new.push(new_item(line, None));
                    }
                    _ => changes.push(Change::Add {
                        after,
                        new: vec![new_item(line, None)],
                    }),
                }
                continue;
            };
            let (was, item) = &base[at];
            let Some(item) = item else { continue };
            after = Some((line.heading, item.id.clone()));
            if was.text == line.text && was.is_answered == line.is_answered {
                continue;
            }
            let mut new = new_item(line, Some((was, item)));
            if was.text == line.text {
                new.entry = item.entry.clone();
            }
            if new.entry != item.entry || new.status != item.status {
                changes.push(Change::Reword {
                    id: item.id.clone(),
                    new,
                });
            }
        }
        let has_last = is_used.last().copied().unwrap_or(true);
        for ((_, item), is_used) in base.iter().zip(is_used) {
            if let Some(item) = item
                && !is_used
            {
                changes.push(Change::Remove {
                    id: item.id.clone(),
                });
            }
        }
        (Self { changes }, has_last)
    }

    /// Whether nothing is changed that a memory holds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The memory with these changes. It need not be the one that was edited: what the edit does not speak of stays as
    /// it is, and applying an edit again changes nothing. `version` is the number that the memory will have.
    #[must_use]
    pub fn apply(&self, memory: &Memory, version: u32) -> Memory {
        let mut memory = memory.clone();
        for change in &self.changes {
            match change {
                Change::Reword { id, new } => reword(&mut memory, id, new, version),
                Change::Remove { id } => memory.items.retain(|item| item.id != *id),
                Change::Add { after, new } => {
                    match after.as_ref().and_then(|id| place_of(&memory, id)) {
                        // Each is put directly behind the other item.
                        Some(after) => {
                            for new in new.iter().rev() {
                                add(&mut memory, Some(after), new, version);
                            }
                        }
                        None => {
                            for new in new {
                                add(&mut memory, None, new, version);
                            }
                        }
                    }
                }
            }
        }
        memory
    }

    /// Ids of the pins whose lines the person removed or reworded: the pins have to go, or they come back.
    #[must_use]
    pub fn unpinned(&self, pins: &[Pin]) -> Vec<String> {
        let changed: HashSet<&str> = self
            .changes
            .iter()
            .filter_map(|change| match change {
                Change::Reword { id, .. } | Change::Remove { id } => Some(id.as_str()),
                Change::Add { .. } => None,
            })
            .collect();
        pins.iter()
            .filter(|pin| changed.contains(pin.item_id().as_str()))
            .map(|pin| pin.id.clone())
            .collect()
    }
}

fn place_of(memory: &Memory, id: &str) -> Option<usize> {
    memory.items.iter().position(|item| item.id == id)
}

fn reword(memory: &mut Memory, id: &str, new: &NewItem, version: u32) {
    let Some(at) = place_of(memory, id) else {
        // Another update dropped it meanwhile, but the person wants it.
        return add(memory, None, new, version);
    };
    if id.starts_with(PIN) {
        // The id is that of the pin, which goes.
        let before = at.checked_sub(1);
        memory.items.remove(at);
        return add(memory, before, new, version);
    }
    let item = &mut memory.items[at];
    if item.entry.section() != new.entry.section() {
        memory.items.remove(at);
        return add(memory, None, new, version);
    }
    if item.entry != new.entry || item.status != new.status {
        item.entry = new.entry.clone();
        item.status = new.status.clone();
        item.origin = new.origin;
        item.touched = version;
    }
}

/// Adds an item that no other says already, behind another of its section or at the end of it.
fn add(memory: &mut Memory, after: Option<usize>, new: &NewItem, version: u32) {
    let section = new.entry.section();
    let is_known = memory.section(section).any(|item| {
        item.entry.text() == new.entry.text() && !matches!(item.status, Status::SupersededBy(_))
    });
    if is_known {
        return;
    }
    // It is said now: behind everything that the memory covers.
    let message = memory.cover.messages.saturating_sub(1);
    let mut id = Item::id_for(section, message, new.entry.text());
    while place_of(memory, &id).is_some() {
        id.push('x');
    }
    let at = after
        .filter(|&after| memory.items[after].entry.section() == section)
        .or_else(|| {
            let mut items = memory.items.iter();
            items.rposition(|item| item.entry.section() <= section)
        })
        .map_or(0, |last| last + 1);
    memory.items.insert(
        at,
        Item {
            id,
            entry: new.entry.clone(),
            origin: new.origin,
            provenance: Provenance {
                message,
                at_ms: memory.cover.until_ms,
            },
            status: new.status.clone(),
            touched: version,
        },
    );
}

/// A line of the file, which may be that of an item.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    /// None outside of the headings that a memory has.
    heading: Option<Heading>,
    /// Whether it is among the answered requests.
    is_answered: bool,
    /// With its bullet, without indentation.
    text: String,
}

fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut heading = None;
    let mut is_answered = false;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(title) = title(trimmed) {
            heading = heading_of(title);
            is_answered = false;
        } else if heading == Some(Heading::UserIntent) && trimmed == ANSWERED.trim_end() {
            is_answered = true;
        } else if heading == Some(Heading::UserIntent) && trimmed == OPEN.trim_end() {
            is_answered = false;
        } else if trimmed.is_empty() || (number == 0 && trimmed.starts_with("Memory of ")) {
        } else if let Some(last) = lines.last_mut()
            && line.starts_with([' ', '\t'])
            && bullet(trimmed).is_none()
        {
            // The rest of an item that was broken into several lines.
            last.text.push(' ');
            last.text.push_str(trimmed);
        } else {
            let text = match bullet(trimmed) {
                Some((Origin::Tool, text)) => format!("> {text}"),
                Some((_, text)) => format!("- {text}"),
                None => format!("- {trimmed}"),
            };
            if text.len() > 2 {
                lines.push(Line {
                    heading,
                    is_answered,
                    text,
                });
            }
        }
    }
    lines
}

fn title(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let is_heading = line.len() > title.len() && title.starts_with([' ', '\t']);
    is_heading.then(|| title.trim())
}

fn heading_of(title: &str) -> Option<Heading> {
    Heading::ALL
        .into_iter()
        .find(|heading| heading.title().eq_ignore_ascii_case(title))
}

/// Whose words the line holds, and what follows its bullet.
fn bullet(line: &str) -> Option<(Origin, &str)> {
    if let Some(text) = line.strip_prefix("> ") {
        return Some((Origin::Tool, text.trim()));
    }
    ["- ", "* ", "+ "]
        .into_iter()
        .find_map(|bullet| line.strip_prefix(bullet))
        .or_else(|| (line.len() == 1 && "->*+".contains(line)).then_some(""))
        .map(|text| (Origin::User, text.trim()))
}

/// Whether the text has one of the headings of a memory.
pub(super) fn has_heading(text: &str) -> bool {
    text.lines()
        .any(|line| title(line.trim()).and_then(heading_of).is_some())
}

/// The lines of the text that was written, with their items.
fn with_items(memory: &Memory, written: Vec<Line>) -> Vec<(Line, Option<&Item>)> {
    let mut items: HashMap<(Heading, String), VecDeque<&Item>> = HashMap::new();
    for item in &memory.items {
        let heading = Heading::of(item.entry.section());
        let text = item_lines(item).trim().to_owned();
        items.entry((heading, text)).or_default().push_back(item);
    }
    written
        .into_iter()
        .map(|line| {
            let item = line.heading.and_then(|heading| {
                let items = items.get_mut(&(heading, line.text.clone()))?;
                // Of two that say the same, the one whose status the line shows.
                let at = items.iter().position(|item| {
                    line.is_answered
                        == (item.status == Status::Resolved
                            && item.entry.section() == Section::Task)
                });
                items.remove(at.unwrap_or(0))
            });
            (line, item)
        })
        .collect()
}

/// How many of their words two lines share, in percent.
fn similarity(one: &str, other: &str) -> usize {
    let words = |line: &str| -> Vec<String> {
        let words = line.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (one, other) = (words(one), words(other));
    let total = one.len() + other.len();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in &one {
        *counts.entry(word).or_default() += 1;
    }
    let shared = other
        .iter()
        .filter(|word| match counts.get_mut(word.as_str()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        })
        .count();
    (shared * 200).checked_div(total).unwrap_or(0)
}

const SUPERSEDED: &str = "(superseded) ";
const RESOLVED: &str = " → resolved: ";

/// What a line says. `was` is the line that it rewords, and its item.
fn new_item(line: &Line, was: Option<(&Line, &Item)>) -> NewItem {
    let (origin, text) = bullet(&line.text).unwrap_or((Origin::User, &line.text));
    let old = was.map(|(_, item)| item);
    let mut text = text;
    let mut status = Status::Active;
    if let Some(item) = old
        && matches!(item.status, Status::SupersededBy(_))
        && let Some(rest) = text.strip_prefix(SUPERSEDED)
    {
        text = rest;
        status = item.status.clone();
    }
    text = text.strip_prefix('\\').unwrap_or(text);
    text = text.strip_prefix("[assistant] ").unwrap_or(text);
    if let Some((was, item)) = was {
        text = without_date(text, &was.text, item);
    }
    for end in [" (done)", " (answered)", " (resolved)"] {
        if let Some(rest) = text.strip_suffix(end)
            && status == Status::Active
        {
            text = rest;
            status = Status::Resolved;
        }
    }
    let text = Redactor::embedded().redact(text);
    let entry = entry(line.heading, origin, &text, old);
    match &entry {
        Entry::Task { .. } if line.is_answered => status = Status::Resolved,
        Entry::Error {
            resolution: Some(_),
            ..
        } if status == Status::Active => status = Status::Resolved,
        // Nothing in the line says whether it is resolved.
        Entry::CompletedWork { .. } if status == Status::Active => {
            if let Some(item) = old {
                status = item.status.clone();
            }
        }
        _ => {}
    }
    NewItem {
        entry,
        status,
        origin,
    }
}

/// The text without the day that was added behind it because it speaks of days from there.
fn without_date<'a>(text: &'a str, was: &str, item: &Item) -> &'a str {
    const DATE: usize = " (2026-03-04)".len();
    let Some((rest, date)) = text
        .len()
        .checked_sub(DATE)
        .and_then(|at| text.split_at_checked(at))
    else {
        return text;
    };
    let is_added = was.ends_with(date)
        && date.starts_with(" (")
        && date.ends_with(')')
        && date[2..DATE - 1]
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
        && !item.entry.texts().any(|text| text.ends_with(date));
    if is_added { rest } else { text }
}

fn entry(heading: Option<Heading>, origin: Origin, text: &str, old: Option<&Item>) -> Entry {
    let owned = |text: &str| text.trim().to_owned();
    if let Some(rest) = text.strip_prefix("Decided: ") {
        return decision(rest);
    }
    if let Some(rest) = text.strip_prefix("Ruled out: ") {
        let (approach, reason_ruled_out) = in_brackets(rest);
        return Entry::EliminatedApproach {
            approach,
            reason_ruled_out,
        };
    }
    if let Some(rest) = text.strip_prefix("Error: ") {
        return error(rest);
    }
    if let Some(rest) = text.strip_prefix("(implied) ") {
        return Entry::NextStep {
            text: owned(rest),
            requested: RequestKind::Implied,
        };
    }
    if heading == Some(Heading::PendingTasks)
        && let Some(rest) = text.strip_prefix("Open: ")
    {
        return Entry::OpenQuestion { text: owned(rest) };
    }
    // Under some headings a line without a label can be of more than one kind: it stays what it was.
    match old.map(|item| &item.entry) {
        Some(Entry::Error { .. }) if origin == Origin::Tool => return error(text),
        Some(Entry::ToolResult { key, .. }) => {
            if let Some(summary) = text.strip_prefix(&format!("{key}: ")) {
                return Entry::ToolResult {
                    key: key.clone(),
                    summary: owned(summary),
                };
            }
            if let Some((key, summary)) = text.split_once(": ") {
                return Entry::ToolResult {
                    key: owned(key),
                    summary: owned(summary),
                };
            }
        }
        _ => {}
    }
    let text = owned(text);
    match heading {
        Some(Heading::UserIntent) => request(&text),
        Some(Heading::CompletedWork) => Entry::CompletedWork { text },
        Some(Heading::ErrorsAndCorrections) if origin == Origin::Tool => error(&text),
        Some(Heading::ActiveWork) => Entry::CurrentState { text },
        Some(Heading::PendingTasks) => Entry::NextStep {
            text,
            requested: RequestKind::Explicit,
        },
        Some(Heading::KeyReferences) => Entry::Reference { text },
        // The person's own words, wherever they are, are kept as such.
        Some(Heading::ErrorsAndCorrections) | None => Entry::Correction { text },
    }
}

fn request(text: &str) -> Entry {
    let (text, answer) = match text.split_once(ANSWER) {
        Some((text, answer)) => (text, Some(answer.trim().to_owned())),
        None => (text, None),
    };
    Entry::Task {
        text: text.trim().to_owned(),
        answer,
    }
}

fn error(text: &str) -> Entry {
    let (text, resolution) = match text.split_once(RESOLVED) {
        Some((text, how)) => (text, Some(how.trim().to_owned())),
        None => (text, None),
    };
    Entry::Error {
        text: text.trim().to_owned(),
        resolution,
    }
}

fn decision(text: &str) -> Entry {
    let (decision, inside) = in_brackets(text);
    let (reason, constraint) = match inside {
        None => (None, None),
        Some(inside) => match inside.split_once("constraint: ") {
            Some(("", constraint)) => (None, Some(constraint.to_owned())),
            Some((reason, constraint)) if reason.ends_with("; ") => (
                Some(reason[..reason.len() - 2].to_owned()),
                Some(constraint.to_owned()),
            ),
            _ => (Some(inside), None),
        },
    };
    Entry::KeyDecision {
        decision,
        reason,
        constraint,
    }
}

/// The text, and what is in the brackets at its end.
fn in_brackets(text: &str) -> (String, Option<String>) {
    let text = text.trim();
    if !text.ends_with(')') {
        return (text.to_owned(), None);
    }
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > 0 {
            continue;
        }
        if byte == b'(' {
            let before = text[..at].trim_end();
            if !before.is_empty() && before.len() < at {
                let inside = &text[at + 1..text.len() - 1];
                return (before.to_owned(), Some(inside.to_owned()));
            }
        }
        break;
    }
    (text.to_owned(), None)
}
