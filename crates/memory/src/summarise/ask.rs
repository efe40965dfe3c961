//! The next step that a job requests, and the possible results.

use serde_json::Value;

use super::outcome::JobOutcome;
use super::reason::{FailureClass, ModelSlot};

/// What comes next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Ask a model, then call [`Job::answer`](super::Job::answer) or [`Job::failed`](super::Job::failed).
    Ask(Ask),
    /// Nothing: the memory is there.
    Done(JobOutcome),
}

/// A question to a model. A call of a tool in its answer is never run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// What is sent.
    pub request: Request,
    /// What the provider holds the answer to, where it can; never for the live request.
    pub schema: Option<Schema>,
    /// Output that is allowed, tokens. For models that reason, reasoning comes on top or must be switched off.
    pub output_tokens_max: usize,
    /// Number of the request within the job, counted from 1.
    pub attempt: u32,
    /// Which model is asked.
    pub slot: ModelSlot,
    /// How long to wait before asking, milliseconds. Not less than what the provider asked for.
    pub wait_ms: u64,
}

/// What is sent to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A separate request: system prompt and one user message, no tools.
    Own {
        /// System prompt.
        system: String,
        /// User message.
        user: String,
    },
    /// The live request as it is, and this text as one more user message at its end. Tools, `tool_choice`, thinking and
    /// effort stay as they are: a change of any of them makes the provider read the whole conversation again.
    Appended {
        /// The text.
        instruction: String,
    },
}

/// A JSON Schema that the answer must follow, written within what providers accept for structured output: every object
/// lists all its fields as required and allows no others.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// A name, as OpenAI's `json_schema` wants one.
    pub name: &'static str,
    /// The schema.
    pub schema: Value,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text blocks of the answer, joined; without reasoning.
    pub text: String,
    /// Why it ended.
    pub stop: Stop,
    /// Whether it calls a tool. The call is not run.
    pub has_tool_call: bool,
    /// Output that was paid for, reasoning included; tokens.
    pub output_tokens: u64,
}

/// Why an answer ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// The model was done (`end_turn`, `stop`).
    #[default]
    Finished,
    /// There was no more room (`max_tokens`, `length`, `model_context_window_exceeded`).
    Truncated,
    /// The model or a filter refused (`refusal`, `content_filter`).
    Refused,
    /// The model wants to call a tool (`tool_use`, `tool_calls`).
    ToolUse,
    /// Something else; the provider's word for it.
    Other(String),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// What kind of failure.
    pub class: FailureClass,
    /// How long the provider asks to wait, milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl Answer {
    /// An answer that the model finished.
    #[must_use]
    pub fn finished(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl CallFailure {
    /// A failure of this class; the provider says nothing about waiting.
    #[must_use]
    pub fn new(class: FailureClass) -> Self {
        Self {
            class,
            retry_after_ms: None,
        }
    }
}
