use proptest::prelude::*;
use throughline_transcript::digest::Digest;

use super::*;
use crate::document::{Cover, Provenance, RequestKind};
use crate::testing::{any_memory, entry, item, memory};

fn user(message: usize, section: Section, text: &str) -> Item {
    item(Origin::User, message, entry(section, text))
}

fn resolved(item: Item) -> Item {
    Item {
        status: Status::Resolved,
        ..item
    }
}

fn superseded(item: Item, by: &Item) -> Item {
    Item {
        status: Status::SupersededBy(by.id.clone()),
        ..item
    }
}

fn fresh(items: Vec<Item>) -> Memory {
    Memory {
        cover: Cover {
            messages: 50,
            turns: 15,
            digest: Digest::from_bytes([0xd2; 32]),
            until_ms: None,
        },
        ..memory(items)
    }
}

/// The items of the merged memory, one a line: what they say, their status, and the version that touched them.
fn check(prior: Vec<Item>, new: Vec<Item>, expected: &[&str]) {
    let prior = memory(prior);
    let merged = merge(&prior, fresh(new.clone()));
    let text_of = |id: &str| {
        let named = merged.items.iter().find(|item| item.id == id);
        named.map_or("?".to_owned(), |item| item.entry.text().to_owned())
    };
    let seen: Vec<String> = merged
        .items
        .iter()
        .map(|item| {
            let status = match &item.status {
                Status::Active => String::new(),
                Status::Resolved => " resolved".to_owned(),
                Status::SupersededBy(by) => format!(" superseded by {}", text_of(by)),
            };
            format!(
                "{}: {}{status}, {}",
                item.entry.section().name(),
                item.entry.text(),
                item.touched
            )
        })
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(merged.version, 2);
    assert_eq!(merged.cover, fresh(new).cover);
}

#[test]
fn a_repeated_statement_is_one_unchanged_item() {
    check(
        vec![
            user(1, Section::Corrections, "No mocks."),
            user(1, Section::References, "src/a.rs"),
        ],
        vec![
            user(41, Section::Corrections, "no  mocks."),
            user(42, Section::References, "src/b.rs"),
        ],
        &[
            "corrections: No mocks., 1",
            "references: src/a.rs, 1",
            "references: src/b.rs, 2",
        ],
    );
}

#[test]
fn the_state_is_the_newest_if_there_is_one() {
    let old = || user(1, Section::CurrentState, "Writing the parser.");
    check(
        vec![old()],
        vec![user(45, Section::CurrentState, "Testing the parser.")],
        &["current_state: Testing the parser., 2"],
    );
    check(
        vec![old()],
        vec![],
        &["current_state: Writing the parser., 1"],
    );
}

#[test]
fn next_steps_are_the_newest_and_none_that_is_done() {
    let first = || user(1, Section::NextSteps, "write the migration script");
    let second = || user(2, Section::NextSteps, "run tests");
    check(
        vec![first(), second()],
        vec![
            user(45, Section::NextSteps, "deploy"),
            user(46, Section::NextSteps, "Run tests"),
        ],
        &["next_steps: deploy, 2", "next_steps: run tests, 1"],
    );
    check(
        vec![first(), second()],
        vec![user(
            45,
            Section::CompletedWork,
            "Todo done: write the migration script",
        )],
        &[
            "completed_work: Todo done: write the migration script, 2",
            "next_steps: run tests, 1",
        ],
    );
    check(
        vec![first(), second()],
        vec![resolved(user(45, Section::NextSteps, "run tests"))],
        &["next_steps: write the migration script, 1"],
    );
}

#[test]
fn answered_questions_leave_and_resolved_errors_stay() {
    check(
        vec![
            user(1, Section::OpenQuestions, "Which port?"),
            user(2, Section::OpenQuestions, "Which user?"),
        ],
        vec![resolved(user(44, Section::OpenQuestions, "which port?"))],
        &["open_questions: Which user?, 1"],
    );
    let error = |resolution: Option<&str>| {
        let text = "disk full".to_owned();
        let resolution = resolution.map(str::to_owned);
        item(Origin::Tool, 3, Entry::Error { text, resolution })
    };
    check(
        vec![error(None)],
        vec![resolved(error(Some("removed old logs")))],
        &["errors: disk full resolved, 2"],
    );
    check(
        vec![resolved(error(Some("removed old logs")))],
        vec![],
        &["errors: disk full resolved, 1"],
    );
    check(
        vec![resolved(error(Some("removed old logs")))],
        vec![error(None)],
        &["errors: disk full, 2"],
    );
}

#[test]
fn a_changed_goal_is_added_and_a_reached_one_stays() {
    check(
        vec![user(0, Section::Task, "Port the importer.")],
        vec![user(45, Section::Task, "Port the exporter too.")],
        &[
            "task: Port the importer., 1",
            "task: Port the exporter too., 2",
        ],
    );
    check(
        vec![resolved(user(0, Section::Task, "Port the importer."))],
        vec![user(45, Section::Task, "Now the exporter.")],
        &[
            "task: Port the importer. resolved, 1",
            "task: Now the exporter., 2",
        ],
    );
    check(
        vec![resolved(user(0, Section::Task, "Port the importer."))],
        vec![],
        &["task: Port the importer. resolved, 1"],
    );
}

#[test]
fn superseded_items_are_shown_once_but_stay_in_the_ledger() {
    let decided = user(9, Section::KeyDecisions, "SQLite");
    let said = user(9, Section::Corrections, "Use pnpm.");
    check(
        vec![
            superseded(user(1, Section::KeyDecisions, "Plain files"), &decided),
            decided,
            superseded(user(1, Section::Corrections, "Use npm."), &said),
            said,
        ],
        vec![],
        &[
            "key_decisions: SQLite, 1",
            "corrections: Use npm. superseded by Use pnpm., 1",
            "corrections: Use pnpm., 1",
        ],
    );
}

#[test]
fn repeated_statements_hold_again_after_being_superseded() {
    let pnpm = user(9, Section::Corrections, "Use pnpm.");
    let npm_again = user(44, Section::Corrections, "Use npm.");
    check(
        vec![
            superseded(user(1, Section::Corrections, "Use npm."), &pnpm),
            pnpm.clone(),
        ],
        vec![
            superseded(user(43, Section::Corrections, "Use pnpm."), &npm_again),
            npm_again,
        ],
        &[
            "corrections: Use npm. superseded by Use pnpm., 1",
            "corrections: Use pnpm. superseded by Use npm., 2",
            "corrections: Use npm., 2",
        ],
    );
}

#[test]
fn the_caller_can_see_that_old_words_are_superseded() {
    let prior = memory(vec![
        user(1, Section::Corrections, "The limit is 100."),
        user(2, Section::Corrections, "No mocks."),
    ]);
    let limits = |old: &Item, new: &Item| {
        [old, new]
            .iter()
            .all(|item| item.entry.text().starts_with("The limit"))
    };
    let by = |origin| {
        let new = fresh(vec![item(
            origin,
            44,
            entry(Section::Corrections, "The limit is 200."),
        )]);
        merge_linked(&prior, new, &limits)
    };
    let merged = by(Origin::User);
    assert_eq!(
        merged.items[0].status,
        Status::SupersededBy(merged.items[2].id.clone())
    );
    assert_eq!(merged.items[1], prior.items[1]);
    // What a model says takes nothing from the ledger.
    assert_eq!(by(Origin::Assistant).items[..2], prior.items[..]);
}

#[test]
fn a_newer_result_of_the_same_call_takes_the_place_of_the_old() {
    let result = |message, summary: &str| {
        let (key, summary) = ("cargo test".to_owned(), summary.to_owned());
        item(Origin::Tool, message, Entry::ToolResult { key, summary })
    };
    let prior = memory(vec![result(3, "2 failed")]);
    let merged = merge(&prior, fresh(vec![result(44, "all passed")]));
    assert_eq!(
        merged.items,
        [Item {
            id: prior.items[0].id.clone(),
            touched: 2,
            ..result(44, "all passed")
        }]
    );
}

#[test]
fn an_id_that_is_taken_is_not_given_twice() {
    let old = user(1, Section::Task, "Port the importer.");
    let new = Item {
        id: old.id.clone(),
        ..user(44, Section::References, "src/main.rs")
    };
    let merged = merge(&memory(vec![old]), fresh(vec![new]));
    assert_ne!(merged.items[0].id, merged.items[1].id);
}

/// Few texts, so that much is said again.
fn any_fresh() -> impl Strategy<Value = Vec<Item>> {
    let status = prop_oneof![
        4 => Just(None),
        1 => Just(Some(None)),
        2 => (0_usize..8).prop_map(|index| Some(Some(index))),
    ];
    let origin = prop::sample::select(vec![Origin::User, Origin::Assistant, Origin::Tool]);
    let parts = (
        prop::sample::select(Section::ALL.to_vec()),
        "[ab]{1,2}",
        origin,
        status,
    );
    prop::collection::vec(parts, 0..8).prop_map(|parts| {
        let mut items: Vec<Item> = parts
            .into_iter()
            .map(|(section, text, origin, status)| Item {
                status: match status {
                    None => Status::Active,
                    Some(None) => Status::Resolved,
                    Some(Some(by)) => Status::SupersededBy(format!("f{by}")),
                },
                ..item(origin, 0, entry(section, &text))
            })
            .collect();
        items.sort_by_key(|item| item.entry.section());
        for (index, item) in items.iter_mut().enumerate() {
            item.id = format!("f{index}");
        }
        items
    })
}

proptest! {
    #[test]
    fn ten_merges_keep_the_ledger_and_do_not_grow_beyond_what_was_said(
        start in any_fresh(),
        rounds in prop::collection::vec(any_fresh(), 10),
    ) {
        let mut merged = merge(&memory(Vec::new()), fresh(start));
        for (round, mut items) in rounds.into_iter().enumerate() {
            let message = 50 + round;
            for item in &mut items {
                item.provenance = Provenance { message, at_ms: None };
            }
            let prior = merged.clone();
            let said = items.clone();
            merged = merge(&prior, fresh(items));

            prop_assert!(merged.items.len() <= prior.items.len() + said.len());
            prop_assert!(merged.items.is_sorted_by_key(|item| item.entry.section()));
            let ids: HashSet<&str> = merged.items.iter().map(|item| item.id.as_str()).collect();
            prop_assert_eq!(ids.len(), merged.items.len());
            let mut holding: Vec<(Section, String)> = merged
                .items
                .iter()
                .filter(|item| !matches!(item.status, Status::SupersededBy(_)))
                .map(|item| matter(&item.entry))
                .collect();
            let count = holding.len();
            holding.sort();
            holding.dedup();
            prop_assert_eq!(holding.len(), count, "said twice: {:#?}", merged.items);

            for old in &prior.items {
                let now = merged.items.iter().find(|item| item.id == old.id);
                if let Some(now) = now {
                    prop_assert!(now == old || now.touched == merged.version);
                }
                if old.entry.section().is_ledger() {
                    prop_assert_eq!(now.map(|now| &now.entry), Some(&old.entry));
                    if let Some(Status::SupersededBy(by)) = now.map(|now| &now.status)
                        && old.status == Status::Active
                    {
                        let by = merged.items.iter().find(|item| item.id == *by);
                        prop_assert_eq!(by.map(|by| by.origin), Some(Origin::User));
                    }
                }
            }
            for new in said.iter().filter(|item| item.entry.section().is_ledger()) {
                let text = folded(new.entry.text());
                let is_kept = merged.items.iter().any(|item| {
                    item.entry.section().is_ledger() && folded(item.entry.text()) == text
                });
                prop_assert!(is_kept, "{text}");
            }
        }
    }

    #[test]
    fn merging_nothing_changes_nothing_but_the_version(prior in any_memory()) {
        let merged = merge(&prior, fresh(Vec::new()));
        prop_assert_eq!(merged.version, prior.version.saturating_add(1));
        for item in &merged.items {
            prop_assert!(prior.items.contains(item));
        }
        let requested = |item: &&Item| matches!(item.entry, Entry::NextStep { requested: RequestKind::Explicit, .. });
        let steps = |memory: &Memory| memory.items.iter().filter(requested).filter(|item| item.status == Status::Active).count();
        prop_assert_eq!(steps(&merged), steps(&prior));
    }
}
