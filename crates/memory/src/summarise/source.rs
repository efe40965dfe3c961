//! The messages as texts with their speakers: a request shows them, and an answer is checked against them.
//!
//! Thinking is left out: it is neither shown nor counted as said. What only a provider can read is named and never
//! given as text. Memory blocks of an earlier restoration are taken out, because no participant said them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use aho_corasick::AhoCorasick;
use serde_json::Value;
use throughline_transcript::json::Text;
use throughline_transcript::message::{
    Author, Block, Content, Media, Message, Role, ToolCall, ToolInput,
};

use super::order::Redaction;
use crate::authors::{self, Before, Writer};
use crate::document::{Memory, Origin};
use crate::notes;
use crate::render::restoring;
use crate::update::folded;

/// The texts that a memory is made from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    pub(super) parts: Vec<Part>,
}

/// One text of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// Index of the message in the whole transcript.
    pub(super) message: usize,
    pub(super) at_ms: Option<i64>,
    pub(super) kind: Kind,
    /// Without secrets.
    pub(super) text: String,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    /// Put in by the client in the user's role.
    Client,
    /// A summary of earlier messages by a client or provider.
    Summary,
    System,
    Assistant,
    /// The input of a call.
    Call {
        tool: String,
    },
    Result {
        tool: String,
        is_error: bool,
    },
    /// Something that is not text; the words say what.
    Placeholder {
        what: String,
    },
}

impl Kind {
    /// Whose words it holds; `None` if there are none.
    pub(super) fn origin(&self) -> Option<Origin> {
        match self {
            Self::User => Some(Origin::User),
            Self::Assistant | Self::Call { .. } | Self::Summary | Self::Client | Self::System => {
                Some(Origin::Assistant)
            }
            Self::Result { .. } => Some(Origin::Tool),
            Self::Placeholder { .. } => None,
        }
    }

    /// Whether it is shown at both ends only when it is long.
    pub(super) fn is_capped(&self) -> bool {
        matches!(self, Self::Call { .. } | Self::Result { .. })
    }
}

/// Where words occur in the conversation, word for word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// In a text of the user, from one border of a sentence to another: index of the part.
    pub(super) as_user: Option<usize>,
    /// Anywhere in a text of the user.
    pub(super) in_user: bool,
    /// In a text of the model.
    pub(super) in_assistant: Option<usize>,
    /// In the output of a tool.
    pub(super) in_tool: Option<usize>,
}

impl Source {
    /// The texts of `messages`, the first of which has index `first_index`, without secrets.
    #[must_use]
    pub fn new(messages: &[Message], first_index: usize, redaction: &Redaction) -> Self {
        let mut source = Self::default();
        // Results name their call by an id from an earlier message.
        let mut tools: HashMap<&str, &str> = HashMap::new();
        let answered: HashSet<&str> = messages
            .iter()
            .flat_map(Message::tool_results)
            .map(|result| &*result.call_id)
            .collect();
        for (index, message) in messages.iter().enumerate() {
            let mut push = |kind, text: Cow<'_, str>| {
                source.parts.push(Part {
                    message: first_index + index,
                    at_ms: message.at_ms,
                    kind,
                    text: redaction.redact(&text).into_owned(),
                });
            };
            for block in &message.blocks {
                match &block.content {
                    Content::Text(text) => {
                        let text = text.decode();
                        let kind = match (message.role, message.author) {
                            (_, Author::Compaction) => Kind::Summary,
                            (Role::User, _) if notes::is_note(&text) => Kind::Client,
                            (Role::User, Author::Client | Author::Agent) => Kind::Client,
                            (Role::User, Author::Role)
                                if is_of_others(&text, first_index + index) =>
                            {
                                Kind::Client
                            }
                            (Role::User, Author::Role) => Kind::User,
                            (Role::Assistant, _) => Kind::Assistant,
                            (Role::System, _) => Kind::System,
                            (Role::Tool, _) => Kind::Result {
                                tool: String::new(),
                                is_error: false,
                            },
                        };
                        let text = restoring::without_blocks(&text);
                        if !text.trim().is_empty() {
                            push(kind, text);
                        }
                    }
                    // Reasoning stays out of memories, and its signatures out of requests.
                    Content::Thinking(_) => {}
                    Content::ToolCall(call) => {
                        tools.insert(&call.id, &call.name);
                        push(
                            Kind::Call {
                                tool: name_of(&call.name),
                            },
                            Cow::Owned(input_of(call)),
                        );
                        // A call that was cut off must not be taken for one that succeeded.
                        if !call.is_server_side && !answered.contains(&*call.id) {
                            let what = format!(
                                "no output of {} has come back; whether it did anything is not known",
                                name_of(&call.name)
                            );
                            push(Kind::Placeholder { what }, Cow::Borrowed(""));
                        }
                    }
                    Content::ToolResult(result) => {
                        let kind = Kind::Result {
                            tool: name_of(tools.get(&*result.call_id).copied().unwrap_or_default()),
                            is_error: result.is_error == Some(true),
                        };
                        if result.content.is_empty() {
                            push(kind.clone(), Cow::Borrowed(""));
                        }
                        for inner in &result.content {
                            match &inner.content {
                                Content::Text(text) => push(kind.clone(), text.decode()),
                                _ => push_other(inner, &mut push),
                            }
                        }
                    }
                    _ => push_other(block, &mut push),
                }
            }
        }
        source
    }

    /// The texts with their speakers, as [`verify`](crate::verify::verify) wants them, those of the prior memory too.
    pub(super) fn texts<'a>(
        &'a self,
        prior: Option<&'a Memory>,
    ) -> impl Iterator<Item = (Origin, Cow<'a, str>)> {
        let parts = self.parts.iter().flat_map(|part| {
            let tool = match &part.kind {
                Kind::Call { tool } | Kind::Result { tool, .. } => Some(tool.as_str()),
                _ => None,
            };
            part.kind
                .origin()
                .map(|origin| (origin, Cow::Borrowed(part.text.as_str())))
                .into_iter()
                .chain(tool.map(|tool| (Origin::Assistant, Cow::Borrowed(tool))))
        });
        let items = prior.into_iter().flat_map(|prior| {
            prior.items.iter().flat_map(|item| {
                item.entry
                    .texts()
                    .map(|text| (item.origin, Cow::Borrowed(text)))
            })
        });
        parts.chain(items)
    }

    /// Where each of the texts occurs, ignoring white space and case. Texts shorter than [`PATTERN_BYTES_MIN`] occur
    /// everywhere and are not searched for.
    pub(super) fn places(&self, texts: &[&str]) -> Vec<Places> {
        let patterns: Vec<String> = texts.iter().map(|text| folded(text)).collect();
        let mut distinct: Vec<&str> = Vec::new();
        let mut index_of: HashMap<&str, usize> = HashMap::new();
        let mut bytes = 0;
        for pattern in &patterns {
            let is_new = !index_of.contains_key(pattern.as_str());
            if is_new && pattern.len() >= PATTERN_BYTES_MIN {
                bytes += pattern.len();
                index_of.insert(pattern, distinct.len());
                distinct.push(pattern);
            }
        }
        let found = if bytes > PATTERN_BYTES_MAX {
            vec![Places::default(); distinct.len()]
        } else {
            self.places_of(&distinct)
        };
        patterns
            .iter()
            .map(|pattern| {
                let index = index_of.get(pattern.as_str());
                index.map(|index| found[*index]).unwrap_or_default()
            })
            .collect()
    }

    fn places_of(&self, patterns: &[&str]) -> Vec<Places> {
        let mut places = vec![Places::default(); patterns.len()];
        let Ok(automaton) = AhoCorasick::new(patterns) else {
            return places;
        };
        let mut matches = 0_usize;
        for (index, part) in self.parts.iter().enumerate() {
            let Some(origin) = part.kind.origin() else {
                continue;
            };
            let text = folded(&part.text);
            for found in automaton.find_overlapping_iter(&text) {
                matches += 1;
                if matches > MATCHES_MAX {
                    return places;
                }
                let place = &mut places[found.pattern().as_usize()];
                match origin {
                    Origin::User => {
                        place.in_user = true;
                        if is_whole(&text, found.start(), found.end()) {
                            place.as_user = Some(index);
                        }
                    }
                    Origin::Tool => place.in_tool = Some(index),
                    Origin::Assistant | Origin::Code => place.in_assistant = Some(index),
                }
            }
        }
        places
    }
}

/// The shortest text that is searched for, bytes: shorter texts occur by chance.
pub(super) const PATTERN_BYTES_MIN: usize = 8;
/// How many bytes of texts are searched for at once.
const PATTERN_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many places are looked at. Texts that overlap with themselves could be found everywhere; what is not found then
/// counts as the model's words.
const MATCHES_MAX: usize = 20_000_000;

/// Whether the words are whole sentences of the text: a piece of one can say the opposite.
fn is_whole(text: &str, start: usize, end: usize) -> bool {
    const BORDERS: &str = ".!?;:…。！？；：\"“”";
    let before = text.get(..start).unwrap_or_default().trim_end();
    let after = text.get(end..).unwrap_or_default();
    let inside = text.get(start..end).unwrap_or_default();
    let is_border = |c: char| BORDERS.contains(c);
    (before.is_empty() || before.ends_with(is_border))
        && (after.trim().is_empty()
            || after.trim_start().starts_with(is_border)
            || inside.ends_with(is_border))
}

fn push_other(block: &Block, push: &mut impl FnMut(Kind, Cow<'_, str>)) {
    let what = match &block.content {
        Content::Image(media) => media_of("picture", media),
        Content::Document(media) => media_of("document", media),
        Content::Compaction(Some(text)) if !text.decode().trim().is_empty() => {
            push(Kind::Summary, text.decode());
            return;
        }
        Content::Compaction(_) => {
            "a summary of earlier messages that only the provider can read; what it says is not known here"
                .to_owned()
        }
        // Reasoning under any name: neither shown nor mentioned.
        Content::Other(kind) if kind.contains("thinking") || kind.contains("reasoning") => return,
        Content::Other(kind) => format!("a part of the kind {}, which is not readable here", name_of(kind)),
        Content::Text(_) | Content::Thinking(_) | Content::ToolCall(_) | Content::ToolResult(_) => {
            return;
        }
    };
    push(Kind::Placeholder { what }, Cow::Borrowed(""));
}

fn media_of(kind: &str, media: &Media) -> String {
    let mut words = format!("a {kind}");
    let mut details = Vec::new();
    if let Some(media_type) = &media.media_type {
        details.push(name_of(media_type));
    }
    if let Some(bytes) = media.data_bytes {
        details.push(format!("{bytes} bytes"));
    }
    if let Some(name) = &media.name
        && !name.starts_with("data:")
    {
        details.push(name_of(name));
    }
    if !details.is_empty() {
        words.push_str(&format!(" ({})", details.join(", ")));
    }
    words.push_str(", not shown");
    words
}

/// A name that others chose, made safe outside of quoted lines: no white space, no brackets, not long.
fn name_of(name: &str) -> String {
    const BYTES_MAX: usize = 80;
    let name = throughline_transcript::text::head(name, BYTES_MAX);
    name.chars()
        .map(|c| {
            if c.is_alphanumeric() || "_-./:@+".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// The input of a call as lines `name: value`: easier to read than JSON, and nothing that a model would take for the
/// syntax of a call.
fn input_of(call: &ToolCall) -> String {
    match &call.input {
        ToolInput::Text(text) => text.decode().into_owned(),
        ToolInput::Json(raw) => {
            let fields: Vec<(Text, _)> = raw.object().collect();
            if fields.is_empty() {
                return match raw.as_str() {
                    "{}" | "null" => String::new(),
                    other => other.to_owned(),
                };
            }
            let mut lines = String::new();
            for (name, value) in fields {
                lines.push_str(&name.decode());
                lines.push_str(": ");
                match value.as_text() {
                    Some(text) => lines.push_str(&text.decode()),
                    None => push_leaves(value.as_str(), &mut lines),
                }
                lines.push('\n');
            }
            lines.truncate(lines.trim_end_matches('\n').len());
            lines
        }
    }
}

/// A nested value: as JSON, with the escapes of its texts taken out where that can be done.
fn push_leaves(json: &str, lines: &mut String) {
    if !json.contains('\\') {
        lines.push_str(json);
        return;
    }
    match serde_json::from_str::<Value>(json) {
        Ok(value) => push_value(&value, lines),
        Err(_) => lines.push_str(json),
    }
}

/// Whether no word of a user message is the person's.
fn is_of_others(text: &str, index: usize) -> bool {
    let before = Before {
        has_messages: index > 0,
        has_called: false,
        said: Some(""),
    };
    let pieces = authors::pieces(text, before);
    !pieces.is_empty() && pieces.iter().all(|piece| piece.writer != Writer::Person)
}

fn push_value(value: &Value, lines: &mut String) {
    match value {
        Value::String(text) => lines.push_str(text),
        Value::Array(list) => {
            for value in list {
                lines.push_str("\n- ");
                push_value(value, lines);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                lines.push_str("\n- ");
                lines.push_str(name);
                lines.push_str(": ");
                push_value(value, lines);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => lines.push_str(&value.to_string()),
    }
}
