//! How the conversation reaches the model: in parts, at the end of the live request, with the memory so far.

use std::collections::HashMap;

use super::*;

/// Messages with numbered words, so that it can be told what was read.
fn long() -> Vec<Message> {
    let numbered =
        |from: usize, to: usize| -> String { (from..to).map(|n| format!("w{n:05} ")).collect() };
    let mut messages = vec![say(Role::User, "Copy the words. Never touch vendor/.")];
    for part in 0..6 {
        let from = part * 500;
        messages.push(say(Role::Assistant, &numbered(from, from + 200)));
        messages.push(Message::new(
            Role::Assistant,
            vec![call(&format!("t{part}"), "shell", r#"{"cmd":"cat words"}"#)],
        ));
        messages.push(result(
            &format!("t{part}"),
            &numbered(from + 200, from + 300),
        ));
        messages.push(say(Role::User, &numbered(from + 300, from + 500)));
    }
    messages
}

/// Writes a memory that names the first new word of each part.
fn echo(ask: &Ask) -> Reply {
    let asked = user_text(ask);
    let word = asked
        .split_whitespace()
        .rev()
        .find(|word| word.len() == 6 && word.starts_with('w'))
        .unwrap_or("nothing");
    let kept: String = asked
        .lines()
        .filter(|line| line.starts_with("- read "))
        .map(|line| format!("{line}\n"))
        .collect();
    Answer::finished(format!(
        "## Completed Work\n{kept}- read words up to {word}\n"
    ))
    .into()
}

fn words_in(asks: &[&Ask]) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for ask in asks {
        for line in user_text(ask)
            .lines()
            .filter_map(|line| line.strip_prefix("| "))
        {
            for word in line
                .split_whitespace()
                .filter(|word| word.starts_with("w0"))
            {
                *words.entry(word.to_owned()).or_insert(0) += 1;
            }
        }
    }
    words
}

#[test]
fn long_conversations_are_read_completely_in_parts() {
    let mut order = order_after(&long(), None, Limits::new(400, 3_000));
    order.limits.result_bytes_max = usize::MAX;
    let count = count();
    let (outcome, asks) = drive(Job::new(order.clone()), |ask| {
        let Request::Own { system, user } = &ask.request else {
            panic!()
        };
        assert!(count(system) + count(user) <= 3_000 + 50);
        echo(ask)
    });
    assert!(asks.len() > 2, "{}", asks.len());
    assert_eq!(outcome.parts as usize, asks.len());
    assert!(matches!(outcome.made_by, Maker::Model { .. }));
    let words = words_in(&asks.iter().collect::<Vec<_>>());
    for number in 0..3_000 {
        assert_eq!(words.get(&format!("w{number:05}")), Some(&1), "{number}");
    }
    // Each part starts from what came of the one before.
    assert!(!user_text(&asks[0]).contains("<prior_memory>"));
    for ask in &asks[1..] {
        assert!(user_text(ask).contains("<prior_memory>"));
        assert!(
            user_text(ask).contains("read words up to "),
            "{}",
            user_text(ask)
        );
    }
    let shown = markdown::render(&outcome.memory);
    assert!(shown.contains("up to w02999"), "{shown}");
    check_promises(&outcome, &order);
}

#[test]
fn an_overflow_halves_the_part_and_nothing_is_lost() {
    let mut order = order_after(&long(), None, Limits::new(400, 100_000));
    order.limits.result_bytes_max = usize::MAX;
    let count = count();
    let mut answered = Vec::new();
    let (outcome, asks) = drive(Job::new(order.clone()), |ask| {
        if count(user_text(ask)) > 2_500 {
            return FailureClass::Overflow.into();
        }
        answered.push(ask.clone());
        echo(ask)
    });
    assert!(asks.len() > answered.len());
    assert!(matches!(outcome.made_by, Maker::Model { .. }));
    let words = words_in(&answered.iter().collect::<Vec<_>>());
    assert_eq!(words.len(), 3_000);
    assert!(words.values().all(|times| *times == 1));
}

#[test]
fn a_model_that_cannot_read_any_part_is_given_up() {
    let (outcome, asks) = drive(Job::new(order(&long())), |_| FailureClass::Overflow.into());
    assert!(
        asks.len() < 20,
        "each request is smaller than the one before"
    );
    assert_eq!(reasons(&outcome).last(), Some(&"window_too_small"));
    let tiny = order_after(&long(), None, Limits::new(400, 300));
    let (outcome, asks) = drive(Job::new(tiny), |_| "x".into());
    assert!(asks.is_empty());
    assert_eq!(reasons(&outcome), ["window_too_small"]);
}

#[test]
fn the_number_of_requests_is_limited() {
    let mut order = order_after(&long(), None, Limits::new(400, 2_500));
    order.limits.asks_max = 2;
    let (outcome, asks) = drive(Job::new(order), echo);
    assert_eq!(asks.len(), 2);
    assert_eq!(reasons(&outcome), ["too_many_parts"]);
}

#[test]
fn a_shared_prefix_gets_the_instruction_only() {
    let shared = Order {
        style: Style::PrefixSharing,
        form: Form::Document,
        ..order(&long())
    };
    let (outcome, asks) = play(
        shared,
        vec![
            r#"{"items":[{"section":"completed_work","text":"Copied the words up to w02999"}]}"#
                .into(),
        ],
    );
    let Request::Appended { instruction } = &asks[0].request else {
        panic!()
    };
    assert!(!instruction.contains("w00000") && !instruction.contains("<transcript>"));
    assert!(instruction.contains("tools are switched off"));
    assert!(instruction.contains("messages 1 to 25"), "{instruction}");
    assert!(markdown::render(&outcome.memory).contains("up to w02999"));
}

#[test]
fn an_update_in_the_live_request_is_a_list_of_edits() {
    let mut messages = long();
    let prior = order(&messages).draft;
    messages.push(say(Role::User, "Never copy w00007 again."));
    messages.push(say(Role::Assistant, "Noted, w00007 stays out."));
    let update = Order {
        style: Style::PrefixSharing,
        form: Form::Markdown,
        ..order_after(&messages, Some(&prior), Limits::new(1_000, 100_000))
    };
    let step = update
        .draft
        .items
        .iter()
        .find(|item| !item.entry.section().is_ledger())
        .unwrap()
        .clone();
    let edits = format!(
        r#"{{"edits":[{{"action":"add","section":"completed_work","text":"w00007 was left out","message":27}},{{"action":"resolve","id":"{}"}}]}}"#,
        step.id
    );
    let (outcome, asks) = play(update.clone(), vec![edits.as_str().into()]);
    let Request::Appended { instruction } = &asks[0].request else {
        panic!()
    };
    for item in &update.draft.items {
        if item.entry.section().is_ledger() {
            assert!(
                instruction.contains(&format!("{} corrections: ", item.id)),
                "{instruction}"
            );
        }
    }
    assert!(instruction.contains("`supersede`"));
    let added = outcome
        .memory
        .items
        .iter()
        .find(|item| item.entry.text() == "w00007 was left out");
    assert_eq!(added.unwrap().provenance.message, 26);
    check_promises(&outcome, &update);
    let unchanged = prior
        .items
        .iter()
        .filter(|item| item.id != step.id && update.draft.items.iter().any(|other| other == *item));
    for item in unchanged {
        assert!(outcome.memory.items.contains(item), "{item:?}");
    }
}

#[test]
fn a_live_request_that_does_not_fit_is_read_in_parts() {
    let shared = Order {
        style: Style::PrefixSharing,
        ..order_after(&long(), None, Limits::new(400, 3_000))
    };
    let (outcome, asks) = drive(Job::new(shared), |ask| match &ask.request {
        Request::Appended { .. } => FailureClass::Overflow.into(),
        Request::Own { .. } => echo(ask),
    });
    assert!(matches!(asks[0].request, Request::Appended { .. }));
    assert!(
        asks[1..]
            .iter()
            .all(|ask| matches!(ask.request, Request::Own { .. }))
    );
    assert!(outcome.parts > 1 && matches!(outcome.made_by, Maker::Model { .. }));
}

#[test]
fn another_model_gets_a_request_of_its_own() {
    let shared = Order {
        style: Style::PrefixSharing,
        has_fallback: true,
        ..order(&export())
    };
    let (outcome, asks) = play(shared, vec!["no".into(), "no".into(), GOOD.into()]);
    assert!(matches!(
        &asks[2],
        Ask {
            slot: ModelSlot::Fallback,
            request: Request::Own { .. },
            ..
        }
    ));
    assert!(matches!(
        outcome.made_by,
        Maker::Model {
            slot: ModelSlot::Fallback,
            ..
        }
    ));
}
