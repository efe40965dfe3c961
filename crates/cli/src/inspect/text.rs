//! The report for people.

use super::report::{Report, Session};
use crate::output::Console;
use crate::selection;
use crate::terminal::harmless;
use crate::words::{counted, number};

/// How many conversations are listed.
const LISTED_MAX: usize = 200;
/// How many tools, errors and problems are shown; the JSON has more.
const SHOWN_MAX: usize = 12;

pub(super) fn write(
    report: &Report<'_>,
    list: Option<Vec<Vec<String>>>,
    console: &Console,
) -> String {
    let mut out = String::new();
    let mut facts = vec![
        fact("file", report.file),
        fact("format", report.format),
        fact("size", &counted(report.bytes, "byte")),
    ];
    if let Some(list) = &list {
        facts.push(fact("conversations", &number(list.len() as u64)));
    }
    if !report.skipped.is_empty() {
        facts.push(fact("skipped", &counted(report.skipped.len(), "place")));
    }
    for session in &report.sessions {
        facts.extend(session_facts(session, report));
    }
    out.push_str(&console.table(&[], facts));
    for session in &report.sessions {
        details(session, console, &mut out);
    }
    if let Some(mut list) = list {
        let count = list.len();
        list.truncate(LISTED_MAX);
        section("conversations", &selection::HEADER, list, console, &mut out);
        if count > LISTED_MAX {
            out.push_str(&format!(
                "... and {} more\n",
                number((count - LISTED_MAX) as u64)
            ));
        }
        out.push_str("\nTo see one: throughline inspect FILE --session ID (or its number)\n");
    }
    out
}

fn fact(name: &str, value: &str) -> Vec<String> {
    vec![name.to_owned(), value.to_owned()]
}

fn session_facts(session: &Session, report: &Report<'_>) -> Vec<Vec<String>> {
    let mut facts = Vec::new();
    let texts = [
        ("session", Some(&session.id)),
        ("started by", session.parent_id.as_ref()),
        ("title", Some(&session.title)),
        ("model", session.model.as_ref()),
        ("folder", session.cwd.as_ref()),
    ];
    for (name, value) in texts {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push(fact(name, value));
        }
    }
    facts.push(fact("messages", &number(session.messages as u64)));
    facts.push(fact("turns", &number(session.turns as u64)));
    facts.push(fact("steps", &number(session.steps as u64)));
    if let (Some(first), Some(last)) = (&session.first_at, &session.last_at) {
        facts.push(fact("time", &format!("{first} to {last}")));
    }
    facts.push(fact(
        "tokens",
        &format!(
            "{} ({})",
            number(session.tokens.total as u64),
            report.counted_in
        ),
    ));
    if session.usage.calls > 0 {
        facts.push(fact(
            "reported",
            &format!(
                "{}, prompt {} at most, {} in the last, output {} in all",
                counted(session.usage.calls, "call"),
                number(session.usage.prompt_max),
                number(session.usage.prompt_last),
                number(session.usage.output)
            ),
        ));
    }
    facts.push(fact("legal cuts", &number(session.legal_cuts as u64)));
    facts
}

fn details(session: &Session, console: &Console, out: &mut String) {
    let tokens = &session.tokens;
    let share = |count: usize| {
        let percent = (count * 100 + tokens.total / 2)
            .checked_div(tokens.total)
            .unwrap_or(0);
        format!("{percent}%")
    };
    let extra = [
        ("system prompt", tokens.system),
        ("tool definitions", tokens.tools),
    ];
    let rows = |parts: Vec<(&str, usize)>| {
        let mut parts: Vec<_> = parts.into_iter().filter(|(_, count)| *count > 0).collect();
        parts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        parts
            .into_iter()
            .map(|(name, count)| vec![name.to_owned(), number(count as u64), share(count)])
            .collect::<Vec<_>>()
    };
    let of = |map: &std::collections::BTreeMap<&'static str, usize>| {
        rows(
            map.iter()
                .map(|(name, count)| (*name, *count))
                .chain(extra)
                .collect(),
        )
    };
    section(
        "tokens by speaker",
        &[],
        of(&tokens.by_speaker),
        console,
        out,
    );
    section("tokens by kind", &[], of(&tokens.by_kind), console, out);

    let largest = session.largest_blocks.iter().take(SHOWN_MAX).map(|block| {
        let what = match &block.tool {
            Some(tool) => format!("{} {tool}", block.kind),
            None => format!("{} {}", block.speaker, block.kind),
        };
        vec![
            number(block.tokens as u64),
            (block.message + 1).to_string(),
            line(block.line),
            what,
            block.start.clone(),
        ]
    });
    let header = ["tokens", "message", "line", "what", "begins"];
    section("largest blocks", &header, largest, console, out);

    if !session.tool_calls.is_empty() {
        let tools = session.tool_calls.iter().take(SHOWN_MAX).map(|tool| {
            vec![
                tool.name.clone(),
                number(tool.calls as u64),
                number(tool.failed as u64),
                number(tool.tokens as u64),
            ]
        });
        let header = ["tool", "calls", "failed", "tokens of results"];
        section("tool calls", &header, tools, console, out);
        more(session.tool_calls.len(), out);
    }
    if session.errors.total > 0 || !session.errors.lines.is_empty() {
        let lines = session.errors.lines.iter().take(SHOWN_MAX).map(|error| {
            vec![
                (error.message + 1).to_string(),
                error.tool.clone(),
                number(error.count as u64),
                error.text.clone(),
            ]
        });
        let title = format!(
            "errors in tool output ({})",
            counted(session.errors.total, "line")
        );
        let header = ["message", "tool", "times", "error"];
        section(&title, &header, lines, console, out);
        more(session.errors.lines.len(), out);
    }
    if session.problems.is_empty() {
        heading("integrity", console, out);
        out.push_str("nothing is broken\n");
    } else {
        let problems = session.problems.iter().take(SHOWN_MAX).map(|problem| {
            let message = problem
                .message
                .map(|message| (message + 1).to_string())
                .unwrap_or_default();
            vec![message, problem.code.to_string(), problem.text.clone()]
        });
        let header = ["message", "problem", "what"];
        section("integrity", &header, problems, console, out);
        more(session.problems.len(), out);
    }
    if !session.compactions.is_empty() {
        let marks = session.compactions.iter().map(|mark| {
            vec![
                (mark.before_message + 1).to_string(),
                mark.trigger.clone().unwrap_or_default(),
                mark.tokens_before.map(number).unwrap_or_default(),
            ]
        });
        let header = ["before message", "trigger", "tokens before"];
        section("compacted before", &header, marks, console, out);
    }
}

/// Sources without lines have line 0.
fn line(line: usize) -> String {
    if line == 0 {
        String::new()
    } else {
        line.to_string()
    }
}

fn section(
    title: &str,
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    console: &Console,
    out: &mut String,
) {
    heading(title, console, out);
    out.push_str(&console.table(header, rows.into_iter().collect()));
}

fn heading(title: &str, console: &Console, out: &mut String) {
    out.push('\n');
    out.push_str(&console.heading(&harmless(title)));
    out.push('\n');
}

fn more(count: usize, out: &mut String) {
    if count > SHOWN_MAX {
        out.push_str(&format!(
            "... and {} more (--json has them)\n",
            number((count - SHOWN_MAX) as u64)
        ));
    }
}
