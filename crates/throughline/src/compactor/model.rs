//! Memories by a model: the calls of a [`Job`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use throughline_engine::{UpdateFailure, UpdateFailureClass, UpdateOrder};
use throughline_memory::summarise::{
    Answer, Ask, CallFailure, FailureClass, Form, Job, Limits, Maker, ModelSlot, Order, Prompts,
    Request, Step, Stop, Style,
};
use throughline_providers::client::{CallOptions, Client, Delivery};
use throughline_providers::error::{CallError, CallErrorKind};
use throughline_providers::reply::Reply;
use throughline_providers::stop;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::json::Raw;
use throughline_transcript::message::Content;
use throughline_transcript::request::{
    Caching, Frame, MemoryPlace, Settings, message, structured_output,
};
use throughline_transcript::tokens::Counter;
use throughline_transcript::usage::Usage;
use tokio_util::sync::CancellationToken;

use super::{Body, Compactor, CompactorResult, LiveRequest};

/// Has a model make memories.
#[derive(Clone, Debug)]
pub struct ModelCompactor {
    main: ModelEndpoint,
    fallback: Option<ModelEndpoint>,
    styling: Styling,
    form: Form,
    prompts: Prompts,
    answer_tokens: Option<usize>,
    attempts_max: u32,
    is_structured: bool,
    window: Option<u64>,
    catalogue: Arc<Catalogue>,
}

/// A model and who answers for it.
#[derive(Clone, Debug)]
struct ModelEndpoint {
    client: Client,
    model: String,
}

/// How the model is shown what it is to remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Styling {
    /// Whatever is expected to cost less: the whole live request, if the provider has it in its cache, or only what is
    /// new.
    #[default]
    Auto,
    /// A request of its own, with the transcript written out. For another, cheaper model.
    Forked,
    /// The live request, with an instruction behind it, so that the provider's cache is read. For the same model.
    PrefixSharing,
}

/// What a request of its own has besides the messages and the memory: what is wanted, marks, indexes. Tokens, about.
const INSTRUCTIONS_TOKENS: u128 = 2_000;
/// Window of an unknown model, in tokens.
const UNKNOWN_WINDOW: u64 = 128_000;

impl ModelCompactor {
    /// Asks `model` at `client`.
    #[must_use]
    pub fn new(client: Client, model: impl Into<String>) -> Self {
        Self {
            main: ModelEndpoint {
                client,
                model: model.into(),
            },
            fallback: None,
            styling: Styling::Auto,
            form: Form::Document,
            prompts: Prompts::embedded(),
            answer_tokens: None,
            attempts_max: 3,
            is_structured: false,
            window: None,
            catalogue: Arc::new(Catalogue::embedded().clone()),
        }
    }

    /// Another model, for when the first fails.
    #[must_use]
    pub fn fallback(mut self, client: Client, model: impl Into<String>) -> Self {
        self.fallback = Some(ModelEndpoint {
            client,
            model: model.into(),
        });
        self
    }

    /// How the model is shown what it is to remember.
    #[must_use]
    pub fn styling(mut self, styling: Styling) -> Self {
        self.styling = styling;
        self
    }

    /// The form in which the model is asked for a memory.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Other prompts.
    #[must_use]
    pub fn prompts(mut self, prompts: Prompts) -> Self {
        self.prompts = prompts;
        self
    }

    /// Room for an answer, tokens.
    #[must_use]
    pub fn answer_tokens(mut self, tokens: usize) -> Self {
        self.answer_tokens = Some(tokens);
        self
    }

    /// Answers of one model that are tried before the next one, or the draft.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// Whether the provider keeps answers to a schema when it is given one.
    #[must_use]
    pub fn structured(mut self) -> Self {
        self.is_structured = true;
        self
    }

    /// The window of the model, tokens, where the catalogue does not know it or less is to be used.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// Prices and windows of models.
    #[must_use]
    pub fn catalogue(mut self, catalogue: Arc<Catalogue>) -> Self {
        self.catalogue = catalogue;
        self
    }

    fn window_tokens(&self, live: &LiveRequest) -> u64 {
        let of_model = self.catalogue.find(&self.main.model);
        self.window
            .or(of_model.map(|model| model.window))
            .or(self.is_model_of(live).then_some(live.window))
            .unwrap_or(UNKNOWN_WINDOW)
    }

    /// Whether the model is that of the conversation.
    fn is_model_of(&self, live: &LiveRequest) -> bool {
        self.main.model == live.frame.settings().model
            && self.main.client.wire() == live.frame.wire()
    }

    fn style(&self, order: &UpdateOrder, live: &LiveRequest) -> Style {
        if matches!(live.body, Body::Unknown) {
            return Style::Forked;
        }
        if order.live.tokens > self.window_tokens(live) / 10 * 9 {
            // Together with an instruction and an answer the live request would not fit.
            return Style::Forked;
        }
        match self.styling {
            Styling::Forked => Style::Forked,
            Styling::PrefixSharing => Style::PrefixSharing,
            Styling::Auto if !self.is_model_of(live) => Style::Forked,
            Styling::Auto => self.cheaper(order, live),
        }
    }

    /// The same model: all of the live request at the price of cached tokens, or what is new at full price.
    fn cheaper(&self, order: &UpdateOrder, live: &LiveRequest) -> Style {
        let Some(prices) = self
            .catalogue
            .find(&self.main.model)
            .and_then(|model| model.prices.as_ref())
        else {
            return Style::PrefixSharing;
        };
        let is_cached = live.frame.wire() != throughline_transcript::wire::Wire::Anthropic
            || live.frame.settings().caching != Caching::Off;
        if !is_cached {
            return Style::Forked;
        }
        let counter = Counter::reference().scanning();
        let fresh: usize = order
            .order
            .messages
            .iter()
            .map(|message| counter.message(message))
            .sum();
        let shared = u128::from(order.live.tokens) * u128::from(prices.cache_read.nano_dollars());
        let prior = order
            .order
            .prior
            .as_ref()
            .map_or(0, |version| version.tokens);
        let own = (fresh as u128 + u128::from(prior) + INSTRUCTIONS_TOKENS)
            * u128::from(prices.input.nano_dollars());
        if shared <= own {
            Style::PrefixSharing
        } else {
            Style::Forked
        }
    }

    fn asked(&self, slot: ModelSlot) -> &ModelEndpoint {
        match (slot, &self.fallback) {
            (ModelSlot::Fallback, Some(fallback)) => fallback,
            _ => &self.main,
        }
    }

    fn body(&self, ask: &Ask, live: &LiveRequest) -> String {
        let asked = self.asked(ask.slot);
        match &ask.request {
            Request::Appended { instruction } => {
                live.with_instruction(instruction, ask.output_tokens_max as u64)
            }
            Request::Own { system, user } => {
                let wire = asked.client.wire();
                let fields = ask
                    .schema
                    .as_ref()
                    .filter(|_| self.is_structured)
                    .and_then(|schema| {
                        let text = schema.schema.to_string();
                        Some(structured_output(
                            wire,
                            schema.name,
                            &Raw::parse(text).ok()?,
                        ))
                    })
                    .into_iter()
                    .collect();
                let frame = Frame::new(
                    wire,
                    Settings {
                        model: asked.model.clone(),
                        max_tokens: Some(ask.output_tokens_max as u64),
                        system: system.clone(),
                        tools: None,
                        fields,
                        caching: Caching::Off,
                        memory_place: MemoryPlace::default(),
                    },
                );
                frame.compose(None, [&message::user(wire, user)], Default::default())
            }
        }
    }

    async fn call(
        &self,
        ask: &Ask,
        live: &LiveRequest,
        stop: &CancellationToken,
        calls: &mut Vec<(String, Usage)>,
    ) -> Result<Answer, CallFailure> {
        if ask.wait_ms > 0 {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(ask.wait_ms)) => {}
                () = stop.cancelled() => return Err(CallFailure::new(FailureClass::Cancelled)),
            }
        }
        tokio::select! {
            () = live.quiet() => {}
            () = stop.cancelled() => return Err(CallFailure::new(FailureClass::Cancelled)),
        }
        let asked = self.asked(ask.slot);
        // The job says when it is tried again: after another look at what the conversation waits for.
        let options = CallOptions::cancelled_by(stop.clone())
            .delivery(Delivery::Streamed)
            .attempts_max(1);
        let reply = match asked
            .client
            .send(self.body(ask, live).into(), options)
            .await
        {
            Ok(call) => call.reply().await,
            Err(error) => Err(error),
        };
        match reply {
            Ok(reply) => {
                if let Some(usage) = reply.usage {
                    calls.push((asked.model.clone(), usage.billed));
                }
                Ok(answer(&reply))
            }
            Err(error) => {
                if let Some(usage) = error.partial.as_ref().and_then(|partial| partial.usage) {
                    calls.push((asked.model.clone(), usage.billed));
                }
                Err(failure(&error))
            }
        }
    }
}

#[async_trait]
impl Compactor for ModelCompactor {
    async fn compact(
        &self,
        order: UpdateOrder,
        live: LiveRequest,
        stop: CancellationToken,
    ) -> CompactorResult {
        let style = self.style(&order, &live);
        let window = self.window_tokens(&live);
        let mut limits = Limits::new(order.order.tokens_max as usize, window as usize);
        limits.attempts_max = self.attempts_max;
        if let Some(tokens) = self.answer_tokens {
            limits.answer_tokens = tokens;
            limits.answer_tokens_max = limits.answer_tokens_max.max(tokens);
        }
        limits.input_tokens_max =
            (window as usize).saturating_sub(limits.answer_tokens_max.min(window as usize / 4));
        let counter = self
            .catalogue
            .find(&self.main.model)
            .map_or_else(Counter::reference, Counter::for_model);
        let mut job = Job::new(Order {
            first_index: order.order.first,
            prior: order
                .order
                .prior
                .as_ref()
                .map(|version| version.memory.clone()),
            focus: order.order.focus.clone(),
            form: self.form,
            is_structured: self.is_structured,
            prompts: self.prompts.clone(),
            has_fallback: self.fallback.is_some(),
            ..Order::new(
                order.order.messages.clone(),
                order.draft.as_ref().clone(),
                style,
                limits,
                Arc::new(move |text: &str| counter.text(text)),
            )
        });
        let mut calls = Vec::new();
        let mut retry_after_ms = None;
        while let Step::Ask(ask) = job.step() {
            match self.call(ask, &live, &stop, &mut calls).await {
                Ok(answer) => job.answer(&answer),
                Err(failure) => {
                    retry_after_ms = failure.retry_after_ms;
                    job.failed(failure);
                }
            }
        }
        let Some(outcome) = job.into_outcome() else {
            return CompactorResult {
                result: Err(UpdateFailure {
                    class: UpdateFailureClass::Unfinished,
                    message: "the job ended without a memory".to_owned(),
                    retry_after_ms,
                }),
                calls,
                findings: Vec::new(),
            };
        };
        let result = match &outcome.made_by {
            Maker::Model { .. } => Ok(outcome.memory),
            Maker::Draft { reasons } => Err(UpdateFailure {
                class: match reasons.last() {
                    Some(reason) => UpdateFailureClass::Summary(reason.clone()),
                    None => UpdateFailureClass::Other("unknown".to_owned()),
                },
                message: reasons
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; "),
                retry_after_ms,
            }),
        };
        CompactorResult {
            result,
            calls,
            findings: outcome.findings,
        }
    }
}

fn answer(reply: &Reply) -> Answer {
    let has_tool_call = reply.messages.iter().any(|message| {
        throughline_transcript::body::read_message(message).is_some_and(|message| {
            message
                .blocks
                .iter()
                .any(|block| matches!(block.content, Content::ToolCall(_)))
        })
    });
    Answer {
        text: reply.text(),
        stop: match &reply.stop {
            Some(stop::StopReason::EndTurn | stop::StopReason::StopSequence) => Stop::Finished,
            Some(stop::StopReason::MaxTokens | stop::StopReason::WindowExceeded) | None => {
                Stop::Truncated
            }
            Some(stop::StopReason::Refusal { .. }) => Stop::Refused,
            Some(stop::StopReason::ToolUse) => Stop::ToolUse,
            Some(other) => Stop::Other(format!("{other:?}")),
        },
        has_tool_call,
        output_tokens: reply.usage.map_or(0, |usage| usage.billed.output),
    }
}

fn failure(error: &CallError) -> CallFailure {
    let class = match error.kind() {
        CallErrorKind::ContextOverflow { .. } | CallErrorKind::BodyTooLarge => {
            FailureClass::Overflow
        }
        CallErrorKind::Cancelled => FailureClass::Cancelled,
        CallErrorKind::FixConfiguration => FailureClass::Denied,
        _ => FailureClass::of(error.class).unwrap_or(FailureClass::Connection),
    };
    CallFailure {
        class,
        retry_after_ms: error
            .retry_after
            .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
    }
}
