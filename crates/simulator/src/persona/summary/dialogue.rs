//! The conversation that is to be summarised: the messages before the instruction, or a transcript written down in it.

use throughline_transcript::message::{Block, Message, Role};

use super::instruction::ends;
use crate::persona::Briefing;

/// The conversation without the instruction. A message that carries a whole transcript is taken apart.
pub(super) fn covered_messages(briefing: &Briefing) -> Vec<Message> {
    let messages = briefing.messages();
    let (last, before) = match messages.split_last() {
        Some((last, before)) => (last, before),
        None => return Vec::new(),
    };
    let has_conversation = before
        .iter()
        .filter(|message| message.role != Role::System)
        .count()
        > 1;
    if has_conversation {
        let named = named_range(&ends(&briefing.last_user_text())).unwrap_or(before.len());
        let from = before.len().saturating_sub(named.max(1));
        return before.get(from..).unwrap_or_default().to_vec();
    }
    let text = last
        .texts()
        .map(|text| text.decode().into_owned())
        .collect::<Vec<_>>()
        .join("\n");
    let mut parted = dialogue(&text);
    if parted.len() < 2 {
        parted = vec![Message::new(Role::User, vec![Block::text(text)])];
    }
    before.iter().cloned().chain(parted).collect()
}

/// How many messages an instruction speaks of that says "messages 41 to 60".
fn named_range(lower: &str) -> Option<usize> {
    let (_, rest) = lower.split_once("messages ")?;
    let mut words = rest.split(|c: char| c.is_whitespace() || matches!(c, ':' | '.' | ','));
    let first: usize = words.next()?.parse().ok()?;
    let last: usize = match words.next()? {
        "to" | "-" | "–" => words.next()?.parse().ok()?,
        _ => return None,
    };
    last.checked_sub(first).map(|more| more + 1)
}

/// Takes a written-down conversation apart: lines that name a speaker begin a message.
fn dialogue(text: &str) -> Vec<Message> {
    let mut messages: Vec<(Role, String)> = Vec::new();
    // In a transcript with marks only lines without a mark say who speaks.
    let is_marked = text.lines().filter(|line| line.starts_with("| ")).count() > 1;
    let text = text
        .split_once("<transcript>")
        .and_then(|(_, rest)| rest.split_once("</transcript>"))
        .map_or(text, |(inside, _)| inside);
    for line in text.lines() {
        if is_marked && let Some(content) = line.strip_prefix('|') {
            if let Some((_, said)) = messages.last_mut() {
                said.push('\n');
                said.push_str(content.strip_prefix(' ').unwrap_or(content));
            }
            continue;
        }
        if is_marked && line.starts_with('[') && speaker(line).is_none() {
            messages.push((Role::Tool, String::new()));
            continue;
        }
        match speaker(line) {
            Some((role, rest)) => messages.push((role, rest.to_owned())),
            None => {
                if let Some((_, said)) = messages.last_mut() {
                    said.push('\n');
                    said.push_str(line);
                }
            }
        }
    }
    messages
        .into_iter()
        .filter(|(_, said)| !said.trim().is_empty())
        .map(|(role, said)| Message::new(role, vec![Block::text(said.trim().to_owned())]))
        .collect()
}

/// `user: ...`, `[12] assistant: ...`, `<user>`, `### Assistant`.
fn speaker(line: &str) -> Option<(Role, &str)> {
    let bare = line.trim_start_matches(|c: char| {
        c.is_ascii_digit()
            || c.is_whitespace()
            || matches!(c, '[' | ']' | '#' | '<' | '*' | '=' | '-' | '(' | ')')
    });
    let (role, length) = [
        ("user", Role::User),
        ("human", Role::User),
        ("assistant", Role::Assistant),
        ("model", Role::Assistant),
    ]
    .iter()
    .find_map(|(name, role)| {
        let start = bare.get(..name.len())?;
        start
            .eq_ignore_ascii_case(name)
            .then_some((*role, name.len()))
    })?;
    let rest = bare.get(length..)?;
    let is_marked = bare.len() < line.trim_start().len()
        && !rest.starts_with(|c: char| c.is_alphanumeric() || c == ' ');
    let after = rest
        .find([':', '>', ']'])
        .filter(|at| *at <= 24)
        .map(|at| rest.get(at + 1..).unwrap_or_default());
    match after {
        Some(after) => Some((role, after.trim_start_matches(['*', ' ', '>', ']']))),
        None if is_marked || rest.trim().is_empty() => Some((role, "")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcripts_are_taken_apart() {
        let roles = |text: &str| {
            dialogue(text)
                .iter()
                .map(|message| message.role)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            roles("user: hi\nassistant: ho\nmore\n"),
            [Role::User, Role::Assistant]
        );
        assert_eq!(
            roles("[1] user: hi\n[2] assistant: ho"),
            [Role::User, Role::Assistant]
        );
        assert_eq!(
            roles("### User\nhi\n### Assistant\nho"),
            [Role::User, Role::Assistant]
        );
        assert_eq!(
            roles("<user>\nhi\n<assistant>\nho"),
            [Role::User, Role::Assistant]
        );
        assert_eq!(
            roles(
                "Read this.\n<transcript>\n[1] user\n| hi\n| assistant: no\n[2] assistant, 2026-03-04\n| ho\n[3] output of the tool x\n| y\n</transcript>\nuser: z"
            ),
            [Role::User, Role::Assistant, Role::Tool]
        );
        assert_eq!(roles("users are many"), []);
    }

    #[test]
    fn ranges_are_counted() {
        assert_eq!(named_range("because of messages 41 to 60. your"), Some(20));
        assert_eq!(named_range("the messages above"), None);
    }
}
