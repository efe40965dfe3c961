//! Edits, clears, forks, restarts, new frames, loops of tools.

use throughline_engine::{
    CompactionSettings, CompactorChoice, DropReason, EngineEvent, Input, Mark, SwapTiming,
};
use throughline_transcript::json::Raw;
use throughline_transcript::wire::Wire;

use super::messages::prose;
use super::world::{World, settings};

fn kept(window: u64) -> CompactionSettings {
    CompactionSettings {
        keep: Mark::Tokens(500),
        ..settings(window)
    }
}

fn more(world: &mut World, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        world.turn(&format!("Question {seed}."), &prose(seed, 900));
    }
}

#[test]
fn an_edit_behind_the_cut_leaves_the_memory() {
    let mut world = World::new(kept(60_000));
    more(&mut world, 0..5);
    world.compact(None, SwapTiming::AtOnce);
    more(&mut world, 5..8);
    let cover = world.engine.status().cover;
    world.truncate(cover + 3);
    let sent = world.turn("Otherwise.", "Yes.");
    assert_eq!(sent.plan.first, cover);
}

#[test]
fn an_edit_before_the_cut_goes_back_to_an_older_memory() {
    let mut world = World::new(kept(60_000));
    more(&mut world, 0..5);
    world.compact(None, SwapTiming::AtOnce);
    let first = world.engine.status().cover;
    more(&mut world, 5..9);
    world.compact(None, SwapTiming::AtOnce);
    let second = world.engine.status().cover;
    world.truncate(second - 2);
    let sent = world.turn("Otherwise.", "Yes.");
    assert_eq!(sent.plan.first, first);
    world.truncate(first - 1);
    let sent = world.turn("Otherwise again.", "Yes.");
    assert_eq!((sent.plan.first, sent.plan.memory), (0, None));
}

#[test]
fn an_edit_into_what_is_being_covered_drops_it() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..kept(60_000)
    });
    world.is_rude = true;
    more(&mut world, 0..5);
    let id = world.compact(None, SwapTiming::AtOnce);
    world.truncate(4);
    world.wait(60_000);
    assert_eq!(
        world.outcome(id),
        throughline_engine::CompactionOutcome::Discarded
    );
    assert_eq!(world.swaps(), 0);
    assert!(world.events.iter().any(|event| matches!(
        event,
        EngineEvent::Dropped {
            reason: DropReason::HistoryChanged,
            ..
        }
    )));
    assert!(world.engine.status().ready_cover.is_none());
}

#[test]
fn an_edit_lets_a_waiting_request_continue() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..kept(20_000)
    });
    world.holds_drafts = true;
    world.latency_ms = 10_000_000;
    for seed in 0..18 {
        world.user(&format!("Question {seed}."));
        world.assistant(&prose(seed, 900));
    }
    world.user("Go on.");
    world.input(Input::RequestWanted);
    assert!(world.sent.is_empty());
    world.truncate(3);
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_clear_leaves_nothing_and_brings_nothing_back() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..kept(60_000)
    });
    world.is_rude = true;
    more(&mut world, 0..5);
    world.compact(None, SwapTiming::AtOnce);
    world.wait(60_000);
    more(&mut world, 5..9);
    let id = world.compact(None, SwapTiming::AtOnce);
    world.clear();
    world.user("Fresh start.");
    world.wait(60_000);
    assert_eq!(
        world.outcome(id),
        throughline_engine::CompactionOutcome::Discarded
    );
    assert_eq!(world.engine.status().version, None);
    let sent = world.request();
    assert_eq!((sent.plan.first, sent.plan.end), (0, 1));
    assert!(!sent.body.contains("session_memory"));
    world.answered("Hello.");
    world.restart();
    world.user("Go on.");
    assert_eq!(world.request().plan.memory, None);
}

#[test]
fn a_fork_is_independent_of_its_parent() {
    let mut world = World::new(kept(60_000));
    more(&mut world, 0..5);
    world.compact(None, SwapTiming::AtOnce);
    more(&mut world, 5..7);
    let mut fork = world.fork();
    fork.user("This way.");
    world.user("That way.");
    let (there, here) = (fork.request(), world.request());
    assert_eq!(there.plan.memory, here.plan.memory);
    assert!(there.body.contains("This way.") && !there.body.contains("That way."));
    assert!(!here.body.contains("This way."));
}

#[test]
fn a_new_frame_leaves_the_reasoning_of_the_old_one_out() {
    let mut world = World::new(CompactionSettings {
        binds_thinking: true,
        ..kept(60_000)
    });
    let thought = |world: &mut World, signature: &str| {
        let raw = format!(
            r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"Hm.","signature":"{signature}"}},{{"type":"text","text":"Yes."}}]}}"#
        );
        world.append(&Raw::parse(raw).unwrap());
        world.report();
    };
    world.user("One.");
    world.request();
    thought(&mut world, "s1");
    world.user("Two.");
    assert!(world.request().body.contains("s1"));
    thought(&mut world, "s2");
    let epoch = world.engine.status().epoch;
    world.input(Input::FrameChanged);
    world.user("Three.");
    let sent = world.request();
    // An epoch is the time between two swaps, and there was none.
    assert_eq!(sent.plan.epoch, epoch);
    assert!(!sent.body.contains("s1") && !sent.body.contains("s2"));
    thought(&mut world, "s3");
    world.user("Four.");
    assert!(world.request().body.contains("s3"));
    world.restart();
    assert!(world.request().body.contains("s3"));
}

/// A loop of tools that fills the window several times over.
#[test]
fn a_loop_longer_than_the_window_keeps_its_request() {
    for wire in [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses] {
        let mut world = World::on(wire, settings(10_000));
        world.turn("Good morning.", "Good morning.");
        world.user("Rename module billing to invoicing, file by file, never in vendor/.");
        for step in 0..40 {
            let sent = world.request();
            assert!(!sent.plan.is_too_large, "{wire:?} {step}: {:?}", sent.plan);
            let memory = sent.plan.memory.as_deref().unwrap_or_default();
            let begins = sent.plan.first;
            assert!(
                begins <= 2 || memory.contains("Rename module billing to invoicing"),
                "{wire:?} {step}"
            );
            let (a, b) = (format!("a{step}"), format!("b{step}"));
            world.call(&[&a, &b]);
            world.report();
            let (one, two) = (prose(step, 350), prose(step + 100, 350));
            world.results(&[(&a, &one), (&b, &two)]);
            // What was returned last has to be seen by the model.
            assert!(world.engine.tail().len() >= 2);
        }
        assert!(world.swaps() >= 3, "{wire:?}: {}", world.swaps());
        assert!(world.adoption.as_ref().unwrap().quoted.is_some());
        let before = world.request();
        world.restart();
        let after = world.request();
        assert_eq!(before.body, after.body, "{wire:?}");
    }
}

#[test]
fn a_result_that_no_model_has_read_is_never_covered() {
    let mut world = World::new(settings(10_000));
    for seed in 0..3 {
        world.turn(&format!("Question {seed}."), &prose(seed, 500));
    }
    world.user("Read the file.");
    world.request();
    world.call(&["big"]);
    world.report();
    world.results(&[("big", &prose(7, 6_000))]);
    let sent = world.request();
    assert!(sent.body.contains(r#""tool_result""#));
    assert!(sent.plan.first > 0, "everything else is covered");
}

#[test]
fn after_a_restart_the_next_request_is_the_same() {
    let mut world = World::new(kept(20_000));
    for seed in 0..45 {
        more(&mut world, seed..seed + 1);
        world.user("Next.");
        let before = world.request();
        world.restart();
        let after = world.request();
        assert_eq!(before.body, after.body, "{seed}");
        assert_eq!(before.plan.epoch, after.plan.epoch);
        world.answered("Yes.");
    }
    assert!(world.swaps() >= 2);
}

#[test]
fn opening_a_large_session_starts_nothing_until_something_happens() {
    let mut world = World::new(CompactionSettings {
        mode: throughline_engine::Mode::Off,
        compactor: CompactorChoice::Model,
        ..kept(20_000)
    });
    more(&mut world, 0..18);
    world.settings.mode = throughline_engine::Mode::Instant;
    world.restart();
    assert!(world.draft_orders.is_empty());
    world.user("Go on.");
    assert_eq!(world.draft_orders.len(), 1);
    assert!(world.request().plan.first > 0);
}
