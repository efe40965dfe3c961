//! Tool definitions, from one wire format to another.

use std::collections::BTreeSet;

use throughline_transcript::json::{Raw, quoted};
use throughline_transcript::wire::Wire;

use super::losses::Losses;
use super::text::{array, object};

/// Longest name of a tool that all providers take, bytes.
const NAME_BYTES_MAX: usize = 64;

/// The `tools` of a request: those that are defined, and for Anthropic, which wants every tool that is called to be
/// defined, an open definition of each further one in `used`. `None` if there are none.
pub(super) fn write(
    tools: Option<&Raw>,
    used: &BTreeSet<String>,
    wire: Wire,
    losses: &mut Losses,
) -> Option<String> {
    let mut written = Vec::new();
    let mut names = BTreeSet::new();
    for tool in tools.iter().flat_map(|tools| tools.array()) {
        match Tool::of(&tool) {
            Some(parts) => {
                let name = name(&parts.name);
                if names.insert(name.clone()) {
                    written.push(parts.write(&name, wire));
                }
            }
            None if is_own(&tool, wire) => {
                names.extend(tool.string_field("name"));
                written.push(tool.as_str().to_owned());
            }
            None => losses.note(
                "tool",
                0,
                "a tool that the provider runs itself has no counterpart and was left out",
            ),
        }
    }
    if wire == Wire::Anthropic {
        for name in used {
            if names.insert(name.clone()) {
                losses.note(
                    "tool-made",
                    0,
                    "a tool that is called is not defined in the source and got an open definition",
                );
                written.push(object(&[
                    ("name", &quoted(name)),
                    ("input_schema", r#"{"type":"object"}"#),
                ]));
            }
        }
    }
    (!written.is_empty()).then(|| array(&written))
}

/// The name as all providers take it.
pub(super) fn name(name: &str) -> String {
    let mut clean: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    clean.truncate(NAME_BYTES_MAX);
    if clean.is_empty() {
        clean.push_str("tool");
    }
    clean
}

/// A tool that the client runs.
struct Tool {
    name: String,
    description: Option<Raw>,
    schema: Option<Raw>,
    is_strict: Option<Raw>,
}

impl Tool {
    fn of(tool: &Raw) -> Option<Self> {
        if let Some(function) = tool.field("function") {
            return Self::of(&function);
        }
        let kind = tool.string_field("type");
        let schema = tool
            .field("input_schema")
            .or_else(|| tool.field("parameters"));
        if !matches!(kind.as_deref(), None | Some("function" | "custom")) {
            return None;
        }
        // A custom tool of OpenAI takes free text: it has a format and no schema.
        if kind.as_deref() == Some("custom") && schema.is_none() {
            return None;
        }
        Some(Self {
            name: tool.string_field("name")?,
            description: tool.field("description").filter(|text| !text.is_null()),
            schema: schema.filter(|schema| !schema.is_null()),
            is_strict: tool.field("strict").filter(|strict| !strict.is_null()),
        })
    }

    fn write(&self, name: &str, wire: Wire) -> String {
        let name = quoted(name);
        let schema_key = if wire == Wire::Anthropic {
            "input_schema"
        } else {
            "parameters"
        };
        let mut fields = vec![("name", name.as_str())];
        if let Some(description) = &self.description {
            fields.push(("description", description.as_str()));
        }
        match &self.schema {
            Some(schema) => fields.push((schema_key, schema.as_str())),
            None => fields.push((schema_key, r#"{"type":"object","properties":{}}"#)),
        }
        if let Some(strict) = &self.is_strict {
            fields.push(("strict", strict.as_str()));
        }
        match wire {
            Wire::Anthropic => object(&fields),
            Wire::OpenAiChat => object(&[("type", "\"function\""), ("function", &object(&fields))]),
            Wire::OpenAiResponses => {
                fields.insert(0, ("type", "\"function\""));
                object(&fields)
            }
        }
    }
}

/// A definition of the target's own that has no schema: a versioned tool of Anthropic, a hosted tool of OpenAI.
fn is_own(tool: &Raw, wire: Wire) -> bool {
    let Some(kind) = tool.string_field("type") else {
        return false;
    };
    let is_versioned = kind
        .rsplit_once('_')
        .is_some_and(|(_, date)| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()));
    match wire {
        Wire::Anthropic => is_versioned,
        Wire::OpenAiChat => kind == "custom",
        Wire::OpenAiResponses => !is_versioned,
    }
}
