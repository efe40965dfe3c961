//! Where a phase of the work ends: a good moment to let go of how it was done.
//!
//! Signs are what happens, not what is planned: a todo list with every step done, a commit,
//! tests that pass after they had failed, a request that has no word in common with the ones before, a long pause. They
//! are signs, no more: a swap is never made for them alone if it would gain little.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use bytestring::ByteString;
use throughline_memory::cues::{
    Outcome as CallOutcome, OutputKind, denial, output_lines, says_failed,
};
use throughline_memory::extract::is_plan_done;
use throughline_transcript::message::{Content, Message, ToolResult};
use throughline_transcript::text::{head, tail};

/// What ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Every step of the plan is done.
    PlanDone,
    /// A commit was made.
    Commit,
    /// Tests pass that had failed.
    TestsGreen,
    /// The user speaks of something else.
    TopicShift,
    /// A long pause.
    Pause,
    /// The caller says so.
    Announced,
}

/// A pause this long ends a phase, milliseconds.
const PAUSE_MS: i64 = 30 * 60 * 1000;
/// Of a text or result, so much of the start and of the end is looked at, bytes.
const LOOKED_AT_BYTES: usize = 8_000;
/// Requests that a new one is compared with.
const REQUESTS_MAX: usize = 4;
/// Words of content that a request must have to be compared.
const WORDS_MIN: usize = 6;
/// Letters of a word of content.
const WORD_CHARACTERS_MIN: usize = 5;

/// Looks for ends of phases, message by message.
#[derive(Clone, Debug, Default)]
pub struct PhaseDetector {
    last_ms: Option<i64>,
    have_tests_failed: bool,
    /// How often each word occurs in the remembered requests.
    words: HashMap<u64, u32>,
    requests: VecDeque<Vec<u64>>,
    /// Ids of calls that say that all of the plan is done, and that have no result yet.
    finishing: Vec<ByteString>,
}

/// Calls that a result is awaited of. There is seldom more than one.
const FINISHING_MAX: usize = 16;

impl PhaseDetector {
    /// Whether a phase ends with, or just before, this message.
    pub fn push(&mut self, message: &Message) -> Option<Phase> {
        let mut found = None;
        if let Some(at) = message.at_ms {
            if self
                .last_ms
                .is_some_and(|last| at.saturating_sub(last) >= PAUSE_MS)
            {
                found = Some(Phase::Pause);
            }
            self.last_ms = Some(at);
        }
        if message.begins_turn() && self.is_other_topic(message) {
            found = found.or(Some(Phase::TopicShift));
        }
        for call in message.tool_calls() {
            if is_plan_done(call) == Some(true) && self.finishing.len() < FINISHING_MAX {
                self.finishing.push(call.id.clone());
            }
        }
        for result in message.tool_results() {
            if self.is_finished_by(result) {
                found = found.or(Some(Phase::PlanDone));
            }
            found = found.or(self.ended_by(result));
        }
        if message.begins_turn() {
            self.finishing.clear();
        }
        found
    }

    /// Whether a result says that a plan with every step done was written. A call that failed has written none.
    fn is_finished_by(&mut self, result: &ToolResult) -> bool {
        let place = self.finishing.iter().position(|id| *id == result.call_id);
        let Some(place) = place else { return false };
        self.finishing.swap_remove(place);
        let has_failed = match result.is_error {
            Some(has_failed) => has_failed,
            None => result.texts().next().is_some_and(|text| {
                let text = text.decode();
                says_failed(&text) || denial(&text).is_some()
            }),
        };
        !has_failed
    }

    fn ended_by(&mut self, result: &ToolResult) -> Option<Phase> {
        let outcome = match result.is_error {
            Some(true) => CallOutcome::Failed,
            _ => CallOutcome::Unknown,
        };
        let mut found = None;
        for text in result.texts() {
            let text = text.decode();
            let end = if text.len() > LOOKED_AT_BYTES {
                tail(&text, (text.len() - LOOKED_AT_BYTES).min(LOOKED_AT_BYTES))
            } else {
                ""
            };
            for part in [head(&text, LOOKED_AT_BYTES), end] {
                for line in output_lines(part, outcome) {
                    match line.kind {
                        OutputKind::Commit => found = found.or(Some(Phase::Commit)),
                        OutputKind::Tests { failed, passed } => {
                            if failed.unwrap_or(0) > 0 {
                                self.have_tests_failed = true;
                            } else if passed.unwrap_or(0) > 0 && self.have_tests_failed {
                                self.have_tests_failed = false;
                                found = found.or(Some(Phase::TestsGreen));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        found
    }

    fn is_other_topic(&mut self, message: &Message) -> bool {
        let mut words = Vec::new();
        for block in &message.blocks {
            if let Content::Text(text) = &block.content {
                let text = text.decode();
                words.extend(
                    head(&text, LOOKED_AT_BYTES)
                        .split(|character: char| !character.is_alphanumeric())
                        .filter(|word| word.chars().nth(WORD_CHARACTERS_MIN - 1).is_some())
                        .map(hash),
                );
            }
        }
        words.sort_unstable();
        words.dedup();
        let is_other = words.len() >= WORDS_MIN
            && self.words.len() >= WORDS_MIN
            && words.iter().all(|word| !self.words.contains_key(word));
        if is_other {
            self.words.clear();
            self.requests.clear();
        }
        for word in &words {
            *self.words.entry(*word).or_default() += 1;
        }
        self.requests.push_back(words);
        if self.requests.len() > REQUESTS_MAX {
            for word in self.requests.pop_front().unwrap_or_default() {
                if let Some(count) = self.words.get_mut(&word) {
                    *count -= 1;
                    if *count == 0 {
                        self.words.remove(&word);
                    }
                }
            }
        }
        is_other
    }
}

/// The same for a word in upper and lower case.
fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for character in word.chars().flat_map(char::to_lowercase) {
        character.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use throughline_transcript::json::Raw;
    use throughline_transcript::message::{Block, Role, ToolCall, ToolInput};

    use super::*;

    fn said(text: &str) -> Message {
        Message::new(Role::User, vec![Block::text(text)])
    }

    fn output(text: &str) -> Message {
        Message::new(
            Role::User,
            vec![Block::new(Content::ToolResult(ToolResult {
                call_id: ByteString::from("t1"),
                content: vec![Block::text(text)],
                is_error: None,
                is_server_side: false,
            }))],
        )
    }

    fn plan(json: &str) -> Message {
        Message::new(
            Role::Assistant,
            vec![Block::new(Content::ToolCall(ToolCall {
                id: ByteString::from("t1"),
                name: ByteString::from("TodoWrite"),
                input: ToolInput::Json(Raw::parse(json).unwrap()),
                is_server_side: false,
            }))],
        )
    }

    #[track_caller]
    fn check(messages: &[Message], expected: &[Option<Phase>]) {
        let mut detector = PhaseDetector::default();
        let found: Vec<_> = messages
            .iter()
            .map(|message| detector.push(message))
            .collect();
        assert_eq!(found, expected);
    }

    const OPEN: &str = r#"{"todos":[{"content":"Read the file","status":"completed"},{"content":"Write the test","status":"in_progress"}]}"#;
    const DONE: &str = r#"{"todos":[{"content":"Read the file","status":"completed"},{"content":"Write the test","status":"completed"}]}"#;

    #[test]
    fn a_plan_of_which_all_is_done() {
        let written = output("Todos have been modified successfully.");
        check(
            &[plan(OPEN), written.clone(), plan(DONE), written],
            &[None, None, None, Some(Phase::PlanDone)],
        );
    }

    #[test]
    fn a_plan_that_could_not_be_written_is_not_done() {
        let failed = |text: &str, is_error: Option<bool>| {
            let mut message = output(text);
            for block in &mut message.blocks {
                if let Content::ToolResult(result) = &mut block.content {
                    result.is_error = is_error;
                }
            }
            message
        };
        for result in [
            failed("no", Some(true)),
            failed("Error: the input does not fit the schema", None),
            failed("The user denied this operation; it was not run.", None),
        ] {
            check(&[plan(DONE), result], &[None, None]);
        }
        // Nor is one whose call was given up before it had a result.
        let late = output("Todos have been modified successfully.");
        check(&[plan(DONE), said("Stop."), late], &[None, None, None]);
    }

    #[test]
    fn tests_that_pass_after_they_had_failed() {
        let green = output("test result: ok. 12 passed; 0 failed; 0 ignored");
        let red = output("test result: FAILED. 11 passed; 1 failed; 0 ignored");
        check(
            &[green.clone(), red, green.clone(), green],
            &[None, None, Some(Phase::TestsGreen), None],
        );
    }

    #[test]
    fn a_commit() {
        check(
            &[output(
                "[main 1a2b3c4] Read dates with two digits\n 2 files changed, 10 insertions(+)",
            )],
            &[Some(Phase::Commit)],
        );
    }

    #[test]
    fn a_request_about_something_else() {
        check(
            &[
                said("Please change the parser so that comments begin with semicolons everywhere."),
                said(
                    "Now the parser should also accept sections in square brackets, with comments inside.",
                ),
                said(
                    "Different matter: translate yesterday's meeting minutes into Portuguese before lunch.",
                ),
                said("Thanks."),
            ],
            &[None, None, Some(Phase::TopicShift), None],
        );
    }

    #[test]
    fn a_long_pause() {
        let at = |minutes: i64| {
            let mut message = said("Next.");
            message.at_ms = Some(minutes * 60 * 1000);
            message
        };
        check(&[at(0), at(10), at(45)], &[None, None, Some(Phase::Pause)]);
    }
}
