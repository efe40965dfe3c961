//! Which requests are open, what the others were answered with, and how much of what was said is kept.

use serde_json::{Value, json};
use throughline_memory::compact::{Form, Options, compact};
use throughline_memory::document::{Entry, Memory, Section};
use throughline_transcript::message::Message;

use super::conversation::{
    assistant, count, find, holding, memory_of, messages, unsupported, user,
};

fn answer<'m>(memory: &'m Memory, request: &str) -> Option<&'m str> {
    match &find(memory, Section::Task, request)?.entry {
        Entry::Task { answer, .. } => answer.as_deref(),
        _ => None,
    }
}

fn object(conversation: &[Message], tokens: usize) -> Value {
    let options = Options {
        form: Form::Object,
        ..Options::new(tokens, &count)
    };
    serde_json::from_str(&compact(conversation, &options).unwrap().text).unwrap()
}

fn call(id: &str, path: &str) -> [Value; 2] {
    [
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "Edit", "input": {"file_path": path, "old_string": "a", "new_string": "b"}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "updated", "is_error": false}]}),
    ]
}

#[test]
fn every_answer_of_a_chat_is_kept() {
    let mut conversation = Vec::new();
    for gate in 0..60 {
        conversation.push(user(&format!("How deep is the water at gate {gate}?")));
        conversation.push(assistant(&format!(
            "At gate {gate} it is {}.{} metres; at low tide keep to the pier side.",
            gate + 2,
            gate % 10
        )));
    }
    let memory = memory_of(&conversation, 8000).memory;
    for gate in 0..59 {
        let request = format!("at gate {gate}?");
        let expected = format!("it is {}.{} metres", gate + 2, gate % 10);
        assert!(
            answer(&memory, &request).is_some_and(|answer| answer.contains(&expected)),
            "{request}"
        );
    }
    assert!(find(&memory, Section::CurrentState, "At gate 59 it is 61.9").is_some());
    assert_eq!(unsupported(&memory, &conversation), []);
}

#[test]
fn a_request_in_work_is_open_even_if_it_is_a_rule() {
    let mut turns = vec![json!({"role": "user", "content": "Add a PDF export to the berth list."})];
    for step in 0..8 {
        turns.extend(call(
            &format!("a{step}"),
            &format!("/srv/quay/pdf_{step}.py"),
        ));
    }
    turns.push(
        json!({"role": "assistant", "content": "The PDF export is in, committed as 77bb66c."}),
    );
    turns.push(json!({"role": "user", "content": "Now redraw the lantern icon without changing its colours. Remove only its rim."}));
    turns.push(
        json!({"role": "assistant", "content": "I will redraw the lantern without its rim."}),
    );
    turns.extend(call("b1", "/srv/quay/lantern.svg"));
    let conversation = messages(Value::Array(turns));
    let memory = memory_of(&conversation, 1500).memory;
    assert_eq!(
        holding(&memory, Section::Task),
        ["Now redraw the lantern icon without changing its colours. Remove only its rim."]
    );
    let object = object(&conversation, 1500);
    let task = object["task"].as_str().unwrap();
    assert!(
        task.starts_with("Now redraw the lantern icon") && !task.contains("(done)"),
        "{task}"
    );
    let state = object["current_state"].as_str().unwrap();
    assert!(
        state.contains("Answered: Add a PDF export to the berth list. → The PDF export is in"),
        "{state}"
    );
}

/// The requests that are open after these messages, each of which begins with who says it.
#[track_caller]
fn check_open(said: &[&str], expected: &[&str]) {
    let conversation: Vec<Message> = said
        .iter()
        .map(|said| match said.split_once(": ") {
            Some(("user", text)) => user(text),
            Some((_, text)) => assistant(text),
            None => panic!("{said}"),
        })
        .collect();
    let memory = memory_of(&conversation, 1500).memory;
    assert_eq!(holding(&memory, Section::Task), expected, "{said:#?}");
}

#[test]
fn a_request_is_open_until_it_is_answered() {
    let stopped = "user: [Request interrupted by user]";
    check_open(
        &[
            "user: Add the berth list.",
            "model: Added in berths.ts.",
            "user: Which pin does the lamp use?",
            stopped,
            "user: Draw the mooring plan with twelve piles.",
            stopped,
            "user: And the crane.",
        ],
        &[
            "Which pin does the lamp use?",
            "Draw the mooring plan with twelve piles.",
            "And the crane.",
        ],
    );
    // Several in a row: the answer says which of them it answers.
    check_open(
        &[
            "user: Paint the buoys.",
            "user: Count the fenders.",
            "model: There are nine fenders.",
        ],
        &["Paint the buoys."],
    );
    check_open(
        &[
            "user: Paint the buoys.",
            "user: Count the fenders.",
            "model: Both are done: the buoys are red, the fenders nine.",
        ],
        &[],
    );
    // What was interrupted and then continued is answered with it.
    check_open(
        &[
            "user: Paint the buoys.",
            stopped,
            "user: No, not blue. Use red.",
            "model: The buoys are red now.",
        ],
        &[],
    );
    check_open(
        &["user: Paint the buoys.", "model: Gladly. Red or green?"],
        &["Paint the buoys."],
    );
    check_open(
        &[
            "user: Paint the buoys.",
            "model: Gladly. Red or green?",
            "user: Red.",
            "model: The buoys are red now.",
        ],
        &[],
    );
    check_open(
        &[
            "user: Open the tide feed.",
            "model: I could not reach the tide server.",
        ],
        &["Open the tide feed."],
    );
    check_open(
        &[
            "user: Open the tide feed.",
            "model: API Error: 529 Overloaded",
        ],
        &["Open the tide feed."],
    );
}

#[test]
fn a_call_alone_answers_nothing() {
    let mut turns = vec![json!({"role": "user", "content": "Mend the gangway."})];
    turns.extend(call("c1", "/srv/quay/gangway.rs"));
    let memory = memory_of(&messages(Value::Array(turns)), 1000).memory;
    assert_eq!(holding(&memory, Section::Task), ["Mend the gangway."]);
}

#[test]
fn an_update_notes_what_was_answered() {
    let mut conversation = vec![user("Mend the gangway."), user("Count the fenders.")];
    let first = memory_of(&conversation, 800).memory;
    assert_eq!(holding(&first, Section::Task).len(), 2);
    conversation.push(assistant("There are nine fenders on the quay."));
    let options = Options {
        prior: Some(&first),
        ..Options::new(800, &count)
    };
    let second = compact(&conversation, &options).unwrap().memory;
    assert_eq!(holding(&second, Section::Task), ["Mend the gangway."]);
    assert_eq!(
        answer(&second, "Count the fenders."),
        Some("There are nine fenders on the quay.")
    );
}

#[test]
fn the_last_answer_is_kept_entry_by_entry() {
    let findings: Vec<String> = (1..=6)
        .map(|number| format!("{number}. Medium: pier {number} reports its depth too late, see src/pier_{number}.rs:{}.", number * 31))
        .collect();
    let said = format!(
        "The review is done.\n\n## Findings\n\n{}\n\nShall I mend 1 first? The branch is review/piers.",
        findings.join("\n")
    );
    let conversation = [user("Review the changes."), assistant(&said)];
    let memory = memory_of(&conversation, 4000).memory;
    for finding in &findings {
        let text = &finding[3..];
        assert!(
            find(&memory, Section::CurrentState, text).is_some(),
            "{text}"
        );
    }
    assert!(
        find(
            &memory,
            Section::CurrentState,
            "The branch is review/piers."
        )
        .is_some()
    );
}

#[test]
fn a_long_request_keeps_its_end_in_any_script() {
    let points: String = (0..14)
        .map(|pier| format!("Причал {pier}: посмотри модуль p{pier} и скажи, учтены ли ошибки. "))
        .collect();
    let request =
        format!("Проверь изменения. {points}В конце перечисли находки, и ничего не отправляй.");
    let conversation = [
        user(&request),
        assistant("Хорошо, начинаю с первого причала."),
    ];
    let whole = memory_of(&conversation, 8000).memory;
    assert!(find(&whole, Section::Task, &request).is_some());
    let small = memory_of(&conversation, 700).memory;
    assert!(find(&small, Section::Task, "и ничего не отправляй.").is_some());
}

#[test]
fn a_cut_rule_keeps_its_point() {
    let talk = "so I was thinking about the mooring thing again and we talked with the people in the office this morning \
                and they said that it would be fine in principle but the quay is a bit special there and one has to file \
                a form for every change and that takes about a week so please take that into account";
    for (rule, point) in [
        (
            format!("{talk} and no correction the night berth is 517 not 342"),
            "the night berth is 517 not 342",
        ),
        (
            format!(
                "Please remember, and {talk}, that the table called tide_history must never be dropped by you"
            ),
            "tide_history must never be dropped by you",
        ),
    ] {
        let conversation = [
            user("Hello there."),
            assistant("Hello."),
            user(&rule),
            assistant("Noted."),
            user("Go on."),
        ];
        for tokens in [350, 500, 2000] {
            let compacted = memory_of(&conversation, tokens);
            let said = find(&compacted.memory, Section::Corrections, point);
            assert!(said.is_some(), "{tokens}: {}", compacted.text);
        }
    }
}

#[test]
fn a_reference_stays_with_what_it_refers_to() {
    #[track_caller]
    fn check(conversation: &[Message], expected: &[&str]) {
        let compacted = memory_of(conversation, 1500);
        let said: Vec<String> = compacted
            .memory
            .items
            .iter()
            .map(|item| item.entry.text().to_owned())
            .collect();
        assert!(
            said.iter()
                .any(|text| expected.iter().all(|part| text.contains(part))),
            "{}",
            compacted.text
        );
        assert_eq!(unsupported(&compacted.memory, conversation), []);
    }
    let start = || vec![user("Plan the harbour day."), assistant("Gladly.")];
    let with = |more: &[Message]| -> Vec<Message> {
        start().into_iter().chain(more.iter().cloned()).collect()
    };
    check(
        &with(&[
            user(
                "What is there to eat on the pier? And Runa has become allergic to shellfish, that came out in May. Please keep that in mind for everything.",
            ),
            assistant("I will."),
        ]),
        &["allergic to shellfish", "keep that in mind"],
    );
    check(
        &with(&[
            user("Runa verträgt keine Muscheln. Merk dir das bitte für alles."),
            assistant("Ja."),
        ]),
        &["Muscheln", "Merk dir das"],
    );
    check(
        &with(&[
            user("Runa is allergic to shellfish."),
            assistant("Noted."),
            user("Please keep that in mind for everything."),
            assistant("Yes."),
        ]),
        &["allergic to shellfish", "keep that in mind"],
    );
    check(
        &with(&[
            user("How do we moor?"),
            assistant(
                "There are two ways:\n1. With ropes from the bow.\n2. With a spring line.\nWhich one?",
            ),
            user("Yes, do the second one."),
            assistant("The spring line is set."),
        ]),
        &["do the second one", "With a spring line"],
    );
    check(
        &with(&[
            user("The lamp flickers."),
            assistant("The fuse is old. Shall I replace the fuse?"),
            user("Yes, go ahead."),
            assistant("The fuse is new."),
        ]),
        &["go ahead", "Shall I replace the fuse?"],
    );
}

/// A chat that asks nothing is not forgotten where there is little room.
#[test]
fn a_small_memory_of_a_chat_is_never_empty() {
    let answer = "The table of dates is read by hand before lunch. ".repeat(60);
    let conversation = [
        user("Question 1."),
        assistant(&answer),
        user("Question 2."),
        assistant(&answer),
    ];
    for budget in [200, 300, 600, 1_000] {
        let memory = memory_of(&conversation, budget).memory;
        assert!(
            find(&memory, Section::Task, "Question 2.").is_some(),
            "{budget}"
        );
    }
}
