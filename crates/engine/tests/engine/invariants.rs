//! What docs/ARCHITECTURE.md states about the engine, and the test that fails when it no longer holds.
//!
//! | invariant | test |
//! | --- | --- |
//! | pure: no clock, file, socket, environment, thread | clippy with this crate's `clippy.toml`; `the_same_inputs_give_the_same_outputs` |
//! | outputs queue in order, whenever they are drained | `inputs_may_be_drained_one_by_one_or_together` |
//! | a version is kept before it is adopted, and adopted before a request carries it | `keep_comes_before_adopt_and_adopt_before_the_request` |
//! | no message is lost: a request is the memory and all later messages | `World::send`, in every test |
//! | within an epoch each request begins with the bytes of the one before | `World::send`; `c38_the_prefix_is_stable_while_memories_are_made` |
//! | the ledger only grows | `World::adopt`; `fifty_chained_swaps_stay_in_the_window_and_keep_the_ledger` |
//! | one update at a time | `one_update_at_a_time` |
//! | an answer is used only with its ticket, within one swap, for the same history | `a_repeated_or_unordered_answer_is_dropped`, `after_two_swaps_an_update_is_dropped_or_overtaken`, `an_edit_into_what_is_being_covered_drops_it` |
//! | never late | `a_model_that_is_late_is_not_waited_for`, `a_request_waits_for_at_most_two_drafts` |
//! | never loops | `too_little_gain_halts_once_until_there_is_more`, `failures_in_a_row_rest_the_model_and_are_reported_once`, `overhead_above_the_mark_is_reported_once` |
//! | never larger | `World::take`; `a_memory_larger_than_what_it_covers_is_refused` |
//! | events hold numbers and reasons, nothing of the conversation | `events_hold_nothing_of_the_conversation` |
//! | each requested compaction has one outcome | `World::check_outcomes`; `one_at_a_time` |

use std::collections::VecDeque;

use throughline_engine::{
    BuildKind, CompactionSettings, CompactorChoice, Engine, Input, Mark, Output, Time,
};
use throughline_memory::compact::{Form, Options, compact_after};
use throughline_transcript::digest::Chain;
use throughline_transcript::message::{Block, Message, Role};

use super::messages::prose;
use super::world::World;

const TURNS: u64 = 100;

fn small() -> CompactionSettings {
    CompactionSettings {
        output_reserve: 2_000,
        keep: Mark::Tokens(2_000),
        ..CompactionSettings::new(20_000)
    }
}

/// The inputs of a turn.
fn turn(seed: u64) -> [Input; 4] {
    let message = |role, text: String| Input::Appended(Message::new(role, vec![Block::text(text)]));
    [
        message(Role::User, prose(seed, 20)),
        Input::RequestWanted,
        message(Role::Assistant, prose(seed + 1_000, 500)),
        Input::Answered { context: None },
    ]
}

/// A conversation of several swaps; its outputs in order. Drafts are answered between the turns.
fn converse(drains_each_input: bool) -> Vec<Output> {
    let settings = small();
    let counter = settings.counter;
    let mut engine = Engine::new(settings);
    let mut outputs = Vec::new();
    let drain = |engine: &mut Engine, outputs: &mut Vec<Output>| {
        while let Some(output) = engine.poll() {
            outputs.push(output);
        }
    };
    let mut answered = 0;
    for seed in 0..TURNS {
        let now = Time::from_ms(i64::try_from(seed).unwrap() * 1_000);
        for input in turn(seed) {
            engine.handle(now, input);
            if drains_each_input {
                drain(&mut engine, &mut outputs);
            }
        }
        loop {
            drain(&mut engine, &mut outputs);
            let orders: VecDeque<_> = outputs[answered..]
                .iter()
                .filter_map(|output| match output {
                    Output::Draft(order) => Some(order.clone()),
                    _ => None,
                })
                .collect();
            answered = outputs.len();
            if orders.is_empty() {
                break;
            }
            for order in orders {
                let count = |text: &str| counter.text(text);
                let options = Options {
                    form: Form::UserMessage,
                    prior: order.prior.as_ref().map(|prior| &prior.memory),
                    ..Options::new(usize::try_from(order.tokens_max).unwrap(), &count)
                };
                let drafted = compact_after(Chain::at(order.chain), &order.messages, &options);
                engine.handle(
                    now,
                    Input::Drafted {
                        ticket: order.ticket,
                        result: Ok(drafted.unwrap().memory),
                    },
                );
            }
        }
    }
    outputs
}

fn swaps(outputs: &[Output]) -> usize {
    let is_swap = |output: &&Output| matches!(output, Output::Adopt(_));
    outputs.iter().filter(is_swap).count()
}

#[test]
fn the_same_inputs_give_the_same_outputs() {
    let outputs = converse(true);
    assert!(swaps(&outputs) >= 2);
    assert_eq!(format!("{outputs:?}"), format!("{:?}", converse(true)));
}

#[test]
fn inputs_may_be_drained_one_by_one_or_together() {
    assert_eq!(
        format!("{:?}", converse(true)),
        format!("{:?}", converse(false))
    );
}

#[test]
fn keep_comes_before_adopt_and_adopt_before_the_request() {
    let mut kept = Vec::new();
    let mut adopted = (None, 0);
    let outputs = converse(true);
    for output in &outputs {
        match output {
            Output::Keep(version) => kept.push(version.memory.version),
            Output::Adopt(adoption) => {
                assert!(adoption.version.is_none_or(|number| kept.contains(&number)));
                adopted = (adoption.version, adoption.cover);
            }
            Output::Request(plan) => {
                assert_eq!(plan.memory.is_some(), adopted.0.is_some());
                assert_eq!(plan.first, adopted.1);
            }
            _ => {}
        }
    }
    assert!(swaps(&outputs) >= 2);
}

#[test]
fn one_update_at_a_time() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..small()
    });
    world.latency_ms = 90_000;
    for seed in 0..TURNS {
        world.user(&prose(seed, 20));
        world.request();
        world.answered(&prose(seed + 1_000, 500));
        assert!(world.updates.len() <= 1);
        world.wait(10_000);
    }
    assert!(world.update_orders.len() > 1);
}

#[test]
fn a_request_waits_for_at_most_two_drafts() {
    let mut world = World::new(small());
    world.holds_drafts = true;
    for seed in 0..8 {
        world.user(&prose(seed, 10));
        world.assistant(&prose(seed, 1_800));
    }
    world.user("And now?");
    let before = world.now;
    // No draft is answered.
    world.request();
    assert!((1..=2).contains(&world.waits.len()), "{:?}", world.waits);
    assert!(world.waits.iter().all(|kind| *kind == BuildKind::Draft));
    assert!(world.now - before <= 60_000);
}

#[test]
fn events_hold_nothing_of_the_conversation() {
    const SECRET: &str = "periwinkle";
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..small()
    });
    for seed in 0..TURNS {
        world.user(&format!("{SECRET} {}", prose(seed, 20)));
        world.request();
        world.answered(&format!("{SECRET} {}", prose(seed + 1_000, 500)));
        world.wait(30_000);
    }
    assert!(world.swaps() >= 2);
    for event in &world.events {
        assert!(!format!("{event} {event:?}").contains(SECRET), "{event}");
    }
}
