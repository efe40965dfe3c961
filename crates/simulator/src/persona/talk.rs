//! The assistant's small talk: what it says between and after its calls.

use crate::dice::Dice;

const THINGS: &[&str] = &[
    "the retry loop",
    "the session store",
    "the parser",
    "the request builder",
    "the cache layer",
    "the export job",
    "the migration",
    "the router",
    "the login form",
    "the billing worker",
    "the test fixture",
    "the config loader",
];
const NAMES: &[&str] = &[
    "load_config",
    "RetryPolicy",
    "SessionStore",
    "parse_header",
    "flush_queue",
    "BillingRow",
    "route_request",
    "open_cache",
    "export_rows",
    "check_token",
    "merge_rows",
    "WorkerPool",
];
const PLACES: &[&str] = &[
    "src/config.rs",
    "src/api/retry.rs",
    "src/store/session.rs",
    "tests/parser.rs",
    "src/router.rs",
    "app/billing.py",
    "lib/export.ts",
    "src/cache.rs",
    "src/worker.rs",
    "crates/core/src/queue.rs",
];
const FINDINGS: &[&str] = &[
    "returns early when the list is empty",
    "drops the last element of each batch",
    "keeps a lock across the await",
    "reads the environment twice",
    "does not distinguish a timeout from a refusal",
    "builds the same path in three places",
    "sorts by name where it should sort by time",
    "ignores the second page of results",
    "swallows the error of the inner call",
    "depends on the order of a hash map",
];
const PLANS: &[&str] = &[
    "I'd move that into one function and call it from both places",
    "the smallest change is to pass the limit down as an argument",
    "a test with two batches would have caught this",
    "we should make the state explicit instead of a pair of booleans",
    "it is worth keeping the old name as an alias for one release",
    "I would measure before changing the buffer size",
    "the error type needs one more variant",
    "that can wait until the migration is through",
];

/// One sentence about the work.
pub(crate) fn sentence(mind: &mut Dice) -> String {
    let line = mind.between(10, 480);
    match mind.below(5) {
        0 => format!(
            "`{}` in {}:{line} {}.",
            mind.pick(NAMES),
            mind.pick(PLACES),
            mind.pick(FINDINGS)
        ),
        1 => format!("For {}, {}.", mind.pick(THINGS), mind.pick(PLANS)),
        2 => format!(
            "I looked at {} and it {}.",
            mind.pick(THINGS),
            mind.pick(FINDINGS)
        ),
        3 => format!(
            "{} is called from {} and from {}.",
            mind.pick(NAMES),
            mind.pick(PLACES),
            mind.pick(PLACES)
        ),
        _ => format!(
            "After that, {}; see {}:{line}.",
            mind.pick(PLANS),
            mind.pick(PLACES)
        ),
    }
}

/// Announces what comes.
pub(crate) fn before_calls(mind: &mut Dice) -> String {
    let thing = mind.pick(THINGS);
    match mind.below(4) {
        0 => format!("Let me look at {thing}."),
        1 => format!("I'll check {thing} first."),
        2 => format!("{} Checking {thing} now.", sentence(mind)),
        _ => format!("Next: {thing}."),
    }
}

/// Goes on after a search of the provider's.
pub(crate) fn after_search(mind: &mut Dice) -> String {
    format!("The release notes settle it. {}", sentence(mind))
}

/// What the assistant says at the end of a turn.
pub(crate) fn report(asked: &str, has_tools: bool, mind: &mut Dice) -> String {
    let mut report = match mind.below(3) {
        0 => "Done.".to_owned(),
        1 => "Here is where this stands.".to_owned(),
        _ => "I went through it.".to_owned(),
    };
    if let Some(about) = about(asked) {
        report.push_str(&format!(" On \"{about}\":"));
    }
    report.push('\n');
    for _ in 0..mind.between(2, 7) {
        report.push('\n');
        if mind.happens(0.4) {
            report.push_str("- ");
        }
        report.push_str(&sentence(mind));
    }
    if mind.happens(if has_tools { 0.2 } else { 0.35 }) {
        let (name, other) = (mind.pick(NAMES), mind.pick(NAMES));
        let limit = mind.between(2, 64);
        report.push_str(&format!(
            "\n\n```rust\nlet limit = {limit};\nfor item in {name}(&input)?.iter().take(limit) {{\n    {other}(item)?;\n}}\n```"
        ));
    }
    if mind.happens(0.5) {
        report.push_str(&format!("\n\nNext I would look at {}.", mind.pick(THINGS)));
    }
    report
}

/// What the assistant thinks.
pub(crate) fn thought(asked: &str, mind: &mut Dice) -> String {
    let mut thought = match about(asked) {
        Some(about) => format!("They want: {about}."),
        None => "I have a result to look at.".to_owned(),
    };
    for _ in 0..mind.between(1, 6) {
        thought.push(' ');
        thought.push_str(&sentence(mind));
    }
    thought
}

/// The beginning of what was asked, in one line.
fn about(asked: &str) -> Option<String> {
    let line = asked.lines().map(str::trim).find(|line| !line.is_empty())?;
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    let about: String = words.join(" ").chars().take(60).collect();
    Some(
        about
            .trim_end_matches(['.', '?', '!', ',', ':', '"'])
            .to_owned(),
    )
    .filter(|about| !about.is_empty())
}

/// A summary in a language that the conversation does not use.
pub(crate) fn in_another_language(mind: &mut Dice) -> String {
    let mut text = "## Benutzeranliegen\n- Der Benutzer möchte, dass die Aufgabe vollständig abgeschlossen wird.\n\n## Erledigte Arbeit\n".to_owned();
    for _ in 0..mind.between(3, 6) {
        text.push_str(&format!(
            "- Die Datei {} wurde geändert, damit die Funktion {} den Fehler nicht mehr verschluckt.\n",
            mind.pick(PLACES),
            mind.pick(NAMES)
        ));
    }
    text.push_str("\n## Offene Aufgaben\n- Die restlichen Tests müssen noch geschrieben und ausgeführt werden.\n");
    text
}
