//! Pictures and documents are gone after a swap: a memory says what they were.

use serde_json::{Value, json};
use throughline_memory::document::Section;

use super::conversation::{holding, memory_of, read_as};

#[track_caller]
fn check(format: &str, body: &Value, expected: &[&str]) {
    let messages = read_as(body, format);
    let memory = memory_of(&messages, 1500).memory;
    let found: Vec<_> = holding(&memory, Section::References)
        .into_iter()
        .filter(|text| text.starts_with("Attached"))
        .collect();
    assert_eq!(found, expected, "{body}");
}

#[test]
fn attachments_are_named_on_every_wire() {
    let after = |list: &mut Vec<Value>| {
        list.push(json!({"role": "assistant", "content": "I see it."}));
        list.push(json!({"role": "user", "content": "Continue."}));
    };
    let anthropic = |content: Value| {
        let mut list = vec![json!({"role": "user", "content": content})];
        after(&mut list);
        json!({"model": "any", "max_tokens": 9, "messages": list})
    };
    let data = json!({"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"});
    check(
        "anthropic",
        &anthropic(json!([
            {"type": "image", "source": data},
            {"type": "text", "text": "The crane leans to port."},
        ])),
        &["Attached to message 1: image (image/jpeg), with the words: The crane leans to port."],
    );
    check(
        "anthropic",
        &anthropic(json!([
            {"type": "text", "text": "Keep to the berth plan."},
            {"type": "document", "title": "berths-2027.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
            {"type": "document", "source": {"type": "file", "file_id": "file_berths01"}},
            {"type": "image", "source": {"type": "url", "url": "https://quay.example/crane.png"}},
        ])),
        &[
            "Attached to message 1: PDF berths-2027.pdf, with the words: Keep to the berth plan.",
            "Attached to message 1: document file_berths01, with the words: Keep to the berth plan.",
            "Attached to message 1: image https://quay.example/crane.png, with the words: Keep to the berth plan.",
        ],
    );
    check(
        "anthropic",
        &anthropic(json!([{"type": "image", "source": data}, {"type": "image", "source": data}])),
        &["Attached to message 1: image (image/jpeg), 2 times"],
    );
    let chat = |content: Value| {
        let mut list = vec![json!({"role": "user", "content": content})];
        after(&mut list);
        json!({"model": "any", "messages": list})
    };
    check(
        "openai-chat",
        &chat(json!([
            {"type": "text", "text": "The crane leans to port."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            {"type": "file", "file": {"filename": "berths.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
            {"type": "file", "file": {"file_id": "file-berths02"}},
        ])),
        &[
            "Attached to message 1: image (image/png), with the words: The crane leans to port.",
            "Attached to message 1: PDF berths.pdf, with the words: The crane leans to port.",
            "Attached to message 1: document file-berths02, with the words: The crane leans to port.",
        ],
    );
    check(
        "openai-responses",
        &json!({"model": "any", "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "The crane leans to port."},
                {"type": "input_image", "image_url": "https://quay.example/crane.png"},
                {"type": "input_image", "file_id": "file-crane03"},
                {"type": "input_file", "filename": "berths.pdf", "file_data": "JVBERi0="},
            ]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I see it."}]},
        ]}),
        &[
            "Attached to message 1: image https://quay.example/crane.png, with the words: The crane leans to port.",
            "Attached to message 1: image file-crane03, with the words: The crane leans to port.",
            "Attached to message 1: PDF berths.pdf, with the words: The crane leans to port.",
        ],
    );
}

#[test]
fn what_tools_return_was_not_attached() {
    check(
        "anthropic",
        &json!({"model": "any", "max_tokens": 9, "messages": [
            {"role": "user", "content": "Look at the crane."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "crane.png"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]}]},
        ]}),
        &[],
    );
}
