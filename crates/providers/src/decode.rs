//! Decodes the bytes of an answer to events and a [`Reply`]: pure, for streams and for whole answers of all wires.
//!
//! A [`Decoder`] reads the chunks of a streamed answer, with any boundaries, and appends [`Event`]s. At the end
//! [`Decoder::finish`] returns the whole answer; if the stream ends early, [`Decoder::partial`] returns what may be
//! kept of it. [`read_whole`] reads an answer that was not streamed and returns the same [`Reply`].
//!
//! The assistant's message is put together from slices of what was received: strings are joined as they were written,
//! with their escapes, and unknown blocks and fields stay as received. What is left out is only what
//! must not be sent back: texts without a visible character, and calls whose input never ended.
//!
//! ```
//! use throughline_providers::decode::Decoder;
//! use throughline_providers::reply::Event;
//! use throughline_transcript::wire::Wire;
//!
//! let mut decoder = Decoder::new(Wire::OpenAiChat);
//! let mut events = Vec::new();
//! decoder.push(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel", &mut events)?;
//! decoder.push(b"lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", &mut events)?;
//! assert!(events.contains(&Event::Text("Hello".into())));
//! let reply = decoder.finish()?;
//! assert_eq!(reply.messages[0].as_str(), r#"{"role":"assistant","content":"Hello"}"#);
//! # Ok::<(), throughline_providers::decode::DecodeError>(())
//! ```

mod anthropic;
mod literal;
mod openai_chat;
mod openai_responses;

use bytestring::ByteString;
use throughline_transcript::json::Raw;
use throughline_transcript::wire::Wire;

use self::anthropic::AnthropicDecoder;
use self::openai_chat::ChatDecoder;
use self::openai_responses::ResponsesDecoder;
use crate::reply::{Event, Reply};
use crate::sse::{SseEvent, SseReader};

/// The largest single event of a stream, bytes. A whole answer of OpenAI Responses comes in its last event.
pub const EVENT_BYTES_MAX: usize = 64 << 20;

/// The largest answer, all events of a stream together, bytes.
pub const ANSWER_BYTES_MAX: usize = 256 << 20;

/// The most blocks, calls or items in an answer.
pub(crate) const PARTS_MAX: usize = 10_000;

/// Why an answer cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The provider reports an error instead of an answer or in the middle of one.
    #[error("the provider reports an error")]
    Refused {
        /// The JSON of the error.
        body: ByteString,
    },
    /// The stream ended before the event that ends an answer.
    #[error("the answer ended before its end")]
    CutOff,
    /// The answer violates the wire format.
    #[error("the answer is malformed: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
    },
    /// More than [`EVENT_BYTES_MAX`], [`ANSWER_BYTES_MAX`] or too many parts.
    #[error("the answer is too large")]
    TooLarge,
}

pub(crate) fn malformed<T>(what: &'static str) -> Result<T, DecodeError> {
    Err(DecodeError::Malformed { what })
}

/// Reads a streamed answer.
#[derive(Clone, Debug)]
pub struct Decoder {
    reader: SseReader,
    state: State,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum State {
    Anthropic(AnthropicDecoder),
    Chat(ChatDecoder),
    Responses(ResponsesDecoder),
}

impl Decoder {
    /// Begins an answer of `wire`.
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        Self {
            reader: SseReader::new(EVENT_BYTES_MAX),
            state: match wire {
                Wire::Anthropic => State::Anthropic(AnthropicDecoder::default()),
                Wire::OpenAiChat => State::Chat(ChatDecoder::default()),
                Wire::OpenAiResponses => State::Responses(ResponsesDecoder::default()),
            },
            bytes: 0,
        }
    }

    /// Reads a chunk and appends what it completes. [`Event::Reply`] is not among it: that is [`Decoder::finish`].
    ///
    /// # Errors
    /// The provider reports an error, or the stream is malformed. Events before the error in the same
    /// chunk are appended.
    pub fn push(&mut self, chunk: &[u8], events: &mut Vec<Event>) -> Result<(), DecodeError> {
        if self.is_done() {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(chunk.len());
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(DecodeError::TooLarge);
        }
        let mut arrived = Vec::new();
        let read = self.reader.push(chunk, &mut arrived);
        for event in arrived {
            if self.is_done() {
                return Ok(());
            }
            self.event(&event, events)?;
        }
        read.map_err(|_| DecodeError::TooLarge)
    }

    /// Whether the event that ends an answer has come. What follows it is ignored.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Anthropic(state) => state.is_done,
            State::Chat(state) => state.is_done,
            State::Responses(state) => state.is_done(),
        }
    }

    /// The whole answer.
    ///
    /// # Errors
    /// [`DecodeError::CutOff`] if the event that ends an answer has not come, [`DecodeError::Malformed`] if it came
    /// although something is missing.
    pub fn finish(&self) -> Result<Reply, DecodeError> {
        if !self.is_done() {
            return Err(DecodeError::CutOff);
        }
        match &self.state {
            State::Anthropic(state) => state.reply(),
            State::Chat(state) => state.reply(),
            State::Responses(state) => state.reply(),
        }
    }

    /// What may be kept of an incomplete answer: closed blocks and unfinished text, never an unfinished call or
    /// unfinished thinking. `is_complete` is always false.
    #[must_use]
    pub fn partial(&self) -> Reply {
        match &self.state {
            State::Anthropic(state) => state.partial(),
            State::Chat(state) => state.partial(),
            State::Responses(state) => state.partial(),
        }
    }

    fn event(&mut self, event: &SseEvent, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let text = event.data.trim();
        if text == "[DONE]" {
            // Only Chat needs it; others that send it mean no harm.
            if let State::Chat(state) = &mut self.state {
                state.done(events);
            }
            return Ok(());
        }
        if text.is_empty() {
            return Ok(());
        }
        let Ok(data) = Raw::parse(event.data.clone()) else {
            return malformed("an event is not JSON");
        };
        match &mut self.state {
            State::Anthropic(state) => state.event(&event.name, &data, events),
            State::Chat(state) => state.chunk(&event.name, &data, events),
            State::Responses(state) => state.event(&event.name, &data, events),
        }
    }
}

/// Reads an answer that was not streamed.
///
/// # Errors
/// The body is an error, or not an answer of `wire`.
pub fn read_whole(wire: Wire, body: &ByteString) -> Result<Reply, DecodeError> {
    let Ok(body) = Raw::parse(body.clone()) else {
        return malformed("the answer is not JSON");
    };
    match wire {
        Wire::Anthropic => anthropic::read_whole(&body),
        Wire::OpenAiChat => openai_chat::read_whole(&body),
        Wire::OpenAiResponses => openai_responses::read_whole(&body),
    }
}

/// A field that holds an object or array or anything but null.
pub(crate) fn present(object: &Raw, name: &str) -> Option<Raw> {
    object.field(name).filter(|value| !value.is_null())
}

/// An event about a text, unless it is empty.
pub(crate) fn push_text(
    value: &Raw,
    event: impl FnOnce(ByteString) -> Event,
    events: &mut Vec<Event>,
) {
    if let Some(text) = value.as_text() {
        let text = text.to_bytestring();
        if !text.is_empty() {
            events.push(event(text));
        }
    }
}

/// A value made of parts that are JSON already.
pub(crate) fn raw(text: String) -> Option<Raw> {
    Raw::parse(text).ok()
}

#[cfg(test)]
mod tests;
