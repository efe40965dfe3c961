//! The messages that a session adds to its requests: the user's input and tool results.

use crate::json::{Raw, quoted};
use crate::wire::Wire;

/// What a tool returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// Id of the call that it answers.
    pub call_id: String,
    /// What was returned.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// The result of a tool that returned nothing: some providers refuse empty texts.
const NO_OUTPUT: &str = "(no output)";

/// A message of the user's that says `text`.
#[must_use]
pub fn user(wire: Wire, text: &str) -> Raw {
    let text = quoted(text);
    written(match wire {
        Wire::Anthropic => {
            format!(r#"{{"role":"user","content":[{{"type":"text","text":{text}}}]}}"#)
        }
        Wire::OpenAiChat => format!(r#"{{"role":"user","content":{text}}}"#),
        Wire::OpenAiResponses => format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#
        ),
    })
}

/// A message of the assistant's that says `text`.
#[must_use]
pub fn assistant(wire: Wire, text: &str) -> Raw {
    let text = quoted(text);
    written(match wire {
        Wire::Anthropic => {
            format!(r#"{{"role":"assistant","content":[{{"type":"text","text":{text}}}]}}"#)
        }
        Wire::OpenAiChat => format!(r#"{{"role":"assistant","content":{text}}}"#),
        Wire::OpenAiResponses => format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":{text},"annotations":[]}}]}}"#
        ),
    })
}

/// The messages that answer calls, followed by what the user says to that, if anything.
///
/// Anthropic wants all results of one message in one message of the user's, before any text in it (tool use,
/// "handling results"); the other formats have a message or an item for each.
#[must_use]
pub fn tool_outputs(wire: Wire, outputs: &[ToolOutput], said: Option<&str>) -> Vec<Raw> {
    let said = said.filter(|text| !text.trim().is_empty());
    match wire {
        Wire::Anthropic => {
            let mut blocks: Vec<String> = outputs
                .iter()
                .map(|output| {
                    let error = if output.is_error {
                        r#","is_error":true"#
                    } else {
                        ""
                    };
                    format!(
                        r#"{{"type":"tool_result","tool_use_id":{},"content":{}{error}}}"#,
                        quoted(&output.call_id),
                        quoted(output.shown()),
                    )
                })
                .collect();
            if let Some(text) = said {
                blocks.push(format!(r#"{{"type":"text","text":{}}}"#, quoted(text)));
            }
            if blocks.is_empty() {
                return Vec::new();
            }
            vec![written(format!(
                r#"{{"role":"user","content":[{}]}}"#,
                blocks.join(",")
            ))]
        }
        Wire::OpenAiChat | Wire::OpenAiResponses => outputs
            .iter()
            .map(|output| {
                let (id, text) = (quoted(&output.call_id), quoted(&output.told()));
                written(if wire == Wire::OpenAiChat {
                    format!(r#"{{"role":"tool","tool_call_id":{id},"content":{text}}}"#)
                } else {
                    format!(r#"{{"type":"function_call_output","call_id":{id},"output":{text}}}"#)
                })
            })
            .chain(said.map(|text| user(wire, text)))
            .collect(),
    }
}

impl ToolOutput {
    fn shown(&self) -> &str {
        if self.text.trim().is_empty() {
            NO_OUTPUT
        } else {
            &self.text
        }
    }

    /// With the failure in words: OpenAI's formats have no field for it.
    fn told(&self) -> String {
        if self.is_error && !self.text.to_ascii_lowercase().starts_with("error") {
            format!("Error: {}", self.shown())
        } else {
            self.shown().to_owned()
        }
    }
}

fn written(text: String) -> Raw {
    // Objects of literals, written above: they can be read back. A string is no message and would be refused.
    Raw::parse(text).unwrap_or_else(|_| Raw::string(""))
}
