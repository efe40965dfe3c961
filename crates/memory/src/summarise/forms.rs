//! A model's answer as JSON: the structs that it is read into, and the schemas that providers enforce.
//!
//! The schemas use only what the providers' structured output allows: every object names all its fields as required
//! and allows no others, lists and texts have no lengths, and what may be absent is `null`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::AnswerForm;
use super::ask::Schema;

/// The schema of a form; `None` for Markdown.
#[must_use]
pub fn schema(wanted: AnswerForm) -> Option<Schema> {
    let (name, schema) = match wanted {
        AnswerForm::Items => ("session_memory_items", items_schema()),
        AnswerForm::Edits => ("session_memory_edits", edits_schema()),
        AnswerForm::Markdown => return None,
    };
    Some(Schema { name, schema })
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
    fn schemas_are_closed_and_conforming_answers_are_read() {
        let good = [
            (
                AnswerForm::Items,
                json!({ "items": [
                    { "section": "errors", "text": "t", "detail": "d", "limit": null, "message": 3 },
                ] }),
            ),
            (
                AnswerForm::Edits,
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
        assert!(schema(AnswerForm::Markdown).is_none());
    }
}
