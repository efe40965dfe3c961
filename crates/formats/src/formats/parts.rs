//! Blocks and messages for formats that keep them in records of their own shape.

use bytestring::ByteString;
use throughline_transcript::json::Raw;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{
    Block, Content, Media, Message, Role, ToolCall, ToolInput, ToolResult,
};
use throughline_transcript::usage::Usage;

use crate::formats::anthropic_content::base64_bytes;
use crate::formats::place::Place;

/// The field `key` as a name: a string, or a number as it is written. Empty if there is none.
pub(crate) fn name(value: View<'_>, key: &str) -> ByteString {
    match value.field(key) {
        Some(field) => field
            .to_bytestring()
            .or_else(|| field.as_f64().map(|_| field.as_str().into()))
            .unwrap_or_default(),
        None => ByteString::new(),
    }
}

/// The field `key` as a string of its own, if it is one that is not blank.
pub(crate) fn string(value: View<'_>, key: &str) -> Option<String> {
    value
        .string_field(key)
        .filter(|text| !text.trim().is_empty())
        .map(|text| text.into_owned())
}

/// A text block; nothing for a blank text. A value that is no string is shown as it is written.
pub(crate) fn text(value: View<'_>) -> Option<Block> {
    let raw = Some(value.raw());
    let content = match value.as_text() {
        Some(text) if text.is_blank() => return None,
        Some(text) => Content::Text(text),
        None if value.is_null() => return None,
        None => Content::Text(value.raw().as_bytestring().to_string().into()),
    };
    Some(Block { content, raw })
}

/// A block of reasoning; nothing for a blank text.
pub(crate) fn thinking(value: View<'_>) -> Option<Block> {
    let text = value.as_text().filter(|text| !text.is_blank())?;
    Some(Block {
        content: Content::Thinking(text),
        raw: Some(value.raw()),
    })
}

/// A call of a tool.
pub(crate) fn call(
    id: ByteString,
    name: ByteString,
    input: Option<View<'_>>,
    raw: Option<Raw>,
) -> Block {
    let input = match input.filter(|input| !input.is_null()) {
        None => ToolInput::Text("".into()),
        Some(input) => match input.as_text() {
            Some(text) => ToolInput::from_encoded(&text),
            None => ToolInput::Json(input.raw()),
        },
    };
    Block {
        content: Content::ToolCall(ToolCall {
            id,
            name,
            input,
            is_server_side: false,
        }),
        raw,
    }
}

/// The result of a tool.
pub(crate) fn result(call_id: ByteString, content: Vec<Block>, is_error: Option<bool>) -> Block {
    Block::new(Content::ToolResult(ToolResult {
        call_id,
        content,
        is_error,
        is_server_side: false,
    }))
}

/// A picture or document by its address: `data:image/png;base64,...` is the data itself and no name.
pub(crate) fn media(address: Option<&str>, media_type: Option<ByteString>) -> Media {
    let mut media = Media {
        media_type,
        ..Media::default()
    };
    let Some(address) = address else {
        return media;
    };
    match address
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
    {
        Some((kind, data)) => {
            media.media_type = media.media_type.or_else(|| Some(kind.into()));
            media.data_bytes = Some(base64_bytes(data.len()));
        }
        None => media.name = Some(address.into()),
    }
    media
}

/// One answer of the model, with the results of its calls.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) blocks: Vec<Block>,
    pub(crate) results: Vec<Block>,
    pub(crate) usage: Option<Usage>,
}

impl Answer {
    /// Adds the message of the model, and behind it one with the results.
    pub(crate) fn put(self, messages: &mut Vec<Message>, place: &Place) {
        if !self.blocks.is_empty() {
            let mut message = Message::new(Role::Assistant, self.blocks);
            message.usage = self.usage;
            messages.push(place.put(message));
        }
        if !self.results.is_empty() {
            messages.push(place.put(Message::new(Role::Tool, self.results)));
        }
    }
}

/// The usage, unless nothing was used.
pub(crate) fn used(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

/// A path of a `file:` address, or the text itself.
pub(crate) fn path_of(address: &str) -> &str {
    address.strip_prefix("file://").unwrap_or(address)
}
