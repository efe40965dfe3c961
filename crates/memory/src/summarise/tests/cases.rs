//! Answers and failures in sequence, and cases on which other programs failed.

use throughline_transcript::message::{Author, Media};

use super::*;

fn text_of(memory: &Memory) -> String {
    markdown::render(memory)
}

#[test]
fn blank_and_skeleton_are_refused_and_the_third_answer_counts() {
    let skeleton = "## Goal\n\n## Decisions\n(none)\n\n## Files\n(none)\n\n## Next\n(none)\n";
    let (outcome, asks) = play(
        order(&export()),
        vec!["".into(), skeleton.into(), GOOD.into()],
    );
    assert_eq!(
        outcome.made_by,
        Maker::Model {
            slot: ModelSlot::Main,
            attempts: 3
        }
    );
    assert!(user_text(&asks[1]).contains("the answer had no text"));
    assert!(user_text(&asks[2]).contains("nothing in them"));
    let shown = text_of(&outcome.memory);
    assert!(
        shown.contains("CSV export") && shown.contains("write_rows"),
        "{shown}"
    );
    check_promises(&outcome, &order(&export()));

    let (outcome, _) = play(
        order(&export()),
        vec!["".into(), skeleton.into(), "".into()],
    );
    assert_eq!(reasons(&outcome), ["blank", "skeleton", "blank"]);
    assert!(!text_of(&outcome.memory).contains("(none)"));
    check_promises(&outcome, &order(&export()));
}

#[test]
fn the_text_of_an_error_is_no_memory() {
    let messages = [
        say(Role::User, "Keep the port at 8431."),
        say(Role::Assistant, "Port stays 8431."),
        say(Role::User, &"log: accepted connection\n".repeat(1_600)),
        say(Role::Assistant, "Nothing unusual in the log."),
        say(Role::User, "Restart the worker only."),
    ];
    let failure = |class, retry_after_ms| {
        Reply::Fails(CallFailure {
            class,
            retry_after_ms: Some(retry_after_ms),
        })
    };
    let (outcome, asks) = play(
        order(&messages),
        vec![
            failure(FailureClass::Overloaded, 7_000),
            "Error generating summary: 529 overloaded_error".into(),
            failure(FailureClass::RateLimit, 1_000),
        ],
    );
    assert_eq!(
        reasons(&outcome),
        ["overloaded", "error_text", "rate_limit"]
    );
    assert!(asks[1].wait_ms >= 7_000);
    let json = outcome.memory.to_json();
    assert!(
        !json.contains("Error generating") && !json.contains("overloaded"),
        "{json}"
    );
    assert!(json.contains("Keep the port at 8431."));
}

#[test]
fn a_tool_call_is_discarded_and_the_model_informed() {
    let messages = [
        say(Role::User, "Fix the flaky test t_order."),
        Message::new(
            Role::Assistant,
            vec![call("t1", "shell", r#"{"cmd":"cargo test t_order"}"#)],
        ),
        result("t1", &"ok\n".repeat(10_000)),
        say(Role::Assistant, "It passes now."),
        say(Role::User, "Run it 50 times."),
    ];
    let calls = Answer {
        has_tool_call: true,
        stop: Stop::ToolUse,
        ..Answer::finished("I run it.")
    };
    let good = "## Goal\nfix t_order\n## Done\npasses now\n## Next\nrun 50 times";
    let (outcome, asks) = play(order(&messages), vec![calls.into(), good.into()]);
    assert!(user_text(&asks[1]).contains("No tools are available"));
    assert!(matches!(outcome.made_by, Maker::Model { attempts: 2, .. }));
    let shown = text_of(&outcome.memory);
    assert!(
        shown.contains("passes now") && !shown.contains("I run it"),
        "{shown}"
    );
}

#[test]
fn a_focus_goes_first_and_is_used_once() {
    let messages = [
        say(Role::User, "Retry policy: 4 tries, 250 ms base, jitter."),
        say(Role::Assistant, "Implemented in net/retry.rs."),
        say(Role::User, "Also restyle the buttons."),
        say(Role::Assistant, &"css rule ".repeat(800)),
        say(Role::User, "Next topic: logging."),
        say(Role::Assistant, &"log setup ".repeat(800)),
    ];
    let focus = "keep all numbers of the retry policy; drop the styling";
    let first = Order {
        focus: Some(focus.to_owned()),
        ..order(&messages[..4])
    };
    let good = "## Goal\n- Retry policy: 4 tries, 250 ms base, jitter.\n## Done\n- net/retry.rs";
    let (outcome, asks) = play(first, vec![good.into()]);
    let asked = user_text(&asks[0]);
    let place = asked.find(focus).unwrap();
    assert!(
        asked[..place]
            .trim_end()
            .ends_with("what to keep and what to leave out:")
    );
    assert!(
        place > asked.find("</transcript>").unwrap(),
        "an instruction, no content"
    );
    let shown = text_of(&outcome.memory);
    for value in ["4 tries", "250 ms", "jitter"] {
        assert!(shown.contains(value), "{shown}");
    }
    let second = order_after(
        &messages,
        Some(&outcome.memory),
        Limits::new(1_000, 100_000),
    );
    let (outcome, asks) = play(second, vec![GOOD.into(), good.into(), good.into()]);
    assert!(!user_text(&asks[0]).contains(focus));
    assert!(!outcome.memory.to_json().contains(focus));
}

#[test]
fn opaque_blocks_are_not_shown_as_text() {
    let mut blob = Message::new(Role::Assistant, vec![Block::new(Content::Compaction(None))]);
    blob.author = Author::Compaction;
    blob.raw = Some(Raw::parse(r#"{"encrypted_content":"BLOB-FROM-PROVIDER-A"}"#).unwrap());
    let messages = [
        blob,
        say(Role::User, "Continue with the second half."),
        say(Role::Assistant, &"Second half text. ".repeat(1_500)),
        Message::new(
            Role::User,
            vec![
                Block::new(Content::Image(Media::default())),
                Block::text("Translate the title."),
            ],
        ),
    ];
    let job = Job::new(order(&messages));
    let Step::Ask(ask) = job.step() else { panic!() };
    let asked = user_text(ask);
    assert!(!asked.contains("BLOB-FROM"));
    assert!(asked.contains("[1] a summary of earlier messages that only the provider can read"));
    assert!(asked.contains("[4] a picture, not shown"));
}

#[test]
fn thinking_reaches_no_request() {
    let messages = [
        say(Role::User, "Why is the nightly job slow?"),
        Message::new(
            Role::Assistant,
            vec![
                Block::new(Content::Thinking(
                    "Earlier idea: the index is missing.".into(),
                )),
                Block::text("I read the plan first."),
                call("t1", "shell", r#"{"cmd":"explain nightly"}"#),
            ],
        ),
        result("t1", &"Seq Scan on events  rows=90000\n".repeat(900)),
    ];
    for style in [Style::Forked, Style::PrefixSharing] {
        let job = Job::new(Order {
            style,
            ..order(&messages)
        });
        let Step::Ask(ask) = job.step() else { panic!() };
        assert!(!user_text(ask).contains("Earlier idea"));
    }
}

/// Replies, the model that is asked each time, and how it ends.
#[track_caller]
fn check(has_fallback: bool, given: Vec<Reply>, slots: &str, expect: &[&str]) {
    let order = Order {
        has_fallback,
        ..order(&export())
    };
    let (outcome, asks) = play(order.clone(), given);
    let asked: String = asks
        .iter()
        .map(|ask| match ask.slot {
            ModelSlot::Main => 'M',
            ModelSlot::Fallback => 'F',
        })
        .collect();
    assert_eq!(asked, slots);
    assert_eq!(reasons(&outcome), expect);
    assert_eq!(outcome.asks as usize, asks.len());
    check_promises(&outcome, &order);
}

#[test]
fn who_is_asked_after_a_failure() {
    let refused = || -> Reply {
        Answer {
            stop: Stop::Refused,
            ..Answer::default()
        }
        .into()
    };
    let say = |text: &'static str| Reply::from(text);
    let fail = Reply::from;
    use FailureClass::{BadRequest, Cancelled, Connection, Denied, Overloaded, Server, Timeout};
    check(false, vec![say(GOOD)], "M", &[]);
    check(false, vec![say("no"), say(GOOD)], "MM", &[]);
    check(
        false,
        vec![say("no"), say("no"), say("no")],
        "MMM",
        &["no_structure"; 3],
    );
    check(true, vec![say("no"), say("no"), say(GOOD)], "MMF", &[]);
    check(
        true,
        vec![say("no"), say("no"), say("no")],
        "MMF",
        &["no_structure"; 3],
    );
    check(false, vec![refused()], "M", &["refusal"]);
    check(true, vec![refused(), say(GOOD)], "MF", &[]);
    check(true, vec![refused(), refused()], "MF", &["refusal"; 2]);
    check(false, vec![fail(Denied)], "M", &["denied"]);
    check(true, vec![fail(BadRequest), say(GOOD)], "MF", &[]);
    check(false, vec![fail(Cancelled)], "M", &["cancelled"]);
    check(
        false,
        vec![fail(Overloaded), fail(Connection), say(GOOD)],
        "MMM",
        &[],
    );
    check(
        true,
        vec![fail(Server), fail(Timeout), say(GOOD)],
        "MMF",
        &[],
    );
    check(
        true,
        vec![fail(Server), truncated(), truncated()],
        "MMF",
        &["server", "truncated", "truncated"],
    );
}

#[test]
fn the_other_model_has_its_turn_even_after_one_attempt() {
    let mut order = order(&export());
    order.limits.attempts_max = 1;
    order.has_fallback = true;
    let (outcome, asks) = play(order, vec!["no".into(), GOOD.into()]);
    assert_eq!(asks[1].slot, ModelSlot::Fallback);
    assert!(matches!(outcome.made_by, Maker::Model { .. }));
}

#[test]
fn a_truncated_answer_gets_more_room() {
    let (outcome, asks) = play(order(&export()), vec![truncated(), GOOD.into()]);
    assert_eq!(asks[1].output_tokens_max, 2 * asks[0].output_tokens_max);
    assert!(user_text(&asks[1]).contains("cut off"));
    assert_eq!(outcome.output_tokens, 50);
    let mut narrow = order(&export());
    narrow.limits.answer_tokens_max = narrow.limits.answer_tokens;
    let (_, asks) = play(narrow, vec![truncated(), GOOD.into()]);
    assert_eq!(asks[1].output_tokens_max, asks[0].output_tokens_max);
}

#[test]
fn waits_grow_and_respect_the_providers_delay() {
    let (_, asks) = play(
        order(&export()),
        vec![
            FailureClass::Server.into(),
            CallFailure {
                class: FailureClass::RateLimit,
                retry_after_ms: Some(50_000),
            }
            .into(),
            GOOD.into(),
        ],
    );
    let waits: Vec<u64> = asks.iter().map(|ask| ask.wait_ms).collect();
    assert_eq!(waits, [0, 1_000, 50_000]);
}

#[test]
fn a_model_that_asks_for_a_long_wait_is_not_waited_for() {
    let full = || {
        Reply::Fails(CallFailure {
            class: FailureClass::RateLimit,
            retry_after_ms: Some(60_001),
        })
    };
    let (outcome, asks) = play(order(&export()), vec![full()]);
    assert_eq!((asks.len(), reasons(&outcome)), (1, vec!["rate_limit"]));

    let mut with_other = order(&export());
    with_other.has_fallback = true;
    let (outcome, asks) = play(with_other, vec![full(), GOOD.into()]);
    let asked: Vec<_> = asks.iter().map(|ask| (ask.slot, ask.wait_ms)).collect();
    assert_eq!(asked, [(ModelSlot::Main, 0), (ModelSlot::Fallback, 0)]);
    assert!(matches!(outcome.made_by, Maker::Model { .. }));
}

#[test]
fn an_update_without_new_messages_sends_no_request() {
    let messages = export();
    let first = order(&messages);
    let again = Order {
        messages: Vec::new().into(),
        first_index: messages.len(),
        prior: Some(first.draft.clone()),
        ..first
    };
    let (outcome, asks) = play(again, Vec::new());
    assert!(asks.is_empty());
    assert_eq!(reasons(&outcome), ["nothing_new"]);
}

#[test]
fn after_the_end_nothing_changes() {
    let mut job = Job::new(order(&export()));
    job.answer(&Answer::finished(GOOD));
    let Step::Done(before) = job.step() else {
        panic!()
    };
    let before = before.clone();
    job.answer(&Answer::finished("## Goal\nsomething else"));
    job.failed(CallFailure::new(FailureClass::Overflow));
    assert_eq!(job.into_outcome(), Some(before));
}

#[test]
fn a_schema_goes_with_json_only() {
    for (form, has_schema) in [(Form::Document, true), (Form::Markdown, false)] {
        for is_structured in [false, true] {
            let job = Job::new(Order {
                form,
                is_structured,
                ..order(&export())
            });
            let Step::Ask(ask) = job.step() else { panic!() };
            assert_eq!(
                ask.schema.is_some(),
                has_schema && is_structured,
                "{form:?}"
            );
            let job = Job::new(Order {
                form,
                is_structured,
                style: Style::PrefixSharing,
                ..order(&export())
            });
            let Step::Ask(ask) = job.step() else { panic!() };
            assert_eq!(ask.schema, None, "the live request stays as it is");
        }
    }
}

#[test]
fn overrides_are_used() {
    let prompts = Prompts::embedded()
        .with_override(
            "first",
            "LOOK {{ transcript }} DO {{ form }} IN {{ language }}",
        )
        .unwrap();
    let job = Job::new(Order {
        prompts,
        language: Some("deu".to_owned()),
        ..order(&export())
    });
    let Step::Ask(ask) = job.step() else { panic!() };
    assert!(user_text(ask).starts_with("LOOK <transcript>\n[1] user:\n"));
    assert!(user_text(ask).ends_with(" IN German"));
}

#[test]
fn a_copy_of_the_request_is_refused() {
    for style in [Style::Forked, Style::PrefixSharing] {
        let order = Order {
            style,
            ..order(&export())
        };
        let (outcome, _) = drive(Job::new(order), |ask| {
            Answer::finished(format!("## User Intent\n{}", user_text(ask))).into()
        });
        let reasons = reasons(&outcome);
        assert!(
            reasons.iter().all(|reason| *reason != "no_structure"),
            "{reasons:?}"
        );
        assert_eq!(reasons.len(), 3);
        let shown = text_of(&outcome.memory);
        assert!(!shown.contains("Copy names, paths"), "{shown}");
    }
    let (outcome, _) = drive(Job::new(order(&export())), |ask| {
        let asked = user_text(ask);
        let instructions = asked.split("</transcript>").nth(1).unwrap();
        Answer::finished(format!("## User Intent\n- CSV export\n{instructions}")).into()
    });
    assert_eq!(reasons(&outcome), ["copies_prompt"; 3]);
}
