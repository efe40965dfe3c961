//! A request comes in: how far it repeats what is known, and what is sent for it.

use std::sync::Arc;

use bytestring::ByteString;
use throughline::core::{Effects, Heritage};
use throughline_engine::{CompactionSettings, Input, Plan, Time};
use throughline_providers::reply::Reply;
use throughline_transcript::client::{self, Head, reasoning_signatures};
use throughline_transcript::message::{Message, Role};
use throughline_transcript::outline::OutlineError;
use tokio::sync::oneshot;
use xxhash_rust::xxh3::xxh3_64;

use super::{Live, State, TrackedSession};
use crate::config::Config;
use crate::incoming::IncomingRequest;
use crate::known::KnownMessage;
use crate::reason::{Bypass, Reason};
use crate::rewrite::ClientBody;

/// Whether a request belongs to a session.
pub(crate) enum Claim {
    /// It does not: this is how many messages are the same.
    Other(usize),
    /// It does.
    Planned(Box<PlannedRequest>),
}

/// A request of a session that has a plan, or will have one.
pub(crate) struct PlannedRequest {
    flight: Flight,
    body: Arc<ClientBody>,
    plan: Option<Plan>,
    /// Where the plan comes from if there is none yet.
    later: Option<oneshot::Receiver<Plan>>,
    has_swapped: bool,
}

/// A request of a session that can be sent.
pub(crate) struct ReadyRequest {
    pub(crate) flight: Flight,
    /// The client's body.
    pub(crate) body: Arc<ClientBody>,
    /// The body that the plan asks for, if it is another one.
    pub(crate) rewritten: Option<ByteString>,
    pub(crate) plan: Option<Plan>,
    pub(crate) has_swapped: bool,
}

/// How far back a request may go and still continue the same session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    /// Over the last turn: the user has edited it, or asks again.
    LastTurn,
    /// As far as the memory allows: the client says that it is this session.
    ToTheMemory,
}

impl TrackedSession {
    /// How many messages of a request are those of the session.
    ///
    /// # Errors
    /// If the body is not JSON.
    pub(crate) fn matches(&self, request: &mut IncomingRequest) -> Result<usize, OutlineError> {
        let state = self.state();
        if state.wire != request.wire {
            return Ok(0);
        }
        Ok(request.messages.repeats(&state.known)?.count)
    }

    /// Takes a request in, if it is one of the session.
    ///
    /// # Errors
    /// If it belongs to no session.
    pub(crate) fn take(
        self: &Arc<Self>,
        request: &mut IncomingRequest,
        rewind: Rewind,
        is_new: bool,
    ) -> Result<Claim, Bypass> {
        let mut state = self.state();
        if state.wire != request.wire {
            return Ok(Claim::Other(0));
        }
        let repeated = request.messages.repeats(&state.known)?;
        let count = repeated.count;
        if !is_new && !state.goes_on(count, rewind) {
            return Ok(Claim::Other(count));
        }
        // Everything is read before anything is changed.
        let outline = request.messages.outline()?;
        if let Some(bypass) = Bypass::of(&outline, self.shared.config.mode) {
            return Err(bypass);
        }
        let added = request.messages.take_from(count)?;
        let added = added.ok_or(Bypass::Forward(Reason::Unreadable))?;
        repeated.teach(&mut state.known);
        let is_operators = |(_, message): &(usize, &Message)| message.role == Role::System;
        let more = (count..).zip(&added).filter(is_operators);
        let body = Arc::new(ClientBody {
            outline,
            lead: request.lead.clone(),
            messages: request.messages.spans(),
            operators: repeated
                .operators
                .iter()
                .copied()
                .chain(more.map(|(at, _)| at))
                .collect(),
            profile: request.profile,
        });
        let at = self.shared.clock.now();
        let has_strange_thinking = state.has_strange_thinking(count, &added);
        let mut effects = state.cut_to(count, at);
        effects.extend(self.take_hand_edit(&mut state, at));
        state.unconfirmed = 0;
        let (has_other_head, configured) = state.configure(&self.shared.config, &body, at);
        effects.extend(configured);
        for message in added {
            effects.extend(state.add(message, at, true));
        }
        if has_other_head || has_strange_thinking {
            // Everything in the request was thought behind something else, what is new in it too.
            effects.extend(state.core.handle(at, Input::FrameChanged));
        }
        state.number += 1;
        let planned = self.planned(&mut state, effects, body);
        Ok(Claim::Planned(Box::new(planned)))
    }

    /// Asks the core what the last request is made of.
    fn planned(
        self: &Arc<Self>,
        state: &mut State,
        mut effects: Effects,
        body: Arc<ClientBody>,
    ) -> PlannedRequest {
        state.in_flight += 1;
        state.plan = None;
        // The one before, if it still waits, is overtaken.
        state.waiting = None;
        let at = self.shared.clock.now();
        effects.extend(state.core.handle(at, Input::RequestWanted));
        self.perform(state, effects);
        let plan = state.plan.clone();
        let later = plan.is_none().then(|| {
            let (told, later) = oneshot::channel();
            state.waiting = Some(told);
            later
        });
        PlannedRequest {
            flight: Flight {
                session: Arc::clone(self),
                number: state.number,
                is_over: false,
            },
            body,
            plan,
            later,
            has_swapped: std::mem::take(&mut state.has_swapped),
        }
    }

    /// The provider says that the request is too large: what is sent instead, if anything smaller can be.
    pub(crate) fn too_large(
        self: &Arc<Self>,
        request: &ReadyRequest,
        window: Option<u64>,
    ) -> Option<Box<PlannedRequest>> {
        let mut state = self.state();
        if state.number != request.flight.number {
            return None;
        }
        let at = self.shared.clock.now();
        let effects = state.core.handle(at, Input::Overflowed { window });
        let planned = self.planned(&mut state, effects, Arc::clone(&request.body));
        Some(Box::new(planned))
    }

    /// Waits for the plan of a request if there is none yet, as long as a draft may take, and writes the body that it
    /// asks for.
    pub(crate) async fn ready(self: &Arc<Self>, planned: Box<PlannedRequest>) -> ReadyRequest {
        let PlannedRequest {
            flight,
            body,
            mut plan,
            later,
            mut has_swapped,
        } = *planned;
        if let Some(later) = later {
            let waited = tokio::time::timeout(self.shared.config.limits.draft_wait, later).await;
            plan = match waited {
                Ok(Ok(plan)) => Some(plan),
                // Overtaken by another request.
                Ok(Err(_)) => None,
                Err(_) => self.waited_enough(flight.number),
            };
            has_swapped |= std::mem::take(&mut self.state().has_swapped);
        }
        let rewritten = plan.as_ref().and_then(|plan| body.rewritten(plan));
        ReadyRequest {
            flight,
            body,
            rewritten,
            plan,
            has_swapped,
        }
    }

    fn waited_enough(self: &Arc<Self>, number: u64) -> Option<Plan> {
        let mut state = self.state();
        if state.number != number {
            return None;
        }
        state.waiting = None;
        let at = self.shared.clock.now();
        let effects = state.core.handle(at, Input::WaitedEnough);
        self.perform(&mut state, effects);
        state.plan.clone()
    }

    /// The body that a request would have that only counts, if it repeats the session up to what the memory covers.
    ///
    /// # Errors
    /// If the body is not JSON.
    pub(crate) fn counted(
        &self,
        request: &mut IncomingRequest,
    ) -> Result<Option<ByteString>, OutlineError> {
        let state = self.state();
        let Some(plan) = state
            .plan
            .clone()
            .filter(|plan| plan.first > 0 || plan.memory.is_some())
        else {
            return Ok(None);
        };
        let repeated = request.messages.repeats(&state.known)?;
        drop(state);
        if repeated.count < plan.first {
            return Ok(None);
        }
        let body = ClientBody {
            outline: request.messages.outline()?,
            lead: request.lead.clone(),
            messages: request.messages.spans(),
            operators: repeated.operators,
            profile: request.profile,
        };
        Ok(body.rewritten(&plan))
    }

    /// Tokens that swaps have taken out of the requests.
    pub(crate) fn removed_tokens(&self) -> u64 {
        self.state().core.removed_tokens()
    }

    /// The first messages of the session as they are known, and those of them that are in memory, with the index of the
    /// first of these.
    pub(crate) fn prefix(&self, count: usize) -> (Vec<KnownMessage>, usize, Vec<Message>) {
        let state = self.state();
        let first = state.core.tail_begins();
        let tail = state.core.engine().tail();
        let in_memory = tail.iter().take(count.saturating_sub(first));
        let known = state.known.iter().take(count);
        (
            known.copied().collect(),
            first,
            in_memory.cloned().collect(),
        )
    }

    /// What a session gets that begins with the first messages of this one.
    pub(crate) fn heritage(&self, messages: usize) -> Heritage {
        self.state().core.heritage(messages)
    }
}

/// A request that is under way, until it is answered or cut off. Dropping it cuts it off: the client hung up
/// before there was an answer.
pub(crate) struct Flight {
    session: Arc<TrackedSession>,
    number: u64,
    is_over: bool,
}

impl Flight {
    /// The request goes to the provider like this.
    pub(crate) fn sent(&self, live: Live) {
        let mut state = self.session.state();
        if state.number == self.number {
            state.live = Some(live);
        }
    }

    /// The provider has begun to answer it.
    pub(crate) fn answer_begins(&self) {
        let mut state = self.session.state();
        if state.number == self.number {
            let at = self.session.shared.clock.now();
            let effects = state.core.handle(at, Input::AnswerBegun);
            self.session.perform(&mut state, effects);
        }
    }

    /// The answer is there as a whole.
    pub(crate) fn complete(mut self, reply: &Reply) {
        self.is_over = true;
        self.session.complete(self.number, reply);
    }

    /// What arrived of the answer before it was cut off.
    pub(crate) fn break_off(mut self, partial: Option<&Reply>) {
        self.is_over = true;
        self.session.break_off(self.number, partial);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.is_over {
            self.session.break_off(self.number, None);
        }
    }
}

impl State {
    /// Whether a client has brought reasoning along that is not of the answer to a request of this session, so that it is
    /// bound to what another session has before it: of requests side by side of the same history, each continuation
    /// comes to a session that may have had another one of them, or begins one with the same memory.
    ///
    /// `count` messages are known; those that are known behind them are what was answered last.
    fn has_strange_thinking(&self, count: usize, added: &[Message]) -> bool {
        let is_bound =
            self.core.engine().memory().is_some() && self.core.engine().settings().binds_thinking;
        // What is under way may be what they answer.
        if !is_bound || self.in_flight > 0 {
            return false;
        }
        let first = self.core.tail_begins();
        let answered: Vec<String> = self
            .core
            .engine()
            .tail()
            .iter()
            .skip(count.saturating_sub(first))
            .flat_map(reasoning_signatures)
            .collect();
        let mut brought = added.iter().flat_map(reasoning_signatures);
        brought.any(|signature| !answered.contains(&signature))
    }

    /// Whether a request of which `count` messages are known is the next of this session.
    fn goes_on(&self, count: usize, rewind: Rewind) -> bool {
        let confirmed = self.known.len() - self.unconfirmed;
        if count >= confirmed {
            return true;
        }
        if count < self.core.engine().status().cover || count == 0 || self.in_flight > 0 {
            return false;
        }
        match rewind {
            Rewind::ToTheMemory => true,
            Rewind::LastTurn => self.last_turn() <= count,
        }
    }

    /// Index of the message with which the last turn begins.
    fn last_turn(&self) -> usize {
        let first = self.core.tail_begins();
        self.core
            .engine()
            .tail()
            .iter()
            .rposition(|message| message.begins_turn())
            .map_or(first, |at| first + at)
    }

    /// Lets go of messages that the client no longer has.
    fn cut_to(&mut self, count: usize, at: Time) -> Effects {
        if count >= self.known.len() {
            return Effects::default();
        }
        self.known.truncate(count);
        self.core.truncate(at, count)
    }

    /// Adds a message at the end.
    pub(super) fn add(&mut self, message: Message, at: Time, is_sent: bool) -> Effects {
        let role = message.role;
        let text = message.raw.clone().filter(|_| is_sent);
        let (chain, effects) = self.core.append(at, message.into());
        self.known.push(match text {
            Some(text) => KnownMessage::seen(chain, role, text.as_str()),
            None => KnownMessage::unseen(chain),
        });
        effects
    }

    /// Takes in what a request says besides its messages; whether the one before it said something else.
    fn configure(&mut self, config: &Config, body: &ClientBody, at: Time) -> (bool, Effects) {
        let outline = &body.outline;
        let mut effects = Effects::default();
        let model = client::model(outline).unwrap_or_default();
        let mut is_changed = false;
        if model != self.core.model() {
            let limit = client::answer_tokens_max(outline);
            let basis = config.basis(self.wire, &model, limit);
            let (begun, plain) = (config.begun(&basis), basis.settings());
            let opener = |settings: &mut CompactionSettings| config.apply(limit, settings);
            effects = self.core.follow_model(at, model, &begun, plain, opener);
            is_changed = true;
        }
        let head = Head::new(outline, &body.lead);
        let digest = head.prefix().fold(0, |digest: u64, text| {
            digest.rotate_left(7) ^ xxh3_64(text.as_bytes())
        });
        if digest == self.head {
            return (is_changed, effects);
        }
        is_changed |= self.head != 0;
        self.head = digest;
        let tokens = head.tokens(self.core.engine().settings().counter);
        let bytes = head.bytes();
        effects.extend(self.core.handle(at, Input::Overhead { tokens, bytes }));
        self.core.set_head(head.body());
        (is_changed, effects)
    }
}
