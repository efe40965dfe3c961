//! Who makes memories, besides the extractive compactor that is always there.

mod model;

use std::sync::Arc;

use async_trait::async_trait;
use throughline_engine::{UpdateFailure, UpdateOrder};
use throughline_memory::document::Memory;
use throughline_memory::summarise::Finding;
use throughline_transcript::json::Raw;
use throughline_transcript::request::{Frame, Marks, message};
use throughline_transcript::usage::Usage;
use tokio_util::sync::CancellationToken;

pub use self::model::{ModelCompactor, Styling};

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
}

impl LiveRequest {
    /// The model that is asked, and everything else that requests have in common.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The same with room for an answer of so many tokens, if it has less: a memory is often longer than what a
    /// conversation allows an answer. Providers do not bind their cache to this limit.
    #[must_use]
    pub fn answered_within(mut self, tokens: u64) -> Self {
        let settings = self.frame.settings();
        if settings.max_tokens.is_some_and(|limit| limit < tokens) {
            let mut settings = settings.clone();
            settings.max_tokens = Some(tokens);
            self.frame = Arc::new(Frame::new(self.frame.wire(), settings));
        }
        self
    }

    /// The live request with an instruction as last message. Everything before that is byte for byte the same, cache
    /// markers aside.
    #[must_use]
    pub fn with_instruction(&self, instruction: &str) -> String {
        let instruction = message::user(self.frame.wire(), instruction);
        let marks = Marks {
            last_request_end: self.messages.len().checked_sub(1),
        };
        self.frame.compose(
            self.memory.as_deref(),
            self.messages.iter().chain([&instruction]),
            marks,
        )
    }
}

#[cfg(test)]
mod tests {
    use throughline_transcript::request::Settings;
    use throughline_transcript::wire::Wire;

    use super::*;

    #[test]
    fn an_answer_gets_more_room_and_never_less() {
        for (limit, wanted, given) in [
            (Some(100), 1_000, Some(1_000)),
            (Some(1_000), 100, Some(1_000)),
            (None, 100, None),
        ] {
            let request = |max_tokens| LiveRequest {
                frame: Arc::new(Frame::new(
                    Wire::Anthropic,
                    Settings {
                        model: "m".to_owned(),
                        max_tokens,
                        ..Settings::default()
                    },
                )),
                memory: None,
                messages: vec![message::user(Wire::Anthropic, "Hello.")],
            };
            assert_eq!(
                request(limit)
                    .answered_within(wanted)
                    .with_instruction("Sum up."),
                request(given).with_instruction("Sum up."),
                "{limit:?}, {wanted}"
            );
        }
    }
}
