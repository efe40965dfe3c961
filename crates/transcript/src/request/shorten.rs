//! Shortens results that are too large for a request: keeps the start and the end, and says what was left out and where
//! it can be read.

use crate::json::{Kind, Raw};
use crate::splice::Splice;
use crate::text::{head, tail};
use crate::wire::Wire;

/// A message with shorter results.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortenedMessage {
    /// The message as it goes into requests.
    pub message: Raw,
    /// Bytes of text that were left out.
    pub omitted_bytes: usize,
}

/// Leaves out the middle of every tool result in `message` whose text is longer than `result_bytes_max`, and says so in
/// its place, with `pointer` (where the whole can be read). `None` if no result is longer.
///
/// The call stays answered, and everything else in the message stays as it is.
#[must_use]
pub fn shorten(
    message: &Raw,
    wire: Wire,
    result_bytes_max: usize,
    pointer: &str,
) -> Option<ShortenedMessage> {
    let mut long = Vec::new();
    match wire {
        Wire::Anthropic => {
            for block in message.field("content")?.array() {
                if block.string_field("type").as_deref() == Some("tool_result")
                    && let Some(content) = block.field("content")
                {
                    texts(&content, &mut long);
                }
            }
        }
        Wire::OpenAiChat => {
            if message.string_field("role").as_deref() == Some("tool")
                && let Some(content) = message.field("content")
            {
                texts(&content, &mut long);
            }
        }
        Wire::OpenAiResponses => {
            if message
                .string_field("type")
                .is_some_and(|kind| kind.ends_with("_call_output"))
                && let Some(output) = message.field("output")
            {
                texts(&output, &mut long);
            }
        }
    }
    let mut splice = Splice::new(message);
    let mut omitted_bytes = 0;
    for raw in long {
        // An escape takes at most six bytes, so what is short enough encoded is short enough.
        if raw.len() <= result_bytes_max {
            continue;
        }
        let Some(text) = raw.as_text() else { continue };
        let text = text.decode();
        if text.len() <= result_bytes_max {
            continue;
        }
        let start = head(&text, result_bytes_max * 2 / 3);
        let end = tail(&text, result_bytes_max / 3);
        let omitted = text.len() - start.len() - end.len();
        let short = format!("{start}\n[... {omitted} bytes left out here; {pointer} ...]\n{end}");
        splice.replace(&raw, Raw::string(&short)).ok()?;
        omitted_bytes += omitted;
    }
    if omitted_bytes == 0 {
        return None;
    }
    let message = Raw::parse(splice.finish().ok()?).ok()?;
    Some(ShortenedMessage {
        message,
        omitted_bytes,
    })
}

/// The string literals that hold the text of a result.
fn texts(content: &Raw, found: &mut Vec<Raw>) {
    match content.kind() {
        Kind::String => found.push(content.clone()),
        Kind::Array => found.extend(
            content
                .array()
                .filter_map(|block| block.field("text"))
                .filter(|text| text.kind() == Kind::String),
        ),
        _ => {}
    }
}
