//! Looking at the start of a source to recognise its format.

use std::collections::HashSet;

use crate::conversation::SourceText;
use crate::formats::Probe;
use crate::json::tape::View;
use crate::lines::Lines;

/// How much of a source is looked at, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long the first line may be to be looked at whole, in bytes.
const FIRST_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many records are looked at.
const RECORDS_MAX: usize = 24;
/// How deep keys are listed.
const DEPTH_MAX: usize = 8;
/// How long listed keys may be, in bytes.
const KEY_BYTES_MAX: usize = 64;

impl Probe<'_> {
    /// The greatest number of points that `score` gives to one of the first records of a JSONL file.
    pub(crate) fn best_record(&self, score: impl Fn(View<'_>) -> u8) -> u8 {
        let first_line = memchr::memchr(b'\n', self.text.as_bytes()).unwrap_or(self.text.len());
        let limit = if first_line <= FIRST_LINE_BYTES_MAX {
            first_line.max(HEAD_BYTES_MAX)
        } else {
            HEAD_BYTES_MAX
        };
        let source = SourceText::from_text(start_of(self.text, limit));
        let mut lines = Lines::new(&source, &[]);
        let mut best = 0;
        for _ in 0..RECORDS_MAX {
            if lines.advance().is_none() {
                break;
            }
            best = best.max(score(lines.record()));
        }
        best
    }

    /// The keys in the first part of a JSON document, with those above them: `messages[].info.role`.
    ///
    /// The document need not be whole, so a large one costs no more than a small one.
    pub(crate) fn key_paths(&self) -> HashSet<String> {
        let text = start_of(self.text, HEAD_BYTES_MAX);
        let mut paths = HashSet::new();
        let mut path = String::new();
        // For each open container: whether it is an object, and how long the path to it is.
        let mut open: Vec<(bool, usize)> = Vec::new();
        let mut last_string = "";
        let mut at = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            match byte {
                b'"' => {
                    let Some(end) = string_end(text, at) else {
                        break;
                    };
                    last_string = text.get(at + 1..end).unwrap_or_default();
                    at = end;
                }
                b':' if open.len() <= DEPTH_MAX && last_string.len() <= KEY_BYTES_MAX => {
                    if let Some((true, length)) = open.last() {
                        path.truncate(*length);
                        if !path.is_empty() {
                            path.push('.');
                        }
                        path.push_str(last_string);
                        if !paths.contains(&path) {
                            paths.insert(path.clone());
                        }
                    }
                }
                b'{' => open.push((true, path.len())),
                b'[' => {
                    if open.len() <= DEPTH_MAX {
                        path.push_str("[]");
                    }
                    open.push((false, path.len()));
                }
                b'}' | b']' => {
                    let length = open.pop().map_or(0, |(_, length)| length);
                    path.truncate(length);
                    if *byte == b']' && path.ends_with("[]") {
                        path.truncate(length - 2);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        paths
    }

    /// The first part of the text.
    pub(crate) fn start(&self) -> &str {
        start_of(self.text, HEAD_BYTES_MAX)
    }

    /// The first character that is not white space.
    pub(crate) fn first_char(&self) -> Option<char> {
        self.start().trim_start().chars().next()
    }
}

fn start_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Where the string literal that opens at `at` closes.
fn string_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut found: Vec<String> = Probe { text }.key_paths().into_iter().collect();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn keys_are_listed_with_those_above_them() {
        check(
            r#"{"info":{"id":"a:b"},"messages":[{"info":{"role":"x"}},{"parts":[[1]]}],"end":"#,
            &[
                "end",
                "info",
                "info.id",
                "messages",
                "messages[].info",
                "messages[].info.role",
                "messages[].parts",
            ],
        );
        check(r#"[{"a":1},{"b":{"c":["#, &["[].a", "[].b", "[].b.c"]);
        check("# title: none", &[]);
        check(r#"]}"a":["#, &[]);
    }

    #[test]
    fn a_cut_record_is_not_looked_at() {
        let text = format!("{{\"a\":1}}\n{{\"b\":\"{}\"}}", "é".repeat(HEAD_BYTES_MAX));
        let score = |record: View<'_>| if record.field("b").is_some() { 9 } else { 4 };
        assert_eq!(Probe { text: &text }.best_record(score), 4);
    }
}
