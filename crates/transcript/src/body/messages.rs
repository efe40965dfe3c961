//! Messages of Anthropic and Chat Completions requests, items of Responses requests.
//!
//! As with blocks, the three do not clash: what has a role is a message, what has only a type is an item.

use bytestring::ByteString;

use super::blocks::{self, Fields, json_input, name_of, text_of};
use crate::json::{Raw, Text};
use crate::message::{Author, Block, Content, Message, Role, ToolCall, ToolInput, ToolResult};

/// What a message is read as, and what is odd about it.
pub(super) struct Read {
    pub(super) message: Message,
    pub(super) oddity: Option<(&'static str, String)>,
}

/// How the notices begin that tools put in the place of what they compacted away.
const COMPACTION_NOTICES: [&str; 3] = [
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "The conversation history before this point was compacted into the following summary",
];

/// Reads a message or an item; `None` if it is not an object.
pub(super) fn read(raw: &Raw) -> Option<Read> {
    if raw.kind() != crate::json::Kind::Object {
        return None;
    }
    let fields = Fields::of(raw);
    let has_role = fields.role.as_ref().and_then(Raw::as_text).is_some();
    let mut read = match &fields.kind {
        Some(kind) if !has_role && kind.decode() != "message" => Read {
            message: item(raw, &fields, kind),
            oddity: None,
        },
        _ => message(raw, &fields),
    };
    read.message.raw = Some(raw.clone());
    read.message.id = fields
        .id
        .as_ref()
        .and_then(Raw::as_text)
        .map(|id| id.to_bytestring());
    if is_compaction(&read.message) {
        read.message.author = Author::Compaction;
    }
    Some(read)
}

fn message(raw: &Raw, fields: &Fields) -> Read {
    let name = text_of(fields.role.as_ref());
    let mut oddity = None;
    let role = match name.decode().as_ref() {
        "user" | "human" => Role::User,
        "assistant" | "model" => Role::Assistant,
        "system" | "developer" => Role::System,
        "tool" | "function" => Role::Tool,
        "" => {
            oddity = Some((
                "no-role",
                "the message has no role and is read as the user's".to_owned(),
            ));
            Role::User
        }
        other => {
            let name: String = other.chars().take(40).collect();
            oddity = Some((
                "unknown-role",
                format!("the role {name:?} is not known and is read as the user's"),
            ));
            Role::User
        }
    };
    let mut content = fields
        .content
        .as_ref()
        .map(blocks::content)
        .unwrap_or_default();
    if role == Role::Tool && !content.iter().any(is_result) {
        let call_id = name_of(
            fields
                .tool_call_id
                .as_ref()
                .or(fields.call_id.as_ref())
                .or(fields.tool_use_id.as_ref()),
        );
        content = vec![result(raw, call_id, content, None)];
    }
    let mut blocks = Vec::with_capacity(content.len());
    for reasoning in [&fields.reasoning_content, &fields.reasoning] {
        if let Some(text) = reasoning.as_ref().and_then(Raw::as_text)
            && blocks.is_empty()
            && text.encoded_len() > 0
        {
            blocks.push(Block::new(Content::Thinking(text)));
        }
    }
    // A null or empty content beside tool calls says nothing.
    let has_calls = fields.tool_calls.is_some() || fields.function_call.is_some();
    if has_calls {
        content.retain(
            |block| !matches!(&block.content, Content::Text(text) if text.encoded_len() == 0),
        );
    }
    blocks.append(&mut content);
    if let Some(refusal) = fields.refusal.as_ref().and_then(Raw::as_text) {
        blocks.push(Block::text(refusal));
    }
    if let Some(audio) = fields.audio.as_ref().filter(|audio| !audio.is_null()) {
        blocks.push(Block {
            content: Content::Other(ByteString::from_static("audio")),
            raw: Some(audio.clone()),
        });
    }
    if let Some(calls) = &fields.tool_calls {
        blocks.extend(calls.array().map(chat_call));
    }
    if let Some(call) = fields.function_call.as_ref().filter(|call| !call.is_null()) {
        let function = Fields::of(call);
        blocks.push(Block {
            content: Content::ToolCall(ToolCall {
                id: ByteString::new(),
                name: name_of(function.name.as_ref()),
                input: json_input(function.arguments.as_ref()),
                is_server_side: false,
            }),
            raw: Some(call.clone()),
        });
    }
    Read {
        message: Message::new(role, blocks),
        oddity,
    }
}

fn is_result(block: &Block) -> bool {
    matches!(block.content, Content::ToolResult(_))
}

/// An element of `tool_calls`.
fn chat_call(raw: Raw) -> Block {
    let fields = Fields::of(&raw);
    let (name, input) = match (&fields.function, &fields.custom) {
        (Some(function), _) => {
            let function = Fields::of(function);
            (
                name_of(function.name.as_ref()),
                json_input(function.arguments.as_ref()),
            )
        }
        (None, Some(custom)) => {
            let custom = Fields::of(custom);
            (
                name_of(custom.name.as_ref()),
                ToolInput::Text(text_of(custom.input.as_ref())),
            )
        }
        (None, None) => (
            name_of(fields.name.as_ref()),
            json_input(fields.arguments.as_ref().or(fields.input.as_ref())),
        ),
    };
    Block {
        content: Content::ToolCall(ToolCall {
            id: name_of(fields.id.as_ref()),
            name,
            input,
            is_server_side: false,
        }),
        raw: Some(raw),
    }
}

/// An item of a Responses request that is not a message. Blocks have the item as their raw text.
fn item(raw: &Raw, fields: &Fields, kind: &Text) -> Message {
    let kind = kind.decode();
    let call_id = || name_of(fields.call_id.as_ref().or(fields.id.as_ref()));
    let block = |content| Block {
        content,
        raw: Some(raw.clone()),
    };
    let call = |id, name, input, is_server_side| {
        block(Content::ToolCall(ToolCall {
            id,
            name,
            input,
            is_server_side,
        }))
    };
    match kind.as_ref() {
        "reasoning" => Message::new(
            Role::Assistant,
            vec![block(Content::Thinking(reasoning(fields)))],
        ),
        "function_call" => {
            let input = json_input(fields.arguments.as_ref());
            let name = name_of(fields.name.as_ref());
            Message::new(Role::Assistant, vec![call(call_id(), name, input, false)])
        }
        "custom_tool_call" => {
            let input = ToolInput::Text(text_of(fields.input.as_ref()));
            let name = name_of(fields.name.as_ref());
            Message::new(Role::Assistant, vec![call(call_id(), name, input, false)])
        }
        // Tools of the provider's design that the client runs: the output is a separate item.
        "local_shell_call" | "shell_call" | "computer_call" | "apply_patch_call" => {
            let input = json_input(fields.action.as_ref().or(fields.operation.as_ref()));
            let name = ByteString::from(kind.trim_end_matches("_call"));
            Message::new(Role::Assistant, vec![call(call_id(), name, input, false)])
        }
        // The provider runs these and says the result in a later item.
        "tool_search_call" | "program" => {
            let input = json_input(
                fields
                    .arguments
                    .as_ref()
                    .or(fields.code.as_ref())
                    .or(fields.queries.as_ref()),
            );
            let name = ByteString::from(kind.trim_end_matches("_call"));
            Message::new(Role::Assistant, vec![call(call_id(), name, input, true)])
        }
        "mcp_approval_request" => {
            let input = json_input(fields.arguments.as_ref());
            let name = name_of(fields.name.as_ref());
            Message::new(
                Role::Assistant,
                vec![call(name_of(fields.id.as_ref()), name, input, true)],
            )
        }
        "mcp_approval_response" => {
            let is_approved = fields.approve.as_ref().and_then(Raw::as_bool);
            let answer = match is_approved {
                Some(false) => "denied",
                _ => "approved",
            };
            let id = name_of(fields.approval_request_id.as_ref());
            Message::new(
                Role::Tool,
                vec![server_result(raw, id, vec![Block::text(answer)], None)],
            )
        }
        // The provider runs these; call and result are one item.
        "web_search_call"
        | "file_search_call"
        | "code_interpreter_call"
        | "image_generation_call"
        | "mcp_call" => {
            let id = name_of(fields.id.as_ref());
            let input = json_input(
                [
                    &fields.arguments,
                    &fields.action,
                    &fields.code,
                    &fields.queries,
                ]
                .into_iter()
                .flatten()
                .next(),
            );
            let name = match kind.as_ref() {
                "mcp_call" => name_of(fields.name.as_ref()),
                other => ByteString::from(other.trim_end_matches("_call")),
            };
            let error = fields.error.as_ref().filter(|error| !error.is_null());
            let mut content = Vec::new();
            for value in [
                &fields.output,
                &fields.outputs,
                &fields.results,
                &fields.result,
            ] {
                if let Some(value) = value.as_ref().filter(|value| !value.is_null()) {
                    content.extend(hosted_output(value, &kind));
                }
            }
            if let Some(error) = error {
                content.push(Block::text(
                    error
                        .as_text()
                        .unwrap_or_else(|| Text::plain(error.as_bytestring().clone())),
                ));
            }
            Message::new(
                Role::Assistant,
                vec![
                    call(id.clone(), name, input, true),
                    server_result(raw, id, content, error.map(|_| true)),
                ],
            )
        }
        "compaction" | "compaction_summary" => {
            let content = fields
                .content
                .as_ref()
                .and_then(Raw::as_text)
                .filter(|text| !text.is_blank());
            let mut message =
                Message::new(Role::Assistant, vec![block(Content::Compaction(content))]);
            message.author = Author::Compaction;
            message
        }
        // Settings of the operator, not something that the model said.
        "compaction_trigger" | "configuration_update" | "additional_tools" => Message::new(
            Role::System,
            vec![block(Content::Other(ByteString::from(kind.as_ref())))],
        ),
        "tool_search_output" | "program_output" => Message::new(
            Role::Assistant,
            vec![server_result(raw, call_id(), outputs(fields), None)],
        ),
        kind if kind.ends_with("_output") => Message::new(
            Role::Tool,
            vec![result(raw, call_id(), outputs(fields), None)],
        ),
        kind => Message::new(
            Role::Assistant,
            vec![block(Content::Other(ByteString::from(kind)))],
        ),
    }
}

fn result(raw: &Raw, call_id: ByteString, content: Vec<Block>, is_error: Option<bool>) -> Block {
    Block {
        content: Content::ToolResult(ToolResult {
            call_id,
            content,
            is_error,
            is_server_side: false,
        }),
        raw: Some(raw.clone()),
    }
}

fn server_result(
    raw: &Raw,
    call_id: ByteString,
    content: Vec<Block>,
    is_error: Option<bool>,
) -> Block {
    Block {
        content: Content::ToolResult(ToolResult {
            call_id,
            content,
            is_error,
            is_server_side: true,
        }),
        raw: Some(raw.clone()),
    }
}

fn outputs(fields: &Fields) -> Vec<Block> {
    fields
        .output
        .as_ref()
        .or(fields.content.as_ref())
        .map(blocks::content)
        .unwrap_or_default()
}

/// The output of a hosted tool: blocks if it is text, else the JSON unchanged.
fn hosted_output(value: &Raw, kind: &str) -> Vec<Block> {
    if kind == "image_generation_call" {
        return vec![Block {
            content: Content::Image(crate::message::Media {
                data_bytes: Some(value.len() * 3 / 4),
                ..Default::default()
            }),
            raw: None,
        }];
    }
    match value.as_text() {
        Some(text) => vec![Block::text(text)],
        None => vec![Block::text(Text::plain(value.as_bytestring().clone()))],
    }
}

/// The readable part of a reasoning item: its summary, else its content.
fn reasoning(fields: &Fields) -> Text {
    for part in [&fields.summary, &fields.content] {
        let mut texts: Vec<Text> = part
            .iter()
            .flat_map(|parts| parts.array().collect::<Vec<_>>())
            .filter_map(|part| part.text_field("text"))
            .collect();
        match texts.len() {
            0 => {}
            1 => return texts.remove(0),
            _ => {
                let texts: Vec<_> = texts.iter().map(Text::decode).collect();
                return texts.join("\n\n").into();
            }
        }
    }
    "".into()
}

fn is_compaction(message: &Message) -> bool {
    message.blocks.iter().any(|block| match &block.content {
        Content::Compaction(_) => true,
        Content::Text(text) if message.role == Role::User => {
            let text = text.prefix(COMPACTION_NOTICE_BYTES);
            let text = text.trim_start();
            COMPACTION_NOTICES
                .iter()
                .any(|notice| text.starts_with(notice))
        }
        _ => false,
    })
}

/// How far into a text a notice is searched for, bytes: white space and the longest notice.
const COMPACTION_NOTICE_BYTES: usize = 160;
