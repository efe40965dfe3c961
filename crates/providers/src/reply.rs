//! Results of a call: [`Event`]s while the answer comes, and the [`Reply`] at its end.

use std::fmt;
use std::time::Duration;

use bytestring::ByteString;
use throughline_transcript::json::Raw;
use throughline_transcript::usage::UsageReport;

use crate::rate_limits::RateLimits;
use crate::stop::StopReason;

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The provider has begun to answer.
    Started {
        /// The model that answers, as the provider names it.
        model: Option<String>,
        /// The provider's id of the answer.
        id: Option<String>,
    },
    /// The connection is alive; nothing more.
    Ping,
    /// More of the visible answer.
    Text(ByteString),
    /// More of the model's thinking, where the provider shows it.
    Thinking(ByteString),
    /// The model begins to call a tool of the caller's.
    ToolCall {
        /// Place of the block, call or item in the answer; the same in [`Event::ToolInput`] and [`Event::BlockDone`].
        index: usize,
        /// Id to answer with.
        id: String,
        /// Name of the tool.
        name: String,
    },
    /// More of the input of a call: a fragment of JSON text, or of plain text for custom tools of OpenAI.
    ToolInput {
        /// Place of the call, as in [`Event::ToolCall`].
        index: usize,
        /// The fragment.
        delta: ByteString,
    },
    /// A block (Anthropic), tool call (Chat) or item (Responses) is complete.
    BlockDone {
        /// Its place in the answer.
        index: usize,
    },
    /// Token counts so far. Later ones replace earlier ones.
    Usage(UsageReport),
    /// The answer was cut off and is requested again: everything since [`Event::Started`] is void.
    Restarted {
        /// Number of the attempt that begins, from 2 on.
        attempt: u32,
    },
    /// The answer is complete. The last event.
    Reply(Box<Reply>),
}

/// A whole answer, or as much of it as may be kept.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// What goes behind the messages (or input items) of the next request, in the wire's form: of Anthropic and Chat
    /// one assistant message, of Responses the output items. Empty if the answer holds nothing that may be sent back.
    pub messages: Vec<Raw>,
    /// Why the model stopped. `None` only in a partial answer, which ended before the reason.
    pub stop: Option<StopReason>,
    /// What the call used, if it is reported.
    pub usage: Option<UsageReport>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// The provider's id of the answer.
    pub id: Option<String>,
    /// `container` of Anthropic's answer: to be named in the next request that uses its tools.
    pub container: Option<Raw>,
    /// `input_transformations` of the answer: what the provider left out of the request, where it says so.
    pub input_transformations: Option<Raw>,
    /// False for an interrupted answer, which has closed blocks and unfinished text.
    pub is_complete: bool,
    /// How many tool calls were left out because their input never ended.
    pub cut_calls: usize,
    /// The provider's id of the request, from the answer's head.
    pub request_id: Option<String>,
    /// What the head of the answer says about rate limits.
    pub rate_limits: RateLimits,
    /// From sending the request (the last attempt) to the first event, or to the end of an answer that was not streamed.
    pub time_to_first_event: Option<Duration>,
    /// How many times the request was sent.
    pub attempts: u32,
}

impl Reply {
    /// The visible text of the answer; where the model declined in words, these.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut take = |value: Option<Raw>| {
            if let Some(part) = value.as_ref().and_then(Raw::as_text) {
                part.decode_into(&mut text);
            }
        };
        for message in &self.messages {
            let [content, refusal] = message.fields(["content", "refusal"]);
            for block in content.iter().flat_map(Raw::array) {
                let [kind, shown, declined] = block.fields(["type", "text", "refusal"]);
                match kind.as_ref().map(Raw::as_str) {
                    Some(r#""text""# | r#""output_text""#) => take(shown),
                    Some(r#""refusal""#) => take(declined),
                    _ => {}
                }
            }
            take(content);
            take(refusal);
        }
        text
    }

    /// Nothing yet.
    pub(crate) fn empty() -> Self {
        Self {
            messages: Vec::new(),
            stop: None,
            usage: None,
            model: None,
            id: None,
            container: None,
            input_transformations: None,
            is_complete: false,
            cut_calls: 0,
            request_id: None,
            rate_limits: RateLimits::default(),
            time_to_first_event: None,
            attempts: 1,
        }
    }
}

/// Shows how much was answered and not what: logs must not hold answers.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: usize = self.messages.iter().map(Raw::len).sum();
        f.debug_struct("Reply")
            .field("messages", &self.messages.len())
            .field("message_bytes", &bytes)
            .field("stop", &self.stop)
            .field("usage", &self.usage)
            .field("model", &self.model)
            .field("id", &self.id)
            .field("is_complete", &self.is_complete)
            .field("cut_calls", &self.cut_calls)
            .field("request_id", &self.request_id)
            .field("time_to_first_event", &self.time_to_first_event)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
