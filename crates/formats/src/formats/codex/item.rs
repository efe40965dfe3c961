//! Items of the Responses API, as a rollout holds them.

use bytestring::ByteString;
use throughline_transcript::json::tape::View;
use throughline_transcript::json::{Raw, Text};
use throughline_transcript::message::{
    Author, Block, Content, Media, Message, Role, ToolCall, ToolInput, ToolResult,
};

use crate::formats::anthropic_content::base64_bytes;

/// Longest output that is looked into for the form that older versions gave it, in bytes.
const WRAPPED_OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Whether the value is an item without a wrapper.
pub(super) fn is_item(value: View<'_>) -> bool {
    matches!(
        value.string_field("type").as_deref(),
        Some(
            "message"
                | "reasoning"
                | "function_call"
                | "function_call_output"
                | "custom_tool_call"
                | "custom_tool_call_output"
                | "local_shell_call"
                | "web_search_call"
        )
    )
}

/// The message that an item is, or is a part of. `None` for items that the model does not see.
pub(super) fn read(item: View<'_>) -> Option<Message> {
    let kind = item.string_field("type")?;
    let name = |key| {
        item.field(key)
            .and_then(View::to_bytestring)
            .unwrap_or_default()
    };
    let raw = Some(item.raw());
    let one = |role, content| {
        let block = Block {
            content,
            raw: Some(item.raw()),
        };
        Message::new(role, vec![block])
    };
    let call = |id: ByteString, tool: ByteString, input, is_server_side| {
        one(
            Role::Assistant,
            Content::ToolCall(ToolCall {
                id,
                name: tool,
                input,
                is_server_side,
            }),
        )
    };
    let json = |key| {
        item.field(key).map_or_else(
            || ToolInput::Text("".into()),
            |input| ToolInput::Json(input.raw()),
        )
    };
    let text_of = |key| {
        item.field(key)
            .and_then(View::as_text)
            .unwrap_or_else(|| "".into())
    };
    let mut message = match kind.as_ref() {
        "message" => spoken(item)?,
        "reasoning" => reasoning(item),
        "function_call" => call(
            name("call_id"),
            name("name"),
            ToolInput::from_encoded(&text_of("arguments")),
            false,
        ),
        "custom_tool_call" => call(
            name("call_id"),
            name("name"),
            ToolInput::Text(text_of("input")),
            false,
        ),
        "local_shell_call" => {
            let id = item.field("call_id").and_then(View::to_bytestring);
            call(
                id.unwrap_or_else(|| name("id")),
                "local_shell".into(),
                json("action"),
                false,
            )
        }
        "web_search_call" => call(name("id"), "web_search".into(), json("action"), true),
        kind if kind.ends_with("_call_output") || kind == "tool_search_output" => one(
            Role::Tool,
            Content::ToolResult(result(name("call_id"), item.field("output"))),
        ),
        "compaction" | "compaction_summary" | "context_compaction" => {
            // Without a text only the provider can read it.
            let text = item.field("summary").or_else(|| item.field("text"));
            let mut message = one(
                Role::User,
                Content::Compaction(text.and_then(View::as_text)),
            );
            message.author = Author::Compaction;
            message
        }
        "ghost_snapshot" | "compaction_trigger" => return None,
        "agent_message" => one(Role::Assistant, Content::Text(text_of("text"))),
        kind => one(Role::Assistant, Content::Other(kind.into())),
    };
    message.id = item.field("id").and_then(View::to_bytestring);
    message.raw = raw;
    Some(message)
}

fn spoken(item: View<'_>) -> Option<Message> {
    let role = match item.string_field("role")?.as_ref() {
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        _ => Role::User,
    };
    let blocks = item.field("content").map(content).unwrap_or_default();
    Some(Message::new(role, blocks))
}

/// Parts of a message or of a result.
fn content(value: View<'_>) -> Vec<Block> {
    match value.as_text() {
        Some(text) => vec![Block::text(text)],
        None => value.elements().map(part).collect(),
    }
}

fn part(value: View<'_>) -> Block {
    let kind = value.string_field("type").unwrap_or_default();
    let text = |key| {
        value
            .field(key)
            .and_then(View::as_text)
            .unwrap_or_else(|| "".into())
    };
    let content = match kind.as_ref() {
        "input_text" | "output_text" | "text" => Content::Text(text("text")),
        "refusal" => Content::Text(text("refusal")),
        "input_image" => Content::Image(picture(value)),
        "input_file" => Content::Document(Media {
            name: value
                .field("filename")
                .or_else(|| value.field("file_id"))
                .and_then(View::to_bytestring),
            data_bytes: value
                .field("file_data")
                .and_then(View::as_text)
                .map(|data| base64_bytes(data.encoded_len())),
            media_type: None,
        }),
        kind => Content::Other(kind.into()),
    };
    Block {
        content,
        raw: Some(value.raw()),
    }
}

/// A picture: its address, or `data:image/png;base64,...`.
fn picture(value: View<'_>) -> Media {
    let Some(url) = value.field("image_url").and_then(View::decode) else {
        return Media {
            name: value.field("file_id").and_then(View::to_bytestring),
            ..Media::default()
        };
    };
    match url
        .strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"))
    {
        Some((media_type, data)) => Media {
            media_type: Some(media_type.into()),
            data_bytes: Some(base64_bytes(data.len())),
            name: None,
        },
        None => Media {
            name: Some(url.as_ref().into()),
            ..Media::default()
        },
    }
}

fn reasoning(item: View<'_>) -> Message {
    let parts = ["summary", "content"]
        .into_iter()
        .filter_map(|key| item.field(key))
        .flat_map(View::elements)
        .filter_map(|part| part.field("text")?.as_text());
    let mut blocks: Vec<Block> = parts
        .map(|text| Block {
            content: Content::Thinking(text),
            raw: None,
        })
        .collect();
    if blocks.is_empty() {
        blocks.push(Block::new(Content::Thinking("".into())));
    }
    // The item is one piece for the provider; the first of its texts has its slice.
    blocks[0].raw = Some(item.raw());
    Message::new(Role::Assistant, blocks)
}

fn result(call_id: ByteString, output: Option<View<'_>>) -> ToolResult {
    let mut result = ToolResult {
        call_id,
        content: Vec::new(),
        is_error: None,
        is_server_side: false,
    };
    let Some(output) = output else {
        return result;
    };
    if output.is_object() {
        result.content = output.field("content").map(content).unwrap_or_default();
        result.is_error = output
            .field("success")
            .and_then(View::as_bool)
            .map(|is_ok| !is_ok);
        return result;
    }
    result.content = content(output);
    if let [
        Block {
            content: Content::Text(head),
            ..
        },
        _,
        ..,
    ] = result.content.as_slice()
        && head.prefix(13).as_ref() == "Script failed"
    {
        result.is_error = Some(true);
    }
    if let [
        Block {
            content: Content::Text(text),
            ..
        },
    ] = result.content.as_mut_slice()
    {
        result.is_error = exit_code(text).map(|code| code != 0);
        if let Some((inner, code)) = wrapped_output(text) {
            result.is_error = code.map(|code| code != 0.0);
            *text = inner;
        }
    }
    result
}

/// Older versions put the output of a command into a JSON object, encoded as a string.
fn wrapped_output(text: &Text) -> Option<(Text, Option<f64>)> {
    if text.encoded_len() > WRAPPED_OUTPUT_BYTES_MAX || !text.prefix(16).starts_with("{\"output\":")
    {
        return None;
    }
    let object = Raw::parse(text.decode().into_owned()).ok()?;
    let code = object
        .field("metadata")
        .and_then(|metadata| metadata.field("exit_code"))
        .and_then(|code| code.as_f64());
    Some((object.text_field("output")?, code))
}

/// Newer versions write it into the first lines of the output.
fn exit_code(text: &Text) -> Option<i64> {
    let head = text.prefix(300);
    let line = head.lines().take(6).find_map(|line| {
        line.strip_prefix("Exit code: ")
            .or_else(|| line.strip_prefix("Process exited with code "))
    })?;
    line.trim().parse().ok()
}

/// Beginnings of texts that the client puts into user messages.
const CLIENT_TEXTS: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<user_shell_command>",
    "<skill>",
    "<subagent_notification>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "# Context from my IDE setup:",
];

/// Whether a text is one element with a name of the client's kind, such as `<recommended_plugins>`, and nothing else.
fn is_client_element(text: &Text) -> bool {
    let head = text.prefix(60);
    let Some((name, _)) = head
        .trim_start()
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
    else {
        return false;
    };
    let is_name = name.contains('_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name && text.decode().trim_end().ends_with(&format!("</{name}>"))
}

/// The line before the user's own words, in messages to which an editor adds its state.
const REQUEST_HEADING: &str = "## My request for Codex:";

/// Splits a user message into what the client put in and what the user said.
pub(super) fn parted(mut message: Message) -> Vec<Message> {
    if message.role != Role::User || message.author != Author::Role {
        return vec![message];
    }
    let mut parts: Vec<(Author, Vec<Block>)> = Vec::new();
    let mut add = |author, block| match parts.last_mut() {
        Some((last, blocks)) if *last == author => blocks.push(block),
        _ => parts.push((author, vec![block])),
    };
    for block in std::mem::take(&mut message.blocks) {
        let Content::Text(text) = &block.content else {
            add(Author::Role, block);
            continue;
        };
        let head = text.prefix(100);
        let is_clients = CLIENT_TEXTS
            .iter()
            .any(|start| head.trim_start().starts_with(start))
            || is_client_element(text);
        if !is_clients {
            add(Author::Role, block);
            continue;
        }
        let whole = text.decode();
        match whole.split_once(REQUEST_HEADING) {
            Some((context, request)) if !request.trim().is_empty() => {
                add(Author::Client, Block::text(context.trim().to_owned()));
                add(
                    Author::Role,
                    Block {
                        content: Content::Text(request.trim().to_owned().into()),
                        raw: block.raw.clone(),
                    },
                );
            }
            _ => add(Author::Client, block),
        }
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let is_one = parts.len() == 1;
    parts
        .into_iter()
        .map(|(author, blocks)| Message {
            author,
            blocks,
            raw: message.raw.clone().filter(|_| is_one),
            ..message.clone()
        })
        .collect()
}
