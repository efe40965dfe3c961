//! Answers of OpenAI Chat Completions and of the servers that imitate it.
//!
//! A stream is a row of chunks without names. Strings of `delta` grow, tool calls grow by their `index`, the counts may
//! come in a chunk without choices behind the one with the `finish_reason`, and `[DONE]` ends it. Only the first choice
//! is read.
//!
//! The servers differ. Read here are also: thinking under the names `reasoning_content` and `reasoning`, calls that all
//! have the index 0 but ids of their own (Ollama), calls without an index or an id, arguments that are an object,
//! `stop` as the reason of an answer with calls, and errors inside a choice.

use bytestring::ByteString;
use throughline_transcript::json::{Kind, Raw, write_string};
use throughline_transcript::usage::UsageReport;

use super::literal::{Literal, assign, fields, filled, is_json};
use super::{DecodeError, PARTS_MAX, malformed, present, push_text, raw};
use crate::reply::{Event, Reply};
use crate::stop::StopReason;

/// Thinking, in the names that servers give it.
const THINKING: [&str; 2] = ["reasoning_content", "reasoning"];

/// Fields of an answer's message that a request may not carry back.
const NOT_SENT_BACK: &[&str] = &["role", "annotations", "parsed", "logprobs", "function_call"];

/// An answer so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ChatDecoder {
    pub(super) is_done: bool,
    is_started: bool,
    model: Option<String>,
    id: Option<String>,
    usage: Option<UsageReport>,
    finish_reason: Option<String>,
    message: OpenMessage,
}

/// The assistant's message so far.
#[derive(Clone, Debug, Default)]
struct OpenMessage {
    content: Literal,
    /// Content that comes as parts and not as a string.
    parts: Vec<Raw>,
    /// All other fields, in the order in which they first came.
    fields: Vec<(String, Field)>,
    calls: Vec<Call>,
}

#[derive(Clone, Debug)]
enum Field {
    Text(Literal),
    List(Vec<Raw>),
    Value(Raw),
}

/// A tool call so far.
#[derive(Clone, Debug, Default)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    kind: Option<String>,
    name: String,
    input: Literal,
    /// What else the call and its `function` hold.
    extras: Vec<(String, Raw)>,
    function_extras: Vec<(String, Raw)>,
    is_closed: bool,
}

impl ChatDecoder {
    pub(super) fn chunk(
        &mut self,
        name: &str,
        data: &Raw,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        if name == "error" || present(data, "error").is_some() {
            return Err(DecodeError::Refused {
                body: data.as_bytestring().clone(),
            });
        }
        self.model = filled(data, "model").or(self.model.take());
        self.id = filled(data, "id").or(self.id.take());
        if !self.is_started {
            self.is_started = true;
            events.push(Event::Started {
                model: self.model.clone(),
                id: self.id.clone(),
            });
        }
        if let Some(choice) = first_choice(data) {
            if present(&choice, "error").is_some() {
                return Err(DecodeError::Refused {
                    body: choice.as_bytestring().clone(),
                });
            }
            if let Some(delta) = present(&choice, "delta") {
                self.message.take(&delta, events)?;
            }
            if let Some(reason) = filled(&choice, "finish_reason") {
                self.finish_reason = Some(reason);
                self.message.close_calls(events);
            }
        }
        self.count(data, events);
        Ok(())
    }

    /// `[DONE]` has come.
    pub(super) fn done(&mut self, events: &mut Vec<Event>) {
        self.message.close_calls(events);
        self.is_done = true;
    }

    pub(super) fn reply(&self) -> Result<Reply, DecodeError> {
        let Some(reason) = self.finish_reason.as_deref() else {
            return malformed("the answer does not say why it stopped");
        };
        let stop = self.message.stop(reason);
        let mut reply = self.message.build(&self.id, Some(stop));
        self.describe(&mut reply);
        reply.is_complete = true;
        Ok(reply)
    }

    pub(super) fn partial(&self) -> Reply {
        let mut reply = self.message.clone().cut().build(&self.id, None);
        let whole = self
            .message
            .calls
            .iter()
            .filter(|call| call.is_closed)
            .count();
        reply.cut_calls += self.message.calls.len() - whole;
        self.describe(&mut reply);
        reply
    }

    fn describe(&self, reply: &mut Reply) {
        reply.model.clone_from(&self.model);
        reply.id.clone_from(&self.id);
        reply.usage = self.usage;
    }

    fn count(&mut self, data: &Raw, events: &mut Vec<Event>) {
        let reported =
            present(data, "usage").and_then(|usage| UsageReport::from_openai_chat(&usage));
        if let Some(reported) = reported {
            self.usage = Some(reported);
            events.push(Event::Usage(reported));
        }
    }
}

/// Reads an answer that was not streamed.
pub(super) fn read_whole(body: &Raw) -> Result<Reply, DecodeError> {
    let choice = first_choice(body);
    for place in [Some(body), choice.as_ref()].into_iter().flatten() {
        if present(place, "error").is_some() {
            return Err(DecodeError::Refused {
                body: place.as_bytestring().clone(),
            });
        }
    }
    let Some((choice, message)) = choice.and_then(|choice| {
        let message = present(&choice, "message")?;
        Some((choice, message))
    }) else {
        return malformed("the answer has no message");
    };
    let mut decoder = ChatDecoder {
        is_done: true,
        is_started: true,
        model: filled(body, "model"),
        id: filled(body, "id"),
        finish_reason: filled(&choice, "finish_reason"),
        ..ChatDecoder::default()
    };
    let mut events = Vec::new();
    decoder.message.take(&message, &mut events)?;
    decoder.count(body, &mut events);
    decoder.reply()
}

impl OpenMessage {
    /// Adds a `delta`, or a whole `message`.
    fn take(&mut self, delta: &Raw, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let mut has_thought = false;
        for (name, value) in fields(delta) {
            if value.is_null() || NOT_SENT_BACK.contains(&name.as_str()) {
                continue;
            }
            match name.as_str() {
                "content" => self.take_content(&value, events)?,
                "tool_calls" => {
                    for fragment in value.array() {
                        self.take_call(&fragment, events)?;
                    }
                }
                // A request names an earlier audio by its id alone.
                "audio" => {
                    if let Some(id) = value.field("id") {
                        let audio = raw(format!(r#"{{"id":{}}}"#, id.as_str()));
                        self.put(&name, audio.map(Field::Value))?;
                    }
                }
                _ => {
                    // Some servers send the same thinking under both names.
                    if THINKING.contains(&name.as_str()) && !has_thought {
                        let before = events.len();
                        push_text(&value, Event::Thinking, events);
                        has_thought = events.len() > before;
                    } else if name == "refusal" {
                        push_text(&value, Event::Text, events);
                    }
                    self.grow(&name, value)?;
                }
            }
        }
        Ok(())
    }

    fn take_content(&mut self, value: &Raw, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        self.content.push(value);
        push_text(value, Event::Text, events);
        for part in value.array() {
            if self.parts.len() >= PARTS_MAX {
                return Err(DecodeError::TooLarge);
            }
            if let Some(text) = part.field("text") {
                push_text(&text, Event::Text, events);
            }
            self.parts.push(part);
        }
        Ok(())
    }

    fn take_call(&mut self, fragment: &Raw, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let id = filled(fragment, "id");
        let index = fragment.field("index").and_then(|index| index.as_u64());
        let at = match self.place_of(index, id.as_deref()) {
            Some(at) => at,
            None => {
                if self.calls.len() >= PARTS_MAX {
                    return Err(DecodeError::TooLarge);
                }
                self.close_calls(events);
                self.calls.push(Call {
                    index,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(());
        };
        let is_new = call.name.is_empty();
        call.take(fragment, id);
        if is_new && !call.name.is_empty() {
            events.push(Event::ToolCall {
                index: at,
                id: call.id.clone().unwrap_or_default(),
                name: call.name.clone(),
            });
        }
        if let Some(delta) = input_of(fragment).map(|input| input_text(&input))
            && !delta.is_empty()
        {
            events.push(Event::ToolInput { index: at, delta });
        }
        Ok(())
    }

    /// The call that a fragment belongs to; `None` for a new one.
    fn place_of(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let at = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let known = self.calls.get(at)?.id.as_deref();
        match (known, id) {
            (Some(known), Some(id)) if known != id => {
                // Another id at the same index is another call.
                self.calls
                    .iter()
                    .position(|call| call.id.as_deref() == Some(id))
            }
            (None, Some(_)) if index.is_none() => None,
            _ => Some(at),
        }
    }

    fn close_calls(&mut self, events: &mut Vec<Event>) {
        for (index, call) in self.calls.iter_mut().enumerate() {
            if !call.is_closed {
                call.is_closed = true;
                events.push(Event::BlockDone { index });
            }
        }
    }

    fn grow(&mut self, name: &str, value: Raw) -> Result<(), DecodeError> {
        let known = self.fields.iter_mut().find(|(known, _)| known == name);
        match known.map(|(_, field)| field) {
            Some(Field::Text(text)) if value.kind() == Kind::String => text.push(&value),
            Some(Field::List(list)) if value.kind() == Kind::Array => {
                list.extend(value.array());
                if list.len() > PARTS_MAX {
                    return Err(DecodeError::TooLarge);
                }
            }
            Some(field) => *field = Field::of(value),
            None => return self.put(name, Some(Field::of(value))),
        }
        Ok(())
    }

    fn put(&mut self, name: &str, field: Option<Field>) -> Result<(), DecodeError> {
        let Some(field) = field else { return Ok(()) };
        if let Some((_, known)) = self.fields.iter_mut().find(|(known, _)| known == name) {
            *known = field;
            return Ok(());
        }
        if self.fields.len() >= PARTS_MAX {
            return Err(DecodeError::TooLarge);
        }
        self.fields.push((name.to_owned(), field));
        Ok(())
    }

    /// What may be kept of an interrupted message: text, whole calls, and thinking if something came after it.
    fn cut(mut self) -> Self {
        let is_thinking_over =
            !self.content.is_empty() || !self.parts.is_empty() || !self.calls.is_empty();
        if !is_thinking_over {
            self.fields
                .retain(|(name, _)| !name.starts_with("reasoning"));
        }
        self.calls.retain(|call| call.is_closed);
        self
    }

    fn says(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, field)| {
            known == name && matches!(field, Field::Text(text) if !text.is_blank())
        })
    }

    fn stop(&self, reason: &str) -> StopReason {
        if self.says("refusal") {
            return StopReason::Refusal { category: None };
        }
        match reason {
            "tool_calls" | "function_call" => StopReason::ToolUse,
            "stop" if !self.calls.is_empty() => StopReason::ToolUse,
            "stop" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal {
                category: Some("content_filter".to_owned()),
            },
            other => StopReason::Other(other.to_owned()),
        }
    }

    fn build(&self, reply_id: &Option<String>, stop: Option<StopReason>) -> Reply {
        let mut reply = Reply::empty();
        let is_cut = !matches!(&stop, Some(stop) if *stop != StopReason::MaxTokens);
        let last = self.calls.len().wrapping_sub(1);
        let mut calls = Vec::new();
        for (at, call) in self.calls.iter().enumerate() {
            // At the limit the last call is not whole, even if its input happens to be JSON.
            let is_whole = !is_cut || (call.has_readable_input() && (at != last || stop.is_none()));
            if is_whole {
                calls.push(call.build(reply_id.as_deref(), at));
            } else {
                reply.cut_calls += 1;
            }
        }
        let content = if !self.parts.is_empty() {
            join(&self.parts)
        } else if self.content.is_empty() && !calls.is_empty() {
            "null".to_owned()
        } else {
            self.content.quoted()
        };
        let mut message = format!(r#"{{"role":"assistant","content":{content}"#);
        let mut says_something =
            !self.parts.is_empty() || !self.content.is_empty() || !calls.is_empty();
        for (name, field) in &self.fields {
            let value = match field {
                Field::Text(text) if text.is_empty() => continue,
                Field::Text(text) => text.quoted(),
                Field::List(list) if list.is_empty() => continue,
                Field::List(list) => join(list),
                Field::Value(value) => value.as_str().to_owned(),
            };
            says_something = true;
            put_field(&mut message, name, &value);
        }
        if !calls.is_empty() {
            put_field(
                &mut message,
                "tool_calls",
                &format!("[{}]", calls.join(",")),
            );
        }
        message.push('}');
        if says_something {
            reply.messages.extend(raw(message));
        }
        reply.stop = stop;
        reply
    }
}

impl Field {
    fn of(value: Raw) -> Self {
        match value.kind() {
            Kind::String => {
                let mut text = Literal::default();
                text.push(&value);
                Self::Text(text)
            }
            Kind::Array => Self::List(value.array().take(PARTS_MAX).collect()),
            _ => Self::Value(value),
        }
    }
}

impl Call {
    fn take(&mut self, fragment: &Raw, id: Option<String>) {
        self.id = self.id.take().or(id);
        for (name, value) in fields(fragment) {
            if value.is_null() {
                continue;
            }
            match name.as_str() {
                "index" | "id" => {}
                "type" => {
                    if let Some(kind) = filled(fragment, "type") {
                        self.kind = Some(kind);
                    }
                }
                "function" | "custom" => {
                    if name == "custom" && self.kind.is_none() {
                        self.kind = Some("custom".to_owned());
                    }
                    for (name, value) in fields(&value) {
                        match name.as_str() {
                            "name" => {
                                if self.name.is_empty()
                                    && let Some(text) = value.as_text()
                                {
                                    self.name = text.decode().into_owned();
                                }
                            }
                            "arguments" | "input" => self.input.push(&as_string(&value)),
                            _ if value.is_null() => {}
                            _ => assign(&mut self.function_extras, &name, value),
                        }
                    }
                }
                _ => assign(&mut self.extras, &name, value),
            }
        }
    }

    fn is_custom(&self) -> bool {
        self.kind.as_deref() == Some("custom")
    }

    /// Input of custom tools is plain text: whether it ended cannot be seen.
    fn has_readable_input(&self) -> bool {
        self.is_custom() || self.input.is_empty() || is_json(&self.input.decode())
    }

    fn build(&self, reply_id: Option<&str>, at: usize) -> String {
        let id = self.id.clone().unwrap_or_else(|| {
            // The result needs something to refer to.
            format!("call_{}_{at}", reply_id.unwrap_or("0"))
        });
        let kind = self.kind.as_deref().unwrap_or("function");
        let input = if self.input.is_empty() && !self.is_custom() {
            r#""{}""#.to_owned()
        } else {
            self.input.quoted()
        };
        let mut call = String::from(r#"{"id":"#);
        write_string(&id, &mut call);
        call.push_str(r#","type":"#);
        write_string(kind, &mut call);
        let (body, input_name) = if self.is_custom() {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        let mut function = String::from(r#"{"name":"#);
        write_string(&self.name, &mut function);
        put_field(&mut function, input_name, &input);
        for (name, value) in &self.function_extras {
            put_field(&mut function, name, value.as_str());
        }
        function.push('}');
        put_field(&mut call, body, &function);
        for (name, value) in &self.extras {
            put_field(&mut call, name, value.as_str());
        }
        call.push('}');
        call
    }
}

fn first_choice(data: &Raw) -> Option<Raw> {
    let choices = data.field("choices")?;
    choices.array().find(|choice| {
        choice
            .field("index")
            .is_none_or(|index| index.as_u64() == Some(0))
    })
}

fn input_of(fragment: &Raw) -> Option<Raw> {
    present(fragment, "function")
        .and_then(|function| present(&function, "arguments"))
        .or_else(|| present(fragment, "custom").and_then(|custom| present(&custom, "input")))
}

/// Arguments are a string; some servers give the object itself.
fn as_string(value: &Raw) -> Raw {
    if value.kind() == Kind::String {
        return value.clone();
    }
    Raw::string(value.as_str())
}

fn input_text(value: &Raw) -> ByteString {
    match value.as_text() {
        Some(text) => text.to_bytestring(),
        None => value.as_bytestring().clone(),
    }
}

fn put_field(object: &mut String, name: &str, value: &str) {
    object.push(',');
    write_string(name, object);
    object.push(':');
    object.push_str(value);
}

fn join(values: &[Raw]) -> String {
    let values: Vec<&str> = values.iter().map(Raw::as_str).collect();
    format!("[{}]", values.join(","))
}
