use serde_json::{Value, json};
use throughline_transcript::wire::Wire;

use super::*;

fn shown() -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::open(folder.path()).unwrap();
    let all = NAMES.iter().fold(Tools::new(), |tools, name| {
        tools.with_builtin(name, Some(&root)).unwrap()
    });
    let rendered = all.render(Wire::Anthropic);
    let values = rendered
        .iter()
        .map(|raw| serde_json::from_str(raw.as_str()));
    values.collect::<Result<_, _>>().unwrap()
}

#[test]
fn tools_are_shown_by_their_names_with_whole_schemas() {
    let shown = shown();
    let names: Vec<_> = shown.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, NAMES);
    assert_eq!(
        shown[1]["input_schema"],
        json!({
            "type": "object",
            "properties": {
                "plan": {
                    "type": "array",
                    "description": "All steps, in order; the list replaces the one before.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "step": {"type": "string", "description": "What is to be done, in some words."},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["step", "status"],
                    },
                },
            },
            "required": ["plan"],
        })
    );
    for tool in shown {
        let schema = &tool["input_schema"];
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema.get("description"), None, "{schema}");
        assert!(!schema.to_string().contains("$ref"));
        for (name, property) in properties {
            let described = property["description"].as_str().unwrap();
            assert!(!described.contains('\n'), "{name}: {described}");
        }
    }
}
