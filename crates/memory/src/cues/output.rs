//! Recognises errors, test results, commits, pushes and builds in tool output.
mod errors;
mod results;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;
use regex::bytes::{RegexSet, RegexSetBuilder};

/// How the call ended, as far as the caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The result is marked as an error, or the exit status is not 0.
    Failed,
    /// It is marked as a success.
    Succeeded,
    /// Nothing says.
    #[default]
    Unknown,
}

/// What a line of output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// An error message.
    Error,
    /// A summary of a test run, with the counts that it names.
    Tests {
        /// Tests that passed.
        passed: Option<u32>,
        /// Tests that failed.
        failed: Option<u32>,
    },
    /// A commit was made.
    Commit,
    /// Commits were pushed.
    Push,
    /// A build ended.
    Build,
}

/// A line of tool output that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine<'a> {
    /// What it is.
    pub kind: OutputKind,
    /// The line without white space around it, colour codes included.
    pub text: &'a str,
    /// Where it is, in bytes.
    pub range: Range<usize>,
    /// How much it says, 0 to 100: for errors, how sure it is that this is an error message and how specific it is.
    pub score: u8,
}

/// The telling lines of `text`, in order.
pub fn output_lines(text: &str, outcome: Outcome) -> impl Iterator<Item = OutputLine<'_>> {
    Lines {
        text,
        outcome,
        hits: TRIGGERS
            .as_ref()
            .map(|triggers| triggers.find_iter(text).peekable()),
    }
}

/// The line that represents the failure of a call: the first of those that score best, within ten points.
#[must_use]
pub fn headline_error(text: &str, outcome: Outcome) -> Option<OutputLine<'_>> {
    const CLOSE: u8 = 10;
    let errors: Vec<_> = output_lines(text, outcome)
        .filter(|line| line.kind == OutputKind::Error)
        .take(400)
        .collect();
    let best = errors.iter().map(|line| line.score).max()?;
    errors.into_iter().find(|line| line.score + CLOSE >= best)
}

/// At most `most` error lines that represent a failed call, in the order of the text: the first one, which names what
/// failed or its cause, then those that score best, without repetitions.
#[must_use]
pub fn key_errors(text: &str, outcome: Outcome, most: usize) -> Vec<OutputLine<'_>> {
    let mut errors: Vec<_> = output_lines(text, outcome)
        .filter(|line| line.kind == OutputKind::Error)
        .take(400)
        .collect();
    let mut seen = std::collections::HashSet::new();
    errors.retain(|line| seen.insert(line.text));
    let mut order: Vec<usize> = (0..errors.len()).collect();
    order.sort_by_key(|&at| {
        (
            at != 0,
            std::cmp::Reverse(errors.get(at).map_or(0, |line| line.score)),
            at,
        )
    });
    let kept: std::collections::HashSet<usize> = order.into_iter().take(most).collect();
    errors
        .into_iter()
        .enumerate()
        .filter(|(at, _)| kept.contains(at))
        .map(|(_, line)| line)
        .collect()
}

/// Words that mark a relevant line, with the kinds that each allows. A relevant line contains at least one of them.
const WORDS: [(&str, u8); 72] = [
    ("rror", ERROR | RESULT),
    ("RROR", ERROR | RESULT),
    ("ail", ERROR | RESULT),
    ("AIL", ERROR | RESULT),
    ("atal:", ERROR),
    ("FATAL", ERROR),
    ("xception", ERROR),
    ("anic", ERROR),
    ("ould not", ERROR),
    ("nable to", ERROR),
    ("***", ERROR),
    ("ot supported", ERROR),
    ("ot found", ERROR),
    ("Not Found", ERROR),
    ("such file", ERROR),
    ("enied", ERROR),
    ("undefined", ERROR),
    ("not defined", ERROR),
    ("annot ", ERROR),
    ("an't ", ERROR),
    ("✗", ERROR),
    ("✘", ERROR),
    ("❌", ERROR),
    ("Assert", ERROR),
    ("assert", ERROR),
    ("xit code", ERROR),
    ("xit status", ERROR),
    ("HTTP 4", ERROR),
    ("HTTP 5", ERROR),
    ("HTTP/1.1 4", ERROR),
    ("HTTP/1.1 5", ERROR),
    ("HTTP/2 4", ERROR),
    ("HTTP/2 5", ERROR),
    ("not exist", ERROR),
    ("timed out", ERROR),
    ("imeout", ERROR),
    ("refused", ERROR),
    ("nresolved", ERROR),
    ("onflict", ERROR),
    ("CONFLICT", ERROR),
    ("rejected", ERROR),
    ("Killed", ERROR),
    ("egmentation", ERROR),
    ("unknown ", ERROR),
    ("Unknown ", ERROR),
    ("nvalid ", ERROR),
    ("issing ", ERROR),
    ("not read", ERROR),
    ("multiple matches", ERROR),
    ("assed", RESULT),
    ("assing", RESULT),
    ("ok  \t", RESULT),
    ("Ran ", RESULT),
    ("BUILD ", RESULT),
    ("uccessfully", RESULT),
    ("uilt in", RESULT),
    ("verything up-to-date", RESULT),
    ("PASS", RESULT),
    ("test result:", RESULT),
    (" -> ", RESULT),
    ("] ", RESULT),
    ("uild ", RESULT),
    ("Finished ", RESULT),
    ("ompiled", RESULT),
    ("OK (", RESULT),
    ("Tests", RESULT),
    ("Test Suites:", RESULT),
    ("# pass ", RESULT),
    ("ℹ pass ", RESULT),
    ("# tests ", RESULT),
    ("tests run", RESULT),
    (" examples, ", RESULT),
];

/// The line may be an error message.
const ERROR: u8 = 1;
/// The line may report a result.
const RESULT: u8 = 2;

static TRIGGERS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .build(WORDS.iter().map(|(word, _)| word))
        .ok()
});

struct Lines<'a> {
    text: &'a str,
    outcome: Outcome,
    hits: Option<std::iter::Peekable<aho_corasick::FindIter<'static, 'a>>>,
}

impl<'a> Iterator for Lines<'a> {
    type Item = OutputLine<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let hits = self.hits.as_mut()?;
        let may_be = |hit: &aho_corasick::Match| {
            WORDS
                .get(hit.pattern().as_usize())
                .map_or(0, |(_, may_be)| *may_be)
        };
        loop {
            let hit = hits.next()?;
            let bytes = self.text.as_bytes();
            let start = bytes
                .get(..hit.start())
                .and_then(|before| memchr::memrchr(b'\n', before))
                .map_or(0, |at| at + 1);
            let end = bytes
                .get(hit.end()..)
                .and_then(|after| memchr::memchr(b'\n', after))
                .map_or(bytes.len(), |at| hit.end() + at);
            let mut kinds = may_be(&hit);
            while let Some(further) = hits.next_if(|further| further.start() < end) {
                kinds |= may_be(&further);
            }
            let Some(line) = self.text.get(start..end) else {
                continue;
            };
            if let Some((kind, score)) = classify(line, kinds, self.outcome) {
                let text = line.trim();
                let from = start + (line.len() - line.trim_start().len());
                return Some(OutputLine {
                    kind,
                    text,
                    range: from..from + text.len(),
                    score,
                });
            }
        }
    }
}

fn classify(line: &str, kinds: u8, outcome: Outcome) -> Option<(OutputKind, u8)> {
    const LONG_BYTES: usize = 2000;
    let head = line
        .get(..line.floor_char_boundary(LONG_BYTES))
        .unwrap_or(line);
    let plain = without_colour(head);
    let trimmed = plain.trim();
    if trimmed.len() < 3 || is_listing(trimmed) {
        return None;
    }
    let result = if kinds & RESULT == 0 {
        None
    } else {
        results::result(trimmed)
    };
    if result.is_some() {
        return result;
    }
    if kinds & ERROR == 0 {
        return None;
    }
    errors::score(trimmed, outcome).map(|score| (OutputKind::Error, score))
}

fn without_colour(line: &str) -> Cow<'_, str> {
    if memchr::memchr(0x1b, line.as_bytes()).is_none() {
        return Cow::Borrowed(line);
    }
    COLOUR
        .as_ref()
        .map_or(Cow::Borrowed(line), |regex| regex.replace_all(line, ""))
}

static COLOUR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\x1b\[[0-9;]*[A-Za-z]").ok());

/// A line of a file that is shown with its number: `12→`, `12\t`, `12 │`, `12: `.
fn is_listing(line: &str) -> bool {
    let rest = line.strip_prefix('>').map_or(line, str::trim_start);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let after = rest.get(digits..).unwrap_or_default();
    let past = after.trim_start_matches([' ', '\t']);
    (1..=6).contains(&digits)
        && (after.starts_with('\t') || after.starts_with(": ") || past.starts_with(['→', '│', '|']))
}

/// Patterns that are tried on a line together. Classes and word boundaries are those of ASCII, which is what compilers
/// and runners print, and which keeps the automaton fast on any text.
struct Patterns(Option<RegexSet>);

impl Patterns {
    /// Compiles `patterns`. If one of them is wrong, none matches: the tests of this module keep that from being shipped.
    fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Self {
        Self(RegexSetBuilder::new(patterns).unicode(false).build().ok())
    }

    /// Numbers of the patterns that match, in their order.
    fn matching(&self, line: &str) -> impl Iterator<Item = usize> {
        self.0
            .as_ref()
            .map(|set| set.matches(line.as_bytes()).into_iter())
            .into_iter()
            .flatten()
    }

    fn is_match(&self, line: &str) -> bool {
        self.0
            .as_ref()
            .is_some_and(|set| set.is_match(line.as_bytes()))
    }
}
