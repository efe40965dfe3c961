use crate::cues;
use crate::document::{Cover, Item, Memory, Origin, Section, Status};
use crate::render::{markdown, restoring};
use crate::testing::{entry, item, memory};

use super::*;

fn supersedes(old: &Item, new: &Item) -> bool {
    cues::supersedes(old.entry.text(), new.entry.text()).is_some_and(|sure| sure >= 80)
}

#[test]
fn ten_generations_keep_the_facts_below_the_cap() {
    const CAP: usize = 8_000;
    let facts = [
        "Order numbers look like B-2025-####.",
        "The discount is 4.5 %.",
        "The owning team is Heron.",
    ];
    let cost = |text: &str| text.chars().count();
    let mut current = memory(
        facts
            .iter()
            .map(|fact| item(Origin::User, 0, entry(Section::Corrections, fact)))
            .collect(),
    );
    for generation in 1..=10 {
        let message = 40 * generation;
        let filler = format!("generation {generation} did this and that; ").repeat(80);
        // Whatever makes the memory of the new messages repeats the old one, as a block and item by item.
        let mut items = current.items.clone();
        items.extend([
            item(
                Origin::User,
                message,
                entry(
                    Section::Corrections,
                    &format!("The limit is {generation}00."),
                ),
            ),
            item(
                Origin::Assistant,
                message,
                entry(Section::CompletedWork, &filler),
            ),
            item(
                Origin::User,
                message,
                entry(
                    Section::CompletedWork,
                    &restoring::without_blocks(&restoring::user_message(&current)),
                ),
            ),
        ]);
        items.sort_by_key(|item| item.entry.section());
        let fresh = Memory {
            cover: Cover {
                messages: message + 40,
                ..Cover::default()
            },
            ..memory(items)
        };
        let merged = merge_linked(&current, fresh, &supersedes);
        current = fit(merged, CAP, &cost).memory;

        let markdown = markdown::render(&current);
        assert!(cost(&markdown) <= CAP, "{generation}: {}", cost(&markdown));
        for heading in markdown::Heading::ALL {
            let line = format!("## {}\n", heading.title());
            assert!(markdown.matches(&line).count() <= 1, "{markdown}");
        }
        assert_eq!(
            markdown.matches("Memory of messages").count(),
            1,
            "{markdown}"
        );
        for fact in facts {
            assert_eq!(
                markdown.matches(fact).count(),
                1,
                "{generation}: {markdown}"
            );
        }
    }
    let limits: Vec<(&str, bool)> = current
        .section(Section::Corrections)
        .filter(|item| item.entry.text().starts_with("The limit"))
        .map(|item| (item.entry.text(), item.status == Status::Active))
        .collect();
    assert_eq!(limits.len(), 10);
    assert_eq!(limits.iter().filter(|(_, holds)| *holds).count(), 1);
    assert_eq!(limits.last(), Some(&("The limit is 1000.", true)));
    assert_eq!(current.version, 11);
}
