use proptest::prelude::*;

use super::*;
use crate::document::Origin;
use crate::testing::{any_memory, entry, item, memory};

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn said(message: usize, section: Section, text: &str) -> Item {
    item(Origin::User, message, entry(section, text))
}

/// The texts that are kept when there is room for the first line, and `room` characters.
fn check(items: Vec<Item>, room: usize, kept: &[&str]) {
    let memory = memory(items);
    let limit = characters(&markdown::first_line(&memory)) + room;
    let fitted = fit(memory, limit, &characters);
    let texts: Vec<&str> = fitted
        .memory
        .items
        .iter()
        .map(|item| item.entry.text())
        .collect();
    assert_eq!(texts, kept);
}

#[test]
fn a_memory_that_fits_is_unchanged() {
    let memory = memory(vec![said(1, Section::Task, "Port it.")]);
    let fitted = fit(memory.clone(), 1_000, &characters);
    assert_eq!((fitted.memory, fitted.left_out), (memory, vec![]));
}

#[test]
fn the_ledger_is_dropped_last() {
    let items = || {
        vec![
            said(1, Section::Corrections, "No mocks."),
            said(9, Section::CompletedWork, "Wrote a.rs."),
            said(9, Section::References, "a.rs"),
        ]
    };
    check(items(), 100, &["Wrote a.rs.", "No mocks.", "a.rs"]);
    check(items(), 75, &["Wrote a.rs.", "No mocks."]);
    check(items(), 50, &["No mocks."]);
    check(items(), 10, &[]);
    let fitted = fit(memory(items()), 10, &characters);
    assert!(fitted.is_ledger_cut());
    assert_eq!(fitted.left_out, memory(items()).items);
}

#[test]
fn requests_to_remember_outlast_the_rest_of_the_ledger() {
    let mut items = vec![said(1, Section::Corrections, "Remember: the port is 8431.")];
    items.extend((2..40).map(|n| said(n, Section::Corrections, &format!("No, not number {n}."))));
    check(items.clone(), 60, &["Remember: the port is 8431."]);
    let fitted = fit(memory(items), 200, &characters);
    let first = fitted.memory.items.iter().map(|item| item.entry.text());
    assert!(
        first.clone().any(|text| text.starts_with("Remember")),
        "{first:?}"
    );
    assert!(
        first.clone().any(|text| text.contains("number 39")),
        "{:?}",
        fitted.memory
    );
}

#[test]
fn newer_items_stay_and_sections_share_the_room() {
    let mut items: Vec<Item> = (1..30)
        .map(|message| said(message, Section::Errors, &format!("error number {message}")))
        .collect();
    items.push(said(
        1,
        Section::CurrentState,
        "In the middle of the parser.",
    ));
    items.push(said(2, Section::NextSteps, "first step"));
    items.push(said(9, Section::NextSteps, "last step"));
    check(
        items,
        170,
        &[
            "In the middle of the parser.",
            "error number 28",
            "error number 29",
            "first step",
            "last step",
        ],
    );
}

proptest! {
    #[test]
    fn the_rendering_keeps_to_the_cap(memory in any_memory(), limit in 0_usize..600) {
        let first_line = characters(&markdown::first_line(&memory));
        let fitted = fit(memory.clone(), limit, &characters);
        let rendered = characters(&markdown::render(&fitted.memory));
        prop_assert!(rendered <= limit.max(first_line), "{rendered} in {limit}");
        prop_assert_eq!(fitted.memory.items.len() + fitted.left_out.len(), memory.items.len());
        for item in &fitted.memory.items {
            prop_assert!(memory.items.contains(item));
        }
        prop_assert!(fitted.memory.items.is_sorted_by_key(|item| item.entry.section()));
    }
}
