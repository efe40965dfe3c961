//! The chats of `state.vscdb`, put together as `[{"composer": ..., "bubbles": [...]}]`, or one that was exported.
//!
//! A bubble is what the person said, or one step of the answer: a text, reasoning, or a tool with its result.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Block, Content, Message, Role};
use throughline_transcript::usage::Usage;

use crate::document::{Document, LineCounter};
use crate::formats::glance::Glance;
use crate::formats::parts::{self, Answer};
use crate::formats::place::Place;
use crate::formats::{anthropic_content, times};
use crate::source::{Source, SourceText};

const OPAQUE: &[&str] = &["richText", "context", "codeBlockData", "originalFileStates"];

pub(super) fn fits(glance: &Glance<'_>) -> u8 {
    let has = |path: &[&str]| glance.has_path(path);
    if has(&["composer", "composerId"]) && has(&["bubbles"])
        || has(&["composerId"]) && has(&["conversation", "type"])
    {
        97
    } else {
        0
    }
}

/// `None` if it is not of that shape.
pub(super) fn read(source: &SourceText, format: &'static str) -> Option<Source> {
    let document = Document::read(source, OPAQUE, format, |value| {
        value.field("bubbleId").is_some() || value.field("composer").is_some()
    })
    .ok()?;
    let root = document.root();
    let mut lines = LineCounter::default();
    let chats: Vec<View<'_>> = match root.is_array() {
        true => root.elements().collect(),
        false => vec![root],
    };
    let conversations: Vec<Conversation> = chats
        .into_iter()
        .filter_map(|chat| {
            let composer = chat.field("composer").unwrap_or(chat);
            composer.field("composerId")?;
            let bubbles = chat
                .field("bubbles")
                .or_else(|| composer.field("conversation"))?;
            let mut conversation = head(composer);
            for bubble in bubbles.elements() {
                let line = lines.line(document.text(), bubble.offset());
                add(&mut conversation, bubble, line);
            }
            Some(conversation)
        })
        .collect();
    (!conversations.is_empty()).then_some(Source {
        format,
        conversations,
        skipped: document.skipped,
    })
}

fn head(composer: View<'_>) -> Conversation {
    Conversation {
        id: parts::string(composer, "composerId").unwrap_or_default(),
        title: parts::string(composer, "name"),
        model: composer
            .field("modelConfig")
            .and_then(|config| parts::string(config, "modelName"))
            .filter(|model| model != "default"),
        ..Conversation::default()
    }
}

fn add(conversation: &mut Conversation, bubble: View<'_>, line: usize) {
    let place = Place {
        line,
        at_ms: bubble.field("createdAt").and_then(times::from_number),
        id: bubble.field("bubbleId").and_then(View::to_bytestring),
    };
    if conversation.cwd.is_none() {
        let folder = bubble
            .field("workspaceUris")
            .and_then(|folders| folders.elements().next())
            .and_then(View::decode);
        conversation.cwd = folder.map(|folder| parts::path_of(&folder).to_owned());
    }
    let said = bubble.field("text").and_then(parts::text);
    match bubble.field("type").and_then(View::as_u64) {
        Some(1) => {
            let mut blocks: Vec<Block> = said.into_iter().collect();
            let pictures = bubble.field("images").into_iter().flat_map(View::elements);
            blocks.extend(pictures.map(|picture| Block {
                content: Content::Image(parts::media(
                    picture.string_field("path").as_deref(),
                    None,
                )),
                raw: Some(picture.raw()),
            }));
            if !blocks.is_empty() {
                let mut message = Message::new(Role::User, blocks);
                message.raw = Some(bubble.raw());
                conversation.messages.push(place.put(message));
            }
        }
        Some(2) => {
            let mut answer = Answer::default();
            let thoughts = bubble
                .field("thinking")
                .map(|thinking| thinking.field("text").unwrap_or(thinking));
            answer.blocks.extend(thoughts.and_then(parts::thinking));
            answer.blocks.extend(said);
            if let Some(tool) = bubble.field("toolFormerData") {
                add_tool(tool, &mut answer);
            }
            answer.usage = bubble.field("tokenCount").and_then(usage);
            let model = bubble
                .field("modelInfo")
                .and_then(|model| parts::string(model, "modelName"));
            conversation.model = model.or(conversation.model.take());
            answer.put(&mut conversation.messages, &place);
        }
        _ => {}
    }
}

fn add_tool(tool: View<'_>, answer: &mut Answer) {
    let name = parts::name(tool, "name");
    if name.is_empty() {
        return;
    }
    let id = parts::name(tool, "toolCallId");
    let input = tool
        .field("rawArgs")
        .filter(|arguments| arguments.as_text().is_none_or(|text| !text.is_blank()))
        .or_else(|| tool.field("params"));
    answer
        .blocks
        .push(parts::call(id.clone(), name, input, Some(tool.raw())));
    let is_error = match tool.string_field("status").as_deref() {
        Some("completed") => Some(false),
        Some("error" | "cancelled" | "rejected") => Some(true),
        _ => None,
    };
    let content: Vec<Block> = tool
        .field("result")
        .into_iter()
        .chain(tool.field("error"))
        .filter_map(parts::text)
        .collect();
    if is_error.is_some() || !content.is_empty() {
        answer.results.push(parts::result(id, content, is_error));
    }
}

fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    parts::used(Usage {
        uncached: tokens("inputTokens"),
        output: tokens("outputTokens"),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::formats::Format;
    use crate::formats::cursor::Cursor;
    use crate::formats::testing::story;
    use crate::source::SourceText;

    const BUBBLES: &str = r#"[{"bubbleId":"b1","type":1,"text":"Mend the tiller.","createdAt":"2026-01-01T00:00:00Z","workspaceUris":["file:///w"]},
{"bubbleId":"b2","type":2,"text":"","thinking":{"text":"hm"},"modelInfo":{"modelName":"m-1"}},
{"bubbleId":"b3","type":2,"text":"","toolFormerData":{"toolCallId":"c1","name":"read_file","rawArgs":"{\"path\":\"t\"}","status":"completed","result":"{\"contents\":\"oak\"}"}},
{"bubbleId":"b4","type":2,"text":"Mended.","tokenCount":{"inputTokens":3,"outputTokens":4}}]"#;

    #[test]
    fn bubbles_become_messages() {
        for text in [
            format!(
                r#"[{{"composer":{{"composerId":"k1","name":"Tiller"}},"bubbles":{BUBBLES}}}]"#
            ),
            format!(r#"{{"composerId":"k1","name":"Tiller","conversation":{BUBBLES}}}"#),
        ] {
            let source = Cursor.read(&SourceText::from_text(text)).unwrap();
            let conversation = &source.conversations[0];
            assert_eq!(
                story(conversation),
                [
                    "user: Mend the tiller.",
                    "model: (hm)",
                    "model: call c1 read_file",
                    r#"tool: result c1 {"contents":"oak"}"#,
                    "model: Mended.",
                ]
            );
            assert_eq!(
                (
                    conversation.title.as_deref(),
                    conversation.cwd.as_deref(),
                    conversation.model.as_deref()
                ),
                (Some("Tiller"), Some("/w"), Some("m-1"))
            );
            assert_eq!(conversation.messages[0].at_ms, Some(1_767_225_600_000));
            assert_eq!(conversation.messages[4].usage.unwrap().output, 4);
        }
    }
}
