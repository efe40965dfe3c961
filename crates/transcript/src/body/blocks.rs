//! Content blocks of the three wire formats.
//!
//! The names of block types do not clash between the formats, so one reader knows them all. A body that mixes them
//! (gateways write such bodies) is then read as well as a pure one.

use bytestring::ByteString;

use crate::json::{Kind, Raw, Text};
use crate::message::{Block, Content, Media, ToolCall, ToolInput, ToolResult};

/// Results hold blocks, and those may hold blocks again. Below this level they are kept unread.
const DEPTH_MAX: usize = 4;

/// The blocks of a `content` field: a string, an array of blocks, or a single block.
pub(super) fn content(value: &Raw) -> Vec<Block> {
    content_at(value, 0)
}

fn content_at(value: &Raw, depth: usize) -> Vec<Block> {
    match value.kind() {
        Kind::Null => Vec::new(),
        // The string form has no JSON of a block.
        Kind::String => vec![Block::text(text_of(Some(value)))],
        Kind::Array => value.array().map(|raw| block_at(raw, depth)).collect(),
        Kind::Object => vec![block_at(value.clone(), depth)],
        Kind::Number | Kind::Bool => vec![Block::text(Text::plain(value.as_bytestring().clone()))],
    }
}

/// One block.
pub(super) fn block(raw: Raw) -> Block {
    block_at(raw, 0)
}

fn block_at(raw: Raw, depth: usize) -> Block {
    let content = match raw.kind() {
        Kind::String => Content::Text(text_of(Some(&raw))),
        Kind::Object => read(&raw, depth),
        _ => Content::Other(ByteString::from_static("not-an-object")),
    };
    Block {
        content,
        raw: Some(raw),
    }
}

fn read(raw: &Raw, depth: usize) -> Content {
    let fields = Fields::of(raw);
    let kind = fields.kind.as_ref().map(Text::decode).unwrap_or_default();
    match kind.as_ref() {
        // Lenient servers take blocks that have a text and no type.
        "" | "text" | "input_text" | "output_text" | "summary_text" => {
            match fields.text.as_ref().and_then(Raw::as_text) {
                Some(text) => Content::Text(text),
                None => Content::Other(ByteString::from(kind.as_ref())),
            }
        }
        "refusal" => Content::Text(text_of(fields.refusal.as_ref())),
        "thinking" => Content::Thinking(text_of(fields.thinking.as_ref())),
        "redacted_thinking" => Content::Thinking("".into()),
        "reasoning_text" => Content::Thinking(text_of(fields.text.as_ref())),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => Content::ToolCall(ToolCall {
            id: name_of(fields.id.as_ref()),
            name: name_of(fields.name.as_ref()),
            input: json_input(fields.input.as_ref()),
            is_server_side: kind != "tool_use",
        }),
        "tool_result" => result(&fields, false, depth),
        "image" => Content::Image(media(fields.source.as_ref())),
        "document" => {
            let found = media(fields.source.as_ref());
            Content::Document(Media {
                name: string_of(fields.title.as_ref()).or(found.name),
                ..found
            })
        }
        "search_result" => named(string_of(fields.title.as_ref().or(fields.source.as_ref()))),
        "container_upload" => named(string_of(fields.file_id.as_ref())),
        "image_url" => Content::Image(match &fields.image_url {
            Some(image) => from_url(image.text_field("url").or(image.as_text()).as_ref()),
            None => Media::default(),
        }),
        "input_image" | "computer_screenshot" => {
            Content::Image(match fields.image_url.as_ref().and_then(Raw::as_text) {
                Some(url) => from_url(Some(&url)),
                None => Media {
                    name: string_of(fields.file_id.as_ref()),
                    ..Media::default()
                },
            })
        }
        "file" => Content::Document(match &fields.file {
            Some(file) => file_media(&Fields::of(file)),
            None => file_media(&fields),
        }),
        "input_file" => Content::Document(file_media(&fields)),
        "compaction" => Content::Compaction(
            fields
                .content
                .as_ref()
                .and_then(Raw::as_text)
                .filter(|text| !text.is_blank()),
        ),
        // What a search found: title and address are the readable part of it.
        "web_search_result" => Content::Text(
            format!(
                "{}\n{}",
                text_of(fields.title.as_ref()),
                text_of(fields.url.as_ref())
            )
            .into(),
        ),
        "web_fetch_result" => match fields.content.as_ref().and_then(page_text) {
            Some(text) => Content::Text(text),
            None => named(string_of(fields.url.as_ref())),
        },
        kind if kind.ends_with("_tool_result") => result(&fields, true, depth),
        kind if kind.ends_with("code_execution_result") => {
            let stdout = text_of(fields.stdout.as_ref());
            let stderr = text_of(fields.stderr.as_ref());
            Content::Text(match (stdout.is_blank(), stderr.is_blank()) {
                (_, true) => stdout,
                (true, false) => stderr,
                (false, false) => format!("{stdout}\n{stderr}").into(),
            })
        }
        kind if kind.ends_with("_tool_result_error") => {
            Content::Text(text_of(fields.error_code.as_ref()))
        }
        kind => Content::Other(ByteString::from(kind)),
    }
}

/// The text of a fetched page, if it is text.
fn page_text(page: &Raw) -> Option<Text> {
    let source = page.field("source")?;
    if source.text_field("type")?.decode() == "text" {
        source.text_field("data")
    } else {
        None
    }
}

fn named(name: Option<ByteString>) -> Content {
    Content::Document(Media {
        name,
        ..Media::default()
    })
}

/// Arguments that are a JSON value. Some write them as a string that holds JSON.
pub(super) fn json_input(input: Option<&Raw>) -> ToolInput {
    match input {
        Some(value) => match value.as_text() {
            Some(text) => ToolInput::from_encoded(&text),
            None => ToolInput::Json(value.clone()),
        },
        None => ToolInput::Text("".into()),
    }
}

fn result(fields: &Fields, is_server_side: bool, depth: usize) -> Content {
    let content = match &fields.content {
        Some(content) if depth < DEPTH_MAX => content_at(content, depth + 1),
        Some(content) => vec![Block {
            content: Content::Other(ByteString::from_static("nested-too-deep")),
            raw: Some(content.clone()),
        }],
        None => Vec::new(),
    };
    // Server tools report a failure as a block of another kind instead of the content.
    let is_error_block = is_server_side
        && fields.content.as_ref().is_some_and(|content| {
            content
                .text_field("type")
                .is_some_and(|kind| kind.decode().ends_with("_tool_result_error"))
        });
    Content::ToolResult(ToolResult {
        call_id: name_of(fields.tool_use_id.as_ref()),
        content,
        is_error: fields
            .is_error
            .as_ref()
            .and_then(Raw::as_bool)
            .or(is_error_block.then_some(true)),
        is_server_side,
    })
}

/// A `source` of the Anthropic format.
fn media(source: Option<&Raw>) -> Media {
    let mut found = Media::default();
    let Some(source) = source else { return found };
    let mut is_text = false;
    let mut data = None;
    for (key, value) in source.object() {
        let Some(text) = value.as_text() else {
            continue;
        };
        match key.decode().as_ref() {
            "type" => is_text = text.decode() == "text",
            "media_type" => found.media_type = Some(text.to_bytestring()),
            "data" => data = Some(text),
            "url" | "file_id" => found.name = Some(text.to_bytestring()),
            _ => {}
        }
    }
    found.data_bytes = data.map(|data| {
        let data = data.decode();
        if is_text {
            data.len()
        } else {
            base64_len(&data)
        }
    });
    found
}

/// A `data:` address holds the data; another one names where it is.
fn from_url(url: Option<&Text>) -> Media {
    let Some(url) = url else {
        return Media::default();
    };
    let decoded = url.decode();
    let Some((head, data)) = decoded
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(','))
    else {
        return Media {
            name: Some(url.to_bytestring()),
            ..Media::default()
        };
    };
    let media_type = head.split(';').next().filter(|name| !name.is_empty());
    Media {
        media_type: media_type.map(ByteString::from),
        data_bytes: Some(if head.ends_with(";base64") {
            base64_len(data)
        } else {
            data.len()
        }),
        name: None,
    }
}

fn file_media(fields: &Fields) -> Media {
    let found = match fields.file_data.as_ref().and_then(Raw::as_text) {
        Some(data) if data.decode().starts_with("data:") => from_url(Some(&data)),
        Some(data) => Media {
            data_bytes: Some(base64_len(&data.decode())),
            ..Media::default()
        },
        None => Media::default(),
    };
    Media {
        name: string_of(fields.filename.as_ref())
            .or_else(|| string_of(fields.url.as_ref()))
            .or_else(|| string_of(fields.file_id.as_ref())),
        ..found
    }
}

/// The decoded size of a base64 text, bytes, computed from its length.
fn base64_len(data: &str) -> usize {
    let padding = data
        .bytes()
        .rev()
        .take(2)
        .filter(|byte| *byte == b'=')
        .count();
    (data.len() - padding) * 3 / 4
}

/// The string in a field; empty if there is none.
pub(super) fn name_of(value: Option<&Raw>) -> ByteString {
    string_of(value).unwrap_or_default()
}

fn string_of(value: Option<&Raw>) -> Option<ByteString> {
    value?.as_text().map(|text| text.to_bytestring())
}

/// The text in a field; empty if there is none.
pub(super) fn text_of(value: Option<&Raw>) -> Text {
    value.and_then(Raw::as_text).unwrap_or_else(|| "".into())
}

macro_rules! fields {
    ($($name:ident),* $(,)?) => {
        /// The fields of a block, item or message that are looked at, found in one walk over it.
        #[derive(Default)]
        pub(super) struct Fields {
            /// `type`, if it is a string.
            pub(super) kind: Option<Text>,
            $(pub(super) $name: Option<Raw>,)*
        }

        impl Fields {
            pub(super) fn of(raw: &Raw) -> Self {
                let mut fields = Self::default();
                for (key, value) in raw.object() {
                    match key.decode().as_ref() {
                        "type" => fields.kind = value.as_text(),
                        "file_url" => fields.url = Some(value),
                        $(stringify!($name) => fields.$name = Some(value),)*
                        _ => {}
                    }
                }
                fields
            }
        }
    };
}

fields! {
    action, approval_request_id, approve, arguments, audio, call_id, code, content, custom, encrypted_content, error,
    error_code, file, file_data, file_id, filename, function, function_call, id, image_url, input, is_error, name,
    operation, output, outputs, queries, reasoning, reasoning_content, refusal, result, results, role, source, stderr,
    stdout, summary, text, thinking, title, tool_call_id, tool_calls, tool_use_id, url,
}
