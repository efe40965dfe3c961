//! Distinguishes error messages from lines that only contain the words.
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::{Outcome, Patterns};

/// How sure it is that `line`, which has no white space around it, is an error message, and how specific it is: 35 to
/// 100. `None` if it is none.
pub(super) fn score(line: &str, outcome: Outcome) -> Option<u8> {
    let best = ERROR_RULES
        .matching(line)
        .filter_map(|index| ERRORS.get(index))
        .map(|(_, score)| *score)
        .max()?;
    if NO_ERROR.is_match(line) && !line.starts_with("error") {
        return None;
    }
    // A strong form at the start of the line is an error even where the message quotes code.
    let core = without_place(line);
    let is_program = best < 92 && (core.len() < line.len() && best < 80 || PROGRAM.is_match(core));
    let score = match outcome {
        Outcome::Failed if is_program => best.saturating_sub(45),
        _ if is_program => return None,
        Outcome::Failed => best.saturating_add(5).min(100),
        // An entry of a list is more often prose about errors than an error.
        Outcome::Unknown if best < 80 && line.starts_with(['-', '*', '•']) => {
            best.saturating_sub(30)
        }
        Outcome::Unknown => best,
        Outcome::Succeeded => best.saturating_sub(15),
    };
    (score >= 35).then_some(score)
}

/// The line without the mark of a diff or the place that a search puts before it.
fn without_place(line: &str) -> &str {
    PLACE
        .as_ref()
        .and_then(|place| line.get(place.find(line.as_bytes())?.end()..))
        .map_or(line, str::trim_start)
}

static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    RegexBuilder::new(
        r"^(?:[+-]\s|[+-]{1,2}(?:\t|  )|(?:[\w./@~-]+[:-])?\d{1,6}[:-](?:\s|$)\s*|(?:\.{0,2}/)?[\w@~-]+(?:/[\w.@~-]+)+:\s+)",
    )
    .unicode(false)
    .build()
    .ok()
});
static ERROR_RULES: LazyLock<Patterns> =
    LazyLock::new(|| Patterns::new(ERRORS.iter().map(|(pattern, _)| *pattern)));
static NO_ERROR: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(NONE.iter().copied()));
static PROGRAM: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(CODE.iter().copied()));

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

/// Wordings that are no error although a word says so.
const NONE: &[&str] = &[
    r"(?i)\b(?:0|no|zero) (?:errors?|failures?|failed|problems?|issues?|warnings?)\b",
    r"(?i)\b(?:without|any) errors?\b",
    r"(?i)^(?:downloading|fetching|added|created|modified|deleted|renamed)[: ]",
    r"(?i)^\w+:? downloading ",
];

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
    r"^(?:│|├|└)",
];
