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
pub(in crate::formats) struct Signs<'a> {
    opens_with: u8,
    body: HashSet<&'a str>,
    message: HashSet<&'a str>,
    block: HashSet<&'a str>,
    tool: HashSet<&'a str>,
    /// Values of `role` in messages.
    roles: HashSet<&'a str>,
    /// Values of `type` in messages and in blocks.
    kinds: HashSet<&'a str>,
    /// Values of `type` in blocks.
    block_kinds: HashSet<&'a str>,
    /// Fields of a message that hold objects or lists.
    nested: HashSet<&'a str>,
    /// Fields of an object at the root that hold objects or lists.
    body_nested: HashSet<&'a str>,
    /// What the object that is open at the root, or as a message, has so far.
    open_record: Record,
    /// Whether a message, or an object at the root beside messages, is none of a request.
    has_odd_message: bool,
    has_odd_root: bool,
    model: &'a str,
}

/// What tells whether an object is a message.
#[derive(Clone, Copy, Default)]
struct Record {
    has_role: bool,
    has_content: bool,
    has_item_kind: bool,
}

impl Record {
    fn is_message(self) -> bool {
        self.has_role && self.has_content || self.has_item_kind
    }
}

/// Fields in which a message says something.
const CONTENT: [&str; 8] = [
    "content",
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
    "reasoning",
    "reasoning_content",
    "thinking_blocks",
];

/// Fields of messages and items that hold objects or lists and that are known, or that say nothing.
const NESTED: [&str; 29] = [
    "content",
    "tool_calls",
    "function_call",
    "audio",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "annotations",
    "cache_control",
    "summary",
    "action",
    "actions",
    "arguments",
    "output",
    "input",
    "results",
    "tools",
    "operation",
    "pending_safety_checks",
    "acknowledged_safety_checks",
    "context_management",
    "metadata",
    "extra",
    "usage",
    "provider_specific_fields",
    "response_metadata",
    "additional_kwargs",
    "logprobs",
    "images",
];

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
    pub(in crate::formats) fn of(text: &'a str) -> Self {
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
                        let outer = stack.last().copied();
                        let is_empty = matches!(bytes.get(at + 1), Some(b'}' | b']'));
                        let place = inside(outer, *byte);
                        signs.see_opening(outer, place, *byte, is_empty);
                        stack.push((*byte, place, ""));
                    }
                    tokens += 1;
                    at += 1;
                }
                b'}' | b']' => {
                    if depth <= LEVELS_MAX
                        && let Some((b'{', place, _)) = stack.pop()
                    {
                        signs.see_end(place);
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

    fn see_opening(
        &mut self,
        outer: Option<(u8, Place, &'a str)>,
        place: Place,
        opening: u8,
        is_empty: bool,
    ) {
        match outer {
            // An object in the place of the content is no shape of a request.
            Some((_, Place::Message, "content")) if opening == b'{' => self.has_odd_message = true,
            Some((_, Place::Body, "content")) if opening == b'{' => self.has_odd_root = true,
            Some((_, Place::Message, key)) if !is_empty => {
                self.nested.insert(key);
            }
            Some((_, Place::Body, key)) if !is_empty => {
                self.body_nested.insert(key);
            }
            _ => {}
        }
        if opening == b'{' && matches!(place, Place::Body | Place::Message) {
            self.open_record = Record::default();
        }
    }

    fn see_end(&mut self, place: Place) {
        match place {
            Place::Message => self.has_odd_message |= !self.open_record.is_message(),
            Place::Body => self.has_odd_root |= !self.open_record.is_message(),
            _ => return,
        }
        // A message may be open in a body; what follows it in the body is not the message's.
        self.open_record = Record::default();
    }

    fn see_key(&mut self, place: Place, key: &'a str) {
        if matches!(place, Place::Body | Place::Message) {
            self.open_record.has_content |= CONTENT.contains(&key);
        }
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
                self.open_record.has_role = true;
                self.roles.insert(value);
            }
            (Place::Message | Place::Body, "type") => {
                self.open_record.has_item_kind |= is_any_item(value);
                self.kinds.insert(value);
            }
            (Place::Block, "type") => {
                self.kinds.insert(value);
                self.block_kinds.insert(value);
            }
            _ => {}
        }
    }

    /// Whether a block is of a kind that requests do not have: other programs write messages of this shape, too, with
    /// calls and results of their own.
    pub(in crate::formats) fn has_odd_block(&self) -> bool {
        !self.block_kinds.iter().all(|kind| is_block(kind))
    }

    /// Whether the messages have something that requests do not have, so that reading them would lose it.
    pub(in crate::formats) fn has_odd_messages(&self) -> bool {
        let is_known = |key: &&str| NESTED.contains(key);
        self.has_odd_message
            || self.has_odd_block()
            || !self.roles.iter().all(|role| is_role(role))
            || !self.nested.iter().all(is_known)
    }

    /// The same for lines that are messages, and for what else is at the root.
    fn has_odd_lines(&self) -> bool {
        let is_known = |key: &&str| NESTED.contains(key);
        self.has_odd_messages() || self.has_odd_root || !self.body_nested.iter().all(is_known)
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
        let has_settings = ["model", "tools", "system", "instructions", "max_tokens"]
            .iter()
            .any(|key| self.body.contains(key));
        let is_body = has_messages || has_input;
        // A body with settings is a request, whatever is odd in it; anything else has to look like nothing else.
        if is_line && !is_body && self.has_odd_lines()
            || !(is_body && has_settings) && self.has_odd_messages()
        {
            return 0;
        }
        let fields = if is_line { &self.body } else { &self.message };
        let is_item = self.kinds.iter().any(|kind| is_item(kind));
        let looks_like_messages = fields.contains("role") || is_item;
        let base: u8 = match () {
            () if is_body => {
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

fn is_role(role: &str) -> bool {
    matches!(
        role,
        "user" | "human" | "assistant" | "model" | "system" | "developer" | "tool" | "function"
    )
}

fn is_block(kind: &str) -> bool {
    kind.ends_with("tool_use")
        || kind.ends_with("tool_result")
        || matches!(
            kind,
            "text"
                | "input_text"
                | "output_text"
                | "reasoning_text"
                | "summary_text"
                | "refusal"
                | "thinking"
                | "redacted_thinking"
                | "reasoning"
                | "tool_call"
                | "function_call"
                | "function"
                | "image"
                | "image_url"
                | "input_image"
                | "audio"
                | "input_audio"
                | "video"
                | "video_url"
                | "input_video"
                | "document"
                | "file"
                | "input_file"
                | "search_result"
                | "tool_reference"
                | "container_upload"
                | "compaction"
        )
}

fn is_any_item(kind: &str) -> bool {
    is_item(kind)
        || kind.ends_with("_call")
        || kind.ends_with("_output")
        || matches!(
            kind,
            "message"
                | "item_reference"
                | "mcp_list_tools"
                | "mcp_approval_request"
                | "mcp_approval_response"
                | "compaction"
                | "compaction_summary"
        )
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
