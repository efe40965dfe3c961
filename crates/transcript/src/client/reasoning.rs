//! Finds and removes the reasoning in the messages of a client's request.

use bytestring::ByteString;

use crate::json::Raw;
use crate::message::{Message, Role};
use crate::request::without_thinking;
use crate::wire::Wire;

/// The result of removing the reasoning from a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrippedMessage {
    /// The message has none.
    Unchanged,
    /// The rest of the message.
    Rest(Raw),
    /// The message has nothing else.
    Nothing,
}

/// The message without reasoning that the provider accepts only behind the messages that preceded it when it was made.
#[must_use]
pub fn without_reasoning(wire: Wire, message: &str) -> StrippedMessage {
    match wire {
        Wire::Anthropic => {}
        // Reasoning in these formats is bound to nothing.
        Wire::OpenAiChat | Wire::OpenAiResponses => return StrippedMessage::Unchanged,
    }
    if memchr::memmem::find(message.as_bytes(), b"thinking").is_none() {
        return StrippedMessage::Unchanged;
    }
    let Ok(message) = Raw::parse(ByteString::from(message)) else {
        return StrippedMessage::Unchanged;
    };
    match without_thinking(&message) {
        Some(rest) if rest == message => StrippedMessage::Unchanged,
        Some(rest) => StrippedMessage::Rest(rest),
        None => StrippedMessage::Nothing,
    }
}

/// The signatures by which the reasoning of a message is bound to what precedes it.
#[must_use]
pub fn reasoning_signatures(message: &Message) -> Vec<String> {
    let Some(raw) = message.raw.as_ref() else {
        return Vec::new();
    };
    let has_some = memchr::memmem::find(raw.as_str().as_bytes(), b"thinking\"").is_some();
    if message.role != Role::Assistant || !has_some {
        return Vec::new();
    }
    let blocks = raw.field("content");
    let blocks = blocks.iter().flat_map(Raw::array);
    blocks
        .filter_map(|block| {
            let kind = block.text_field("type")?;
            let name = match kind.decode().as_ref() {
                "thinking" => "signature",
                "redacted_thinking" => "data",
                _ => return None,
            };
            block.string_field(name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::read_message;

    const THOUGHT: &str = r#"{"type":"thinking","thinking":"t","signature":"s1"}"#;
    const HIDDEN: &str = r#"{"type":"redacted_thinking","data":"s2"}"#;
    const TEXT: &str = r#"{"type":"text","text":"a \"thinking\" b"}"#;

    fn message(role: &str, blocks: &[&str]) -> String {
        format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","))
    }

    #[test]
    fn reasoning_is_left_out_where_it_is_bound() {
        let rest = |blocks: &[&str]| {
            StrippedMessage::Rest(Raw::parse(message("assistant", blocks)).unwrap())
        };
        for (blocks, expected) in [
            (&[THOUGHT, TEXT][..], rest(&[TEXT])),
            (&[THOUGHT, HIDDEN], StrippedMessage::Nothing),
            (&[TEXT], StrippedMessage::Unchanged),
        ] {
            let text = message("assistant", blocks);
            assert_eq!(without_reasoning(Wire::Anthropic, &text), expected);
            assert_eq!(
                without_reasoning(Wire::OpenAiChat, &text),
                StrippedMessage::Unchanged
            );
        }
        assert_eq!(
            without_reasoning(Wire::Anthropic, "thinking"),
            StrippedMessage::Unchanged
        );
    }

    #[test]
    fn signatures_are_those_of_the_models_own_messages() {
        for (role, blocks, expected) in [
            ("assistant", &[THOUGHT, HIDDEN, TEXT][..], &["s1", "s2"][..]),
            ("assistant", &[TEXT], &[]),
            ("user", &[THOUGHT], &[]),
        ] {
            let raw = Raw::parse(message(role, blocks)).unwrap();
            let read = read_message(&raw).unwrap();
            assert_eq!(reasoning_signatures(&read), expected);
        }
    }
}
