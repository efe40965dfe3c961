//! The wire formats: the three shapes of a request to a language model.
//!
//! A wire format is a way to *send* a conversation. What can be read beyond these (session files of tools) is in
//! `throughline-formats`.

use std::fmt;
use std::str::FromStr;

use crate::json::{Kind, Raw};

/// A shape of request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wire {
    /// Anthropic Messages, `POST /v1/messages`.
    Anthropic,
    /// OpenAI Chat Completions, `POST /chat/completions`, and everything that imitates it.
    OpenAiChat,
    /// OpenAI Responses, `POST /responses`.
    OpenAiResponses,
}

/// The name is not one of a wire format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no wire format {name:?} (known: anthropic, openai-chat, openai-responses)")]
pub struct UnknownWire {
    /// What was asked for.
    pub name: String,
}

impl Wire {
    /// All wire formats.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses];

    /// Name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
        }
    }

    /// Recognises a request body by its fields; `None` if it is none of the three.
    ///
    /// Bodies without tools or special blocks can be valid in two formats. Then a required `max_tokens`, a model
    /// whose name holds `claude` or block arrays in assistant messages speak for Anthropic, and what is left is
    /// taken for Chat Completions, which most servers imitate.
    #[must_use]
    pub fn detect(body: &Raw) -> Option<Self> {
        if body.kind() != Kind::Object {
            return None;
        }
        let mut messages = None;
        let mut has_input = false;
        let mut is_continued = false;
        let mut votes = Votes::default();
        for (key, value) in body.object() {
            match key.decode().as_ref() {
                "messages" if value.kind() == Kind::Array => messages = Some(value),
                "input" => has_input = matches!(value.kind(), Kind::Array | Kind::String),
                "previous_response_id" | "conversation" => is_continued = true,
                // A prompt that is a text belongs to the completions before Chat.
                "prompt" => is_continued |= value.kind() == Kind::Object,
                "system" | "thinking" | "stop_sequences" | "anthropic_version"
                | "anthropic_beta" | "output_config" | "context_management" | "thread"
                | "mcp_servers" | "cache_control" | "top_k" | "compaction" => votes.anthropic += 4,
                "max_completion_tokens"
                | "stop"
                | "n"
                | "response_format"
                | "reasoning_effort"
                | "parallel_tool_calls"
                | "stream_options"
                | "logprobs"
                | "seed"
                | "frequency_penalty"
                | "presence_penalty"
                | "functions" => votes.chat += 4,
                "max_tokens" => votes.anthropic += 1,
                "model" => votes.model(&value),
                "tools" => votes.tools(&value),
                _ => {}
            }
        }
        let Some(messages) = messages else {
            return (has_input || is_continued).then_some(Self::OpenAiResponses);
        };
        if has_input {
            return Some(Self::OpenAiResponses);
        }
        for message in messages.array() {
            if votes.are_clear() {
                break;
            }
            votes.message(&message);
        }
        Some(if votes.anthropic > votes.chat {
            Self::Anthropic
        } else {
            Self::OpenAiChat
        })
    }
}

/// What speaks for the one or the other of the two formats with `messages`.
#[derive(Default)]
struct Votes {
    anthropic: u32,
    chat: u32,
}

impl Votes {
    fn are_clear(&self) -> bool {
        self.anthropic.abs_diff(self.chat) >= 8
    }

    fn model(&mut self, model: &Raw) {
        let Some(name) = model.as_text() else { return };
        let name = name.decode();
        if name.contains("claude") {
            // Gateways serve Claude models in the Chat format too, so this weighs less than a field does.
            self.anthropic += 2;
        } else if name.contains("gpt") {
            self.chat += 2;
        }
    }

    fn tools(&mut self, tools: &Raw) {
        if let Some(tool) = tools.array().next() {
            for (key, _) in tool.object() {
                match key.decode().as_ref() {
                    "input_schema" => self.anthropic += 8,
                    "function" => self.chat += 8,
                    _ => {}
                }
            }
        }
    }

    fn message(&mut self, message: &Raw) {
        let mut role = None;
        let mut content = None;
        for (key, value) in message.object() {
            match key.decode().as_ref() {
                "role" => role = value.as_text(),
                "content" => content = Some(value),
                "tool_calls" | "tool_call_id" | "function_call" | "refusal" | "audio" | "name" => {
                    self.chat += 8;
                }
                _ => {}
            }
        }
        let role = role.map(|role| role.decode().into_owned());
        match role.as_deref() {
            Some("tool" | "developer" | "function") => self.chat += 8,
            Some("system") => self.chat += 2,
            _ => {}
        }
        let Some(content) = content else { return };
        if role.as_deref() == Some("assistant") && content.kind() == Kind::Array {
            self.anthropic += 1;
        }
        for block in content.array() {
            if self.are_clear() {
                return;
            }
            match block
                .text_field("type")
                .map(|kind| kind.decode().into_owned())
                .as_deref()
            {
                Some(
                    "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image"
                    | "document" | "server_tool_use" | "search_result" | "compaction",
                ) => self.anthropic += 8,
                Some("image_url" | "input_audio" | "file" | "refusal") => self.chat += 8,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Wire {
    type Err = UnknownWire;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|wire| wire.name() == name)
            .ok_or_else(|| UnknownWire {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: Option<Wire>) {
        assert_eq!(Wire::detect(&Raw::parse(body).unwrap()), expected);
    }

    #[test]
    fn bodies_are_recognised() {
        let chat = Some(Wire::OpenAiChat);
        let anthropic = Some(Wire::Anthropic);
        let responses = Some(Wire::OpenAiResponses);
        check("[]", None);
        check("{}", None);
        check(r#"{"messages":7}"#, None);
        check(r#"{"input":"hi"}"#, responses);
        check(r#"{"model":"m","prompt":"hi"}"#, None);
        check(r#"{"model":"m","prompt":{"id":"p"}}"#, responses);
        check(r#"{"input":[{"role":"user","content":"hi"}]}"#, responses);
        check(
            r#"{"model":"gpt-6","previous_response_id":"resp_1"}"#,
            responses,
        );
        check(r#"{"messages":[{"role":"user","content":"hi"}]}"#, chat);
        check(
            r#"{"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#,
            anthropic,
        );
        check(
            r#"{"max_tokens":9,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]}"#,
            chat,
        );
        check(
            r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"ho"}]}]}"#,
            anthropic,
        );
        check(
            r#"{"model":"claude-opus-5","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[]}]}"#,
            chat,
        );
        check(r#"{"system":"x","messages":[]}"#, anthropic);
        check(
            r#"{"tools":[{"type":"function","function":{"name":"f"}}],"max_tokens":1,"messages":[]}"#,
            chat,
        );
        check(
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}"#,
            anthropic,
        );
    }

    #[test]
    fn names_read_back() {
        for wire in Wire::ALL {
            assert_eq!(wire.to_string().parse(), Ok(wire));
        }
        assert_eq!(
            "grpc".parse::<Wire>().unwrap_err().to_string(),
            r#"there is no wire format "grpc" (known: anthropic, openai-chat, openai-responses)"#
        );
    }
}
