//! The values that a command line gives to options and variables.

use super::programs::{base, is_assignment, unwrapped};
use super::words::{Reader, Redirect, Token, Word};
use super::{COMMAND_BYTES_MAX, programs};

/// Values of one command.
const VALUES_MAX: usize = 40;
/// Longest value, bytes.
const VALUE_BYTES_MAX: usize = 100;

/// Programs that look at something: what they are given differs from call to call and sets nothing.
const LOOKING: &[&str] = &[
    "grep", "egrep", "rg", "ag", "fd", "find", "git", "gh", "ls", "cat", "head", "tail", "sed",
    "awk", "jq", "tree", "diff", "wc", "sort", "echo", "printf",
];

/// Programs that run what their first word names.
const RUNNERS: &[&str] = &[
    "python",
    "python3",
    "node",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "bun",
    "cargo",
    "go",
    "uv",
    "uvx",
    "poetry",
    "deno",
    "ruby",
    "php",
    "java",
    "make",
    "docker",
    "kubectl",
    "terraform",
];

/// Options and variables of `command` with their values: what is set, and to what.
pub(in super::super) fn read(command: &str) -> Vec<(String, String)> {
    let mut reader = Reader::new(&command[..command.floor_char_boundary(COMMAND_BYTES_MAX)]);
    let mut words: Vec<Word> = Vec::new();
    let mut values = Vec::new();
    while let Some(token) = reader.next(words.is_empty()) {
        match token {
            Token::Word(word) => words.push(word),
            Token::Document => reader.wait_for_document(programs::DocumentUse::Text),
            Token::Break(_) => {
                add(&words, &mut values);
                words.clear();
            }
            Token::Redirect(Redirect::Into(_) | Redirect::Other) | Token::Body { .. } => {}
        }
    }
    add(&words, &mut values);
    values.truncate(VALUES_MAX);
    values
}

fn add(words: &[Word], values: &mut Vec<(String, String)>) {
    let inner = unwrapped(words);
    let name = inner
        .first()
        .and_then(Word::known)
        .map(base)
        .unwrap_or_default();
    if LOOKING.contains(&name) {
        return;
    }
    let before = &words[..words.len() - inner.len()];
    let exported = if name == "export" { inner } else { &[] };
    for word in before.iter().chain(exported) {
        if let Some((name, value)) = word.known().and_then(|text| text.split_once('='))
            && is_assignment(&word.text)
        {
            keep(name.to_owned(), value, values);
        }
    }
    let runs = inner
        .get(1..)
        .unwrap_or_default()
        .iter()
        .filter_map(Word::known)
        .find(|word| !word.starts_with('-') && *word != "run");
    let program = match runs {
        Some(runs) if RUNNERS.contains(&name) => format!("{name} {runs}"),
        _ => name.to_owned(),
    };
    for (at, word) in inner.iter().enumerate().skip(1) {
        let Some(option) = word.known().filter(|text| text.starts_with("--")) else {
            continue;
        };
        if let Some((option, value)) = option.split_once('=') {
            keep(format!("{option} of {program}"), value, values);
        } else if let Some(value) = inner.get(at + 1).and_then(Word::known)
            && !value.starts_with('-')
        {
            keep(format!("{option} of {program}"), value, values);
        }
    }
}

fn keep(what: String, value: &str, values: &mut Vec<(String, String)>) {
    let is_value = !value.is_empty()
        && value.len() <= VALUE_BYTES_MAX
        && !value.contains(char::is_control)
        && !value.contains(super::super::script::COMPUTED);
    if is_value && what.len() <= VALUE_BYTES_MAX {
        values.push((what, value.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: &[&str]) {
        let values = read(command);
        let values: Vec<_> = values
            .iter()
            .map(|(what, value)| format!("{what} = {value}"))
            .collect();
        assert_eq!(values, expected, "{command}");
    }

    #[test]
    fn values_have_a_name() {
        check(
            "python serve.py --port 8431 --host=0.0.0.0",
            &[
                "--port of python serve.py = 8431",
                "--host of python serve.py = 0.0.0.0",
            ],
        );
        check(
            "cd pier && TIDE_PORT=8431 timeout 60 npm run dev",
            &["TIDE_PORT = 8431"],
        );
        check(
            "export TIDE_ZONE=\"Europe/Oslo\"; ./crane --load 12",
            &["TIDE_ZONE = Europe/Oslo", "--load of crane = 12"],
        );
        check(
            "cargo bench --bench tides --verbose --sample-size 40",
            &[
                "--bench of cargo bench = tides",
                "--sample-size of cargo bench = 40",
            ],
        );
        check(
            "rg --glob '*.rs' tide | head --lines 5; git log --author lea",
            &[],
        );
        check("./crane --load $LOAD --arm \"$(cat arm)\"", &[]);
        check("A=1", &["A = 1"]);
    }
}
