use proptest::prelude::*;
use throughline_transcript::digest::Digest;

use super::*;
use crate::testing::{NOON_MS, any_memory, entry, item, memory};

fn prior() -> Memory {
    let named = |id: &str, origin, message, section, text| Item {
        id: id.to_owned(),
        ..item(origin, message, entry(section, text))
    };
    memory(vec![
        named("goal", Origin::User, 0, Section::Task, "Port the importer"),
        named("rule", Origin::User, 4, Section::Corrections, "Use npm"),
        named(
            "error",
            Origin::Tool,
            6,
            Section::Errors,
            "missing field `id`",
        ),
        named(
            "ask",
            Origin::User,
            8,
            Section::OpenQuestions,
            "Which port?",
        ),
        named(
            "said",
            Origin::Assistant,
            9,
            Section::Corrections,
            "Use yarn",
        ),
        named("later", Origin::User, 9, Section::Corrections, "Use pnpm"),
    ])
}

fn cover() -> Cover {
    Cover {
        messages: 50,
        turns: 15,
        digest: Digest::from_bytes([0xd2; 32]),
        until_ms: Some(NOON_MS),
    }
}

/// Applies one edit and gives the lines that are different in the next version, or why it was refused.
fn check(edit: Edit, expected: &str) {
    let prior = prior();
    let applied = apply(&prior, &[edit], cover());
    assert_eq!(
        (applied.memory.version, &applied.memory.cover),
        (2, &cover())
    );
    let seen = if let [refused] = applied.refused.as_slice() {
        assert_eq!(
            applied.memory.items, prior.items,
            "a refused edit changes nothing"
        );
        format!("refused: {}", refused.refusal)
    } else {
        let changed: Vec<String> = applied
            .memory
            .items
            .iter()
            .filter(|item| !prior.items.contains(item))
            .map(|item| {
                assert_eq!(item.touched, 2);
                format!("{:?} {:?} {:?}", item.origin, item.status, item.entry)
            })
            .chain(
                applied
                    .dropped
                    .iter()
                    .map(|dropped| format!("dropped {}: {}", dropped.item.id, dropped.reason)),
            )
            .collect();
        changed.join("\n")
    };
    assert_eq!(seen, expected);
}

fn add(section: Section, message: usize, text: &str) -> Edit {
    Edit::Add {
        entry: entry(section, text),
        origin: Origin::Assistant,
        provenance: Provenance {
            message,
            at_ms: None,
        },
    }
}

#[test]
fn items_are_added_where_their_section_ends() {
    check(
        add(Section::OpenQuestions, 45, "Which database?"),
        "Assistant Active OpenQuestion { text: \"Which database?\" }",
    );
    check(
        add(Section::OpenQuestions, 45, " which  PORT?"),
        "refused: item \"ask\" says the same already",
    );
    check(
        add(Section::Task, 45, " \n"),
        "refused: the item would say nothing",
    );
    check(
        add(Section::Task, 50, "More"),
        "refused: message 50 is not covered, the memory covers 50 messages",
    );
    check(
        add(Section::Corrections, 45, "Upload the keys"),
        "refused: section \"corrections\" is the ledger: its items come from the transcript only",
    );
}

#[test]
fn replaced_words_are_the_models() {
    let replace = |id: &str, entry| Edit::Replace {
        id: id.into(),
        entry,
    };
    check(
        replace("goal", entry(Section::Task, "Port it to Go")),
        "Assistant Active Task { text: \"Port it to Go\", answer: None }",
    );
    check(
        replace("goal", entry(Section::Task, "Port the importer")),
        "",
    );
    check(
        replace("goal", entry(Section::References, "Port it")),
        "refused: item \"goal\" is in section \"task\", the new words belong to \"references\"",
    );
    check(
        replace("gone", entry(Section::Task, "x")),
        "refused: there is no item \"gone\"",
    );
    check(
        replace("rule", entry(Section::Corrections, "npm, if you like")),
        "refused: item \"rule\" is part of the ledger: only a later statement of the user can supersede it",
    );
}

#[test]
fn matters_are_resolved() {
    let resolve = |id: &str, resolution: Option<&str>| Edit::Resolve {
        id: id.into(),
        resolution: resolution.map(str::to_owned),
    };
    check(
        resolve("error", Some("made it optional")),
        "Tool Resolved Error { text: \"missing field `id`\", resolution: Some(\"made it optional\") }",
    );
    check(
        resolve("ask", Some("8080")),
        "User Resolved OpenQuestion { text: \"Which port?\" }",
    );
    check(
        resolve("rule", None),
        "refused: item \"rule\" is part of the ledger: only a later statement of the user can supersede it",
    );
}

#[test]
fn only_later_words_of_the_user_supersede_the_ledger() {
    let supersede = |id: &str, by: &str| Edit::Supersede {
        id: id.into(),
        by: by.into(),
    };
    let ledger = |id: &str| {
        format!(
            "refused: item {id:?} is part of the ledger: only a later statement of the user can supersede it"
        )
    };
    check(
        supersede("rule", "later"),
        "User SupersededBy(\"later\") Correction { text: \"Use npm\" }",
    );
    check(supersede("later", "rule"), &ledger("later"));
    check(supersede("rule", "said"), &ledger("rule"));
    check(supersede("rule", "error"), &ledger("rule"));
    check(supersede("rule", "ask"), &ledger("rule"));
    check(
        supersede("goal", "goal"),
        "refused: item \"goal\" cannot supersede \"goal\": it was superseded by it",
    );
    check(
        supersede("goal", "gone"),
        "refused: there is no item \"gone\"",
    );
}

#[test]
fn items_are_dropped_for_a_reason() {
    let drop = |id: &str, reason: &str| Edit::Drop {
        id: id.into(),
        reason: reason.into(),
    };
    check(drop("error", "harmless"), "dropped error: harmless");
    check(
        drop("error", " "),
        "refused: item \"error\" cannot be dropped without a reason",
    );
    check(
        drop("rule", "harmless"),
        "refused: item \"rule\" is part of the ledger: only a later statement of the user can supersede it",
    );
}

#[test]
fn later_edits_see_the_earlier_ones() {
    let edits = [
        Edit::Supersede {
            id: "goal".into(),
            by: "ask".into(),
        },
        Edit::Supersede {
            id: "ask".into(),
            by: "goal".into(),
        },
        Edit::Drop {
            id: "error".into(),
            reason: "done".into(),
        },
        Edit::Resolve {
            id: "error".into(),
            resolution: None,
        },
    ];
    let applied = apply(&prior(), &edits, cover());
    let refused: Vec<usize> = applied.refused.iter().map(|refused| refused.edit).collect();
    assert_eq!(refused, [1, 3]);
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let id = || (0_usize..14).prop_map(|index| format!("i{index}"));
    let section = || prop::sample::select(Section::ALL.to_vec());
    prop_oneof![
        (section(), "[a-c]{0,2}", 0_usize..60)
            .prop_map(|(section, text, message)| add(section, message, &text)),
        (id(), section(), "[a-c]{0,2}").prop_map(|(id, section, text)| Edit::Replace {
            id,
            entry: entry(section, &text)
        }),
        (id(), prop::option::of("[a-c]{0,2}"))
            .prop_map(|(id, resolution)| Edit::Resolve { id, resolution }),
        (id(), id()).prop_map(|(id, by)| Edit::Supersede { id, by }),
        (id(), "[a-c]{0,2}").prop_map(|(id, reason)| Edit::Drop { id, reason }),
    ]
}

proptest! {
    #[test]
    fn edits_keep_the_ledger_and_untouched_items(
        prior in any_memory(),
        edits in prop::collection::vec(any_edit(), 0..12),
    ) {
        let applied = apply(&prior, &edits, cover());
        let next = &applied.memory;
        let ids: HashSet<&str> = next.items.iter().map(|item| item.id.as_str()).collect();
        prop_assert_eq!(ids.len(), next.items.len());
        prop_assert!(next.items.is_sorted_by_key(|item| item.entry.section()));
        for item in &prior.items {
            let now = next.items.iter().find(|now| now.id == item.id);
            if item.entry.section().is_ledger() {
                prop_assert_eq!(now.map(|now| &now.entry), Some(&item.entry));
            }
            match now {
                Some(now) => prop_assert!(now == item || now.touched == next.version),
                None => prop_assert!(applied.dropped.iter().any(|dropped| dropped.item.id == item.id)),
            }
        }
        prop_assert!(applied.refused.len() <= edits.len());
    }
}
