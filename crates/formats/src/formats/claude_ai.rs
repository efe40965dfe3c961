//! Claude.ai's data export, `conversations.json`.
//!
//! An answer that uses tools is one message with calls and results in it; it is split at the results, as
//! the model exchanged it. Text that was extracted from attached files is given before the message it came with, as the
//! client's; text of a file without a name is what the person pasted, and part of their message.

use std::collections::HashMap;

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{Author, Block, Content, Media, Message, Role};

use crate::formats::chat_message::{self, string};
use crate::formats::rows::rows;
use crate::formats::times;
use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct ClaudeAi;

impl Format for ClaudeAi {
    fn name(&self) -> &'static str {
        "claude-ai"
    }

    fn about(&self) -> &'static str {
        "Claude.ai data export (conversations.json)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        match probe.glance() {
            Some(glance) if glance.has("chat_messages") => 98,
            _ => 0,
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let found = rows(source, &["chat_messages"]);
        found.into_source(self.name(), "`chat_messages`", |row, _| conversation(row))
    }
}

fn conversation(row: &Raw) -> Option<Conversation> {
    let [uuid, name, model, messages, leaf] = row.fields([
        "uuid",
        "name",
        "model",
        "chat_messages",
        "current_leaf_message_uuid",
    ]);
    let list = messages.filter(|list| list.kind() == Kind::Array)?;
    let mut messages = Vec::new();
    for entry in branch(list.array().collect(), leaf.as_ref()) {
        add_messages(&entry, &mut messages);
    }
    chat_message::pair_by_order(&mut messages, "call-");
    let owned = |raw: Option<Raw>| raw.map(|raw| string(&raw).to_string());
    Some(Conversation {
        id: owned(uuid).unwrap_or_default(),
        title: owned(name).filter(|name| !name.is_empty()),
        model: owned(model).filter(|model| !model.is_empty()),
        messages,
        ..Conversation::default()
    })
}

/// The entries that lead to the current leaf, or all where they do not name their parents.
fn branch(entries: Vec<Raw>, leaf: Option<&Raw>) -> Vec<Raw> {
    let mut places = HashMap::new();
    let mut parents: Vec<ByteString> = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        let [uuid, parent] = entry.fields(["uuid", "parent_message_uuid"]);
        places.insert(uuid.as_ref().map(string).unwrap_or_default(), place);
        parents.push(parent.as_ref().map(string).unwrap_or_default());
    }
    let has_tree = parents.iter().any(|parent| places.contains_key(parent));
    if !has_tree {
        return entries;
    }
    let named = leaf.and_then(|leaf| places.get(&string(leaf)).copied());
    let mut at = named.or(entries.len().checked_sub(1));
    let mut entries: Vec<Option<Raw>> = entries.into_iter().map(Some).collect();
    let mut branch = Vec::new();
    while let Some(place) = at {
        let Some(entry) = entries[place].take() else {
            break; // a circle
        };
        branch.push(entry);
        at = places.get(&parents[place]).copied();
    }
    branch.reverse();
    branch
}

fn add_messages(entry: &Raw, messages: &mut Vec<Message>) {
    let [uuid, text, content, sender, created, attachments, files] = entry.fields([
        "uuid",
        "text",
        "content",
        "sender",
        "created_at",
        "attachments",
        "files",
    ]);
    let Some(role) = sender.and_then(|sender| chat_message::role(&string(&sender))) else {
        return;
    };
    let id = uuid.as_ref().map(string).filter(|id| !id.is_empty());
    let at_ms = created.as_ref().and_then(times::from_seconds);
    let mut add = |role: Role, author: Author, blocks: Vec<Block>, raw: Option<Raw>| {
        if !blocks.is_empty() {
            let mut message = Message::new(role, blocks);
            message.author = author;
            message.id = id.clone();
            message.at_ms = at_ms;
            message.raw = raw;
            messages.push(message);
        }
    };
    let attached: Vec<Raw> = attachments.iter().flat_map(Raw::array).collect();
    let mut extracted = Vec::new();
    // A long text that a person pastes becomes a file without a name: it is what they said.
    let mut pasted = Vec::new();
    for file in &attached {
        let [text, name] = file.fields(["extracted_content", "file_name"]);
        let Some(block) = text.as_ref().and_then(chat_message::text_block) else {
            continue;
        };
        match name
            .as_ref()
            .map(string)
            .is_none_or(|name| is_name_of_paste(&name))
        {
            true if role == Role::User => pasted.push(block),
            _ => extracted.push(block),
        }
    }
    add(Role::User, Author::Client, extracted, None);

    let mut blocks: Vec<Block> = content
        .as_ref()
        .map(chat_message::content_blocks)
        .unwrap_or_default();
    blocks
        .retain(|block| !matches!(&block.content, Content::Other(kind) if kind == "token_budget"));
    blocks
        .retain(|block| !matches!(&block.content, Content::Text(text) if text.encoded_len() == 0));
    if blocks.is_empty() {
        blocks.extend(text.as_ref().and_then(chat_message::text_block));
    }
    let is_named = |file: &&Raw| {
        let name = file.field("file_name").as_ref().map(string);
        !name.is_none_or(|name| is_name_of_paste(&name))
    };
    blocks.extend(pasted);
    let named = attached.iter().filter(is_named).cloned();
    for file in named.chain(files.iter().flat_map(Raw::array)) {
        blocks.push(file_block(&file));
    }
    let has_results = blocks.iter().any(is_result);
    if role == Role::User || !has_results {
        add(role, Author::Role, blocks, Some(entry.clone()));
        return;
    }
    let mut part: Vec<Block> = Vec::new();
    for block in blocks {
        if part.last().is_some_and(is_result) != is_result(&block) && !part.is_empty() {
            let role = if is_result(&block) { role } else { Role::User };
            add(role, Author::Role, std::mem::take(&mut part), None);
        }
        part.push(block);
    }
    let ends_with_result = part.last().is_some_and(is_result);
    let role = if ends_with_result { Role::User } else { role };
    add(role, Author::Role, part, None);
}

/// Whether a file has no name of its own: the person pasted its text.
fn is_name_of_paste(name: &str) -> bool {
    let name = name.trim();
    name.is_empty() || matches!(name, "paste.txt" | "pasted.txt" | "Pasted text")
}

fn is_result(block: &Block) -> bool {
    matches!(block.content, Content::ToolResult(_))
}

fn file_block(file: &Raw) -> Block {
    let [name, kind, size, file_kind] =
        file.fields(["file_name", "file_type", "file_size", "file_kind"]);
    let media = Media {
        media_type: kind.as_ref().map(string).filter(|kind| !kind.is_empty()),
        data_bytes: size
            .and_then(|size| size.as_u64())
            .map(|size| size as usize),
        name: name.as_ref().map(string),
    };
    let is_image = file_kind.is_some_and(|kind| string(&kind) == "image");
    Block {
        content: if is_image {
            Content::Image(media)
        } else {
            Content::Document(media)
        },
        raw: Some(file.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chat_message::outline;

    fn read(messages: &str) -> Conversation {
        let text = format!(
            r#"[{{"uuid":"u","name":"Bread","created_at":"2025-01-01T00:00:00Z","chat_messages":[{messages}]}}]"#
        );
        let source = SourceText {
            text: text.into(),
            skipped: Vec::new(),
        };
        ClaudeAi.read(&source).unwrap().conversations.remove(0)
    }

    #[test]
    fn texts_are_taken_from_content_or_text() {
        let found = read(
            r#"{"uuid":"1","sender":"human","text":"How long?","content":[],"created_at":"1970-01-01T00:00:03.5Z"},
            {"uuid":"2","sender":"assistant","text":"two\n\nhours","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"two hours"}]}"#,
        );
        assert_eq!(
            (found.id.as_str(), found.title.as_deref()),
            ("u", Some("Bread"))
        );
        assert_eq!(found.messages[0].at_ms, Some(3500));
        insta::assert_snapshot!(outline(&found.messages), @r#"
        User: "How long?"
        Assistant: think"hm" "two hours"
        "#);
    }

    #[test]
    fn an_answer_with_tools_is_split_at_the_results() {
        let found = read(
            r#"{"uuid":"2","sender":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","name":"search","input":{"q":1}},
            {"type":"tool_result","name":"search","content":[{"type":"text","text":"r"}],"is_error":false},{"type":"text","text":"b"}]}"#,
        );
        insta::assert_snapshot!(outline(&found.messages), @r#"
        Assistant: "a" call[call-1 search {"q":1}]
        User: result[call-1. "r"]
        Assistant: "b"
        "#);
    }

    #[test]
    fn attached_text_is_the_clients() {
        let found = read(
            r#"{"uuid":"1","sender":"human","text":"Summarise","attachments":[{"file_name":"a.txt","file_size":3,"extracted_content":"abc"}],"files":[{"file_name":"p.png","file_kind":"image"}]}"#,
        );
        insta::assert_snapshot!(outline(&found.messages), @r#"
        User(client): "abc"
        User: "Summarise" document[a.txt] image[p.png]
        "#);
    }

    #[test]
    fn pasted_text_is_the_persons() {
        let of = |text: &str, attachment: &str| {
            let found = read(&format!(
                r#"{{"uuid":"1","sender":"human","text":"","content":[{{"type":"text","text":"{text}"}}],"attachments":[{attachment}],"files":[]}}"#
            ));
            outline(&found.messages)
        };
        let pasted =
            r#"{"file_name":"","file_size":9,"file_type":"txt","extracted_content":"Oak only."}"#;
        assert_eq!(of("", pasted), "User: \"Oak only.\"\n");
        assert_eq!(of("Read on.", pasted), "User: \"Read on.\" \"Oak only.\"\n");
        let nameless = r#"{"extracted_content":"Oak only."}"#;
        assert_eq!(of("", nameless), "User: \"Oak only.\"\n");
        let named = r#"{"file_name":"paste.txt","extracted_content":"Oak only."}"#;
        assert_eq!(of("", named), "User: \"Oak only.\"\n");
        let file = r#"{"file_name":"wood.md","extracted_content":"Oak only."}"#;
        assert_eq!(
            of("Read it.", file),
            "User(client): \"Oak only.\"\nUser: \"Read it.\" document[wood.md]\n"
        );
    }

    #[test]
    fn of_edited_messages_the_last_branch_counts() {
        let found = read(
            r#"{"uuid":"1","sender":"human","text":"a","parent_message_uuid":"0"},{"uuid":"2","sender":"assistant","text":"old","parent_message_uuid":"1"},{"uuid":"3","sender":"assistant","text":"new","parent_message_uuid":"1"}"#,
        );
        assert_eq!(
            outline(&found.messages),
            "User: \"a\"\nAssistant: \"new\"\n"
        );
    }
}
