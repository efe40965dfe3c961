//! The list of rules: the stable code, severity and provider of each.

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The body may be refused, or may not mean what it seems to.
    Warning,
    /// The provider refuses the body.
    Error,
}

impl Severity {
    /// `error` or `warning`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One rule of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable name. Rules of different providers that mean the same share it.
    pub code: &'static str,
    /// The severity of a breach. Findings are only warnings if the rule depends on something unknown.
    pub severity: Severity,
    /// Whose rule it is.
    pub source: &'static str,
}

/// All rules.
#[must_use]
pub fn rules() -> &'static [Rule] {
    ALL
}

macro_rules! rules {
    ($($name:ident = $severity:ident $code:literal, $source:expr;)*) => {
        $(pub(crate) const $name: Rule = Rule {
            code: $code,
            severity: Severity::$severity,
            source: $source,
        };)*
        static ALL: &[Rule] = &[$($name),*];
    };
}

const ANY: &str = "request schema";
const JSON: &str = "JSON (RFC 8259)";
const MESSAGES: &str = "Anthropic Messages";
const CACHING: &str = "Anthropic prompt caching";
const THINKING: &str = "Anthropic thinking";
const COMPACTION: &str = "Anthropic compaction";
const THREADS: &str = "Anthropic message threads";
const CHAT: &str = "OpenAI Chat Completions";
const RESPONSES: &str = "OpenAI Responses";
const TEMPLATE: &str = "chat templates of local models";

rules! {
    // Every format
    INVALID_JSON = Error "invalid-json", JSON;
    LONE_SURROGATE = Error "lone-surrogate", JSON;
    DUPLICATE_KEY = Warning "duplicate-key", JSON;
    BODY_NOT_OBJECT = Error "body-not-object", ANY;
    BODY_TOO_LARGE = Error "body-too-large", ANY;
    MISSING_FIELD = Error "missing-field", ANY;
    WRONG_TYPE = Error "wrong-type", ANY;
    EMPTY_VALUE = Error "empty-value", ANY;
    OUT_OF_RANGE = Error "out-of-range", ANY;
    UNKNOWN_VALUE = Warning "unknown-value", ANY;
    UNKNOWN_FIELD = Warning "unknown-field", ANY;
    UNKNOWN_BLOCK_TYPE = Warning "unknown-block-type", ANY;
    BASE64_INVALID = Error "base64-invalid", ANY;

    // Anthropic: settings
    MAX_TOKENS_ABOVE_MODEL = Error "max-tokens-above-model", MESSAGES;
    PREWARM_CONFLICT = Error "prewarm-conflict", CACHING;
    SAMPLING_REMOVED = Error "sampling-removed", MESSAGES;
    SAMPLING_WITH_THINKING = Error "sampling-with-thinking", THINKING;
    SYSTEM_NOT_TEXT = Error "system-not-text", MESSAGES;
    DUPLICATE_TOOL_NAME = Error "duplicate-tool-name", MESSAGES;
    TOOL_NAME = Warning "tool-name-characters", MESSAGES;
    TOOL_CHOICE_UNKNOWN = Error "tool-choice-unknown-tool", MESSAGES;
    TOOL_CHOICE_WITHOUT_TOOLS = Error "tool-choice-without-tools", MESSAGES;
    TOOL_CHOICE_TYPE = Error "tool-choice-type", MESSAGES;
    FORCED_TOOL = Error "forced-tool-choice", MESSAGES;
    FORCED_TOOL_WITH_THINKING = Error "forced-tool-with-thinking", THINKING;
    THINKING_TYPE = Error "thinking-type", THINKING;
    THINKING_MODE = Error "thinking-mode-unsupported", THINKING;
    THINKING_BUDGET = Error "thinking-budget", THINKING;
    THINKING_DISABLED_AT_EFFORT = Error "thinking-disabled-at-effort", THINKING;
    TASK_BUDGET = Error "task-budget", MESSAGES;
    BETA_MISSING = Error "beta-header-missing", MESSAGES;
    COMPACTION_UNSUPPORTED = Error "compaction-unsupported", COMPACTION;
    COMPACTION_WITH_CONTEXT = Error "compaction-with-context-management", COMPACTION;
    COMPACTION_SHAPES_REPLY = Error "compaction-shapes-reply", COMPACTION;
    COMPACTION_TRIGGER_VALUE = Error "compaction-trigger-too-low", COMPACTION;
    CLEAR_THINKING_ORDER = Warning "clear-thinking-order", COMPACTION;
    THREAD_TYPE = Error "thread-type", THREADS;
    THREAD_REPEATS = Error "thread-continue-repeats", THREADS;

    // Anthropic: messages
    MESSAGES_EMPTY = Error "messages-empty", MESSAGES;
    TOO_MANY_MESSAGES = Error "too-many-messages", MESSAGES;
    UNKNOWN_ROLE = Error "unknown-role", MESSAGES;
    FIRST_NOT_USER = Error "first-message-not-user", MESSAGES;
    SYSTEM_FIRST = Error "system-first", MESSAGES;
    SYSTEM_MISPLACED = Error "system-misplaced", MESSAGES;
    SYSTEM_UNSUPPORTED = Error "system-unsupported", MESSAGES;
    PREFILL = Error "prefill-unsupported", MESSAGES;
    PREFILL_SPACE = Error "prefill-trailing-space", MESSAGES;
    EMPTY_CONTENT = Error "empty-content", MESSAGES;
    EMPTY_TEXT = Error "empty-text", MESSAGES;
    BLANK_TEXT = Error "blank-text", MESSAGES;
    BLOCK_ROLE = Error "block-wrong-role", MESSAGES;
    DOCUMENT_IN_ASSISTANT = Error "document-in-assistant", MESSAGES;
    CITATIONS_IN_USER = Error "citations-in-user-text", MESSAGES;
    IMAGE_MEDIA_TYPE = Error "media-type", MESSAGES;
    TOO_MANY_IMAGES = Error "too-many-images", MESSAGES;
    RESULT_CONTENT = Error "tool-result-content-type", MESSAGES;
    TOOL_ID = Error "tool-id-characters", MESSAGES;
    TOOL_INPUT = Error "tool-input-not-object", MESSAGES;

    // Anthropic: tool pairing
    USE_WITHOUT_RESULT = Error "tool-use-without-result", MESSAGES;
    RESULT_WITHOUT_USE = Error "tool-result-without-use", MESSAGES;
    RESULT_NOT_ADJACENT = Error "tool-result-not-adjacent", MESSAGES;
    RESULT_NOT_FIRST = Error "tool-result-not-first", MESSAGES;
    DUPLICATE_USE = Error "duplicate-tool-use-id", MESSAGES;
    DUPLICATE_RESULT = Error "duplicate-tool-result", MESSAGES;
    TOOLSET_MISMATCH = Error "toolset-name-mismatch", MESSAGES;
    SERVER_USE_WITHOUT_RESULT = Error "server-tool-without-result", MESSAGES;
    SERVER_RESULT_WITHOUT_USE = Error "server-result-without-use", MESSAGES;
    SERVER_TOOL_UNDEFINED = Error "server-tool-undefined", MESSAGES;
    TOOLS_MISSING = Warning "tools-missing", MESSAGES;

    // Anthropic: thinking blocks
    SIGNATURE_MISSING = Error "thinking-signature-missing", THINKING;
    THINKING_FIRST = Error "thinking-not-first", THINKING;
    THINKING_LAST = Warning "thinking-last", THINKING;

    // Anthropic: cache markers
    MARKER_MALFORMED = Error "cache-marker-malformed", CACHING;
    TOO_MANY_MARKERS = Error "too-many-cache-markers", CACHING;
    MARKER_ORDER = Error "cache-ttl-order", CACHING;
    MARKER_ON_THINKING = Error "cache-marker-on-thinking", CACHING;
    MARKER_ON_EMPTY = Error "cache-marker-on-empty-text", CACHING;
    MARKER_NESTED = Warning "cache-marker-misplaced", CACHING;
    MARKER_AUTOMATIC = Error "cache-automatic-ttl", CACHING;

    // Anthropic: compaction blocks
    COMPACTION_MISPLACED = Error "compaction-block-misplaced", COMPACTION;
    COMPACTION_AMBIGUOUS = Error "compaction-block-ambiguous", COMPACTION;
    COMPACTION_EMPTY = Error "compaction-block-empty", COMPACTION;
    COMPACTION_INCOMPLETE = Error "compaction-incomplete-turn", COMPACTION;
    COMPACTION_NOTHING = Error "compaction-nothing-to-summarize", COMPACTION;

    // OpenAI Chat Completions
    CHAT_MESSAGES_EMPTY = Error "messages-empty", CHAT;
    CHAT_ROLE = Error "unknown-role", CHAT;
    CHAT_FUNCTION_ROLE = Warning "deprecated-function", CHAT;
    CHAT_CONTENT = Error "content-missing", CHAT;
    CHAT_EMPTY_CONTENT = Error "empty-content", CHAT;
    CHAT_PART = Error "content-part-type", CHAT;
    CHAT_NAME = Error "name-characters", CHAT;
    CHAT_CALLS_EMPTY = Error "tool-calls-empty", CHAT;
    CHAT_CALLS_ROLE = Error "tool-calls-wrong-role", CHAT;
    CHAT_CALL_TYPE = Error "tool-call-type", CHAT;
    CHAT_FUNCTION_NAME = Error "function-name", CHAT;
    CHAT_ARGUMENTS = Warning "tool-arguments-not-json", CHAT;
    CHAT_USE_WITHOUT_RESULT = Error "tool-use-without-result", CHAT;
    CHAT_RESULT_WITHOUT_USE = Error "tool-result-without-use", CHAT;
    CHAT_RESULT_NOT_ADJACENT = Error "tool-result-not-adjacent", CHAT;
    CHAT_DUPLICATE_USE = Error "duplicate-tool-use-id", CHAT;
    CHAT_DUPLICATE_RESULT = Error "duplicate-tool-result", CHAT;
    CHAT_DUPLICATE_TOOL = Warning "duplicate-tool-name", CHAT;
    CHAT_TOOLS_EMPTY = Warning "tools-empty", CHAT;
    CHAT_WITHOUT_TOOLS = Error "tool-choice-without-tools", CHAT;
    CHAT_TOOL_CHOICE_TYPE = Error "tool-choice-type", CHAT;
    CHAT_TOOL_CHOICE_UNKNOWN = Error "tool-choice-unknown-tool", CHAT;
    CHAT_MAX_TOKENS_TWICE = Error "max-tokens-twice", CHAT;
    CHAT_MAX_TOKENS_OLD = Warning "max-tokens-deprecated", CHAT;
    CHAT_MAX_TOKENS_ABOVE_MODEL = Error "max-tokens-above-model", CHAT;
    CHAT_SAMPLING = Error "sampling-removed", CHAT;
    CHAT_STOP = Error "stop-sequences", CHAT;
    CHAT_STREAM_OPTIONS = Error "stream-options-without-stream", CHAT;
    CHAT_LOGPROBS = Error "logprobs", CHAT;
    CHAT_RESPONSE_FORMAT = Error "response-format", CHAT;
    CHAT_METADATA = Error "metadata", CHAT;
    TEMPLATE_DEVELOPER = Error "template-developer-role", TEMPLATE;
    TEMPLATE_SYSTEM = Error "template-system-position", TEMPLATE;
    TEMPLATE_ORDER = Error "template-role-order", TEMPLATE;
    TEMPLATE_END = Error "template-last-message", TEMPLATE;

    // OpenAI Responses
    INPUT_EMPTY = Error "input-empty", RESPONSES;
    PREVIOUS_AND_CONVERSATION = Error "previous-response-and-conversation", RESPONSES;
    RESPONSES_ROLE = Error "unknown-role", RESPONSES;
    RESPONSES_EMPTY_CONTENT = Error "empty-content", RESPONSES;
    RESPONSES_PART = Error "content-part-type", RESPONSES;
    RESPONSES_ARGUMENTS = Warning "tool-arguments-not-json", RESPONSES;
    RESPONSES_FUNCTION_NAME = Error "function-name", RESPONSES;
    RESPONSES_USE_WITHOUT_RESULT = Error "tool-use-without-result", RESPONSES;
    RESPONSES_RESULT_WITHOUT_USE = Error "tool-result-without-use", RESPONSES;
    RESPONSES_RESULT_EARLY = Error "tool-result-before-use", RESPONSES;
    RESPONSES_RESULT_KIND = Error "tool-result-kind", RESPONSES;
    RESPONSES_DUPLICATE_USE = Error "duplicate-tool-use-id", RESPONSES;
    RESPONSES_DUPLICATE_RESULT = Error "duplicate-tool-result", RESPONSES;
    RESPONSES_DUPLICATE_ITEM = Error "duplicate-item-id", RESPONSES;
    RESPONSES_DUPLICATE_TOOL = Warning "duplicate-tool-name", RESPONSES;
    REASONING_WITHOUT_ITEM = Error "reasoning-without-item", RESPONSES;
    REASONING_NOT_STORED = Warning "reasoning-not-stored", RESPONSES;
    REFERENCE_NOT_STORED = Warning "reference-not-stored", RESPONSES;
    TRIGGER_NOT_LAST = Error "compaction-trigger-not-last", RESPONSES;
    RESPONSES_TOOL_CHOICE_TYPE = Error "tool-choice-type", RESPONSES;
    RESPONSES_TOOL_CHOICE_UNKNOWN = Error "tool-choice-unknown-tool", RESPONSES;
    RESPONSES_WITHOUT_TOOLS = Error "tool-choice-without-tools", RESPONSES;
    RESPONSES_MAX_ABOVE_MODEL = Error "max-tokens-above-model", RESPONSES;
    RESPONSES_SAMPLING = Error "sampling-removed", RESPONSES;
    RESPONSES_BACKGROUND = Error "background-not-stored", RESPONSES;
    RESPONSES_METADATA = Error "metadata", RESPONSES;
}
