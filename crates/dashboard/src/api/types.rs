//! The bodies of requests and answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit::Change;
use crate::messages::MessageView;
use crate::read::{HitView, MemoryView, PreviewView};
use crate::view::{Detail, Session, SessionMode, VersionView};

/// How a memory is made.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompactRequest {
    /// What the memory should be about.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub(super) focus: Option<String>,
    /// Whether the memory is only prepared.
    #[serde(default)]
    pub(super) preview: bool,
}

/// Which memory is approved.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproveRequest {
    /// The version that was looked at.
    pub(super) version: u32,
}

/// A fact to pin.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PinRequest {
    #[schemars(length(max = 8192))]
    pub(super) text: String,
    /// Index of the message that it comes from.
    #[serde(default)]
    pub(super) message: Option<usize>,
}

/// Changes to a memory.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Edit")]
pub(super) struct EditRequest {
    /// The version that was looked at.
    pub(super) version: u32,
    pub(super) changes: Vec<Change>,
}

/// The settings of a session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigureRequest {
    pub(super) mode: SessionMode,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SessionList {
    pub(super) sessions: Vec<Session>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SessionAnswer {
    #[serde(flatten)]
    pub(super) session: Session,
    pub(super) detail: Detail,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct MessageList {
    pub(super) messages: Vec<MessageView>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct MemoryList {
    pub(super) memories: Vec<VersionView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Memory")]
pub(super) struct MemoryAnswer {
    #[serde(flatten)]
    pub(super) memory: MemoryView,
    pub(super) markdown: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct PreviewAnswer {
    pub(super) preview: Option<PreviewView>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct HitList {
    pub(super) hits: Vec<HitView>,
}

/// What an action did.
#[derive(Serialize, JsonSchema)]
pub(super) struct Outcome {
    pub(super) outcome: OutcomeKind,
    /// The memory that is in the requests from the next one on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<u32>,
    /// The new pin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutcomeKind {
    Swapped,
    Prepared,
    Running,
    Undone,
    Pinned,
    Unpinned,
    Edited,
    Configured,
    Deleted,
}

/// Why there is no answer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorAnswer {
    pub(super) error: ErrorDetail,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ErrorDetail {
    pub(super) code: &'static str,
    pub(super) message: String,
}
