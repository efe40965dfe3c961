//! What tool output says: errors, test results, commits, pushes, builds.
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

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
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// How much it says, 0 to 100: for errors, how sure it is that this is an error message and how specific it is.
    pub score: u8,
}

/// The telling lines of `text`, in order.
pub fn output_lines(text: &str, outcome: Outcome) -> impl Iterator<Item = OutputLine<'_>> {
    Lines {
        text,
        outcome,
        at: 0,
        hits: TRIGGERS.as_ref().map(|triggers| triggers.find_iter(text)),
    }
}

/// The line that stands for the failure of a call: the first of those that score best, within ten points.
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

/// At most `most` error lines that stand for a failed call, in the order of the text: the first one, which names what
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

/// Words of which a telling line contains at least one.
const WORDS: [&str; 68] = [
    "rror",
    "RROR",
    "ail",
    "AIL",
    "atal:",
    "FATAL",
    "xception",
    "anic",
    "assed",
    "assing",
    "ould not",
    "nable to",
    "ok  \t",
    "***",
    "Ran ",
    "BUILD ",
    "uccessfully",
    "uilt in",
    "verything up-to-date",
    "kipped",
    "ot supported",
    "PASS",
    "ot found",
    "Not Found",
    "such file",
    "enied",
    "undefined",
    "not defined",
    "annot ",
    "an't ",
    "✗",
    "✘",
    "❌",
    "Assert",
    "assert",
    "xit code",
    "xit status",
    "HTTP 4",
    "HTTP 5",
    "HTTP/1.1 4",
    "HTTP/1.1 5",
    "HTTP/2 4",
    "HTTP/2 5",
    "ommitted",
    "not exist",
    "test result:",
    "ok (",
    "timed out",
    "imeout",
    "refused",
    "nresolved",
    "onflict",
    "CONFLICT",
    "rejected",
    "reject",
    "Killed",
    "egmentation",
    "unknown ",
    "Unknown ",
    "nvalid ",
    " -> ",
    "] ",
    "uild ",
    "Finished ",
    "ompiled",
    "issing ",
    "not read",
    "multiple matches",
];

static TRIGGERS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .build(WORDS)
        .ok()
});

struct Lines<'a> {
    text: &'a str,
    outcome: Outcome,
    at: usize,
    hits: Option<aho_corasick::FindIter<'static, 'a>>,
}

impl<'a> Iterator for Lines<'a> {
    type Item = OutputLine<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let hit = self.hits.as_mut()?.next()?;
            if hit.start() < self.at {
                continue;
            }
            let bytes = self.text.as_bytes();
            let start = bytes
                .get(..hit.start())
                .and_then(|before| memchr::memrchr(b'\n', before))
                .map_or(0, |at| at + 1);
            let end = bytes
                .get(hit.end()..)
                .and_then(|after| memchr::memchr(b'\n', after))
                .map_or(bytes.len(), |at| hit.end() + at);
            self.at = end;
            let Some(line) = self.text.get(start..end) else {
                continue;
            };
            if let Some((kind, score)) = classify(line, self.outcome) {
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

fn classify(line: &str, outcome: Outcome) -> Option<(OutputKind, u8)> {
    const LONG_BYTES: usize = 2000;
    let head = line
        .get(..line.floor_char_boundary(LONG_BYTES))
        .unwrap_or(line);
    let plain = strip_colour(head);
    let trimmed = plain.trim();
    if trimmed.len() < 3 || is_listing(trimmed) {
        return None;
    }
    if let Some((passed, failed)) = test_counts(trimmed) {
        return Some((
            OutputKind::Tests { passed, failed },
            if failed.unwrap_or(0) > 0 { 85 } else { 75 },
        ));
    }
    if is_match(&COMMIT, trimmed) {
        return Some((OutputKind::Commit, 90));
    }
    if is_match(&PUSH, trimmed) {
        return Some((OutputKind::Push, 85));
    }
    if is_match(&BUILD, trimmed) {
        return Some((OutputKind::Build, 70));
    }
    error_score(trimmed, outcome).map(|score| (OutputKind::Error, score))
}

fn strip_colour(line: &str) -> std::borrow::Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return std::borrow::Cow::Borrowed(line);
    }
    COLOUR
        .as_ref()
        .map_or(std::borrow::Cow::Borrowed(line), |regex| {
            regex.replace_all(line, "")
        })
}

/// A line of a file shown with its number (`12→`, `12\t`, `12:`, `12 |`), or of a search result.
fn is_listing(line: &str) -> bool {
    is_match(&LISTING, line)
}

/// The line without the mark of a diff or the place that a search puts before it.
fn strip_place(line: &str) -> &str {
    PLACE
        .as_ref()
        .and_then(|regex| regex.find(line))
        .and_then(|found| line.get(found.end()..))
        .map_or(line, str::trim_start)
}

static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:[+-]\s|[+-]{1,2}(?:\t|  )|(?:[\w./@~-]+[:-])?\d{1,6}[:-](?:\s|$)\s*|(?:\.{0,2}/)?[\w@~-]+(?:/[\w.@~-]+)+:\s+)").ok()
});
static COLOUR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\x1b\[[0-9;]*[A-Za-z]").ok());
static LISTING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:>\s*)?\d{1,6}\s*(?:→|\t|│|\||: )").ok());
static COMMIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\[[\w./#+-]+(?: \(root-commit\))?(?: [\w./-]+)? [0-9a-f]{7,40}\] \S").ok()
});
static PUSH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:[+ ] ?)?(?:[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}|\* \[new (?:branch|tag)\])\s+\S+ -> \S+|^Everything up-to-date$").ok()
});
static BUILD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:BUILD SUCCESS(?:FUL)?\b.*|BUILD FAILED\b.*|\[INFO\] BUILD \w+|Finished .*target\(s\) in .*|webpack .*compiled .*|.{0,20}compiled successfully.*|.{0,12}built in [\d.]+ ?m?s.*|build (?:succeeded|completed|finished).*|Successfully built .*)$").ok()
});
static TEST_SUMMARY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:test result: \w+\.|=+ .*\b(?:passed|failed|error|errors)\b.* =+|Tests?:?\s+.*\b\d+ (?:passed|failed|total|passing|failing)\b|Test Suites:|Tests run: \d+|\d+ (?:passing|failing|passed|failed)\b|\s*(?:ℹ|#) (?:pass|fail|tests) \d+|OK \(\d+ tests?|FAILED \((?:failures|errors)=|Ran \d+ tests? in|Summary .*tests run|.*\b\d+ examples?, \d+ failures?|ok\s+\S+\s+(?:[\d.]+s|\(cached\))|PASS$)").ok()
});
static PASSED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(\d+) (?:tests? )?(?:passed|passing)|(?:ℹ|#) pass (\d+)|OK \((\d+) tests?")
        .ok()
});
static FAILED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(\d+) (?:tests? )?(?:failed|failing|failures?)|(?:ℹ|#) fail (\d+)|Failures: (\d+)|failures=(\d+)").ok()
});

fn is_match(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

fn test_counts(line: &str) -> Option<(Option<u32>, Option<u32>)> {
    if !is_match(&TEST_SUMMARY, line) {
        return None;
    }
    let count = |regex: &LazyLock<Option<Regex>>| -> Option<u32> {
        let found = regex.as_ref()?.captures(line)?;
        found.iter().skip(1).flatten().next()?.as_str().parse().ok()
    };
    Some((count(&PASSED), count(&FAILED)))
}

/// Wordings of errors with how much they say, best first.
const ERRORS: &[(&str, u8)] = &[
    (r"^<tool_use_error>", 92),
    (r"^error(?:\[E\d+\])?: \S", 94),
    (r"^(?:fatal|FATAL|panic|PANIC): \S", 94),
    (r"panicked at ", 94),
    (
        r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt)(?: \[[A-Z_]+\])?(?::|$)",
        93,
    ),
    (
        r"^(?:Uncaught |Unhandled |Caused by: |Exception in thread )",
        90,
    ),
    (r"^[\w./\\@~-]+\(\d+,\d+\): error", 95),
    (
        r"^[\w./\\@~+-]+:\d+(?::\d+)?:? (?:- )?(?:fatal )?error\b",
        95,
    ),
    (r"^[\w./\\@~+-]+\.\w+:\d+:\d+: \S", 86),
    (r"^[\w./\\@~+-]+_test\.\w+:\d+: \S", 82),
    (r"^(?:\d+:\d+|\s*\d+:\d+)\s+error\s+\S", 88),
    (
        r"^(?:npm ERR!|npm error|yarn error|pnpm ERR|ERR_|ERR!) ?\S",
        80,
    ),
    (r"^--- FAIL: ", 92),
    (r"^FAIL(?:ED)?[:\s]\s*\S", 90),
    (r"\bFAILED\b", 84),
    (
        r"^\S{1,40}: (?:error|fatal|cannot|can't|command not found|No such file|permission denied)\b",
        90,
    ),
    (r"command not found|: not found$", 90),
    (r"No such file or directory|ENOENT", 90),
    (r"[Pp]ermission denied|EACCES|EPERM|Access is denied", 90),
    (
        r"ECONNREFUSED|ETIMEDOUT|[Cc]onnection refused|[Cc]onnection reset|[Tt]imed out|deadline exceeded",
        86,
    ),
    (
        r"HTTP(?:/\d(?:\.\d)?)?[ :]+[45]\d\d|\(HTTP [45]\d\d\)|\bstatus(?: code)?:? [45]\d\d\b",
        86,
    ),
    (
        r"^(?:CONFLICT \(|Automatic merge failed|! \[rejected\]|error: failed to push)",
        90,
    ),
    (
        r"^(?:ERROR|Error|\[ERROR\]|\[error\]|✗|✘|❌|×|E  )[:\s]\s*\S",
        90,
    ),
    (r"^\[[\w:.-]+\] ERROR\b", 80),
    (r"\b(?:ERROR|FATAL|CRITICAL)\b.{3}", 74),
    (
        r"[Aa]ssertion (?:`.*` )?failed|^Assert\w*\b.*\bfailed|assert(?:ion)?Error",
        88,
    ),
    (
        r"^(?:undefined reference|undefined symbol|ld: |collect2: )|undefined: \w|is not defined\b",
        86,
    ),
    (
        r"^(?:Could not|Cannot|Can't|Unable to|Failed to|Not found|Unknown|Invalid|Missing|Unrecognized|Unsupported) \S",
        80,
    ),
    (
        r"(?i)\bfailed (?:to|with|at|on|in|because|for)\b|\bhas failed\b|\bcould not\b|\bunable to\b",
        68,
    ),
    (
        r"(?i)\b(?:does not exist|doesn't exist|was not found|is not found|could not be found|not a git repository|is not recognized|already exists|cannot find|can't find|not installed|Segmentation fault|out of memory|Killed$)",
        74,
    ),
    (
        r"^(?:exit code|Exit code|exit status|Process exited with code|Command failed with exit code|Command exited with code):? ?[1-9]",
        45,
    ),
    (r"^\w*make(?:\[\d+\])?: \*\*\* ", 80),
    (r"(?i)\b\w+ error: \S", 72),
    (r"(?i)^error\b", 70),
    (r"\b[A-Z]\w+(?:Error|Exception): \S", 80),
];

static ERROR_RULES: LazyLock<Vec<(Regex, u8)>> = LazyLock::new(|| {
    ERRORS
        .iter()
        .filter_map(|(pattern, score)| Some((Regex::new(pattern).ok()?, *score)))
        .collect()
});

/// Wordings that are no error although a word says so.
const NONE: &[&str] = &[
    r"(?i)\b(?:0|no|zero) (?:errors?|failures?|failed|problems?|issues?|warnings?)\b",
    r"(?i)\b(?:without|any) errors?\b",
    r"(?i)^(?:downloading|fetching|added|created|modified|deleted|renamed)[: ]",
    r"(?i)^\w+:? downloading ",
];

static NO_ERROR: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    NONE.iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
});

/// Marks of program text: such a line contains the word and reports nothing.
const CODE: &[&str] = &[
    r"^(?://|/\*|\*|#\s|<!--|--\s|;;)",
    r"^(?:pub |async |export |static |private |public |protected |const |let |var |fn |func |def |class |struct |enum |type |interface |impl |use |import |from |return |throw |raise |if |else|elif |for |while |switch |case |match |try|catch|except |finally|await |yield |defer |require|package |@|\}|\{|\)|\])",
    r"[;{,]$",
    r"=>|:=| = |\berr != nil|\berr\b.*\{|\?\.|&&|\|\|",
    r#"^["'`].*["'`],?$"#,
    r"^[+-]\s*(?://|#|\w+\(|if |return |\}|import |const |let )",
    r"^\w+(?:\.\w+)*\(.*\)\??$",
    r"^(?:Some|Ok|Err|None)\(",
    r#"^[\w.]+!?\(.*["'`].*\)"#,
    r"^[│├└]",
];

static PROGRAM: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    CODE.iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
});

fn error_score(line: &str, outcome: Outcome) -> Option<u8> {
    if NO_ERROR.iter().any(|regex| regex.is_match(line)) && !line.starts_with("error") {
        return None;
    }
    let best = ERROR_RULES
        .iter()
        .filter(|(regex, _)| regex.is_match(line))
        .map(|(_, score)| *score)
        .max()?;
    // A strong form at the start of the line is an error even where the message quotes code.
    let core = strip_place(line);
    let is_program = best < 92
        && (core.len() < line.len() && best < 80
            || PROGRAM.iter().any(|regex| regex.is_match(core)));
    let score = match (is_program, outcome) {
        (true, Outcome::Failed) => best.saturating_sub(45),
        (true, _) => return None,
        (false, Outcome::Failed) => best.saturating_add(5).min(100),
        // An entry of a list is more often prose about errors than an error.
        (false, Outcome::Unknown) if best < 80 && line.starts_with(['-', '*', '•']) => {
            best.saturating_sub(30)
        }
        (false, Outcome::Unknown) => best,
        (false, Outcome::Succeeded) => best.saturating_sub(15),
    };
    (score >= 35).then_some(score)
}
