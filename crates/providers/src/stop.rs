//! Why the model stopped, and what to do then.

/// Why the model stopped, for all wires.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// It finished its answer.
    EndTurn,
    /// It calls tools of the caller's and waits for their results.
    ToolUse,
    /// The limit on output was reached.
    MaxTokens,
    /// It wrote one of the request's stop sequences.
    StopSequence,
    /// The provider paused a long turn in which it runs tools itself.
    PauseTurn,
    /// The model, or a filter, declined.
    Refusal {
        /// The category, if it is reported: `cyber`, `bio`, `content_filter` and the like.
        category: Option<String>,
    },
    /// Prompt and output together filled the window.
    WindowExceeded,
    /// The provider has written a compaction of the conversation, and nothing after it.
    Compaction,
    /// A reason that is not known here, as the provider names it.
    Other(String),
}

/// What the API expects after a [`StopReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Next {
    /// Nothing: the turn is over.
    Done,
    /// Run the calls and send their results with the next request.
    RunTools,
    /// Append the answer to the messages and send the request again, otherwise unchanged.
    ResendUnchanged,
    /// The answer is cut off: ask again with a higher limit on output, or have it continued by a message of the user.
    RaiseOutputLimit,
    /// Make room in the window, then ask again.
    Compact,
    /// The same request will be declined again: ask another model or something else.
    AskDifferently,
}

impl StopReason {
    /// What the API expects now.
    ///
    /// `tool_use` runs the tools, and `pause_turn` and `compaction` are sent again unchanged, as in the tool runners of
    /// Anthropic's SDKs. Limits and refusals need a changed request. Everything else ends the turn.
    #[must_use]
    pub fn next(&self) -> Next {
        match self {
            Self::EndTurn | Self::StopSequence | Self::Other(_) => Next::Done,
            Self::ToolUse => Next::RunTools,
            Self::PauseTurn | Self::Compaction => Next::ResendUnchanged,
            Self::MaxTokens => Next::RaiseOutputLimit,
            Self::WindowExceeded => Next::Compact,
            Self::Refusal { .. } => Next::AskDifferently,
        }
    }
}
