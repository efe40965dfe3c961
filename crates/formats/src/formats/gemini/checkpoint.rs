//! Checkpoints: `Content` values of the Gemini API.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{
    Block, Content, Media, Message, Position, Role, ToolCall, ToolInput, ToolResult,
};

use crate::formats::anthropic_content::base64_bytes;

/// The list of contents, if the document is a checkpoint: bare, or with the kind of authentication beside it.
pub(super) fn contents(root: View<'_>) -> Option<View<'_>> {
    if root.is_array() {
        return Some(root);
    }
    root.field("history")
        .or_else(|| root.field("contents"))
        .filter(|contents| contents.is_array())
}

pub(super) fn read(
    contents: View<'_>,
    conversation: &mut Conversation,
    line_of: &mut impl FnMut(View<'_>) -> usize,
) {
    for content in contents.elements() {
        let role = match content.string_field("role").as_deref() {
            Some("model") => Role::Assistant,
            Some(_) => Role::User,
            None => continue,
        };
        let blocks: Vec<Block> = content
            .field("parts")
            .into_iter()
            .flat_map(View::elements)
            .map(part)
            .collect();
        if blocks.is_empty() {
            continue;
        }
        let mut message = Message::new(role, blocks);
        message.raw = Some(content.raw());
        message.position = Position {
            line: line_of(content),
        };
        conversation.messages.push(message);
    }
}

/// One part. Calls without an id are answered by the name of their function.
pub(in crate::formats) fn part(value: View<'_>) -> Block {
    let raw = Some(value.raw());
    if let Some(text) = value.as_text() {
        return Block {
            content: Content::Text(text),
            raw,
        };
    }
    let name = |of: View<'_>, key| of.field(key).and_then(View::to_bytestring);
    let id = |of| {
        name(of, "id")
            .or_else(|| name(of, "name"))
            .unwrap_or_default()
    };
    let content = if let Some(text) = value.field("text").and_then(View::as_text) {
        if value.field("thought").is_some_and(View::is_true) {
            Content::Thinking(text)
        } else {
            Content::Text(text)
        }
    } else if let Some(call) = value.field("functionCall") {
        Content::ToolCall(ToolCall {
            id: id(call),
            name: name(call, "name").unwrap_or_default(),
            input: call.field("args").map_or_else(
                || ToolInput::Text("".into()),
                |input| ToolInput::Json(input.raw()),
            ),
            is_server_side: false,
        })
    } else if let Some(answer) = value.field("functionResponse") {
        let response = answer.field("response");
        let error = response.and_then(|response| response.field("error"));
        let output = error.or_else(|| response.and_then(|response| response.field("output")));
        let content = match (output.and_then(View::as_text), response) {
            (Some(text), _) => vec![Block::text(text)],
            (None, Some(response)) => vec![Block::text(response.raw().as_bytestring().to_string())],
            (None, None) => Vec::new(),
        };
        Content::ToolResult(ToolResult {
            call_id: id(answer),
            content,
            is_error: Some(error.is_some()),
            is_server_side: false,
        })
    } else if let Some(data) = value
        .field("inlineData")
        .or_else(|| value.field("fileData"))
    {
        media(data)
    } else {
        let kind = value.fields().next().map(|(key, _)| key.as_ref().into());
        Content::Other(kind.unwrap_or_default())
    };
    Block { content, raw }
}

fn media(data: View<'_>) -> Content {
    let name = |key| data.field(key).and_then(View::to_bytestring);
    let media = Media {
        media_type: name("mimeType"),
        data_bytes: data
            .field("data")
            .and_then(View::as_text)
            .map(|data| base64_bytes(data.encoded_len())),
        name: name("displayName").or_else(|| name("fileUri")),
    };
    media.into_content()
}
