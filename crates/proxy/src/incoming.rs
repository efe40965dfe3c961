//! An incoming request: which conversation it belongs to, and those of its messages that are needed.

use bytestring::ByteString;
use throughline_transcript::check::Profile;
use throughline_transcript::digest::{Chain, Digest, message_digest};
use throughline_transcript::message::{Message, Role};
use throughline_transcript::outline::{OutlineError, Reader, Span};
use throughline_transcript::wire::Wire;

use crate::headers::{self, Tenant};
use crate::known::Walk;
use crate::reason::{Bypass, Reason};

/// A request of a client, before its session is known.
pub(crate) struct IncomingRequest {
    pub(crate) wire: Wire,
    /// What the upstream requires beyond the provider's rules.
    pub(crate) profile: Profile,
    pub(crate) tenant: Tenant,
    /// Instructions at the beginning of the list: they always stay.
    pub(crate) lead: Vec<Span>,
    /// The messages behind them.
    pub(crate) messages: Walk,
    /// The name that the client has for the session.
    pub(crate) name: Option<String>,
    /// The id that some clients send with each request of a run, which may have several conversations.
    pub(crate) run: Option<String>,
    /// Everything up to the first message of the user.
    root: Digest,
    /// The index of that message.
    first: Option<usize>,
}

impl IncomingRequest {
    /// Reads the beginning of a body, up to the first message of the user.
    ///
    /// # Errors
    /// The request is forwarded if its body cannot be read.
    pub(crate) fn read(
        wire: Wire,
        profile: Profile,
        body: ByteString,
        tenant: Tenant,
        head: &http::HeaderMap,
    ) -> Result<Self, Bypass> {
        let mut messages = Walk::new(Reader::new(wire, body)?);
        let mut is_leading = wire != Wire::Anthropic;
        let mut lead_count = 0;
        let mut chain = Chain::new();
        let mut first = None;
        for index in 0.. {
            if messages.span(index)?.is_none() {
                break;
            }
            let message = messages.message(index)?;
            let message = message.ok_or(Bypass::Forward(Reason::Unreadable))?;
            if is_leading && message.role == Role::System {
                lead_count += 1;
                continue;
            }
            is_leading = false;
            chain.push(message_digest(message));
            if message.role == Role::User {
                first = Some(index - lead_count);
                break;
            }
        }
        let lead = messages.split_off_lead(lead_count);
        Ok(Self {
            wire,
            profile,
            tenant,
            lead,
            messages,
            name: headers::named_session(head).map(str::to_owned),
            run: headers::client_session(head).map(str::to_owned),
            root: chain.digest(),
            first,
        })
    }

    /// How the ids of its sessions begin.
    pub(crate) fn prefix(&self) -> String {
        let tenant = self.tenant.hex();
        match &self.name {
            Some(name) => format!("{tenant}-n-{name}-"),
            None => format!("{tenant}-r-{}-", &self.root.to_string()[..16]),
        }
    }

    /// The first message of the user.
    pub(crate) fn first(&mut self) -> Option<&Message> {
        self.messages.message(self.first?).ok().flatten()
    }

    /// Whether the model has said something in it already.
    ///
    /// # Errors
    /// If the body is not JSON.
    pub(crate) fn has_history(&mut self) -> Result<bool, OutlineError> {
        for index in 0.. {
            if self.messages.span(index)?.is_none() {
                break;
            }
            let message = self.messages.message(index)?;
            // A result has a call before it.
            let is_history =
                |message: &Message| matches!(message.role, Role::Assistant | Role::Tool);
            if message.is_some_and(is_history) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
