//! What the proxy does with a request, and why: the codes in headers, logs and metrics.

use bytestring::ByteString;
use throughline_transcript::client::{Obstacle, obstacle};
use throughline_transcript::outline::{Outline, OutlineError};

use crate::config::Mode;
use crate::refusals::Refusal;

/// What the proxy did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It sent another body than the client's.
    Rewritten,
    /// It sent the client's body, and knows its session.
    Tracked,
    /// It forwarded the request without a session.
    Passed,
    /// It answered the request itself.
    Refused,
}

impl Action {
    /// Its code.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Rewritten => "rewritten",
            Self::Tracked => "tracked",
            Self::Passed => "passed",
            Self::Refused => "refused",
        }
    }
}

/// Why a request was not rewritten, or has no answer of the upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Nothing at its path asks a model.
    Path,
    /// The client switches the proxy off.
    SwitchedOff,
    /// The configuration switches the proxy off.
    Off,
    /// The proxy only observes.
    Observe,
    /// It counts tokens.
    Count,
    /// Its body cannot be read.
    Unreadable,
    /// It is a short call outside a conversation, or the first of one: there is nothing to cover yet.
    SideCall,
    /// It continues a message thread.
    Thread,
    /// The provider compacts the history.
    NativeCompaction,
    /// The provider keeps the history.
    KeptByProvider,
    /// It asks for several answers.
    Choices,
    /// The session, or what this request is made of, is not stored.
    Store,
    /// Another process has the session.
    SessionBusy,
    /// The wire checker finds an error in the rewritten body.
    Check,
    /// The upstream refuses it.
    UpstreamRefused,
    /// The proxy serves nothing at its path.
    NotFound,
    /// Its body is too large.
    TooLarge,
    /// The client stopped sending its body.
    BrokenBody,
    /// The upstream cannot be reached.
    Unreachable,
    /// The upstream does not answer.
    NoAnswer,
    /// The proxy has as many requests under way as it may.
    ProxyBusy,
    /// It asks for a web socket.
    WebSocket,
}

impl Reason {
    /// Its code.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::SwitchedOff => "switched-off",
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Count => "count",
            Self::Unreadable => "unreadable",
            Self::SideCall => "side-call",
            Self::Thread => "thread",
            Self::NativeCompaction => "native-compaction",
            Self::KeptByProvider => "kept-by-provider",
            Self::Choices => "choices",
            Self::Store => "store",
            Self::SessionBusy | Self::ProxyBusy => "busy",
            Self::Check => "check",
            Self::UpstreamRefused => "upstream-refused",
            Self::NotFound => "not-found",
            Self::TooLarge => "too-large",
            Self::BrokenBody => "broken-body",
            Self::Unreachable => "unreachable",
            Self::NoAnswer => "no-answer",
            Self::WebSocket => "web-socket",
        }
    }
}

/// What happens to a request that belongs to no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bypass {
    /// It is forwarded.
    Forward(Reason),
    /// It is forwarded with this body: it counts the tokens of a request that would be rewritten.
    Count(ByteString),
    /// The proxy answers it.
    Refuse(Refusal),
}

impl Bypass {
    /// What happens to a request that leaves its history to the provider.
    pub(crate) fn of(outline: &Outline, mode: Mode) -> Option<Self> {
        let reason = match obstacle(outline)? {
            Obstacle::Thread if mode == Mode::Rewrite => {
                return Some(Self::Refuse(Refusal::thread()));
            }
            Obstacle::Thread => Reason::Thread,
            Obstacle::NativeCompaction => Reason::NativeCompaction,
            Obstacle::StoredHistory => Reason::KeptByProvider,
            Obstacle::SeveralChoices => Reason::Choices,
        };
        Some(Self::Forward(reason))
    }
}

impl From<OutlineError> for Bypass {
    fn from(_: OutlineError) -> Self {
        Self::Forward(Reason::Unreadable)
    }
}
