//! The request that is on its way, and the prefix that it was made with.

use crate::budget::Time;

/// The last request, and how requests begin.
#[derive(Debug)]
pub(super) struct Flight {
    state: State,
    /// Rises whenever requests no longer begin as they did: with each epoch, and within one when its frame changes.
    prefix: u64,
    /// Reasoning in messages before this belongs to another prefix.
    thinking_from: usize,
    /// Estimated tokens of the last request, until its answer is reported.
    sent_tokens: Option<u64>,
    last_request_at: Option<Time>,
}

/// Where the last request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was answered or refused, or there is none.
    Landed,
    /// The provider has not begun to answer.
    Sent { prefix: Option<u64> },
    /// The provider has begun to answer, so its cache holds the request.
    Answering { prefix: u64 },
}

impl Flight {
    pub(super) fn new(thinking_from: usize, last_request_at: Option<Time>) -> Self {
        Self {
            state: State::Landed,
            prefix: 0,
            thinking_from,
            sent_tokens: None,
            last_request_at,
        }
    }

    pub(super) fn thinking_from(&self) -> usize {
        self.thinking_from
    }

    pub(super) fn last_request_at(&self) -> Option<Time> {
        self.last_request_at
    }

    /// Whether the provider has not begun to answer the last request.
    pub(super) fn is_on_its_way(&self) -> bool {
        matches!(self.state, State::Sent { .. })
    }

    /// Whether the size of the last request is still to be compared with what the provider reports.
    pub(super) fn awaits_report(&self) -> bool {
        self.sent_tokens.is_some()
    }

    /// A request of this size is sent. Returns the time of the one before.
    pub(super) fn send(&mut self, now: Time, tokens: u64) -> Option<Time> {
        self.state = State::Sent {
            prefix: Some(self.prefix),
        };
        self.sent_tokens = Some(tokens);
        self.last_request_at.replace(now)
    }

    /// The provider has begun to answer.
    pub(super) fn answer_begun(&mut self) {
        if let State::Sent { prefix } = self.state {
            self.state = match prefix {
                Some(prefix) => State::Answering { prefix },
                None => State::Landed,
            };
        }
    }

    /// The answer is complete. Says whether requests begin otherwise by now.
    pub(super) fn land(&mut self) -> bool {
        let prefix = match std::mem::replace(&mut self.state, State::Landed) {
            State::Landed => None,
            State::Sent { prefix } => prefix,
            State::Answering { prefix } => Some(prefix),
        };
        prefix.is_some_and(|prefix| prefix != self.prefix)
    }

    /// The provider refused the request. Gives its estimated tokens.
    pub(super) fn refuse(&mut self) -> Option<u64> {
        self.state = State::Landed;
        self.sent_tokens.take()
    }

    /// Estimated tokens of the last request, once.
    pub(super) fn take_sent_tokens(&mut self) -> Option<u64> {
        self.sent_tokens.take()
    }

    /// What was sent says nothing of the context as it is now.
    pub(super) fn forget_sent_tokens(&mut self) {
        self.sent_tokens = None;
    }

    /// The transcript is empty: an answer that still comes belongs to no prefix.
    pub(super) fn clear(&mut self) {
        self.thinking_from = 0;
        self.state = match self.state {
            State::Sent { .. } => State::Sent { prefix: None },
            State::Landed | State::Answering { .. } => State::Landed,
        };
    }

    pub(super) fn change_prefix(&mut self) {
        self.prefix += 1;
    }

    pub(super) fn reason_from(&mut self, messages: usize) {
        self.thinking_from = messages;
    }
}
