//! Conversations of LM Studio: `*.conversation.json`.
//!
//! A message has versions, of which one is selected. What the person said is one step; an answer is several: reasoning,
//! texts, calls of tools and their results.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Block, Content, Media, Message, Role};
use throughline_transcript::usage::Usage;

use crate::document::{Document, LineCounter};
use crate::formats::parts::{self, Answer};
use crate::formats::place::Place;
use crate::formats::{Format, Probe, anthropic_content, times};
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &[
    "parameters",
    "arguments",
    "plugins",
    "perChatPredictionConfig",
];

/// Conversations of LM Studio.
pub(super) struct LmStudio;

impl Format for LmStudio {
    fn name(&self) -> &'static str {
        "lm-studio"
    }

    fn about(&self) -> &'static str {
        "LM Studio conversation (JSON)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        let is_empty = has(&["messages"]) && has(&["tokenCount"]) && has(&["systemPrompt"]);
        if has(&["messages", "versions"]) || is_empty {
            97
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let document = Document::read(source, OPAQUE, self.name(), |value| {
            value.field("versions").is_some()
        })?;
        let root = document.root();
        let Some(messages) = root
            .field("messages")
            .filter(|messages| messages.is_array())
        else {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no list of `messages` with `versions`".to_owned(),
            });
        };
        let system = root.field("systemPrompt").and_then(parts::text);
        let mut conversation = Conversation {
            title: parts::string(root, "name"),
            model: root
                .field("lastUsedModel")
                .and_then(|model| parts::string(model, "identifier")),
            system: system.into_iter().collect(),
            ..Conversation::default()
        };
        // Only the whole has a time: that of its first message.
        let mut at_ms = root.field("createdAt").and_then(times::from_number);
        let mut lines = LineCounter::default();
        for message in messages.elements() {
            let place = Place {
                line: lines.line(document.text(), message.offset()),
                at_ms: at_ms.take(),
                id: None,
            };
            let selected = message
                .field("currentlySelected")
                .and_then(View::as_u64)
                .unwrap_or(0);
            let mut versions = message
                .field("versions")
                .into_iter()
                .flat_map(View::elements);
            let last = usize::try_from(selected)
                .ok()
                .and_then(|index| versions.nth(index));
            if let Some(version) = last {
                add(&mut conversation, version, &place);
            }
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped: document.skipped,
        })
    }
}

fn add(conversation: &mut Conversation, version: View<'_>, place: &Place) {
    let role = match version.string_field("role").as_deref() {
        Some("user") => Role::User,
        Some("system") => Role::System,
        Some("assistant") => Role::Assistant,
        _ => return,
    };
    let mut answer = Answer::default();
    let steps = version.field("steps").into_iter().flat_map(View::elements);
    for step in steps {
        if step.string_field("type").as_deref() != Some("contentBlock") {
            continue;
        }
        let style = step
            .field("style")
            .and_then(|style| style.string_field("type"));
        let is_thinking = style.as_deref() == Some("thinking");
        for part in step.field("content").into_iter().flat_map(View::elements) {
            add_part(part, is_thinking, &mut answer, conversation, place);
        }
        if let Some(generated) = step.field("genInfo") {
            answer.usage = generated.field("stats").and_then(usage).or(answer.usage);
        }
    }
    for part in version
        .field("content")
        .into_iter()
        .flat_map(View::elements)
    {
        add_part(part, false, &mut answer, conversation, place);
    }
    if role == Role::Assistant {
        answer.put(&mut conversation.messages, place);
    } else if !answer.blocks.is_empty() {
        conversation
            .messages
            .push(place.put(Message::new(role, answer.blocks)));
    }
}

fn add_part(
    part: View<'_>,
    is_thinking: bool,
    answer: &mut Answer,
    conversation: &mut Conversation,
    place: &Place,
) {
    let raw = Some(part.raw());
    let kind = part.string_field("type").unwrap_or_default();
    let id = || {
        ["toolCallRequestId", "callId"]
            .into_iter()
            .map(|key| parts::name(part, key))
            .find(|id| !id.is_empty())
            .unwrap_or_default()
    };
    if kind == "toolCallResult" {
        let content = part
            .field("content")
            .and_then(parts::text)
            .into_iter()
            .collect();
        answer.results.push(parts::result(id(), content, None));
        return;
    }
    // What follows the results is another call of the model.
    if !answer.results.is_empty() {
        std::mem::take(answer).put(&mut conversation.messages, place);
    }
    let block = match kind.as_ref() {
        "text" if is_thinking => part.field("text").and_then(parts::thinking),
        "text" => part.field("text").and_then(parts::text),
        "toolCallRequest" => {
            let input = part.field("parameters").or_else(|| part.field("arguments"));
            Some(parts::call(id(), parts::name(part, "name"), input, raw))
        }
        "file" => {
            let name = |key| part.field(key).and_then(View::to_bytestring);
            let media = Media {
                media_type: None,
                data_bytes: None,
                name: name("name").or_else(|| name("fileIdentifier")),
            };
            let content = match part.string_field("fileType").as_deref() {
                Some("image") => Content::Image(media),
                _ => Content::Document(media),
            };
            Some(Block { content, raw })
        }
        other => Some(Block {
            content: Content::Other(other.into()),
            raw,
        }),
    };
    answer.blocks.extend(block);
}

fn usage(stats: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(stats, key);
    parts::used(Usage {
        uncached: tokens("promptTokensCount"),
        output: tokens("predictedTokensCount"),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    #[test]
    fn the_selected_version_counts() {
        let text = r#"{"name":"Knots","createdAt":1767225600000,"tokenCount":9,"systemPrompt":"Be brief.","lastUsedModel":{"identifier":"m-1"},"messages":[
{"versions":[{"type":"singleStep","role":"user","content":[{"type":"text","text":"wrong"}]},{"type":"singleStep","role":"user","content":[{"type":"text","text":"Which knot?"},{"type":"file","fileIdentifier":"k.png","fileType":"image"}]}],"currentlySelected":1},
{"versions":[{"type":"multiStep","role":"assistant","steps":[{"type":"contentBlock","style":{"type":"thinking"},"content":[{"type":"text","text":"hm"}]},{"type":"contentBlock","content":[{"type":"toolCallRequest","callId":1,"toolCallRequestId":"c1","name":"look","parameters":{"at":"k"}}]},{"type":"contentBlock","content":[{"type":"toolCallResult","callId":1,"toolCallRequestId":"c1","content":"a bowline"}]},{"type":"debugInfoBlock"},{"type":"contentBlock","content":[{"type":"text","text":"A bowline."}],"genInfo":{"stats":{"promptTokensCount":5,"predictedTokensCount":2}}}]}],"currentlySelected":0}]}"#;
        let source = LmStudio.read(&SourceText::from_text(text)).unwrap();
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "user: Which knot? + image k.png",
                "model: (hm) + call c1 look",
                "tool: result c1 a bowline",
                "model: A bowline.",
            ]
        );
        assert_eq!(conversation.title.as_deref(), Some("Knots"));
        assert_eq!(conversation.model.as_deref(), Some("m-1"));
        assert_eq!(conversation.messages[3].usage.unwrap().output, 2);
        assert_eq!(conversation.messages[0].at_ms, Some(1_767_225_600_000));
    }

    #[test]
    fn a_conversation_without_messages_has_none() {
        let text = r#"{"name":"x","tokenCount":0,"systemPrompt":"","messages":[]}"#;
        let source = LmStudio.read(&SourceText::from_text(text)).unwrap();
        assert_eq!(source.conversations[0].messages, []);
        assert!(LmStudio.read(&SourceText::from_text("{}")).is_err());
    }
}
