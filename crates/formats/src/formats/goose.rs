//! Goose: session files (JSONL), exports (JSON) and the rows of its database in the form of exports.
//!
//! A compaction does not delete messages: it hides the originals from the model and adds a summary that only the model
//! sees. `metadata` of each message says who sees it.

use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Media, Message, Role};

use crate::document::{Document, LineCounter};
use crate::formats::place::Place;
use crate::formats::{Format, Probe, anthropic_content, parts, times};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["arguments", "extension_data", "structuredContent"];

/// Sessions of Goose.
pub(super) struct Goose;

impl Format for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn about(&self) -> &'static str {
        "Goose session (JSONL, export, sessions.db)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        if has(&["working_dir"])
            && (has(&["conversation"]) || has(&["message_count"]) || has(&["session_type"]))
        {
            return 97;
        }
        let is_own = |kind: &str| matches!(kind, "toolRequest" | "toolResponse");
        if has(&["role"]) && has(&["created"]) && glance.any(&["content", "type"], is_own) {
            93
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let first = source.text.lines().find(|line| !line.trim().is_empty());
        let is_log = first.is_some_and(|line| {
            let line = line.trim();
            line.starts_with('{') && line.ends_with('}') && !line.contains("\"conversation\":")
        });
        let (conversations, skipped) = if is_log {
            let mut session = Session::default();
            let mut lines = Lines::new(source, OPAQUE);
            while let Some(line) = lines.advance() {
                let record = lines.record();
                if record.field("role").is_none() && record.field("working_dir").is_some() {
                    session.head(record);
                } else if !session.add(record, line) {
                    lines.reject("not a message of Goose");
                }
            }
            let conversations = session.is_found.then_some(session.conversation);
            (conversations.into_iter().collect(), lines.into_skipped())
        } else {
            let document = Document::read(source, OPAQUE, self.name(), |value| {
                value.field("content").is_some() && value.field("role").is_some()
            })?;
            let root = document.root();
            let mut lines = LineCounter::default();
            let sessions: Vec<View<'_>> = match root.is_array() {
                true => root.elements().collect(),
                false => vec![root],
            };
            let conversations: Vec<Conversation> = sessions
                .into_iter()
                .filter(|session| session.field("working_dir").is_some())
                .map(|value| {
                    let mut session = Session::default();
                    session.head(value);
                    let messages = value.field("conversation").into_iter();
                    for message in messages.flat_map(View::elements) {
                        let line = lines.line(document.text(), message.offset());
                        session.add(message, line);
                    }
                    session.conversation
                })
                .collect();
            (conversations, document.skipped)
        };
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no session with `working_dir`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped,
        })
    }
}

#[derive(Default)]
struct Session {
    conversation: Conversation,
    /// Whether the message before is one that the model no longer sees.
    is_after_hidden: bool,
    is_found: bool,
}

impl Session {
    fn head(&mut self, value: View<'_>) {
        self.is_found = true;
        let conversation = &mut self.conversation;
        conversation.id = parts::name(value, "id").to_string();
        conversation.cwd = parts::string(value, "working_dir");
        conversation.title =
            parts::string(value, "name").or_else(|| parts::string(value, "description"));
        conversation.model = value
            .field("model_config")
            .and_then(|config| parts::string(config, "model_name"));
    }

    fn add(&mut self, value: View<'_>, line: usize) -> bool {
        let role = match value.string_field("role").as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return false,
        };
        self.is_found = true;
        let place = Place {
            line,
            at_ms: value.field("created").and_then(times::from_number),
            id: value.field("id").and_then(View::to_bytestring),
        };
        let sees = |who| {
            let metadata = value.field("metadata")?;
            metadata.field(who).and_then(View::as_bool)
        };
        let is_hidden = sees("agentVisible") == Some(false);
        let is_clients = sees("userVisible") == Some(false);
        let is_summary = is_clients && self.is_after_hidden;
        self.is_after_hidden = is_hidden;
        let conversation = &mut self.conversation;
        if is_summary {
            conversation.compactions.push(CompactionMark {
                before_message: conversation.messages.len(),
                tokens_before: None,
                trigger: None,
            });
        }
        let mut blocks = Vec::new();
        let mut results = Vec::new();
        for part in value.field("content").into_iter().flat_map(View::elements) {
            match block(part) {
                Some(block) if matches!(block.content, Content::ToolResult(_)) => {
                    results.push(block)
                }
                block => blocks.extend(block),
            }
        }
        let author = match (is_summary, is_clients) {
            (true, _) => Author::Compaction,
            (false, true) => Author::Client,
            (false, false) => Author::Role,
        };
        for (role, blocks) in [(Role::Tool, results), (role, blocks)] {
            if !blocks.is_empty() {
                let mut message = Message::new(role, blocks);
                if role != Role::Tool {
                    message.author = author;
                }
                conversation.messages.push(place.put(message));
            }
        }
        true
    }
}

fn block(part: View<'_>) -> Option<Block> {
    let raw = Some(part.raw());
    let content = match part.string_field("type").as_deref().unwrap_or_default() {
        "text" => return part.field("text").and_then(parts::text),
        "thinking" => return part.field("thinking").and_then(parts::thinking),
        "reasoning" => return part.field("text").and_then(parts::thinking),
        "image" => Content::Image(Media {
            media_type: part.field("mimeType").and_then(View::to_bytestring),
            data_bytes: part
                .field("data")
                .and_then(View::as_text)
                .map(|data| anthropic_content::base64_bytes(data.encoded_len())),
            name: None,
        }),
        "toolRequest" | "frontendToolRequest" => {
            let call = part.field("toolCall");
            let value = call.map(|call| call.field("value").unwrap_or(call))?;
            let name = parts::name(value, "name");
            return Some(parts::call(
                parts::name(part, "id"),
                name,
                value.field("arguments"),
                raw,
            ));
        }
        "toolResponse" => return Some(response(part)),
        "redactedThinking" => Content::Thinking("".into()),
        // What the client shows the person: confirmations, notices, the state of the context.
        "toolConfirmationRequest"
        | "actionRequired"
        | "systemNotification"
        | "conversationCompacted"
        | "contextLengthExceeded"
        | "summarizationRequested" => return None,
        other => Content::Other(other.into()),
    };
    Some(Block { content, raw })
}

fn response(part: View<'_>) -> Block {
    let result = part.field("toolResult");
    let field = |key| result.and_then(|result: View<'_>| result.field(key));
    let value = field("value");
    // Newer versions have the whole result of the protocol, with the content inside.
    let content = value.map(|value| value.field("content").unwrap_or(value));
    let mut blocks: Vec<Block> = match content {
        Some(content) if content.is_array() => content.elements().filter_map(block).collect(),
        Some(content) => parts::text(content).into_iter().collect(),
        None => Vec::new(),
    };
    blocks.extend(field("error").and_then(parts::text));
    let has_failed =
        value.and_then(|value| value.field("isError").or_else(|| value.field("is_error")));
    let is_error = match field("status").and_then(View::decode).as_deref() {
        Some("error") => Some(true),
        Some("success") => Some(has_failed.is_some_and(View::is_true)),
        _ => None,
    };
    parts::result(parts::name(part, "id"), blocks, is_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    fn read_text(text: &str) -> Source {
        Goose.read(&SourceText::from_text(text.to_owned())).unwrap()
    }

    const USER: &str = r#"{"id":"m1","role":"user","created":1785000000,"content":[{"type":"text","text":"Mend the jetty."}],"metadata":{"userVisible":true,"agentVisible":true}}"#;
    const CALL: &str = r#"{"role":"assistant","created":1785000001,"content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls"}}}}]}"#;
    const RESULT: &str = r#"{"role":"user","created":1785000002,"content":[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"planks"}],"isError":true}}}]}"#;
    const DONE: &str =
        r#"{"role":"assistant","created":1785000003,"content":[{"type":"text","text":"Mended."}]}"#;

    #[test]
    fn log_and_export_are_read_alike() {
        let log = format!(
            "{{\"working_dir\":\"/w\",\"description\":\"Jetty\",\"message_count\":4}}\n{USER}\n{CALL}\n{RESULT}\n{DONE}\n"
        );
        let export = format!(
            "{{\n\"id\":\"20260901_1\",\"working_dir\":\"/w\",\"name\":\"Jetty\",\"conversation\":[\n{USER},{CALL},{RESULT},{DONE}]}}"
        );
        for text in [
            log,
            export.clone(),
            format!("[{export}]"),
            export.replace('\n', ""),
        ] {
            let source = read_text(&text);
            let conversation = &source.conversations[0];
            assert_eq!(
                story(conversation),
                [
                    "user: Mend the jetty.",
                    "model: (hm) + call c1 developer__shell",
                    "tool: failed c1 planks",
                    "model: Mended.",
                ],
                "{text}"
            );
            assert_eq!(conversation.cwd.as_deref(), Some("/w"));
            assert_eq!(conversation.title.as_deref(), Some("Jetty"));
            assert_eq!(conversation.messages[0].at_ms, Some(1_785_000_000_000));
            assert_eq!(source.skipped, []);
        }
    }

    #[test]
    fn a_compaction_and_what_the_client_adds_are_not_the_users() {
        let said = |role: &str, text: &str, user: bool, agent: bool| {
            format!(
                r#"{{"role":"{role}","created":1,"content":[{{"type":"text","text":"{text}"}}],"metadata":{{"userVisible":{user},"agentVisible":{agent}}}}}"#
            )
        };
        let source = read_text(&format!(
            r#"{{"working_dir":"/w","id":"s","conversation":[{},{},{},{},{}]}}"#,
            said("user", "old", true, false),
            said("assistant", "done", true, false),
            said("user", "summary", false, true),
            said("assistant", "continue", false, true),
            said("user", "new", true, true),
        ));
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "user: old",
                "model: done",
                "compaction: summary",
                "client: continue",
                "user: new"
            ]
        );
        assert_eq!(conversation.compactions[0].before_message, 2);
    }

    #[test]
    fn a_session_without_messages_has_none() {
        let source = read_text(r#"{"working_dir":"/w","id":"s","conversation":null}"#);
        assert_eq!(source.conversations[0].messages, []);
        assert!(Goose.read(&SourceText::from_text("{\"a\":1}")).is_err());
    }
}
