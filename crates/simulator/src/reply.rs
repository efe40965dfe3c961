//! The reply of the model, before a wire format shapes it.

/// A reply of the model, for scripts.
///
/// ```
/// use throughline_simulator::Reply;
///
/// let reply = Reply::text("Let me look.").thinking("Where is it?").tool_call("read_file", r#"{"path":"src/a.rs"}"#);
/// assert_eq!(reply.parts.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What it thinks first; shown only where the model and the request allow it.
    pub thinking: Option<String>,
    /// Its parts: texts and calls.
    pub parts: Vec<ReplyPart>,
    /// Why it stops, where that does not follow from the parts.
    pub stop: Option<StopReason>,
}

/// One part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyPart {
    /// Text.
    Text(String),
    /// A call of a tool.
    ToolCall {
        /// Name of the tool.
        name: String,
        /// Arguments, a JSON object.
        input: String,
    },
    /// A tool that the provider runs itself: called, and not finished.
    ServerToolCall {
        /// Name of the tool.
        name: String,
        /// Arguments, a JSON object.
        input: String,
    },
    /// The result of the unfinished call of a web search.
    WebSearchResult,
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model is done.
    EndTurn,
    /// It waits for results of tools.
    ToolUse,
    /// The limit of the request is reached.
    MaxTokens,
    /// It wrote a stop sequence of the request.
    StopSequence,
    /// A tool of the provider continues in the next request.
    Pause,
    /// The model refuses.
    Refusal,
    /// The window is full.
    WindowExceeded,
    /// The provider compacted the conversation.
    Compaction,
}

impl Reply {
    /// A reply that is a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![ReplyPart::Text(text.into())],
            ..Self::default()
        }
    }

    /// The same, thought over before.
    #[must_use]
    pub fn thinking(self, thinking: impl Into<String>) -> Self {
        Self {
            thinking: Some(thinking.into()),
            ..self
        }
    }

    /// The same, and then a tool is called. `input` is a JSON object.
    #[must_use]
    pub fn tool_call(mut self, name: impl Into<String>, input: impl Into<String>) -> Self {
        self.parts.push(ReplyPart::ToolCall {
            name: name.into(),
            input: input.into(),
        });
        self
    }

    /// The same, ending for this reason.
    #[must_use]
    pub fn stop(self, stop: StopReason) -> Self {
        Self {
            stop: Some(stop),
            ..self
        }
    }

    /// Why it ends, if the parts say.
    pub(crate) fn reason(&self) -> StopReason {
        self.stop.unwrap_or_else(|| {
            if self
                .parts
                .iter()
                .any(|part| matches!(part, ReplyPart::ToolCall { .. }))
            {
                StopReason::ToolUse
            } else if self
                .parts
                .iter()
                .any(|part| matches!(part, ReplyPart::ServerToolCall { .. }))
            {
                StopReason::Pause
            } else {
                StopReason::EndTurn
            }
        })
    }
}

/// A reply with everything that a wire format needs.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) blocks: Vec<AnswerBlock>,
    pub(crate) stop: StopReason,
    pub(crate) stop_sequence: Option<String>,
    /// Thinking included.
    pub(crate) output_tokens: u64,
    pub(crate) thinking_tokens: u64,
}

/// A block of an answer and the tokens that it took to write it.
#[derive(Clone, Debug)]
pub(crate) struct AnswerBlock {
    pub(crate) content: AnswerContent,
    pub(crate) tokens: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum AnswerContent {
    Thinking {
        /// Empty where the provider withholds it.
        text: String,
        signature: String,
    },
    Text(String),
    ToolCall {
        id: String,
        name: String,
        input: String,
    },
    ServerToolCall {
        id: String,
        name: String,
        input: String,
    },
    WebSearchResult {
        call_id: String,
    },
    Compaction {
        content: Option<String>,
        encrypted: String,
        signature: String,
    },
}
