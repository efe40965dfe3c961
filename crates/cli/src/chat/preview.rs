//! What a call would change, for the person who approves it: a few lines, without secrets or terminal control characters.

use throughline::memory::redact::Redactor;
use throughline::transcript::message::{ToolCall, ToolInput};

use crate::terminal::{Look, harmless};

/// Lines that are taken away, and lines that are added, that are shown.
const LINES_MAX: usize = 12;
/// Lines around them that stay.
const AROUND_MAX: usize = 2;

/// The lines of a call that writes into a file; none for others.
pub(crate) fn lines(call: &ToolCall, look: Look) -> Vec<String> {
    let ToolInput::Json(input) = &call.input else {
        return Vec::new();
    };
    let text = |name: &str| {
        let text = input.string_field(name)?;
        Some(shown(&text))
    };
    let lines = match &*call.name {
        "write_file" => text("content").map(|new| added(&new)),
        "edit_file" => text("old_text")
            .zip(text("new_text"))
            .map(|(old, new)| changed(&old, &new)),
        _ => None,
    };
    let lines = lines.unwrap_or_default();
    lines.iter().map(|line| cut(line, look)).collect()
}

/// The text as others may see it. Redacted as a whole: a key can have several lines.
fn shown(text: &str) -> String {
    harmless(&Redactor::embedded().redact(text)).replace('\t', "    ")
}

fn added(new: &str) -> Vec<String> {
    let mut lines = Vec::new();
    marked("+", &new.lines().collect::<Vec<_>>(), &mut lines);
    lines
}

fn changed(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |mut pairs: Box<dyn Iterator<Item = (&&str, &&str)> + '_>| {
        let mut count = 0;
        while pairs.next().is_some_and(|(old, new)| old == new) {
            count += 1;
        }
        count
    };
    let before = same(Box::new(old.iter().zip(&new)));
    let most = old.len().min(new.len()) - before;
    let after = same(Box::new(old.iter().rev().zip(new.iter().rev()))).min(most);
    let mut lines = Vec::new();
    let around = |some: &[&str], lines: &mut Vec<String>| {
        lines.extend(some.iter().map(|line| format!("  {line}")));
    };
    around(&old[before.saturating_sub(AROUND_MAX)..before], &mut lines);
    marked("-", &old[before..old.len() - after], &mut lines);
    marked("+", &new[before..new.len() - after], &mut lines);
    let rest = &old[old.len() - after..];
    around(&rest[..rest.len().min(AROUND_MAX)], &mut lines);
    lines
}

fn marked(mark: &str, some: &[&str], lines: &mut Vec<String>) {
    let shown = some.iter().take(LINES_MAX);
    lines.extend(shown.map(|line| format!("{mark} {line}")));
    if let Some(more @ 1..) = some.len().checked_sub(LINES_MAX) {
        let ending = if more == 1 { "" } else { "s" };
        lines.push(format!("{mark} ... {more} more line{ending}"));
    }
}

/// One row of the screen.
fn cut(line: &str, look: Look) -> String {
    use unicode_width::UnicodeWidthChar;
    let columns = look.columns.saturating_sub(1);
    let mut used = 0;
    let mut out = String::new();
    for character in line.chars() {
        used += character.width().unwrap_or(0);
        if used > columns.saturating_sub(3) {
            out.push_str("...");
            break;
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use throughline::transcript::json::Raw;
    use throughline::transcript::message::Message;

    use super::*;

    fn call(name: &str, input: serde_json::Value) -> ToolCall {
        let message = serde_json::json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_1", "name": name, "input": input}
        ]});
        let raw = Raw::parse(message.to_string()).unwrap();
        let message: Message = throughline::transcript::body::read_message(&raw).unwrap();
        message.tool_calls().next().unwrap().clone()
    }

    fn shown(name: &str, input: serde_json::Value) -> Vec<String> {
        let look = Look {
            columns: 40,
            ..Look::PLAIN
        };
        lines(&call(name, input), look)
    }

    #[test]
    fn an_edit_is_shown_as_what_goes_and_what_comes() {
        let input = serde_json::json!({
            "path": "a.rs",
            "old_text": "one\ntwo\nthree\nfour\nfive\nsix\nseven",
            "new_text": "one\ntwo\nthree\n4\nIV\nfive\nsix\nseven",
        });
        assert_eq!(
            shown("edit_file", input),
            [
                "  two", "  three", "- four", "+ 4", "+ IV", "  five", "  six"
            ]
        );
        let grown = serde_json::json!({"path": "a", "old_text": "a\na", "new_text": "a\na\na"});
        assert_eq!(shown("edit_file", grown), ["  a", "  a", "+ a"]);
    }

    #[test]
    fn what_is_written_is_cut_redacted_and_steers_nothing() {
        let many: String = (0..20).map(|line| format!("line {line}\n")).collect();
        let lines = shown(
            "write_file",
            serde_json::json!({"path": "a", "content": many}),
        );
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines[LINES_MAX], "+ ... 8 more lines");
        let key = format!("sk-ant-api03-{}", "a1B2".repeat(23));
        let content = format!("\u{1b}[2J\tkey = {key}\n{}", "wide ".repeat(40));
        let lines = shown(
            "write_file",
            serde_json::json!({"path": "a", "content": content}),
        );
        assert!(lines.iter().all(|line| !line.contains("a1B2")), "{lines:?}");
        assert!(
            lines.iter().all(|line| !line.contains('\u{1b}')),
            "{lines:?}"
        );
        assert!(
            lines.iter().all(|line| line.chars().count() < 40),
            "{lines:?}"
        );
        assert!(lines[1].ends_with("..."), "{lines:?}");
        assert!(shown("run_command", serde_json::json!({"program": "ls"})).is_empty());
    }
}
