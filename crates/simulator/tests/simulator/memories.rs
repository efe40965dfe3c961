//! Requests for a memory: recognised, and answered in the shape that is asked for.

use serde_json::{Value, json};
use throughline_simulator::Simulator;

use crate::support::*;

fn conversation() -> Vec<Value> {
    vec![
        user(
            "Port the importer to Go. Please never touch vendor/. Remember: the deploy region is eu-north-3.",
        ),
        assistant("I'll start with src/importer.go."),
        user(
            "FACT retry_limit = 4\nRemember: the deploy region is us-west-9. Now write the tests.",
        ),
        assistant("The tests are in src/importer_test.go."),
    ]
}

fn summary(instruction: &str, extra: &[(&str, Value)]) -> String {
    let mut messages = conversation();
    messages.push(user(instruction));
    let mut body = ask("claude-opus-5", json!(messages));
    body["thinking"] = json!({"type": "disabled"});
    for (field, value) in extra {
        body[*field] = value.clone();
    }
    let mut simulator: Simulator = simulator();
    let answer = answered(&mut simulator, &body);
    assert!(simulator.ledger().next().unwrap().is_summary);
    assert_eq!(answer["stop_reason"], "end_turn", "{answer}");
    text_of(&answer)
}

#[track_caller]
fn knows_the_facts(text: &str) {
    assert!(text.contains("us-west-9"), "{text}");
    assert!(text.contains("retry_limit = 4"), "{text}");
    assert!(text.contains("importer"), "{text}");
}

#[test]
fn headings_of_the_instruction_are_filled() {
    let text = summary(
        "Write the memory of the conversation above under these headings:\n## User Intent\n## Completed Work\n\
         ## Errors & Corrections\n## Active Work\n## Pending Tasks\n## Key References",
        &[],
    );
    knows_the_facts(&text);
    let headings: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    assert_eq!(
        headings,
        [
            "## User Intent",
            "## Completed Work",
            "## Errors & Corrections",
            "## Active Work",
            "## Pending Tasks",
            "## Key References"
        ]
    );
    assert!(text.contains("never touch vendor/"));
    // What was said later counts.
    let references = text.split("## Key References").nth(1).unwrap();
    assert!(!references.contains("eu-north-3"), "{references}");
}

#[test]
fn plain_requests_get_plain_text() {
    knows_the_facts(&summary("Please summarize our conversation so far.", &[]));
}

#[test]
fn objects_are_given_where_json_is_asked_for() {
    let text = summary(
        "Return the memory as a JSON object with task, current_state, key_decisions.",
        &[],
    );
    knows_the_facts(&text);
    let object: Value = serde_json::from_str(&text).unwrap();
    assert!(
        object["task"]
            .as_str()
            .unwrap()
            .contains("Port the importer")
    );
    assert!(object["key_decisions"].is_array());
}

#[test]
fn schemas_are_kept_to() {
    let closed = |properties: Value| {
        let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
        json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
    };
    let nullable = json!({"type": ["string", "null"]});
    let edits = closed(json!({"edits": {"type": "array", "items": closed(json!({
        "action": {"type": "string", "enum": ["replace", "add", "drop"]}, "id": nullable,
        "section": {"anyOf": [{"type": "string", "enum": ["task", "references", "completed_work", "current_state"]}, {"type": "null"}]},
        "text": nullable, "message": {"type": ["integer", "null"]},
    }))}}));
    let object = closed(json!({
        "task": {"type": "string"}, "current_state": {"type": "string"},
        "next_steps": {"type": "array", "items": {"type": "string"}},
        "relevant_tool_results": {"type": "array", "items": closed(json!({"key": {"type": "string"}, "summary": {"type": "string"}}))},
        "compacted_at_turn": {"type": "integer"},
    }));
    let other =
        closed(json!({"summary": {"type": "string"}, "confidence": {"enum": ["low", "high"]}}));
    for schema in [edits, object, other] {
        let format = json!({"format": {"type": "json_schema", "schema": schema}});
        let text = summary("Say what has to change.", &[("output_config", format)]);
        knows_the_facts(&text);
        let value: Value = serde_json::from_str(&text).unwrap();
        for name in schema["required"].as_array().unwrap() {
            assert!(!value[name.as_str().unwrap()].is_null(), "{text}");
        }
        if let Some(edit) = value["edits"].get(0) {
            assert_eq!(edit["action"], "add");
            assert_eq!(edit["id"], Value::Null);
        }
        if let Some(results) = value["relevant_tool_results"].as_array() {
            assert!(
                results
                    .iter()
                    .all(|result| result["key"].is_string() && result["summary"].is_string())
            );
        }
    }
}

#[test]
fn a_call_of_its_own_reads_the_transcript_in_its_message() {
    let transcript = "Bring the memory up to date.\n<transcript>\n[1] user\n| Port the importer to Go. Remember: the deploy region is us-west-9.\n\
                      | FACT retry_limit = 4\n[2] assistant\n| I'll start with src/importer.go.\n</transcript>";
    let mut body = ask("claude-haiku-5-5", json!([user(transcript)]));
    body["system"] =
        json!("You keep the memory of a conversation between a user and an assistant.");
    let mut simulator = simulator();
    let answer = answered(&mut simulator, &body);
    knows_the_facts(&text_of(&answer));
    assert!(simulator.ledger().next().unwrap().is_summary);
}

#[test]
fn openai_is_asked_in_its_own_way() {
    let schema = json!({"type": "object", "required": ["task", "next_steps"], "properties": {
        "task": {"type": "string"}, "next_steps": {"type": "array", "items": {"type": "string"}}}});
    let mut messages = conversation();
    messages.push(user("Say where things stand."));
    let body = json!({"model": "gpt-4.1", "messages": messages,
        "response_format": {"type": "json_schema", "json_schema": {"name": "m", "schema": schema}}});
    let exchange = simulator().request(
        std::time::Duration::ZERO,
        openai_request("/v1/chat/completions", &body),
    );
    let answer = json_of(&exchange);
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let memory: Value = serde_json::from_str(content).unwrap();
    assert!(
        memory["task"]
            .as_str()
            .unwrap()
            .contains("Port the importer"),
        "{memory}"
    );
}

#[test]
fn what_a_memory_keeps_can_be_asked_for() {
    let text = summary("Write the session memory of everything above.", &[]);
    let memory = format!("<session_memory version=\"1\">\n{text}\n</session_memory>\n");
    let ask_with = |first: String, question: &str| {
        let body = ask(
            "claude-opus-5",
            json!([user(first), assistant("ok"), user(question)]),
        );
        text_of(&answered(&mut simulator(), &body))
    };
    assert_eq!(
        ask_with(memory.clone(), "What is the deploy region?"),
        "The deploy region is us-west-9."
    );
    assert_eq!(
        ask_with(memory.clone(), "What is the retry_limit?"),
        "The retry_limit is 4."
    );
    assert!(
        ask_with("hello".to_owned(), "What is the deploy region?").starts_with("I do not know")
    );
    assert!(ask_with(memory, "What is the moon phase?").starts_with("I do not know"));
}
