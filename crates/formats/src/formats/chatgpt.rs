//! ChatGPT's data export, `conversations.json`: each conversation is a tree of messages, and the branch that ends in
//! `current_node` is the one that the user saw last.
//!
//! A message to a recipient other than `all` is a tool call; the tool's next message is its result. Calls have no ids
//! in the source, so the id of the calling message is used. Older exports have a flat list.

use std::collections::HashMap;

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Kind, Raw, Text};
use throughline_transcript::message::{
    Author, Block, Content, Media, Message, Role, ToolCall, ToolInput, ToolResult,
};

use crate::formats::chat_message::{self, string};
use crate::formats::rows::rows;
use crate::formats::times;
use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct ChatGpt;

impl Format for ChatGpt {
    fn name(&self) -> &'static str {
        "chatgpt"
    }

    fn about(&self) -> &'static str {
        "ChatGPT data export (conversations.json)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let is_tree = glance.has("mapping")
            && (glance.has("title") || glance.has("current_node") || glance.has("create_time"));
        let is_flat = glance.has_path(&["messages", "author", "role"])
            && glance.has_path(&["messages", "content"]);
        match (is_tree, is_flat) {
            (true, _) => 97,
            (_, true) => 90,
            _ => 0,
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let found = rows(source, &["mapping", "messages"]);
        found.into_source(self.name(), "`mapping` or `messages`", |row, _| {
            conversation(row)
        })
    }
}

fn conversation(row: &Raw) -> Option<Conversation> {
    let [
        id,
        conversation_id,
        title,
        mapping,
        messages,
        current,
        default_model,
    ] = row.fields([
        "id",
        "conversation_id",
        "title",
        "mapping",
        "messages",
        "current_node",
        "default_model_slug",
    ]);
    let mut reader = Reader::default();
    if let Some(mapping) = mapping.filter(|mapping| mapping.kind() == Kind::Object) {
        for message in branch(&mapping, current.as_ref()) {
            reader.message(&message);
        }
    } else {
        let list = messages.filter(|list| list.kind() == Kind::Array)?;
        for message in list.array() {
            reader.message(&message);
        }
    }
    Some(Conversation {
        id: conversation_id
            .or(id)
            .as_ref()
            .map(string)
            .unwrap_or_default()
            .to_string(),
        title: title
            .and_then(|raw| raw.as_text())
            .map(|text| text.decode().into_owned()),
        model: reader
            .model
            .or_else(|| Some(default_model?.as_text()?.decode().into_owned())),
        messages: reader.messages,
        ..Conversation::default()
    })
}

/// The messages from the root to the current node. Without a known current node the newest leaf counts.
fn branch(mapping: &Raw, current: Option<&Raw>) -> Vec<Raw> {
    let mut nodes: Vec<(Option<ByteString>, Option<Raw>)> = Vec::new();
    let mut places: HashMap<ByteString, usize> = HashMap::new();
    let mut newest: Option<(f64, usize)> = None;
    for (name, node) in mapping.object() {
        let [parent, message, children] = node.fields(["parent", "message", "children"]);
        let message = message.filter(|message| message.kind() == Kind::Object);
        let is_leaf = children.is_none_or(|children| children.array().next().is_none());
        if is_leaf {
            let time = message
                .as_ref()
                .and_then(|message| message.field("create_time")?.as_f64())
                .unwrap_or(0.0);
            if newest.is_none_or(|(newest, _)| time >= newest) {
                newest = Some((time, nodes.len()));
            }
        }
        places.insert(name.decode().into_owned().into(), nodes.len());
        let parent = parent.as_ref().map(string).filter(|id| !id.is_empty());
        nodes.push((parent, message));
    }
    let named = current.and_then(|id| places.get(&string(id)).copied());
    let mut at = named.or(newest.map(|(_, place)| place));
    let mut messages = Vec::new();
    while let Some(place) = at {
        let (parent, message) = std::mem::take(&mut nodes[place]);
        messages.extend(message);
        // The node was taken, so that a circle of parents ends here.
        at = parent.and_then(|parent| places.get(&parent).copied());
    }
    messages.reverse();
    messages
}

#[derive(Default)]
struct Reader {
    messages: Vec<Message>,
    model: Option<String>,
    /// The call that waits for its result, or whose results are coming in.
    open: Option<ByteString>,
}

impl Reader {
    fn message(&mut self, raw: &Raw) {
        let [id, author, flat_role, created, content, recipient, metadata] = raw.fields([
            "id",
            "author",
            "role",
            "create_time",
            "content",
            "recipient",
            "metadata",
        ]);
        let role = author
            .and_then(|author| author.field("role"))
            .or(flat_role)
            .and_then(|role| chat_message::role(&string(&role)));
        let (Some(role), Some(content)) = (role, content) else {
            return;
        };
        let is_instruction = content_type(&content) == "user_editable_context";
        let marked = |name: &str| {
            let mark = metadata.as_ref().and_then(|metadata| metadata.field(name));
            mark.and_then(|mark| mark.as_bool()).unwrap_or(false)
        };
        // The user's standing instructions are hidden as well, but the model reads them.
        if marked("is_visually_hidden_from_conversation") && !is_instruction {
            return;
        }
        let mut blocks = blocks(&content);
        if role == Role::Assistant
            && let Some(model) = metadata
                .as_ref()
                .and_then(|metadata| metadata.string_field("model_slug"))
        {
            self.model = Some(model);
        }
        if blocks.is_empty() {
            return;
        }
        let id = id.as_ref().map(string).unwrap_or_default();
        let recipient = recipient.as_ref().map(string).unwrap_or_default();
        match role {
            Role::Assistant if !recipient.is_empty() && recipient != "all" => {
                let call_id = if id.is_empty() {
                    format!("call-{}", self.messages.len()).into()
                } else {
                    id.clone()
                };
                self.open = Some(call_id.clone());
                blocks = vec![call(call_id, recipient, blocks, &content)];
            }
            Role::Tool => {
                if self.continue_result(&blocks) {
                    return;
                }
                blocks = vec![Block::new(Content::ToolResult(ToolResult {
                    call_id: self.open.clone().unwrap_or_default(),
                    content: blocks,
                    is_error: (content_type(&content) == "system_error").then_some(true),
                    is_server_side: false,
                }))];
            }
            _ => self.open = None,
        }
        let mut message = Message::new(role, blocks);
        if is_instruction {
            message.author = Author::Client;
        }
        message.id = Some(id).filter(|id| !id.is_empty());
        message.at_ms = created.as_ref().and_then(times::from_seconds);
        message.raw = Some(raw.clone());
        self.messages.push(message);
    }

    /// A tool may say several things about one call: they are one result.
    fn continue_result(&mut self, blocks: &[Block]) -> bool {
        if let Some(last) = self.messages.last_mut()
            && let [block] = last.blocks.as_mut_slice()
            && let Content::ToolResult(result) = &mut block.content
            && !result.call_id.is_empty()
            && Some(&result.call_id) == self.open.as_ref()
        {
            result.content.extend_from_slice(blocks);
            return true;
        }
        false
    }
}

fn call(id: ByteString, name: ByteString, blocks: Vec<Block>, content: &Raw) -> Block {
    let mut texts = blocks.iter().filter_map(|block| match &block.content {
        Content::Text(text) => Some(text),
        _ => None,
    });
    let input = match (texts.next(), texts.next()) {
        (Some(text), None) => ToolInput::from_encoded(text),
        _ => ToolInput::Json(content.clone()),
    };
    Block {
        content: Content::ToolCall(ToolCall {
            id,
            name,
            input,
            is_server_side: false,
        }),
        raw: Some(content.clone()),
    }
}

fn content_type(content: &Raw) -> ByteString {
    content
        .field("content_type")
        .as_ref()
        .map(string)
        .unwrap_or_default()
}

fn blocks(content: &Raw) -> Vec<Block> {
    if content.kind() == Kind::String {
        return chat_message::content_blocks(content);
    }
    let [parts, plain, result, thoughts, recap] =
        content.fields(["parts", "text", "result", "thoughts", "content"]);
    match content_type(content).as_ref() {
        "thoughts" => {
            let thoughts = thoughts.iter().flat_map(Raw::array).filter_map(|thought| {
                let [full, summary] = thought.fields(["content", "summary"]);
                let text = [full, summary]
                    .into_iter()
                    .flatten()
                    .filter_map(|raw| raw.as_text())
                    .find(|text| text.encoded_len() > 0)?;
                Some(Block {
                    content: Content::Thinking(text),
                    raw: Some(thought),
                })
            });
            thoughts.collect()
        }
        "reasoning_recap" => Vec::new(), // "Thought for 5 seconds"
        "user_editable_context" => content
            .object()
            .filter(|(name, _)| name.decode() != "content_type")
            .filter_map(|(_, value)| text(&value))
            .collect(),
        "tether_browsing_display" => [result, content.field("summary")]
            .into_iter()
            .flatten()
            .filter_map(|raw| text(&raw))
            .collect(),
        "tether_quote" => {
            let [title, url] = content.fields(["title", "url"]);
            [title, url, plain]
                .into_iter()
                .flatten()
                .filter_map(|raw| text(&raw))
                .collect()
        }
        kind => {
            let list: Vec<Block> = parts
                .iter()
                .flat_map(Raw::array)
                .filter_map(|raw| part(&raw))
                .collect();
            if !list.is_empty() {
                return list;
            }
            match [plain, result, recap].into_iter().flatten().next() {
                Some(raw) => text(&raw).into_iter().collect(),
                None if parts.is_some() => Vec::new(),
                None => vec![Block {
                    content: Content::Other(kind.into()),
                    raw: Some(content.clone()),
                }],
            }
        }
    }
}

fn text(raw: &Raw) -> Option<Block> {
    chat_message::text_block(raw)
        .filter(|block| !matches!(&block.content, Content::Text(text) if text.is_blank()))
}

fn part(part: &Raw) -> Option<Block> {
    if part.kind() != Kind::Object {
        return text(part);
    }
    let kind = content_type(part);
    let content = match kind.as_ref() {
        "image_asset_pointer" => {
            let [pointer, size] = part.fields(["asset_pointer", "size_bytes"]);
            Content::Image(Media {
                media_type: None,
                data_bytes: size
                    .and_then(|size| size.as_u64())
                    .map(|size| size as usize),
                name: pointer.as_ref().map(string),
            })
        }
        "audio_transcription" => Content::Text(part.text_field("text").unwrap_or(Text::plain(""))),
        _ => Content::Other(kind),
    };
    Some(Block {
        content,
        raw: Some(part.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chat_message::outline;

    fn read(text: &str) -> Vec<Conversation> {
        let source = SourceText {
            text: text.into(),
            skipped: Vec::new(),
        };
        ChatGpt.read(&source).unwrap().conversations
    }

    fn node(id: &str, parent: &str, message: &str) -> String {
        format!(r#""{id}":{{"id":"{id}","parent":"{parent}","children":[],"message":{message}}}"#)
    }

    fn tree(current: &str, nodes: &[String]) -> String {
        format!(
            r#"[{{"title":"Tea","create_time":1.0,"mapping":{{{}}},"current_node":"{current}","conversation_id":"c1","default_model_slug":"d"}}]"#,
            nodes.join(",")
        )
    }

    fn said(role: &str, text: &str) -> String {
        format!(
            r#"{{"id":"m","author":{{"role":"{role}"}},"create_time":2.5,"content":{{"content_type":"text","parts":["{text}"]}},"recipient":"all","metadata":{{"model_slug":"m1"}}}}"#
        )
    }

    #[test]
    fn the_branch_of_the_current_node_is_read() {
        let found = read(&tree(
            "d",
            &[
                node("a", "", "null"),
                node("b", "a", &said("user", "Which tea?")),
                node("c", "b", &said("assistant", "Green")),
                node("d", "b", &said("assistant", "Black")),
            ],
        ));
        assert_eq!(
            (found[0].id.as_str(), found[0].title.as_deref()),
            ("c1", Some("Tea"))
        );
        assert_eq!(found[0].model.as_deref(), Some("m1"));
        assert_eq!(found[0].messages[0].at_ms, Some(2500));
        insta::assert_snapshot!(outline(&found[0].messages), @r#"
        User: "Which tea?"
        Assistant: "Black"
        "#);
    }

    #[test]
    fn an_unknown_current_node_and_a_circle_do_not_hurt() {
        let found = read(&tree(
            "gone",
            &[
                node("a", "b", &said("user", "Hi")),
                node("b", "a", &said("assistant", "Ho")),
            ],
        ));
        assert_eq!(found[0].messages.len(), 2);
    }

    #[test]
    fn hidden_messages_are_left_out_but_standing_instructions_kept() {
        let found = read(&tree(
            "c",
            &[
                node(
                    "a",
                    "",
                    r#"{"id":"1","author":{"role":"system"},"content":{"content_type":"text","parts":[""]},"metadata":{"is_visually_hidden_from_conversation":true}}"#,
                ),
                node(
                    "b",
                    "a",
                    r#"{"id":"2","author":{"role":"user"},"content":{"content_type":"user_editable_context","user_profile":"I am a baker","user_instructions":"Be short"},"metadata":{"is_visually_hidden_from_conversation":true}}"#,
                ),
                node("c", "b", &said("user", "Hi")),
            ],
        ));
        insta::assert_snapshot!(outline(&found[0].messages), @r#"
        User(client): "I am a baker" "Be short"
        User: "Hi"
        "#);
    }

    #[test]
    fn a_message_to_a_tool_is_a_call_and_the_tool_answers() {
        let found = read(&tree(
            "e",
            &[
                node("a", "", &said("user", "Plot it")),
                node(
                    "b",
                    "a",
                    r#"{"id":"k","author":{"role":"assistant"},"content":{"content_type":"code","language":"python","text":"plot(1)"},"recipient":"python"}"#,
                ),
                node(
                    "c",
                    "b",
                    r#"{"id":"t","author":{"role":"tool","name":"python"},"content":{"content_type":"execution_output","text":"ok"},"recipient":"all"}"#,
                ),
                node(
                    "d",
                    "c",
                    r#"{"id":"u","author":{"role":"tool","name":"python"},"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"file-service://f"}]},"recipient":"all"}"#,
                ),
                node(
                    "e",
                    "d",
                    r#"{"id":"v","author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":[{"summary":"s","content":"It is a line"}]},"recipient":"all"}"#,
                ),
            ],
        ));
        insta::assert_snapshot!(outline(&found[0].messages), @r#"
        User: "Plot it"
        Assistant: call[k python "plot(1)"]
        Tool: result[k "ok" image[file-service://f]]
        Assistant: think"It is a line"
        "#);
    }

    #[test]
    fn flat_lists_of_old_exports_are_read() {
        let found =
            read(r#"[{"title":"T","messages":[{"author":{"role":"user"},"content":"Hi"}]}]"#);
        assert_eq!(outline(&found[0].messages), "User: \"Hi\"\n");
    }

    #[test]
    fn a_torn_export_keeps_the_conversations_before() {
        let whole = tree("a", &[node("a", "", &said("user", "Hi"))]);
        let torn = format!("{},{}", &whole[..whole.len() - 1], &whole[1..60]);
        let source = SourceText {
            text: torn.into(),
            skipped: Vec::new(),
        };
        let found = ChatGpt.read(&source).unwrap();
        assert_eq!((found.conversations.len(), found.skipped.len()), (1, 1));
    }
}
