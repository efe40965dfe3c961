//! Lines of one shape: notes, tables, reports and lists, as people copy them.

use std::collections::HashMap;
use std::ops::Range;

use super::{PastedKind, Voice};

/// So many lines in a row, at least.
const LINES_MIN: usize = 5;
/// A line with fewer words has no shape.
const WORDS_MIN: usize = 5;
/// The part of the words of a line that it has in common with half of the others.
const COMMON_PERCENT: usize = 40;
/// Longer lines are looked at up to here, bytes.
const LINE_BYTES_MAX: usize = 400;

/// The lines of `text` that belong to a block of one shape, as ranges of whole lines.
pub(super) fn lines_of_one_shape(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut block: Vec<(Range<usize>, &str)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        if line.trim().is_empty() {
            look_at(&block, &mut found);
            block.clear();
        } else {
            block.push((range, line.trim()));
        }
    }
    look_at(&block, &mut found);
    found
}

/// Adds the lines of a block without empty lines that look like the others.
fn look_at(block: &[(Range<usize>, &str)], found: &mut Vec<Range<usize>>) {
    if block.len() < LINES_MIN {
        return;
    }
    let words: Vec<Vec<String>> = block.iter().map(|(_, line)| words(line)).collect();
    let mut lines_with: HashMap<&str, usize> = HashMap::new();
    for words in &words {
        let mut own: Vec<&str> = words.iter().map(String::as_str).collect();
        own.sort_unstable();
        own.dedup();
        for word in own {
            *lines_with.entry(word).or_default() += 1;
        }
    }
    let is_like_the_others = |words: &Vec<String>| {
        let common = words
            .iter()
            .filter(|word| {
                lines_with
                    .get(word.as_str())
                    .is_some_and(|lines| lines * 2 >= block.len())
            })
            .count();
        words.len() >= WORDS_MIN && common * 100 >= words.len() * COMMON_PERCENT
    };
    let alike: Vec<&Range<usize>> = block
        .iter()
        .zip(&words)
        .filter(|(_, words)| is_like_the_others(words))
        .map(|((range, _), _)| range)
        .collect();
    if alike.len() >= LINES_MIN {
        found.extend(alike.into_iter().cloned());
    }
}

/// The words of a line, without what differs from line to line by its nature: numbers.
fn words(line: &str) -> Vec<String> {
    let line = line
        .get(..line.floor_char_boundary(LINE_BYTES_MAX))
        .unwrap_or(line);
    line.split_whitespace()
        .map(|word| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            if word.bytes().any(|byte| byte.is_ascii_digit()) {
                "#".to_owned()
            } else {
                word.to_lowercase()
            }
        })
        .filter(|word| !word.is_empty())
        .collect()
}

/// Lines between lines of code or of a log, fewer than these and without a blank line around them, are part of it.
pub(super) fn join_code(
    text: &str,
    stretches: Vec<(Range<usize>, Voice)>,
) -> Vec<(Range<usize>, Voice)> {
    /// So many lines around them, at least.
    const AROUND_MIN: usize = 4;
    /// So many lines between them, at most.
    const BETWEEN_MAX: usize = 3;
    let lines = |range: &Range<usize>| {
        let lines = text.get(range.clone()).unwrap_or_default().lines();
        lines.filter(|line| !line.trim().is_empty()).count()
    };
    let is_pasted = |stretch: &(Range<usize>, Voice)| {
        matches!(stretch.1, Voice::Pasted(PastedKind::Code | PastedKind::Log))
            && !text
                .get(stretch.0.clone())
                .unwrap_or_default()
                .contains("```")
    };
    let mut joined: Vec<(Range<usize>, Voice)> = Vec::with_capacity(stretches.len());
    let mut rest = stretches.into_iter().peekable();
    // Lines of the pasted stretch that `joined` ends with; 0 if it ends with another one.
    let mut before = 0;
    while let Some(stretch) = rest.next() {
        let own = lines(&stretch.0);
        let is_between = stretch.1 == Voice::Person
            && before > 0
            && own <= BETWEEN_MAX
            && rest.peek().is_some_and(|next| {
                let around = before + lines(&next.0);
                is_pasted(next) && around >= AROUND_MIN && around > own
            });
        if is_between && let Some((last, _)) = joined.last_mut() {
            last.end = stretch.0.end;
            before += own;
            continue;
        }
        let is_code = is_pasted(&stretch);
        match joined.last_mut() {
            Some((last, voice)) if is_code && before > 0 && last.end == stretch.0.start => {
                *voice = if *voice == stretch.1 {
                    *voice
                } else {
                    Voice::Pasted(PastedKind::Log)
                };
                last.end = stretch.0.end;
                before += own;
            }
            _ => {
                before = if is_code { own } else { 0 };
                joined.push(stretch);
            }
        }
    }
    joined
}
