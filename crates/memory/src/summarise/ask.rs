//! What a job wants to be done next, and what may come back.

use serde_json::Value;
use throughline_transcript::refusal::Class;

use super::outcome::Outcome;

/// What comes next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Ask a model, then call [`Job::answer`](super::Job::answer) or [`Job::failed`](super::Job::failed).
    Ask(Ask),
    /// Nothing: the memory is there.
    Done(Outcome),
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
    /// A request of its own: system prompt and one user message, no tools.
    Own {
        /// System prompt.
        system: String,
        /// User message.
        user: String,
    },
    /// The live request as it is, and this text as one more user message at its end. Tools, `tool_choice`, thinking and
    /// effort stay as they are: a change of any of them makes the provider read the conversation anew.
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

/// Which model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelSlot {
    /// The one that makes memories.
    Main,
    /// The one to turn to when that one fails.
    Fallback,
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

/// Kinds of failures, by what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureClass {
    /// The request is larger than the model's window, or has too many bytes: it is made smaller.
    Overflow,
    /// Too many requests for now.
    RateLimit,
    /// The provider has no capacity for now.
    Overloaded,
    /// Something failed on the provider's side.
    Server,
    /// The connection failed, or the answer stopped in the middle.
    Connection,
    /// No answer within the time.
    Timeout,
    /// The credential is missing, wrong or may not do this: not asked again.
    Denied,
    /// The request is wrong in itself: not asked again.
    BadRequest,
    /// The driver was told to stop: nobody is asked any more.
    Cancelled,
}

impl Answer {
    /// An answer that the model ended by itself.
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

impl FailureClass {
    /// The class of a provider's refusal; `None` if it is none.
    #[must_use]
    pub fn of(class: Class) -> Option<Self> {
        match class {
            Class::None => None,
            Class::ContextOverflow | Class::BodyTooLarge | Class::SuspectedSilentTruncation => {
                Some(Self::Overflow)
            }
            Class::RateLimit => Some(Self::RateLimit),
            Class::Overloaded => Some(Self::Overloaded),
            Class::Denied => Some(Self::Denied),
            Class::BadRequest => Some(Self::BadRequest),
            // A class that is not known yet is taken for one that may pass.
            _ => Some(Self::Server),
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_passing(self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::Overloaded | Self::Server | Self::Connection | Self::Timeout
        )
    }

    /// The word for it in events and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Denied => "denied",
            Self::BadRequest => "bad_request",
            Self::Cancelled => "cancelled",
        }
    }
}
