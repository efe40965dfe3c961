//! What reading a source gives: conversations, and what could not be read.

use bytestring::ByteString;

use crate::json::Raw;
use crate::message::{Block, Message};

/// Everything that was found in one source.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Name of the format, as in `--from`.
    pub format: &'static str,
    /// The conversations, in the order of the source.
    pub conversations: Vec<Conversation>,
    /// What could not be read.
    pub skipped: Vec<Skipped>,
}

/// One conversation: its messages and the settings that came with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The source's id; empty where it has none.
    pub id: String,
    /// Id of the conversation that started this one, for those of sub-agents.
    pub parent_id: Option<String>,
    /// Title or first words, where the source has a title.
    pub title: Option<String>,
    /// Model that answered last, as named in the source.
    pub model: Option<String>,
    /// Folder that the tool worked in.
    pub cwd: Option<String>,
    /// System prompt, where it stands apart from the messages.
    pub system: Vec<Block>,
    /// Tool definitions: a JSON array, as written.
    pub tools: Option<Raw>,
    /// The messages that are in force, in order.
    pub messages: Vec<Message>,
    /// Compactions that the source's own tool made: each with the index of the first message after it.
    pub compactions: Vec<CompactionMark>,
    /// What is odd about the conversation, but did not stop it from being read.
    pub problems: Vec<Problem>,
    /// The request body, for formats that are one.
    pub body: Option<Raw>,
}

impl Conversation {
    /// Notes that the source has `count` messages which its user has taken back.
    pub(crate) fn note_left_out(&mut self, count: usize, how: &str) {
        if count > 0 {
            self.problems.push(Problem {
                code: "rolled-back",
                message: self.messages.len().saturating_sub(1),
                text: format!("{count} messages were {how} and are not in the history"),
            });
        }
    }
}

/// Where the source's own tool compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionMark {
    /// Index of the message that stands for what was compacted, or of the first message after it.
    pub before_message: usize,
    /// Context size before, tokens, where the source tells.
    pub tokens_before: Option<u64>,
    /// `auto`, `manual` or what the source calls the trigger.
    pub trigger: Option<String>,
}

/// A piece of the source that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Line, counted from 1.
    pub line: usize,
    /// Bytes passed over.
    pub bytes: usize,
    /// Why, in words for the user.
    pub reason: String,
}

/// Something odd in a conversation that was read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Stable name, such as `orphan-tool-result`.
    pub code: &'static str,
    /// Index of the message.
    pub message: usize,
    /// In words for the user.
    pub text: String,
}

/// Why nothing could be read from a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source has no bytes, or only white space.
    #[error("the input is empty")]
    Empty,
    /// No format recognised it.
    #[error("the input is none of the known formats ({})", tried.join(", "))]
    UnknownFormat {
        /// The formats that were tried.
        tried: Vec<&'static str>,
    },
    /// The named format does not fit.
    #[error("the input is not {format}: {reason}")]
    NotThatFormat {
        /// The format that was asked for.
        format: &'static str,
        /// What is missing or wrong, and where.
        reason: String,
    },
    /// There is no format of that name.
    #[error("there is no format {name:?} (known: {})", known.join(", "))]
    NoSuchFormat {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
}

/// A source's text, and how it was repaired so that it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Valid UTF-8, without a byte-order mark.
    pub text: ByteString,
    /// Bytes that were not UTF-8 and NUL runs, by line.
    pub skipped: Vec<Skipped>,
}
