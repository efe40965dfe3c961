//! The requests of a live session: a constant frame and the messages.
//!
//! A [`Frame`] is everything in a request except its messages: model, system prompt, tools, settings. [`Frame::compose`]
//! writes a body of the frame, at most one memory, and unchanged messages. The list of messages is the last field,
//! and a body contains nothing but its inputs. As long as frame and memory stay the same, each request is therefore a
//! byte prefix of the next one (except for cache markers and the closing brackets). [`message`] makes the messages that
//! a session adds.
//!
//! Bodies that a client made are not composed but spliced: see [`crate::splice`]. Nothing is checked here: that is
//! [`crate::check`].

pub mod message;
mod shorten;

use crate::body::list_name;
use crate::json::{Kind, Raw, quoted, write_string};
use crate::splice::Splice;
use crate::wire::Wire;

pub use self::shorten::{ShortenedMessage, shorten};

/// What a request says besides its messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The model to ask.
    pub model: String,
    /// Limit of the answer, tokens. Anthropic's format wants one.
    pub max_tokens: Option<u64>,
    /// The system prompt; empty for none.
    pub system: String,
    /// Tool definitions: a JSON array in the format of the wire.
    pub tools: Option<Raw>,
    /// Further fields in the order in which they are written: thinking, effort, tool choice, ...
    pub fields: Vec<(String, Raw)>,
    /// Whether the provider is asked to cache, where it has to be asked.
    pub caching: Caching,
    /// Where the memory goes.
    pub memory_place: MemoryPlace,
}

/// Whether and for how long the provider is to cache the start of the requests. For Anthropic's format; other
/// providers cache without being asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// Not asked for.
    #[default]
    Off,
    /// Asked for.
    For(CacheTtl),
}

/// How long the prompt cache holds what a marker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheTtl {
    /// Five minutes.
    Minutes5,
    /// One hour.
    Hour1,
}

/// The place of a memory in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryPlace {
    /// As the first message of the user.
    #[default]
    FirstUserMessage,
    /// At the end of the system prompt: for servers that want user and assistant to take turns.
    SystemPrompt,
}

/// Everything of a request but its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    wire: Wire,
    settings: Settings,
}

/// The frame of an earlier request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// It is no JSON object.
    #[error("the head of the requests is not a JSON object")]
    NotAnObject,
    /// It has no model.
    #[error("the head of the requests names no model")]
    NoModel,
}

/// Which messages of a request carry a cache marker of ours besides the one that the whole request has.
///
/// An Anthropic request finds what an earlier one wrote to the cache only at its markers and at most 20 blocks before
/// each (prompt caching, "how automatic prefix checking works"). A step with many parallel calls adds more than that,
/// so where the last request ended is marked too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Index, among the messages that are given, of the last message of the request before.
    pub last_request_end: Option<usize>,
}

const LONG: &str = r#"{"type":"ephemeral","ttl":"1h"}"#;
const SHORT: &str = r#"{"type":"ephemeral"}"#;

impl Frame {
    /// A frame of these settings.
    #[must_use]
    pub fn new(wire: Wire, settings: Settings) -> Self {
        Self { wire, settings }
    }

    /// The format of the requests.
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// What the requests say besides their messages.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The frame as a request without messages, to be kept: [`Frame::read`] reads it back.
    #[must_use]
    pub fn head(&self) -> String {
        self.compose(None, std::iter::empty(), Marks::default())
    }

    /// Reads what [`Frame::head`] has written. `caching` and `memory_place` are not told apart from other settings
    /// there, and are the caller's to keep.
    ///
    /// # Errors
    /// If it is not a request body.
    pub fn read(
        wire: Wire,
        head: &Raw,
        caching: Caching,
        memory_place: MemoryPlace,
    ) -> Result<Self, FrameError> {
        if head.kind() != Kind::Object {
            return Err(FrameError::NotAnObject);
        }
        let mut settings = Settings {
            caching,
            memory_place,
            ..Settings::default()
        };
        let mut has_model = false;
        let limit = limit_name(wire);
        for (key, value) in head.object() {
            let key = key.decode();
            match key.as_ref() {
                "model" => {
                    if let Some(model) = value.as_text() {
                        settings.model = model.decode().into_owned();
                        has_model = true;
                    }
                }
                name if name == limit => settings.max_tokens = value.as_u64(),
                "tools" => settings.tools = Some(value),
                "system" if wire == Wire::Anthropic => settings.system = plain_system(&value),
                "instructions" if wire == Wire::OpenAiResponses => {
                    settings.system = plain_system(&value);
                }
                name if name == list_name(wire) => {
                    if let (Wire::OpenAiChat, Some(first)) = (wire, value.array().next())
                        && let Some(content) = first.field("content")
                    {
                        settings.system = plain_system(&content);
                    }
                }
                "cache_control" if caching != Caching::Off => {}
                _ => settings.fields.push((key.into_owned(), value)),
            }
        }
        if !has_model {
            return Err(FrameError::NoModel);
        }
        Ok(Self { wire, settings })
    }

    /// Writes a request of `messages`, with `memory` before them.
    #[must_use]
    pub fn compose<'m>(
        &self,
        memory: Option<&str>,
        messages: impl IntoIterator<Item = &'m Raw>,
        marks: Marks,
    ) -> String {
        let messages = messages.into_iter();
        let mut body = Body {
            text: String::with_capacity(1024),
            has_field: false,
        };
        body.text.push('{');
        let settings = &self.settings;
        body.string("model", &settings.model);
        if let Some(limit) = settings.max_tokens {
            body.field(limit_name(self.wire), &limit.to_string());
        }
        if let (Wire::Anthropic, Some(control)) = (self.wire, self.control()) {
            body.field("cache_control", control);
        }
        for (key, value) in &settings.fields {
            body.field(key, value.as_str());
        }
        if let Some(tools) = &settings.tools {
            body.field("tools", tools.as_str());
        }
        let in_system = memory.filter(|_| settings.memory_place == MemoryPlace::SystemPrompt);
        match self.wire {
            Wire::Anthropic => self.anthropic_system(&mut body, in_system),
            Wire::OpenAiResponses => {
                if let Some(system) = joined(&settings.system, in_system) {
                    body.string("instructions", &system);
                }
            }
            Wire::OpenAiChat => {}
        }
        body.open_list(list_name(self.wire));
        let mut is_first = true;
        if self.wire == Wire::OpenAiChat
            && let Some(system) = joined(&settings.system, in_system)
        {
            body.element(
                &format!(r#"{{"role":"system","content":{}}}"#, quoted(&system)),
                &mut is_first,
            );
        }
        if let Some(memory) = memory.filter(|_| in_system.is_none()) {
            body.element(&self.memory_message(memory), &mut is_first);
        }
        for (index, message) in messages.enumerate() {
            let marked = (Some(index) == marks.last_request_end)
                .then(|| self.marked(message))
                .flatten();
            body.element(marked.as_deref().unwrap_or(message.as_str()), &mut is_first);
        }
        body.text.push_str("]}");
        body.text
    }

    fn control(&self) -> Option<&'static str> {
        match self.settings.caching {
            Caching::Off => None,
            Caching::For(CacheTtl::Minutes5) => Some(SHORT),
            Caching::For(CacheTtl::Hour1) => Some(LONG),
        }
    }

    /// The system prompt ends with a marker, so that it is found in the cache after a swap; so does the memory.
    fn anthropic_system(&self, body: &mut Body, memory: Option<&str>) {
        let system = self.settings.system.as_str();
        let blocks: Vec<String> = [Some(system), memory]
            .into_iter()
            .flatten()
            .filter(|text| !text.trim().is_empty())
            .map(|text| self.text_block(text))
            .collect();
        if !blocks.is_empty() {
            body.field("system", &format!("[{}]", blocks.join(",")));
        }
    }

    fn text_block(&self, text: &str) -> String {
        let mut block = String::with_capacity(text.len() + 80);
        block.push_str(r#"{"type":"text","text":"#);
        write_string(text, &mut block);
        if let Some(control) = self.control() {
            block.push_str(r#","cache_control":"#);
            block.push_str(control);
        }
        block.push('}');
        block
    }

    fn memory_message(&self, memory: &str) -> String {
        match self.wire {
            Wire::Anthropic => format!(
                r#"{{"role":"user","content":[{}]}}"#,
                self.text_block(memory)
            ),
            Wire::OpenAiChat | Wire::OpenAiResponses => {
                message::user(self.wire, memory).as_str().to_owned()
            }
        }
    }

    /// The message with a cache marker on its last block, if that can have one.
    fn marked(&self, message: &Raw) -> Option<String> {
        let control = self.control().filter(|_| self.wire == Wire::Anthropic)?;
        let last = message.field("content")?.array().last()?;
        let kind = last.string_field("type")?;
        let is_empty = last.text_field("text").is_some_and(|text| text.is_blank());
        if is_empty
            || matches!(kind.as_str(), "thinking" | "redacted_thinking")
            || last.field("cache_control").is_some()
        {
            return None;
        }
        let mut splice = Splice::new(message);
        splice
            .set_field_of(&last, "cache_control", Raw::parse(control).ok()?)
            .ok()?;
        Some(splice.finish().ok()?.to_string())
    }
}

/// The field that asks for an answer in JSON of this schema, for providers that support it. `name` may have letters,
/// digits, `_` and `-`.
#[must_use]
pub fn structured_output(wire: Wire, name: &str, schema: &Raw) -> (String, Raw) {
    let (name, schema) = (quoted(name), schema.as_str());
    let (field, value) = match wire {
        Wire::Anthropic => (
            "output_config",
            format!(r#"{{"format":{{"type":"json_schema","schema":{schema}}}}}"#),
        ),
        Wire::OpenAiChat => (
            "response_format",
            format!(
                r#"{{"type":"json_schema","json_schema":{{"name":{name},"schema":{schema}}}}}"#
            ),
        ),
        Wire::OpenAiResponses => (
            "text",
            format!(r#"{{"format":{{"type":"json_schema","name":{name},"schema":{schema}}}}}"#),
        ),
    };
    (
        field.to_owned(),
        Raw::parse(value).unwrap_or_else(|_| Raw::string("")),
    )
}

/// The message without reasoning; `None` if nothing else is in it.
///
/// For a tail whose beginning was replaced: models that bind the signatures of their reasoning to everything before it
/// refuse it then (preserved thinking, "what invalidates thinking").
#[must_use]
pub fn without_thinking(message: &Raw) -> Option<Raw> {
    let Some(content) = message.field("content") else {
        return Some(message.clone());
    };
    if content.kind() != Kind::Array {
        return Some(message.clone());
    }
    let is_thinking = |block: &Raw| {
        block
            .text_field("type")
            .is_some_and(|kind| matches!(kind.decode().as_ref(), "thinking" | "redacted_thinking"))
    };
    let mut blocks = 0;
    let mut kept = String::from("[");
    for block in content.array() {
        blocks += 1;
        if !is_thinking(&block) {
            if kept.len() > 1 {
                kept.push(',');
            }
            kept.push_str(block.as_str());
        }
    }
    kept.push(']');
    if kept.len() == 2 && blocks > 0 {
        return None;
    }
    if kept.len() == content.len() {
        return Some(message.clone());
    }
    let rest = (|| {
        let mut splice = Splice::new(message);
        splice.replace(&content, Raw::parse(kept).ok()?).ok()?;
        Raw::parse(splice.finish().ok()?).ok()
    })();
    Some(rest.unwrap_or_else(|| message.clone()))
}

/// Builds a body: fields, then one list.
struct Body {
    text: String,
    has_field: bool,
}

impl Body {
    fn key(&mut self, key: &str) {
        if self.has_field {
            self.text.push(',');
        }
        self.has_field = true;
        write_string(key, &mut self.text);
        self.text.push(':');
    }

    fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        write_string(value, &mut self.text);
    }

    fn field(&mut self, key: &str, value: &str) {
        self.key(key);
        self.text.push_str(value);
    }

    fn open_list(&mut self, key: &str) {
        self.key(key);
        self.text.push('[');
    }

    fn element(&mut self, value: &str, is_first: &mut bool) {
        if !std::mem::take(is_first) {
            self.text.push(',');
        }
        self.text.push_str(value);
    }
}

/// The field in which an answer is limited here.
fn limit_name(wire: Wire) -> &'static str {
    limit_names(wire)[0]
}

/// The fields in which clients limit the answer, the one that is used now first.
#[must_use]
pub fn limit_names(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::Anthropic => &["max_tokens"],
        Wire::OpenAiChat => &["max_completion_tokens", "max_tokens"],
        Wire::OpenAiResponses => &["max_output_tokens"],
    }
}

fn plain_system(value: &Raw) -> String {
    match value.as_text() {
        Some(text) => text.decode().into_owned(),
        None => value
            .array()
            .filter_map(|block| block.string_field("text"))
            .collect::<Vec<_>>()
            .join("\n\n"),
    }
}

fn joined(system: &str, memory: Option<&str>) -> Option<String> {
    match (system.trim().is_empty(), memory) {
        (true, None) => None,
        (true, Some(memory)) => Some(memory.to_owned()),
        (false, None) => Some(system.to_owned()),
        (false, Some(memory)) => Some(format!("{system}\n\n{memory}")),
    }
}

#[cfg(test)]
mod tests;
