//! Cline and Roo Code: `api_conversation_history.json`, and the sessions of the Cline SDK and command line.
//!
//! The classic file is an array of Anthropic messages, with additions (`ts`, and in Roo the tags of condensing and
//! truncating). Roo's tags say which messages the model no longer sees; here all of them stay, a summary is marked as
//! a compaction. The SDK's file is an object with the messages inside. Older versions hold calls as XML in the text
//! and results as text: both are turned into calls and results ([`xml`]).

mod xml;

use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Media, Message, Role};
use throughline_transcript::usage::Usage;

use crate::document::{Document, LineCounter};
use crate::formats::place::Place;
use crate::formats::request::signs::Signs;
use crate::formats::{Format, Probe, anthropic_content, times};
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["input", "reasoning_details"];

/// Session files of Cline and Roo Code.
pub(super) struct Cline;

impl Format for Cline {
    fn name(&self) -> &'static str {
        "cline"
    }

    fn about(&self) -> &'static str {
        "Cline or Roo Code history (JSON)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |key: &str| glance.has(key);
        if glance.has_path(&["messages", "role"])
            && has("sessionId")
            && (has("updated_at") || has("version"))
        {
            return 92;
        }
        if !(glance.is_list && has("role") && has("content"))
            || Signs::of(probe.head()).has_odd_block()
        {
            return 0;
        }
        let tags = [
            "condenseId",
            "condenseParent",
            "isSummary",
            "truncationParent",
            "modelInfo",
        ];
        if tags.into_iter().any(has) {
            94
        } else if has("ts") {
            88
        } else if probe.head().contains("<environment_details>") {
            86
        } else if probe.head().contains("<task>") {
            70
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let document = Document::read(source, OPAQUE, self.name(), |value| {
            value.field("role").is_some() && value.field("content").is_some()
        })?;
        let root = document.root();
        let mut reader = Reader::default();
        let messages = if root.is_array() {
            Some(root)
        } else {
            reader.head(root);
            root.field("messages")
                .filter(|messages| messages.is_array())
        };
        let mut lines = LineCounter::default();
        for message in messages.into_iter().flat_map(View::elements) {
            let line = lines.line(document.text(), message.offset());
            reader.add(message, line);
        }
        if reader.conversation.messages.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no list of messages with `role` and `content`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![reader.conversation],
            skipped: document.skipped,
        })
    }
}

#[derive(Default)]
struct Reader {
    conversation: Conversation,
    /// Tools that the last message called in XML and that have no result yet.
    xml_calls: xml::PendingCalls,
    /// What the last call used.
    last_usage: Option<Usage>,
}

impl Reader {
    fn head(&mut self, root: View<'_>) {
        let text = |key| root.string_field(key).map(|text| text.into_owned());
        self.conversation.id = text("sessionId").unwrap_or_default();
        self.conversation.title = text("title");
        self.conversation.cwd = text("cwd");
        let system = root
            .field("systemPrompt")
            .or_else(|| root.field("system_prompt"))
            .and_then(View::as_text);
        self.conversation.system = system.map(Block::text).into_iter().collect();
    }

    fn add(&mut self, value: View<'_>, line: usize) {
        let field = |key| value.field(key);
        let place = Place {
            line,
            at_ms: field("ts").and_then(times::from_milliseconds),
            id: field("id").and_then(View::to_bytestring),
        };
        if field("type").is_some_and(|kind| kind.decode().as_deref() == Some("reasoning")) {
            let block = Block {
                content: Content::Thinking(reasoning_text(value)),
                raw: Some(value.raw()),
            };
            let message = Message::new(Role::Assistant, vec![block]);
            self.conversation.messages.push(place.put(message));
            return;
        }
        let is_true = |key| field(key).is_some_and(View::is_true);
        let blocks = field("content").map(content).unwrap_or_default();
        match value.string_field("role").as_deref() {
            Some("assistant") if is_true("isSummary") => self.add_summary(blocks, value, &place),
            Some("assistant") => self.add_assistant(blocks, value, &place),
            Some(_) if is_true("isSummary") => self.add_summary(blocks, value, &place),
            // Stands for messages that were cut away, which are still in the file.
            Some(_) if is_true("isTruncationMarker") => {
                let mut message = Message::new(Role::User, blocks);
                message.author = Author::Client;
                self.conversation.messages.push(place.put(message));
            }
            Some(_) => self.add_user(blocks, value, &place),
            None => {}
        }
    }

    fn add_summary(&mut self, blocks: Vec<Block>, value: View<'_>, place: &Place) {
        let messages = &mut self.conversation.messages;
        self.conversation.compactions.push(CompactionMark {
            before_message: messages.len(),
            tokens_before: self.last_usage.map(|usage| usage.prompt() + usage.output),
            trigger: None,
        });
        let mut message = Message::new(Role::User, blocks);
        message.author = Author::Compaction;
        message.raw = Some(value.raw());
        messages.push(place.put(message));
    }

    fn add_assistant(&mut self, mut blocks: Vec<Block>, value: View<'_>, place: &Place) {
        let model = value.field("modelInfo").and_then(|model| {
            model
                .string_field("id")
                .or_else(|| model.string_field("modelId"))
        });
        if let Some(model) = model {
            self.conversation.model = Some(model.into_owned());
        }
        if let Some(text) = value.field("reasoning_content").and_then(View::as_text) {
            blocks.insert(0, Block::new(Content::Thinking(text)));
        }
        self.xml_calls = xml::take_calls(&mut blocks);
        let mut message = Message::new(Role::Assistant, blocks);
        message.usage = value.field("metrics").and_then(usage);
        self.last_usage = message.usage.or(self.last_usage);
        message.raw = Some(value.raw());
        if !message.blocks.is_empty() {
            self.conversation.messages.push(place.put(message));
        }
    }

    fn add_user(&mut self, blocks: Vec<Block>, value: View<'_>, place: &Place) {
        let count = blocks.len();
        let parts = xml::parted(blocks, &mut self.xml_calls);
        let is_one = parts.len() == 1;
        for (author, blocks) in parts {
            let mut message = Message::new(Role::User, blocks);
            message.author = author;
            if is_one && message.blocks.len() == count {
                message.raw = Some(value.raw());
            }
            self.conversation.messages.push(place.put(message));
        }
    }
}

/// Anthropic blocks, and the SDK's `file` block.
fn content(value: View<'_>) -> Vec<Block> {
    if !value.is_array() {
        return anthropic_content::content(value);
    }
    value
        .elements()
        .map(|element| {
            if element.string_field("type").as_deref() != Some("file") {
                return anthropic_content::block(element);
            }
            let media = Media {
                name: element.field("path").and_then(View::to_bytestring),
                data_bytes: element
                    .field("content")
                    .and_then(View::as_text)
                    .map(|text| text.encoded_len()),
                media_type: None,
            };
            Block {
                content: Content::Document(media),
                raw: Some(element.raw()),
            }
        })
        .collect()
}

fn reasoning_text(value: View<'_>) -> throughline_transcript::json::Text {
    value
        .field("summary")
        .and_then(|summary| summary.elements().next())
        .and_then(|part| part.field("text"))
        .or_else(|| value.field("text"))
        .and_then(View::as_text)
        .unwrap_or_else(|| "".into())
}

fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    let usage = Usage {
        uncached: tokens("inputTokens"),
        cache_write: tokens("cacheWriteTokens"),
        cache_write_long: 0,
        cache_read: tokens("cacheReadTokens"),
        output: tokens("outputTokens"),
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests;
