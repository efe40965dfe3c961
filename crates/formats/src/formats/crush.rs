//! Crush: what `crush session show --json` prints, and the rows of its database in the same form.
//!
//! A message is a list of parts; in the database each part has its fields under `data`. A summary replaces for the model
//! what was before.

use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Media, Message, Role};

use crate::document::{Document, LineCounter};
use crate::formats::place::Place;
use crate::formats::{Format, Probe, anthropic_content, parts, times};
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["metadata", "responses_data"];

/// Sessions of Crush.
pub(super) struct Crush;

impl Format for Crush {
    fn name(&self) -> &'static str {
        "crush"
    }

    fn about(&self) -> &'static str {
        "Crush session (export, crush.db)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        if has(&["meta", "id"])
            && has(&["messages"])
            && (has(&["meta", "uuid"]) || has(&["messages", "parts"]))
        {
            96
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let document = Document::read(source, OPAQUE, self.name(), |value| {
            value.field("parts").is_some() || value.field("meta").is_some()
        })?;
        let root = document.root();
        let sessions: Vec<View<'_>> = match root.is_array() {
            true => root.elements().collect(),
            false => vec![root],
        };
        let mut lines = LineCounter::default();
        let conversations: Vec<Conversation> = sessions
            .into_iter()
            .filter_map(|session| {
                let mut conversation = head(session.field("meta")?);
                for message in session.field("messages")?.elements() {
                    let line = lines.line(document.text(), message.offset());
                    add(&mut conversation, message, line);
                }
                Some(conversation)
            })
            .collect();
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no session with `meta` and `messages`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: document.skipped,
        })
    }
}

fn head(meta: View<'_>) -> Conversation {
    // The id is short in an export, the other one is whole.
    let id = parts::string(meta, "uuid").or_else(|| parts::string(meta, "id"));
    Conversation {
        id: id.unwrap_or_default(),
        parent_id: parts::string(meta, "parent_session_id"),
        title: parts::string(meta, "title"),
        ..Conversation::default()
    }
}

fn add(conversation: &mut Conversation, value: View<'_>, line: usize) {
    let role = match value.string_field("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some("system") => Role::System,
        _ => return,
    };
    let created = value.field("created").or_else(|| value.field("created_at"));
    let place = Place {
        line,
        at_ms: created.and_then(times::from_number),
        id: value.field("id").and_then(View::to_bytestring),
    };
    if let (Role::Assistant, Some(model)) = (role, parts::string(value, "model")) {
        conversation.model = Some(model);
    }
    let is_summary = value
        .field("is_summary_message")
        .is_some_and(|flag| flag.is_true() || flag.as_u64() == Some(1));
    if is_summary {
        conversation.compactions.push(CompactionMark {
            before_message: conversation.messages.len(),
            tokens_before: None,
            trigger: None,
        });
    }
    let (mut said, mut run) = (Vec::new(), Vec::new());
    for part in value.field("parts").into_iter().flat_map(View::elements) {
        let kind = part.string_field("type").unwrap_or_default();
        let data = part
            .field("data")
            .filter(|data| data.is_object())
            .unwrap_or(part);
        if kind == "shell_command" {
            let text = |key| data.string_field(key).unwrap_or_default();
            run.push(Block::text(format!(
                "$ {}\n{}",
                text("command"),
                text("output")
            )));
        } else {
            said.extend(block(&kind, data));
        }
    }
    for (author, blocks) in [(Author::Client, run), (Author::Role, said)] {
        if !blocks.is_empty() {
            let mut message = Message::new(role, blocks);
            message.author = if is_summary {
                Author::Compaction
            } else {
                author
            };
            conversation.messages.push(place.put(message));
        }
    }
}

fn block(kind: &str, data: View<'_>) -> Option<Block> {
    let raw = Some(data.raw());
    let name = |key| data.field(key).and_then(View::to_bytestring);
    let content = match kind {
        "text" => return data.field("text").and_then(parts::text),
        "reasoning" => return data.field("thinking").and_then(parts::thinking),
        "finish" => return None,
        "tool_call" => {
            let id = name("tool_call_id")
                .or_else(|| name("id"))
                .unwrap_or_default();
            let input = data.field("input");
            return Some(parts::call(id, parts::name(data, "name"), input, raw));
        }
        "tool_result" => {
            let mut content: Vec<Block> = data
                .field("content")
                .and_then(parts::text)
                .into_iter()
                .collect();
            let picture = data
                .field("data")
                .and_then(View::as_text)
                .filter(|data| data.encoded_len() > 0);
            if let Some(picture) = picture {
                let media = Media {
                    media_type: name("mime_type"),
                    data_bytes: Some(anthropic_content::base64_bytes(picture.encoded_len())),
                    name: None,
                };
                content.push(Block::new(media.into_content()));
            }
            let is_error = data
                .field("is_error")
                .and_then(View::as_bool)
                .unwrap_or_default();
            return Some(parts::result(
                parts::name(data, "tool_call_id"),
                content,
                Some(is_error),
            ));
        }
        "image_url" => Content::Image(parts::media(data.string_field("url").as_deref(), None)),
        "binary" => Media {
            media_type: name("MIMEType").or_else(|| name("mime_type")),
            data_bytes: data
                .field("Data")
                .and_then(View::as_text)
                .map(|data| anthropic_content::base64_bytes(data.encoded_len())),
            name: name("Path").or_else(|| name("path")),
        }
        .into_content(),
        other => Content::Other(other.into()),
    };
    Some(Block { content, raw })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    fn read_text(text: &str) -> Source {
        Crush.read(&SourceText::from_text(text.to_owned())).unwrap()
    }

    #[test]
    fn exports_and_rows_are_read_alike() {
        let export = r#"{"meta":{"id":"a1","uuid":"u-1","title":"Piers","created":"2026-01-01T00:00:00Z"},"messages":[
{"id":"m1","role":"user","created":"2026-01-01T00:00:01Z","parts":[{"type":"text","text":"Count the piers."}]},
{"id":"m2","role":"assistant","created":"2026-01-01T00:00:02Z","model":"m-1","parts":[{"type":"reasoning","thinking":"hm"},{"type":"tool_call","tool_call_id":"c1","name":"bash","input":"{\"command\":\"ls\"}"},{"type":"finish","reason":"tool_use"}]},
{"id":"m3","role":"tool","parts":[{"type":"tool_result","tool_call_id":"c1","name":"bash","content":"three"}]},
{"id":"m4","role":"assistant","parts":[{"type":"text","text":"Three."}]}]}"#;
        let rows = r#"[{"meta":{"id":"u-1","title":"Piers"},"messages":[
{"id":"m1","role":"user","created_at":1767225601,"parts":[{"type":"text","data":{"text":"Count the piers."}}]},
{"id":"m2","role":"assistant","created_at":1767225602,"model":"m-1","parts":[{"type":"reasoning","data":{"thinking":"hm"}},{"type":"tool_call","data":{"id":"c1","name":"bash","input":"{\"command\":\"ls\"}","finished":true}},{"type":"finish","data":{"reason":"tool_use"}}]},
{"id":"m3","role":"tool","parts":[{"type":"tool_result","data":{"tool_call_id":"c1","name":"bash","content":"three","data":"","is_error":false}}]},
{"id":"m4","role":"assistant","parts":[{"type":"text","data":{"text":"Three."}}]}]}]"#;
        for text in [export, rows] {
            let conversation = &read_text(text).conversations[0];
            assert_eq!(
                story(conversation),
                [
                    "user: Count the piers.",
                    "model: (hm) + call c1 bash",
                    "tool: result c1 three",
                    "model: Three.",
                ]
            );
            assert_eq!(conversation.id, "u-1");
            assert_eq!(conversation.model.as_deref(), Some("m-1"));
            assert_eq!(conversation.messages[0].at_ms, Some(1_767_225_601_000));
            assert_eq!(conversation.messages[3].position.line, 5);
        }
    }

    #[test]
    fn summaries_and_commands_of_the_user() {
        let conversation = &read_text(
            r#"{"meta":{"id":"a","parent_session_id":"p"},"messages":[
{"role":"user","parts":[{"type":"shell_command","data":{"command":"ls","output":"a","exit_code":0}}]},
{"role":"assistant","is_summary_message":1,"parts":[{"type":"text","data":{"text":"so far"}}]},
{"role":"user","parts":[{"type":"text","data":{"text":"go on"}},{"type":"binary","data":{"Path":"q.png","MIMEType":"image/png","Data":"AAAA"}}]}]}"#,
        )
        .conversations[0];
        assert_eq!(
            story(conversation),
            [
                "client: $ ls\na",
                "compaction: so far",
                "user: go on + image q.png"
            ]
        );
        assert_eq!(conversation.compactions[0].before_message, 1);
        assert_eq!(conversation.parent_id.as_deref(), Some("p"));
    }
}
