//! Counts everything larger than a text: blocks, messages, conversations.
//!
//! Everything that a request carries is counted: the system prompt, tool definitions with their schemas, arguments of
//! tool calls, results, reasoning, blocks of unknown kinds. The overheads are what the providers add around a part as
//! far as it is known, rounded up.

use crate::catalogue::TokenizerFamily;
use crate::conversation::Conversation;
use crate::json::{Raw, Text, closing_quote};
use crate::message::{Block, Content, Media, Message, ToolInput};

use super::Counter;

/// Tokens around a message: role and separators.
const MESSAGE_OVERHEAD: usize = 4;

/// Tokens around a tool call, its id included.
const CALL_OVERHEAD: usize = 12;

/// Tokens around a tool result, the id of the call included.
const RESULT_OVERHEAD: usize = 8;

/// Tokens of the instructions that Claude gets as soon as a request has tools. Published figures go from 286 to 804.
const CLAUDE_TOOLS_OVERHEAD: usize = 500;

/// Tokens that the other providers put around tool definitions.
const TOOLS_OVERHEAD: usize = 16;

/// Tokens of a page of a PDF, which is sent as text and as an image.
const PAGE_TOKENS: usize = 2_500;

/// Bytes of a PDF taken for one page.
const PAGE_BYTES: usize = 60_000;

/// Maximum number of pages that providers accept in a request.
const PAGES_MAX: usize = 600;

/// Strings in JSON from this length on are looked at: if they are base64 they are not text.
const OPAQUE_BYTES_MIN: usize = 1_024;

/// Base64 characters of encrypted reasoning for one token: 3/4 of a byte each, and some four bytes a token.
const OPAQUE_BYTES_PER_TOKEN: usize = 6;

/// Most that an opaque string counts: what is longer is a picture or a file.
const OPAQUE_TOKENS_MAX: usize = 4_000;

/// Tokens of the parts of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The system prompt.
    pub system: usize,
    /// The tool definitions, with what the provider adds because there are any.
    pub tools: usize,
    /// The messages.
    pub messages: usize,
}

impl Size {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.system
            .saturating_add(self.tools)
            .saturating_add(self.messages)
    }
}

impl Counter {
    /// Tokens of a conversation as a request: system prompt, tools and all messages.
    #[must_use]
    pub fn conversation(&self, conversation: &Conversation) -> Size {
        Size {
            system: self.system(&conversation.system),
            tools: conversation.tools.as_ref().map_or(0, |raw| self.tools(raw)),
            messages: conversation
                .messages
                .iter()
                .map(|message| self.message(message))
                .sum(),
        }
    }

    /// Tokens of a system prompt that is separate from the messages.
    #[must_use]
    pub fn system(&self, blocks: &[Block]) -> usize {
        if blocks.is_empty() {
            return 0;
        }
        MESSAGE_OVERHEAD + self.blocks(blocks)
    }

    /// Tokens of tool definitions, a JSON array.
    #[must_use]
    pub fn tools(&self, tools: &Raw) -> usize {
        if tools.array().next().is_none() {
            return 0;
        }
        let overhead = match self.family() {
            TokenizerFamily::Claude1 | TokenizerFamily::Claude2 => CLAUDE_TOOLS_OVERHEAD,
            _ => TOOLS_OVERHEAD,
        };
        overhead + self.json(tools)
    }

    /// Tokens of a message with all its blocks.
    #[must_use]
    pub fn message(&self, message: &Message) -> usize {
        MESSAGE_OVERHEAD + self.blocks(&message.blocks)
    }

    /// Tokens of a block.
    #[must_use]
    pub fn block(&self, block: &Block) -> usize {
        // Results may hold blocks, and these results again. The levels are walked with a list, so that no input can
        // exhaust the stack.
        let mut open = vec![block];
        let mut tokens = 0usize;
        while let Some(block) = open.pop() {
            let own = match &block.content {
                Content::Text(text) => self.decoded(text),
                Content::Thinking(text) => self.thinking(text, block.raw.as_ref()),
                Content::ToolCall(call) => {
                    let input = match &call.input {
                        ToolInput::Json(raw) => self.json(raw),
                        ToolInput::Text(text) => self.decoded(text),
                    };
                    CALL_OVERHEAD + self.text(&call.name) + input
                }
                Content::ToolResult(result) => {
                    open.extend(&result.content);
                    RESULT_OVERHEAD
                }
                Content::Image(_) => self.image_tokens,
                Content::Document(media) => self.document(media, block.raw.as_ref()),
                Content::Compaction(Some(text)) => MESSAGE_OVERHEAD + self.decoded(text),
                Content::Compaction(None) | Content::Other(_) => block
                    .raw
                    .as_ref()
                    .map_or(MESSAGE_OVERHEAD, |raw| self.json(raw)),
            };
            tokens = tokens.saturating_add(own);
        }
        tokens
    }

    fn blocks(&self, blocks: &[Block]) -> usize {
        blocks
            .iter()
            .fold(0, |sum, block| sum.saturating_add(self.block(block)))
    }

    fn decoded(&self, text: &Text) -> usize {
        self.text(&text.decode())
    }

    /// Reasoning: where the provider withholds or shortens the text, the signature holds all of it, encrypted.
    fn thinking(&self, text: &Text, raw: Option<&Raw>) -> usize {
        let signature_bytes = raw
            .and_then(|raw| raw.text_field("signature"))
            .map_or(0, |signature| signature.encoded_len());
        MESSAGE_OVERHEAD
            + self
                .decoded(text)
                .max(signature_bytes / OPAQUE_BYTES_PER_TOKEN)
    }

    fn document(&self, media: &Media, raw: Option<&Raw>) -> usize {
        let is_text = media
            .media_type
            .as_ref()
            .is_some_and(|media_type| media_type.starts_with("text/"));
        match (media.data_bytes, raw) {
            // The block contains the text of the document.
            (_, Some(raw)) if is_text => self.json(raw),
            (Some(bytes), _) if is_text => bytes / 3,
            (None, Some(raw)) if media.media_type.is_none() => self.json(raw).max(PAGE_TOKENS),
            (bytes, _) => {
                let pages = bytes.unwrap_or(0).div_ceil(PAGE_BYTES).clamp(1, PAGES_MAX);
                pages * PAGE_TOKENS
            }
        }
    }

    /// JSON as it is written; long base64 in it counts as an opaque part, not as text.
    pub(super) fn json(&self, raw: &Raw) -> usize {
        let text = raw.as_str();
        if text.len() < OPAQUE_BYTES_MIN {
            return self.text(text);
        }
        let mut tokens = 0usize;
        let mut counted_to = 0;
        let mut at = 0;
        while let Some((start, end)) = next_string(text.as_bytes(), at) {
            at = end + 1;
            if end - start < OPAQUE_BYTES_MIN || !is_base64(&text.as_bytes()[start..end]) {
                continue;
            }
            let opaque = ((end - start) / OPAQUE_BYTES_PER_TOKEN).min(OPAQUE_TOKENS_MAX);
            tokens = tokens
                .saturating_add(self.text(text.get(counted_to..start).unwrap_or_default()))
                .saturating_add(opaque);
            counted_to = end;
        }
        tokens.saturating_add(self.text(text.get(counted_to..).unwrap_or_default()))
    }
}

/// The inside of the next string literal: start and end, in bytes.
fn next_string(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let open = from + memchr::memchr(b'"', bytes.get(from..)?)?;
    Some((open + 1, closing_quote(bytes, open)?))
}

/// Whether a string is base64, alone or in a `data:` address.
fn is_base64(string: &[u8]) -> bool {
    const MARK: &[u8] = b";base64,";
    let head = string.get(..string.len().min(128)).unwrap_or_default();
    let data = match head.windows(MARK.len()).position(|window| window == MARK) {
        Some(at) if head.starts_with(b"data:") => string.get(at + MARK.len()..).unwrap_or_default(),
        _ => string,
    };
    data.iter().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
    })
}
