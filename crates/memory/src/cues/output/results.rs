//! Recognises lines that report a test run, a commit, a push or a build.
use std::sync::LazyLock;

use regex::Regex;

use super::{OutputKind, Patterns};

/// What `line`, which has no white space around it, reports, with its score.
pub(super) fn result(line: &str) -> Option<(OutputKind, u8)> {
    let first = RESULTS.matching(line).next()?;
    Some(match first {
        COMMIT => (OutputKind::Commit, 90),
        PUSH => (OutputKind::Push, 85),
        BUILD => (OutputKind::Build, 70),
        PACKAGE => (
            OutputKind::Tests {
                passed: None,
                failed: None,
            },
            35,
        ),
        _ => {
            let (passed, failed) = (count(&PASSED, line), count(&FAILED, line));
            (
                OutputKind::Tests { passed, failed },
                if failed.unwrap_or(0) > 0 { 85 } else { 75 },
            )
        }
    })
}

const COMMIT: usize = 0;
const PUSH: usize = 1;
const BUILD: usize = 2;
/// One package of a Go test run: there may be hundreds.
const PACKAGE: usize = 3;

static RESULTS: LazyLock<Patterns> = LazyLock::new(|| {
    Patterns::new([
        r"^\[[\w./#+-]+(?: \(root-commit\))?(?: [\w./-]+)? [0-9a-f]{7,40}\] \S",
        r"^(?:[+ ] ?)?(?:[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}|\* \[new (?:branch|tag)\])\s+\S+ +-> \S+|^Everything up-to-date$",
        r"(?i)^(?:BUILD SUCCESS(?:FUL)?\b|BUILD FAILED\b|\[INFO\] BUILD \w+|Finished .*target\(s\) in |webpack .*compiled |.{0,20}compiled successfully|.{0,12}built in [\d.]+ ?m?s|build (?:succeeded|completed|finished)|Successfully built )",
        r"^ok\s+\S+\s+(?:[\d.]+s|\(cached\))",
        r"(?i)^(?:test result: \w+\.|=+ .*\b(?:passed|failed|error|errors)\b.* =+|Tests?:?\s+.*\b\d+ (?:passed|failed|total|passing|failing)\b|Test Suites:|Tests run: \d+|\d+ (?:passing|failing|passed|failed)\b|(?:ℹ|#) (?:pass|fail|tests) \d+|OK \(\d+ tests?|FAILED \((?:failures|errors)=|Ran \d+ tests? in|Summary .*tests run|.*\b\d+ examples?, \d+ failures?|PASS$)",
    ])
});
static PASSED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(\d+) (?:tests? )?(?:passed|passing)|(?:ℹ|#) pass (\d+)|OK \((\d+) tests?")
        .ok()
});
static FAILED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(\d+) (?:tests? )?(?:failed|failing|failures?)|(?:ℹ|#) fail (\d+)|Failures: (\d+)|failures=(\d+)").ok()
});

/// The number in `line` that `regex` captures.
fn count(regex: &LazyLock<Option<Regex>>, line: &str) -> Option<u32> {
    let found = regex.as_ref()?.captures(line)?;
    found.iter().skip(1).flatten().next()?.as_str().parse().ok()
}
