//! How often a model is asked, and whether that is worth its price.

use throughline_engine::{
    CompactionSettings, CompactorChoice, EngineEvent, Spending, VersionOrigin,
};

use super::messages::prose;
use super::world::World;

/// A session that pays for memories by a model out of what swaps save.
fn thrifty(window: u64) -> World {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..CompactionSettings::new(window)
    });
    world.latency_ms = 15_000;
    world.cached_permille = 1_000;
    world
}

/// Plays turns that each add this many tokens, until this many swaps have happened.
fn play(world: &mut World, tokens: usize, swaps: usize) {
    for seed in 0.. {
        assert!(seed < 3_000, "{} swaps", world.swaps());
        world.turn(&format!("Question {seed}."), &prose(seed, tokens));
        world.wait(4_000);
        if world.swaps() == swaps {
            break;
        }
    }
}

fn origins(world: &World) -> Vec<VersionOrigin> {
    let swapped = world.events.iter().filter_map(|event| match event {
        EngineEvent::Swapped { origin, .. } => Some(*origin),
        _ => None,
    });
    swapped.collect()
}

#[test]
fn a_model_is_asked_about_once_for_each_swap() {
    for (window, tokens) in [(20_000, 300), (60_000, 600), (200_000, 1_500)] {
        let mut world = thrifty(window);
        play(&mut world, tokens, 6);
        let orders = world.update_orders.len();
        assert!((5..=8).contains(&orders), "{window}: {orders} for 6 swaps");
        assert!(world.waits.is_empty(), "{:?}", world.waits);
        // What each swap brings is the model's, or the model's with what came after it.
        let fallen_back = world.count(|event| matches!(event, EngineEvent::FellBack { .. }));
        assert!(fallen_back <= 1, "{window}: {fallen_back}");
    }
}

#[test]
fn a_model_that_costs_more_than_is_saved_is_not_asked() {
    // Three requests fill the window: there is hardly a request for which the swap saves anything.
    let mut world = thrifty(20_000);
    play(&mut world, 4_500, 2);
    assert_eq!(world.update_orders.len(), 0);
    assert_eq!(origins(&world), [VersionOrigin::Draft; 2]);
    assert!(world.waits.is_empty());
    // The same without a cache: each token that is left out saves its full price.
    let mut world = thrifty(20_000);
    world.cached_permille = 0;
    play(&mut world, 1_500, 4);
    assert!(
        world.update_orders.len() >= 3,
        "{}",
        world.update_orders.len()
    );
    // And where money is no object.
    let mut world = thrifty(20_000);
    world.configure(|settings| settings.economy.spending = Spending::Freely);
    play(&mut world, 4_500, 2);
    assert!(world.update_orders.len() >= 2);
}

#[test]
fn what_came_after_the_models_memory_is_added_by_code() {
    let mut world = thrifty(60_000);
    // The model is slow to be asked again, and much comes meanwhile.
    play(&mut world, 600, 3);
    let after: Vec<u64> = world
        .events
        .iter()
        .filter_map(|event| match event {
            EngineEvent::Swapped { tokens_after, .. } => Some(*tokens_after),
            _ => None,
        })
        .collect();
    // A tenth that is kept word for word, the memory, and a step that no memory has yet.
    assert!(after.iter().all(|tokens| *tokens < 17_000), "{after:?}");
}

#[test]
fn a_requested_memory_is_made_by_the_model() {
    let mut world = thrifty(60_000);
    world.turn("Question.", &prose(1, 4_000));
    world.compact(None, throughline_engine::SwapTiming::AtOnce);
    world.wait(60_000);
    assert_eq!(origins(&world), [VersionOrigin::Model]);
}
