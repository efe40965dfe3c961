//! Answers of Anthropic Messages.
//!
//! The order of a stream: `message_start`, for each block `content_block_start`, deltas and `content_block_stop`, then
//! `message_delta` with the stop reason and `message_stop`. `ping` may come anywhere, `error` too. Counts of later
//! events replace earlier ones. A signature and a compaction come whole in one delta and are assigned, not appended.

use bytestring::ByteString;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::splice::Splice;
use throughline_transcript::usage::{AnthropicStream, UsageReport};

use super::literal::{Literal, assign, fields, filled, says_something, string};
use super::{DecodeError, PARTS_MAX, malformed, present, push_text, raw};
use crate::reply::{Event, Reply};
use crate::stop::StopReason;

/// A streamed answer so far.
#[derive(Clone, Debug, Default)]
pub(super) struct AnthropicDecoder {
    pub(super) is_done: bool,
    is_started: bool,
    head: Head,
    usage: AnthropicStream,
    blocks: Vec<OpenBlock>,
    stop_reason: Option<String>,
    stop_details: Option<Raw>,
}

/// The properties of an answer.
#[derive(Clone, Debug, Default)]
struct Head {
    model: Option<String>,
    id: Option<String>,
    container: Option<Raw>,
    input_transformations: Option<Raw>,
}

/// A block that is not complete yet.
#[derive(Clone, Debug)]
struct OpenBlock {
    index: u64,
    kind: String,
    /// The block as `content_block_start` has it.
    start: Raw,
    /// What deltas made of its fields, in the order in which they came.
    fields: Vec<(String, Field)>,
    /// Fragments of the input of a call.
    input: Literal,
    citations: Vec<Raw>,
    is_closed: bool,
}

#[derive(Clone, Debug)]
enum Field {
    Appended(Literal),
    Assigned(Raw),
}

/// A block at the end of an answer.
enum ClosedBlock {
    Whole(Raw),
    /// Nothing that may be sent back: a text without a visible character.
    Blank,
    /// A call whose input did not end.
    CutCall,
}

impl AnthropicDecoder {
    pub(super) fn event(
        &mut self,
        name: &str,
        data: &Raw,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        let kind = filled(data, "type").unwrap_or_else(|| name.to_owned());
        match kind.as_str() {
            "ping" => events.push(Event::Ping),
            "error" => {
                return Err(DecodeError::Refused {
                    body: data.as_bytestring().clone(),
                });
            }
            "message_start" => {
                let message = data.field("message").unwrap_or_else(|| data.clone());
                self.is_started = true;
                self.head.take(&message);
                events.push(Event::Started {
                    model: self.head.model.clone(),
                    id: self.head.id.clone(),
                });
                self.count(&message, events);
            }
            "content_block_start" => return self.start_block(data, events),
            "content_block_delta" => return self.delta(data, events),
            "content_block_stop" => return self.stop_block(data, events),
            "message_delta" => {
                if let Some(delta) = data.field("delta") {
                    self.stop_reason = filled(&delta, "stop_reason").or(self.stop_reason.take());
                    self.stop_details =
                        present(&delta, "stop_details").or(self.stop_details.take());
                    self.head.take(&delta);
                }
                self.head.take(data);
                self.count(data, events);
            }
            "message_stop" => {
                if !self.is_started {
                    return malformed("message_stop without message_start");
                }
                self.is_done = true;
            }
            // New kinds of events are to be expected and ignored.
            _ => {}
        }
        Ok(())
    }

    /// The whole answer.
    pub(super) fn reply(&self) -> Result<Reply, DecodeError> {
        let Some(stop) = stop(self.stop_reason.as_deref(), self.stop_details.as_ref()) else {
            return malformed("the answer does not say why it stopped");
        };
        if self.blocks.iter().any(|block| !block.is_closed) {
            return malformed("the answer ended inside a block");
        }
        let mut reply = self.described(self.built(self.blocks.iter()), Some(stop));
        if reply.cut_calls > 0 && reply.stop == Some(StopReason::ToolUse) {
            return malformed("the input of a tool call is not JSON");
        }
        reply.is_complete = true;
        Ok(reply)
    }

    pub(super) fn partial(&self) -> Reply {
        let kept = self
            .blocks
            .iter()
            .filter(|block| block.is_closed || block.kind == "text");
        let cut = self
            .blocks
            .iter()
            .filter(|block| !block.is_closed && block.kind == "tool_use");
        let cut_calls = cut.count();
        let mut reply = self.described(self.built(kept), None);
        reply.cut_calls += cut_calls;
        reply
    }

    fn built<'a>(&self, blocks: impl Iterator<Item = &'a OpenBlock>) -> Vec<ClosedBlock> {
        blocks.map(OpenBlock::build).collect()
    }

    fn described(&self, blocks: Vec<ClosedBlock>, stop: Option<StopReason>) -> Reply {
        let mut reply = message_of(blocks, stop);
        self.head.describe(&mut reply);
        reply.usage = self.usage.reported();
        reply
    }

    fn count(&mut self, object: &Raw, events: &mut Vec<Event>) {
        if let Some(usage) = present(object, "usage") {
            self.usage.event(&usage);
            if let Some(reported) = self.usage.reported() {
                events.push(Event::Usage(reported));
            }
        }
    }

    fn start_block(&mut self, data: &Raw, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let Some(block) = data
            .field("content_block")
            .filter(|block| block.kind() == Kind::Object)
        else {
            return malformed("a block without content");
        };
        if self.blocks.len() >= PARTS_MAX {
            return Err(DecodeError::TooLarge);
        }
        let index = index_of(data).unwrap_or(self.blocks.len() as u64);
        if self.blocks.iter().any(|block| block.index == index) {
            return malformed("two blocks with the same index");
        }
        let kind = string(&block, "type");
        match kind.as_str() {
            "text" => push_delta(&block, "text", Event::Text, events),
            "thinking" => push_delta(&block, "thinking", Event::Thinking, events),
            "tool_use" => events.push(Event::ToolCall {
                index: index as usize,
                id: string(&block, "id"),
                name: string(&block, "name"),
            }),
            _ => {}
        }
        self.blocks.push(OpenBlock {
            index,
            kind,
            start: block,
            fields: Vec::new(),
            input: Literal::default(),
            citations: Vec::new(),
            is_closed: false,
        });
        Ok(())
    }

    fn delta(&mut self, data: &Raw, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let Some(delta) = data.field("delta") else {
            return malformed("a delta without content");
        };
        let block = self.open_block(data)?;
        match string(&delta, "type").as_str() {
            "text_delta" => {
                block.append("text", delta.field("text").as_ref());
                push_delta(&delta, "text", Event::Text, events);
            }
            "thinking_delta" => {
                block.append("thinking", delta.field("thinking").as_ref());
                push_delta(&delta, "thinking", Event::Thinking, events);
            }
            "signature_delta" => block.assign("signature", delta.field("signature")),
            "input_json_delta" => {
                if let Some(fragment) = delta.field("partial_json") {
                    block.input.push(&fragment);
                    if block.kind == "tool_use" {
                        let index = block.index as usize;
                        push_delta(
                            &delta,
                            "partial_json",
                            |delta| Event::ToolInput { index, delta },
                            events,
                        );
                    }
                }
            }
            "citations_delta" => block.citations.extend(delta.field("citation")),
            "compaction_delta" => {
                for (name, value) in fields(&delta).filter(|(name, _)| name != "type") {
                    block.assign(&name, Some(value));
                }
            }
            // Of kinds that are not known: texts grow, everything else comes whole.
            _ => {
                for (name, value) in fields(&delta).filter(|(name, _)| name != "type") {
                    if value.kind() == Kind::String {
                        block.append(&name, Some(&value));
                    } else {
                        block.assign(&name, Some(value));
                    }
                }
            }
        }
        Ok(())
    }

    fn stop_block(&mut self, data: &Raw, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let block = self.open_block(data)?;
        block.is_closed = true;
        let index = block.index as usize;
        if block.kind == "tool_use" && block.input.is_empty() {
            events.push(Event::ToolInput {
                index,
                delta: block.start_input().as_bytestring().clone(),
            });
        }
        events.push(Event::BlockDone { index });
        Ok(())
    }

    fn open_block(&mut self, data: &Raw) -> Result<&mut OpenBlock, DecodeError> {
        let index = index_of(data);
        let found = self.blocks.iter_mut().rev().find(|block| match index {
            Some(index) => block.index == index,
            None => !block.is_closed,
        });
        match found {
            Some(block) if !block.is_closed => Ok(block),
            _ => malformed("a delta for a block that is not open"),
        }
    }
}

impl OpenBlock {
    fn append(&mut self, name: &str, value: Option<&Raw>) {
        let Some(value) = value else { return };
        let known = self.fields.iter_mut().find(|(known, _)| known == name);
        if let Some((_, field)) = known {
            if let Field::Appended(literal) = field {
                literal.push(value);
            }
            return;
        }
        let mut literal = Literal::default();
        if let Some(start) = self.start.field(name) {
            literal.push(&start);
        }
        literal.push(value);
        assign(&mut self.fields, name, Field::Appended(literal));
    }

    fn assign(&mut self, name: &str, value: Option<Raw>) {
        if let Some(value) = value {
            assign(&mut self.fields, name, Field::Assigned(value));
        }
    }

    /// The input that came with the start of the block: `{}`, except from servers that do not stream inputs.
    fn start_input(&self) -> Raw {
        self.start
            .field("input")
            .filter(|input| !input.is_null())
            .or_else(|| raw("{}".to_owned()))
            .unwrap_or_else(|| self.start.clone())
    }

    fn build(&self) -> ClosedBlock {
        self.try_build().unwrap_or(ClosedBlock::Blank)
    }

    fn try_build(&self) -> Option<ClosedBlock> {
        let mut splice = Splice::new(&self.start);
        for (name, field) in &self.fields {
            let value = match field {
                Field::Appended(literal) => literal.raw()?,
                Field::Assigned(value) => value.clone(),
            };
            splice.set_field(name, value).ok()?;
        }
        if !self.citations.is_empty() {
            let known = self.start.field("citations");
            let all: Vec<String> = known
                .iter()
                .flat_map(Raw::array)
                .chain(self.citations.iter().cloned())
                .map(|citation| citation.as_str().to_owned())
                .collect();
            splice
                .set_field("citations", raw(format!("[{}]", all.join(",")))?)
                .ok()?;
        }
        let is_call = self.kind.ends_with("tool_use");
        if !self.input.is_empty() {
            match Raw::parse(self.input.decode()) {
                Ok(input) => splice.set_field("input", input).ok()?,
                Err(_) if self.kind == "tool_use" => return Some(ClosedBlock::CutCall),
                Err(_) => return Some(ClosedBlock::Blank),
            };
        } else if is_call
            && self
                .start
                .field("input")
                .is_none_or(|input| input.is_null())
        {
            splice.set_field("input", self.start_input()).ok()?;
        }
        Some(checked(Raw::parse(splice.finish().ok()?).ok()?))
    }
}

impl Head {
    fn take(&mut self, object: &Raw) {
        self.model = filled(object, "model").or(self.model.take());
        self.id = filled(object, "id").or(self.id.take());
        self.container = present(object, "container").or(self.container.take());
        self.input_transformations =
            present(object, "input_transformations").or(self.input_transformations.take());
    }

    fn describe(&self, reply: &mut Reply) {
        reply.model.clone_from(&self.model);
        reply.id.clone_from(&self.id);
        reply.container.clone_from(&self.container);
        reply
            .input_transformations
            .clone_from(&self.input_transformations);
    }
}

/// Reads an answer that was not streamed.
pub(super) fn read_whole(body: &Raw) -> Result<Reply, DecodeError> {
    if string(body, "type") == "error" || present(body, "error").is_some() {
        return Err(DecodeError::Refused {
            body: body.as_bytestring().clone(),
        });
    }
    let Some(content) = body
        .field("content")
        .filter(|content| content.kind() == Kind::Array)
    else {
        return malformed("the answer has no content");
    };
    let reason = filled(body, "stop_reason");
    let Some(stop) = stop(reason.as_deref(), present(body, "stop_details").as_ref()) else {
        return malformed("the answer does not say why it stopped");
    };
    let blocks = content.array().map(checked).collect();
    let mut head = Head::default();
    head.take(body);
    let mut reply = message_of(blocks, Some(stop));
    head.describe(&mut reply);
    reply.usage = present(body, "usage").and_then(|usage| UsageReport::from_anthropic(&usage));
    reply.is_complete = true;
    Ok(reply)
}

fn checked(block: Raw) -> ClosedBlock {
    let is_blank_text = string(&block, "type") == "text"
        && !says_something(block.field("text").as_ref())
        && block
            .field("citations")
            .is_none_or(|citations| citations.array().next().is_none());
    if is_blank_text {
        ClosedBlock::Blank
    } else {
        ClosedBlock::Whole(block)
    }
}

/// The message of an answer, without what must not be sent back.
///
/// A call at the end of an answer that ran into a limit is not whole, even if its input happens to be JSON.
fn message_of(blocks: Vec<ClosedBlock>, stop: Option<StopReason>) -> Reply {
    let mut reply = Reply::empty();
    let mut kept: Vec<Raw> = Vec::new();
    let is_cut = matches!(
        stop,
        Some(StopReason::MaxTokens | StopReason::WindowExceeded)
    );
    let last = blocks.len().wrapping_sub(1);
    for (at, block) in blocks.into_iter().enumerate() {
        match block {
            ClosedBlock::Whole(block) => {
                if is_cut && at == last && string(&block, "type") == "tool_use" {
                    reply.cut_calls += 1;
                } else {
                    kept.push(block);
                }
            }
            ClosedBlock::Blank => {}
            ClosedBlock::CutCall => reply.cut_calls += 1,
        }
    }
    if !kept.is_empty() {
        let content: Vec<&str> = kept.iter().map(Raw::as_str).collect();
        let message = format!(
            r#"{{"role":"assistant","content":[{}]}}"#,
            content.join(",")
        );
        reply.messages.extend(raw(message));
    }
    reply.stop = stop;
    reply
}

fn stop(reason: Option<&str>, details: Option<&Raw>) -> Option<StopReason> {
    Some(match reason? {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal {
            category: details.and_then(|details| filled(details, "category")),
        },
        "model_context_window_exceeded" => StopReason::WindowExceeded,
        "compaction" => StopReason::Compaction,
        other => StopReason::Other(other.to_owned()),
    })
}

fn index_of(data: &Raw) -> Option<u64> {
    data.field("index")?.as_u64()
}

fn push_delta(
    object: &Raw,
    name: &str,
    event: impl FnOnce(ByteString) -> Event,
    events: &mut Vec<Event>,
) {
    if let Some(value) = object.field(name) {
        push_text(&value, event, events);
    }
}
