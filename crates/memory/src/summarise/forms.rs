//! What a model's answer looks like as JSON: the structs that it is read into, and the schemas that providers hold it to.
//!
//! The schemas keep to what structured output of the providers allows: every object names all its fields as required
//! and allows no others, lists and texts have no lengths, and what may be absent is `null`. There is no object with free
//! keys, so the compact object has its tool results as a list there; both ways of writing them are read.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::ask::Schema;
use super::parse::Wanted;

/// The schema of a form; `None` for Markdown.
#[must_use]
pub fn schema(wanted: Wanted) -> Option<Schema> {
    let (name, schema) = match wanted {
        Wanted::Object => ("session_memory", object_schema()),
        Wanted::Items => ("session_memory_items", items_schema()),
        Wanted::Edits => ("session_memory_edits", edits_schema()),
        Wanted::Markdown => return None,
    };
    Some(Schema { name, schema })
}

fn object_schema() -> Value {
    let text_or_null = json!({ "type": ["string", "null"] });
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    closed(json!({
        "task": { "type": "string" },
        "current_state": { "type": "string" },
        "key_decisions": {
            "type": "array",
            "items": closed(json!({
                "decision": { "type": "string" },
                "reason": text_or_null,
                "constraint": text_or_null,
            })),
        },
        "eliminated_approaches": {
            "type": "array",
            "items": closed(json!({
                "approach": { "type": "string" },
                "reason_ruled_out": text_or_null,
            })),
        },
        "open_questions": texts,
        "next_steps": texts,
        "relevant_tool_results": {
            "type": "array",
            "items": closed(json!({
                "key": { "type": "string" },
                "summary": { "type": "string" },
            })),
        },
        "compacted_at_turn": { "type": "integer" },
    }))
}

/// The sections that a model may write, by name: all but the ledger.
const WRITABLE: [&str; 10] = [
    "task",
    "current_state",
    "completed_work",
    "key_decisions",
    "eliminated_approaches",
    "errors",
    "open_questions",
    "next_steps",
    "relevant_tool_results",
    "references",
];

fn items_schema() -> Value {
    closed(json!({
        "items": {
            "type": "array",
            "items": closed(json!({
                "section": { "type": "string", "enum": WRITABLE },
                "text": { "type": "string" },
                "detail": { "type": ["string", "null"] },
                "limit": { "type": ["string", "null"] },
                "message": { "type": ["integer", "null"] },
            })),
        },
    }))
}

fn edits_schema() -> Value {
    let text_or_null = json!({ "type": ["string", "null"] });
    let section = json!({ "anyOf": [{ "type": "string", "enum": WRITABLE }, { "type": "null" }] });
    closed(json!({
        "edits": {
            "type": "array",
            "items": closed(json!({
                "action": {
                    "type": "string",
                    "enum": ["add", "replace", "resolve", "supersede", "drop"],
                },
                "id": text_or_null,
                "by": text_or_null,
                "reason": text_or_null,
                "section": section,
                "text": text_or_null,
                "detail": text_or_null,
                "limit": text_or_null,
                "message": { "type": ["integer", "null"] },
            })),
        },
    }))
}

/// An object with these fields, all required, and no others.
fn closed(properties: Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .map(|fields| fields.keys().collect())
        .unwrap_or_default();
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

/// The compact object, as a model writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectForm {
    pub(super) task: String,
    pub(super) current_state: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) key_decisions: Vec<DecisionForm>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) eliminated_approaches: Vec<ApproachForm>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) open_questions: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) next_steps: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) relevant_tool_results: Results,
    /// Code knows better; whatever stands here is passed over.
    #[serde(default, rename = "compacted_at_turn")]
    _compacted_at_turn: serde::de::IgnoredAny,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionForm {
    pub(super) decision: String,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) constraint: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproachForm {
    pub(super) approach: String,
    #[serde(default)]
    pub(super) reason_ruled_out: Option<String>,
}

/// The full document, as far as a model can write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemsForm {
    pub(super) items: Vec<ItemForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemForm {
    pub(super) section: String,
    pub(super) text: String,
    #[serde(default)]
    pub(super) detail: Option<String>,
    #[serde(default)]
    pub(super) limit: Option<String>,
    #[serde(default)]
    pub(super) message: Option<u64>,
}

/// Changes against item ids.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditsForm {
    pub(super) edits: Vec<EditForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditForm {
    pub(super) action: ActionForm,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) by: Option<String>,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) section: Option<String>,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) detail: Option<String>,
    #[serde(default)]
    pub(super) limit: Option<String>,
    #[serde(default)]
    pub(super) message: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ActionForm {
    Add,
    Replace,
    Resolve,
    Supersede,
    Drop,
}

/// Names with texts, written as an object or as a list of pairs.
#[derive(Debug, Default)]
pub(super) struct Results(pub(super) Vec<(String, String)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultForm {
    key: String,
    summary: String,
}

impl<'de> Deserialize<'de> for Results {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Results;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of texts, or a list of keys and summaries")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Results, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Results(pairs))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Results, A::Error> {
                let mut pairs = Vec::new();
                while let Some(ResultForm { key, summary }) = list.next_element()? {
                    pairs.push((key, summary));
                }
                Ok(Results(pairs))
            }
        }

        deserializer.deserialize_any(Pairs)
    }
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What providers demand of every object in a schema for structured output.
    fn check_closed(schema: &Value) {
        if schema.get("type") == Some(&json!("object")) {
            assert_eq!(schema["additionalProperties"], json!(false), "{schema}");
            let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(schema["required"], json!(fields));
        }
        match schema {
            Value::Object(fields) => fields.values().for_each(check_closed),
            Value::Array(list) => list.iter().for_each(check_closed),
            _ => {}
        }
    }

    #[test]
    fn schemas_are_closed_and_what_follows_them_is_read() {
        let good = [
            (
                Wanted::Object,
                json!({
                    "task": "t", "current_state": "s",
                    "key_decisions": [{ "decision": "d", "reason": null, "constraint": "c" }],
                    "eliminated_approaches": [{ "approach": "a", "reason_ruled_out": "r" }],
                    "open_questions": ["q"], "next_steps": ["n"],
                    "relevant_tool_results": [{ "key": "k", "summary": "s" }],
                    "compacted_at_turn": 0,
                }),
            ),
            (
                Wanted::Items,
                json!({ "items": [
                    { "section": "errors", "text": "t", "detail": "d", "limit": null, "message": 3 },
                ] }),
            ),
            (
                Wanted::Edits,
                json!({ "edits": [
                    { "action": "drop", "id": "a1", "by": null, "reason": "r", "section": null,
                      "text": null, "detail": null, "limit": null, "message": null },
                ] }),
            ),
        ];
        for (wanted, answer) in good {
            let schema = schema(wanted).unwrap().schema;
            check_closed(&schema);
            let validator = jsonschema::validator_for(&schema).unwrap();
            assert!(validator.is_valid(&answer), "{wanted:?}");
            let text = answer.to_string();
            assert!(super::super::parse::parse(&text, wanted).is_ok(), "{text}");
        }
        assert!(schema(Wanted::Markdown).is_none());
    }
}
