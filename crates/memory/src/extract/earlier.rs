//! Memories and summaries that a transcript holds of messages before it: they are the only record of those messages.
//!
//! A memory of our own is read back, as a block or in Markdown. A summary of another program is read by its headings.
//! What they say is the memory so far, which the messages after it update.

use std::borrow::Cow;

use throughline_transcript::json::Text;
use throughline_transcript::message::Message;

use super::excerpt::excerpt;
use super::{Extractor, fold};
use crate::cues;
use crate::document::{Cover, Entry, Item, Memory, Origin, Provenance, RequestKind, Status};
use crate::render::markdown::{Heading, heading_lines};
use crate::render::restoring;
use crate::summarise;

/// Items of one summary.
const ITEMS_MAX: usize = 400;
/// Of an item of a summary this much is kept, characters.
const ITEM_CHARACTERS_MAX: usize = 600;

/// How summaries of other programs begin that they put into the user's role.
const OPENINGS: &[&str] = &[
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "The conversation history before this point was compacted into the following summary",
    "<state_snapshot>",
    "[CONTEXT COMPACTION",
];

impl Extractor<'_> {
    /// Takes the memories out of a text of the user's role; returns the rest of it.
    pub(super) fn without_memories<'t>(
        &mut self,
        message: &Message,
        text: &'t str,
    ) -> Cow<'t, str> {
        for block in restoring::blocks(text) {
            self.carry_own(message, block);
        }
        let rest = restoring::without_blocks(text);
        let start = rest.trim_start();
        if is_own_markdown(start) {
            self.carry_own(message, start);
            return Cow::Borrowed("");
        }
        if OPENINGS.iter().any(|opening| start.starts_with(opening)) {
            self.carry_summary(message, start);
            return Cow::Borrowed("");
        }
        rest
    }

    /// Reads a summary that a compaction left in place of messages.
    pub(super) fn compaction(&mut self, message: &Message, text: &Text) {
        let text = text.decode();
        if is_own_markdown(text.trim_start()) {
            self.carry_own(message, &text);
            return;
        }
        for block in restoring::blocks(&text) {
            self.carry_own(message, block);
        }
        self.carry_summary(message, &restoring::without_blocks(&text));
    }

    fn carry_own(&mut self, message: &Message, text: &str) {
        let items = summarise::read_items(text);
        self.carry(message, items);
    }

    fn carry_summary(&mut self, message: &Message, text: &str) {
        self.carry(message, read_summary(text));
    }

    fn carry(&mut self, message: &Message, said: Vec<(Entry, Origin, Status)>) {
        // The messages that it represents are there themselves.
        if !self.requests.is_empty() {
            return;
        }
        let number = self.messages;
        for (mut entry, origin, status) in said.into_iter().take(ITEMS_MAX) {
            for text in entry.texts_mut() {
                *text = excerpt(&fold(&self.without_secrets(text)), ITEM_CHARACTERS_MAX);
            }
            let id = Item::id_for(entry.section(), number, entry.text());
            if entry.text().is_empty() || self.earlier.iter().any(|item| item.id == id) {
                continue;
            }
            self.earlier.push(Item {
                id,
                entry,
                origin,
                provenance: Provenance {
                    message: number,
                    at_ms: message.at_ms,
                },
                status,
                touched: self.version,
            });
        }
    }

    /// The memory of the messages before those of the transcript, where it holds one.
    pub(super) fn earlier_memory(&self) -> Option<Memory> {
        if self.earlier.is_empty() {
            return None;
        }
        let mut items = self.earlier.clone();
        items.sort_by_key(|item| item.entry.section());
        Some(Memory {
            version: self.version.saturating_sub(1),
            cover: Cover::default(),
            language: None,
            items,
        })
    }
}

/// Whether a text is a memory in Markdown.
fn is_own_markdown(text: &str) -> bool {
    text.starts_with("Memory of ")
        && Heading::ALL
            .into_iter()
            .any(|heading| text.contains(heading_lines(heading).as_str()))
}

/// What clients write around a summary.
const FRAME: &[&str] = &[
    "If you need specific details from before compaction",
    "Please continue the conversation from where we left",
    "Please continue with the conversation",
    "Continue the conversation from where",
];

/// What the lines below a heading of a summary say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Goal,
    Said,
    Rules,
    Decisions,
    RuledOut,
    Done,
    Errors,
    State,
    Questions,
    Next,
    References,
    /// Thoughts of the model before the summary.
    Scratch,
}

/// Words of a heading, in lower case, the first that fits.
const KINDS: &[(Kind, &[&str])] = &[
    (Kind::Scratch, &["analysis", "scratchpad", "thinking"]),
    (
        Kind::Said,
        &["user message", "messages of the user", "user said"],
    ),
    (
        Kind::Rules,
        &[
            "instruction",
            "constraint",
            "preference",
            "rule",
            "correction",
            "feedback",
        ],
    ),
    (
        Kind::RuledOut,
        &[
            "ruled out",
            "eliminated",
            "rejected",
            "tried",
            "dead end",
            "did not work",
        ],
    ),
    (Kind::Decisions, &["decision", "decided", "agreed"]),
    (Kind::Errors, &["error", "fixes", "bug", "failure"]),
    (
        Kind::Questions,
        &["question", "blocker", "blocked", "unresolved"],
    ),
    (
        Kind::Next,
        &[
            "next",
            "pending",
            "todo",
            "to do",
            "to-do",
            "remaining",
            "plan",
            "outstanding",
        ],
    ),
    (
        Kind::Goal,
        &["goal", "intent", "task", "objective", "request"],
    ),
    (
        Kind::Done,
        &[
            "done",
            "completed",
            "accomplish",
            "progress",
            "changes",
            "recent action",
            "problem solving",
        ],
    ),
    (
        Kind::State,
        &[
            "state", "status", "current", "active", "summary", "overview", "context",
        ],
    ),
    (
        Kind::References,
        &[
            "file",
            "reference",
            "concept",
            "knowledge",
            "discover",
            "identifier",
            "code",
            "fact",
            "environment",
        ],
    ),
];

/// The entries of a summary, by its headings: all that it says, without blocks of code.
fn read_summary(text: &str) -> Vec<(Entry, Origin, Status)> {
    let mut kind = Kind::State;
    let mut is_fenced = false;
    // What announces the entries that are indented below it, and by how much it is indented.
    let mut lead: Option<(usize, String)> = None;
    let mut said = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_fenced = !is_fenced;
            // It announced the code, which is left out.
            said.extend(lead.take().map(|(_, text)| entry(kind, text)));
            continue;
        }
        if is_fenced
            || trimmed.is_empty()
            || FRAME
                .iter()
                .chain(OPENINGS)
                .any(|frame| trimmed.starts_with(frame))
        {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        if let Some(found) = heading(trimmed, is_indented) {
            kind = found;
            lead = None;
            continue;
        }
        if kind == Kind::Scratch || is_tag(trimmed) {
            continue;
        }
        let bare = trimmed[cues::list_mark(trimmed)..].trim();
        // "src/a.rs:" announces the entries below it.
        if bare.ends_with(':') || bare.starts_with("**") && bare.ends_with("**") {
            lead = Some((indent, bare.trim_matches(['*', ':', ' ']).to_owned()));
            continue;
        }
        if lead.as_ref().is_some_and(|(above, _)| indent <= *above) {
            lead = None;
        }
        let text = match &lead {
            Some((_, lead)) => format!("{lead}: {bare}"),
            None => bare.to_owned(),
        };
        said.push(entry(kind, text));
    }
    said
}

/// What a line announces, if it is a heading: `## Title`, `3. Title:`, `**Title**`, `Title:` or `<title>`.
fn heading(line: &str, is_indented: bool) -> Option<Kind> {
    const WORDS_MAX: usize = 7;
    let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let title = if hashes > 0 {
        &line[hashes..]
    } else if let Some(tag) = line
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
    {
        tag.strip_prefix('/').map_or(tag, |_| "")
    } else if is_indented {
        return None;
    } else if digits > 0 {
        line[digits..].strip_prefix(". ")?.strip_suffix(':')?
    } else if line.starts_with("**") {
        line.strip_suffix("**")
            .or_else(|| line.strip_suffix("**:"))
            .or_else(|| line.strip_suffix(":**"))?
    } else if cues::list_mark(line) == 0 {
        line.strip_suffix(':')?
    } else {
        return None;
    };
    let title = title
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase()
        .replace('_', " ");
    if title.is_empty() || title.split_whitespace().count() > WORDS_MAX || title.contains('.') {
        return None;
    }
    KINDS
        .iter()
        .find(|(_, words)| words.iter().any(|word| title.contains(word)))
        .map(|(kind, _)| *kind)
        .or((hashes > 0).then_some(Kind::State))
}

/// Whether a line is only a mark of an element.
fn is_tag(line: &str) -> bool {
    line.starts_with('<') && line.ends_with('>') && !line.contains(' ')
}

fn entry(kind: Kind, text: String) -> (Entry, Origin, Status) {
    let entry = match kind {
        Kind::Goal | Kind::Said => Entry::Task { text, answer: None },
        Kind::Rules => Entry::Correction { text },
        Kind::Decisions => Entry::KeyDecision {
            decision: text,
            reason: None,
            constraint: None,
        },
        Kind::RuledOut => Entry::EliminatedApproach {
            approach: text,
            reason_ruled_out: None,
        },
        Kind::Done => Entry::CompletedWork { text },
        Kind::Errors => Entry::Error {
            text,
            resolution: None,
        },
        Kind::State | Kind::Scratch => Entry::CurrentState { text },
        Kind::Questions => Entry::OpenQuestion { text },
        Kind::Next => Entry::NextStep {
            text,
            requested: RequestKind::Implied,
        },
        Kind::References => Entry::Reference { text },
    };
    // The model's account of it, also where it reports what the person said.
    let status = match kind {
        Kind::Said => Status::Resolved,
        _ => Status::Active,
    };
    (entry, Origin::Assistant, status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Section;

    #[test]
    fn a_summary_is_read_by_its_headings() {
        let summary = "This session is being continued from a previous conversation that ran out of context.\n\n\
            Analysis:\nLet me think about the quay.\n\nSummary:\n1. Primary Request and Intent:\n   The user wants the tide gauge mended.\n\n\
            2. Files and Code Sections:\n   - `src/gauge.rs`\n     - Reads metres now\n     ```rust\n     fn read() {}\n     ```\n\n\
            3. Errors and fixes:\n   - The feed timed out: raised to 30 s\n\n4. All user messages:\n   - \"mend the gauge\"\n\n\
            5. Pending Tasks:\n   - Paint the mast\n\n6. Current Work:\n   The gauge test is red.\n";
        let said: Vec<(Section, String)> = read_summary(summary)
            .into_iter()
            .map(|(entry, _, _)| (entry.section(), entry.text().to_owned()))
            .collect();
        let expected = [
            (Section::Task, "The user wants the tide gauge mended."),
            (Section::References, "`src/gauge.rs`"),
            (Section::References, "Reads metres now"),
            (Section::Errors, "The feed timed out: raised to 30 s"),
            (Section::Task, "\"mend the gauge\""),
            (Section::NextSteps, "Paint the mast"),
            (Section::CurrentState, "The gauge test is red."),
        ];
        assert_eq!(
            said,
            expected.map(|(section, text)| (section, text.to_owned()))
        );
    }

    #[test]
    fn headings_of_other_programs_are_known() {
        for (line, expected) in [
            ("## Goal", Some(Kind::Goal)),
            ("## Constraints & Preferences", Some(Kind::Rules)),
            ("### In Progress", Some(Kind::Done)),
            ("## Relevant files / directories", Some(Kind::References)),
            ("<overall_goal>", Some(Kind::Goal)),
            ("<key_knowledge>", Some(Kind::References)),
            ("<current_plan>", Some(Kind::Next)),
            ("9. Optional Next Step:", Some(Kind::Next)),
            ("**Key Decisions**", Some(Kind::Decisions)),
            ("The gauge is red.", None),
            ("- Next: paint the mast:", None),
        ] {
            assert_eq!(heading(line, false), expected, "{line}");
        }
    }
}
