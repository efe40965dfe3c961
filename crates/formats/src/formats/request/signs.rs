//! Detects from the start of a text whether it is a request, and in which format.

use std::collections::HashSet;

use throughline_transcript::json::closing_quote;
use throughline_transcript::wire::Wire;

/// How far is looked, in bytes. Long strings are jumped over, so this is soon done.
const BYTES_MAX: usize = 4 << 20;
/// How many strings, brackets and other values are looked at.
const TOKENS_MAX: usize = 20_000;
/// Depth that matters: object, `messages`, message, `content`, block.
const LEVELS_MAX: usize = 5;

/// Field names and values seen in the places that tell the formats apart.
#[derive(Default)]
pub(super) struct Signs<'a> {
    opens_with: u8,
    body: HashSet<&'a str>,
    message: HashSet<&'a str>,
    block: HashSet<&'a str>,
    tool: HashSet<&'a str>,
    /// Values of `role` in messages.
    roles: HashSet<&'a str>,
    /// Values of `type` in messages and in blocks.
    kinds: HashSet<&'a str>,
    model: &'a str,
}

/// Fields of session files that also have messages of this shape in them. Their own formats know better.
const FOREIGN: [&str; 14] = [
    "sessionId",
    "session_id",
    "uuid",
    "parentUuid",
    "payload",
    "info",
    "trajectory",
    "trajectory_format",
    "traj",
    "mapping",
    "conversations",
    "chat_messages",
    "instance_id",
    "kwargs",
];

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Body,
    Messages,
    Message,
    Content,
    Block,
    Tools,
    Tool,
    Elsewhere,
}

impl<'a> Signs<'a> {
    /// Looks through the start of `text`, which need not be complete or even JSON.
    pub(super) fn of(text: &'a str) -> Self {
        let mut signs = Self::default();
        if !text.trim_start().starts_with(['{', '[']) {
            return signs; // Prose and Markdown need no look.
        }
        let bytes = text.as_bytes();
        let mut stack: Vec<(u8, Place, &'a str)> = Vec::new();
        let mut depth = 0usize;
        let mut tokens = 0;
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if at > BYTES_MAX || tokens > TOKENS_MAX {
                break;
            }
            match byte {
                b'{' | b'[' => {
                    if depth == 0 && signs.opens_with == 0 {
                        signs.opens_with = *byte;
                    }
                    depth += 1;
                    if depth <= LEVELS_MAX {
                        let place = inside(stack.last().copied(), *byte);
                        stack.push((*byte, place, ""));
                    }
                    tokens += 1;
                    at += 1;
                }
                b'}' | b']' => {
                    if depth <= LEVELS_MAX {
                        stack.pop();
                    }
                    depth = depth.saturating_sub(1);
                    at += 1;
                }
                b'"' => {
                    let Some(end) = closing_quote(bytes, at) else {
                        break;
                    };
                    let string = text.get(at + 1..end).unwrap_or_default();
                    at = end + 1;
                    tokens += 1;
                    if depth > LEVELS_MAX {
                        continue;
                    }
                    let is_key = bytes[at..]
                        .iter()
                        .find(|byte| !byte.is_ascii_whitespace())
                        .is_some_and(|byte| *byte == b':');
                    if let Some((b'{', place, key)) = stack.last_mut() {
                        if is_key {
                            *key = string;
                            signs.see_key(*place, string);
                        } else {
                            let (place, key) = (*place, *key);
                            signs.see_value(place, key, string);
                        }
                    }
                }
                _ => at += 1,
            }
        }
        signs
    }

    fn see_key(&mut self, place: Place, key: &'a str) {
        match place {
            Place::Body => self.body.insert(key),
            Place::Message => self.message.insert(key),
            Place::Block => self.block.insert(key),
            Place::Tool => self.tool.insert(key),
            _ => false,
        };
    }

    fn see_value(&mut self, place: Place, key: &'a str, value: &'a str) {
        match (place, key) {
            (Place::Body, "model") => self.model = value,
            // A line of a JSONL file can be a message as well as a body.
            (Place::Message | Place::Body, "role") => {
                self.roles.insert(value);
            }
            (Place::Message | Place::Body | Place::Block, "type") => {
                self.kinds.insert(value);
            }
            _ => {}
        }
    }

    /// How sure it is that the text is a request of the format, 0 to 100.
    pub(super) fn score(&self, wire: Wire) -> u8 {
        let is_list = self.opens_with == b'[';
        let has_messages = self.body.contains("messages");
        let has_input = self.body.contains("input");
        let is_line = !is_list && self.body.contains("role");
        if self.opens_with == 0 {
            return 0;
        }
        let fields = if is_line { &self.body } else { &self.message };
        let is_item = self.kinds.iter().any(|kind| is_item(kind));
        let looks_like_messages = fields.contains("role") || is_item;
        let base: u8 = match () {
            () if has_messages || has_input => {
                let has_settings = ["model", "tools", "system", "instructions", "max_tokens"]
                    .iter()
                    .any(|key| self.body.contains(key));
                if !(looks_like_messages || has_input && has_settings) {
                    return 0;
                }
                if has_settings { 80 } else { 60 }
            }
            () if (is_list || is_line) && looks_like_messages => 55,
            // The list may begin behind a long system prompt.
            () if self.body.contains("model")
                && ["system", "instructions", "tools", "max_tokens"]
                    .iter()
                    .any(|key| self.body.contains(key)) =>
            {
                50
            }
            () => return 0,
        };
        let is_responses = if has_messages {
            false
        } else {
            has_input || is_item || self.body.contains("instructions")
        };
        let fits = match wire {
            Wire::OpenAiResponses => is_responses,
            Wire::Anthropic => !is_responses && self.is_anthropic(fields),
            Wire::OpenAiChat => !is_responses && !self.is_anthropic(fields),
        };
        let is_foreign = FOREIGN
            .iter()
            .any(|key| self.body.contains(key) || self.message.contains(key));
        let score = match (fits, is_responses || wire == Wire::OpenAiResponses) {
            (true, _) => base,
            // The other format with `messages`: it can be read, but is not the first choice.
            (false, false) => base / 2,
            (false, true) => 0,
        };
        if is_foreign { score / 2 } else { score }
    }

    fn is_anthropic(&self, message: &HashSet<&'a str>) -> bool {
        let mut anthropic = 0;
        let mut chat = 0;
        for key in ["system", "thinking", "anthropic_version", "stop_sequences"] {
            anthropic += u32::from(self.body.contains(key)) * 4;
        }
        for kind in [
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "image",
            "document",
            "server_tool_use",
            "compaction",
        ] {
            anthropic += u32::from(self.kinds.contains(kind)) * 4;
        }
        anthropic += u32::from(self.tool.contains("input_schema")) * 4;
        anthropic += u32::from(self.block.contains("cache_control")) * 2;
        anthropic += u32::from(self.model.contains("claude")) * 2;
        anthropic += u32::from(self.body.contains("max_tokens"));
        for key in [
            "tool_calls",
            "tool_call_id",
            "function_call",
            "refusal",
            "reasoning_content",
        ] {
            chat += u32::from(message.contains(key)) * 4;
        }
        for role in ["tool", "developer", "function"] {
            chat += u32::from(self.roles.contains(role)) * 4;
        }
        for kind in ["image_url", "input_audio", "file"] {
            chat += u32::from(self.kinds.contains(kind)) * 4;
        }
        chat += u32::from(self.roles.contains("system")) * 2;
        chat += u32::from(self.tool.contains("function")) * 4;
        chat += u32::from(self.model.contains("gpt")) * 2;
        anthropic > chat
    }
}

fn is_item(kind: &str) -> bool {
    matches!(
        kind,
        "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "reasoning"
            | "input_text"
            | "output_text"
            | "web_search_call"
            | "local_shell_call"
    )
}

fn inside(outer: Option<(u8, Place, &str)>, opening: u8) -> Place {
    match (outer, opening) {
        (None, b'{') => Place::Body,
        (None, _) => Place::Messages,
        (Some((_, Place::Body, "messages" | "input")), b'[') => Place::Messages,
        (Some((_, Place::Body, "tools")), b'[') => Place::Tools,
        (Some((_, Place::Body | Place::Message, "content")), b'[') => Place::Content,
        (Some((_, Place::Messages, _)), b'{') => Place::Message,
        (Some((_, Place::Content, _)), b'{') => Place::Block,
        (Some((_, Place::Tools, _)), b'{') => Place::Tool,
        _ => Place::Elsewhere,
    }
}
