//! A conversation from a source: its messages and settings.

use crate::json::Raw;
use crate::message::{Block, Message};

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
    /// System prompt, if it is separate from the messages.
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

/// Where the source's own tool compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionMark {
    /// Index of the message that replaces the compacted part, or of the first message after it.
    pub before_message: usize,
    /// Context size before the compaction, tokens, if the source states it.
    pub tokens_before: Option<u64>,
    /// `auto`, `manual` or what the source calls the trigger.
    pub trigger: Option<String>,
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
