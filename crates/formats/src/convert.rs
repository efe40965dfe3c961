//! Writes requests: a conversation from any source in any of the wire formats.
//!
//! [`convert`] writes the whole conversation, [`request_with_memory`] a memory and the messages that it does not
//! cover, [`to_jsonl`] a neutral list. The output follows the providers' rules: every call is answered once,
//! directly and by one result, no text is empty, the user speaks first. What had to be repaired or could not be
//! carried over is listed in [`ConvertedRequest::losses`].
//!
//! A message that comes from a request of the same format and needs no repair is written byte for byte, and so is
//! everything around it. Which messages a memory covers, and whether the result is worth sending, is not decided here.

mod anthropic;
mod draft;
mod jsonl;
mod losses;
mod markers;
mod media;
mod native;
mod openai_chat;
mod openai_responses;
mod session_file;
mod text;
mod tools;
mod writer;

use std::collections::BTreeSet;

use throughline_transcript::body::list_name;
use throughline_transcript::check::{CheckOptions, check};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Kind, Raw, quoted};
use throughline_transcript::message::{Block, Content, Role};
use throughline_transcript::request::CacheTtl;
use throughline_transcript::splice::Splice;
use throughline_transcript::wire::Wire;

use self::draft::{Draft, Entry, Orphans, Part, Speaker, Turn, What};
pub use self::jsonl::to_jsonl;
pub use self::losses::Loss;
use self::losses::Losses;
pub use self::markers::MARKERS_MAX;
pub use self::session_file::{Agent, SessionFile};
use self::text::{array, object};
use self::writer::{Writer, WrittenMessage};

/// `max_tokens` of an Anthropic request, where neither the options nor the source say it. The format wants one.
const MAX_TOKENS: u64 = 4096;

/// Stands in a request in which nothing else is said.
const NOTHING_SAID: &str = "(There are no messages yet.)";
/// The least `max_output_tokens` of the Responses format.
const OUTPUT_TOKENS_MIN: u64 = 16;

/// How to write a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Model to ask. Without it, the model that the conversation names.
    pub model: Option<String>,
    /// Limit of the answer, tokens. Without it, what the source says.
    pub max_tokens: Option<u64>,
    /// Whether user and assistant must take turns and one system message must come first, as the chat templates of
    /// many local models want it.
    pub strict_alternation: bool,
    /// Whether reasoning is left out. Models that bind it to the request before it refuse it once that has changed.
    pub drop_thinking: bool,
    /// Whether everything is left out that only the provider and account that made it can read: sealed reasoning and
    /// compactions, results of tools that the provider ran. For a change of provider.
    pub drop_sealed: bool,
    /// Whether the last message may be the assistant's, as in a session that waits for its user. A request needs a
    /// message to answer.
    pub ends_with_answer: bool,
    /// Whether the memory gets a cache marker, if one is free, and how long the cache is to hold it. For Anthropic.
    pub memory_marker: Option<CacheTtl>,
}

/// A written request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertedRequest {
    /// The request body.
    pub body: String,
    /// What was repaired or could not be carried over; empty if nothing.
    pub losses: Vec<Loss>,
}

/// Writes the conversation as a request.
#[must_use]
pub fn convert(conversation: &Conversation, wire: Wire, options: &Options) -> ConvertedRequest {
    write(conversation, None, wire, options)
}

/// Writes a request in which `memory` replaces the messages before `cut`: a first user message, then the tail
/// unchanged.
///
/// `memory` is taken as it is; its delimiters are the caller's. Instructions of the operator (system messages) before
/// the cut stay. A `cut` beyond the end covers everything. Use [`throughline_transcript::cut`] to find a cut that parts nothing:
/// results in the tail whose calls are covered are left out.
#[must_use]
pub fn request_with_memory(
    conversation: &Conversation,
    memory: &str,
    cut: usize,
    wire: Wire,
    options: &Options,
) -> ConvertedRequest {
    let cut = cut.min(conversation.messages.len());
    write(conversation, Some((memory, cut)), wire, options)
}

fn write(
    conversation: &Conversation,
    memory: Option<(&str, usize)>,
    wire: Wire,
    options: &Options,
) -> ConvertedRequest {
    let mut losses = Losses::default();
    let messages = &conversation.messages;
    let own_body = conversation
        .body
        .as_ref()
        .filter(|body| Wire::detect(body) == Some(wire));
    let changes_nothing = memory.is_none()
        && !options.strict_alternation
        && !options.drop_thinking
        && !options.drop_sealed;
    if let Some(body) = own_body.filter(|_| changes_nothing)
        && check(body, wire, &CheckOptions::default()).is_valid()
    {
        // What the provider takes as it is needs no order of ours.
        let mut splice = Splice::new(body);
        let body = match set_options(&mut splice, body, wire, options) {
            Some(()) => splice.finish().ok(),
            None => None,
        };
        if let Some(body) = body {
            return finish(body.to_string(), losses);
        }
    }
    let cut = memory.map_or(0, |(_, cut)| cut);
    let covered = messages[..cut]
        .iter()
        .enumerate()
        .filter(|(_, message)| message.role == Role::System);
    let entries = covered
        .map(|(index, message)| Entry::Message(index, message))
        .chain(memory.map(|(text, _)| Entry::Memory(text)))
        .chain(
            messages
                .iter()
                .enumerate()
                .skip(cut)
                .map(|(index, message)| Entry::Message(index, message)),
        );
    let orphans = if memory.is_some() {
        Orphans::Drop
    } else {
        Orphans::ToText
    };
    let mut draft = Draft::of(entries, orphans, wire == Wire::Anthropic, &mut losses);
    let mut writer = Writer {
        wire,
        messages,
        is_own: own_body.is_some(),
        options,
        tools: conversation.tools.as_ref(),
        losses: &mut losses,
        used_tools: BTreeSet::new(),
        out: Vec::new(),
        system: Vec::new(),
    };
    if options.strict_alternation {
        alternate(&mut draft, &conversation.system, &mut writer, wire);
    }
    match wire {
        Wire::Anthropic => writer.anthropic(&draft),
        Wire::OpenAiChat => writer.chat(&draft),
        Wire::OpenAiResponses => writer.responses(&draft),
    }
    if conversation.messages.is_empty() && own_body.is_some() {
        // An empty request was empty before.
    } else if writer
        .out
        .iter()
        .all(|written| written.speaker == Speaker::System)
    {
        writer.say(NOTHING_SAID);
        writer.losses.note(
            "no-messages",
            0,
            "no message is left; one that says so was added",
        );
    }
    let Writer {
        out,
        system,
        used_tools,
        ..
    } = writer;
    let body = match own_body {
        Some(body) => own(conversation, body, &out, &system, cut, wire, options),
        None => new(
            conversation,
            &out,
            system,
            &used_tools,
            wire,
            options,
            &mut losses,
        ),
    };
    let body = if wire == Wire::Anthropic {
        let memory_at = memory.and_then(|_| out.iter().position(WrittenMessage::is_users));
        markers::settle(body, memory_at, options.memory_marker, &mut losses)
    } else {
        body
    };
    finish(body, losses)
}

fn finish(body: String, mut losses: Losses) -> ConvertedRequest {
    let (body, lone) = text::mend_surrogates(body);
    if lone > 0 {
        losses.note(
            "lone-surrogate",
            0,
            "half a character, as cut output leaves it, became U+FFFD",
        );
    }
    ConvertedRequest {
        body,
        losses: losses.into_vec(),
    }
}

/// The body of the source with other messages: everything else in it stays.
fn own(
    conversation: &Conversation,
    body: &Raw,
    out: &[WrittenMessage],
    system: &[String],
    cut: usize,
    wire: Wire,
    options: &Options,
) -> String {
    let list = list_name(wire);
    let count = conversation.messages.len();
    let is_list_whole = body
        .field(list)
        .is_some_and(|list| list.kind() == Kind::Array && list.array().count() == count);
    let is_input_text = cut == 0
        && body
            .field(list)
            .is_some_and(|list| list.kind() == Kind::String);
    // The last messages are the tail, unchanged: then only the part before it is written.
    let kept = count - cut;
    let is_tail_whole = is_list_whole
        && out.len() >= kept
        && out[out.len() - kept..]
            .iter()
            .enumerate()
            .all(|(at, written)| written.source == Some(cut + at));
    let mut splice = Splice::new(body);
    let spliced = (|| {
        if is_tail_whole {
            let first = parsed(&out[..out.len() - kept])?;
            if cut > 0 || !first.is_empty() {
                splice.replace_array_prefix(list, cut, &first).ok()?;
            }
        } else if is_input_text && out.len() == 1 {
            // A string as input is what it was.
        } else if !(conversation.messages.is_empty() && out.is_empty()) {
            let texts: Vec<&str> = out.iter().map(|written| written.text.as_str()).collect();
            splice
                .set_field(list, Raw::parse(array(&texts)).ok()?)
                .ok()?;
        }
        if !system.is_empty() {
            let mut blocks: Vec<String> = match body.field("system") {
                Some(blocks) if blocks.kind() == Kind::Array => blocks
                    .array()
                    .map(|block| block.as_str().to_owned())
                    .collect(),
                Some(text) if text.kind() == Kind::String => {
                    vec![object(&[("type", "\"text\""), ("text", text.as_str())])]
                }
                _ => Vec::new(),
            };
            blocks.extend(system.iter().map(|text| anthropic::text_block(text)));
            splice
                .set_field("system", Raw::parse(array(&blocks)).ok()?)
                .ok()?;
        }
        set_options(&mut splice, body, wire, options)
    })();
    // Every piece is JSON that was checked or written here, so the changes can be made.
    match spliced.and_then(|()| splice.finish().ok()) {
        Some(text) => text.to_string(),
        None => body.as_str().to_owned(),
    }
}

fn set_options(splice: &mut Splice, body: &Raw, wire: Wire, options: &Options) -> Option<()> {
    if let Some(model) = &options.model {
        let model = Raw::parse(quoted(model)).ok()?;
        splice.set_field("model", model).ok()?;
    }
    if let Some(limit) = options.max_tokens {
        let name = match wire {
            Wire::OpenAiChat if body.field("max_tokens").is_some() => "max_tokens",
            _ => limit_name(wire),
        };
        let limit = Raw::parse(limit.to_string()).ok()?;
        splice.set_field(name, limit).ok()?;
    }
    Some(())
}

fn parsed(out: &[WrittenMessage]) -> Option<Vec<Raw>> {
    out.iter()
        .map(|written| Raw::parse(written.text.as_str()).ok())
        .collect()
}

/// A body of nothing but what the conversation says.
fn new(
    conversation: &Conversation,
    out: &[WrittenMessage],
    moved: Vec<String>,
    used_tools: &BTreeSet<String>,
    wire: Wire,
    options: &Options,
    losses: &mut Losses,
) -> String {
    let mut fields: Vec<(&str, String)> = Vec::new();
    let model = options.model.as_ref().or(conversation.model.as_ref());
    if model.is_none() {
        losses.note("model", 0, "the source names no model; set one");
    }
    fields.push(("model", quoted(model.map_or("unspecified", String::as_str))));
    let limit = options.max_tokens.or_else(|| {
        let body = conversation.body.as_ref()?;
        ["max_tokens", "max_completion_tokens", "max_output_tokens"]
            .iter()
            .find_map(|name| body.field(name)?.as_u64())
    });
    let limit = match wire {
        Wire::Anthropic => limit.or(Some(MAX_TOKENS)),
        Wire::OpenAiChat => limit,
        Wire::OpenAiResponses => limit.map(|limit| limit.max(OUTPUT_TOKENS_MIN)),
    };
    if let Some(limit) = limit {
        fields.push((limit_name(wire), limit.to_string()));
    }
    if let Some(body) = &conversation.body {
        lose_settings(body, losses);
    }
    let mut system: Vec<String> = conversation
        .system
        .iter()
        .filter_map(|block| match &block.content {
            Content::Text(text) if !text.is_blank() => Some(text.decode().into_owned()),
            _ => None,
        })
        .collect();
    // Strict templates have everything in their one system message already.
    let has_system = !(options.strict_alternation && wire == Wire::OpenAiChat);
    if !has_system {
        system.clear();
    }
    system.extend(moved);
    let mut texts: Vec<&str> = out.iter().map(|written| written.text.as_str()).collect();
    let first;
    if !system.is_empty() {
        let text = quoted(&writer::joined(&system));
        match wire {
            Wire::Anthropic => fields.push(("system", text)),
            Wire::OpenAiResponses => fields.push(("instructions", text)),
            Wire::OpenAiChat => {
                first = openai_chat::message("system", &text);
                texts.insert(0, &first);
            }
        }
    }
    if let Some(tools) = tools::write(conversation.tools.as_ref(), used_tools, wire, losses) {
        fields.push(("tools", tools));
    }
    fields.push((list_name(wire), array(&texts)));
    let fields: Vec<(&str, &str)> = fields
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    object(&fields)
}

fn limit_name(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "max_tokens",
        Wire::OpenAiChat => "max_completion_tokens",
        Wire::OpenAiResponses => "max_output_tokens",
    }
}

/// Names the settings of the source's request that the new one does not have.
fn lose_settings(body: &Raw, losses: &mut Losses) {
    const CARRIED: [&str; 9] = [
        "model",
        "messages",
        "input",
        "system",
        "instructions",
        "tools",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
    ];
    let names: Vec<String> = body
        .object()
        .map(|(key, _)| key.decode().into_owned())
        .filter(|key| !CARRIED.contains(&key.as_str()))
        .collect();
    if !names.is_empty() {
        losses.note(
            "settings",
            0,
            &format!("settings were not carried over: {}", names.join(", ")),
        );
    }
}

/// Stands between the results of tools and the next words of the user, where someone has to speak.
const SEEN: &str = "(The results were received.)";

/// Makes user and assistant take turns, with one system message before them.
fn alternate<'a>(draft: &mut Draft<'a>, system: &[Block], writer: &mut Writer<'a, '_>, wire: Wire) {
    let turns = std::mem::take(&mut draft.turns);
    let mut instructions = Vec::new();
    let mut ordered: Vec<Turn<'a>> = Vec::with_capacity(turns.len());
    for turn in turns {
        let speaker = turn.speaker;
        if !turn.parts.iter().any(|part| writer.is_said(speaker, part)) {
            writer.lose_message(&turn.parts);
            continue;
        }
        let last = ordered.last_mut();
        match (turn.speaker, last) {
            (Speaker::System, _) => {
                for part in &turn.parts {
                    instructions.extend(writer.in_words(part));
                }
            }
            (Speaker::User, Some(last)) if last.speaker == Speaker::User => {
                last.parts.extend(turn.parts);
            }
            (Speaker::Assistant, Some(last)) if last.speaker == Speaker::Assistant => {
                last.parts.extend(turn.parts);
            }
            // For Anthropic the words go into the message of the results.
            (Speaker::User, Some(last))
                if last.speaker == Speaker::Results && wire == Wire::OpenAiChat =>
            {
                ordered.push(Turn {
                    speaker: Speaker::Assistant,
                    parts: vec![Part::text(SEEN)],
                });
                ordered.push(turn);
            }
            (Speaker::Assistant, None) => {
                ordered.push(Turn {
                    speaker: Speaker::User,
                    parts: vec![Part::text(anthropic::NO_BEGINNING)],
                });
                ordered.push(turn);
            }
            _ => ordered.push(turn),
        }
    }
    if wire == Wire::OpenAiChat
        && let Some(last) = ordered.last()
        && last.speaker == Speaker::Assistant
    {
        ordered.push(Turn {
            speaker: Speaker::User,
            parts: vec![Part::text(anthropic::GO_ON)],
        });
    }
    if wire == Wire::OpenAiChat {
        let mut texts: Vec<String> = Vec::new();
        // A Chat request has its system prompt among the messages; other sources have it apart.
        texts.extend(system.iter().filter_map(|block| match &block.content {
            Content::Text(text) if !text.is_blank() => Some(text.decode().into_owned()),
            _ => None,
        }));
        texts.extend(instructions);
        if !texts.is_empty() {
            ordered.insert(
                0,
                Turn {
                    speaker: Speaker::System,
                    parts: vec![Part {
                        what: What::Text(writer::joined(&texts)),
                        from: None,
                        block: None,
                    }],
                },
            );
        }
    } else {
        writer.system.extend(instructions);
    }
    draft.turns = ordered;
}

#[cfg(test)]
mod tests;
