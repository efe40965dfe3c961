//! Why a call failed, and what its caller can do.

use std::fmt;
use std::time::Duration;

use throughline_transcript::refusal::Class;

use crate::reply::Reply;
use crate::transport::TransportErrorKind;

/// A call that gave no complete answer.
///
/// Nothing in it holds the credential: it is removed where a server repeats it.
#[non_exhaustive]
pub struct CallError {
    /// Where it failed.
    pub failure: Failure,
    /// The class of the refusal, by the words and codes of the answer; [`Class::None`] without any.
    pub class: Class,
    /// HTTP status, if there was an answer. An error in the middle of a stream comes with 200.
    pub status: Option<u16>,
    /// The provider's report, in its words and codes.
    pub report: Box<ErrorReport>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// The window that the provider names, tokens.
    pub window: Option<u64>,
    /// Of an overflow: whether asking for less output may be enough.
    pub is_output_too: bool,
    /// How many times the request was sent.
    pub attempts: u32,
    /// What arrived before a stream was cut off and may be kept: `is_complete` is false.
    pub partial: Option<Box<Reply>>,
    /// What the head of the answer says about trying again (`x-should-retry`).
    pub(crate) should_retry: Option<bool>,
}

/// A provider's report of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorReport {
    /// `error.type` of the answer.
    pub error_type: Option<String>,
    /// `error.details.error_code` (Anthropic) or `error.code` (OpenAI).
    pub code: Option<String>,
    /// The sentence for people, shortened. Its wording is not stable. Without an answer, the message of the transport.
    pub message: String,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

/// Where a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// No answer came.
    Transport(TransportErrorKind),
    /// The provider answered with an error, in the head or in the middle of the stream.
    Refused,
    /// The answer ended before its end.
    CutOff,
    /// The answer violates the wire format.
    Malformed,
    /// The answer is larger than the limits.
    TooLarge,
    /// No data arrived for this long.
    Idle(Duration),
    /// The caller cancelled.
    Cancelled,
    /// The request cannot be built: its body is not a JSON object, or a header is impossible.
    Request,
}

/// What a caller can do about a [`CallError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// Try again later. The client has already tried as often as its policy says.
    Retry,
    /// Nothing: the request is wrong in itself, and would fail again.
    GiveUp,
    /// Correct the credential, the address, the model's name, the account or its spending limit.
    FixConfiguration,
    /// Make the prompt shorter (or, if `is_output_too` is set, ask for less output first).
    ContextOverflow {
        /// The window that the provider names, tokens.
        window: Option<u64>,
    },
    /// Make the body smaller: images and the like.
    BodyTooLarge,
    /// Nothing failed: the caller cancelled.
    Cancelled,
}

impl CallError {
    /// What a caller can do.
    #[must_use]
    pub fn kind(&self) -> CallErrorKind {
        match &self.failure {
            Failure::Cancelled => return CallErrorKind::Cancelled,
            Failure::Request => return CallErrorKind::FixConfiguration,
            Failure::Transport(TransportErrorKind::Request) => {
                return CallErrorKind::FixConfiguration;
            }
            Failure::Transport(_) | Failure::CutOff | Failure::Idle(_) => {
                return CallErrorKind::Retry;
            }
            // A response that never began to be an answer does not come from the provider.
            Failure::Malformed if self.partial.is_none() => return CallErrorKind::FixConfiguration,
            Failure::Malformed => return CallErrorKind::Retry,
            Failure::TooLarge => return CallErrorKind::GiveUp,
            Failure::Refused => {}
        }
        if self.is_spend_cap() {
            return CallErrorKind::FixConfiguration;
        }
        match self.class {
            Class::ContextOverflow => CallErrorKind::ContextOverflow {
                window: self.window,
            },
            Class::BodyTooLarge => CallErrorKind::BodyTooLarge,
            Class::RateLimit | Class::Overloaded | Class::ServerError => CallErrorKind::Retry,
            Class::Denied => CallErrorKind::FixConfiguration,
            _ => match self.status {
                // Timeouts and conflicts pass; both SDKs try them again.
                Some(408 | 409) => CallErrorKind::Retry,
                Some(404 | 300..400) => CallErrorKind::FixConfiguration,
                _ => CallErrorKind::GiveUp,
            },
        }
    }

    /// Whether a spending limit is reached: waiting does not help against such a 429.
    #[must_use]
    pub fn is_spend_cap(&self) -> bool {
        const CODES: &[&str] = &[
            "enforced_spend_limit_reached",
            "contract_spend_limit_reached",
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_error",
        ];
        let is_one =
            |name: &Option<String>| name.as_deref().is_some_and(|name| CODES.contains(&name));
        self.status == Some(402) || is_one(&self.report.code) || is_one(&self.report.error_type)
    }

    /// Whether the same request may succeed if it is sent again. The server's own word decides, if there is one.
    pub(crate) fn is_worth_retrying(&self) -> bool {
        match self.should_retry {
            Some(should_retry) if self.failure == Failure::Refused => should_retry,
            _ => self.kind() == CallErrorKind::Retry,
        }
    }

    pub(crate) fn new(failure: Failure, message: impl Into<String>) -> Self {
        Self {
            failure,
            class: Class::None,
            status: None,
            report: Box::new(ErrorReport {
                message: message.into(),
                ..ErrorReport::default()
            }),
            retry_after: None,
            window: None,
            is_output_too: false,
            attempts: 1,
            partial: None,
            should_retry: None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Failure::Transport(kind) => write!(f, "{kind}")?,
            Failure::Refused => write!(f, "the provider refused")?,
            Failure::CutOff => write!(f, "the answer was cut off")?,
            Failure::Malformed => write!(f, "the answer cannot be read")?,
            Failure::TooLarge => write!(f, "the answer is too large")?,
            Failure::Idle(limit) => write!(f, "no data for {} s", limit.as_secs_f64())?,
            Failure::Cancelled => write!(f, "cancelled")?,
            Failure::Request => write!(f, "the request cannot be built")?,
        }
        if let Some(status) = self.status {
            write!(f, ", status {status}")?;
        }
        let report = &self.report;
        if let Some(name) = report.code.as_ref().or(report.error_type.as_ref()) {
            write!(f, ", {name}")?;
        }
        if !report.message.is_empty() {
            write!(f, ": {}", report.message)?;
        }
        if let Some(id) = &report.request_id {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallError")
            .field("failure", &self.failure)
            .field("class", &self.class)
            .field("status", &self.status)
            .field("report", &self.report)
            .field("retry_after", &self.retry_after)
            .field("window", &self.window)
            .field("is_output_too", &self.is_output_too)
            .field("attempts", &self.attempts)
            .field("partial", &self.partial)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for CallError {}
