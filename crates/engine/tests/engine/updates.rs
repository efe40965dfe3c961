//! What becomes of updates that come late, fail, or are no good.

use throughline_engine::{
    CompactionSettings, CompactorChoice, DropReason, EconomyRule, EngineEvent, Input, Mark, Mode,
    RefusalReason, SwapTiming, VersionOrigin,
};

use super::messages::prose;
use super::model::Model;
use super::world::{World, settings};

fn by_model(window: u64) -> CompactionSettings {
    let mut settings = settings(window);
    settings.compactor = CompactorChoice::Model;
    settings.keep = Mark::Tokens(500);
    settings.economy.rule = EconomyRule::HardMarkOnly;
    settings
}

fn more(world: &mut World, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        world.turn(&format!("Question {seed}."), &prose(seed, 900));
    }
}

fn dropped(world: &World, reason: DropReason) -> usize {
    world.count(|event| matches!(event, EngineEvent::Dropped { reason: why, .. } if *why == reason))
}

#[test]
fn an_update_from_before_a_swap_is_used_if_it_covers_more() {
    let mut world = World::new(by_model(60_000));
    world.latency_ms = 5_000;
    more(&mut world, 0..4);
    world.compact(None, SwapTiming::Preview);
    world.wait(5_000);
    let first = world.engine.status().ready_cover.unwrap();
    more(&mut world, 4..8);
    world.latency_ms = 600_000;
    world.configure(|settings| settings.soft = Mark::Tokens(1_000));
    more(&mut world, 8..9);
    assert!(world.engine.status().is_updating);
    // The older memory is swapped in while the update runs.
    world.compact(None, SwapTiming::AtOnce);
    assert_eq!(world.engine.status().cover, first);
    assert!(world.engine.status().is_updating);
    world.wait(600_000);
    assert!(world.engine.status().ready_cover.unwrap() > first);
    assert_eq!(dropped(&world, DropReason::TwoSwaps), 0);
    let id = world.compact(None, SwapTiming::AtOnce);
    world.wait(600_000);
    assert!(matches!(
        world.outcome(id),
        throughline_engine::CompactionOutcome::Committed { .. }
    ));
    world.turn("Go on.", "Yes.");
}

/// What a request brings can be read from the provider's cache when its answer has begun: a model that is asked before
/// that would be paid for reading it a second time.
#[test]
fn a_model_is_asked_when_the_provider_has_begun_to_answer() {
    type Begin = fn(&mut World);
    let begins: [Begin; 2] = [
        |world| world.input(Input::AnswerBegun),
        // A driver that says it late.
        |world| world.answered("Done."),
    ];
    for begin in begins {
        let mut world = World::new(by_model(60_000));
        world.configure(|settings| settings.soft = Mark::Tokens(3_000));
        more(&mut world, 0..2);
        assert!(world.update_orders.is_empty());
        world.holds_drafts = true;
        world.user(&prose(2, 4_000));
        let sent = world.request();
        world.holds_drafts = false;
        world.answer_drafts();
        assert!(!world.engine.status().is_updating);
        begin(&mut world);
        assert_eq!(world.update_orders.len(), 1);
        assert_eq!(world.update_orders[0].live.end, sent.plan.end);
        // Once.
        world.input(Input::AnswerBegun);
        assert_eq!(world.update_orders.len(), 1);
    }
}

/// A requested memory does not wait for the provider.
#[test]
fn a_requested_memory_is_made_while_a_request_is_in_flight() {
    let mut world = World::new(by_model(60_000));
    more(&mut world, 0..4);
    world.user("Go on.");
    world.request();
    world.compact(None, SwapTiming::Preview);
    assert_eq!(world.update_orders.len(), 1);
}

#[test]
fn after_two_swaps_an_update_is_dropped_or_overtaken() {
    let mut world = World::new(by_model(60_000));
    world.is_rude = true;
    world.latency_ms = 10_000_000;
    world.configure(|settings| settings.soft = Mark::Tokens(3_000));
    more(&mut world, 0..6);
    assert_eq!(world.update_orders.len(), 1);
    world.configure(|settings| {
        settings.soft = Mark::Permille(500);
        settings.compactor = CompactorChoice::Extractive;
        settings.hard = Mark::Tokens(5_000);
    });
    more(&mut world, 6..40);
    assert!(world.swaps() >= 2);
    let (memory, cover) = (world.memory().clone(), world.engine.status().cover);
    let (_, order) = world.updates.remove(0);
    world.answer_update(&order);
    assert_eq!(
        (world.memory(), world.engine.status().cover),
        (&memory, cover)
    );
    assert!(dropped(&world, DropReason::Overtaken) + dropped(&world, DropReason::TwoSwaps) >= 1);
}

#[test]
fn unfit_memories_are_refused_with_a_reason() {
    type Is = fn(&RefusalReason) -> bool;
    let table: [(Model, Option<Is>); 4] = [
        (Model::Empty, Some(|reason| *reason == RefusalReason::Empty)),
        (
            Model::OtherCover,
            Some(|reason| *reason == RefusalReason::OtherCover),
        ),
        (Model::OtherHistory, None),
        (Model::Fails("overloaded", None), None),
    ];
    for (model, expected) in table {
        let mut world = World::new(by_model(60_000));
        more(&mut world, 0..4);
        world.model = model.clone();
        let stored = world.kept.len();
        let id = world.compact(None, SwapTiming::AtOnce);
        world.wait(60_000);
        let refused = world.count(|event| {
            matches!(event, EngineEvent::Refused { reason, .. } if expected.is_some_and(|is| is(reason)))
        });
        assert_eq!(refused, usize::from(expected.is_some()), "{model:?}");
        assert_eq!(
            world.count(|event| matches!(event, EngineEvent::Failed { .. })),
            1
        );
        // Only the draft is there.
        assert!(matches!(
            world.outcome(id),
            throughline_engine::CompactionOutcome::Committed { .. }
        ));
        assert_eq!(
            world.engine.memory().unwrap().origin,
            VersionOrigin::Draft,
            "{model:?}"
        );
        assert_eq!(world.kept.len(), stored + 1);
    }
}

#[test]
fn a_memory_that_is_longer_than_it_may_be_is_made_to_fit() {
    let mut world = World::new(by_model(60_000));
    more(&mut world, 0..8);
    world.model = Model::Long(5_000);
    world.compact(None, SwapTiming::AtOnce);
    world.wait(60_000);
    let version = world.engine.memory().unwrap();
    assert!(
        version.tokens <= world.settings.memory_tokens_max,
        "{}",
        version.tokens
    );
}

#[test]
fn a_memory_larger_than_what_it_covers_is_refused() {
    let mut settings = by_model(60_000);
    settings.memory_tokens_max = 50_000;
    let mut world = World::new(settings);
    more(&mut world, 0..3);
    world.model = Model::Long(20_000);
    world.compact(None, SwapTiming::AtOnce);
    world.wait(60_000);
    assert_eq!(
        world.count(|event| matches!(
            event,
            EngineEvent::Refused {
                reason: RefusalReason::NotSmaller { .. },
                ..
            }
        )),
        1
    );
    assert!(world.engine.memory().unwrap().tokens < 3_000);
}

#[test]
fn a_repeated_or_unordered_answer_is_dropped() {
    let mut world = World::new(by_model(60_000));
    more(&mut world, 0..4);
    world.compact(None, SwapTiming::AtOnce);
    let (_, order) = world.updates[0].clone();
    world.answer_update(&order);
    assert_eq!(world.swaps(), 1);
    let version = world.memory().version;
    world.answer_update(&order);
    world.wait(60_000);
    assert_eq!(world.memory().version, version);
    assert_eq!(dropped(&world, DropReason::NotOrdered), 2);
}

#[test]
fn settings_may_change_while_an_update_runs() {
    for change in [
        (|settings: &mut CompactionSettings| settings.compactor = CompactorChoice::Extractive)
            as fn(&mut CompactionSettings),
        |settings| settings.window = 30_000,
        |settings| settings.memory_tokens_max = 800,
        |settings| settings.mode = Mode::Traditional,
        |settings| {
            settings.counter = throughline_transcript::tokens::Counter::of_family(
                throughline_transcript::catalogue::TokenizerFamily::O200k,
            );
        },
    ] {
        let mut world = World::new(by_model(60_000));
        more(&mut world, 0..6);
        let id = world.compact(None, SwapTiming::AtOnce);
        world.configure(change);
        world.wait(60_000);
        assert!(matches!(
            world.outcome(id),
            throughline_engine::CompactionOutcome::Committed { .. }
        ));
        more(&mut world, 6..8);
        assert!(world.engine.memory().unwrap().tokens <= world.settings.memory_tokens_max);
    }
    // Switching off cancels what is being built.
    let mut world = World::new(by_model(20_000));
    more(&mut world, 0..11);
    assert!(world.engine.status().is_updating);
    world.configure(|settings| settings.mode = Mode::Off);
    assert!(!world.engine.status().is_updating);
    assert_eq!(dropped(&world, DropReason::Cancelled), 1);
}

#[test]
fn failing_drafts_are_not_retried_forever() {
    let mut world = World::new(settings(20_000));
    world.drafts_fail = true;
    more(&mut world, 0..15);
    let tried = world.draft_orders.len();
    for _ in 0..5 {
        world.turn("Again.", "Yes.");
    }
    assert!(tried <= 4 && world.draft_orders.len() == tried, "{tried}");
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::Halted(_))),
        1
    );
    world.drafts_fail = false;
    more(&mut world, 20..23);
    assert_eq!(world.swaps(), 1);
}

#[test]
fn fifty_chained_swaps_stay_in_the_window_and_keep_the_ledger() {
    for compactor in [CompactorChoice::Extractive, CompactorChoice::Model] {
        let mut world = World::new(CompactionSettings {
            compactor,
            memory_tokens_max: 1_200,
            ..settings(8_000)
        });
        world.model_script = (0..400)
            .map(|index| match index % 5 {
                3 => Model::Fails("overloaded", None),
                4 => Model::Long(300),
                _ => Model::Good,
            })
            .collect();
        world.turn(
            "Never rename the table invoices. The port must stay 8431.",
            "I will not.",
        );
        let mut seed = 0;
        while world.swaps() < 50 {
            assert!(seed < 600, "{} swaps", world.swaps());
            let sent = world.turn(&format!("Question {seed}."), &prose(seed, 600));
            assert!(sent.plan.tokens <= 7_200 && !sent.plan.is_too_large);
            assert!(
                world
                    .engine
                    .memory()
                    .is_none_or(|memory| memory.tokens <= 1_200)
            );
            seed += 1;
        }
        assert!(
            world
                .engine
                .memory()
                .unwrap()
                .text
                .contains("Never rename the table invoices"),
            "{}",
            world.engine.memory().unwrap().text
        );
        assert!(world.waits.is_empty(), "{:?}", world.waits);
        world.restart();
        world.user("And now?");
        world.request();
        world.input(Input::Cancel);
    }
}
