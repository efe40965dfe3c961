//! Recognises statements in the model's prose: decisions, abandoned approaches, finished work, findings, questions,
//! plans.
use std::ops::Range;

use super::rules::{self, Match};
use super::sentences::{list_mark, sentences};

/// What a statement of the model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// A choice.
    Decision,
    /// A way that was tried or considered and left.
    Eliminated,
    /// Something that is done.
    Completed,
    /// The state of things.
    State,
    /// A question to the person.
    OpenQuestion,
    /// Something that comes next.
    NextStep,
    /// A step of a list that is ticked off.
    DoneStep,
    /// A cause or another result of looking into something.
    Finding,
}

/// A statement in the model's prose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// What it is.
    pub kind: StatementKind,
    /// The whole sentence or list entry, without its list mark.
    pub text: &'a str,
    /// Where it is in the text, in bytes.
    pub range: Range<usize>,
    /// What is decided, ruled out or done: the text without its reason and constraint.
    pub claim: &'a str,
    /// Why, where the sentence says so.
    pub reason: Option<&'a str>,
    /// What limits it, where the sentence says so.
    pub constraint: Option<&'a str>,
    /// How sure that is, 0 to 100.
    pub confidence: u8,
}

/// The statements in `text`, the model's prose, in order. Code blocks and tables are skipped. A sentence can make
/// several statements; each is listed.
#[must_use]
pub fn assistant_statements(text: &str) -> Vec<Statement<'_>> {
    let mut out = Vec::new();
    let fallback = rules::guess(text, None);
    let mut list = List::default();
    for block in prose(text) {
        let Some(stretch) = text.get(block.clone()) else {
            continue;
        };
        let mut at = block.start;
        for line in stretch.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let trimmed = line.trim();
            if trimmed.is_empty() {
                continue;
            }
            let offset = start + (line.len() - line.trim_start().len());
            if let Some((is_done, mark)) = checkbox(trimmed) {
                let entry = trimmed.get(mark..).unwrap_or_default().trim();
                if !entry.is_empty() {
                    let from = offset + trimmed.len() - entry.len();
                    let kind = if is_done {
                        StatementKind::DoneStep
                    } else {
                        StatementKind::NextStep
                    };
                    out.push(whole(kind, entry, from, 92));
                }
                continue;
            }
            let mark = list_mark(trimmed);
            let entry = trimmed.get(mark..).unwrap_or_default();
            let is_heading = trimmed.starts_with('#')
                || (trimmed.starts_with("**") && trimmed.ends_with("**"))
                || trimmed.ends_with(':')
                || trimmed.ends_with(":**");
            if is_heading && mark == 0 || trimmed.starts_with('#') {
                list.announce(entry, fallback);
            } else if mark > 0 && !trimmed.starts_with('#') {
                if let Some(kind) = list.kind {
                    if entry.len() <= 400 {
                        out.push(whole(kind, entry, offset + mark, 78));
                    }
                    if kind == StatementKind::NextStep {
                        continue;
                    }
                }
            } else if !line.starts_with([' ', '\t']) {
                list = List::default();
            }
            for range in sentences(line) {
                if let Some(sentence) = line.get(range.clone()) {
                    statements_of(sentence, start + range.start, fallback, &mut out);
                }
            }
        }
    }
    out
}

/// A list and what its heading says it lists.
#[derive(Default)]
struct List {
    kind: Option<StatementKind>,
}

impl List {
    fn announce(&mut self, heading: &str, fallback: Option<&'static str>) {
        let heading = heading.trim_matches(['*', ':', '#', ' ', '_']);
        let lower = heading.to_lowercase();
        const NEXT: [&str; 16] = [
            "next step",
            "todo",
            "to do",
            "to-do",
            "remaining",
            "plan",
            "left to do",
            "what's left",
            "nächste schritte",
            "offen",
            "prochaines étapes",
            "próximos pasos",
            "pendiente",
            "下一步",
            "待办",
            "次のステップ",
        ];
        const DONE: [&str; 10] = [
            "done",
            "completed",
            "what i did",
            "what was done",
            "changes made",
            "changes",
            "summary of changes",
            "erledigt",
            "已完成",
            "完了",
        ];
        const OPEN: [&str; 5] = [
            "open question",
            "questions",
            "offene fragen",
            "blockers",
            "unresolved",
        ];
        const FOUND: [&str; 4] = ["findings", "root cause", "key findings", "what i found"];
        let says =
            |words: &[&str]| heading.len() <= 80 && words.iter().any(|word| lower.contains(word));
        self.kind = if says(&OPEN) {
            Some(StatementKind::OpenQuestion)
        } else if says(&NEXT) {
            Some(StatementKind::NextStep)
        } else if says(&DONE) {
            Some(StatementKind::Completed)
        } else if says(&FOUND) {
            Some(StatementKind::Finding)
        } else {
            let _ = fallback;
            None
        };
    }
}

fn whole(kind: StatementKind, text: &str, start: usize, confidence: u8) -> Statement<'_> {
    Statement {
        kind,
        text,
        range: start..start + text.len(),
        claim: text,
        reason: None,
        constraint: None,
        confidence,
    }
}

/// Whether a list entry has a box, whether it is ticked, and how long the mark is.
fn checkbox(line: &str) -> Option<(bool, usize)> {
    let mark = list_mark(line);
    let rest = line.get(mark..)?;
    let (is_done, len) = if rest.starts_with("[ ]") {
        (false, 3)
    } else if rest.starts_with("[x]") || rest.starts_with("[X]") {
        (true, 3)
    } else if let Some(sign) = ["☐", "⬜", "🔲"]
        .iter()
        .find(|sign| rest.starts_with(*sign))
    {
        (false, sign.len())
    } else if let Some(sign) = ["☑", "☒", "✅", "✔️", "✔", "✓"]
        .iter()
        .find(|sign| rest.starts_with(*sign))
    {
        (true, sign.len())
    } else {
        return None;
    };
    Some((is_done, mark + len))
}

/// Byte ranges of the text outside code fences and tables.
fn prose(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim_start();
        if let Some(mark) = fence {
            if trimmed.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"]
            .into_iter()
            .find(|mark| trimmed.starts_with(mark))
        {
            fence = Some(mark);
            continue;
        }
        if trimmed.starts_with('|') {
            continue;
        }
        match out.last_mut() {
            Some(last) if last.end == start => last.end = at,
            _ => out.push(start..at),
        }
    }
    out
}

fn statements_of<'a>(
    sentence: &'a str,
    start: usize,
    fallback: Option<&'static str>,
    out: &mut Vec<Statement<'a>>,
) {
    const LONG_BYTES: usize = 1500;
    if sentence.len() > LONG_BYTES {
        return;
    }
    let found = rules::matches(sentence, fallback);
    let best = |kind: &str| -> Option<&Match> {
        found
            .iter()
            .filter(|m| m.kind == kind)
            .max_by_key(|m| (m.confidence, std::cmp::Reverse(m.start)))
    };
    let reason_at = found
        .iter()
        .filter(|m| m.kind == "reason")
        .map(|m| m.start)
        .min();
    let constraint_at = found
        .iter()
        .filter(|m| m.kind == "constraint")
        .map(|m| m.start)
        .min();
    let asks = sentence
        .trim_end_matches(['*', '"', ')', ' '])
        .ends_with(['?', '？', '؟']);
    let mut push = |kind: StatementKind, confidence: u8| {
        let parts = Parts::of(sentence, reason_at, constraint_at);
        out.push(Statement {
            kind,
            text: sentence,
            range: start..start + sentence.len(),
            claim: parts.claim,
            reason: parts.reason,
            constraint: parts.constraint,
            confidence,
        });
    };
    if asks {
        let confidence = best("question_to_user").map_or(55, |m| m.confidence.max(60));
        push(StatementKind::OpenQuestion, confidence);
        return;
    }
    if let Some(found) = best("question_to_user") {
        // "Let me know which you prefer." has no question mark.
        if sentence.to_lowercase().contains("let me know")
            || sentence.to_lowercase().contains("please ")
        {
            push(
                StatementKind::OpenQuestion,
                found.confidence.saturating_sub(6),
            );
        }
    }
    if let Some(found) = best("decision") {
        let with_reason = reason_at.is_some_and(|at| at > found.start);
        let confidence = if with_reason {
            found.confidence.max(70).saturating_add(6)
        } else {
            found.confidence
        };
        if confidence >= 66 || with_reason {
            push(StatementKind::Decision, confidence.min(98));
        }
    }
    if let Some(found) = best("eliminated") {
        push(StatementKind::Eliminated, found.confidence);
    }
    if let Some(found) = best("completed") {
        push(StatementKind::Completed, found.confidence);
    }
    if let Some(found) = best("finding") {
        push(StatementKind::Finding, found.confidence);
    }
    if let Some(found) = best("state") {
        push(StatementKind::State, found.confidence);
    }
    if let Some(found) = best("next_step") {
        push(StatementKind::NextStep, found.confidence);
    }
}

struct Parts<'a> {
    claim: &'a str,
    reason: Option<&'a str>,
    constraint: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(sentence: &'a str, reason_at: Option<usize>, constraint_at: Option<usize>) -> Self {
        let clean = |text: &'a str| {
            text.trim()
                .trim_end_matches([',', ';', '.', ' ', '—', '–', '-'])
                .trim()
        };
        let filled = |text: &'a str| Some(clean(text)).filter(|text| text.len() > 3);
        let first = [reason_at, constraint_at]
            .into_iter()
            .flatten()
            .filter(|at| *at > 0)
            .min();
        let claim = first
            .and_then(|at| sentence.get(..at))
            .map_or(clean(sentence), clean);
        let part = |from: Option<usize>, other: Option<usize>| {
            let from = from?;
            let to = other
                .filter(|other| *other > from)
                .unwrap_or(sentence.len());
            filled(sentence.get(from..to)?)
        };
        let claim = if claim.len() < 3 {
            clean(sentence)
        } else {
            claim
        };
        Self {
            claim,
            reason: part(reason_at, constraint_at),
            constraint: part(constraint_at, reason_at),
        }
    }
}
