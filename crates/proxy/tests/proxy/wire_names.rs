//! The invariant that the proxy knows no field of the providers' formats: no string of its code names one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Names that mean nothing else: wrong anywhere in a string.
const DISTINCTIVE: &[&str] = &[
    "cache_control",
    "context_management",
    "previous_response_id",
    "mcp_servers",
    "redacted_thinking",
    "encrypted_content",
    "reasoning_content",
    "stop_reason",
    "finish_reason",
    "max_completion_tokens",
    "max_output_tokens",
    "tool_use",
    "tool_result",
    "tool_calls",
    "function_call",
    "input_text",
    "output_text",
    "compact_threshold",
    "additional_tools",
    "invalid_request_error",
    "thread_unsupported_request",
    "overloaded_error",
    "server_error",
];

/// Names of fields, roles and types: wrong as a string, and as a JSON string within one.
const NAMES: &[&str] = &[
    "model",
    "messages",
    "input",
    "system",
    "instructions",
    "tools",
    "functions",
    "tool",
    "role",
    "content",
    "type",
    "thinking",
    "signature",
    "data",
    "conversation",
    "compaction",
    "choices",
    "max_tokens",
    "stream",
    "usage",
    "assistant",
    "user",
    "developer",
    "param",
    "n",
];

/// Names that are words of the proxy too: wrong as a JSON string within a string.
const WORDS: &[&str] = &["thread", "error", "message", "text", "name", "id", "code"];

/// Codes of the proxy's own that look like a name.
const CODES: &[(&str, &str)] = &[("reason.rs", "choices")];

#[test]
fn the_proxy_names_no_field_of_a_provider() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&folder, &mut files);
    assert!(files.len() > 20, "{files:?}");
    let mut found = Vec::new();
    let mut strings = 0;
    for path in files {
        let file = path.strip_prefix(&folder).unwrap().display().to_string();
        for (line, literal) in literals(&fs::read_to_string(&path).unwrap()) {
            strings += 1;
            let is_code = CODES.contains(&(file.as_str(), literal.as_str()));
            if let Some(name) = name_in(&literal).filter(|_| !is_code) {
                found.push(format!("{file}:{line}: {name:?} in {literal:?}"));
            }
        }
    }
    assert!(strings > 100, "only {strings} strings were found");
    assert!(
        found.is_empty(),
        "fields of the providers' formats belong to throughline_transcript::client:\n{}",
        found.join("\n")
    );
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_stem().is_some_and(|stem| stem != "tests")
        {
            files.push(path);
        }
    }
}

/// The name that a string contains, if it contains one.
fn name_in(literal: &str) -> Option<&'static str> {
    let is_quoted = |name: &&str| {
        literal.contains(&format!("\"{name}\"")) || literal.contains(&format!("\\\"{name}\\\""))
    };
    let is_alone = |name: &&str| literal == *name;
    let mut distinctive = DISTINCTIVE.iter().filter(|name| literal.contains(**name));
    let mut names = NAMES
        .iter()
        .filter(|name| is_alone(name) || is_quoted(name));
    let mut words = WORDS.iter().filter(|name| is_quoted(name));
    let first = distinctive.next().or_else(|| names.next());
    first.or_else(|| words.next()).copied()
}

/// The string literals of a source file with their lines, as they are written between the quotes. Comments and what is
/// compiled for tests only are left out.
fn literals(source: &str) -> Vec<(usize, String)> {
    let mut lexer = Lexer {
        rest: source,
        line: 1,
    };
    let mut found = Vec::new();
    // Open brackets since an item for tests began.
    let mut skipped: Option<i32> = None;
    while let Some(token) = lexer.next() {
        match (token, &mut skipped) {
            (Token::Attribute(text, _), None) if text == "#[cfg(test)]" => skipped = Some(0),
            (Token::Attribute(text, literals), None) if !text.contains("[doc") => {
                found.extend(literals);
            }
            (Token::Literal(line, text), None) => found.push((line, text)),
            (Token::Symbol('{' | '('), Some(depth)) => *depth += 1,
            (Token::Symbol(symbol @ ('}' | ')')), Some(depth)) => {
                *depth -= 1;
                if *depth == 0 && symbol == '}' {
                    skipped = None;
                }
            }
            (Token::Symbol(';'), Some(0)) => skipped = None,
            _ => {}
        }
    }
    found
}

enum Token {
    Literal(usize, String),
    Attribute(String, Vec<(usize, String)>),
    Symbol(char),
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn next(&mut self) -> Option<Token> {
        loop {
            let first = self.rest.chars().next()?;
            if self.rest.starts_with("//") {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.block_comment();
            } else if self.rest.starts_with("#[") || self.rest.starts_with("#![") {
                return Some(self.attribute());
            } else if first == '\'' {
                self.char_or_lifetime();
            } else if first.is_alphanumeric() || first == '_' {
                let end = |c: char| !(c.is_alphanumeric() || c == '_');
                let word = self.take(self.rest.find(end).unwrap_or(self.rest.len()));
                let has_prefix = matches!(word, "r" | "br" | "cr");
                let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
                if has_prefix && self.rest[hashes..].starts_with('"') {
                    return Some(self.raw_literal(hashes));
                }
            } else if first == '"' {
                let (line, text) = self.literal();
                return Some(Token::Literal(line, text));
            } else {
                self.take(first.len_utf8());
                if !first.is_whitespace() {
                    return Some(Token::Symbol(first));
                }
            }
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.take(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.take(2);
                if depth == 0 {
                    return;
                }
            } else {
                let Some(next) = self.rest.chars().next() else {
                    return;
                };
                self.take(next.len_utf8());
            }
        }
    }

    fn attribute(&mut self) -> Token {
        let start = self.rest;
        let mut literals = Vec::new();
        let mut depth = 0;
        while let Some(next) = self.rest.chars().next() {
            if next == '"' {
                literals.push(self.literal());
                continue;
            }
            self.take(next.len_utf8());
            match next {
                '[' => depth += 1,
                ']' if depth == 1 => break,
                ']' => depth -= 1,
                _ => {}
            }
        }
        let text = &start[..start.len() - self.rest.len()];
        Token::Attribute(text.to_owned(), literals)
    }

    fn char_or_lifetime(&mut self) {
        let mut chars = self.rest.chars().skip(1);
        let (inner, after) = (chars.next(), chars.next());
        if inner == Some('\\') {
            let end = self.rest[3..]
                .find('\'')
                .map_or(self.rest.len(), |at| at + 4);
            self.take(end);
        } else if let (Some(inner), Some('\'')) = (inner, after) {
            self.take(inner.len_utf8() + 2);
        } else {
            self.take(1);
        }
    }

    fn literal(&mut self) -> (usize, String) {
        let line = self.line;
        self.take(1);
        let mut end = 0;
        let mut is_escaped = false;
        for (at, c) in self.rest.char_indices() {
            end = at;
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => break,
                _ => {}
            }
        }
        let text = self.take(end).to_owned();
        self.take(1);
        (line, text)
    }

    fn raw_literal(&mut self, hashes: usize) -> Token {
        let line = self.line;
        self.take(hashes + 1);
        let close = format!("\"{}", "#".repeat(hashes));
        let end = self.rest.find(&close).expect("a raw string ends");
        let text = self.take(end).to_owned();
        self.take(close.len());
        Token::Literal(line, text)
    }
}

#[test]
fn strings_are_told_from_everything_else() {
    let source = r###"
// "comment" /* "
/* "block" /* "nested" */ "still" */
#![doc = "attribute"]
#[serde(rename = "zero")]
const QUOTE: char = '"'; // a lifetime: &'a str "
fn f<'a>(_: &'a str) -> char { g("one \"two\"", b"three", '\'', '\u{22}'); h(r#"four "five""#, r"six\") }
#[cfg(test)]
mod tests { fn t() { g("seven", '}', "}"); } }
fn i() { g("eight"); }
#[cfg(test)]
mod other;
const NINE: &str = "nine
lines";
"###;
    let found = literals(source);
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "zero",
            r#"one \"two\""#,
            "three",
            r#"four "five""#,
            r"six\",
            "eight",
            "nine\nlines"
        ]
    );
    let lines: BTreeSet<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, BTreeSet::from([5, 7, 10, 13]));
}

#[test]
fn a_name_is_found_alone_and_within_json() {
    for (literal, expected) in [
        ("model", Some("model")),
        ("the model", None),
        (r#"{\"type\": 1}"#, Some("type")),
        (r#"{"type": 1}"#, Some("type")),
        ("no cache_control here", Some("cache_control")),
        ("error", None),
        (r#"{"error": {}}"#, Some("error")),
    ] {
        assert_eq!(name_in(literal), expected, "{literal}");
    }
}
