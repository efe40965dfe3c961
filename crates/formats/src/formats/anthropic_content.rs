//! Content blocks of the Anthropic Messages API, as several session files hold them.

use bytestring::ByteString;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Block, Content, Media, ToolCall, ToolInput, ToolResult};
use throughline_transcript::usage::Usage;

/// How deep tool results may hold blocks: a result holds text and media, nothing that holds blocks again.
const RESULT_DEPTH_MAX: usize = 2;

/// The blocks of a `content` value: a string is one text block, an empty one none.
pub(crate) fn content(value: View<'_>) -> Vec<Block> {
    content_at(value, 0)
}

fn content_at(value: View<'_>, depth: usize) -> Vec<Block> {
    match value.as_text() {
        Some(text) if text.encoded_len() == 0 => Vec::new(),
        Some(text) => vec![Block::text(text)],
        None if value.is_object() => vec![block_at(value, depth)],
        None => value
            .elements()
            .map(|element| block_at(element, depth))
            .collect(),
    }
}

/// One content block.
pub(crate) fn block(value: View<'_>) -> Block {
    block_at(value, 0)
}

fn block_at(value: View<'_>, depth: usize) -> Block {
    let raw = Some(value.raw());
    if let Some(text) = value.as_text() {
        return Block {
            content: Content::Text(text),
            raw,
        };
    }
    let kind = value
        .field("type")
        .and_then(View::to_bytestring)
        .unwrap_or_default();
    let content = match kind.as_ref() {
        "text" => Content::Text(text_field(value, "text")),
        "thinking" => Content::Thinking(text_field(value, "thinking")),
        "redacted_thinking" => Content::Thinking("".into()),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => tool_call(value, &kind),
        "image" => Content::Image(media(value)),
        "document" => Content::Document(media(value)),
        "compaction" => Content::Compaction(value.field("content").and_then(View::as_text)),
        kind if kind.ends_with("tool_result") && depth < RESULT_DEPTH_MAX => {
            tool_result(value, kind, depth)
        }
        _ => Content::Other(kind),
    };
    Block { content, raw }
}

fn tool_call(value: View<'_>, kind: &str) -> Content {
    let mut call = ToolCall {
        id: ByteString::new(),
        name: ByteString::new(),
        input: ToolInput::Text("".into()),
        is_server_side: kind != "tool_use",
    };
    for (key, field) in value.fields() {
        match key.as_ref() {
            "id" => call.id = field.to_bytestring().unwrap_or_default(),
            "name" => call.name = field.to_bytestring().unwrap_or_default(),
            "input" => call.input = ToolInput::Json(field.raw()),
            _ => {}
        }
    }
    Content::ToolCall(call)
}

fn tool_result(value: View<'_>, kind: &str, depth: usize) -> Content {
    let mut result = ToolResult {
        call_id: ByteString::new(),
        content: Vec::new(),
        is_error: None,
        is_server_side: kind != "tool_result",
    };
    for (key, field) in value.fields() {
        match key.as_ref() {
            "tool_use_id" => result.call_id = field.to_bytestring().unwrap_or_default(),
            "content" => result.content = content_at(field, depth + 1),
            "is_error" => result.is_error = field.as_bool(),
            _ => {}
        }
    }
    Content::ToolResult(result)
}

fn media(value: View<'_>) -> Media {
    let mut media = Media {
        name: value.field("title").and_then(View::to_bytestring),
        ..Media::default()
    };
    let Some(source) = value.field("source") else {
        return media;
    };
    for (key, field) in source.fields() {
        match key.as_ref() {
            "media_type" => media.media_type = field.to_bytestring(),
            "data" => {
                media.data_bytes = field.as_text().map(|data| base64_bytes(data.encoded_len()))
            }
            "url" | "file_id" => media.name = field.to_bytestring(),
            _ => {}
        }
    }
    media
}

/// Size of what `length` characters of base64 hold, to within two bytes.
pub(crate) fn base64_bytes(length: usize) -> usize {
    length / 4 * 3
}

fn text_field(value: View<'_>, key: &str) -> throughline_transcript::json::Text {
    value
        .field(key)
        .and_then(View::as_text)
        .unwrap_or_else(|| "".into())
}

/// The `usage` object of a response, where there is one.
///
/// A response in several iterations (server tools, provider-side compaction) repeats the context in each; the last
/// message iteration is what filled the window.
pub(crate) fn usage(value: View<'_>) -> Option<Usage> {
    if !value.is_object() {
        return None;
    }
    let last_iteration = value
        .field("iterations")
        .and_then(|iterations| {
            iterations
                .elements()
                .filter(|step| {
                    step.string_field("type")
                        .is_none_or(|kind| kind == "message")
                })
                .last()
        })
        .filter(|step| step.field("input_tokens").is_some());
    let mut usage = Usage::default();
    for (key, field) in last_iteration.unwrap_or(value).fields() {
        let slot = match key.as_ref() {
            "input_tokens" => &mut usage.uncached,
            "cache_creation_input_tokens" => &mut usage.cache_write,
            "cache_read_input_tokens" => &mut usage.cache_read,
            "output_tokens" => &mut usage.output,
            _ => continue,
        };
        *slot = limited(field);
    }
    (usage != Usage::default()).then_some(usage)
}

/// A number of tokens that a usage tells under `key`. What is more than any model takes is cut, so that sums cannot overflow.
pub(crate) fn tokens(usage: View<'_>, key: &str) -> u64 {
    usage.field(key).map_or(0, limited)
}

fn limited(number: View<'_>) -> u64 {
    number.as_u64().unwrap_or_default().min(u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use throughline_transcript::json::tape::Tape;

    use super::*;

    fn parse<T>(text: &str, read: impl FnOnce(View<'_>) -> T) -> T {
        let source = ByteString::from(text);
        let mut tape = Tape::default();
        tape.parse(&source, 0..source.len(), &[]).unwrap();
        read(tape.root(&source))
    }

    #[test]
    fn blocks_of_every_kind() {
        let blocks = parse(
            r#"["plain",{"type":"text","text":"a\nb"},{"type":"thinking","thinking":"hm","signature":"s"},
            {"type":"tool_use","id":"t1","name":"Read","input":{"path":1e3}},
            {"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no"},
              {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAAAAAA"}}]},
            {"type":"web_search_tool_result","tool_use_id":"s1","content":[]},
            {"type":"hologram","depth":3}]"#,
            content,
        );
        assert_eq!(blocks[0].content, Content::Text("plain".into()));
        assert!(matches!(&blocks[1].content, Content::Text(text) if text.decode() == "a\nb"));
        assert_eq!(blocks[2].content, Content::Thinking("hm".into()));
        let Content::ToolCall(call) = &blocks[3].content else {
            panic!("no call")
        };
        assert!(matches!(&call.input, ToolInput::Json(raw) if raw.as_str() == r#"{"path":1e3}"#));
        let Content::ToolResult(result) = &blocks[4].content else {
            panic!("no result")
        };
        assert_eq!(
            (result.call_id.as_ref(), result.is_error),
            ("t1", Some(true))
        );
        assert_eq!(result.content[0].content, Content::Text("no".into()));
        assert!(
            matches!(&result.content[1].content, Content::Image(media) if media.data_bytes == Some(6))
        );
        assert!(matches!(&blocks[5].content, Content::ToolResult(result) if result.is_server_side));
        assert_eq!(blocks[6].content, Content::Other("hologram".into()));
        assert_eq!(
            blocks[6].raw.as_ref().unwrap().as_str(),
            r#"{"type":"hologram","depth":3}"#
        );
    }

    #[test]
    fn usage_of_several_iterations_is_that_of_the_last_message() {
        let read = |text| parse(text, usage);
        let plain = read(
            r#"{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":4}"#,
        );
        let expected = Usage {
            uncached: 1,
            cache_write: 2,
            cache_write_long: 0,
            cache_read: 3,
            output: 4,
        };
        assert_eq!(plain, Some(expected));
        let several = read(
            r#"{"input_tokens":9,"iterations":[{"type":"message","input_tokens":5},{"type":"compaction","input_tokens":7}]}"#,
        );
        assert_eq!(several.unwrap().uncached, 5);
        assert_eq!(read("null"), None);
    }
}
