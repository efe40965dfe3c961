//! Who makes memories, besides the extractive compactor that is always there.

mod model;

use std::sync::Arc;

use async_trait::async_trait;
use throughline_engine::{BuildOrder, UpdateFailure, UpdateFailureClass, UpdateOrder};
use throughline_memory::compact::{Options, compact_after};
use throughline_memory::document::Memory;
use throughline_memory::summarise::Finding;
use throughline_transcript::body::list_name;
use throughline_transcript::digest::Chain;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Block, Message, Role};
use throughline_transcript::request::CacheTtl;
use throughline_transcript::request::{self, Caching, Frame, Marks, message};
use throughline_transcript::splice::Splice;
use throughline_transcript::tokens::Counter;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;
use tokio_util::sync::CancellationToken;

pub use self::model::{ModelCompactor, Styling};
use crate::traffic::Traffic;

/// Makes a memory of new messages and the memory so far.
///
/// It runs in the background and may take its time. Its memory has to cover exactly the messages of the order:
/// take the cover of the draft. Whatever it gives is measured and compared with the history before it is used.
#[async_trait]
pub trait Compactor: Send + Sync {
    /// Makes the memory. `stop` is cancelled when it is not wanted any more.
    ///
    /// # Errors
    /// Why there is none. The draft is used instead.
    async fn compact(
        &self,
        order: UpdateOrder,
        live: LiveRequest,
        stop: CancellationToken,
    ) -> CompactorResult;
}

#[async_trait]
impl<T: Compactor + ?Sized> Compactor for Arc<T> {
    async fn compact(
        &self,
        order: UpdateOrder,
        live: LiveRequest,
        stop: CancellationToken,
    ) -> CompactorResult {
        T::compact(self, order, live, stop).await
    }
}

/// A memory, or why there is none, and what it took.
#[derive(Debug)]
pub struct CompactorResult {
    /// The memory, or why there is none.
    pub result: Result<Memory, UpdateFailure>,
    /// The calls that were made, with the model that answered each.
    pub calls: Vec<(String, Usage)>,
    /// What was found and mended in what the model said.
    pub findings: Vec<Finding>,
}

/// The request as it would be sent now: what a call has to begin with to be read from the provider's cache.
#[derive(Clone, Debug)]
pub struct LiveRequest {
    pub(crate) frame: Arc<Frame>,
    pub(crate) memory: Option<Arc<str>>,
    pub(crate) messages: Vec<Raw>,
    pub(crate) traffic: Traffic,
    pub(crate) window: u64,
    pub(crate) body: Body,
}

/// Who writes the bodies of the conversation.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// They are composed here.
    Composed,
    /// A client: this one was sent last. `messages` came after it.
    Sent(Raw),
    /// A client, and none is at hand.
    Unknown,
}

impl LiveRequest {
    /// The live request of a client that writes its requests itself.
    ///
    /// `sent` is the last body as the provider got it, `added` are the messages after it that the next one will have.
    /// Without a body, a compactor can only make requests of its own. `is_cached`: the client asks the provider to cache
    /// what it sends.
    #[must_use]
    pub fn of_client(
        wire: Wire,
        model: &str,
        sent: Option<Raw>,
        added: Vec<Raw>,
        is_cached: bool,
        window: u64,
        traffic: Traffic,
    ) -> Self {
        let settings = request::Settings {
            model: model.to_owned(),
            caching: if is_cached {
                Caching::For(CacheTtl::Minutes5)
            } else {
                Caching::Off
            },
            ..request::Settings::default()
        };
        Self {
            frame: Arc::new(Frame::new(wire, settings)),
            memory: None,
            messages: added,
            traffic,
            window,
            body: sent.map_or(Body::Unknown, Body::Sent),
        }
    }

    /// The model that is asked, and everything else that requests have in common.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The window that the session uses, in tokens.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Waits until the conversation itself waits for nothing: a compactor makes its calls after this, so that they do not
    /// take what a rate limit leaves from the user, and find in the provider's cache what the conversation put there.
    pub async fn quiet(&self) {
        self.traffic.quiet().await;
    }

    /// The live request with an instruction as last message, and room for an answer of that many tokens. Everything else is
    /// byte for byte the same, cache markers aside.
    #[must_use]
    pub fn with_instruction(&self, instruction: &str, answer_tokens: u64) -> String {
        let instruction = message::user(self.frame.wire(), instruction);
        if let Body::Sent(body) = &self.body
            && let Some(text) = self.behind(body, &instruction, answer_tokens)
        {
            return text;
        }
        let marks = Marks {
            last_request_end: self.messages.len().checked_sub(1),
        };
        let settings = self.frame.settings();
        let roomy = settings
            .max_tokens
            .filter(|limit| *limit < answer_tokens)
            .map(|_| {
                // The limit of the answer is no part of what is cached.
                Frame::new(
                    self.frame.wire(),
                    request::Settings {
                        max_tokens: Some(answer_tokens),
                        ..settings.clone()
                    },
                )
            });
        roomy.as_ref().unwrap_or(&self.frame).compose(
            self.memory.as_deref(),
            self.messages.iter().chain([&instruction]),
            marks,
        )
    }

    /// The body of a client with more messages behind its own. Only the limit of the answer is changed, if it is too
    /// low: it is no part of what is cached.
    fn behind(&self, body: &Raw, instruction: &Raw, answer_tokens: u64) -> Option<String> {
        let wire = self.frame.wire();
        let mut added = self.messages.clone();
        added.push(instruction.clone());
        let mut splice = Splice::new(body);
        splice.append_to_array(list_name(wire), &added).ok()?;
        for name in request::limit_names(wire) {
            let limit = body.field(name).and_then(|limit| limit.as_u64());
            if limit.is_some_and(|limit| limit < answer_tokens) {
                splice
                    .set_field(name, Raw::parse(answer_tokens.to_string()).ok()?)
                    .ok()?;
            }
        }
        Some(splice.finish().ok()?.to_string())
    }
}

/// The memory that code alone makes of an order, in milliseconds.
///
/// # Errors
/// If the memory cannot be made that small.
pub fn draft(order: &BuildOrder, counter: Counter) -> Result<Memory, UpdateFailure> {
    let count = |text: &str| counter.text(text);
    let mut options = Options::new(order.tokens_max as usize, &count);
    options.focus = order.focus.as_deref();
    options.form = throughline_memory::compact::Form::UserMessage;
    options.prior = order.prior.as_ref().map(|prior| &prior.memory);
    compact_after(Chain::at(order.chain), &order.messages, &options)
        .map(|compacted| compacted.memory)
        .map_err(|error| UpdateFailure {
            class: UpdateFailureClass::Draft,
            message: error.to_string(),
            retry_after_ms: None,
        })
}

/// Builds the tables that drafts and redaction need, so that the first draft does not wait for them.
pub fn warm_up() {
    let message = Message::new(Role::User, vec![Block::text("Remember: never do that.")]);
    let count = |text: &str| text.len();
    let options = Options::new(1_000, &count);
    drop(compact_after(Chain::new(), &[message], &options));
}
