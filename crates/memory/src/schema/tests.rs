use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::render::object;
use crate::testing::any_memory;

/// Set to rewrite the files instead of comparing them.
const UPDATE: &str = "THROUGHLINE_UPDATE_SCHEMAS";

#[expect(
    clippy::disallowed_methods,
    reason = "the published files are compared with the code"
)]
fn check_published(name: &str, schema: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/schema")
        .join(name);
    let json = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, json).unwrap();
        return;
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == json,
        "docs/schema/{name} is out of date: run the tests of this crate once with {UPDATE}=1"
    );
}

#[test]
fn the_published_schemas_are_those_of_the_code() {
    check_published("memory.schema.json", &memory_schema());
    check_published("memory-object.schema.json", &object_schema());
}

#[test]
fn the_schemas_refuse_invalid_documents() {
    let memory = jsonschema::validator_for(&memory_schema()).unwrap();
    let valid = serde_json::json!({
        "schema": "throughline.memory/1.2", "version": 1, "compacted_at_turn": 0, "covered": {"messages": 0},
    });
    assert!(memory.is_valid(&valid));
    for (path, value) in [
        ("schema", serde_json::json!("throughline.memory/2")),
        ("version", serde_json::json!(-1)),
        ("task", serde_json::json!([{"id": "a", "text": "x"}])),
        ("covered", serde_json::json!({})),
    ] {
        let mut changed = valid.clone();
        changed[path] = value;
        assert!(!memory.is_valid(&changed), "{changed}");
    }

    let object = jsonschema::validator_for(&object_schema()).unwrap();
    let valid = serde_json::json!({
        "task": "", "current_state": "", "key_decisions": [], "eliminated_approaches": [], "open_questions": [],
        "next_steps": [], "relevant_tool_results": {}, "compacted_at_turn": 1,
    });
    assert!(object.is_valid(&valid));
    for field in valid.as_object().unwrap().keys() {
        let mut changed = valid.clone();
        changed.as_object_mut().unwrap().remove(field);
        assert!(!object.is_valid(&changed), "{changed}");
    }
    let mut changed = valid;
    changed["mood"] = serde_json::json!("fine");
    assert!(!object.is_valid(&changed), "{changed}");
}

#[test]
fn rendered_documents_fit_their_schemas() {
    let memory_validator = jsonschema::validator_for(&memory_schema()).unwrap();
    let object_validator = jsonschema::validator_for(&object_schema()).unwrap();
    proptest!(|(memory in any_memory())| {
        for (validator, json) in [
            (&memory_validator, memory.to_json()),
            (&object_validator, object::render(&memory)),
        ] {
            let value: Value = serde_json::from_str(&json).unwrap();
            let errors: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            prop_assert!(errors.is_empty(), "{errors:?} in {json}");
        }
    });
}
