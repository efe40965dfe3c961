//! Exports of Open WebUI: a list of chats, one chat, or what is inside of one.
//!
//! The messages of a chat form a tree, since answers can be asked for again; `currentId` is the leaf that is shown. An
//! answer has its reasoning and its calls as HTML in its text ([`details`]).

mod details;

use std::collections::{HashMap, HashSet};

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Block, Message, Role};
use throughline_transcript::usage::Usage;

use crate::document::{Document, LineCounter};
use crate::formats::place::Place;
use crate::formats::rollback::note_left_out;
use crate::formats::{Format, Probe, anthropic_content, parts, times};
use crate::source::{ReadError, Source, SourceText};

/// Exports of Open WebUI.
pub(super) struct OpenWebUi;

impl Format for OpenWebUi {
    fn name(&self) -> &'static str {
        "open-webui"
    }

    fn about(&self) -> &'static str {
        "Open WebUI export (JSON)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        let is_chat = has(&["chat", "history"])
            || has(&["chat", "messages", "role"])
            || has(&["chat", "models"]);
        if is_chat || has(&["history", "currentId"]) {
            96
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let document = Document::read(source, &[], self.name(), |value| {
            value.field("chat").is_some()
        })?;
        let root = document.root();
        let chats: Vec<View<'_>> = match root.is_array() {
            true => root.elements().collect(),
            false => vec![root],
        };
        let mut lines = LineCounter::default();
        let conversations: Vec<Conversation> = chats
            .into_iter()
            .filter_map(|chat| {
                let line = lines.line(document.text(), chat.offset());
                conversation(chat, line)
            })
            .collect();
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no chat with `history` or `messages`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: document.skipped,
        })
    }
}

fn conversation(value: View<'_>, line: usize) -> Option<Conversation> {
    let chat = value.field("chat").unwrap_or(value);
    let system = chat
        .field("params")
        .and_then(|settings| settings.field("system"))
        .or_else(|| chat.field("system"))
        .and_then(parts::text);
    let mut conversation = Conversation {
        id: parts::string(value, "id")
            .or_else(|| parts::string(chat, "id"))
            .unwrap_or_default(),
        title: parts::string(value, "title").or_else(|| parts::string(chat, "title")),
        system: system.into_iter().collect(),
        ..Conversation::default()
    };
    let tree = chat.field("history").and_then(|history| {
        let messages = history
            .field("messages")
            .filter(|messages| messages.is_object())?;
        Some((messages, history.field("currentId").and_then(View::decode)))
    });
    match tree {
        Some((messages, leaf)) if messages.fields().next().is_some() => {
            let by_id: HashMap<_, _> = messages.fields().collect();
            let mut branch = Vec::new();
            let mut seen = HashSet::new();
            let mut next = leaf.filter(|leaf| by_id.contains_key(leaf));
            // The leaf can be missing: the last message is it.
            if next.is_none() {
                next = messages.fields().last().map(|(id, _)| id);
            }
            while let Some(id) = next {
                let Some(message) = by_id.get(&id).copied() else {
                    break;
                };
                if !seen.insert(id) {
                    break;
                }
                branch.push(message);
                next = message.field("parentId").and_then(View::decode);
            }
            let left_out = by_id.len() - branch.len();
            for message in branch.into_iter().rev() {
                add(&mut conversation, message, line);
            }
            note_left_out(&mut conversation, left_out, "on other branches");
        }
        _ => {
            let messages = chat
                .field("messages")
                .filter(|messages| messages.is_array())?;
            for message in messages.elements() {
                add(&mut conversation, message, line);
            }
        }
    }
    Some(conversation)
}

fn add(conversation: &mut Conversation, value: View<'_>, line: usize) {
    let place = Place {
        line,
        at_ms: value.field("timestamp").and_then(times::from_number),
        id: value.field("id").and_then(View::to_bytestring),
    };
    let content = value.string_field("content").unwrap_or_default();
    if value.string_field("role").as_deref() == Some("assistant") {
        if let Some(model) = parts::string(value, "model") {
            conversation.model = Some(model);
        }
        let first = conversation.messages.len();
        details::answer(&content, &mut conversation.messages, &place);
        if let Some(message) = conversation.messages.get_mut(first) {
            message.usage = value.field("usage").and_then(usage);
        }
        return;
    }
    let role = match value.string_field("role").as_deref() {
        Some("user") => Role::User,
        Some("system") => Role::System,
        _ => return,
    };
    let mut blocks: Vec<Block> = value
        .field("content")
        .and_then(parts::text)
        .into_iter()
        .collect();
    blocks.extend(
        value
            .field("files")
            .into_iter()
            .flat_map(View::elements)
            .map(file),
    );
    if !blocks.is_empty() {
        let mut message = Message::new(role, blocks);
        message.raw = Some(value.raw());
        conversation.messages.push(place.put(message));
    }
}

fn file(value: View<'_>) -> Block {
    let inner = value.field("file").unwrap_or(value);
    let named = parts::string(value, "name").or_else(|| parts::string(inner, "filename"));
    let address = value.string_field("url");
    let mut media = parts::media(address.as_deref(), None);
    if value.string_field("type").as_deref() == Some("image") && media.media_type.is_none() {
        media.media_type = Some("image/*".into());
    }
    media.name = named.map(Into::into).or(media.name);
    Block {
        content: media.into_content(),
        raw: Some(value.raw()),
    }
}

fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    parts::used(Usage {
        uncached: tokens("prompt_tokens").max(tokens("prompt_eval_count")),
        output: tokens("completion_tokens").max(tokens("eval_count")),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    const CHAT: &str = r#"{"id":"c1","user_id":"u","title":"Tides","chat":{"title":"Tides","models":["m-1"],"params":{"system":"Be brief."},"history":{"currentId":"b2","messages":{
"a":{"id":"a","parentId":null,"childrenIds":["b1","b2"],"role":"user","content":"How high?","files":[{"type":"image","url":"data:image/png;base64,AAAA"},{"type":"file","name":"t.pdf","file":{"filename":"t.pdf"}}],"timestamp":1767225600},
"b1":{"id":"b1","parentId":"a","childrenIds":[],"role":"assistant","content":"Low.","model":"m-0","timestamp":1767225601},
"b2":{"id":"b2","parentId":"a","childrenIds":[],"role":"assistant","content":"High.","model":"m-1","timestamp":1767225602,"usage":{"prompt_tokens":3,"completion_tokens":4}}}},"messages":[]}}"#;

    #[test]
    fn the_branch_that_is_shown_is_read() {
        for text in [format!("[{CHAT}]"), CHAT.to_owned()] {
            let source = OpenWebUi.read(&SourceText::from_text(text)).unwrap();
            let conversation = &source.conversations[0];
            assert_eq!(
                story(conversation),
                ["user: How high? + image  + document t.pdf", "model: High."]
            );
            assert_eq!(conversation.title.as_deref(), Some("Tides"));
            assert_eq!(conversation.model.as_deref(), Some("m-1"));
            assert_eq!(conversation.messages[0].at_ms, Some(1_767_225_600_000));
            assert_eq!(conversation.messages[1].usage.unwrap().output, 4);
            assert_eq!(conversation.problems[0].code, "rolled-back");
        }
    }

    #[test]
    fn old_exports_have_a_list() {
        let text = r#"[{"chat":{"messages":[{"role":"user","content":"How high?"},{"role":"assistant","content":"High."}]}}]"#;
        let source = OpenWebUi.read(&SourceText::from_text(text)).unwrap();
        assert_eq!(
            story(&source.conversations[0]),
            ["user: How high?", "model: High."]
        );
        assert!(OpenWebUi.read(&SourceText::from_text("[]")).is_err());
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let text = r#"{"chat":{"history":{"currentId":"a","messages":{"a":{"parentId":"b","role":"user","content":"x"},"b":{"parentId":"a","role":"user","content":"y"}}}}}"#;
        let source = OpenWebUi.read(&SourceText::from_text(text)).unwrap();
        assert_eq!(source.conversations[0].messages.len(), 2);
    }
}
