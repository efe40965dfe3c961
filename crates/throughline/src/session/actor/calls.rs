//! Requests and answers: what goes out, what comes back, what of it is stored when.

use std::sync::Arc;
use std::time::{Duration, Instant as RealInstant};

use throughline_engine::{Input, Plan};
use throughline_providers::reply::Reply;
use throughline_providers::stop::Next;
use throughline_store::{Change, Purpose};
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Message, Role};
use throughline_transcript::request::message;
use throughline_transcript::request::{Marks, without_thinking};
use throughline_transcript::usage::Usage;
use tokio::time::Instant;

use super::{Actor, Pending, Sending, Wanted};
use crate::compactor::{Body, LiveRequest};
use crate::error::SendError;
use crate::event::SessionEvent;
use crate::session::turn::{Again, Prepared, PreparedAgain};
use crate::session::{Answered, UserInput, stored};

impl Actor {
    pub(super) async fn send(
        &mut self,
        input: UserInput,
        answer: Answered<Result<Prepared, SendError>>,
    ) {
        if self.is_busy() {
            let _ = answer.send(Err(SendError::Busy));
            return;
        }
        let messages = match self.messages_of(input) {
            Ok(messages) => messages,
            Err(error) => {
                let _ = answer.send(Err(error));
                return;
            }
        };
        if !messages.is_empty()
            && let Err(error) = self.append(&messages).await
        {
            let _ = answer.send(Err(error));
            return;
        }
        self.turns += 1;
        let cancel = self.parts.stop.child_token();
        let guard = cancel.clone().drop_guard();
        self.sending = Some(Sending {
            number: self.turns,
            cancel,
        });
        self.want_request(Wanted::First(answer, guard));
    }

    pub(super) async fn send_again(
        &mut self,
        number: u64,
        again: Again,
        answer: Answered<Result<PreparedAgain, SendError>>,
    ) {
        if !self.is_sending(number) {
            let _ = answer.send(Err(SendError::Closed));
            return;
        }
        if let Again::TooLarge(window) = again {
            self.handle(Input::Overflowed { window });
            self.drain().await;
        }
        self.want_request(Wanted::Again(answer));
    }

    /// Whether this turn is still wanted.
    fn is_sending(&mut self, number: u64) -> bool {
        self.is_busy()
            && self
                .sending
                .as_ref()
                .is_some_and(|sending| sending.number == number)
    }

    fn want_request(&mut self, wanted: Wanted) {
        self.pending = Some(Pending {
            wanted,
            since: Instant::now(),
            since_real: RealInstant::now(),
            swapped: false,
            waited_for_model: Duration::ZERO,
        });
        self.handle(Input::RequestWanted);
    }

    /// The messages that say this.
    fn messages_of(&self, input: UserInput) -> Result<Vec<Raw>, SendError> {
        let wire = self.parts.frame.wire();
        let open: Vec<String> = stored::open_calls(self.engine.tail())
            .iter()
            .map(|call| call.id.to_string())
            .collect();
        match input {
            UserInput::Text(text) if text.trim().is_empty() => Err(SendError::Empty),
            UserInput::Text(text) => Ok(stored::user_after(wire, &open, &text)),
            UserInput::ToolOutputs { outputs, text } => {
                let mut unanswered = open.clone();
                for output in &outputs {
                    let at = unanswered.iter().position(|id| *id == output.call_id);
                    let Some(at) = at else {
                        return Err(SendError::NoSuchCall {
                            id: output.call_id.clone(),
                        });
                    };
                    unanswered.remove(at);
                }
                if let Some(id) = unanswered.into_iter().next() {
                    return Err(SendError::CallOpen { id });
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
            UserInput::Again => match self.engine.tail().last() {
                Some(last) if last.role != Role::Assistant => Ok(Vec::new()),
                _ => Err(SendError::Empty),
            },
            UserInput::Messages(messages) if messages.is_empty() => Err(SendError::Empty),
            UserInput::Messages(messages) => {
                // What the provider would refuse would stand in the way of every later request.
                let memory = self.engine.memory().map(|version| version.text.clone());
                let tail = self.engine.tail().iter();
                let all: Vec<&Raw> = tail
                    .filter_map(|message| message.raw.as_ref())
                    .chain(&messages)
                    .collect();
                let body = self
                    .parts
                    .frame
                    .compose(memory.as_deref(), all, Marks::default());
                match stored::broken_rule(&body, wire) {
                    Some(finding) => Err(SendError::NotSendable { finding }),
                    None => Ok(messages),
                }
            }
        }
    }

    /// Stores messages, then tells the engine of them.
    async fn append(&mut self, raws: &[Raw]) -> Result<(), SendError> {
        let (change, messages) = self.added(raws)?;
        self.commit_with(change)
            .await
            .map_err(|error| SendError::Store(Arc::new(error)))?;
        for message in messages {
            self.handle(Input::Appended(message));
        }
        Ok(())
    }

    /// The change that adds messages, and the messages as they go into requests.
    fn added(&self, raws: &[Raw]) -> Result<(Change, Vec<Message>), SendError> {
        stored::append(
            raws,
            self.parts.frame.wire(),
            self.chain(),
            self.parts.clock.now(),
            self.engine.messages(),
            self.parts.result_bytes_max,
            self.engine.settings(),
        )
        .map_err(|_| SendError::Invalid {
            finding: "a message is not a JSON object".to_owned(),
        })
    }

    /// The provider has begun to answer.
    pub(super) fn answer_begins(&mut self, number: u64) {
        if self.is_sending(number) {
            self.handle(Input::AnswerBegun);
        }
    }

    /// A complete answer has come. It is stored in one step with what it cost; where that fails, the session goes on with
    /// it and stores it with the next change.
    pub(super) async fn reply(&mut self, number: u64, reply: Reply) -> Result<(), SendError> {
        if !self.is_sending(number) {
            // The caller is gone, and may have said something else meanwhile.
            return Err(SendError::Closed);
        }
        let next = reply
            .stop
            .as_ref()
            .map(throughline_providers::stop::Stop::next);
        if next != Some(Next::ResendUnchanged) {
            self.sending = None;
        }
        if !reply.messages.is_empty() {
            let (change, messages) = self.added(&reply.messages)?;
            self.changes.push(change);
            for message in messages {
                self.handle(Input::Appended(message));
            }
        }
        let context = reply.usage.map(|usage| usage.context_size());
        if let Some(usage) = reply.usage {
            let model = self.parts.frame.settings().model.clone();
            self.spend(
                Purpose::Main,
                &model,
                &usage.billed,
                reply.request_id.clone(),
            );
            self.compare(&usage.last_pass);
        }
        self.handle(Input::Answered { context });
        if next == Some(Next::Compact) {
            self.handle(Input::Overflowed { window: None });
        }
        self.drain().await;
        self.push_kept();
        self.flush().await.map_err(|error| {
            let error = Arc::new(error);
            self.not_stored(&error);
            SendError::AnswerNotStored(error)
        })
    }

    /// What the request would have been if nothing had ever been left out.
    fn compare(&mut self, usage: &Usage) {
        let limit = self.engine.status().limit;
        let whole = usage.prompt() + self.removed_tokens;
        let catalogue = Arc::clone(&self.parts.catalogue);
        let model = catalogue.find(&self.parts.frame.settings().model);
        self.costs
            .without_compaction
            .add(whole, limit, usage.output, model);
    }

    /// The engine has said what the request is made of.
    pub(super) async fn request(&mut self, plan: Plan) {
        self.wait_until = None;
        if self.pending.as_ref().is_none_or(Pending::is_forgotten) {
            // Whoever wanted it is gone.
            self.pending = None;
            return;
        }
        if let Err(error) = self.flush().await {
            // What a request is made of must be known after a restart.
            self.refuse(SendError::Store(Arc::new(error)));
            return;
        }
        if plan.is_too_large {
            let limit = self.engine.status().limit;
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
            && let Some(finding) = stored::broken_rule(&body, live.frame.wire())
        {
            tracing::error!(%finding, "a request that was made here would be refused");
            self.refuse(SendError::Invalid { finding });
            return;
        }
        let Some(pending) = self.pending.take() else {
            return;
        };
        if pending.swapped {
            // In virtual time only the real clock knows what code takes.
            let held = pending.since.elapsed().max(pending.since_real.elapsed());
            self.tell(SessionEvent::Swap {
                held,
                waited_for_model: pending.waited_for_model,
            });
        }
        let Some(sending) = &self.sending else {
            return;
        };
        let body = body.into();
        // Where nobody takes it, the guard is dropped and cancels the turn.
        match pending.wanted {
            Wanted::First(answer, guard) => {
                let _ = answer.send(Ok(Prepared {
                    client: self.parts.client.clone(),
                    body,
                    number: sending.number,
                    guard,
                    cancel: sending.cancel.clone(),
                    traffic: self.parts.traffic.clone(),
                }));
            }
            Wanted::Again(answer) => {
                let _ = answer.send(Ok(PreparedAgain { body }));
            }
        }
    }

    fn refuse(&mut self, error: SendError) {
        self.sending = None;
        let Some(pending) = self.pending.take() else {
            return;
        };
        match pending.wanted {
            Wanted::First(answer, _) => drop(answer.send(Err(error))),
            Wanted::Again(answer) => drop(answer.send(Err(error))),
        }
    }

    /// The request that a plan stands for.
    pub(super) fn live(&self, plan: &Plan) -> LiveRequest {
        let mut messages = Vec::with_capacity(plan.end - plan.first);
        for (offset, message) in self.engine.tail().iter().enumerate() {
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
            window: self.engine.settings().window,
            body: Body::Composed,
        }
    }
}
