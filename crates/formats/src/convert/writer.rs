//! Shared by the writers of the three wire formats.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use throughline_transcript::json::{Kind, Raw, Text, quoted};
use throughline_transcript::message::{Content, Message, Role, ToolInput, ToolResult};
use throughline_transcript::wire::Wire;

use super::draft::{Part, Speaker, What, plain_result};
use super::losses::Losses;
use super::{Options, media, native, text, tools};

/// One message or item of the request.
pub(super) struct WrittenMessage {
    pub(super) text: String,
    /// The message of the conversation that it is, byte for byte.
    pub(super) source: Option<usize>,
    pub(super) speaker: Speaker,
}

pub(super) struct Writer<'a, 'l> {
    pub(super) wire: Wire,
    pub(super) messages: &'a [Message],
    /// Whether the messages come from a body of the wire format.
    pub(super) is_own: bool,
    pub(super) options: &'a Options,
    /// The tools that the request defines, if it is the source's own.
    pub(super) tools: Option<&'a Raw>,
    pub(super) losses: &'l mut Losses,
    pub(super) used_tools: BTreeSet<String>,
    pub(super) out: Vec<WrittenMessage>,
    /// Instructions that have to go to the front.
    pub(super) system: Vec<String>,
}

impl WrittenMessage {
    pub(super) fn is_users(&self) -> bool {
        matches!(self.speaker, Speaker::User | Speaker::Results)
    }
}

impl<'a> Writer<'a, '_> {
    /// Cuts parts into runs of the same message.
    pub(super) fn runs<'p>(parts: &'p [Part<'a>]) -> impl Iterator<Item = &'p [Part<'a>]> {
        parts.chunk_by(|a, b| match (a.from, b.from) {
            (Some((a, _)), Some((b, _))) => a == b,
            _ => false,
        })
    }

    /// The message that the run consists of, if the run is all of it and the message can be copied unchanged.
    pub(super) fn whole(
        &self,
        run: &[Part<'a>],
        pairs: &HashSet<(usize, usize)>,
    ) -> Option<(usize, Cow<'a, str>)> {
        let (index, _) = run.first()?.from?;
        let message = self.messages.get(index)?;
        let is_whole = run.len() == message.blocks.len()
            && run
                .iter()
                .enumerate()
                .all(|(at, part)| part.from == Some((index, at)) && self.is_kept(part));
        if !is_whole || (self.wire == Wire::Anthropic && !self.is_in_place(run, message, pairs)) {
            return None;
        }
        native::text(message, self.wire, self.is_own).map(|text| (index, text))
    }

    /// Whether the blocks are in a message of the role that Anthropic requires, server tools with both halves.
    fn is_in_place(
        &self,
        run: &[Part<'a>],
        message: &Message,
        pairs: &HashSet<(usize, usize)>,
    ) -> bool {
        let is_assistants = message.role == Role::Assistant;
        let is_operators = message.role == Role::System;
        run.iter().all(|part| match &part.what {
            What::Block(content) => match content {
                Content::Text(_) | Content::Other(_) => true,
                Content::Image(_) | Content::Document(_) => !is_assistants && !is_operators,
                Content::Thinking(_) | Content::Compaction(_) => is_assistants,
                Content::ToolCall(_) | Content::ToolResult(_) => {
                    is_assistants
                        && (part.from.is_some_and(|from| pairs.contains(&from))
                            || self.is_paused(part))
                }
            },
            What::Call { .. } => is_assistants,
            _ => !is_assistants,
        })
    }

    /// Whether the part is the last of a request that continues an unfinished answer of the provider.
    fn is_paused(&self, part: &Part<'_>) -> bool {
        let What::Block(Content::ToolCall(call)) = &part.what else {
            return false;
        };
        let is_defined = || {
            self.tools.is_some_and(|tools| {
                tools.array().any(|tool| {
                    tool.text_field("name")
                        .is_some_and(|name| name.decode() == *call.name)
                })
            })
        };
        self.is_own
            && self.messages.last().is_some_and(|last| {
                part.from.is_some_and(|(message, block)| {
                    message + 1 == self.messages.len() && block + 1 == last.blocks.len()
                })
            })
            && is_defined()
    }

    /// Copies the runs unchanged, if all of them can be.
    pub(super) fn take_whole(&mut self, parts: &[Part<'a>], speaker: Speaker) -> bool {
        let count = Self::runs(parts).count();
        if count > 1 && self.options.strict_alternation {
            return false;
        }
        let pairs = server_pairs(parts);
        let mut taken = Vec::new();
        for (at, run) in Self::runs(parts).enumerate() {
            let has_calls = run
                .iter()
                .any(|part| matches!(part.what, What::Call { .. }));
            // Results follow the message with the calls directly.
            let Some((index, text)) = self
                .whole(run, &pairs)
                .filter(|_| at + 1 == count || !has_calls || self.wire == Wire::OpenAiResponses)
            else {
                return false;
            };
            taken.push((index, text));
        }
        for part in parts {
            self.see_tool(part);
        }
        for (index, text) in taken {
            self.put(text.into_owned(), Some(index), speaker);
        }
        true
    }

    pub(super) fn put(&mut self, text: String, source: Option<usize>, speaker: Speaker) {
        // A message without what logs add to it is not byte for byte the source's.
        let source = source.filter(|index| {
            self.messages
                .get(*index)
                .and_then(|message| message.raw.as_ref())
                .is_some_and(|raw| raw.as_str() == text)
        });
        self.out.push(WrittenMessage {
            text,
            source,
            speaker,
        });
    }

    /// Adds a message of the user's that is not in the conversation.
    pub(super) fn say(&mut self, said: &str) {
        let text = text::object(&[("role", "\"user\""), ("content", &quoted(said))]);
        self.put(text, None, Speaker::User);
    }

    pub(super) fn see_tool(&mut self, part: &Part<'_>) {
        if let What::Call { name, .. } = part.what {
            self.used_tools.insert(tools::name(name));
        }
    }

    /// Whether the block can be copied unchanged.
    fn is_kept(&self, part: &Part<'_>) -> bool {
        let is_block = part
            .block
            .and_then(|block| block.raw.as_ref())
            .is_none_or(|raw| raw.kind() == Kind::Object);
        if !is_block {
            return false;
        }
        match &part.what {
            What::Block(content) => match content {
                Content::Text(text) => self.wire != Wire::Anthropic || !text.is_blank(),
                Content::Thinking(_) => self.keeps_thinking(part),
                Content::Compaction(None) => {
                    self.wire == Wire::OpenAiResponses && !self.options.drop_sealed
                }
                Content::Compaction(Some(_)) => !self.options.drop_sealed,
                Content::ToolCall(_) | Content::ToolResult(_) => !self.options.drop_sealed,
                Content::Other(kind) => !is_textless(kind),
                Content::Image(_) | Content::Document(_) => true,
            },
            What::Call { name, input, .. } => {
                let is_free_text = self.wire != Wire::Anthropic
                    && part.block.is_some_and(|block| {
                        block
                            .raw
                            .as_ref()
                            .and_then(|raw| raw.text_field("type"))
                            .is_some_and(|kind| kind.decode().starts_with("custom"))
                    });
                tools::name(name) == *name && (is_free_text || as_object(input).is_some())
            }
            What::Result { result, .. } => self.wire != Wire::Anthropic || !has_blank(result),
            What::Text(_) | What::NoResult { .. } => false,
        }
    }

    /// Whether the request will contain anything for the part.
    pub(super) fn is_said(&self, speaker: Speaker, part: &Part<'_>) -> bool {
        // Of the blocks that a Chat message cannot express, only the user's are copied unchanged.
        let is_copied = self.wire != Wire::OpenAiChat
            || (speaker == Speaker::User && matches!(part.what, What::Block(Content::Other(_))));
        let is_native = || is_copied && native_block(part, self.wire, self.is_own).is_some();
        match &part.what {
            What::Text(text) => !text.trim().is_empty(),
            What::Block(content) => match content {
                Content::Text(text) => !text.is_blank(),
                Content::Thinking(_) => false,
                Content::ToolResult(result) => {
                    result.texts().any(|text| !text.is_blank()) || is_native()
                }
                Content::Compaction(None) => {
                    self.wire == Wire::OpenAiResponses && !self.options.drop_sealed && is_native()
                }
                Content::Compaction(Some(text)) => !text.is_blank() || is_native(),
                Content::Other(_) => is_native(),
                Content::ToolCall(_) | Content::Image(_) | Content::Document(_) => true,
            },
            What::Call { .. } | What::Result { .. } | What::NoResult { .. } => true,
        }
    }

    /// Whether reasoning may go along: Anthropic's with its signature, of OpenAI the sealed or readable item.
    pub(super) fn keeps_thinking(&self, part: &Part<'_>) -> bool {
        if self.options.drop_thinking || self.options.drop_sealed {
            return false;
        }
        let Some(block) = part.block else {
            return false;
        };
        let Some(raw) = &block.raw else {
            // A field of a Chat message: it goes with the message or not at all.
            return self.wire == Wire::OpenAiChat;
        };
        let has = |key: &str| {
            raw.text_field(key)
                .is_some_and(|value| value.encoded_len() > 0)
        };
        match self.wire {
            Wire::Anthropic => has("signature") || has("data"),
            Wire::OpenAiChat => true,
            // Other tools have blocks of that name; the item has a summary, if an empty one.
            Wire::OpenAiResponses => {
                raw.field("summary").is_some()
                    && raw
                        .text_field("type")
                        .is_some_and(|kind| kind.decode() == "reasoning")
            }
        }
    }

    pub(super) fn lose_thinking(&mut self, part: &Part<'_>) {
        self.losses.note(
            "thinking",
            index_of(part),
            "reasoning of the model was left out: it is bound to the request that it was made in",
        );
    }

    /// A block as text where only text is allowed: a tool that the provider ran, a compaction.
    pub(super) fn in_words(&mut self, part: &Part<'_>) -> Option<String> {
        let content = match &part.what {
            What::Block(content) => content,
            What::Text(text) => return Some(text.clone()),
            _ => return None,
        };
        let index = index_of(part);
        match content {
            Content::Text(text) => Some(text.decode().into_owned()),
            Content::ToolCall(call) => {
                self.lose_server_tool(index);
                Some(super::draft::describe(call))
            }
            Content::ToolResult(result) => {
                self.lose_server_tool(index);
                Some(plain_result(result))
            }
            Content::Compaction(Some(summary)) => Some(super::draft::earlier(summary)),
            Content::Compaction(None) => {
                self.losses.note(
                    "sealed-compaction",
                    index,
                    "a compaction that only its provider can read was left out, and with it the messages that it replaces",
                );
                None
            }
            Content::Image(_) | Content::Document(_) => {
                self.losses.note(
                    "media",
                    index,
                    "a picture or document could not be carried over; a note replaces it",
                );
                part.block.map(media::placeholder)
            }
            Content::Other(kind) => {
                self.losses.note(
                    "unknown-block",
                    index,
                    &format!("a block of the kind {kind:?} has no counterpart and was left out"),
                );
                None
            }
            Content::Thinking(_) => {
                self.lose_thinking(part);
                None
            }
        }
        .filter(|text| !text.trim().is_empty())
    }

    fn lose_server_tool(&mut self, index: usize) {
        self.losses.note(
            "server-tool",
            index,
            "the use of a tool that the provider runs became text",
        );
    }

    /// A picture or document in the target's form.
    pub(super) fn medium(&mut self, part: &Part<'_>) -> Option<String> {
        let What::Block(Content::Image(_) | Content::Document(_)) = part.what else {
            return None;
        };
        media::write(part.block?, self.wire)
    }

    /// The arguments of a call as a JSON object.
    pub(super) fn input(&mut self, index: usize, input: &ToolInput) -> String {
        if let Some(raw) = as_object(input) {
            return raw.as_str().to_owned();
        }
        let value = match input {
            ToolInput::Json(raw) => raw.as_str().to_owned(),
            ToolInput::Text(text) if text.is_blank() => return "{}".to_owned(),
            ToolInput::Text(text) => quoted(&text.decode()),
        };
        self.losses.note(
            "tool-input",
            index,
            "the arguments of a call are no JSON object and were put into the field \"input\"",
        );
        text::object(&[("input", &value)])
    }

    /// The name of a tool as the target takes it.
    pub(super) fn tool_name(&mut self, index: usize, name: &str) -> String {
        let clean = tools::name(name);
        if clean != name {
            self.losses.note(
                "tool-name",
                index,
                "the name of a tool holds characters that are not allowed",
            );
        }
        clean
    }

    pub(super) fn lose_message(&mut self, parts: &[Part<'_>]) {
        if let Some((index, _)) = parts.iter().find_map(|part| part.from) {
            self.losses.note(
                "empty-message",
                index,
                "a message in which nothing was left to say was left out",
            );
        }
    }
}

/// Whether a block that was not understood is one of text without a text: no provider takes that.
fn is_textless(kind: &str) -> bool {
    matches!(
        kind,
        "" | "text" | "input_text" | "output_text" | "summary_text"
    )
}

/// The raw text of a block that may be copied into a rewritten message.
pub(super) fn native_block(part: &Part<'_>, wire: Wire, is_own: bool) -> Option<Raw> {
    part.from?;
    if matches!(&part.what, What::Block(Content::Other(kind)) if is_textless(kind)) {
        return None;
    }
    let raw = part.block?.raw.as_ref()?;
    if raw.kind() != Kind::Object {
        return None;
    }
    let kind = raw.text_field("type")?;
    let kind = kind.decode();
    let is_known = match wire {
        Wire::Anthropic => {
            matches!(
                kind.as_ref(),
                "text"
                    | "image"
                    | "document"
                    | "search_result"
                    | "tool_use"
                    | "tool_result"
                    | "thinking"
                    | "redacted_thinking"
                    | "server_tool_use"
                    | "mcp_tool_use"
                    | "container_upload"
                    | "compaction"
            ) || kind.ends_with("_tool_result")
        }
        Wire::OpenAiChat => {
            matches!(
                kind.as_ref(),
                "text" | "image_url" | "input_audio" | "function" | "custom"
            ) || (kind == "file" && raw.field("file").is_some())
        }
        Wire::OpenAiResponses => {
            matches!(
                kind.as_ref(),
                "input_text"
                    | "output_text"
                    | "input_image"
                    | "input_file"
                    | "reasoning"
                    | "compaction"
            ) || kind.ends_with("_call")
                || kind.ends_with("_call_output")
        }
    };
    (is_own || (is_known && has_known_fields(raw, &kind))).then(|| raw.clone())
}

/// Whether a text, call or result has only fields that requests allow. Session files add ids and times to them, which
/// a provider refuses.
pub(super) fn has_known_fields(block: &Raw, kind: &str) -> bool {
    let known: &[&str] = match kind {
        "text" => &["text", "cache_control", "citations"],
        "input_text" => &["text", "prompt_cache_breakpoint"],
        "tool_use" => &["id", "name", "input", "cache_control", "caller"],
        "tool_result" => &["tool_use_id", "content", "is_error", "cache_control"],
        _ => return true,
    };
    block
        .object()
        .all(|(key, _)| key.decode() == "type" || known.contains(&key.decode().as_ref()))
}

/// Whether a result holds a text block with nothing in it. An empty string in the place of blocks is no block.
pub(super) fn has_blank(result: &ToolResult) -> bool {
    result.content.iter().any(|block| match &block.content {
        Content::Text(text) => text.is_blank() && (block.raw.is_some() || text.encoded_len() > 0),
        _ => false,
    })
}

/// The calls and results of tools that the provider ran, as far as each call has its result behind it.
pub(super) fn server_pairs(parts: &[Part<'_>]) -> HashSet<(usize, usize)> {
    let mut open: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut pairs = HashSet::new();
    let mut used = HashSet::new();
    for part in parts {
        let (What::Block(content), Some(from)) = (&part.what, part.from) else {
            continue;
        };
        match content {
            Content::ToolCall(call) if used.insert(&*call.id) => {
                open.insert(&call.id, from);
            }
            Content::ToolResult(result) => {
                if let Some(call) = open.remove(&*result.call_id) {
                    pairs.extend([call, from]);
                }
            }
            _ => {}
        }
    }
    pairs
}

pub(super) fn index_of(part: &Part<'_>) -> usize {
    part.from.map_or(0, |(index, _)| index)
}

pub(super) fn as_object(input: &ToolInput) -> Option<&Raw> {
    match input {
        ToolInput::Json(raw) if raw.kind() == Kind::Object => Some(raw),
        _ => None,
    }
}

/// Texts that say something, one after the other.
pub(super) fn joined(texts: &[String]) -> String {
    texts.join("\n\n")
}

pub(super) fn is_said(text: &Text) -> bool {
    !text.is_blank()
}
