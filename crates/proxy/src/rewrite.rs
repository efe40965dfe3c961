//! Writes the body that a plan means, from the client's own bytes.

use throughline_engine::Plan;
use throughline_transcript::check::Profile;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Content, Message, Role};
use throughline_transcript::outline::{Outline, Piece, Span};
use throughline_transcript::request::{message, without_thinking};
use throughline_transcript::wire::Wire;

use crate::known::parsed;

/// What the assistant says to a memory where it has to say something.
const UNDERSTOOD: &str = "Understood.";

/// The body that a plan means; `None` if it is the client's own.
pub(crate) fn written(
    outline: &Outline,
    lead: &[Span],
    spans: &[Span],
    plan: &Plan,
    profile: Profile,
) -> Option<String> {
    let wire = outline.wire();
    let tail = spans.get(plan.first..)?;
    let mut has_changed = plan.memory.is_some() || plan.first > 0;
    let mut pieces = Vec::with_capacity(tail.len());
    for (index, span) in (plan.first..).zip(tail) {
        let piece = Piece::Kept(*span);
        if index >= plan.thinking_from || wire != Wire::Anthropic {
            pieces.push(piece);
            continue;
        }
        let text = outline.body().get(span.start..span.end)?;
        if memchr::memmem::find(text.as_bytes(), b"thinking").is_none() {
            pieces.push(piece);
            continue;
        }
        let raw = Raw::parse(text.to_owned()).ok()?;
        match without_thinking(&raw) {
            Some(rest) if rest == raw => pieces.push(piece),
            Some(rest) => {
                has_changed = true;
                pieces.push(Piece::Other(rest));
            }
            None => has_changed = true,
        }
    }
    if !has_changed {
        return None;
    }
    // What the operator said in the midst of the conversation holds on.
    let said: Vec<Message> = spans[..plan.first]
        .iter()
        .filter_map(|span| {
            let text = outline.body().get(span.start..span.end)?;
            let is_operators = memchr::memmem::find(text.as_bytes(), b"\"system\"").is_some()
                || memchr::memmem::find(text.as_bytes(), b"\"developer\"").is_some();
            let read = is_operators.then(|| parsed(text)).flatten()?;
            (read.role == Role::System).then_some(read)
        })
        .collect();
    let memory = plan.memory.as_deref();
    let inserted = match profile {
        Profile::Provider => before_tail(wire, memory, said),
        Profile::StrictAlternation => before_strict_tail(outline, memory, &said, tail),
    };
    let inserted: Vec<&str> = inserted.iter().map(Raw::as_str).collect();
    Some(outline.replaced(lead, &inserted, &pieces))
}

/// What takes the place of the covered messages.
fn before_tail(wire: Wire, memory: Option<&str>, said: Vec<Message>) -> Vec<Raw> {
    let memory = memory.map(|memory| message::user(wire, memory));
    let said = said.into_iter().filter_map(|said| match wire {
        // Anthropic takes them in certain places only.
        Wire::Anthropic => Some(message::user(wire, &operators_words(&said))),
        Wire::OpenAiChat | Wire::OpenAiResponses => said.raw,
    });
    memory.into_iter().chain(said).collect()
}

/// The same where user and assistant have to speak in turn: one message of the user, and an answer to it if the user is
/// the next who speaks.
fn before_strict_tail(
    outline: &Outline,
    memory: Option<&str>,
    said: &[Message],
    tail: &[Span],
) -> Vec<Raw> {
    let wire = outline.wire();
    let words: Vec<String> = memory
        .map(str::to_owned)
        .into_iter()
        .chain(said.iter().map(operators_words))
        .collect();
    if words.is_empty() {
        return Vec::new();
    }
    let mut inserted = vec![message::user(wire, &words.join("\n\n"))];
    if speaks_first(outline, tail) == Some(Role::User) {
        inserted.push(message::assistant(wire, UNDERSTOOD));
    }
    inserted
}

/// Who is the first to say something in these messages. Calls and their results do not count: templates pass over them.
fn speaks_first(outline: &Outline, spans: &[Span]) -> Option<Role> {
    spans.iter().find_map(|span| {
        let message = parsed(outline.body().get(span.start..span.end)?)?;
        let has = |is: fn(&Content) -> bool| message.blocks.iter().any(|it| is(&it.content));
        match message.role {
            Role::User => !has(|it| matches!(it, Content::ToolResult(_))) || message.begins_turn(),
            Role::Assistant => {
                let is_call = has(|it| matches!(it, Content::ToolCall(_)));
                !is_call && has(|it| matches!(it, Content::Text(_)))
            }
            _ => false,
        }
        .then_some(message.role)
    })
}

fn operators_words(message: &Message) -> String {
    let texts: Vec<_> = message.texts().map(|text| text.decode()).collect();
    format!(
        "Instruction of the operator, still in force:\n{}",
        texts.join("\n")
    )
}

/// What binds the reasoning of a message to what stood before it.
pub(crate) fn signatures(message: &Message) -> Vec<String> {
    let Some(raw) = message.raw.as_ref() else {
        return Vec::new();
    };
    if message.role != Role::Assistant
        || memchr::memmem::find(raw.as_str().as_bytes(), b"thinking\"").is_none()
    {
        return Vec::new();
    }
    let blocks = raw.field("content");
    let blocks = blocks.iter().flat_map(Raw::array);
    blocks
        .filter_map(|block| {
            let kind = block.string_field("type")?;
            let name = match kind.as_str() {
                "thinking" => "signature",
                "redacted_thinking" => "data",
                _ => return None,
            };
            block.string_field(name)
        })
        .collect()
}
