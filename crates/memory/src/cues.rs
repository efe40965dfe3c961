//! Recognises statements in a text: the user's corrections and facts, the model's decisions, a tool's errors.
//!
//! Everything here is a pure function of text. Nothing knows messages, sections or items: the caller says which text is
//! whose, and gets back slices of it with what they are and how sure that is (0 to 100).
//!
//! * [`user_sentences`] splits what came in the user's name into sentences, tells the person's own words from what was
//!   pasted or put in by a tool ([`Voice`]), and says of every sentence which [`Cue`]s it gives. [`message_confidence`]
//!   folds them for a whole message, [`is_short_and_human`] finds the messages that are best kept whole, and
//!   [`interruption`] recognises the texts by which clients say that the person stopped the model or refused a tool
//!   call: the message after one is nearly always a correction ([`Circumstances::after_interruption`]).
//! * [`denial`] and [`says_failed`] recognise the results of calls that were refused or have failed.
//! * [`asks_to_remember`] finds what the person explicitly asks to have remembered.
//! * [`supersedes`] says whether a later statement replaces an earlier one.
//! * [`assistant_statements`] finds decisions with reasons, abandoned approaches, finished work, findings, open
//!   questions and plans in the model's prose.
//! * [`output_lines`] finds error lines, test results, commits, pushes and builds in tool output, and
//!   [`headline_error`] the one error line that represents a failed call ([`key_errors`]: the few). They look only at lines that contain one of
//!   a few trigger words, so that megabytes of output without any cost next to nothing.
//! * [`language`] guesses the language of the person.
//!
//! Confidences are for thresholds, not probabilities: 80 and more is an explicit wording, 50 to 79 a usual one, 30 to 49
//! a hint that is worth keeping when there is room. Below 30 nothing is reported.
//!
//! The wording to search for is data: `data/cues/*.toml`, one file per language (see `files.rs`). A language
//! without a file falls back to English and to what punctuation shows: see [`reads`].
mod assistant;
mod denial;
mod files;
mod label;
mod output;
mod pasted;
mod phrases;
mod remember;
mod rules;
mod script;
mod sentences;
mod strings;
mod supersession;
mod tongue;
mod user;

pub use assistant::{Statement, StatementKind, assistant_statements};
pub use denial::{denial, says_failed};
pub(crate) use label::{is_labelled, without_label};
pub use output::{Outcome, OutputKind, OutputLine, headline_error, key_errors, output_lines};
pub use pasted::{Interruption, PastedKind, Voice, interruption};
pub use remember::asks_to_remember;
pub(crate) use rules::point;
pub(crate) use sentences::{list_mark, sentences};
pub(crate) use supersession::is_unspaced;
pub use supersession::{Claim, supersedes};
pub use tongue::{language, reads};
pub use user::{
    Circumstances, Cue, Cues, Sentence, is_short_and_human, message_confidence, sure_language,
    user_sentences,
};

#[cfg(test)]
mod tests;
