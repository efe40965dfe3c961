//! Recognises results that say that the call was refused or failed.

use super::pasted::HANDED_ON;

/// How the results of refused calls begin, as clients write them.
const DENIALS: [&str; 12] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "[Request interrupted by user",
    "The tool use was rejected",
    "The user denied this operation",
    "The user rejected permission to use this",
    "The user rejected this",
    "User rejected this",
    "user rejected this tool call",
    "Tool call was denied by user",
    "exec command rejected by user",
    "Permission for this tool use was denied",
];

/// What a client adds behind the person's words.
const ADDED: &str = "\n\nNote: The user's next message may contain";

/// What a client says in the person's place when they want to talk about questions before they answer them.
const CLARIFIES: &str = "The user wants to clarify these questions";

/// Of a denial, what precedes the person's words; bytes.
const PREAMBLE_BYTES_MAX: usize = 1000;

/// How the results of failed calls begin in formats that have no field for it; in lower case.
const FAILURES: [&str; 14] = [
    "error:",
    "error executing",
    "error writing",
    "error editing",
    "error applying",
    "error while",
    "<tool_use_error>",
    "failed to ",
    "apply_patch verification failed",
    "the tool execution failed",
    "no replacement was performed",
    "traceback (most recent call last)",
    "patch rejected",
    "aborted by user",
];

/// If `result` is, from its beginning, the text of a call that was refused: what the person said to that, which may be
/// nothing.
///
/// Anybody can write such a text. Whether it is one is for the caller to know.
#[must_use]
pub fn denial(result: &str) -> Option<&str> {
    let text = result.trim_start();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    if !DENIALS.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let head = &text[..text.floor_char_boundary(PREAMBLE_BYTES_MAX)];
    let said = HANDED_ON
        .iter()
        .filter_map(|mark| Some(head.find(mark)? + mark.len()))
        .min()
        .map_or("", |end| &text[end..]);
    let said = said.split(ADDED).next().unwrap_or(said).trim();
    Some(if said.starts_with(CLARIFIES) {
        ""
    } else {
        said
    })
}

/// Whether a result says at its beginning that its call has failed.
#[must_use]
pub fn says_failed(result: &str) -> bool {
    let text = result.trim_start();
    let head = text[..text.floor_char_boundary(60)].to_ascii_lowercase();
    let code = head.strip_prefix("exit code").map(|rest| {
        let rest = rest.trim_start_matches([':', ' ']);
        rest.bytes()
            .next()
            .is_some_and(|digit| matches!(digit, b'1'..=b'9' | b'-'))
    });
    code.unwrap_or(false) || FAILURES.iter().any(|start| head.starts_with(start))
}
