//! A request comes in: how far it repeats what is known, and what is sent for it.

use std::sync::Arc;

use bytestring::ByteString;
use throughline_engine::{Input, Pin, Plan, Time};
use throughline_memory::document::Memory;
use throughline_providers::reply::Reply;
use throughline_store::Change;
use throughline_transcript::client::{self, Head, reasoning_signatures};
use throughline_transcript::message::{Message, Role};
use throughline_transcript::outline::OutlineError;
use tokio::sync::oneshot;
use xxhash_rust::xxh3::xxh3_64;

use super::{Live, State, Tracked};
use crate::archive::Pending;
use crate::config::Config;
use crate::incoming::IncomingRequest;
use crate::known::Known;
use crate::reason::{Bypass, Reason};
use crate::rewrite::ClientBody;

/// Whether a request belongs to a session.
pub(crate) enum Claim {
    /// It does not: this is how many messages are the same.
    Other(usize),
    /// It does.
    Taken(Box<PlannedRequest>),
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

impl Tracked {
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
        state.cut_to(count, at);
        state.unconfirmed = 0;
        let has_other_head = state.configure(&self.shared.config, &body, at);
        for message in added {
            state.add(message, at, true);
        }
        if has_other_head || has_strange_thinking {
            // Everything in the request was thought behind something else, what is new in it too.
            state.engine.handle(at, Input::FrameChanged);
        }
        state.number += 1;
        let planned = self.planned(&mut state, at, body);
        Ok(Claim::Taken(Box::new(planned)))
    }

    /// Asks the engine what the last request is made of.
    fn planned(
        self: &Arc<Self>,
        state: &mut State,
        at: Time,
        body: Arc<ClientBody>,
    ) -> PlannedRequest {
        state.in_flight += 1;
        state.plan = None;
        // The one before, if it still waits, is overtaken.
        state.waiting = None;
        state.engine.handle(at, Input::RequestWanted);
        self.drain(state);
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
        state.engine.handle(at, Input::Overflowed { window });
        let planned = self.planned(&mut state, at, Arc::clone(&request.body));
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
        state.engine.handle(at, Input::WaitedEnough);
        self.drain(&mut state);
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
        self.state().removed_tokens
    }

    /// A session begins with the memory of another, if it stands for no more than what both have in common.
    pub(crate) fn memory_within(&self, messages: usize) -> Option<(Memory, Vec<Pin>)> {
        let state = self.state();
        let version = state.engine.memory()?;
        (version.cover() <= messages && version.cover() > 0)
            .then(|| (version.memory.clone(), state.engine.pins().to_vec()))
    }
}

/// A request that is under way, until it was answered or broke off. Where it is dropped, it broke off: the client hung up
/// before there was an answer.
pub(crate) struct Flight {
    session: Arc<Tracked>,
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
            state.engine.handle(at, Input::AnswerBegun);
            self.session.drain(&mut state);
        }
    }

    /// The answer is there as a whole.
    pub(crate) fn answered(mut self, reply: &Reply) {
        self.is_over = true;
        self.session.answered(self.number, reply);
    }

    /// What came of the answer before it broke off.
    pub(crate) fn broke_off(mut self, partial: Option<&Reply>) {
        self.is_over = true;
        self.session.broke_off(self.number, partial);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.is_over {
            self.session.broke_off(self.number, None);
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
        let is_bound = self.engine.memory().is_some() && self.engine.settings().binds_thinking;
        // What is under way may be what they answer.
        if !is_bound || self.in_flight > 0 {
            return false;
        }
        let first = self.engine.messages() - self.engine.tail().len();
        let answered: Vec<String> = self
            .engine
            .tail()
            .iter()
            .skip(count.saturating_sub(first))
            .flat_map(reasoning_signatures)
            .collect();
        let mut brought = added.iter().flat_map(reasoning_signatures);
        brought.any(|signature| !answered.contains(&signature))
    }

    /// Whether a request of which so many messages are known is the next of this session.
    fn goes_on(&self, count: usize, rewind: Rewind) -> bool {
        let confirmed = self.known.len() - self.unconfirmed;
        if count >= confirmed {
            return true;
        }
        if count < self.engine.status().cover || count == 0 || self.in_flight > 0 {
            return false;
        }
        match rewind {
            Rewind::ToTheMemory => true,
            Rewind::LastTurn => self.last_turn() <= count,
        }
    }

    /// Index of the message with which the last turn begins.
    fn last_turn(&self) -> usize {
        let first = self.engine.messages() - self.engine.tail().len();
        self.engine
            .tail()
            .iter()
            .rposition(|message| message.begins_turn())
            .map_or(first, |at| first + at)
    }

    /// Lets go of messages that the client no longer has.
    fn cut_to(&mut self, count: usize, at: Time) {
        if count >= self.known.len() {
            return;
        }
        self.known.truncate(count);
        let to_count = count as u64;
        self.changes.push(Change::Truncate { to_count }.into());
        self.engine.handle(at, Input::Truncated { messages: count });
    }

    /// Adds a message at the end.
    pub(super) fn add(&mut self, mut message: Message, at: Time, is_sent: bool) {
        message.at_ms = Some(at.ms());
        let expected_count = self.known.len() as u64;
        // Messages share their text.
        self.engine.handle(at, Input::Appended(message.clone()));
        let chain = self.engine.digest();
        let role = message.role;
        let text = message.raw.as_ref().filter(|_| is_sent);
        self.known.push(match text {
            Some(text) => Known::seen(chain, role, text.as_str()),
            None => Known::unseen(chain),
        });
        self.changes.push(Pending::Message {
            expected_count,
            message: Box::new(message),
            chain,
            at,
            counter: self.engine.settings().counter,
        });
    }

    /// Takes in what a request says besides its messages; whether the one before it said something else.
    fn configure(&mut self, config: &Config, body: &ClientBody, at: Time) -> bool {
        let outline = &body.outline;
        let model = client::model(outline).unwrap_or_default();
        let mut is_changed = false;
        if model != self.model {
            self.model.clone_from(&model);
            let limit = client::answer_tokens_max(outline);
            let mut settings = config.settings(self.wire, &model, limit);
            self.kept.go_on(&mut settings);
            self.engine
                .handle(at, Input::Configured(Box::new(settings)));
            self.changes.push(Change::Model(model).into());
            is_changed = true;
        }
        let head = Head::new(outline, &body.lead);
        let digest = head.prefix().fold(0, |digest: u64, text| {
            digest.rotate_left(7) ^ xxh3_64(text.as_bytes())
        });
        if digest == self.head {
            return is_changed;
        }
        is_changed |= self.head != 0;
        self.head = digest;
        let tokens = head.tokens(self.engine.settings().counter);
        let bytes = head.bytes();
        self.engine.handle(at, Input::Overhead { tokens, bytes });
        self.changes
            .push(Change::Head(head.body().into_bytes().into()).into());
        is_changed
    }
}
