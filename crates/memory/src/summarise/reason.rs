//! Reasons why a model's answer, a call or a whole job produces no memory.

use throughline_transcript::refusal::Class;

/// Why a memory was not made by a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// There is nothing to read.
    #[error("there are no new messages")]
    NothingNew,
    /// An answer was refused.
    #[error("answer {ask} ({slot:?}) was refused: {unfit}")]
    Refused {
        /// Number of the request.
        ask: u32,
        /// Which model.
        slot: ModelSlot,
        /// Why.
        unfit: Fault,
    },
    /// A call failed.
    #[error("request {ask} ({slot:?}) failed: {}", class.name())]
    Failed {
        /// Number of the request.
        ask: u32,
        /// Which model.
        slot: ModelSlot,
        /// How.
        class: FailureClass,
    },
    /// Not even a small part of the messages fits what the model can read.
    #[error(
        "the model reads {input_tokens_max} tokens, which leaves too little for the conversation"
    )]
    WindowTooSmall {
        /// What it can read, tokens.
        input_tokens_max: usize,
    },
    /// The messages would need more requests than are allowed.
    #[error("the messages need more than {asks_max} requests")]
    TooManyParts {
        /// How many are allowed.
        asks_max: u32,
    },
    /// A prompt could not be rendered.
    #[error("{reason}")]
    Prompt {
        /// File, line and what is wrong.
        reason: String,
    },
}

impl Reason {
    /// A short word for it in events and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NothingNew => "nothing_new",
            Self::Refused { unfit, .. } => unfit.name(),
            Self::Failed { class, .. } => class.name(),
            Self::WindowTooSmall { .. } => "window_too_small",
            Self::TooManyParts { .. } => "too_many_parts",
            Self::Prompt { .. } => "prompt",
        }
    }
}

/// Why an answer is no memory. The texts can be shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// There is no text, apart from reasoning.
    #[error("the answer had no text")]
    Blank,
    /// Headings or fields without anything in them.
    #[error("the answer had headings or fields and nothing in them")]
    Skeleton,
    /// There was no more room.
    #[error("the answer was cut off before its end; it has to be shorter")]
    Truncated,
    /// The model or a filter refused.
    #[error(
        "the answer was a refusal; what is asked for is only a description of the conversation"
    )]
    Refusal,
    /// The model says that it was shown nothing.
    #[error("the answer said that there is no conversation; it stands in the request")]
    NothingSeen,
    /// The text of an error in place of an answer.
    #[error("the answer was the text of an error")]
    ErrorText,
    /// The model wanted to call a tool.
    #[error("the answer called a tool; no tools are available, and the call was thrown away")]
    ToolCall,
    /// It begins like JSON and is none.
    #[error("the answer was not valid JSON: {reason}")]
    InvalidJson {
        /// What the parser says.
        reason: String,
    },
    /// It is JSON of another shape.
    #[error("the answer did not have the form that was described: {path}: {reason}")]
    WrongShape {
        /// Where.
        path: String,
        /// What is wrong there.
        reason: String,
    },
    /// There is nothing in it that the form has: the model talks, asks or continues the work.
    #[error("the answer did not have the form that was described, but was free text")]
    NoStructure,
    /// It is longer than what it sums up, or than anything that could be a memory.
    #[error("the answer had {tokens} tokens, more than the {tokens_max} of what it sums up")]
    TooLarge {
        /// Its tokens.
        tokens: usize,
        /// What it sums up, tokens.
        tokens_max: usize,
    },
    /// Another language than the user's.
    #[error("the answer was written in the language {found}, not in {wanted}")]
    WrongLanguage {
        /// ISO 639-3.
        wanted: String,
        /// ISO 639-3.
        found: String,
    },
    /// It goes round in circles.
    #[error("the answer said the same again and again")]
    Repeats,
    /// It repeats what the model was told to do.
    #[error("the answer repeated the instructions")]
    CopiesPrompt,
    /// It has nothing to do with what was read.
    #[error("the answer had nothing to do with the messages")]
    Unrelated,
    /// No change at all, although there is a lot to read.
    #[error("the answer had no changes, although the messages hold more than small talk")]
    NothingNew,
}

impl Fault {
    /// A short word for it in events and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Skeleton => "skeleton",
            Self::Truncated => "truncated",
            Self::Refusal => "refusal",
            Self::NothingSeen => "nothing_seen",
            Self::ErrorText => "error_text",
            Self::ToolCall => "tool_call",
            Self::InvalidJson { .. } => "invalid_json",
            Self::WrongShape { .. } => "wrong_shape",
            Self::NoStructure => "no_structure",
            Self::TooLarge { .. } => "too_large",
            Self::WrongLanguage { .. } => "wrong_language",
            Self::Repeats => "repeats",
            Self::CopiesPrompt => "copies_prompt",
            Self::Unrelated => "unrelated",
            Self::NothingNew => "nothing_new",
        }
    }
}

/// Which model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelSlot {
    /// The one that makes memories.
    Main,
    /// The one to turn to when that one fails.
    Fallback,
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
    /// The driver was told to stop: no model is asked again.
    Cancelled,
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
