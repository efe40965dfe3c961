//! Shared by the tests of the formats.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::message::{Author, Block, Content, Role};

/// A conversation in short, one line a message: who speaks, and what.
pub(crate) fn story(conversation: &Conversation) -> Vec<String> {
    conversation
        .messages
        .iter()
        .map(|message| {
            let who = match (message.role, message.author) {
                (_, Author::Client) => "client",
                (_, Author::Agent) => "agent",
                (_, Author::Compaction) => "compaction",
                (Role::Assistant, _) => "model",
                (Role::Tool, _) => "tool",
                (Role::System, _) => "system",
                (Role::User, _) => "user",
            };
            format!("{who}: {}", blocks(&message.blocks))
        })
        .collect()
}

fn blocks(blocks: &[Block]) -> String {
    let parts: Vec<String> = blocks
        .iter()
        .map(|block| match &block.content {
            Content::Text(text) => text.decode().into_owned(),
            Content::Thinking(text) => format!("({text})"),
            Content::ToolCall(call) => format!("call {} {}", call.id, call.name),
            Content::ToolResult(result) => {
                let word = if result.is_error == Some(true) {
                    "failed"
                } else {
                    "result"
                };
                format!(
                    "{word} {} {}",
                    result.call_id,
                    self::blocks(&result.content)
                )
            }
            Content::Image(media) => format!("image {}", media.name.as_deref().unwrap_or_default()),
            Content::Document(media) => {
                format!("document {}", media.name.as_deref().unwrap_or_default())
            }
            other => format!("{other:?}"),
        })
        .collect();
    parts.join(" + ")
}
