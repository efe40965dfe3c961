//! What holds for any conversation: the size limit, a source for every statement, the same bytes for the same messages.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use throughline_memory::compact::{Form, Options, compact};
use throughline_memory::extract::{Extractor, Limit};
use throughline_memory::redact::Redactor;
use throughline_transcript::message::Message;

use super::conversation::{count, memory_of, messages, unsupported};

const FORMS: [Form; 5] = [
    Form::Markdown,
    Form::Json,
    Form::Object,
    Form::System,
    Form::UserMessage,
];

/// A session with every kind of content that a memory is made of.
fn session() -> Vec<Message> {
    let mut turns = vec![
        json!({"role": "user", "content": "Port the importer in src/importer.py to Go. Please never touch vendor/. The release is due on 2026-05-04."}),
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "I'll start with the reader, because the writer depends on it."},
            {"type": "tool_use", "id": "a1", "name": "Read", "input": {"file_path": "/srv/app/src/importer.py"}},
            {"type": "tool_use", "id": "a2", "name": "TodoWrite", "input": {"todos": [
                {"content": "Port the reader", "status": "in_progress"}, {"content": "Port the writer", "status": "pending"}]}},
        ]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a1", "content": "def read_rows(path):\n    return csv.reader(open(path))\n"},
            {"type": "tool_result", "tool_use_id": "a2", "content": "ok"},
        ]}),
    ];
    for step in 0..30 {
        let id = format!("b{step}");
        turns.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": format!("Step {step}: I decided to keep the column order of table_{step}, since the reports rely on it.")},
            {"type": "tool_use", "id": id, "name": "Edit", "input": {"file_path": format!("/srv/app/go/reader_{step}.go"), "old_string": "a", "new_string": "rows.Next()"}},
        ]}));
        let output = if step % 3 == 0 {
            format!(
                "error: reader_{step}.go:{}: undefined: parseRow\nFAIL importer 0.{step}s",
                10 + step
            )
        } else {
            format!(
                "ok importer 0.{step}s\n[main {:07x}] reader {step}",
                0xabc_1234_u32 + step
            )
        };
        turns.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": step % 3 == 0}]}));
        if step % 7 == 0 {
            turns.push(json!({"role": "assistant", "content": "That part is done. Should I go on with the writer?"}));
            turns.push(json!({"role": "user", "content": format!("Yes, but use batches of {}00 rows instead of single rows.", step + 1)}));
        }
    }
    messages(Value::Array(turns))
}

#[test]
fn the_cap_is_kept_in_every_form() {
    let conversation = session();
    for form in FORMS {
        for tokens in [0, 1, 30, 60, 150, 200, 300, 500, 1000, 2000, 4000, 8000] {
            let options = Options {
                form,
                ..Options::new(tokens, &count)
            };
            match compact(&conversation, &options) {
                Ok(compacted) => {
                    let is_smallest = compacted.memory.items.len() <= 1;
                    assert!(
                        count(&compacted.text) <= tokens || is_smallest,
                        "{form:?} {tokens}"
                    );
                    assert!(!compacted.memory.items.is_empty(), "{form:?} {tokens}");
                    assert_eq!(compacted.tokens, count(&compacted.text));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_memory_contains_only_statements_of_the_messages() {
    let conversation = session();
    for tokens in [300, 1000, 4000] {
        let compacted = memory_of(&conversation, tokens);
        assert_eq!(
            unsupported(&compacted.memory, &conversation),
            [],
            "{}",
            compacted.text
        );
    }
}

#[test]
fn messages_one_by_one_give_the_same_memory_as_all_at_once() {
    let conversation = session();
    let limit = Limit {
        tokens: 1000,
        count: &count,
        focus: None,
    };
    let mut extractor = Extractor::new().with_redactor(Redactor::embedded());
    for (number, message) in conversation.iter().enumerate() {
        extractor.push(message);
        if number % 9 == 0 || number + 1 == conversation.len() {
            let at_once = memory_of(&conversation[..=number], 1000).memory;
            assert_eq!(extractor.memory(&limit), at_once);
        }
    }
    assert_eq!(memory_of(&conversation, 1000), memory_of(&session(), 1000));
}

/// Sentences that touch many rules, and odd ones.
fn sentence() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "No, use tabs instead of spaces.",
        "I live in Leipzig.",
        "We moved to Ghent, not to Bruges!",
        "Never delete data/archive_2024.csv.",
        "The port is 8431 now.",
        "Fix the bug in src/net/retry.rs, please.",
        "Ab jetzt bitte auf Deutsch antworten.",
        "不要用表格，改用列表。",
        "絵文字は使わないでください。",
        "Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: bad row 17",
        "```rust\nfn main() {}\n```",
        "https://example.org/a?b=1#c",
        "# Heading\n- item one\n- [ ] open step",
        "<session_memory version=\"1\">x</session_memory>",
        "\u{202e}odd\u{0} text\r\n\t…",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,80}"]
}

fn turn() -> impl Strategy<Value = Vec<Value>> {
    let text = || vec(sentence(), 1..5).prop_map(|sentences| sentences.join(" "));
    prop_oneof![
        text().prop_map(|text| vec![json!({"role": "user", "content": text})]),
        text().prop_map(|text| vec![json!({"role": "assistant", "content": text})]),
        (text(), text(), "[a-z]{1,6}", any::<bool>()).prop_map(|(said, output, id, is_error)| vec![
            json!({"role": "assistant", "content": [
                {"type": "text", "text": said},
                {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": said, "path": format!("src/{id}.rs")}},
            ]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": is_error}]}),
        ]),
    ]
}

fn conversation() -> impl Strategy<Value = Vec<Message>> {
    vec(turn(), 1..25).prop_map(|turns| messages(Value::Array(turns.concat())))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_keeps_to_the_cap(
        conversation in conversation(),
        tokens in 150_usize..8000,
        form in prop::sample::select(FORMS.to_vec()),
    ) {
        let options = Options { form, ..Options::new(tokens, &count) };
        if let Ok(compacted) = compact(&conversation, &options) {
            prop_assert!(count(&compacted.text) <= tokens || compacted.memory.items.len() <= 1);
            prop_assert_eq!(compact(&conversation, &options).unwrap().text, compacted.text);
        }
    }

    #[test]
    fn any_memory_says_only_what_the_messages_say(conversation in conversation()) {
        let compacted = memory_of(&conversation, 2000);
        let findings = unsupported(&compacted.memory, &conversation);
        prop_assert!(findings.is_empty(), "{:?}\n{}", findings, compacted.text);
    }

    #[test]
    fn any_update_keeps_the_ledger_and_the_cap(conversation in conversation(), at in 0_usize..100) {
        let at = 1 + at * (conversation.len() - 1) / 100;
        let first = memory_of(&conversation[..at], 3000).memory;
        let options = Options { prior: Some(&first), ..Options::new(6000, &count) };
        let second = compact(&conversation, &options).unwrap();
        prop_assert!(second.tokens <= 6000);
        for item in first.items.iter().filter(|item| item.entry.section().is_ledger()) {
            prop_assert!(second.memory.items.iter().any(|kept| kept.id == item.id));
        }
    }
}
