//! The types of content block: which role may have them, whether they can be marked for the cache, their fields.

/// The roles of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    System,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

const USER: u8 = 1;
const ASSISTANT: u8 = 2;
const SYSTEM: u8 = 4;

/// What is the same for all blocks of a type.
pub(crate) struct Spec {
    pub(crate) kind: &'static str,
    roles: u8,
    pub(crate) can_be_marked: bool,
    pub(crate) fields: &'static [&'static str],
}

impl Spec {
    /// Whether a message of the role may hold such a block.
    pub(crate) fn is_allowed_in(&self, role: Role) -> bool {
        let bit = match role {
            Role::User => USER,
            Role::Assistant => ASSISTANT,
            Role::System => SYSTEM,
        };
        self.roles & bit != 0
    }
}

const fn spec(kind: &'static str, roles: u8, fields: &'static [&'static str]) -> Spec {
    Spec {
        kind,
        roles,
        can_be_marked: true,
        fields,
    }
}

const fn unmarkable(kind: &'static str, roles: u8, fields: &'static [&'static str]) -> Spec {
    Spec {
        can_be_marked: false,
        ..spec(kind, roles, fields)
    }
}

const RESULT_FIELDS: &[&str] = &["tool_use_id", "content", "caller"];

pub(crate) const SPECS: &[Spec] = &[
    spec("text", USER | ASSISTANT | SYSTEM, &["text", "citations"]),
    spec("image", USER, &["source", "transformations"]),
    // Whether an assistant message may have a document depends on the version: it has its own rule.
    spec(
        "document",
        USER | ASSISTANT,
        &["source", "title", "context", "citations"],
    ),
    spec(
        "search_result",
        USER,
        &["source", "title", "content", "citations"],
    ),
    spec(
        "tool_use",
        ASSISTANT,
        &["id", "name", "input", "caller", "toolset_name"],
    ),
    spec(
        "tool_result",
        USER,
        &["tool_use_id", "content", "is_error", "toolset_name"],
    ),
    unmarkable("thinking", ASSISTANT, &["thinking", "signature"]),
    unmarkable("redacted_thinking", ASSISTANT, &["data"]),
    spec(
        "server_tool_use",
        ASSISTANT,
        &["id", "name", "input", "caller"],
    ),
    spec("web_search_tool_result", ASSISTANT, RESULT_FIELDS),
    spec("web_fetch_tool_result", ASSISTANT, RESULT_FIELDS),
    spec("code_execution_tool_result", ASSISTANT, RESULT_FIELDS),
    spec("bash_code_execution_tool_result", ASSISTANT, RESULT_FIELDS),
    spec(
        "text_editor_code_execution_tool_result",
        ASSISTANT,
        RESULT_FIELDS,
    ),
    spec("tool_search_tool_result", ASSISTANT, RESULT_FIELDS),
    spec("advisor_tool_result", ASSISTANT, RESULT_FIELDS),
    spec("container_upload", USER | ASSISTANT, &["file_id"]),
    spec(
        "mcp_tool_use",
        ASSISTANT,
        &["id", "name", "server_name", "input"],
    ),
    spec(
        "mcp_tool_result",
        ASSISTANT,
        &["tool_use_id", "is_error", "content"],
    ),
    unmarkable("mcp_tool_listing", ASSISTANT, &["mcp_server_name", "tools"]),
    spec(
        "compaction",
        ASSISTANT,
        &["content", "encrypted_content", "signature", "tool_changes"],
    ),
    unmarkable("fallback", ASSISTANT, &["from", "to", "trigger"]),
    unmarkable("tool_addition", SYSTEM, &["tool"]),
    unmarkable("tool_removal", SYSTEM, &["tool"]),
];
