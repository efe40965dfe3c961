//! Gemini CLI chats: a JSON record, a JSONL log of the same, or a saved checkpoint.
//!
//! The log is append-only: a message that is written again replaces the first one, `$set` changes the head (and can
//! replace all messages), `$rewindTo` removes messages. One message of the model holds calls and their results; the
//! results become a message after it. A checkpoint (`/chat save`) is a list of `Content` values of the API.

mod checkpoint;

pub(super) use self::checkpoint::part;

use std::collections::HashMap;

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::tape::{Tape, View};
use throughline_transcript::message::{
    Block, Content, Message, Position, Role, ToolCall, ToolInput, ToolResult,
};
use throughline_transcript::usage::Usage;

use crate::document::{Document, LineCounter};
use crate::formats::glance::Glance;
use crate::formats::rollback::note_left_out;
use crate::formats::{Format, Probe, anthropic_content, times};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["args", "resultDisplay"];

/// Chats of Gemini CLI.
pub(super) struct Gemini;

impl Format for Gemini {
    fn name(&self) -> &'static str {
        "gemini-cli"
    }

    fn about(&self) -> &'static str {
        "Gemini CLI chat (JSON, JSONL) or checkpoint"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        if has(&["sessionId"]) && has(&["projectHash"]) {
            return 96;
        }
        if glance.is_list && is_checkpoint(glance, &[])
            || is_checkpoint(glance, &["history"])
            || is_checkpoint(glance, &["contents"])
        {
            return 85;
        }
        probe.best_record(|record| {
            // Many programs call a message of the person's `user`.
            let is_message = record.string_field("type").as_deref() == Some("gemini")
                && record.field("id").is_some()
                && record.field("content").is_some()
                && record.field("sessionId").is_none();
            if record.field("$rewindTo").is_some() || record.field("$set").is_some() {
                90
            } else if is_message {
                60
            } else {
                0
            }
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut chat = Chat::default();
        let mut skipped;
        if is_log(source) {
            let mut lines = Lines::new(source, OPAQUE);
            while let Some(line) = lines.advance() {
                if !chat.add_record(lines.record(), line) {
                    lines.reject("not a record of a Gemini CLI chat");
                }
            }
            skipped = lines.into_skipped();
        } else {
            let document = Document::read(source, OPAQUE, self.name(), is_element)?;
            let root = document.root();
            let mut lines = LineCounter::default();
            let mut line_of = |view: View<'_>| lines.line(document.text(), view.offset());
            match checkpoint::contents(root) {
                Some(contents) => checkpoint::read(contents, &mut chat.conversation, &mut line_of),
                None => {
                    chat.add_head(root);
                    let messages = root.field("messages").into_iter().flat_map(View::elements);
                    for message in messages {
                        let line = line_of(message);
                        chat.add_message(message, line);
                    }
                }
            }
            skipped = document.skipped;
        }
        skipped.sort_by_key(|piece| piece.line);
        let conversation = chat.into_conversation();
        if conversation.messages.is_empty() {
            return Err(match conversation.id.is_empty() {
                true => ReadError::NotThatFormat {
                    format: self.name(),
                    reason: "there is no message of the user or of the model".to_owned(),
                },
                false => ReadError::NoMessage {
                    format: self.name(),
                },
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped,
        })
    }
}

/// Whether the list at `place` has contents of the API: their parts have no type, but the name of their kind.
fn is_checkpoint(glance: &Glance<'_>, place: &[&str]) -> bool {
    let roles = [place, &["role"]].concat();
    let has_part = |key| glance.has_path(&[place, &["parts", key]].concat());
    let is_role = |role: &str| matches!(role, "user" | "model" | "function");
    glance.has_path(&roles)
        && glance.values(&roles).all(is_role)
        && !has_part("type")
        && !has_part("kind")
        && ["text", "functionCall", "functionResponse", "inlineData"]
            .into_iter()
            .any(has_part)
}

/// A message of a chat or of a checkpoint.
fn is_element(value: View<'_>) -> bool {
    let has = |key| value.field(key).is_some();
    (has("type") && has("content")) || (has("role") && has("parts"))
}

/// Whether there are several records and not one document.
fn is_log(source: &SourceText) -> bool {
    let text = &source.text;
    match Tape::default().parse(text, 0..text.len(), OPAQUE) {
        Ok(end) => !text[end..].trim_start().is_empty(),
        // A log with a broken first line fails there; a torn document fails at its end.
        Err(error) => memchr::memchr(b'\n', text.as_bytes())
            .is_some_and(|newline| error.offset <= newline + 1 && newline + 1 < text.len()),
    }
}

#[derive(Default)]
struct Chat {
    conversation: Conversation,
    /// Messages in the order in which they were first written; one that was taken back is empty.
    entries: Vec<Entry>,
    by_id: HashMap<ByteString, usize>,
    rewound: usize,
}

struct Entry {
    id: Option<ByteString>,
    messages: Vec<Message>,
    model: Option<ByteString>,
}

impl Chat {
    fn add_record(&mut self, record: View<'_>, line: usize) -> bool {
        if let Some(set) = record.field("$set") {
            self.add_head(set);
            if let Some(messages) = set.field("messages").filter(|messages| messages.is_array()) {
                self.entries.clear();
                self.by_id.clear();
                for message in messages.elements() {
                    self.add_message(message, line);
                }
            }
            return true;
        }
        if let Some(target) = record.field("$rewindTo") {
            // An id that is not there takes everything back.
            let from = target
                .to_bytestring()
                .and_then(|id| self.by_id.get(&id).copied())
                .unwrap_or(0);
            self.rewound += self.entries.len() - from;
            for entry in self.entries.drain(from..) {
                if let Some(id) = entry.id {
                    self.by_id.remove(&id);
                }
            }
            return true;
        }
        if record.field("sessionId").is_some() && record.field("type").is_none() {
            self.add_head(record);
            return true;
        }
        self.add_message(record, line)
    }

    fn add_head(&mut self, head: View<'_>) {
        if let Some(id) = head.string_field("sessionId") {
            self.conversation.id = id.into_owned();
        }
        let title = head
            .string_field("summary")
            .map(|title| title.trim().to_owned());
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            self.conversation.title = Some(title);
        }
        let folder = head
            .field("directories")
            .and_then(|folders| folders.elements().next())
            .and_then(View::decode);
        if let Some(folder) = folder {
            self.conversation.cwd = Some(folder.into_owned());
        }
    }

    fn add_message(&mut self, value: View<'_>, line: usize) -> bool {
        let Some(kind) = value.string_field("type") else {
            return false;
        };
        let mut entry = Entry {
            id: value.field("id").and_then(View::to_bytestring),
            messages: Vec::new(),
            model: None,
        };
        match kind.as_ref() {
            "user" => {
                let blocks = value.field("content").map(parts).unwrap_or_default();
                let mut message = Message::new(Role::User, blocks);
                message.raw = Some(value.raw());
                entry.messages.push(message);
            }
            "gemini" => {
                entry.model = value.field("model").and_then(View::to_bytestring);
                answer(value, &mut entry.messages);
            }
            // Notices to the user, which the model does not see.
            "info" | "error" | "warning" => {}
            _ => return false,
        }
        entry.messages.retain(|message| !message.blocks.is_empty());
        for message in &mut entry.messages {
            message.position = Position { line };
            message.at_ms = value.field("timestamp").and_then(times::from_milliseconds);
            message.id.clone_from(&entry.id);
        }
        match entry.id.as_ref().and_then(|id| self.by_id.get(id)) {
            Some(index) => self.entries[*index] = entry,
            None => {
                if let Some(id) = &entry.id {
                    self.by_id.insert(id.clone(), self.entries.len());
                }
                self.entries.push(entry);
            }
        }
        true
    }

    fn into_conversation(self) -> Conversation {
        let mut conversation = self.conversation;
        for entry in self.entries {
            if let Some(model) = entry.model {
                conversation.model = Some(model.to_string());
            }
            conversation.messages.extend(entry.messages);
        }
        note_left_out(&mut conversation, self.rewound, "rewound");
        conversation
    }
}

/// The model's message and the one with the results of its calls.
fn answer(value: View<'_>, messages: &mut Vec<Message>) {
    let mut message = Message::new(Role::Assistant, Vec::new());
    let thoughts = value.field("thoughts").into_iter().flat_map(View::elements);
    for thought in thoughts {
        let text = |key| thought.string_field(key).unwrap_or_default();
        let thinking = format!("{}\n{}", text("subject"), text("description"));
        message.blocks.push(Block {
            content: Content::Thinking(thinking.trim().to_owned().into()),
            raw: Some(thought.raw()),
        });
    }
    message
        .blocks
        .extend(value.field("content").map(parts).unwrap_or_default());
    let mut results = Message::new(Role::User, Vec::new());
    let calls = value
        .field("toolCalls")
        .into_iter()
        .flat_map(View::elements);
    for call in calls {
        let name = |key| {
            call.field(key)
                .and_then(View::to_bytestring)
                .unwrap_or_default()
        };
        message.blocks.push(Block {
            content: Content::ToolCall(ToolCall {
                id: name("id"),
                name: name("name"),
                input: call.field("args").map_or_else(
                    || ToolInput::Text("".into()),
                    |input| ToolInput::Json(input.raw()),
                ),
                is_server_side: false,
            }),
            raw: Some(call.raw()),
        });
        let is_error = match call.string_field("status").as_deref() {
            Some("error" | "cancelled") => Some(true),
            Some("success") => Some(false),
            _ => None,
        };
        if let Some(result) = call.field("result").filter(|result| !result.is_null()) {
            results
                .blocks
                .push(Block::new(Content::ToolResult(ToolResult {
                    call_id: name("id"),
                    content: result_content(result),
                    is_error,
                    is_server_side: false,
                })));
        }
    }
    message.usage = value.field("tokens").and_then(usage);
    message.raw = Some(value.raw());
    messages.push(message);
    messages.push(results);
}

/// Text or a list of parts.
fn parts(value: View<'_>) -> Vec<Block> {
    if let Some(text) = value.as_text() {
        return if text.encoded_len() == 0 {
            Vec::new()
        } else {
            vec![Block::text(text)]
        };
    }
    if value.is_object() {
        return vec![part(value)];
    }
    value.elements().map(part).collect()
}

/// What a tool answered: `functionResponse` parts, other parts, or text.
fn result_content(result: View<'_>) -> Vec<Block> {
    parts(result)
        .into_iter()
        .flat_map(|block| match block.content {
            Content::ToolResult(inner) => inner.content,
            _ => vec![block],
        })
        .collect()
}

/// `input` includes what was read from the cache; thoughts are counted apart from the output.
fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    let usage = Usage {
        uncached: tokens("input").saturating_sub(tokens("cached")),
        cache_write: 0,
        cache_write_long: 0,
        cache_read: tokens("cached"),
        output: tokens("output") + tokens("thoughts"),
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests;
