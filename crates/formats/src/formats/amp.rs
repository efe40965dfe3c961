//! Threads of Amp: a JSON file with messages of the Anthropic shape, and results of tools under `run`.

use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Message, Role};
use throughline_transcript::usage::Usage;

use crate::document::{Document, LineCounter};
use crate::formats::place::Place;
use crate::formats::{Format, Probe, anthropic_content, parts, times};
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["input"];

/// Threads of Amp.
pub(super) struct Amp;

impl Format for Amp {
    fn name(&self) -> &'static str {
        "amp"
    }

    fn about(&self) -> &'static str {
        "Amp thread (JSON)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        let is_thread = glance.any(&["id"], |id| id.starts_with("T-"));
        if is_thread && has(&["messages"]) {
            97
        } else if has(&["messages", "content", "toolUseID"]) {
            94
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let document = Document::read(source, OPAQUE, self.name(), |value| {
            value.field("role").is_some() && value.field("content").is_some()
        })?;
        let root = document.root();
        let mut lines = LineCounter::default();
        let threads: Vec<View<'_>> = match root.is_array() {
            true => root.elements().collect(),
            false => vec![root],
        };
        let conversations: Vec<Conversation> = threads
            .into_iter()
            .filter_map(|thread| {
                let messages = thread.field("messages")?;
                let mut conversation = head(thread);
                for message in messages.elements() {
                    let line = lines.line(document.text(), message.offset());
                    add(&mut conversation, message, line);
                }
                Some(conversation)
            })
            .collect();
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no thread with `messages`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: document.skipped,
        })
    }
}

fn head(thread: View<'_>) -> Conversation {
    let initial = thread.field("env").and_then(|env| env.field("initial"));
    let folder = initial
        .and_then(|initial| initial.field("trees"))
        .and_then(|trees| trees.elements().next())
        .and_then(|tree| parts::string(tree, "uri"));
    Conversation {
        id: parts::string(thread, "id").unwrap_or_default(),
        parent_id: parts::string(thread, "mainThreadID"),
        title: parts::string(thread, "title"),
        cwd: folder.map(|folder| parts::path_of(&folder).to_owned()),
        ..Conversation::default()
    }
}

fn add(conversation: &mut Conversation, value: View<'_>, line: usize) {
    let sent = value.field("meta").and_then(|meta| meta.field("sentAt"));
    let place = Place {
        line,
        at_ms: sent.and_then(times::from_number),
        id: Some(parts::name(value, "messageId")).filter(|id| !id.is_empty()),
    };
    let role = match value.string_field("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        // A summary or notice of the client.
        Some("info") => {
            let pieces = value.field("content").into_iter().flat_map(View::elements);
            let summary = pieces
                .filter_map(|part| part.field("summary"))
                .find_map(|summary| summary.field("summary").and_then(parts::text));
            if let Some(summary) = summary {
                conversation.compactions.push(CompactionMark {
                    before_message: conversation.messages.len(),
                    tokens_before: None,
                    trigger: None,
                });
                let mut message = Message::new(Role::User, vec![summary]);
                message.author = Author::Compaction;
                conversation.messages.push(place.put(message));
            }
            return;
        }
        _ => return,
    };
    let content = value.field("content");
    let blocks: Vec<Block> = match content {
        Some(content) if content.is_array() => content.elements().filter_map(block).collect(),
        Some(content) => parts::text(content).into_iter().collect(),
        None => Vec::new(),
    };
    if blocks.is_empty() {
        return;
    }
    let mut message = Message::new(role, blocks);
    if let (Role::Assistant, Some(used)) = (role, value.field("usage")) {
        conversation.model = parts::string(used, "model").or(conversation.model.take());
        message.usage = usage(used);
    }
    message.raw = Some(value.raw());
    conversation.messages.push(place.put(message));
}

fn block(part: View<'_>) -> Option<Block> {
    if part.string_field("type").as_deref() == Some("tool_result")
        && let Some(run) = part.field("run")
    {
        let id = ["toolUseID", "tool_use_id"]
            .into_iter()
            .find_map(|key| part.field(key).and_then(View::to_bytestring))
            .unwrap_or_default();
        let status = run.string_field("status").unwrap_or_default();
        let is_error = match status.as_ref() {
            "done" => Some(false),
            "error" | "cancelled" | "rejected-by-user" => Some(true),
            _ => None,
        };
        let output = run
            .field("result")
            .map(|result| result.field("output").unwrap_or(result));
        let mut content: Vec<Block> = output.and_then(parts::text).into_iter().collect();
        let error = run
            .field("error")
            .map(|error| error.field("message").unwrap_or(error));
        content.extend(error.and_then(parts::text));
        if content.is_empty() {
            content.extend(run.field("progress").and_then(parts::text));
        }
        if content.is_empty() && !status.is_empty() {
            content.push(Block::text(status.into_owned()));
        }
        return Some(parts::result(id, content, is_error));
    }
    let block = anthropic_content::block(part);
    (!matches!(&block.content, Content::Text(text) if text.is_blank())).then_some(block)
}

fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    parts::used(Usage {
        uncached: tokens("inputTokens"),
        cache_write: tokens("cacheCreationInputTokens"),
        cache_write_long: 0,
        cache_read: tokens("cacheReadInputTokens"),
        output: tokens("outputTokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    #[test]
    fn results_are_under_run() {
        let text = r#"{"v":9,"id":"T-1","created":1767225600000,"title":"Ropes","env":{"initial":{"trees":[{"displayName":"w","uri":"file:///w"}]}},"messages":[
{"role":"user","messageId":0,"content":[{"type":"text","text":"Count the ropes"}],"meta":{"sentAt":1767225601000}},
{"role":"assistant","messageId":1,"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"Bash","input":{"cmd":"ls"}},{"type":"tool_use","id":"t2","name":"Read","input":{}}],"state":{"type":"complete"},"usage":{"model":"m-1","inputTokens":3,"outputTokens":4}},
{"role":"user","messageId":2,"content":[{"type":"tool_result","toolUseID":"t1","run":{"status":"done","result":{"output":"six","exitCode":0}}},{"type":"tool_result","toolUseID":"t2","run":{"status":"error","error":{"message":"no file"}}}]},
{"role":"info","messageId":3,"content":[{"type":"summary","summary":{"type":"message","summary":"so far"}}]},
{"role":"assistant","messageId":4,"content":[{"type":"text","text":"Six."}]}]}"#;
        let source = Amp.read(&SourceText::from_text(text)).unwrap();
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "user: Count the ropes",
                "model: (hm) + call t1 Bash + call t2 Read",
                "user: result t1 six + failed t2 no file",
                "compaction: so far",
                "model: Six.",
            ]
        );
        assert_eq!(conversation.cwd.as_deref(), Some("/w"));
        assert_eq!(conversation.model.as_deref(), Some("m-1"));
        assert_eq!(conversation.messages[0].at_ms, Some(1_767_225_601_000));
        assert_eq!(conversation.messages[1].usage.unwrap().output, 4);
        assert_eq!(conversation.messages[1].position.line, 3);
        assert!(Amp.read(&SourceText::from_text("[]")).is_err());
    }
}
