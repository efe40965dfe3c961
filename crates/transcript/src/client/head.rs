//! The part of a request that precedes its messages.

use crate::json::Raw;
use crate::outline::{Outline, Span};
use crate::request::limit_names;
use crate::tokens::Counter;
use crate::wire::Wire;

/// Everything of a request but its conversation: its fields, and the instructions at the beginning of its messages.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    outline: &'a Outline,
    lead: &'a [Span],
}

impl<'a> Head<'a> {
    /// The head of a request whose messages begin with the instructions `lead`.
    #[must_use]
    pub fn new(outline: &'a Outline, lead: &'a [Span]) -> Self {
        Self { outline, lead }
    }

    /// The texts on which the meaning of reasoning depends: the model, and what it is shown before the conversation. As
    /// long as they stay the same, a provider can read what precedes the messages from its cache.
    pub fn prefix(self) -> impl Iterator<Item = &'a str> {
        let names = prefix_names(self.outline.wire());
        let fields = self.outline.fields();
        fields
            .filter(|(name, _)| names.contains(name))
            .map(|(_, value)| value.as_str())
            .chain(self.instructions())
    }

    /// How many bytes a body has besides its conversation, about.
    #[must_use]
    pub fn bytes(self) -> u64 {
        let fields = self.outline.fields();
        let fields: usize = fields
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        let instructions: usize = self.instructions().map(str::len).sum();
        (fields + instructions) as u64
    }

    /// How many tokens the model is shown besides the conversation.
    #[must_use]
    pub fn tokens(self, counter: Counter) -> u64 {
        let tools = self.outline.field("tools");
        let mut tokens = tools.map_or(0, |tools| counter.tools(tools));
        let system = system_name(self.outline.wire()).and_then(|name| self.outline.field(name));
        tokens += system.map_or(0, |system| counter.text(system.as_str()));
        for text in self.instructions() {
            tokens += counter.text(text);
        }
        tokens as u64
    }

    /// The head as a body without a conversation.
    #[must_use]
    pub fn body(self) -> String {
        self.outline.replaced(self.lead, &[], &[])
    }

    fn instructions(self) -> impl Iterator<Item = &'a str> {
        let body = self.outline.body();
        self.lead
            .iter()
            .map(move |span| body.get(span.start..span.end).unwrap_or_default())
    }
}

/// The model that a request asks.
#[must_use]
pub fn model(outline: &Outline) -> Option<String> {
    let model = outline.field("model").and_then(Raw::as_text)?;
    Some(model.decode().into_owned())
}

/// The limit that a request sets for the answer, tokens.
#[must_use]
pub fn answer_tokens_max(outline: &Outline) -> Option<u64> {
    limit_names(outline.wire())
        .iter()
        .find_map(|name| outline.field(name)?.as_u64())
}

/// The field that has the system prompt, where it is no message.
fn system_name(wire: Wire) -> Option<&'static str> {
    match wire {
        Wire::Anthropic => Some("system"),
        Wire::OpenAiChat => None,
        Wire::OpenAiResponses => Some("instructions"),
    }
}

fn prefix_names(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::Anthropic => &["model", "tools", "system"],
        Wire::OpenAiChat => &["model", "tools", "functions"],
        Wire::OpenAiResponses => &["model", "tools", "instructions"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::Reader;

    const SYSTEM: &str = r#"{"role":"system","content":"s"}"#;

    fn outline(wire: Wire, body: &str) -> (Outline, Span) {
        let mut reader = Reader::new(wire, body.to_owned().into()).unwrap();
        let first = reader.next().unwrap().unwrap();
        (reader.finish().unwrap(), first)
    }

    #[test]
    fn the_prefix_is_everything_before_the_messages() {
        let body = format!(
            r#"{{"model":"m","max_tokens":7,"system":"a","instructions":"b","tools":[],"input":[],"messages":[{SYSTEM}]}}"#
        );
        let check = |wire, body: &str, is_led: bool, expected: &[&str]| {
            let (outline, first) = outline(wire, body);
            let lead = if is_led { &[first][..] } else { &[] };
            let head = Head::new(&outline, lead);
            assert_eq!(head.prefix().collect::<Vec<_>>(), expected);
        };
        check(Wire::Anthropic, &body, false, &[r#""m""#, r#""a""#, "[]"]);
        check(Wire::OpenAiChat, &body, true, &[r#""m""#, "[]", SYSTEM]);
        let body = body
            .replace(r#""input":[],"#, "")
            .replace("messages", "input");
        check(
            Wire::OpenAiResponses,
            &body,
            true,
            &[r#""m""#, r#""b""#, "[]", SYSTEM],
        );
    }

    #[test]
    fn a_head_is_measured_and_written_without_the_conversation() {
        let body = format!(
            r#"{{"model":"m","max_tokens":7,"messages":[{SYSTEM},{{"role":"user","content":"{}"}}]}}"#,
            "hello ".repeat(1000)
        );
        let (outline, first) = outline(Wire::OpenAiChat, &body);
        let lead = [first];
        let head = Head::new(&outline, &lead);
        let text = format!(r#"{{"model":"m","max_tokens":7,"messages":[{SYSTEM}]}}"#);
        assert_eq!(head.body(), text);
        let bytes = "model".len() + 3 + 4 + "max_tokens".len() + 1 + 4 + SYSTEM.len();
        assert_eq!(head.bytes(), bytes as u64);
        let counter = Counter::reference();
        assert_eq!(head.tokens(counter), counter.text(SYSTEM) as u64);
        assert_eq!(model(&outline).as_deref(), Some("m"));
        assert_eq!(answer_tokens_max(&outline), Some(7));
    }
}
