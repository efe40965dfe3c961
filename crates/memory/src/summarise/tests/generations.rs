//! Many updates in a row.

use proptest::prelude::*;

use super::*;
use crate::document::Item;

/// A summariser that only ever appends: the earlier memory unchanged, then 3,000 new characters.
#[test]
fn ten_passes_of_a_model_that_only_appends() {
    const CAP: usize = 8_000;
    let facts =
        "Base facts: invoice number format is R-2024-####, tax rate 7.7 %, owner team Falcon.";
    let mut messages = vec![say(Role::User, facts), say(Role::Assistant, "Noted.")];
    let mut memory: Option<Memory> = None;
    for round in 1..=10 {
        messages.push(say(
            Role::User,
            &format!(
                "Round {round}: limit is {round}00. {}",
                "filler words for this round ".repeat(200)
            ),
        ));
        messages.push(say(Role::Assistant, &format!("Round {round} done.")));
        let limits = Limits::new(CAP, 1_000_000);
        let mut order = order_after(&messages, memory.as_ref(), limits);
        order.count = Arc::new(|text: &str| text.chars().count());
        let draft = compact(
            &messages,
            &Options {
                prior: memory.as_ref(),
                ..Options::new(CAP, &|text: &str| text.chars().count())
            },
        );
        order.draft = draft.unwrap().memory;
        let (outcome, _) = drive(Job::new(order.clone()), |ask| {
            let asked = user_text(ask);
            let before = asked
                .split_once("<prior_memory>\n")
                .and_then(|(_, rest)| rest.split_once("</prior_memory>"))
                .map_or("", |(before, _)| before);
            let mut added = String::new();
            let mut step = 0;
            while added.chars().count() < 3_000 {
                step += 1;
                added.push_str(&format!(
                    "- Round {round}: words for step {step} of this round were filler in kind {}\n",
                    step * 3 % 71
                ));
            }
            Answer::finished(format!("{before}\n## Completed Work\n{added}")).into()
        });
        assert!(
            matches!(outcome.made_by, Maker::Model { .. }),
            "{:?}",
            outcome.made_by
        );
        check_promises(&outcome, &order);
        let shown = markdown::render(&outcome.memory);
        assert!(shown.chars().count() <= CAP);
        for heading in markdown::Heading::ALL {
            let line = format!("## {}\n", heading.title());
            assert!(shown.matches(&line).count() <= 1, "{shown}");
        }
        assert_eq!(shown.matches("Memory of messages").count(), 1, "{shown}");
        for fact in ["R-2024-####", "tax rate 7.7 %", "owner team Falcon"] {
            assert!(shown.contains(fact), "{round}: {fact}: {shown}");
        }
        memory = Some(outcome.memory);
    }
    assert_eq!(memory.unwrap().version, 10);
}

/// Edits that a model may send, against the items that it is shown.
fn edits(items: &[Item], picks: &[(u8, usize, u16)], round: usize) -> (String, Vec<String>) {
    let mut named = Vec::new();
    let list: Vec<String> = picks
        .iter()
        .map(|(action, pick, number)| {
            let id = items.get(pick % items.len().max(1)).map_or("none", |item| item.id.as_str());
            named.push(id.to_owned());
            let by = items.get(usize::from(*number) % items.len().max(1)).map_or("none", |item| item.id.as_str());
            let step = number % 90;
            match action {
                0 | 1 => format!(r#"{{"action":"add","section":"completed_work","text":"step {step} of round {round} went well"}}"#),
                2 => format!(r#"{{"action":"replace","id":"{id}","text":"the words of round {round} were changed"}}"#),
                3 => format!(r#"{{"action":"resolve","id":"{id}"}}"#),
                4 => format!(r#"{{"action":"supersede","id":"{id}","by":"{by}"}}"#),
                _ => format!(r#"{{"action":"drop","id":"{id}","reason":"old"}}"#),
            }
        })
        .collect();
    (format!(r#"{{"edits":[{}]}}"#, list.join(",")), named)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn what_no_edit_names_stays_as_it_is_over_fifty_updates(
        rounds in proptest::collection::vec(
            proptest::collection::vec((0_u8..6, any::<usize>(), any::<u16>()), 0..6),
            50,
        ),
        style in prop::sample::select(vec![Style::Forked, Style::PrefixSharing]),
    ) {
        let mut messages = vec![
            say(Role::User, "Port the importer in src/importer.go. Never touch vendor/."),
            say(Role::Assistant, "I start with src/importer.go."),
        ];
        let limits = Limits::new(16_000, 1_000_000);
        let mut memory = order_after(&messages, None, limits).draft;
        let mut rules = 1;
        for (round, picks) in rounds.iter().enumerate() {
            messages.push(say(Role::User, &format!("Please do step {round} in src/file{round}.rs.")));
            if round % 5 == 0 {
                messages.push(say(Role::User, &format!("From now on, never use tool number {round}.")));
                rules += 1;
            }
            messages.push(say(Role::Assistant, &format!("Step {round} is done, it went well, the words were changed.")));
            let order = Order {
                style,
                form: Form::Document,
                ..order_after(&messages, Some(&memory), limits)
            };
            let (answer, named) = edits(&memory.items, picks, round);
            let (outcome, _) = drive(Job::new(order.clone()), |_| answer.as_str().into());
            check_promises(&outcome, &order);
            for item in &memory.items {
                // Changes made by code (a request that was answered) are in the draft.
                let by_code = order.draft.items.iter().find(|other| other.id == item.id);
                let is_left_out = outcome.findings.iter().any(|finding| matches!(finding, Finding::LeftOut { .. }));
                prop_assert!(!is_left_out, "there is room");
                if named.contains(&item.id) || by_code.is_some_and(|other| other != item) {
                    continue;
                }
                prop_assert!(
                    outcome.memory.items.contains(item),
                    "round {round}: {item:?}\n{answer}\n{:?}",
                    outcome.findings
                );
            }
            memory = outcome.memory;
        }
        prop_assert!(memory.section(Section::Corrections).count() >= rules);
    }
}
