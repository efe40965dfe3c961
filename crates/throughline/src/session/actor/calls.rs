//! Requests and answers: what is sent, what arrives, and when it is stored.

use std::sync::Arc;
use std::time::{Duration, Instant as RealInstant};

use throughline_engine::{Input, Plan};
use throughline_providers::reply::Reply;
use throughline_providers::stop::Next;
use throughline_transcript::json::Raw;
use throughline_transcript::message::Role;
use throughline_transcript::request::message;
use throughline_transcript::request::{Marks, without_thinking};
use tokio::time::Instant;

use super::{Actor, Caller, PendingRequest, RunningTurn};
use crate::compactor::{Body, LiveRequest};
use crate::core::{self, Effects, ReadMessage};
use crate::error::SendError;
use crate::event::SessionEvent;
use crate::session::input::{RequestChecker, open_calls, user_after};
use crate::session::turn::{Again, PreparedTurn, ResentRequest};
use crate::session::{Responder, UserInput};

impl Actor {
    pub(super) async fn send(
        &mut self,
        input: UserInput,
        caller: Responder<Result<PreparedTurn, SendError>>,
    ) {
        if self.is_busy() {
            let _ = caller.send(Err(SendError::Busy));
            return;
        }
        if let Err(error) = self.say(input).await {
            let _ = caller.send(Err(error));
            return;
        }
        self.turns += 1;
        let cancel = self.parts.stop.child_token();
        let guard = cancel.clone().drop_guard();
        self.turn = Some(RunningTurn {
            number: self.turns,
            cancel,
        });
        self.want_request(Caller::First(caller, guard)).await;
    }

    pub(super) async fn send_again(
        &mut self,
        number: u64,
        again: Again,
        caller: Responder<Result<ResentRequest, SendError>>,
    ) {
        if !self.is_in_turn(number) {
            let _ = caller.send(Err(SendError::Closed));
            return;
        }
        if let Again::TooLarge(window) = again {
            self.handle(Input::Overflowed { window }).await;
        }
        self.want_request(Caller::Again(caller)).await;
    }

    /// Whether the caller still waits for this turn.
    fn is_in_turn(&mut self, number: u64) -> bool {
        self.is_busy() && self.turn.as_ref().is_some_and(|turn| turn.number == number)
    }

    async fn want_request(&mut self, caller: Caller) {
        self.pending = Some(PendingRequest {
            caller,
            since: Instant::now(),
            since_real: RealInstant::now(),
            has_swapped: false,
            waited_for_model: Duration::ZERO,
        });
        self.read_folder().await;
        self.handle(Input::RequestWanted).await;
    }

    /// Stores what the caller says, then tells the core.
    async fn say(&mut self, input: UserInput) -> Result<(), SendError> {
        let messages = self.read(&self.messages_of(input)?)?;
        if messages.is_empty() {
            return Ok(());
        }
        let now = self.parts.clock.now();
        let change = self.core.append_change(now, &messages);
        self.commit_with(change)
            .await
            .map_err(|error| SendError::Store(Arc::new(error)))?;
        let effects = self.core.append_stored(now, messages);
        self.perform(effects).await;
        Ok(())
    }

    fn read(&self, raws: &[Raw]) -> Result<Vec<ReadMessage>, SendError> {
        let count = self.core.engine().messages();
        let wire = self.parts.frame.wire();
        core::read(raws, wire, count, self.parts.result_bytes_max).map_err(|_| SendError::Invalid {
            finding: "a message is not a JSON object".to_owned(),
        })
    }

    /// The messages that say this.
    fn messages_of(&self, input: UserInput) -> Result<Vec<Raw>, SendError> {
        let wire = self.parts.frame.wire();
        let tail = self.core.engine().tail();
        let open = open_calls(tail);
        match input {
            UserInput::Text(text) if text.trim().is_empty() => Err(SendError::Empty),
            UserInput::Text(text) => Ok(user_after(wire, &open, &text)),
            UserInput::ToolOutputs { outputs, text } => {
                let mut unanswered = open;
                for output in &outputs {
                    let mut calls = unanswered.iter();
                    let at = calls.position(|call| *call.id == *output.call_id);
                    let Some(at) = at else {
                        return Err(SendError::NoSuchCall {
                            id: output.call_id.clone(),
                        });
                    };
                    unanswered.remove(at);
                }
                if let Some(call) = unanswered.first() {
                    return Err(SendError::CallOpen {
                        id: call.id.to_string(),
                    });
                }
                let text = text.filter(|text| !text.trim().is_empty());
                if outputs.is_empty() {
                    return match text {
                        Some(text) => Ok(vec![message::user(wire, &text)]),
                        None => Err(SendError::Empty),
                    };
                }
                Ok(message::tool_outputs(wire, &outputs, text.as_deref()))
            }
            UserInput::Again => match tail.last() {
                Some(last) if last.role != Role::Assistant => Ok(Vec::new()),
                _ => Err(SendError::Empty),
            },
            UserInput::Messages(messages) if messages.is_empty() => Err(SendError::Empty),
            UserInput::Messages(messages) => {
                // A message that the provider refuses would be in every later request too.
                let memory = self.core.engine().memory();
                let memory = memory.map(|version| version.text.as_str());
                let frame = &self.parts.frame;
                let known = tail.iter().filter_map(|message| message.raw.as_ref());
                let body = frame.compose(memory, known.chain(&messages), Marks::default());
                match self.checker().broken_rule(&body, frame) {
                    Some(finding) => Err(SendError::NotSendable { finding }),
                    None => Ok(messages),
                }
            }
        }
    }

    fn checker(&self) -> RequestChecker<'_> {
        RequestChecker {
            client: &self.parts.client,
            model: self.parts.catalogue.find(self.core.model()),
        }
    }

    /// The provider has begun to answer.
    pub(super) async fn answer_begins(&mut self, number: u64) {
        if self.is_in_turn(number) {
            self.handle(Input::AnswerBegun).await;
        }
    }

    /// A complete answer has come. It is stored in one step with its cost. If that fails, the session continues with it
    /// and stores it with the next change.
    pub(super) async fn reply(&mut self, number: u64, reply: Reply) -> Result<(), SendError> {
        if !self.is_in_turn(number) {
            // The caller is gone, and may have said something else meanwhile.
            return Err(SendError::Closed);
        }
        if reply.stop.as_ref().map(|stop| stop.next()) != Some(Next::ResendUnchanged) {
            self.turn = None;
        }
        let now = self.parts.clock.now();
        let mut effects = Effects::default();
        for message in self.read(&reply.messages)? {
            effects.extend(self.core.append(now, message).1);
        }
        effects.extend(self.core.record_answer(now, &reply));
        self.perform(effects).await;
        self.flush().await.map_err(|error| {
            let error = Arc::new(error);
            self.not_stored(&error);
            SendError::AnswerNotStored(error)
        })
    }

    /// Sends what the request is made of to its caller.
    pub(super) async fn request(&mut self, plan: Plan) {
        self.wait_until = None;
        if self
            .pending
            .as_ref()
            .is_none_or(PendingRequest::is_forgotten)
        {
            // Its caller is gone.
            self.pending = None;
            return;
        }
        if let Err(error) = self.flush().await {
            // What a request is made of must be known after a restart.
            self.refuse(SendError::Store(Arc::new(error)));
            return;
        }
        if plan.is_too_large {
            let limit = self.core.engine().status().limit;
            self.refuse(SendError::TooLarge {
                tokens: plan.tokens,
                limit,
            });
            return;
        }
        let live = self.live(&plan);
        let marks = Marks {
            last_request_end: plan
                .last_end
                .and_then(|end| end.checked_sub(plan.first + 1))
                .filter(|_| live.messages.len() == plan.end - plan.first),
        };
        let body = live
            .frame
            .compose(live.memory.as_deref(), &live.messages, marks);
        if plan.memory.is_some()
            && let Some(finding) = self.checker().broken_rule(&body, &live.frame)
        {
            tracing::error!(%finding, "a request that was made here would be refused");
            self.refuse(SendError::Invalid { finding });
            return;
        }
        let Some(pending) = self.pending.take() else {
            return;
        };
        if pending.has_swapped {
            // In virtual time only the real clock knows what code takes.
            let held = pending.since.elapsed().max(pending.since_real.elapsed());
            self.tell(SessionEvent::Swap {
                held,
                waited_for_model: pending.waited_for_model,
            });
        }
        let Some(turn) = &self.turn else {
            return;
        };
        let body = body.into();
        // Where the caller is gone, the guard is dropped and cancels the turn.
        match pending.caller {
            Caller::First(caller, guard) => {
                let _ = caller.send(Ok(PreparedTurn {
                    client: self.parts.client.clone(),
                    body,
                    number: turn.number,
                    guard,
                    cancel: turn.cancel.clone(),
                    traffic: self.parts.traffic.clone(),
                }));
            }
            Caller::Again(caller) => {
                let _ = caller.send(Ok(ResentRequest { body }));
            }
        }
    }

    fn refuse(&mut self, error: SendError) {
        self.turn = None;
        let Some(pending) = self.pending.take() else {
            return;
        };
        match pending.caller {
            Caller::First(caller, _) => drop(caller.send(Err(error))),
            Caller::Again(caller) => drop(caller.send(Err(error))),
        }
    }

    /// The request that a plan describes.
    pub(super) fn live(&self, plan: &Plan) -> LiveRequest {
        let mut messages = Vec::with_capacity(plan.end - plan.first);
        for (offset, message) in self.core.engine().tail().iter().enumerate() {
            let index = plan.first + offset;
            if index >= plan.end {
                break;
            }
            let Some(raw) = &message.raw else { continue };
            if index < plan.thinking_from {
                messages.extend(without_thinking(raw));
            } else {
                messages.push(raw.clone());
            }
        }
        LiveRequest {
            frame: Arc::clone(&self.parts.frame),
            memory: plan.memory.clone(),
            messages,
            traffic: self.parts.traffic.clone(),
            window: self.core.engine().settings().window,
            body: Body::Composed,
        }
    }
}
