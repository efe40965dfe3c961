//! UI messages of Vercel's AI SDK: a list of `{id, role, parts}`, or an object with one.
//!
//! A part is a text, a piece of reasoning, a file, or a tool with its state, input and output in one. Since version 5 a
//! tool's name is in the type of its part (`tool-getWeather`); version 4 has `tool-invocation`.

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Block, Content, Message, Role};

use crate::document::{Document, LineCounter};
use crate::formats::glance::Glance;
use crate::formats::parts::{self, Answer};
use crate::formats::place::Place;
use crate::formats::{Format, Probe, times};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["input", "args", "providerMetadata", "callProviderMetadata"];

/// UI messages of the AI SDK.
pub(super) struct AiSdk;

impl Format for AiSdk {
    fn name(&self) -> &'static str {
        "ai-sdk"
    }

    fn about(&self) -> &'static str {
        "UI messages of the AI SDK (JSON)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        fits_at(glance, &[]).max(fits_at(glance, &["messages"]))
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let document = Document::read(source, OPAQUE, self.name(), |value| {
            value.field("role").is_some() && value.field("parts").is_some()
        })?;
        if document.is_followed {
            return self.read_lines(source);
        }
        let root = document.root();
        let mut lines = LineCounter::default();
        let mut conversations = Vec::new();
        let sources: Vec<View<'_>> = match list(root) {
            Some(_) => vec![root],
            None if root.elements().any(|element| list(element).is_some()) => {
                root.elements().collect()
            }
            None => vec![root],
        };
        for value in sources {
            let mut conversation = Conversation {
                id: parts::string(value, "id").unwrap_or_default(),
                title: parts::string(value, "title"),
                ..Conversation::default()
            };
            for message in list(value).unwrap_or(value).elements() {
                let line = lines.line(document.text(), message.offset());
                add(&mut conversation, message, line);
            }
            if !conversation.messages.is_empty() {
                conversations.push(conversation);
            }
        }
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no message with `role` and `parts`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: document.skipped,
        })
    }
}

/// The messages of a chat.
fn list(chat: View<'_>) -> Option<View<'_>> {
    chat.field("messages")
        .filter(|messages| messages.is_array())
}

impl AiSdk {
    /// One message a line.
    fn read_lines(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut conversation = Conversation::default();
        let mut lines = Lines::new(source, OPAQUE);
        while let Some(line) = lines.advance() {
            if !add(&mut conversation, lines.record(), line) {
                lines.reject("not a message with `role` and `parts`");
            }
        }
        if conversation.messages.is_empty() {
            return Err(ReadError::NoMessage {
                format: self.name(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped: lines.into_skipped(),
        })
    }
}

fn fits_at(glance: &Glance<'_>, place: &[&str]) -> u8 {
    let roles = [place, &["role"]].concat();
    let kinds = [place, &["parts", "type"]].concat();
    let is_role = |role: &str| matches!(role, "user" | "assistant" | "system");
    let has_own = glance.any(&kinds, |kind| {
        kind == "step-start"
            || kind == "tool-invocation"
            || kind.starts_with("tool-") && kind != "tool-use"
    });
    if !glance.has_path(&roles)
        || !glance.has_path(&kinds)
        || !glance.values(&roles).all(is_role)
        || !glance.values(&kinds).all(is_kind)
    {
        0
    } else if has_own {
        94
    } else {
        // Texts alone: the same in whatever program has such parts.
        86
    }
}

fn is_kind(kind: &str) -> bool {
    matches!(
        kind,
        "text"
            | "reasoning"
            | "file"
            | "source"
            | "source-url"
            | "source-document"
            | "step-start"
            | "dynamic-tool"
    ) || kind.starts_with("tool-")
        && kind != "tool-use"
        && kind != "tool-result"
        && kind != "tool-call"
        || kind.starts_with("data-")
}

/// Adds a message; `false` if it is none.
fn add(conversation: &mut Conversation, value: View<'_>, line: usize) -> bool {
    if value.field("parts").is_none() {
        return false;
    }
    let place = Place {
        line,
        at_ms: value
            .field("createdAt")
            .or_else(|| {
                value
                    .field("metadata")
                    .and_then(|data| data.field("createdAt"))
            })
            .and_then(times::from_number),
        id: value.field("id").and_then(View::to_bytestring),
    };
    let pieces = || value.field("parts").into_iter().flat_map(View::elements);
    let role = match value.string_field("role").as_deref() {
        Some("user") => Role::User,
        Some("system") => Role::System,
        Some("assistant") => {
            let model = value
                .field("metadata")
                .and_then(|data| parts::string(data, "model"));
            if model.is_some() {
                conversation.model = model;
            }
            let mut answer = Answer::default();
            for part in pieces() {
                // What follows the results is another call of the model.
                if part.string_field("type").as_deref() == Some("step-start") {
                    std::mem::take(&mut answer).put(&mut conversation.messages, &place);
                } else if tool(part, &mut answer).is_none() {
                    if !answer.results.is_empty() {
                        std::mem::take(&mut answer).put(&mut conversation.messages, &place);
                    }
                    answer.blocks.extend(block(part));
                }
            }
            answer.put(&mut conversation.messages, &place);
            return true;
        }
        _ => return false,
    };
    let blocks: Vec<Block> = pieces().filter_map(block).collect();
    if !blocks.is_empty() {
        let mut message = Message::new(role, blocks);
        message.raw = Some(value.raw());
        conversation.messages.push(place.put(message));
    }
    true
}

/// Adds a call and its result; nothing for other parts.
fn tool(part: View<'_>, answer: &mut Answer) -> Option<()> {
    let kind = part.string_field("type")?;
    let (tool, name): (View<'_>, ByteString) = match kind.as_ref() {
        "tool-invocation" => {
            let tool = part.field("toolInvocation")?;
            (tool, parts::name(tool, "toolName"))
        }
        "dynamic-tool" => (part, parts::name(part, "toolName")),
        kind => (part, kind.strip_prefix("tool-")?.into()),
    };
    let id = parts::name(tool, "toolCallId");
    let input = tool
        .field("input")
        .or_else(|| tool.field("args"))
        .or_else(|| tool.field("rawInput"));
    let call = parts::call(id.clone(), name, input, Some(part.raw()));
    answer.blocks.push(call);
    let output = |key: &str| tool.field(key).map(output);
    let (content, is_error) = match tool.string_field("state").as_deref() {
        Some("output-available") => (output("output"), false),
        Some("result") => (output("result"), false),
        Some("output-error") => (output("errorText"), true),
        Some("output-denied") => {
            let reason = tool
                .field("approval")
                .and_then(|approval| approval.field("reason"))
                .map(self::output);
            (
                Some(reason.unwrap_or_else(|| vec![Block::text("denied")])),
                true,
            )
        }
        _ => return Some(()),
    };
    answer.results.push(parts::result(
        id,
        content.unwrap_or_default(),
        Some(is_error),
    ));
    Some(())
}

fn output(value: View<'_>) -> Vec<Block> {
    parts::text(value).into_iter().collect()
}

fn block(part: View<'_>) -> Option<Block> {
    let raw = Some(part.raw());
    let kind = part.string_field("type").unwrap_or_default();
    let content = match kind.as_ref() {
        "text" => return part.field("text").and_then(parts::text),
        "reasoning" => {
            return part
                .field("text")
                .or_else(|| part.field("reasoning"))
                .and_then(parts::thinking);
        }
        "file" => {
            let name = |key| part.field(key).and_then(View::to_bytestring);
            let kind = name("mediaType").or_else(|| name("mimeType"));
            let address = part
                .string_field("url")
                .or_else(|| part.string_field("data"));
            let mut media = parts::media(address.as_deref(), kind);
            media.name = name("filename").or(media.name);
            media.into_content()
        }
        // For the screen, not for the model.
        "step-start" | "source" | "source-url" | "source-document" => return None,
        kind if kind.starts_with("data-") => return None,
        other => Content::Other(other.into()),
    };
    Some(Block { content, raw })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    #[track_caller]
    fn check(messages: &str, expected: &[&str]) {
        for text in [
            format!("[{messages}]"),
            format!(r#"{{"id":"c","messages":[{messages}]}}"#),
            format!(r#"[{{"id":"c","messages":[{messages}]}}]"#),
            messages
                .replace("},{\"id\":\"2\"", "}\n{\"id\":\"2\"")
                .replace("},{\"role\"", "}\n{\"role\""),
        ] {
            let source = AiSdk.read(&SourceText::from_text(text.clone())).unwrap();
            assert_eq!(story(&source.conversations[0]), expected, "{text}");
        }
    }

    const ASK: &str = r#"{"id":"1","role":"user","parts":[{"type":"text","text":"How high is the tide?"},{"type":"file","mediaType":"image/png","filename":"q.png","url":"data:image/png;base64,AAAA"}]}"#;

    #[test]
    fn a_tool_is_a_call_and_its_result() {
        let answer = r#"{"id":"2","role":"assistant","metadata":{"createdAt":1},"parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"tool-getTide","toolCallId":"c1","state":"output-available","input":{"at":"List"},"output":{"m":3}},{"type":"dynamic-tool","toolName":"look","toolCallId":"c2","state":"output-error","input":{},"errorText":"fog"},{"type":"text","text":"Three metres."},{"type":"data-chart","data":{}}]}"#;
        check(
            &format!("{ASK},{answer}"),
            &[
                "user: How high is the tide? + image q.png",
                "model: (hm) + call c1 getTide + call c2 look",
                r#"tool: result c1 {"m":3} + failed c2 fog"#,
                "model: Three metres.",
            ],
        );
    }

    #[test]
    fn version_4_is_read_and_an_open_call_has_no_result() {
        let answer = r#"{"role":"assistant","content":"Low.","parts":[{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c1","toolName":"getTide","args":{},"result":"low"}},{"type":"text","text":"Low."},{"type":"tool-save","toolCallId":"c3","state":"input-available","input":{}}]}"#;
        check(
            &format!("{ASK},{answer}"),
            &[
                "user: How high is the tide? + image q.png",
                "model: call c1 getTide",
                "tool: result c1 low",
                "model: Low. + call c3 save",
            ],
        );
    }

    #[test]
    fn foreign_parts_are_refused() {
        let probe = |text| AiSdk.fits(&Probe::new(text));
        assert_eq!(
            probe(r#"[{"role":"user","parts":[{"type":"spoken","words":"a"}]}]"#),
            0
        );
        assert_eq!(
            probe(r#"[{"role":"human","parts":[{"type":"text","text":"a"}]}]"#),
            0
        );
        assert!(AiSdk.read(&SourceText::from_text("[]")).is_err());
    }
}
