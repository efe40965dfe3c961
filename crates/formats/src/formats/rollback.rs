//! Removes messages that the user has withdrawn.

use throughline_transcript::conversation::{Conversation, Problem};

/// Notes that the source has `count` messages which its user has taken back.
pub(crate) fn note_left_out(conversation: &mut Conversation, count: usize, how: &str) {
    if count > 0 {
        conversation.problems.push(Problem {
            code: "rolled-back",
            message: conversation.messages.len().saturating_sub(1),
            text: format!("{count} messages were {how} and are not in the history"),
        });
    }
}
