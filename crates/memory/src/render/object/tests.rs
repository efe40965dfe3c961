use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::testing::{any_memory, entry, item, memory};

fn object(memory: &Memory) -> Value {
    serde_json::from_str(&render(memory)).unwrap()
}

#[test]
fn the_object_has_its_eight_fields_and_nothing_is_lost() {
    let mut error = item(
        Origin::Tool,
        6,
        Entry::Error {
            text: "port 5432 already in use".into(),
            resolution: Some("stopped the old container".into()),
        },
    );
    error.status = Status::Resolved;
    let new = item(Origin::User, 8, entry(Section::Corrections, "Use pnpm."));
    let mut old = item(Origin::User, 1, entry(Section::Corrections, "Use npm."));
    old.status = Status::SupersededBy(new.id.clone());
    let mut items: Vec<Item> = Section::ALL
        .into_iter()
        .filter(|section| *section != Section::Corrections)
        .map(|section| item(Origin::Assistant, 1, entry(section, section.name())))
        .collect();
    items.extend([error, old, new]);
    insta::assert_snapshot!(render(&memory(items)), @r#"
    {
      "task": "task",
      "current_state": "current_state\nDone: completed_work",
      "key_decisions": [
        {
          "decision": "key_decisions",
          "reason": null,
          "constraint": null
        },
        {
          "decision": "Use npm.",
          "reason": "said by the user",
          "constraint": "holds no longer, superseded by: Use pnpm."
        },
        {
          "decision": "Use pnpm.",
          "reason": "said by the user",
          "constraint": "holds until the user says otherwise"
        }
      ],
      "eliminated_approaches": [
        {
          "approach": "eliminated_approaches",
          "reason_ruled_out": null
        }
      ],
      "open_questions": [
        "open_questions"
      ],
      "next_steps": [
        "next_steps"
      ],
      "relevant_tool_results": {
        "result": "relevant_tool_results",
        "error 1": "errors",
        "error 2": "port 5432 already in use → resolved: stopped the old container",
        "references": "references"
      },
      "compacted_at_turn": 12
    }
    "#);
}

#[test]
fn tool_results_of_one_name_are_all_kept_in_their_order() {
    let memory = memory(vec![
        item(Origin::Tool, 1, entry(Section::RelevantToolResults, "zeta")),
        item(
            Origin::Tool,
            2,
            entry(Section::RelevantToolResults, "alpha"),
        ),
    ]);
    let json = render(&memory);
    assert!(
        json.find(r#""result": "zeta""#) < json.find(r#""result (2)": "alpha""#),
        "{json}"
    );
}

proptest! {
    #[test]
    fn every_item_that_holds_is_in_the_object(memory in any_memory()) {
        let object = object(&memory);
        let mut texts = String::new();
        let mut values = vec![&object];
        while let Some(value) = values.pop() {
            match value {
                Value::String(text) => { texts.push_str(text); texts.push('\u{1}'); }
                Value::Array(list) => values.extend(list),
                Value::Object(map) => {
                    for key in map.keys() { texts.push_str(key); texts.push('\u{1}'); }
                    values.extend(map.values());
                }
                _ => {}
            }
        }
        for item in &memory.items {
            if !matches!(item.status, Status::SupersededBy(_)) || item.entry.section().is_ledger() {
                for text in item.entry.texts() {
                    prop_assert!(texts.contains(text), "{text:?} is missing in {texts:?}");
                }
            }
        }
    }
}
