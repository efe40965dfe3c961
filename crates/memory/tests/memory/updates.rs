//! Memories that are updated with only the new messages.

use throughline_memory::compact::{Options, compact};
use throughline_memory::document::{Memory, Section, Status};
use throughline_transcript::message::Message;

use super::conversation::{assistant, count, find, holding, memory_of, user};

/// One thing to remember, and some talk, per round.
const ROUNDS: [(&str, &str); 10] = [
    (
        "I live in Leipzig with two cats.",
        "How do I keep basil alive on the sill?",
    ),
    (
        "Please never suggest bleach.",
        "What removes limescale from a kettle?",
    ),
    (
        "The budget for the kitchen is 800 euros.",
        "Which lamp suits a low ceiling?",
    ),
    (
        "My daughter is allergic to peanuts.",
        "What can I bake for a school party?",
    ),
    (
        "From now on answer in bullet points.",
        "How long does paint dry in winter?",
    ),
    (
        "No, the budget for the kitchen is 900 euros, not 800.",
        "Is laminate fine near a sink?",
    ),
    (
        "I prefer oak to pine.",
        "How are shelves fixed to a plaster wall?",
    ),
    (
        "Our landlord forbids drilling into tiles.",
        "Which hooks hold without a screw?",
    ),
    (
        "My exam is on 14 March.",
        "How does one revise in a short time?",
    ),
    (
        "I work at the city archive.",
        "What is a good lunch that needs no stove?",
    ),
];

fn round(conversation: &mut Vec<Message>, number: usize) {
    let (rule, question) = ROUNDS[number];
    conversation.push(user(&format!("{rule} {question}")));
    conversation.push(assistant(&format!(
        "Here is what most people do in case {number}. Start small, compare, and change one thing at a time."
    )));
    conversation.push(user("Thanks, tell me more about the second part."));
    conversation.push(assistant(
        "The second part takes patience. Shall I list the steps?",
    ));
}

fn update(conversation: &[Message], prior: Option<&Memory>) -> Memory {
    let options = Options {
        prior,
        ..Options::new(1500, &count)
    };
    let compacted = compact(conversation, &options).unwrap();
    assert!(compacted.tokens <= 1500);
    if prior.is_some() {
        assert_eq!(compacted.prior_fits, Some(true));
    }
    compacted.memory
}

#[test]
fn ten_updates_keep_the_ledger_and_touch_only_changed_items() {
    let mut conversation = Vec::new();
    let mut memory: Option<Memory> = None;
    for number in 0..ROUNDS.len() {
        round(&mut conversation, number);
        let next = update(&conversation, memory.as_ref());
        for (rule, _) in &ROUNDS[..=number] {
            assert!(
                find(&next, Section::Corrections, rule).is_some(),
                "round {number}: {rule}"
            );
        }
        if let Some(prior) = &memory {
            assert_eq!(next.version, prior.version + 1);
            for item in &next.items {
                if item.touched == next.version {
                    continue;
                }
                let before = prior.items.iter().find(|before| before.id == item.id);
                assert_eq!(before, Some(item), "round {number}");
            }
            for item in prior.section(Section::Corrections) {
                assert!(next.items.iter().any(|kept| kept.id == item.id));
            }
        }
        memory = Some(next);
    }
    let memory = memory.unwrap();
    let old = find(&memory, Section::Corrections, "is 800 euros").unwrap();
    let new = find(&memory, Section::Corrections, "900 euros").unwrap();
    assert_eq!(old.status, Status::SupersededBy(new.id.clone()));
    assert_eq!(new.status, Status::Active);
    // Everything was answered, and of the model's questions only the last still waits.
    assert_eq!(holding(&memory, Section::Task), Vec::<&str>::new());
    assert!(holding(&memory, Section::OpenQuestions).len() <= 1);
}

#[test]
fn an_answered_question_leaves() {
    let mut conversation = vec![
        user("Plan a weekend in Ghent for us."),
        assistant("Gladly. Should I plan by train or by car?"),
    ];
    let first = update(&conversation, None);
    assert_eq!(
        holding(&first, Section::OpenQuestions).len(),
        1,
        "{first:?}"
    );
    conversation.push(user("By train. Leave out museums."));
    let second = update(&conversation, Some(&first));
    assert_eq!(holding(&second, Section::OpenQuestions), Vec::<&str>::new());
    assert_eq!(
        holding(&second, Section::Task),
        [
            "Plan a weekend in Ghent for us.",
            "By train. Leave out museums."
        ],
        "a question back is no answer"
    );
}

#[test]
fn a_memory_of_other_messages_is_merged_and_reported() {
    let first = memory_of(&[user("Never use tabs."), assistant("Fine.")], 500).memory;
    let other = [user("Sort the list."), assistant("Sorted.")];
    let options = Options {
        prior: Some(&first),
        ..Options::new(500, &count)
    };
    let compacted = compact(&other, &options).unwrap();
    assert_eq!(compacted.prior_fits, Some(false));
    assert!(find(&compacted.memory, Section::Corrections, "Never use tabs").is_some());
}
