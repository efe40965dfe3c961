//! Writes the body that a plan asks for, from the client's own bytes.

use bytestring::ByteString;
use throughline_engine::Plan;
use throughline_transcript::check::Profile;
use throughline_transcript::client::{StrippedMessage, without_reasoning};
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Content, Message, Role};
use throughline_transcript::outline::{Outline, Piece, Span};
use throughline_transcript::request::message;
use throughline_transcript::wire::Wire;

/// The assistant's answer to a memory, where the assistant has to speak next.
const UNDERSTOOD: &str = "Understood.";

/// The body of a client's request, all of whose messages were read.
#[derive(Debug)]
pub(crate) struct ClientBody {
    pub(crate) outline: Outline,
    /// Instructions at the beginning of the list: they always stay.
    pub(crate) lead: Vec<Span>,
    /// The messages behind them.
    pub(crate) messages: Vec<Span>,
    /// Indexes of the messages that are instructions of the operator's.
    pub(crate) operators: Vec<usize>,
    /// What the upstream requires beyond the provider's rules.
    pub(crate) profile: Profile,
}

impl ClientBody {
    /// The body that a plan asks for; `None` if it is the client's own.
    pub(crate) fn rewritten(&self, plan: &Plan) -> Option<ByteString> {
        let tail = self.messages.get(plan.first..)?;
        let (pieces, has_stripped) = self.pieces(plan, tail);
        if !has_stripped && plan.memory.is_none() && plan.first == 0 {
            return None;
        }
        // Instructions of the operator in the covered part stay in force.
        let covered = self.operators.iter().filter(|index| **index < plan.first);
        let instructions: Vec<Message> = covered
            .filter_map(|index| self.outline.read(*self.messages.get(*index)?))
            .collect();
        let memory = plan.memory.as_deref();
        let inserted = match self.profile {
            Profile::Provider => before_tail(self.outline.wire(), memory, instructions),
            Profile::StrictAlternation => {
                before_strict_tail(&self.outline, memory, &instructions, tail)
            }
        };
        let inserted: Vec<&str> = inserted.iter().map(Raw::as_str).collect();
        let body = self.outline.replaced(&self.lead, &inserted, &pieces);
        Some(ByteString::from(body))
    }

    /// The messages of the tail, and whether one of them loses reasoning that does not count any more.
    fn pieces(&self, plan: &Plan, tail: &[Span]) -> (Vec<Piece>, bool) {
        let wire = self.outline.wire();
        let mut has_stripped = false;
        let mut pieces = Vec::with_capacity(tail.len());
        for (index, span) in (plan.first..).zip(tail) {
            let text = self.outline.body().get(span.start..span.end);
            let stripped = match text {
                Some(text) if index < plan.thinking_from => without_reasoning(wire, text),
                _ => StrippedMessage::Unchanged,
            };
            has_stripped |= stripped != StrippedMessage::Unchanged;
            match stripped {
                StrippedMessage::Unchanged => pieces.push(Piece::Kept(*span)),
                StrippedMessage::Rest(rest) => pieces.push(Piece::Other(rest)),
                StrippedMessage::Nothing => {}
            }
        }
        (pieces, has_stripped)
    }
}

/// The messages that take the place of the covered ones.
fn before_tail(wire: Wire, memory: Option<&str>, instructions: Vec<Message>) -> Vec<Raw> {
    let memory = memory.map(|memory| message::user(wire, memory));
    let instructions = instructions.into_iter().filter_map(|message| match wire {
        // Anthropic accepts them in certain places only.
        Wire::Anthropic => Some(message::user(wire, &quoted_instruction(&message))),
        Wire::OpenAiChat | Wire::OpenAiResponses => message.raw,
    });
    memory.into_iter().chain(instructions).collect()
}

/// The same where user and assistant must alternate: one message of the user, and an answer to it if the user speaks
/// next.
fn before_strict_tail(
    outline: &Outline,
    memory: Option<&str>,
    instructions: &[Message],
    tail: &[Span],
) -> Vec<Raw> {
    let wire = outline.wire();
    let words: Vec<String> = memory
        .map(str::to_owned)
        .into_iter()
        .chain(instructions.iter().map(quoted_instruction))
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

/// Who speaks first in these messages. Calls and their results do not count: chat templates ignore them.
fn speaks_first(outline: &Outline, spans: &[Span]) -> Option<Role> {
    spans.iter().find_map(|span| {
        let message = outline.read(*span)?;
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

fn quoted_instruction(message: &Message) -> String {
    let texts: Vec<_> = message.texts().map(|text| text.decode()).collect();
    format!(
        "Instruction of the operator, still in force:\n{}",
        texts.join("\n")
    )
}
