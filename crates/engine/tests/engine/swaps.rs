//! When a memory is made and when it is swapped in.

use throughline_engine::{
    BuildKind, CompactionSettings, CompactorChoice, DueReason, EconomyRule, EngineEvent, Fallback,
    Halt, Input, Mark, Mode, Phase, SkipReason, VersionOrigin,
};

use super::messages::prose;
use super::model::Model;
use super::world::{World, settings};

/// A window of 20,000: 18,000 usable, soft mark 9,000, hard mark 14,400.
fn small() -> CompactionSettings {
    settings(20_000)
}

/// A turn of about this many tokens.
fn turn(world: &mut World, seed: u64, tokens: usize) {
    let user = if seed.is_multiple_of(10) {
        format!("Question {seed}: please never rename table t{seed}.")
    } else {
        format!("Question {seed}: what does table t{seed} hold?")
    };
    world.turn(&user, &prose(seed, tokens * 9 / 10));
}

fn grown_to(world: &mut World, tokens: u64) {
    let mut seed = 1_000 + world.archive.len() as u64;
    while world.engine.status().tokens < tokens {
        turn(world, seed, 900);
        seed += 1;
    }
}

#[track_caller]
fn swapped(world: &World) -> (DueReason, VersionOrigin, Option<BuildKind>) {
    match world.last_swap() {
        Some(EngineEvent::Swapped {
            reason,
            origin,
            waited_for,
            ..
        }) => (*reason, *origin, *waited_for),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_soft_mark_starts_a_draft_and_growth_another() {
    let mut world = World::new(small());
    grown_to(&mut world, 8_000);
    assert_eq!(world.draft_orders.len(), 0);
    grown_to(&mut world, 9_000);
    assert_eq!(world.draft_orders.len(), 1);
    assert!(matches!(
        world.events[0],
        EngineEvent::BuildStarted {
            reason: DueReason::SoftMark,
            kind: BuildKind::Draft,
            ..
        }
    ));
    // A step is a tenth of the window; after an answer half of it is enough.
    grown_to(&mut world, 9_950);
    grown_to(&mut world, 10_950);
    assert_eq!(world.draft_orders.len(), 2);
    assert_eq!(
        world.count(|event| matches!(
            event,
            EngineEvent::BuildStarted {
                reason: DueReason::Grown,
                ..
            }
        )),
        1
    );
    assert_eq!(world.swaps(), 0);
}

#[test]
fn the_hard_mark_swaps_what_is_ready_without_a_wait() {
    let mut world = World::new(small());
    grown_to(&mut world, 14_400);
    assert_eq!(world.swaps(), 0);
    world.user("Go on.");
    let sent = world.request();
    assert_eq!(
        swapped(&world),
        (DueReason::HardMark, VersionOrigin::Draft, None)
    );
    assert!(
        sent.plan.first > 0 && sent.plan.tokens < 9_000,
        "{:?}",
        sent.plan
    );
    assert!(world.waits.is_empty());
}

#[test]
fn a_context_that_jumps_over_both_marks_waits_for_a_draft_only() {
    let mut world = World::new(small());
    world.holds_drafts = true;
    for seed in 0..8 {
        world.user(&prose(seed, 10));
        world.assistant(&prose(seed, 1_800));
    }
    world.user("And now?");
    world.input(Input::RequestWanted);
    assert!(world.sent.is_empty());
    assert_eq!(world.waits, [BuildKind::Draft]);
    world.holds_drafts = false;
    let order = world.drafts.pop_front().unwrap();
    world.answer_draft(order);
    // What was drafted at the soft mark leaves too much, so another one is waited for.
    world.input(Input::PhaseEnded);
    assert_eq!(world.sent.len(), 1);
    assert!(world.sent[0].plan.first > 0);
    assert!(world.waits.iter().all(|kind| *kind == BuildKind::Draft));
}

#[test]
fn the_memory_of_the_model_is_preferred_to_the_draft() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..small()
    });
    grown_to(&mut world, 14_400);
    world.wait(60_000);
    world.user("Go on.");
    world.request();
    assert_eq!(
        swapped(&world),
        (DueReason::HardMark, VersionOrigin::Model, None)
    );
    assert!(world.waits.is_empty());
}

#[test]
fn a_model_that_is_late_is_not_waited_for() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..small()
    });
    world.latency_ms = 10_000_000;
    grown_to(&mut world, 14_400);
    world.user("Go on.");
    world.request();
    assert_eq!(
        swapped(&world),
        (DueReason::HardMark, VersionOrigin::Draft, None)
    );
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::FellBack { .. })),
        1
    );
}

#[test]
fn a_memory_of_the_model_that_leaves_too_much_gives_way() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..small()
    });
    world.model_script = [Model::Good, Model::Silent, Model::Silent].into();
    grown_to(&mut world, 9_000);
    world.wait(60_000);
    assert!(world.engine.status().ready_cover.is_some());
    world.latency_ms = 10_000_000;
    turn(&mut world, 50, 8_500);
    world.user("Go on.");
    let sent = world.request();
    assert_eq!(swapped(&world).1, VersionOrigin::Draft);
    assert!(sent.plan.tokens < 9_000, "{}", sent.plan.tokens);
}

#[test]
fn traditional_compaction_waits_for_the_model_up_to_its_limit() {
    for (latency_ms, origin, kind) in [
        (20_000, VersionOrigin::Model, BuildKind::Model),
        (500_000, VersionOrigin::Draft, BuildKind::Model),
    ] {
        let mut world = World::new(CompactionSettings {
            mode: Mode::Traditional,
            compactor: CompactorChoice::Model,
            ..small()
        });
        world.latency_ms = latency_ms;
        grown_to(&mut world, 12_600);
        assert_eq!(world.draft_orders.len(), 0, "nothing is made beforehand");
        let before = world.now;
        world.user("Go on.");
        world.request();
        assert_eq!(
            swapped(&world),
            (DueReason::Threshold, origin, Some(kind)),
            "{latency_ms}"
        );
        assert_eq!(world.now - before, latency_ms.min(180_000));
        assert_eq!(world.waits, [BuildKind::Draft, BuildKind::Model]);
    }
}

#[test]
fn traditional_compaction_by_code_waits_for_the_draft() {
    let mut world = World::new(CompactionSettings {
        mode: Mode::Traditional,
        ..small()
    });
    grown_to(&mut world, 12_600);
    world.user("Go on.");
    world.request();
    assert_eq!(
        swapped(&world),
        (
            DueReason::Threshold,
            VersionOrigin::Draft,
            Some(BuildKind::Draft)
        )
    );
}

#[test]
fn without_a_draft_to_fall_back_on_the_history_is_kept() {
    for mode in [Mode::Instant, Mode::Traditional] {
        let mut world = World::new(CompactionSettings {
            mode,
            compactor: CompactorChoice::Model,
            fallback: Fallback::KeepHistory,
            ..small()
        });
        world.model = Model::Fails("overloaded", None);
        grown_to(&mut world, 15_000);
        for seed in 0..3 {
            turn(&mut world, seed, 200);
        }
        assert_eq!(world.swaps(), 0, "{mode:?}");
        assert_eq!(world.sent.last().unwrap().plan.first, 0);
        let skipped = world.count(|event| {
            matches!(
                event,
                EngineEvent::Skipped {
                    reason: SkipReason::NotReady,
                    ..
                }
            )
        });
        assert!(skipped <= 1, "{mode:?} said {skipped} times");
    }
}

#[test]
fn failures_in_a_row_rest_the_model_and_are_reported_once() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..settings(60_000)
    });
    world.model = Model::Fails("overloaded", None);
    world.latency_ms = 10;
    grown_to(&mut world, 43_000);
    let asked = world.update_orders.len();
    assert_eq!(asked, 3);
    assert_eq!(
        world.count(|event| matches!(
            event,
            EngineEvent::Halted(Halt::Failures { in_a_row: 3, .. })
        )),
        1
    );
    assert!(world.engine.status().halt.is_some());
    world.model = Model::Good;
    world.wait(11 * 60 * 1000);
    let mut seed = 0;
    while world.update_orders.len() == asked {
        assert!(seed < 60);
        turn(&mut world, seed, 900);
        seed += 1;
    }
    world.wait(60_000);
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::Resumed)),
        1
    );
    assert_eq!(world.engine.status().halt, None);
}

#[test]
fn a_retry_after_of_the_provider_is_respected() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..settings(60_000)
    });
    world.model = Model::Fails("rate-limit", Some(3_600_000));
    world.latency_ms = 10;
    grown_to(&mut world, 38_000);
    assert!(world.draft_orders.len() > 1);
    assert_eq!(world.update_orders.len(), 1);
    world.settings.economy.rule = EconomyRule::HardMarkOnly;
    world.configure(|_| {});
    world.wait(3_600_000);
    world.model = Model::Good;
    grown_to(&mut world, 44_000);
    assert!(world.update_orders.len() > 1);
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::Halted(_))),
        0
    );
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::Resumed)),
        0
    );
}

#[test]
fn too_little_gain_halts_once_until_there_is_more() {
    let mut world = World::new(small());
    // The latest request alone is above the mark.
    world.user("Hello.");
    world.assistant("Yes?");
    world.user(&prose(1, 14_000));
    for _ in 0..5 {
        world.request();
        world.assistant("Yes.");
        world.user("Again.");
    }
    let halts = world.count(|event| matches!(event, EngineEvent::Halted(Halt::NoGain { .. })));
    assert_eq!(halts, 1, "{:#?}", world.events);
    assert_eq!(world.sent.len(), 5);
}

#[test]
fn overhead_above_the_mark_is_reported_once() {
    for hard in [Mark::Tokens(16_000), Mark::Permille(800)] {
        let mut world = World::new(CompactionSettings { hard, ..small() });
        world.overhead(17_900, 70_000);
        for seed in 0..6 {
            world.turn(&format!("Question {seed}."), "An answer of some words.");
            world.overhead(17_900, 70_000);
        }
        assert_eq!(
            world.count(|event| matches!(event, EngineEvent::Halted(_))),
            1
        );
        assert_eq!(
            world.count(|event| matches!(event, EngineEvent::Resumed)),
            0
        );
        assert!(world.draft_orders.is_empty());
        world.overhead(1_000, 4_000);
        assert_eq!(
            world.count(|event| matches!(event, EngineEvent::Resumed)),
            1
        );
    }
}

#[test]
fn turns_calls_and_phases_are_reasons_of_their_own() {
    let check = |change: &dyn Fn(&mut CompactionSettings),
                 act: &dyn Fn(&mut World),
                 expected: DueReason| {
        let mut settings = small();
        change(&mut settings);
        let mut world = World::new(settings);
        for seed in 0..3 {
            turn(&mut world, seed, 1_500);
        }
        act(&mut world);
        for seed in 10..13 {
            turn(&mut world, seed, 20);
        }
        assert!(
            world.count(
                |event| matches!(event, EngineEvent::Swapped { reason, .. } if *reason == expected)
            ) == 1,
            "{expected:?}: {:#?}",
            world.events
        );
    };
    check(
        &|settings| settings.triggers.turns = Some(4),
        &|_| {},
        DueReason::Turns(4),
    );
    check(
        &|settings| settings.triggers.tool_calls = Some(2),
        &|world| {
            world.user("Look.");
            world.call(&["a", "b"]);
            world.results(&[("a", "one"), ("b", "two")]);
            world.request();
            world.answered("Done.");
        },
        DueReason::ToolCalls(2),
    );
    check(
        &|settings| settings.triggers.phases = true,
        &|world| {
            world.user("Commit.");
            world.call(&["a"]);
            world.results(&[("a", "[main 1a2b3c4] Read dates\n 2 files changed")]);
            world.request();
            world.answered("Done.");
        },
        DueReason::Phase(Phase::Commit),
    );
    check(
        &|_| {},
        &|world| world.input(Input::PhaseEnded),
        DueReason::Phase(Phase::Announced),
    );
    check(
        &|settings| {
            settings.mode = Mode::Traditional;
            settings.triggers.turns = Some(4);
        },
        &|_| {},
        DueReason::Turns(4),
    );
}

#[test]
fn short_turns_neither_swap_nor_halt() {
    let mut world = World::new(CompactionSettings {
        mode: Mode::Traditional,
        ..settings(100_000)
    });
    for seed in 0..130 {
        turn(&mut world, seed, 20);
    }
    assert_eq!(world.swaps(), 0);
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::Halted(_))),
        0
    );
    assert!(world.waits.is_empty());
    let skipped = world.count(|event| matches!(event, EngineEvent::Skipped { .. }));
    assert!((1..=3).contains(&skipped), "{skipped}");
}

#[test]
fn a_smaller_window_swaps_before_the_next_request() {
    let mut world = World::new(settings(200_000));
    grown_to(&mut world, 40_000);
    world.configure(|settings| {
        let smaller = CompactionSettings::new(32_000);
        settings.window = smaller.window;
        settings.output_reserve = smaller.output_reserve;
        settings.memory_tokens_max = smaller.memory_tokens_max;
    });
    world.user("Go on.");
    let sent = world.request();
    assert_eq!(world.swaps(), 1);
    assert!(!sent.plan.is_too_large && sent.plan.tokens < 15_000);
}

#[test]
fn an_overflow_shrinks_and_teaches_the_window() {
    for window in [Some(30_000), None] {
        let mut world = World::new(settings(200_000));
        grown_to(&mut world, 40_000);
        world.user("Go on.");
        world.request();
        world.input(Input::Overflowed { window });
        let sent = world.request();
        assert_eq!(swapped(&world).0, DueReason::Overflow);
        assert!(sent.plan.tokens < 25_000);
        assert_eq!(
            world.count(|event| matches!(event, EngineEvent::WindowLearned { .. })),
            usize::from(window.is_some())
        );
    }
}

#[test]
fn overflows_without_remedy_end() {
    let mut world = World::new(small());
    world.user(&prose(1, 3_000));
    for _ in 0..4 {
        world.request();
        world.input(Input::Overflowed { window: None });
    }
    assert_eq!(world.sent.len(), 4);
    assert_eq!(world.swaps(), 0);
}

#[test]
fn a_cold_cache_allows_a_swap_above_the_soft_mark() {
    for (tokens, minutes, rule, swaps) in [
        (10_500, 6, EconomyRule::WhenCold, 1),
        (10_500, 4, EconomyRule::WhenCold, 0),
        (8_000, 60, EconomyRule::WhenCold, 0),
        (10_500, 60, EconomyRule::HardMarkOnly, 0),
        (
            10_500,
            0,
            EconomyRule::WhenItPays {
                margin_permille: 1000,
            },
            1,
        ),
    ] {
        let mut settings = small();
        settings.economy.rule = EconomyRule::HardMarkOnly;
        let mut world = World::new(settings);
        grown_to(&mut world, tokens);
        world.configure(|settings| settings.economy.rule = rule);
        world.wait(minutes * 60_000);
        world.user("Go on.");
        world.request();
        assert_eq!(world.swaps(), swaps, "{tokens} {minutes} {rule:?}");
        if swaps > 0 {
            let expected = match rule {
                EconomyRule::WhenCold => DueReason::Cold,
                _ => DueReason::Pays,
            };
            assert_eq!(swapped(&world).0, expected);
        }
    }
}

#[test]
fn mode_off_changes_nothing() {
    let mut world = World::new(CompactionSettings {
        mode: Mode::Off,
        ..small()
    });
    grown_to(&mut world, 19_000);
    world.user("Go on.");
    let sent = world.request();
    assert!(sent.plan.is_too_large);
    assert!(world.events.is_empty(), "{:?}", world.events);
    world.configure(|settings| settings.mode = Mode::Instant);
    world.request();
    assert_eq!(world.swaps(), 1);
    world.configure(|settings| settings.mode = Mode::Off);
    let before = world.events.len();
    world.user("More.");
    let sent = world.request();
    assert!(sent.plan.memory.is_some());
    assert_eq!(world.events.len(), before);
}

#[test]
fn switching_off_releases_a_waiting_request() {
    let mut world = World::new(CompactionSettings {
        mode: Mode::Traditional,
        ..small()
    });
    grown_to(&mut world, 12_600);
    world.holds_drafts = true;
    world.user("Go on.");
    let count = world.sent.len();
    world.input(Input::RequestWanted);
    assert_eq!(world.sent.len(), count);
    world.configure(|settings| settings.mode = Mode::Off);
    assert_eq!(world.sent.len(), count + 1);
}

#[test]
fn the_provider_counts_more_than_the_estimate() {
    let mut world = World::new(small());
    world.factor = 1_800;
    for seed in 0..40 {
        turn(&mut world, seed, 700);
        let sent = world.sent.last().unwrap();
        assert!(sent.tokens < 18_000, "{}", sent.tokens);
    }
    assert!(world.swaps() >= 2);
    assert!(world.waits.is_empty());
}

#[test]
fn a_report_of_a_truncated_prompt_is_ignored() {
    let mut world = World::new(small());
    grown_to(&mut world, 8_000);
    let tokens = world.engine.status().tokens;
    world.factor = 200;
    world.turn("Go on.", "Yes.");
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::SeemsCut { .. })),
        1
    );
    assert!(world.engine.status().tokens > tokens);
}
