//! Finds the extent of a private key block, from its first line to its last, even if one of them is missing.
//!
//! Lines end at a line feed or at a `\n` that is still in its JSON escape. They may be indented, quoted, numbered or
//! marked as in a diff.

use std::ops::Range;

/// Lines are looked at up to here, in bytes: a whole key of 16,384 bits on one line is shorter.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// A line of base64 that is shorter than this counts only where a last line may be: it could be a word.
const FULL_LINE_BYTES: usize = 16;

/// The block whose first line is `start..first_line_end`.
pub(super) fn from_start(text: &str, start: usize, first_line_end: usize) -> Option<Range<usize>> {
    let mut end = first_line_end;
    let mut has_key = false;
    for line in lines(text, first_line_end) {
        let content = &text[line.clone()];
        match shape(content) {
            Shape::Last(length) => {
                let end_line = line.start + length;
                // A first and a last line without a key between them are talk about key blocks.
                return has_key.then_some(start..end_line);
            }
            Shape::Full => {
                has_key = true;
                end = trimmed_end(text, &line);
            }
            Shape::Short => {
                let rest = text[line.end..]
                    .trim_start_matches(['\\', 'n', 'r', '\n', '\r', ' ', '"', '\'']);
                if !(rest.is_empty()
                    || rest.starts_with("-----END")
                    || content.trim_end().ends_with('='))
                {
                    break;
                }
                has_key = true;
                end = trimmed_end(text, &line);
            }
            Shape::Filler => {}
            Shape::Other => break,
        }
    }
    has_key.then_some(start..end)
}

/// The block whose last line is `last_line..end`, as far as it reaches back, but not before `after`. None if it is
/// empty.
pub(super) fn to_end(
    text: &str,
    after: usize,
    last_line: usize,
    end: usize,
) -> Option<Range<usize>> {
    let after = after.min(last_line);
    let mut start = None;
    // A short line counts when there are full ones before it, or when it is padded.
    let mut has_key = false;
    let mut line_end = last_line;
    while line_end > after {
        let search_start =
            text.ceil_char_boundary(after.max(line_end.saturating_sub(LINE_BYTES_MAX)));
        let before = &text[search_start..line_end];
        let before = before
            .strip_suffix("\\n")
            .or_else(|| before.strip_suffix('\n'))
            .unwrap_or(before);
        let line_start = match (before.rfind('\n'), before.rfind("\\n")) {
            (Some(feed), Some(escape)) => (feed + 1).max(escape + 2),
            (Some(feed), None) => feed + 1,
            (None, Some(escape)) => escape + 2,
            (None, None) => 0,
        };
        match shape(&before[line_start..]) {
            Shape::Full => has_key = true,
            Shape::Short if start.is_none() => has_key = before.trim_end().ends_with('='),
            Shape::Filler
                if start.is_none() && line_end == last_line && before.len() == line_start => {}
            _ => break,
        }
        line_end = search_start + line_start;
        start = Some(line_end);
    }
    start.filter(|_| has_key).map(|start| start..end)
}

enum Shape {
    /// Key material.
    Full,
    /// Perhaps the last of the key material, perhaps a word.
    Short,
    /// Nothing, or a header of the block.
    Filler,
    /// The last line of a block; its length, with what precedes it on the line.
    Last(usize),
    Other,
}

fn shape(line: &str) -> Shape {
    if let Some(dashes) = line.find("-----END ") {
        let label = &line[dashes + "-----END ".len()..];
        return match label.find("-----") {
            Some(length) if label[..length].contains("PRIVATE KEY") => {
                Shape::Last(dashes + "-----END ".len() + length + "-----".len())
            }
            _ => Shape::Other,
        };
    }
    let content = undecorated(line);
    if content.is_empty() {
        return Shape::Filler;
    }
    if content
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
    {
        return if content.len() >= FULL_LINE_BYTES {
            Shape::Full
        } else {
            Shape::Short
        };
    }
    let is_header = ["Proc-Type:", "DEK-Info:", "Comment:", "Version:", "Hash:"]
        .iter()
        .any(|name| content.starts_with(name));
    if is_header {
        Shape::Filler
    } else {
        Shape::Other
    }
}

/// The line without what listings, quotations, diffs and string literals put around it.
fn undecorated(line: &str) -> &str {
    let line = line.trim_start();
    let number = line.bytes().take_while(u8::is_ascii_digit).count();
    let line = line[number..]
        .strip_prefix(['\t', '→', ':'])
        .unwrap_or(line);
    line.trim_start_matches([' ', '\t', '>', '|', '"', '\'', '-'])
        .trim_end_matches([' ', '\t', '\r', '"', '\'', ',', ';', '\\'])
        .trim_end_matches("\\r")
}

fn trimmed_end(text: &str, line: &Range<usize>) -> usize {
    let content = &text[line.clone()];
    let kept = content
        .trim_end_matches(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')));
    line.start + kept.len()
}

/// The lines from `start` on, without their ends.
fn lines(text: &str, start: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = Some(start);
    std::iter::from_fn(move || {
        let start = next?;
        let rest = &text[start..text.floor_char_boundary(start.saturating_add(LINE_BYTES_MAX))];
        let mut from = 0;
        let (end, length) = loop {
            match memchr::memchr2(b'\n', b'\\', &rest.as_bytes()[from..]) {
                None => break (rest.len(), (start + rest.len() < text.len()).then_some(0)),
                Some(at) if rest.as_bytes()[from + at] == b'\n' => break (from + at, Some(1)),
                Some(at) if rest.as_bytes().get(from + at + 1) == Some(&b'n') => {
                    break (from + at, Some(2));
                }
                Some(at) => from += at + 1,
            }
        };
        next = length.map(|length| start + end + length);
        Some(start..start + end)
    })
}
