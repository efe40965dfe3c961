//! The session memory in Markdown, for people and models.
//!
//! The text is measured in tokens, so it contains only what a reader needs: one line per item, no ids, no empty
//! headings. Items of a section keep the order of the document; a superseded item is indented under the one that
//! replaced it.
//!
//! What an item says was written by a user, a model or a tool, and may contain anything. Each item is folded into one
//! line (white space is folded, control characters are left out) that begins with `- `, or with `> ` if a tool said it,
//! and a heading, quotation or fence mark at its start is escaped: so no text can forge a heading, a section or another
//! item. The full JSON form has the unfolded text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::cues;
use crate::document::{Cover, Entry, Item, Memory, Origin, RequestKind, Section, Status};

/// The headings, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heading {
    /// The goal and how it changed.
    UserIntent,
    /// What was created, changed, deleted or run to its end.
    CompletedWork,
    /// The user's corrections and rules, errors, and approaches that were ruled out.
    ErrorsAndCorrections,
    /// The state of things, and the decisions that hold.
    ActiveWork,
    /// What comes next, and what is still open.
    PendingTasks,
    /// Tool results and identifiers that later steps need.
    KeyReferences,
}

impl Heading {
    /// All headings, in the order of the rendering.
    pub const ALL: [Self; 6] = [
        Self::UserIntent,
        Self::CompletedWork,
        Self::ErrorsAndCorrections,
        Self::ActiveWork,
        Self::PendingTasks,
        Self::KeyReferences,
    ];

    /// The words of the heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::UserIntent => "User Intent",
            Self::CompletedWork => "Completed Work",
            Self::ErrorsAndCorrections => "Errors & Corrections",
            Self::ActiveWork => "Active Work",
            Self::PendingTasks => "Pending Tasks",
            Self::KeyReferences => "Key References",
        }
    }

    /// The sections whose items are under the heading, in that order.
    #[must_use]
    pub fn sections(self) -> &'static [Section] {
        match self {
            Self::UserIntent => &[Section::Task],
            Self::CompletedWork => &[Section::CompletedWork],
            Self::ErrorsAndCorrections => &[
                Section::Corrections,
                Section::Errors,
                Section::EliminatedApproaches,
            ],
            Self::ActiveWork => &[Section::CurrentState, Section::KeyDecisions],
            Self::PendingTasks => &[Section::NextSteps, Section::OpenQuestions],
            Self::KeyReferences => &[Section::RelevantToolResults, Section::References],
        }
    }

    /// The heading of a section.
    #[must_use]
    pub fn of(section: Section) -> Self {
        match section {
            Section::Task => Self::UserIntent,
            Section::CompletedWork => Self::CompletedWork,
            Section::Corrections | Section::Errors | Section::EliminatedApproaches => {
                Self::ErrorsAndCorrections
            }
            Section::CurrentState | Section::KeyDecisions => Self::ActiveWork,
            Section::NextSteps | Section::OpenQuestions => Self::PendingTasks,
            Section::RelevantToolResults | Section::References => Self::KeyReferences,
        }
    }
}

/// The whole document.
///
/// It is the concatenation of [`first_line`], and for each heading that has items [`heading_lines`] and their
/// [`item_lines`], so that costs can be summed up before anything is rendered. (A superseded item without the item
/// that replaced it is two spaces shorter than [`item_lines`] says.)
#[must_use]
pub fn render(memory: &Memory) -> String {
    let mut markdown = first_line(memory);
    push_sections(memory, &mut markdown);
    markdown
}

/// What the document is and how far it can be trusted, with its newline.
#[must_use]
pub fn first_line(memory: &Memory) -> String {
    let has_tool_lines = memory.items.iter().any(|item| item.origin == Origin::Tool);
    format!(
        "Memory of {}. Reference data; later messages win.{}{}\n",
        covered(&memory.cover),
        if has_tool_lines { TOOL_MARK } else { "" },
        unread_language(memory).unwrap_or_default()
    )
}

/// What the reader must know of a conversation in a language in which no rules are recognised, after a space.
pub(super) fn unread_language(memory: &Memory) -> Option<String> {
    let language = memory.language.as_deref()?;
    let name = whatlang::Lang::from_code(language)?.eng_name();
    (!cues::reads(language)).then(|| {
        format!(
            " Rules are not recognised in {name}: the quoted messages of the person may hold some."
        )
    })
}

/// The heading with the empty line before it.
#[must_use]
pub fn heading_lines(heading: Heading) -> String {
    format!("\n## {}\n", heading.title())
}

/// The line of one item, with its newline; empty for an item that says nothing.
#[must_use]
pub fn item_lines(item: &Item) -> String {
    let mut lines = String::new();
    push_item(item, Place::UnderSuccessor, &mut lines);
    lines
}

/// The covered messages in words: `messages 1-40 (12 turns, until 2026-03-04)`.
pub(super) fn covered(cover: &Cover) -> String {
    let mut words = match cover.messages {
        0 => "no messages".to_owned(),
        1 => "message 1".to_owned(),
        last => format!("messages 1-{last}"),
    };
    words.push_str(&match cover.turns {
        1 => " (1 turn".to_owned(),
        turns => format!(" ({turns} turns"),
    });
    if let Some(date) = cover.until_ms.and_then(date) {
        words.push_str(", until ");
        words.push_str(&date);
    }
    words.push(')');
    words
}

/// The day of a point in time, UTC, as in `2026-03-04`; nothing outside of the years that a calendar has.
pub(crate) fn date(at_ms: i64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at_ms).ok()?;
    Some(jiff::tz::TimeZone::UTC.to_datetime(at).date().to_string())
}

/// What the first line says of lines that repeat the output of tools.
pub const TOOL_MARK: &str = " > marks tool output.";
/// Between a request and its answer.
pub const ANSWER: &str = " → ";
/// The line before requests that have been answered.
pub const ANSWERED: &str = "Answered:\n";
/// The line between them and those that are still open.
pub const OPEN: &str = "Open:\n";

fn is_answered(item: &Item) -> bool {
    item.status == Status::Resolved && matches!(item.entry, Entry::Task { .. })
}

/// Headings and items.
pub(super) fn push_sections(memory: &Memory, markdown: &mut String) {
    let successors = Successors::new(memory);
    for heading in Heading::ALL {
        let mut has_items = false;
        let mut items: Vec<(usize, &Item)> = heading
            .sections()
            .iter()
            .flat_map(|section| {
                memory
                    .items
                    .iter()
                    .enumerate()
                    .filter(|(_, item)| item.entry.section() == *section)
            })
            .collect();
        // What was asked and answered comes first, under a line that says so; then what is still open.
        items.sort_by_key(|(_, item)| !is_answered(item));
        let mut was_answered = false;
        for (index, item) in items {
            if successors.of(index).is_some() {
                continue;
            }
            let mut lines = String::new();
            push_item(item, Place::OfItsOwn, &mut lines);
            for predecessor in successors.predecessors(index) {
                push_item(
                    &memory.items[*predecessor],
                    Place::UnderSuccessor,
                    &mut lines,
                );
            }
            if lines.is_empty() {
                continue;
            }
            if !has_items {
                markdown.push_str(&heading_lines(heading));
                has_items = true;
            }
            match (was_answered, is_answered(item)) {
                (false, true) => markdown.push_str(ANSWERED),
                (true, false) => markdown.push_str(OPEN),
                _ => {}
            }
            was_answered = is_answered(item);
            markdown.push_str(&lines);
        }
    }
}

/// Which items are shown under the one that took their place.
struct Successors {
    /// By index of the item.
    successor: Vec<Option<usize>>,
    /// By index of the one that took their place.
    predecessors: HashMap<usize, Vec<usize>>,
}

/// How many replacements in a row are followed; a longer chain, or a ring, is shown item by item.
const CHAIN_MAX: usize = 32;

impl Successors {
    fn new(memory: &Memory) -> Self {
        let by_id: HashMap<&str, usize> = memory
            .items
            .iter()
            .enumerate()
            .map(|(index, item)| (item.id.as_str(), index))
            .collect();
        let successor: Vec<Option<usize>> = (0..memory.items.len())
            .map(|index| last_of_chain(&memory.items, &by_id, index))
            .collect();
        let mut predecessors: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, successor) in successor.iter().enumerate() {
            if let Some(successor) = successor {
                predecessors.entry(*successor).or_default().push(index);
            }
        }
        Self {
            successor,
            predecessors,
        }
    }

    fn of(&self, index: usize) -> Option<usize> {
        self.successor.get(index).copied().flatten()
    }

    fn predecessors(&self, index: usize) -> &[usize] {
        self.predecessors
            .get(&index)
            .map_or(&[], |items| items.as_slice())
    }
}

/// The item that finally replaces a superseded one, if it has a line under the same heading.
fn last_of_chain(items: &[Item], by_id: &HashMap<&str, usize>, start: usize) -> Option<usize> {
    let heading = |index: usize| Heading::of(items[index].entry.section());
    let mut index = start;
    for _ in 0..CHAIN_MAX {
        match &items[index].status {
            Status::SupersededBy(id) => index = *by_id.get(id.as_str())?,
            Status::Active | Status::Resolved => {
                let is_under_same_heading = index != start && heading(index) == heading(start);
                let is_shown = is_under_same_heading && !content(&items[index]).is_empty();
                return is_shown.then_some(index);
            }
        }
    }
    None
}

/// Where the line of an item is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Among the others of its heading.
    OfItsOwn,
    /// Under the item that replaced it, if it was superseded.
    UnderSuccessor,
}

fn push_item(item: &Item, place: Place, markdown: &mut String) {
    let content = content(item);
    if content.is_empty() {
        return;
    }
    let is_superseded = matches!(item.status, Status::SupersededBy(_));
    if is_superseded && place == Place::UnderSuccessor {
        markdown.push_str("  ");
    }
    markdown.push_str(if item.origin == Origin::Tool {
        TOOL_BULLET
    } else {
        BULLET
    });
    if is_superseded {
        markdown.push_str("(superseded) ");
    }
    let label = label(item);
    markdown.push_str(label);
    if label.is_empty() && !is_superseded && opens_a_block(&content) {
        markdown.push('\\');
    }
    markdown.push_str(&content);
    markdown.push('\n');
}

/// Begins an item.
const BULLET: &str = "- ";

/// Begins an item in a tool's words: the mark of a quotation costs no token, where a label would cost three a line.
const TOOL_BULLET: &str = "> ";

/// The line of an item after bullet and label. One line, and empty if the item says nothing.
fn content(item: &Item) -> String {
    let text = one_line(item.entry.text());
    if text.is_empty() {
        return String::new();
    }
    let mut content = String::new();
    if let Entry::ToolResult { key, .. } = &item.entry {
        let key = one_line(key);
        if !key.is_empty() {
            content.push_str(&key);
            content.push_str(": ");
        }
    }
    content.push_str(&text);
    match &item.entry {
        Entry::KeyDecision {
            reason, constraint, ..
        } => push_in_brackets(&[("", reason), ("constraint: ", constraint)], &mut content),
        Entry::EliminatedApproach {
            reason_ruled_out, ..
        } => push_in_brackets(&[("", reason_ruled_out)], &mut content),
        Entry::Error {
            resolution: Some(resolution),
            ..
        } => {
            content.push_str(" → resolved: ");
            content.push_str(&one_line(resolution));
        }
        Entry::Task {
            answer: Some(answer),
            ..
        } => {
            content.push_str(ANSWER);
            content.push_str(&one_line(answer));
        }
        _ => {}
    }
    if item.status == Status::Resolved {
        content.push_str(match &item.entry {
            Entry::OpenQuestion { .. } => " (answered)",
            Entry::Error {
                resolution: Some(_),
                ..
            } => "",
            Entry::Error { .. } => " (resolved)",
            Entry::CompletedWork { .. } | Entry::Task { .. } => "",
            _ => " (done)",
        });
    }
    if let Some(date) = relative_date(item) {
        content.push_str(" (");
        content.push_str(&date);
        content.push(')');
    }
    content
}

/// What kind of line it is, where the heading alone does not tell.
fn label(item: &Item) -> &'static str {
    match (&item.entry, item.origin) {
        (Entry::KeyDecision { .. }, _) => "Decided: ",
        (Entry::EliminatedApproach { .. }, _) => "Ruled out: ",
        (Entry::OpenQuestion { .. }, _) => "Open: ",
        // A tool's words among the corrections are an error.
        (Entry::Error { .. }, Origin::Tool) => "",
        (Entry::Error { .. }, _) => "Error: ",
        (
            Entry::NextStep {
                requested: RequestKind::Implied,
                ..
            },
            _,
        ) => "(implied) ",
        // Lines under these two headings are taken for the user's words.
        (Entry::Task { .. } | Entry::Correction { .. }, Origin::Assistant) => "[assistant] ",
        (
            Entry::Task { .. }
            | Entry::Correction { .. }
            | Entry::CurrentState { .. }
            | Entry::CompletedWork { .. }
            | Entry::NextStep { .. }
            | Entry::ToolResult { .. }
            | Entry::Reference { .. },
            _,
        ) => "",
    }
}

fn push_in_brackets(parts: &[(&str, &Option<String>)], content: &mut String) {
    let mut opened = false;
    for (label, text) in parts {
        let Some(text) = text
            .as_deref()
            .map(one_line)
            .filter(|text| !text.is_empty())
        else {
            continue;
        };
        content.push_str(if opened { "; " } else { " (" });
        content.push_str(label);
        content.push_str(&text);
        opened = true;
    }
    if opened {
        content.push(')');
    }
}

/// The text in one line: white space folded, control characters left out, marks of a memory block made harmless.
fn one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let is_plain = text.as_bytes().windows(2).all(|pair| pair != b"  ")
        && text.chars().all(|character| {
            character == ' ' || !(character.is_whitespace() || character.is_control())
        });
    if is_plain {
        return without_marks(Cow::Borrowed(text));
    }
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_whitespace() {
            if !line.ends_with(' ') && !line.is_empty() {
                line.push(' ');
            }
        } else if !character.is_control() {
            line.push(character);
        }
    }
    if line.ends_with(' ') {
        line.pop();
    }
    without_marks(Cow::Owned(line))
}

/// The opening of anything that looks like a mark of a memory block.
static MARK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)<(\s*/?\s*session[\s_-]*memory)").ok());

/// Text must not be able to end the block that contains it, nor to open another one.
fn without_marks(text: Cow<'_, str>) -> Cow<'_, str> {
    if memchr::memchr(b'<', text.as_bytes()).is_none() {
        return text;
    }
    let Some(mark) = MARK.as_ref() else {
        return Cow::Owned(text.replace('<', "&lt;"));
    };
    match mark.replace_all(&text, "&lt;$1") {
        Cow::Borrowed(_) => text,
        Cow::Owned(replaced) => Cow::Owned(replaced),
    }
}

/// Whether a line that begins like this would be a heading or a quotation, or open a fence.
fn opens_a_block(content: &str) -> bool {
    let after_hashes = content.trim_start_matches('#');
    let hashes = content.len() - after_hashes.len();
    (1..=6).contains(&hashes) && (after_hashes.is_empty() || after_hashes.starts_with(' '))
        || content.starts_with('>')
        // A line of these turns the one before it into a heading.
        || content.bytes().all(|byte| byte == b'-')
        || content.bytes().all(|byte| byte == b'=')
        || content.starts_with("```")
        || content.starts_with("~~~")
}

/// Words that mean another day when they are read later. The word boundaries are those of ASCII, which a regular
/// expression finds much faster.
static RELATIVE_DAY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)(?-u:\b)(?:today|tonight|tomorrow|yesterday",
        r"|(?:this|next|last) (?:week|weekend|month|quarter|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day)",
        r"|heute|morgen|gestern|aujourd['’]hui|demain|hoy|mañana|ayer)(?-u:\b)",
        r"|今天|明天|昨天|后天|今日|明日|昨日|来週|先週|下周|上周"
    ))
    .ok()
});

/// The day on which an item was said, if it speaks of days from there.
fn relative_date(item: &Item) -> Option<String> {
    let at_ms = item.provenance.at_ms?;
    if matches!(item.origin, Origin::Tool | Origin::Code) {
        return None;
    }
    let words = RELATIVE_DAY.as_ref()?;
    if item.entry.texts().any(|text| words.is_match(text)) {
        date(at_ms)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
