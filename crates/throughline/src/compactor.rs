//! Who makes memories, besides the extractive compactor that is always there.

mod model;

use std::sync::Arc;

use async_trait::async_trait;
use throughline_engine::{UpdateFailure, UpdateOrder};
use throughline_memory::document::Memory;
use throughline_memory::summarise::Finding;
use throughline_transcript::json::Raw;
use throughline_transcript::request::{self, Frame, Marks, message};
use throughline_transcript::usage::Usage;
use tokio_util::sync::CancellationToken;

pub use self::model::{ModelCompactor, Styling};
use crate::traffic::Traffic;

/// Makes a memory of new messages and the memory so far.
///
/// It runs beside the session and may take its time. Its memory has to stand for exactly the messages of the order:
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
    ) -> Compacted;
}

/// A memory, or why there is none, and what it took.
#[derive(Debug)]
pub struct Compacted {
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
}

impl LiveRequest {
    /// The model that is asked, and everything else that requests have in common.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The window that the session goes by, tokens.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Waits until the conversation itself waits for nothing: a compactor makes its calls after this, so that they do not
    /// take what a rate limit leaves from the user, and find in the provider's cache what the conversation put there.
    pub async fn quiet(&self) {
        self.traffic.quiet().await;
    }

    /// The live request with an instruction as last message, and room for so many tokens of answer. Everything else is
    /// byte for byte the same, cache markers aside.
    #[must_use]
    pub fn with_instruction(&self, instruction: &str, answer_tokens: u64) -> String {
        let instruction = message::user(self.frame.wire(), instruction);
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
}
