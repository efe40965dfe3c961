//! The fields of a client's request besides its messages, per wire format.
//!
//! A program that forwards requests has to know a few of their fields: the model and everything that it sees before the
//! messages ([`Head`]), whether the provider keeps or shortens the history ([`obstacle`]), which
//! reasoning is bound to what precedes it ([`reasoning_signatures`], [`without_reasoning`]), whether caching is asked
//! for ([`has_cache_marker`]), and what an error has to look like ([`error_body`]). All names of such fields are here.
//!
//! ```
//! use throughline_transcript::client::{Obstacle, obstacle};
//! use throughline_transcript::outline::Reader;
//! use throughline_transcript::wire::Wire;
//!
//! let body = r#"{"model":"m","previous_response_id":"resp_1","input":[]}"#;
//! let outline = Reader::new(Wire::OpenAiResponses, body.into())?.finish()?;
//! assert_eq!(obstacle(&outline), Some(Obstacle::StoredHistory));
//! # Ok::<(), throughline_transcript::outline::OutlineError>(())
//! ```

mod error_body;
mod head;
mod reasoning;

use crate::json::{Kind, Raw};
use crate::outline::Outline;
use crate::wire::Wire;

pub use self::error_body::{ErrorBodyKind, error_body};
pub use self::head::{Head, answer_tokens_max, model};
pub use self::reasoning::{StrippedMessage, reasoning_signatures, without_reasoning};

/// How deep a setting is searched for a type.
const DEPTH_MAX: usize = 4;

/// Why the messages of a request and one answer are not the whole conversation, so that no memory can take their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The request continues a message thread, which the provider keeps.
    Thread,
    /// The provider compacts the history.
    NativeCompaction,
    /// The provider keeps the history, and the request names it.
    StoredHistory,
    /// The request asks for several answers, and the client uses one of them.
    SeveralChoices,
}

/// The reason for which the conversation of a request cannot be followed, if there is one.
#[must_use]
pub fn obstacle(outline: &Outline) -> Option<Obstacle> {
    let has = |name: &str| outline.field(name).is_some_and(|value| !value.is_null());
    let compacts = || {
        let management = outline.field("context_management");
        management.is_some_and(|management| has_type_of_compaction(management, DEPTH_MAX))
    };
    let found = match outline.wire() {
        Wire::Anthropic if has("thread") => Some(Obstacle::Thread),
        Wire::Anthropic if has("compaction") || compacts() => Some(Obstacle::NativeCompaction),
        Wire::OpenAiResponses if has("previous_response_id") || has("conversation") => {
            Some(Obstacle::StoredHistory)
        }
        Wire::OpenAiResponses if compacts() => Some(Obstacle::NativeCompaction),
        Wire::Anthropic | Wire::OpenAiChat | Wire::OpenAiResponses => None,
    };
    let choices = || outline.field("n")?.as_u64().filter(|n| *n > 1);
    found.or_else(|| choices().map(|_| Obstacle::SeveralChoices))
}

/// Whether one of the edits is a compaction: its type is `compact_` and a date (Anthropic) or `compaction` (Responses).
fn has_type_of_compaction(value: &Raw, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    let is_nested = |value: &Raw| has_type_of_compaction(value, depth);
    match value.kind() {
        Kind::Object => value.object().any(|(name, value)| {
            let is_type = name.decode() == "type";
            let text = value.as_text().filter(|_| is_type);
            text.is_some_and(|text| text.decode().starts_with("compact")) || is_nested(&value)
        }),
        Kind::Array => value.array().any(|value| is_nested(&value)),
        Kind::String | Kind::Number | Kind::Bool | Kind::Null => false,
    }
}

/// Whether a request asks the provider to cache it: as a whole, or up to a block of its system prompt, tools or messages.
///
/// The words in what a user or a tool says are no marker.
#[must_use]
pub fn has_cache_marker(body: &Raw) -> bool {
    const NAME: &str = "cache_control";
    // Most requests of most formats have none, and are not walked for it.
    let mentions = |value: &Raw| memchr::memmem::find(value.as_str().as_bytes(), NAME.as_bytes());
    if mentions(body).is_none() {
        return false;
    }
    let is_marker = |marker: Raw| !marker.is_null();
    let is_marked = |block: &Raw| block.field(NAME).is_some_and(is_marker);
    let has_marked_block = |blocks: &Raw| {
        blocks.array().any(|block| {
            is_marked(&block)
                || block
                    .field("content")
                    .is_some_and(|content| content.array().any(|block| is_marked(&block)))
        })
    };
    body.object()
        .any(|(name, value)| match name.decode().as_ref() {
            NAME => is_marker(value),
            "system" | "tools" => has_marked_block(&value),
            "messages" | "input" => value.array().any(|message| {
                mentions(&message).is_some()
                    && message
                        .field("content")
                        .is_some_and(|content| has_marked_block(&content))
            }),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::Reader;

    #[test]
    fn obstacles_to_following_a_conversation_are_found() {
        let check = |wire, fields: &str, expected| {
            let list = crate::body::list_name(wire);
            let body = format!(r#"{{"model":"m",{fields}"{list}":[]}}"#);
            let outline = Reader::new(wire, body.into()).unwrap().finish().unwrap();
            assert_eq!(obstacle(&outline), expected, "{fields}");
        };
        let anthropic = |fields, expected| check(Wire::Anthropic, fields, expected);
        let chat = |fields, expected| check(Wire::OpenAiChat, fields, expected);
        let responses = |fields, expected| check(Wire::OpenAiResponses, fields, expected);
        anthropic("", None);
        anthropic(r#""thread":{"id":"t"},"#, Some(Obstacle::Thread));
        anthropic(r#""thread":null,"compaction":null,"#, None);
        anthropic(
            r#""compaction":{"enabled":true},"#,
            Some(Obstacle::NativeCompaction),
        );
        anthropic(
            r#""context_management":{"edits":[{"type":"compact_20260112"}]},"#,
            Some(Obstacle::NativeCompaction),
        );
        anthropic(
            r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","keep":{"type":"tool_uses"}}]},"#,
            None,
        );
        // The name of a tool is no type of an edit.
        anthropic(
            r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919","exclude_tools":["compact_x"]}]},"#,
            None,
        );
        anthropic(r#""previous_response_id":"resp_1","#, None);
        responses(
            r#""previous_response_id":"resp_1","#,
            Some(Obstacle::StoredHistory),
        );
        responses(
            r#""conversation":{"id":"c"},"#,
            Some(Obstacle::StoredHistory),
        );
        responses(
            r#""context_management":[{"type":"compaction","compact_threshold":1000}],"#,
            Some(Obstacle::NativeCompaction),
        );
        responses(r#""thread":{"id":"t"},"#, None);
        chat(r#""n":1,"#, None);
        chat(r#""n":2,"#, Some(Obstacle::SeveralChoices));
        chat(r#""conversation":"c","#, None);
    }

    #[test]
    fn a_cache_marker_is_known_by_its_place() {
        const MARKER: &str = r#""cache_control":{"type":"ephemeral"}"#;
        let check = |body: String, expected| {
            let body = Raw::parse(body).unwrap();
            assert_eq!(has_cache_marker(&body), expected, "{body:?}");
        };
        let message = |content: &str| {
            format!(r#"{{"system":"s","messages":[{{"role":"user","content":{content}}}]}}"#)
        };
        check(format!(r#"{{{MARKER},"messages":[]}}"#), true);
        check(r#"{"cache_control":null,"messages":[]}"#.to_owned(), false);
        for field in ["system", "tools"] {
            check(
                format!(r#"{{"{field}":[{{"name":"f"}},{{"name":"g",{MARKER}}}],"messages":[]}}"#),
                true,
            );
        }
        check(
            message(&format!(r#"[{{"type":"text","text":"a",{MARKER}}}]"#)),
            true,
        );
        check(
            message(&format!(
                r#"[{{"type":"tool_result","content":[{{"type":"text","text":"a",{MARKER}}}]}}]"#
            )),
            true,
        );
        // What is said, handed to a tool or described in a schema marks nothing.
        check(message(r#""set \"cache_control\": {} on it""#), false);
        check(
            message(r#"[{"type":"text","text":"cache_control"}]"#),
            false,
        );
        check(
            message(&format!(r#"[{{"type":"tool_use","input":{{{MARKER}}}}}]"#)),
            false,
        );
        check(
            format!(r#"{{"tools":[{{"input_schema":{{{MARKER}}}}}],"messages":[]}}"#),
            false,
        );
    }
}
