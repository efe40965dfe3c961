//! A request comes: how far it goes along with what is known, and what is to be sent for it.

use std::sync::Arc;

use throughline_engine::{Input, Pin, Plan, Time};
use throughline_memory::document::Memory;
use throughline_providers::reply::Reply;
use throughline_store::Change;
use throughline_transcript::check::Profile;
use throughline_transcript::message::Message;
use throughline_transcript::outline::{Outline, OutlineError, Span};
use tokio::sync::oneshot;
use xxhash_rust::xxh3::xxh3_64;

use super::{Live, State, Tracked};
use crate::archive::Pending;
use crate::config::Config;
use crate::incoming::{Incoming, Rest, answer_limit, rest};
use crate::known::{Known, follow};
use crate::rewrite::{signatures, written};

/// What comes of a request.
pub(crate) enum Planned {
    /// This session is not the one: so many messages go along.
    Other(usize),
    /// It is not to be tracked.
    Declined(Declined),
    /// It has a plan, or will have.
    Taken(Box<Taken>),
}

/// Why a request is not tracked, whatever its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declined {
    /// It is passed on as it is, for this reason.
    Passed(&'static str),
    /// It asks for a message thread.
    Thread,
}

/// Whether a request is not to be tracked.
pub(crate) type Admission<'a> = &'a (dyn Fn(&Outline) -> Option<Declined> + Sync);

/// A request that belongs to the session.
pub(crate) struct Taken {
    flight: Flight,
    outline: Outline,
    lead: Vec<Span>,
    spans: Vec<Span>,
    plan: Option<Plan>,
    later: Option<oneshot::Receiver<Plan>>,
    has_swapped: bool,
    profile: Profile,
}

/// What is to be sent.
pub(crate) struct Settled {
    pub(crate) flight: Flight,
    /// The body, if it is not the client's.
    pub(crate) body: Option<String>,
    pub(crate) plan: Option<Plan>,
    pub(crate) outline: Outline,
    lead: Vec<Span>,
    spans: Vec<Span>,
    pub(crate) has_swapped: bool,
    pub(crate) profile: Profile,
}

impl Settled {
    /// Messages of the request.
    pub(crate) fn messages(&self) -> usize {
        self.spans.len()
    }
}

/// How far back a request may go for it to be the same session still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    /// Over the last turn: the user has edited it, or asks again.
    LastTurn,
    /// As far as the memory allows: the client says that it is this session.
    ToTheMemory,
}

impl Tracked {
    /// How many messages of a request are those of the session.
    pub(crate) fn matches(&self, incoming: &Incoming) -> Result<usize, OutlineError> {
        let state = self.state();
        if state.wire != incoming.wire {
            return Ok(0);
        }
        follow(&state.known, incoming.reader.clone()).map(|followed| followed.count())
    }

    /// Takes a request in, if it is one of the session.
    ///
    /// # Errors
    /// If the body is no JSON, or what should be a message is none.
    pub(crate) fn take(
        self: &Arc<Self>,
        incoming: &Incoming,
        rewind: Rewind,
        is_new: bool,
        admission: Admission<'_>,
    ) -> Result<Planned, OutlineError> {
        let mut state = self.state();
        if state.wire != incoming.wire {
            return Ok(Planned::Other(0));
        }
        let followed = follow(&state.known, incoming.reader.clone())?;
        let count = followed.count();
        if !is_new && !state.goes_on(count, rewind) {
            return Ok(Planned::Other(count));
        }
        // Everything is read before anything is changed.
        let Some(read) = rest(followed)? else {
            return Ok(Planned::Other(count));
        };
        let Rest {
            spans,
            added,
            outline,
            followed,
        } = read;
        if let Some(declined) = admission(&outline) {
            return Ok(Planned::Declined(declined));
        }
        followed.teach(&mut state.known);
        let at = self.shared.clock.now();
        let has_strange_thinking = state.has_strange_thinking(count, &added);
        state.cut_to(count, at);
        state.unconfirmed = 0;
        let has_other_head = state.configure(&self.shared.config, &outline, &incoming.lead, at);
        for message in added {
            state.add(message, at, true);
        }
        if has_other_head || has_strange_thinking {
            // Everything in the request was thought behind something else, what is new in it too.
            state.engine.handle(at, Input::FrameChanged);
        }
        state.number += 1;
        let lead = incoming.lead.clone();
        let mut taken = self.planned(&mut state, at, outline, lead, spans);
        taken.profile = incoming.profile;
        Ok(Planned::Taken(Box::new(taken)))
    }

    /// Asks the engine what the last request is made of.
    fn planned(
        self: &Arc<Self>,
        state: &mut State,
        at: Time,
        outline: Outline,
        lead: Vec<Span>,
        spans: Vec<Span>,
    ) -> Taken {
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
        Taken {
            flight: Flight {
                session: Arc::clone(self),
                number: state.number,
                is_over: false,
            },
            outline,
            lead,
            spans,
            plan,
            later,
            has_swapped: std::mem::take(&mut state.has_swapped),
            profile: Profile::Provider,
        }
    }

    /// The provider says that the request is too large: what is to be sent instead, if anything smaller can be.
    pub(crate) fn too_large(
        self: &Arc<Self>,
        settled: &Settled,
        window: Option<u64>,
    ) -> Option<Box<Taken>> {
        let mut state = self.state();
        if state.number != settled.flight.number {
            return None;
        }
        let at = self.shared.clock.now();
        state.engine.handle(at, Input::Overflowed { window });
        let (outline, lead) = (settled.outline.clone(), settled.lead.clone());
        let mut taken = self.planned(&mut state, at, outline, lead, settled.spans.clone());
        taken.profile = settled.profile;
        Some(Box::new(taken))
    }

    /// Waits for the plan of a request if there is none yet, as long as a draft may take, and writes what it says.
    pub(crate) async fn settle(self: &Arc<Self>, taken: Box<Taken>) -> Settled {
        let Taken {
            flight,
            outline,
            lead,
            spans,
            mut plan,
            later,
            mut has_swapped,
            profile,
        } = *taken;
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
        let body = plan
            .as_ref()
            .and_then(|plan| written(&outline, &lead, &spans, plan, profile));
        Settled {
            flight,
            body,
            plan,
            outline,
            lead,
            spans,
            has_swapped,
            profile,
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

    /// What a request that only counts would be, if it goes along with the session up to what the memory stands for.
    pub(crate) fn counted(&self, incoming: &Incoming) -> Result<Option<String>, OutlineError> {
        let state = self.state();
        let Some(plan) = state
            .plan
            .clone()
            .filter(|plan| plan.first > 0 || plan.memory.is_some())
        else {
            return Ok(None);
        };
        let followed = follow(&state.known, incoming.reader.clone())?;
        drop(state);
        if followed.count() < plan.first {
            return Ok(None);
        }
        let Some(Rest { spans, outline, .. }) = rest(followed)? else {
            return Ok(None);
        };
        Ok(written(
            &outline,
            &incoming.lead,
            &spans,
            &plan,
            incoming.profile,
        ))
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
            .flat_map(signatures)
            .collect();
        let mut brought = added.iter().flat_map(signatures);
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
        let text = message.raw.as_ref().filter(|_| is_sent);
        self.known.push(match text {
            Some(text) => Known::seen(chain, text.as_str()),
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
    fn configure(&mut self, config: &Config, outline: &Outline, lead: &[Span], at: Time) -> bool {
        let model = outline
            .field("model")
            .and_then(|model| model.as_text())
            .map(|model| model.decode().into_owned())
            .unwrap_or_default();
        let mut is_changed = false;
        if model != self.model {
            self.model.clone_from(&model);
            let limit = answer_limit(outline);
            let mut settings = config.settings(self.wire, &model, limit);
            self.kept.go_on(&mut settings);
            self.engine
                .handle(at, Input::Configured(Box::new(settings)));
            self.changes.push(Change::Model(model).into());
            is_changed = true;
        }
        let mut head = 0u64;
        let mut bytes = 0u64;
        for (name, value) in outline.fields() {
            bytes += (name.len() + value.len() + 4) as u64;
            if matches!(name, "system" | "tools" | "instructions" | "model") {
                head = head.rotate_left(7) ^ xxh3_64(value.as_str().as_bytes());
            }
        }
        let lead_text = |span: &Span| outline.body().get(span.start..span.end).unwrap_or_default();
        for span in lead {
            let text = lead_text(span);
            bytes += text.len() as u64;
            head = head.rotate_left(7) ^ xxh3_64(text.as_bytes());
        }
        if head == self.head {
            return is_changed;
        }
        is_changed |= self.head != 0;
        self.head = head;
        let counter = self.engine.settings().counter;
        let mut tokens = outline
            .field("tools")
            .map_or(0, |tools| counter.tools(tools));
        for name in ["system", "instructions"] {
            tokens += outline
                .field(name)
                .map_or(0, |value| counter.text(value.as_str()));
        }
        for span in lead {
            tokens += counter.text(lead_text(span));
        }
        self.engine.handle(
            at,
            Input::Overhead {
                tokens: tokens as u64,
                bytes,
            },
        );
        let head = outline.replaced(lead, &[], &[]);
        self.changes
            .push(Change::Head(head.into_bytes().into()).into());
        is_changed
    }
}
