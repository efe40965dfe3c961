//! Notes that an agent itself writes to the model in a conversation. They are neither user input nor tool output, so
//! memories leave them out.

/// After an answer that was cut off.
pub const CUT_OFF: &str = "<note>Your last answer was cut off at its limit. A call that was not whole was not run. Go on \
                           from there; make such a call again with less in it, in several calls if need be.</note>";
/// Result of a call that was not started.
pub const NOT_RUN: &str = "This call was not run: the user went on without it.";
/// Result of a call that was interrupted, so that its effect is unknown.
pub const BROKEN_OFF: &str = "This call was broken off before it had a result. Some or all of what it does may have been \
                              done: look before you make it again.";
/// Result of a call that needed an approval when no user could give it.
pub const NOBODY_TO_APPROVE: &str = "This call was not run: it needs somebody's approval, and nobody is there to give it. \
                                     Go on without it, or say what you would have done.";
/// Result of a call that the user refused. The user's words about it follow the results.
pub const DENIED: &str =
    "The user denied this operation; it was not run. Do not try to reach the same by another way.";

/// Whether a text is one of these and nothing else, as any of the formats has it.
pub(crate) fn is_note(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    [CUT_OFF, NOT_RUN, BROKEN_OFF, NOBODY_TO_APPROVE, DENIED].contains(&text)
}

/// Whether it is the note of a call that may have been done in part.
pub(crate) fn is_of_half_done(text: &str) -> bool {
    text.contains(BROKEN_OFF)
}
