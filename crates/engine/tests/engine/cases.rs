//! Histories that are known to go wrong elsewhere, with their right outcome.

use throughline_engine::{
    CompactionOutcome, CompactionSettings, CompactorChoice, EconomyRule, EngineEvent, Fallback,
    Halt, Input, Mark, SwapTiming, UpdateFailure,
};
use throughline_transcript::check::{CheckOptions, Profile, check_text};
use throughline_transcript::cut::TailBegins;
use throughline_transcript::json::Raw;
use throughline_transcript::request::message;
use throughline_transcript::wire::Wire;

use super::messages::prose;
use super::model::Model;
use super::world::{Sent, World, settings};

/// A window of 8,000 without a reserve; compaction from the half on.
fn half_full() -> CompactionSettings {
    let mut settings = settings(8_000);
    settings.output_reserve = 0;
    settings.hard = Mark::Permille(500);
    settings.soft = Mark::Permille(300);
    settings.economy.rule = EconomyRule::HardMarkOnly;
    settings
}

fn raw(text: &str) -> Raw {
    Raw::parse(text).unwrap()
}

fn lines(prefix: &str, count: usize) -> String {
    (0..count).map(|n| format!("{prefix}{n}\\n")).collect()
}

/// The request after the messages; the world checks it by the provider's rules.
fn request_after(world: &mut World, messages: &[Raw]) -> Sent {
    world.append_all(messages);
    let sent = world.request();
    assert!(world.swaps() > 0, "{:#?}", world.events);
    sent
}

fn call(id: &str, command: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"shell","input":{{"cmd":"{command}"}}}}"#)
}

fn result(id: &str, text: &str) -> Raw {
    raw(&format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}]}}"#
    ))
}

fn said(text: &str, call: &str) -> Raw {
    raw(&format!(
        r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}},{call}]}}"#
    ))
}

fn user(text: &str) -> Raw {
    message::user(Wire::Anthropic, text)
}

fn assistant(text: &str) -> Raw {
    message::assistant(Wire::Anthropic, text)
}

#[test]
fn c01_a_cut_never_splits_a_pair() {
    let mut world = World::new(half_full());
    let last = user("Good. Change it and add a regression test.");
    let sent = request_after(
        &mut world,
        &[
            user("Dates like 31.12.24 are read as 1931. Find out why."),
            said(
                "I look at the parser first.",
                &call("t1", "cat src/dates.rs"),
            ),
            result("t1", &lines("line ", 1_200)),
            said("The pivot year looks odd.", &call("t2", "grep PIVOT")),
            result(
                "t2",
                &"src/dates.rs:41: const PIVOT: u16 = 20;\\n".repeat(480),
            ),
            said("One more check.", &call("t3", "cargo test dates")),
            result("t3", "3 passed; 1 failed: two_digit_year"),
            assistant("The pivot 20 must become 50."),
            last.clone(),
        ],
    );
    assert!(sent.body.ends_with(&format!("{}]}}", last.as_str())));
    assert_eq!(
        sent.body.matches(r#""tool_use_id":"t3""#).count(),
        sent.body.matches(r#""id":"t3""#).count()
    );
}

#[test]
fn c02_a_call_that_was_lost_is_covered_or_kept_but_never_answered_by_us() {
    let mut world = World::new(half_full());
    world.append_all(&[
        user("Rename module billing to invoicing everywhere."),
        raw(&format!(
            r#"{{"role":"assistant","content":[{}]}}"#,
            call("t1", "grep billing")
        )),
        result("t1", &"src/app.rs: use billing::Total;\\n".repeat(800)),
        said(
            "Now I move the folder.",
            &call("t2", "git mv src/billing src/invoicing"),
        ),
        user("The terminal was closed by accident. Please go on."),
    ]);
    // The transcript is broken; the writer of the request repairs it. The memory must not say that the move succeeded,
    // and the pair stays where the repair finds it.
    let sent = world.request();
    assert!(sent.plan.first <= 3);
    assert!(
        sent.body
            .contains("The terminal was closed by accident. Please go on.")
    );
    assert!(
        !sent
            .plan
            .memory
            .as_deref()
            .unwrap_or_default()
            .contains("git mv")
    );
}

#[test]
fn c03_a_parallel_batch_is_one_unit() {
    let mut world = World::on(Wire::OpenAiChat, half_full());
    let tool = |id: &str, text: &str| {
        raw(&format!(
            r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#
        ))
    };
    let function = |id: &str| {
        format!(
            r#"{{"id":"{id}","type":"function","function":{{"name":"shell","arguments":"{{}}"}}}}"#
        )
    };
    let notes = "web is built at night. ".repeat(1_400);
    let wire = Wire::OpenAiChat;
    for keep in [1, 30, 45, 60, 400] {
        world = World::on(
            wire,
            CompactionSettings {
                keep: Mark::Tokens(keep),
                ..half_full()
            },
        );
        let sent = request_after(
            &mut world,
            &[
                message::user(
                    wire,
                    &format!("Check the three services and tell me which is behind. {notes}"),
                ),
                raw(&format!(
                    r#"{{"role":"assistant","content":null,"tool_calls":[{},{},{}]}}"#,
                    function("call_a"),
                    function("call_b"),
                    function("call_c")
                )),
                tool("call_a", "4.2.0"),
                tool("call_b", "4.2.0"),
                tool("call_c", "4.1.7"),
                message::assistant(wire, "jobs is behind: 4.1.7 against 4.2.0."),
                message::user(wire, "Update jobs, please."),
            ],
        );
        let answers = sent.body.matches(r#""role":"tool""#).count();
        assert!(answers == 0 || answers == 3, "{keep}: {answers}");
        assert_eq!(
            answers,
            sent.body
                .matches(r#""type":"function","function":{"name":"shell","arguments""#)
                .count()
        );
    }
    assert_eq!(world.wire(), wire);
}

#[test]
fn c05_an_open_tool_turn_leaves_byte_for_byte() {
    let mut world = World::new(half_full());
    let open = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"The scan is on events. I check the statistics.","signature":"sig-BBB2"},{"type":"tool_use","id":"t2","name":"shell","input":{"cmd":"stats events"}}]}"#;
    let sent = request_after(
        &mut world,
        &[
            user("Why is the nightly job slow?"),
            raw(
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Earlier idea: the index is missing.","signature":"sig-AAA1"},{"type":"text","text":"I read the plan first."},{"type":"tool_use","id":"t1","name":"shell","input":{"cmd":"explain nightly"}}]}"#,
            ),
            result("t1", &"Seq Scan on events  rows=90000\\n".repeat(900)),
            raw(open),
            result("t2", "n_dead_tup=88000"),
        ],
    );
    assert!(sent.body.contains(open));
    assert!(
        sent.plan
            .memory
            .unwrap()
            .contains("Why is the nightly job slow?")
    );
    assert!(!sent.body.contains("sig-AAA1"));
}

#[test]
fn c11_strict_alternation() {
    let wire = Wire::OpenAiChat;
    let mut world = World::on(
        wire,
        CompactionSettings {
            tail_begins: TailBegins::WithUser,
            keep: Mark::Tokens(100),
            ..half_full()
        },
    );
    let sent = request_after(
        &mut world,
        &[
            message::user(wire, "Open the German price page."),
            message::assistant(wire, &"The page lists plan S and plan M. ".repeat(1_400)),
            message::user(wire, "What does plan M cost?"),
            message::assistant(wire, "19 EUR."),
            message::user(wire, "And per year?"),
        ],
    );
    let report = check_text(
        &sent.body,
        wire,
        &CheckOptions {
            profile: Profile::StrictAlternation,
            ..CheckOptions::default()
        },
    );
    assert!(report.is_valid(), "{report:#?}");
    assert_eq!(sent.body.matches(r#""role":"system""#).count(), 1);
    assert!(sent.body.contains("You are a helper.\\n\\n<session_memory"));
    assert!(
        sent.body
            .ends_with(r#"{"role":"user","content":"And per year?"}]}"#)
    );
}

#[test]
fn c20_bodies_stay_below_the_limit_although_tokens_are_few() {
    // A tenth of the provider's 32 MB, and of what screenshots have.
    const LIMIT: u64 = 3_200 * 1024;
    let mut world = World::new(CompactionSettings {
        body_bytes_max: Some(LIMIT),
        ..settings(200_000)
    });
    let data = "QUJD".repeat(75_000);
    for shot in 1..=24 {
        world.append(&raw(&format!(
            r#"{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/jpeg","data":"{data}"}}}},{{"type":"text","text":"Screenshot {shot}"}}]}}"#
        )));
        let sent = world.request();
        assert!(
            (sent.body.len() as u64) < LIMIT * 9 / 10,
            "{shot}: {}",
            sent.body.len()
        );
        assert!(sent.body.contains(&format!("Screenshot {shot}")));
        world.answered(&format!("Seen {shot}."));
    }
    assert!((2..=6).contains(&world.swaps()), "{}", world.swaps());
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::Halted(_))),
        0
    );
    assert!(world.waits.is_empty());
}

#[test]
fn c23_overhead_above_the_trigger_is_reported_once() {
    for compactor in [CompactorChoice::Extractive, CompactorChoice::Model] {
        let mut world = World::new(CompactionSettings {
            hard: Mark::Tokens(16_000),
            compactor,
            ..settings(20_000)
        });
        world.overhead(17_800, 72_000);
        world.user("Hi.");
        world.assistant("Hello.");
        world.user("List the files.");
        world.request();
        for _ in 0..10 {
            world.answered("a.txt b.txt");
            world.user("Again.");
            let sent = world.request();
            assert_eq!((sent.plan.first, sent.plan.memory), (0, None));
        }
        assert!(world.draft_orders.len() + world.update_orders.len() <= 1);
        assert_eq!(
            world.count(|event| matches!(
                event,
                EngineEvent::Halted(Halt::Overhead {
                    overhead: 17_800,
                    ..
                })
            )),
            1
        );
        assert!(matches!(
            world.engine.status().halt,
            Some(Halt::Overhead { .. })
        ));
    }
}

#[test]
fn c30_messages_after_the_mark_stay_verbatim() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        soft: Mark::Tokens(1_500),
        hard: Mark::Tokens(1_900),
        keep: Mark::Tokens(100),
        ..settings(4_000)
    });
    world.user("Write a parser for the INI format.");
    world.assistant(&"Parser code line. ".repeat(350));
    world.user("Support comments with #.");
    world.request();
    world.assistant("Comments work.");
    world.input(Input::PhaseEnded);
    world.user("Correction: comments begin with ; and not with #.");
    let order = world.update_orders.last().expect("an update runs").clone();
    world.append(&said("Changed to ;.", &call("t1", "cargo test")));
    world.append(&result("t1", "12 passed"));
    world.wait(30_000);
    world.assistant("All 12 tests pass.");
    world.user(&format!("Add sections. {}", "As before. ".repeat(150)));
    let calls = world.update_orders.len();
    let sent = world.request();
    assert_eq!(world.swaps(), 1);
    assert_eq!(world.update_orders.len(), calls, "the swap calls no model");
    assert_eq!(sent.plan.first, order.order.cover());
    let tail: Vec<_> = world.messages_of(&sent.plan);
    assert_eq!(tail.len(), world.archive.len() - sent.plan.first);
    assert!(
        tail.iter()
            .any(|raw| raw.as_str().contains("Correction: comments begin"))
    );
}

#[test]
fn c32_appends_and_a_clear_while_compactions_run() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..settings(20_000)
    });
    world.is_rude = true;
    world.user("Task A");
    world.assistant(&"work on A ".repeat(600));
    let first = world.compact(None, SwapTiming::AtOnce);
    world.user("Also B");
    let second = world.compact(None, SwapTiming::AtOnce);
    world.wait(30_000);
    assert!(matches!(
        world.outcome(first),
        CompactionOutcome::Committed { .. }
    ));
    assert_eq!(world.outcome(second), CompactionOutcome::Joined);
    assert!(world.request().body.contains("Also B"));
    world.answered(&"work on B ".repeat(600));
    let third = world.compact(None, SwapTiming::AtOnce);
    world.clear();
    world.user("Fresh start");
    world.wait(30_000);
    assert_eq!(world.outcome(third), CompactionOutcome::Discarded);
    for _ in 0..2 {
        assert_eq!(world.engine.messages(), 1);
        assert_eq!(world.engine.status().version, None);
        world.restart();
    }
}

#[test]
fn c34_a_restart_after_two_compactions() {
    let mut world = World::new(CompactionSettings {
        keep: Mark::Tokens(60),
        ..settings(20_000)
    });
    world.user("Goal: port the tool to Windows.");
    world.assistant(&"path code ".repeat(500));
    world.user("Go on.");
    world.assistant("The answer that the first compaction keeps.");
    world.compact(None, SwapTiming::AtOnce);
    let first = world.engine.memory().unwrap().clone();
    assert!(first.cover() < world.archive.len());
    world.user("Paths with spaces too.");
    world.assistant(&"quoting code ".repeat(500));
    world.user("Keep exit code 3 for usage errors.");
    world.compact(None, SwapTiming::AtOnce);
    let order = world.draft_orders.last().unwrap();
    assert_eq!(order.prior.as_ref(), Some(&first));
    assert_eq!(
        order.first,
        first.cover(),
        "what the first one kept is read by the second"
    );
    world.assistant("Exit code 3 stays.");
    world.user("Next: colours.");
    let before = world.request();
    let orders = world.draft_orders.len();
    world.restart();
    let after = world.request();
    assert_eq!(before.body, after.body);
    assert_eq!(before.body.matches("<session_memory ").count(), 1);
    assert_eq!(world.draft_orders.len(), orders, "loading starts nothing");
}

#[test]
fn c37_ten_generations_of_a_summariser_that_only_adds() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        memory_tokens_max: 2_000,
        keep: Mark::Tokens(0),
        ..settings(60_000)
    });
    world.model = Model::Long(600);
    world.turn(
        "Base facts: the invoice number format must always be R-2024-####, the tax rate must stay 7.7 %, the owner must remain team Falcon.",
        "Noted.",
    );
    for round in 0..10 {
        world.turn(
            &format!(
                "Round {round}: limit is {round}00. {}",
                "filler words for this round ".repeat(200)
            ),
            &format!("Round {round} done."),
        );
        let id = world.compact(None, SwapTiming::AtOnce);
        world.wait(30_000);
        assert!(
            matches!(world.outcome(id), CompactionOutcome::Committed { .. }),
            "{round}"
        );
        let version = world.engine.memory().unwrap();
        assert!(version.tokens <= 2_000, "{round}: {}", version.tokens);
        assert_eq!(version.text.matches("<session_memory ").count(), 1);
    }
    let text = &world.engine.memory().unwrap().text;
    for fact in ["R-2024-####", "7.7 %", "team Falcon"] {
        assert!(text.contains(fact), "{fact} is not in {text}");
    }
}

#[test]
fn c38_the_prefix_is_stable_while_memories_are_made() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        soft: Mark::Tokens(200),
        keep: Mark::Tokens(50),
        ..settings(8_000)
    });
    world.configure(|settings| {
        settings.step.tokens = Some(1);
        settings.economy.rule = EconomyRule::HardMarkOnly;
    });
    world.user("Start.");
    world.assistant(&"Long first answer. ".repeat(700));
    world.user("Step 1.");
    world.compact(None, SwapTiming::AtOnce);
    world.wait(30_000);
    let first = world.request();
    for step in 0..6 {
        world.answered(&format!("Did step {step}. {}", prose(step, 60)));
        world.wait(61_000);
        world.user("Next step.");
        // That each request is a prefix of the next is checked by the world.
        let sent = world.request();
        assert_eq!(sent.plan.epoch, first.plan.epoch);
        assert_eq!(sent.plan.memory, first.plan.memory);
    }
    assert!(world.update_orders.len() > 1, "memories were made");
    assert!(world.kept.len() > 1, "and kept for the next swap");
}

#[test]
fn c39_a_focus_is_used_once() {
    let mut world = World::new(settings(60_000));
    world.user("Retry policy: 4 tries, 250 ms base, jitter.");
    world.assistant("Implemented in net/retry.rs.");
    world.user("Also restyle the buttons.");
    world.assistant(&"css rule ".repeat(800));
    let focus = "keep all numbers of the retry policy; drop the styling";
    world.compact(Some(focus), SwapTiming::AtOnce);
    assert_eq!(world.draft_orders[0].focus.as_deref(), Some(focus));
    world.user("Next topic: logging.");
    world.assistant(&"log setup ".repeat(800));
    world.compact(None, SwapTiming::AtOnce);
    assert_eq!(world.draft_orders[1].focus, None);
    assert_eq!(world.archive.len(), 6, "the command is no message");
    world.user("Go on.");
    let sent = world.request();
    assert!(!sent.body.contains("drop the styling"));
}

#[test]
fn x01_a_message_with_results_and_words_is_covered_as_a_whole() {
    let mut world = World::new(half_full());
    let sent = request_after(
        &mut world,
        &[
            user("Check the licence headers."),
            raw(&format!(
                r#"{{"role":"assistant","content":[{}]}}"#,
                call("t1", "grep SPDX")
            )),
            raw(&format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"{}"}},{{"type":"text","text":"Only src/, never vendor/."}}]}}"#,
                "src/a.rs: SPDX MIT\\n".repeat(1_600)
            )),
            assistant("All of src/ has headers."),
            user("Then add them to tests/."),
        ],
    );
    // Once as the latest request of the memory, once as a rule.
    assert_eq!(sent.body.matches("Only src/, never vendor/.").count(), 2);
    assert!(!sent.body.contains("tool_result"));
}

#[test]
fn x03_two_calls_of_one_id_stay_together() {
    // The writer of the request repairs what is broken; it finds both calls with both results, or neither.
    let mut world = World::new(half_full());
    world.is_broken = true;
    world.append_all(&[
        user(&format!(
            "Weather in Bern? Background: {}",
            "station list entry. ".repeat(1_500)
        )),
        raw(&format!(
            r#"{{"role":"assistant","content":[{},{}]}}"#,
            call("t1", "weather Bern"),
            call("t1", "weather Bern")
        )),
        raw(
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"4 C"},{"type":"tool_result","tool_use_id":"t1","content":"aborted","is_error":true}]}"#,
        ),
        assistant("4 degrees."),
        user("And in Basel?"),
    ]);
    let sent = world.request();
    let calls = sent.body.matches(r#""type":"tool_use""#).count();
    assert_eq!(calls, sent.body.matches(r#""type":"tool_result""#).count());
}

#[test]
fn x07_c08_c09_failed_updates_are_no_memories() {
    let table = [
        Model::Fails("tool-call", None),
        Model::Empty,
        Model::Fails("overloaded", Some(0)),
        Model::Fails("rate-limit", Some(1_000)),
        Model::OtherCover,
    ];
    for model in table {
        let mut world = World::new(CompactionSettings {
            compactor: CompactorChoice::Model,
            fallback: Fallback::KeepHistory,
            ..half_full()
        });
        world.model = model.clone();
        world.user("Keep the port at 8431.");
        world.assistant("Port stays 8431.");
        world.user(&"log: accepted connection\n".repeat(700));
        world.assistant("Nothing unusual in the log.");
        let id = world.compact(None, SwapTiming::AtOnce);
        world.wait(60_000);
        world.user("Restart the worker only.");
        let sent = world.request();
        assert!(
            matches!(world.outcome(id), CompactionOutcome::Refused { .. }),
            "{model:?}: {:?}",
            world.outcome(id)
        );
        assert_eq!(world.swaps(), 0, "{model:?}");
        assert_eq!((sent.plan.first, sent.plan.memory), (0, None));
        assert!(world.kept.is_empty() && world.adoption.is_none());
        assert!(world.count(|event| matches!(event, EngineEvent::Failed { .. })) >= 1);
        // Later attempts are allowed.
        world.model = Model::Good;
        world.wait(60_000);
        let id = world.compact(None, SwapTiming::AtOnce);
        world.wait(60_000);
        assert!(
            matches!(world.outcome(id), CompactionOutcome::Committed { .. }),
            "{model:?}"
        );
    }
}

#[test]
fn c09_no_call_is_made_before_the_provider_allows_it() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        fallback: Fallback::KeepHistory,
        ..settings(20_000)
    });
    world.latency_ms = 10;
    world.model = Model::Fails("rate-limit", Some(600_000));
    for seed in 0..18 {
        world.turn(&format!("Question {seed}."), &prose(seed, 900));
    }
    assert_eq!(world.update_orders.len(), 1);
    assert!(world.events.iter().any(|event| matches!(
        event,
        EngineEvent::Failed { reason: UpdateFailure { class, .. }, .. } if class.as_str() == "rate-limit"
    )));
    assert_eq!(world.swaps(), 0);
}
