//! Finds the messages that can be copied into a request unchanged.

use std::borrow::Cow;

use throughline_transcript::body::read_message;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{Message, Role};
use throughline_transcript::wire::Wire;

use super::writer::has_known_fields;

/// The text of the message in a request of the wire format, if its source already has that form. With `is_own` it
/// comes from a body of that format, and unknown fields stay.
pub(super) fn text(message: &Message, wire: Wire, is_own: bool) -> Option<Cow<'_, str>> {
    let raw = message.raw.as_ref()?;
    // Importers may have put more into a message than its source says, or the caller may have changed it.
    let read = read_message(raw)?;
    if read.role != message.role || read.blocks != message.blocks {
        return None;
    }
    if is_own {
        let role = raw.field("role");
        let has_role = match wire {
            Wire::Anthropic => role.is_some_and(|role| {
                matches!(role.as_str(), "\"user\"" | "\"assistant\"" | "\"system\"")
            }),
            Wire::OpenAiChat => role.is_some_and(|role| is_chat_role(role.as_str())),
            Wire::OpenAiResponses => role.map_or(raw.field("type").is_some(), |role| {
                role.as_str() != "\"tool\"" && is_chat_role(role.as_str())
            }),
        };
        // One block alone is read, but no provider takes it in the place of a list.
        let is_content = raw.field("content").is_none_or(|content| {
            matches!(content.kind(), Kind::String | Kind::Array | Kind::Null)
        });
        return (has_role && is_content).then_some(Cow::Borrowed(raw.as_str()));
    }
    let mut role = None;
    let mut content = None;
    let mut kind = None;
    let mut has_more = false;
    for (key, value) in raw.object() {
        match key.decode().as_ref() {
            "role" => role = Some(value),
            "content" => content = Some(value),
            "type" => kind = value.as_text(),
            "id" | "status" | "phase" if wire == Wire::OpenAiResponses => {}
            "name" | "tool_calls" | "tool_call_id" | "refusal" | "reasoning_content"
            | "reasoning" | "reasoning_details"
                if wire == Wire::OpenAiChat => {}
            // Without these the message would say less.
            "tool_calls" | "tool_call_id" | "function_call" | "refusal" | "reasoning_content"
            | "reasoning" | "audio" => return None,
            _ => has_more = true,
        }
    }
    match wire {
        Wire::Anthropic => {
            let (role, content) = (role?, content?);
            let is_own_role = matches!(role.as_str(), "\"user\"" | "\"assistant\"");
            if !is_own_role || message.role == Role::Tool || !has_blocks(&content, wire) {
                return None;
            }
            // What logs add (times, usage) is not part of a request.
            Some(if has_more || kind.is_some() {
                Cow::Owned(super::text::object(&[
                    ("role", role.as_str()),
                    ("content", content.as_str()),
                ]))
            } else {
                Cow::Borrowed(raw.as_str())
            })
        }
        Wire::OpenAiChat => {
            let is_fit = !has_more
                && kind.is_none()
                && role.is_some_and(|role| is_chat_role(role.as_str()))
                && content.is_none_or(|content| has_blocks(&content, wire));
            is_fit.then_some(Cow::Borrowed(raw.as_str()))
        }
        Wire::OpenAiResponses => {
            let is_fit = match (role, kind) {
                (Some(role), kind) => {
                    !has_more
                        && kind.is_none_or(|kind| kind.decode() == "message")
                        && matches!(
                            role.as_str(),
                            "\"user\"" | "\"assistant\"" | "\"system\"" | "\"developer\""
                        )
                        && content.is_some_and(|content| has_blocks(&content, wire))
                }
                (None, Some(kind)) => is_item(&kind.decode()),
                (None, None) => false,
            };
            is_fit.then_some(Cow::Borrowed(raw.as_str()))
        }
    }
}

fn is_chat_role(role: &str) -> bool {
    matches!(
        role,
        "\"user\"" | "\"assistant\"" | "\"system\"" | "\"developer\"" | "\"tool\""
    )
}

/// Items whose outputs are items too, so that calls and results of one source fit each other.
fn is_item(kind: &str) -> bool {
    kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || matches!(kind, "reasoning" | "compaction")
}

/// Whether the content is a string or an array of blocks of the wire format.
fn has_blocks(content: &Raw, wire: Wire) -> bool {
    match content.kind() {
        Kind::String => true,
        Kind::Null => wire == Wire::OpenAiChat,
        Kind::Array => content.array().all(|block| {
            block.text_field("type").is_some_and(|kind| {
                let kind = kind.decode();
                is_block(&kind, wire) && has_known_fields(&block, &kind)
            })
        }),
        _ => false,
    }
}

fn is_block(kind: &str, wire: Wire) -> bool {
    let is_chat = matches!(
        kind,
        "text" | "image_url" | "input_audio" | "file" | "refusal"
    );
    let is_responses = matches!(
        kind,
        "input_text" | "output_text" | "input_image" | "input_file" | "refusal"
    );
    match wire {
        Wire::OpenAiChat => is_chat,
        Wire::OpenAiResponses => is_responses,
        Wire::Anthropic => kind == "text" || !(is_chat || is_responses),
    }
}
