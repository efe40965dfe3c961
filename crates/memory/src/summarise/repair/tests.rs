use std::sync::Arc;

use throughline_transcript::message::{Block, Message, Role};

use super::*;
use crate::document::{Cover, Origin, Section, Status};
use crate::render::markdown;
use crate::summarise::answer::AnswerForm;
use crate::summarise::outcome::Flaw;
use crate::summarise::parse::parse;
use crate::testing::{entry, item, memory};

fn messages() -> Vec<Message> {
    let say = |role, text: &str| Message::new(role, vec![Block::text(text)]);
    vec![
        say(Role::User, "Move the port to 8431. Never touch vendor/."),
        say(Role::Assistant, "The port is 8431 in conf/app.toml now."),
        say(Role::User, "Rename the flag --fast to --quick."),
        say(Role::Assistant, "Renamed in src/cli.rs."),
    ]
}

/// A memory of the first two messages.
fn prior() -> Memory {
    let mut prior = memory(vec![
        item(
            Origin::User,
            0,
            entry(Section::Task, "Move the port to 8431."),
        ),
        item(
            Origin::Assistant,
            1,
            entry(
                Section::CompletedWork,
                "The port is 8431 in conf/app.toml now.",
            ),
        ),
        item(
            Origin::User,
            0,
            entry(Section::Corrections, "Never touch vendor/."),
        ),
    ]);
    prior.cover.messages = 2;
    prior
}

/// What code makes of all four.
fn draft() -> Memory {
    let mut draft = prior();
    draft.version = 2;
    draft.cover = Cover {
        messages: 4,
        turns: 2,
        ..Cover::default()
    };
    draft.items[0].status = Status::Resolved;
    draft.items.push(item(
        Origin::User,
        2,
        entry(Section::Task, "Rename the flag --fast to --quick."),
    ));
    draft.items.push(item(
        Origin::Assistant,
        3,
        entry(Section::CompletedWork, "Renamed in src/cli.rs."),
    ));
    draft.items.sort_by_key(|item| item.entry.section());
    draft
}

/// What becomes of an answer: the memory as Markdown without its first line, and the findings.
fn repaired(answer: &str, wanted: AnswerForm, tokens_max: usize) -> (String, Vec<Finding>) {
    let messages = messages();
    let redaction = Redaction::Embedded;
    let source = Source::new(&messages, 0, &redaction);
    let count: Count = Arc::new(|text: &str| text.len().div_ceil(4));
    let (prior, draft) = (prior(), draft());
    let base = base_of(Some(&prior), &draft);
    let ground = Ground {
        base: &base,
        draft: &draft,
        source: &source,
        last: 3,
        redaction: &redaction,
        count: &count,
    };
    let room = Room {
        tokens_max,
        covered_tokens: 10_000,
    };
    let made = check(draw_up(parse(answer, wanted).unwrap(), &ground), &ground);
    let made = complete(made, Some(&prior), room, &ground);
    assert_eq!((made.memory.version, made.memory.cover.messages), (2, 4));
    let shown = markdown::render(&made.memory);
    let (_, items) = shown.split_once("\n\n").unwrap_or_default();
    (items.to_owned(), made.findings)
}

fn id(section: Section, text: &str) -> String {
    draft()
        .items
        .iter()
        .find(|item| item.entry == entry(section, text))
        .map(|item| item.id.clone())
        .unwrap()
}

const WORK: &str = "The port is 8431 in conf/app.toml now.";

#[test]
fn edits_change_only_named_items_and_the_rest_is_completed() {
    let answer = format!(
        r#"{{"edits":[
            {{"action":"add","section":"completed_work","text":"The flag --fast became --quick in src/cli.rs"}},
            {{"action":"drop","id":"{}","reason":"old"}},
            {{"action":"drop","id":"{}","reason":"old"}},
            {{"action":"replace","id":"nobody","text":"x"}}]}}"#,
        id(Section::CompletedWork, WORK),
        id(Section::Corrections, "Never touch vendor/."),
    );
    let (shown, findings) = repaired(&answer, AnswerForm::Edits, 1_000);
    insta::assert_snapshot!(shown, @"
    ## User Intent
    Answered:
    - Move the port to 8431.
    Open:
    - Rename the flag --fast to --quick.

    ## Completed Work
    - The flag --fast became --quick in src/cli.rs

    ## Errors & Corrections
    - Never touch vendor/.
    ");
    let refused: Vec<usize> = findings
        .iter()
        .filter_map(|finding| match finding {
            Finding::EditRefused { edit, .. } => Some(*edit),
            _ => None,
        })
        .collect();
    assert_eq!(refused, [2, 3], "{findings:?}");
}

#[test]
fn other_words_with_something_invented_in_them_are_taken_back() {
    let answer = format!(
        r#"{{"edits":[{{"action":"replace","id":"{}","text":"The port is 9999"}}]}}"#,
        id(Section::CompletedWork, WORK)
    );
    let (shown, findings) = repaired(&answer, AnswerForm::Edits, 1_000);
    assert!(shown.contains(WORK) && !shown.contains("9999"), "{shown}");
    assert!(matches!(
        &findings[0],
        Finding::TakenOut {
            why: Flaw::Unsupported(_),
            is_rest_kept: true,
            ..
        }
    ));
    let answer = answer.replace("The port is 9999", "The port is 8431 for everything now");
    let (shown, _) = repaired(&answer, AnswerForm::Edits, 1_000);
    assert!(
        shown.contains("- The port is 8431 for everything now\n"),
        "{shown}"
    );
}

#[test]
fn a_complete_memory_keeps_the_ids_of_repeated_items() {
    let messages = messages();
    let redaction = Redaction::Embedded;
    let source = Source::new(&messages, 0, &redaction);
    let count: Count = Arc::new(|text: &str| text.len().div_ceil(4));
    let draft = draft();
    let base = base_of(Some(&prior()), &draft);
    let ground = Ground {
        base: &base,
        draft: &draft,
        source: &source,
        last: 3,
        redaction: &redaction,
        count: &count,
    };
    let answer = markdown::render(&draft);
    let made = draw_up(parse(&answer, AnswerForm::Markdown).unwrap(), &ground);
    assert_eq!(made.memory.items, draft.items, "{answer}");
    assert!(made.findings.is_empty());
}

#[test]
fn with_little_room_the_rules_and_the_request_stay() {
    let work: String = (0..40)
        .map(|n| format!("- The flag was renamed with step {} of the port\n", n % 90))
        .collect();
    let answer = format!("## Completed Work\n{work}");
    let (shown, findings) = repaired(&answer, AnswerForm::Markdown, 90);
    assert!(shown.contains("Never touch vendor/."), "{shown}");
    assert!(
        shown.contains("Rename the flag --fast to --quick."),
        "{shown}"
    );
    assert!(
        findings
            .iter()
            .any(|finding| matches!(finding, Finding::LeftOut { .. }))
    );
}

#[test]
fn a_cap_below_the_ledger_is_reported() {
    let (_, findings) = repaired(
        "## Completed Work\n- The flag was renamed",
        AnswerForm::Markdown,
        20,
    );
    assert!(
        findings
            .iter()
            .any(|finding| matches!(finding, Finding::LedgerCut { items: 1 })),
        "{findings:?}"
    );
}

#[test]
fn later_parts_continue_from_the_earlier_result() {
    let mut made = draft();
    let work = id(Section::CompletedWork, WORK);
    for item in &mut made.items {
        if item.id == work {
            item.entry = entry(Section::CompletedWork, "Other words");
        }
    }
    made.items.retain(|item| !item.entry.section().is_ledger());
    let base = base_after(made, &draft());
    assert!(
        base.items
            .iter()
            .any(|item| item.entry.text() == "Other words")
    );
    assert_eq!(base.section(Section::Corrections).count(), 1);
    assert_eq!(base.version, 1);
}

/// What the user has withdrawn is superseded in the ledger and is not stated as valid anywhere else.
#[test]
fn superseded_statements_are_not_repeated_elsewhere() {
    let mut draft = draft();
    let mut old = item(
        Origin::User,
        0,
        entry(Section::Corrections, "The port is 8080."),
    );
    old.status = Status::SupersededBy(id(Section::Corrections, "Never touch vendor/."));
    draft.items.push(old);
    draft.items.sort_by_key(|item| item.entry.section());
    let mut made = draft.clone();
    made.items.push(item(
        Origin::Assistant,
        1,
        entry(Section::References, "the port is 8080"),
    ));
    let base = base_after(made, &draft);
    let shown = markdown::render(&base);
    assert!(shown.contains("(superseded) The port is 8080."), "{shown}");
    assert!(!shown.contains("the port is 8080"), "{shown}");
}
