//! opencode exports: `{info, messages: [{info, parts}]}`, one session or an array of them.
//!
//! A part is a text, a piece of reasoning, a tool with its state and output in one, or bookkeeping of the client. An
//! assistant message is one or several steps; each becomes a message, with the outputs of its tools in a message
//! behind it. A compaction replaces for the model what was before; here the originals stay and a mark says where it
//! was. Outputs that were pruned for the model are still there.
//!
//! Version 2 writes messages without `info` and `parts`; [`version_2`] reads those.

mod version_2;

use bytestring::ByteString;
use throughline_transcript::conversation::{CompactionMark, Conversation, Problem};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{
    Author, Block, Content, Media, Message, Role, ToolCall, ToolInput, ToolResult,
};
use throughline_transcript::usage::Usage;

use crate::document::{Document, LineCounter};
use crate::formats::place::Place;
use crate::formats::rollback::note_left_out;
use crate::formats::{Format, Probe, anthropic_content, times};
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &[
    "input",
    "metadata",
    "summary",
    "permission",
    "snapshot",
    "source",
    "structured",
];

/// Exports of opencode.
pub(super) struct OpenCode;

impl Format for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn about(&self) -> &'static str {
        "opencode export (JSON)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        if has(&["messages", "parts"]) && has(&["messages", "info"]) {
            96
        } else if has(&["info", "projectID"]) && has(&["messages", "type"]) {
            90
        } else if has(&["info"]) && (has(&["messages"]) || has(&["info", "projectID"])) {
            80
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let document = Document::read(source, OPAQUE, self.name(), is_element)?;
        let root = document.root();
        let sessions: Vec<View<'_>> = if root.is_array() {
            root.elements().collect()
        } else {
            vec![root]
        };
        let mut lines = LineCounter::default();
        let conversations: Vec<Conversation> = sessions
            .into_iter()
            .filter_map(|session| read_session(session, document.text(), &mut lines))
            .collect();
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no session with `info` and `messages`".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: document.skipped,
        })
    }
}

/// A message, or a whole session.
fn is_element(value: View<'_>) -> bool {
    let has = |key| value.field(key).is_some();
    (has("info") && (has("parts") || has("messages"))) || (has("id") && has("type"))
}

fn read_session(
    session: View<'_>,
    text: &ByteString,
    lines: &mut LineCounter,
) -> Option<Conversation> {
    let info = session.field("info")?;
    let messages = session.field("messages")?;
    if !messages.is_array() {
        return None;
    }
    let string = |key| info.string_field(key).map(|text| text.into_owned());
    let mut builder = Builder {
        conversation: Conversation {
            id: string("id").unwrap_or_default(),
            parent_id: string("parentID"),
            // The client's own default is no title.
            title: string("title").filter(|title| !title.starts_with("New session - ")),
            cwd: string("directory").or_else(|| {
                let location = info.field("location")?;
                Some(location.string_field("directory")?.into_owned())
            }),
            ..Conversation::default()
        },
        trigger: None,
        last_usage: None,
        left_out: 0,
    };
    let reverted = info
        .field("revert")
        .and_then(|revert| revert.string_field("messageID"));
    let mut is_reverted = false;
    for message in messages.elements() {
        let line = lines.line(text, message.offset());
        // In version 2 the message has the fields itself.
        let (info, is_version_2) = match message.field("info") {
            Some(info) => (info, false),
            None if message.field("type").is_some() => (message, true),
            None => continue,
        };
        // The user took back this message and everything after it.
        is_reverted |= reverted.is_some() && info.string_field("id") == reverted;
        if is_reverted {
            builder.left_out += 1;
        } else if is_version_2 {
            version_2::add(&mut builder, message, line);
        } else {
            builder.add(info, message.field("parts"), line);
        }
    }
    Some(builder.finish())
}

struct Builder {
    conversation: Conversation,
    /// A compaction was asked for; the next summary is its result.
    trigger: Option<&'static str>,
    /// What the last call used.
    last_usage: Option<Usage>,
    left_out: usize,
}

impl Builder {
    fn add(&mut self, info: View<'_>, parts: Option<View<'_>>, line: usize) {
        let place = place(info, line);
        let parts = parts.into_iter().flat_map(View::elements);
        if info.string_field("role").as_deref() == Some("user") {
            self.add_user(parts, &place);
        } else {
            self.add_assistant(info, parts, &place);
        }
    }

    fn add_user<'a>(&mut self, parts: impl Iterator<Item = View<'a>>, place: &Place) {
        // The client adds its own parts (mentioned files, reminders) between the parts of one request.
        let (mut said, mut added) = (Vec::new(), Vec::new());
        for part in parts {
            let kind = part.string_field("type").unwrap_or_default();
            let content = match kind.as_ref() {
                // Shown to the user only.
                "text" if part.field("ignored").is_some_and(View::is_true) => continue,
                "text" | "subtask" => {
                    let key = if kind == "text" { "text" } else { "prompt" };
                    match part.field(key).and_then(View::as_text) {
                        Some(text) if text.encoded_len() > 0 => Content::Text(text),
                        _ => continue,
                    }
                }
                "file" => file(part),
                "compaction" => {
                    let is_auto = part.field("auto").is_some_and(View::is_true);
                    self.trigger = Some(if is_auto { "auto" } else { "manual" });
                    continue;
                }
                "agent" | "snapshot" | "patch" | "step-start" | "step-finish" | "retry" => continue,
                other => Content::Other(other.into()),
            };
            let block = Block {
                content,
                raw: Some(part.raw()),
            };
            if part.field("synthetic").is_some_and(View::is_true) {
                added.push(block);
            } else {
                said.push(block);
            }
        }
        for (author, blocks) in [(Author::Role, said), (Author::Client, added)] {
            if !blocks.is_empty() {
                let mut message = Message::new(Role::User, blocks);
                message.author = author;
                self.conversation.messages.push(place.put(message));
            }
        }
    }

    fn add_assistant<'a>(
        &mut self,
        info: View<'a>,
        parts: impl Iterator<Item = View<'a>>,
        place: &Place,
    ) {
        let model = info
            .string_field("modelID")
            .filter(|model| !model.is_empty());
        if let Some(model) = model {
            self.conversation.model = Some(model.into_owned());
        }
        let is_summary = info.field("summary").is_some_and(View::is_true);
        if is_summary {
            self.conversation.compactions.push(CompactionMark {
                before_message: self.conversation.messages.len(),
                tokens_before: self.last_usage.map(|usage| usage.prompt() + usage.output),
                trigger: self.trigger.take().map(str::to_owned),
            });
        }
        let mut step = Step::default();
        for part in parts {
            match part.string_field("type").as_deref().unwrap_or_default() {
                "step-start" => self.flush(&mut step, is_summary, place),
                "step-finish" => {
                    step.usage = part.field("tokens").and_then(usage);
                    step.is_last = part.string_field("reason").as_deref() == Some("stop");
                }
                "snapshot" | "patch" | "retry" | "compaction" | "agent" => {}
                _ => step.add(part),
            }
        }
        // A message of one step: the counts of the message are those of the step.
        step.usage = step.usage.or_else(|| info.field("tokens").and_then(usage));
        self.flush(&mut step, is_summary, place);
    }

    fn flush(&mut self, step: &mut Step, is_summary: bool, place: &Place) {
        let mut step = std::mem::take(step);
        if step.blocks.is_empty() {
            return;
        }
        // Where the model stops and calls nothing more, its last words follow the results.
        let is_call = |block: &Block| matches!(block.content, Content::ToolCall(_));
        let last_words = match step.blocks.iter().rposition(is_call) {
            Some(last) if step.is_last && step.unanswered == 0 => step.blocks.split_off(last + 1),
            _ => Vec::new(),
        };
        let mut message = Message::new(Role::Assistant, step.blocks);
        message.usage = step.usage;
        self.last_usage = step.usage.or(self.last_usage);
        if is_summary {
            message.author = Author::Compaction;
        }
        self.conversation.messages.push(place.put(message));
        if !step.results.is_empty() {
            let message = Message::new(Role::User, step.results);
            self.conversation.messages.push(place.put(message));
        }
        if !last_words.is_empty() {
            let mut message = Message::new(Role::Assistant, last_words);
            if is_summary {
                message.author = Author::Compaction;
            }
            self.conversation.messages.push(place.put(message));
        }
        if step.unanswered > 0 {
            self.conversation.problems.push(Problem {
                code: "missing-tool-result",
                message: self.conversation.messages.len() - 1,
                text: format!("{} tool calls did not end", step.unanswered),
            });
        }
    }

    fn finish(self) -> Conversation {
        let mut conversation = self.conversation;
        note_left_out(&mut conversation, self.left_out, "taken back");
        conversation
    }
}

fn place(info: View<'_>, line: usize) -> Place {
    Place {
        line,
        at_ms: info
            .field("time")
            .and_then(|time| time.field("created"))
            .and_then(times::from_milliseconds),
        id: info.field("id").and_then(View::to_bytestring),
    }
}

/// One call of the model.
#[derive(Default)]
struct Step {
    blocks: Vec<Block>,
    results: Vec<Block>,
    usage: Option<Usage>,
    /// Tools without an outcome.
    unanswered: usize,
    /// The model stopped here.
    is_last: bool,
}

impl Step {
    fn add(&mut self, part: View<'_>) {
        let kind = part.string_field("type").unwrap_or_default();
        let text = || part.field("text").and_then(View::as_text);
        let content = match kind.as_ref() {
            "text" => match text() {
                Some(text) if text.encoded_len() > 0 => Content::Text(text),
                _ => return,
            },
            "reasoning" => Content::Thinking(text().unwrap_or_else(|| "".into())),
            "file" => file(part),
            "tool" => self.tool(part),
            other => Content::Other(other.into()),
        };
        self.blocks.push(Block {
            content,
            raw: Some(part.raw()),
        });
    }

    fn tool(&mut self, part: View<'_>) -> Content {
        let name = |key| {
            part.field(key)
                .and_then(View::to_bytestring)
                .unwrap_or_default()
        };
        let state = part.field("state");
        let field = |key: &str| state.and_then(|state| state.field(key));
        let call = ToolCall {
            id: name("callID"),
            name: name("tool"),
            input: field("input").map_or_else(
                || ToolInput::Text("".into()),
                |input| ToolInput::Json(input.raw()),
            ),
            is_server_side: false,
        };
        let status = field("status").and_then(View::decode);
        let (key, is_error) = match status.as_deref() {
            Some("completed") => ("output", false),
            Some("error") => ("error", true),
            _ => {
                self.unanswered += 1;
                return Content::ToolCall(call);
            }
        };
        let mut content: Vec<Block> = field(key)
            .and_then(View::as_text)
            .map(Block::text)
            .into_iter()
            .collect();
        let attachments = field("attachments").into_iter().flat_map(View::elements);
        content.extend(attachments.map(|attachment| Block {
            content: file(attachment),
            raw: Some(attachment.raw()),
        }));
        self.results
            .push(Block::new(Content::ToolResult(ToolResult {
                call_id: call.id.clone(),
                content,
                is_error: Some(is_error),
                is_server_side: false,
            })));
        Content::ToolCall(call)
    }
}

fn file(part: View<'_>) -> Content {
    let name = |key| part.field(key).and_then(View::to_bytestring);
    let media_type = name("mime");
    let data = part
        .field("url")
        .and_then(View::as_text)
        .filter(|url| url.prefix(5).as_ref() == "data:");
    let media = Media {
        data_bytes: data.map(|url| anthropic_content::base64_bytes(url.encoded_len())),
        name: name("filename").or_else(|| {
            part.field("url")
                .filter(|url| url.as_str().len() < 1000)
                .and_then(View::to_bytestring)
        }),
        media_type,
    };
    media.into_content()
}

/// `input` does not include what was read from or written to the cache; reasoning is counted apart from the output.
fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    let cache = value.field("cache");
    let cached = |key| cache.map_or(0, |cache| anthropic_content::tokens(cache, key));
    let usage = Usage {
        uncached: tokens("input"),
        cache_write: cached("write"),
        cache_write_long: 0,
        cache_read: cached("read"),
        output: tokens("output") + tokens("reasoning"),
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests;
