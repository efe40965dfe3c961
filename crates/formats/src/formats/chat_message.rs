//! Messages of the chat shape, `{role, content, tool_calls}`, as tools of many kinds write them down.
//!
//! The shape is that of OpenAI's Chat Completions, with everything that agents and converters mix into it: content
//! blocks of other providers, arguments that are objects instead of strings, calls without the `function` level.

use bytestring::ByteString;
use throughline_transcript::json::{Kind, Raw, Text};
use throughline_transcript::message::{
    Block, Content, Media, Message, Role, ToolCall, ToolInput, ToolResult,
};

/// The role that `name` means in the chat formats. `None` if it is no role of theirs.
pub(crate) fn role(name: &str) -> Option<Role> {
    Some(match name {
        "system" | "developer" => Role::System,
        "user" | "human" => Role::User,
        "assistant" | "ai" | "gpt" | "model" => Role::Assistant,
        "tool" | "function" | "ipython" | "observation" => Role::Tool,
        _ => return None,
    })
}

/// Reads one message. `None` if it has no role that is known.
pub(crate) fn message(raw: &Raw) -> Option<Message> {
    message_with(raw, []).0
}

/// Reads one message, and the fields `keys` of it that a format has besides, in the same walk over it.
pub(crate) fn message_with<const N: usize>(
    raw: &Raw,
    keys: [&str; N],
) -> (Option<Message>, [Option<Raw>; N]) {
    let (own, others) = raw.fields_of(
        [
            "role",
            "content",
            "reasoning_content",
            "reasoning",
            "thinking_blocks",
            "tool_calls",
            "function_call",
            "tool_call_id",
        ],
        keys,
    );
    (from_fields(raw, own), others)
}

fn from_fields(raw: &Raw, fields: [Option<Raw>; 8]) -> Option<Message> {
    let [
        name,
        content,
        reasoning_content,
        reasoning,
        thinking_blocks,
        tool_calls,
        function_call,
        tool_call_id,
    ] = fields;
    let role = role(&name?.as_text()?.decode())?;
    let mut blocks = Vec::new();
    if role == Role::Assistant {
        let thinking = reasoning_content
            .or(reasoning)
            .and_then(|raw| text_block(&raw));
        if let Some(text) = thinking {
            blocks.push(Block {
                raw: text.raw.clone(),
                content: match text.content {
                    Content::Text(text) => Content::Thinking(text),
                    other => other,
                },
            });
        } else if let Some(list) = thinking_blocks {
            blocks.extend(list.array().filter_map(|part| part_block(&part)));
        }
    }
    if let Some(content) = &content {
        blocks.extend(content_blocks(content));
    }
    if role == Role::Tool && !blocks.iter().any(is_tool_result) {
        blocks = vec![Block {
            content: Content::ToolResult(ToolResult {
                call_id: tool_call_id.as_ref().map(string).unwrap_or_default(),
                content: blocks,
                is_error: None,
                is_server_side: false,
            }),
            raw: None,
        }];
    }
    if let Some(calls) = tool_calls {
        add_tool_calls(&mut blocks, calls.array());
    }
    if let Some(call) = function_call
        && call.kind() == Kind::Object
        && let Some(call) = tool_call(&call)
    {
        blocks.push(call);
    }
    let mut message = Message::new(role, blocks);
    message.raw = Some(raw.clone());
    Some(message)
}

/// Adds the calls that are not among the blocks yet: some providers have them in the content as well.
pub(crate) fn add_tool_calls(blocks: &mut Vec<Block>, calls: impl Iterator<Item = Raw>) {
    let known: Vec<ByteString> = blocks
        .iter()
        .filter_map(|block| match &block.content {
            Content::ToolCall(call) if !call.id.is_empty() => Some(call.id.clone()),
            _ => None,
        })
        .collect();
    for block in calls.filter_map(|raw| tool_call(&raw)) {
        match &block.content {
            Content::ToolCall(call) if known.contains(&call.id) => {}
            _ => blocks.push(block),
        }
    }
}

/// A tool call: `{id, function: {name, arguments}}`, `{id, name, arguments}`, `{id, name, args}` or with `input`.
pub(crate) fn tool_call(raw: &Raw) -> Option<Block> {
    let inner = raw
        .field("function")
        .filter(|inner| inner.kind() == Kind::Object);
    let [name, arguments, args, input] =
        inner
            .as_ref()
            .unwrap_or(raw)
            .fields(["name", "arguments", "args", "input"]);
    let [id, call_id] = raw.fields(["id", "call_id"]);
    Some(Block {
        content: Content::ToolCall(ToolCall {
            id: call_id.or(id).as_ref().map(string).unwrap_or_default(),
            name: string(&name?),
            input: tool_input(arguments.or(args).or(input).as_ref()),
            is_server_side: false,
        }),
        raw: Some(raw.clone()),
    })
}

/// The arguments of a call, whether they are JSON or JSON inside of a string.
pub(crate) fn tool_input(raw: Option<&Raw>) -> ToolInput {
    match raw {
        None => ToolInput::Text(Text::plain("")),
        Some(raw) => match raw.as_text() {
            Some(text) => ToolInput::from_encoded(&text),
            None => ToolInput::Json(raw.clone()),
        },
    }
}

/// The blocks of a message's `content`: a string, or a list of strings and parts.
pub(crate) fn content_blocks(content: &Raw) -> Vec<Block> {
    match content.kind() {
        Kind::String => text_block(content).into_iter().collect(),
        Kind::Array => content
            .array()
            .filter_map(|part| part_block(&part))
            .collect(),
        Kind::Object => part_block(content).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// A string as a text block; nothing for an empty one.
pub(crate) fn text_block(raw: &Raw) -> Option<Block> {
    let text = raw.as_text().filter(|text| text.encoded_len() > 0)?;
    Some(Block {
        content: Content::Text(text),
        raw: Some(raw.clone()),
    })
}

/// One part of a content list.
pub(crate) fn part_block(part: &Raw) -> Option<Block> {
    match part.kind() {
        Kind::String => return text_block(part),
        Kind::Object => {}
        _ => return None,
    }
    let kind = part.text_field("type");
    let kind = kind.as_ref().map(Text::decode).unwrap_or_default();
    let content = match kind.as_ref() {
        "" | "text" | "input_text" | "output_text" => match part.text_field("text") {
            Some(text) if text.encoded_len() == 0 => return None,
            Some(text) => Content::Text(text),
            None => Content::Other(kind.as_ref().into()),
        },
        "thinking" => Content::Thinking(part.text_field("thinking").unwrap_or_else(no_text)),
        "reasoning" => Content::Thinking(
            part.text_field("reasoning")
                .or_else(|| part.text_field("text"))
                .unwrap_or_else(no_text),
        ),
        "redacted_thinking" => Content::Thinking(no_text()),
        "tool_use" | "tool_call" | "function_call" | "server_tool_use" => {
            let mut block = tool_call(part)?;
            if let Content::ToolCall(call) = &mut block.content {
                call.is_server_side = kind == "server_tool_use";
            }
            return Some(block);
        }
        "tool_result" => Content::ToolResult(tool_result(part)),
        "image" | "image_url" | "input_image" | "image_base64" => Content::Image(media(part)),
        "document" | "file" | "input_file" => Content::Document(media(part)),
        other => Content::Other(other.into()),
    };
    Some(Block {
        content,
        raw: Some(part.clone()),
    })
}

fn tool_result(part: &Raw) -> ToolResult {
    let [id, content, is_error] = part.fields(["tool_use_id", "content", "is_error"]);
    ToolResult {
        call_id: id.as_ref().map(string).unwrap_or_default(),
        content: content.as_ref().map(content_blocks).unwrap_or_default(),
        is_error: is_error.and_then(|raw| raw.as_bool()),
        is_server_side: false,
    }
}

fn media(part: &Raw) -> Media {
    let [image_url, source, file, url, file_id] =
        part.fields(["image_url", "source", "file", "url", "file_id"]);
    let mut media = Media::default();
    let inner = image_url.or(source).or(file);
    let address = match &inner {
        Some(inner) if inner.kind() == Kind::Object => {
            let [kind, data, url, name, id] =
                inner.fields(["media_type", "data", "url", "filename", "file_id"]);
            media.media_type = kind.as_ref().map(string);
            media.data_bytes = data.map(|data| data.len().saturating_sub(2) / 4 * 3);
            url.or(name).or(id)
        }
        _ => inner.clone().or(url).or(file_id),
    };
    let Some(address) = address.and_then(|raw| raw.as_text()) else {
        return media;
    };
    let address = address.decode();
    // `data:image/png;base64,...` is the picture itself and no name.
    if let Some((kind, data)) = address
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
    {
        media.media_type = Some(kind.into());
        media.data_bytes = Some(data.trim_end_matches('=').len() * 3 / 4);
    } else {
        media.name = Some(address.as_ref().into());
    }
    media
}

/// A string as it reads, a number as it is written: ids are sometimes numbers.
pub(crate) fn string(raw: &Raw) -> ByteString {
    match raw.as_text() {
        Some(text) => text.decode().into_owned().into(),
        None if raw.is_null() => ByteString::new(),
        None => raw.as_bytestring().clone(),
    }
}

fn is_tool_result(block: &Block) -> bool {
    matches!(block.content, Content::ToolResult(_))
}

fn no_text() -> Text {
    Text::plain("")
}

/// The messages that say something: tools write empty ones as marks of their own.
pub(crate) fn without_empty(mut messages: Vec<Message>) -> Vec<Message> {
    messages.retain(|message| !message.blocks.is_empty());
    messages
}

/// Gives ids to calls and results that have none: each result belongs to the oldest call before it that still waits.
/// The ids are made of `prefix` and a running number.
pub(crate) fn pair_by_order(messages: &mut [Message], prefix: &str) {
    let mut waiting = std::collections::VecDeque::new();
    let mut count = 0usize;
    for block in messages.iter_mut().flat_map(|message| &mut message.blocks) {
        match &mut block.content {
            Content::ToolCall(call) if call.id.is_empty() => {
                count += 1;
                call.id = format!("{prefix}{count}").into();
                waiting.push_back(call.id.clone());
            }
            Content::ToolResult(result) if result.call_id.is_empty() => {
                result.call_id = waiting.pop_front().unwrap_or_default();
            }
            _ => {}
        }
    }
}

/// A short account of messages for tests: one line a message.
#[cfg(test)]
pub(crate) fn outline(messages: &[Message]) -> String {
    use throughline_transcript::message::Author;

    fn blocks(list: &[Block]) -> String {
        let texts: Vec<String> = list.iter().map(one).collect();
        texts.join(" ")
    }
    fn one(block: &Block) -> String {
        match &block.content {
            Content::Text(text) => format!("{:?}", text.decode()),
            Content::Thinking(text) => format!("think{:?}", text.decode()),
            Content::ToolCall(call) => {
                let input = match &call.input {
                    ToolInput::Json(raw) => raw.as_str().to_owned(),
                    ToolInput::Text(text) => format!("{:?}", text.decode()),
                };
                format!("call[{} {} {input}]", call.id, call.name)
            }
            Content::ToolResult(result) => format!(
                "result[{}{} {}]",
                result.call_id,
                match result.is_error {
                    Some(true) => "!",
                    Some(false) => ".",
                    None => "",
                },
                blocks(&result.content)
            ),
            Content::Image(media) => format!("image[{}]", media.name.as_deref().unwrap_or("")),
            Content::Document(media) => {
                format!("document[{}]", media.name.as_deref().unwrap_or(""))
            }
            Content::Compaction(_) => "compaction".to_owned(),
            Content::Other(kind) => format!("other[{kind}]"),
        }
    }
    messages
        .iter()
        .map(|message| {
            let author = match message.author {
                Author::Role => "",
                Author::Client => "(client)",
                Author::Agent => "(agent)",
                Author::Compaction => "(compaction)",
            };
            format!("{:?}{author}: {}\n", message.role, blocks(&message.blocks))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        let message = message(&Raw::parse(json).unwrap()).unwrap();
        assert_eq!(outline(&[message]).trim_end(), expected);
    }

    #[test]
    fn roles_and_texts() {
        check(
            r#"{"role":"developer","content":"be brief"}"#,
            r#"System: "be brief""#,
        );
        check(
            r#"{"role":"user","content":["a",{"type":"text","text":"b"}]}"#,
            r#"User: "a" "b""#,
        );
        check(r#"{"role":"assistant","content":null}"#, "Assistant:");
        assert!(message(&Raw::parse(r#"{"role":"narrator","content":"x"}"#).unwrap()).is_none());
    }

    #[test]
    fn calls_in_every_dialect() {
        check(
            r#"{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"2","name":"g","arguments":{"b":2}},{"id":"3","function":{"name":"h","arguments":"{torn"}}]}"#,
            r#"Assistant: call[1 f {"a":1}] call[2 g {"b":2}] call[3 h "{torn"]"#,
        );
        check(
            r#"{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}"#,
            "Assistant: call[ f {}]",
        );
    }

    #[test]
    fn a_call_in_content_and_in_tool_calls_is_one_call() {
        check(
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}],"tool_calls":[{"id":"1","name":"f","args":{}},{"id":"2","name":"g","args":{}}]}"#,
            "Assistant: call[1 f {}] call[2 g {}]",
        );
    }

    #[test]
    fn results_and_pictures() {
        check(
            r#"{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"ok"}]}"#,
            r#"Tool: result[1 "ok"]"#,
        );
        check(
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.test/a.png"}},{"type":"input_audio"}]}"#,
            "User: image[https://x.test/a.png] other[input_audio]",
        );
    }
}
