//! Requested compactions: focus, joining, cancelling, previews, undo, pins, edits.

use throughline_engine::{
    BuildKind, CompactionOutcome, CompactionSettings, CompactorChoice, DropReason, DueReason,
    EngineEvent, Input, Mark, Mode, Pin, PreviousEpoch, SkipReason, SwapTiming, VersionOrigin,
};
use throughline_memory::document::{Entry, Memory};
use throughline_transcript::digest::{Digest, prefix_digests};

use super::messages::prose;
use super::model::Model;
use super::world::{World, settings};

/// A conversation of some 4,000 tokens in a window of 60,000.
fn talk(compactor: CompactorChoice) -> World {
    let mut world = World::new(CompactionSettings {
        compactor,
        keep: Mark::Tokens(500),
        ..settings(60_000)
    });
    more(&mut world, 0..4);
    world
}

fn more(world: &mut World, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        world.turn(&format!("Question {seed}."), &prose(seed, 900));
    }
}

#[track_caller]
fn is_committed(outcome: &CompactionOutcome) {
    assert!(
        matches!(outcome, CompactionOutcome::Committed { .. }),
        "{outcome:?}"
    );
}

#[test]
fn it_is_swapped_in_as_soon_as_it_is_ready() {
    for (compactor, origin) in [
        (CompactorChoice::Extractive, VersionOrigin::Draft),
        (CompactorChoice::Model, VersionOrigin::Model),
    ] {
        let mut world = talk(compactor);
        let id = world.compact(Some("keep numbers"), SwapTiming::AtOnce);
        world.wait(30_000);
        is_committed(&world.outcome(id));
        assert_eq!(world.engine.memory().unwrap().origin, origin);
        assert_eq!(world.draft_orders[0].focus.as_deref(), Some("keep numbers"));
        let sent = world.turn("Go on.", "Yes.");
        assert!(sent.plan.first > 0);
    }
}

#[test]
fn with_nothing_to_compact_nothing_changes() {
    let mut world = World::new(settings(60_000));
    let id = world.compact(None, SwapTiming::AtOnce);
    assert!(matches!(
        world.outcome(id),
        CompactionOutcome::Refused { .. }
    ));
    world.user("Hello.");
    let id = world.compact(Some("anything"), SwapTiming::AtOnce);
    assert!(matches!(
        world.outcome(id),
        CompactionOutcome::Refused { .. }
    ));
    assert!(world.draft_orders.is_empty() && world.adoption.is_none());
    let mut world = talk(CompactorChoice::Extractive);
    let id = world.compact(None, SwapTiming::AtOnce);
    is_committed(&world.outcome(id));
    let adoption = world.adoption.clone();
    // What is left is the request that was answered last; after that there is nothing.
    for _ in 0..3 {
        world.compact(None, SwapTiming::AtOnce);
    }
    let id = world.compact(None, SwapTiming::AtOnce);
    assert!(matches!(
        world.outcome(id),
        CompactionOutcome::Refused { .. }
    ));
    assert!(adoption.is_some());
}

#[test]
fn an_answered_request_may_be_covered_and_is_not_quoted() {
    let mut world = World::new(settings(60_000));
    world.turn("Write the report about the harbour.", &prose(1, 3_000));
    let id = world.compact(None, SwapTiming::AtOnce);
    is_committed(&world.outcome(id));
    assert_eq!(world.adoption.as_ref().unwrap().quoted, None);
    let sent = world.turn("Thanks. Now the second one.", "Done.");
    assert_eq!(sent.plan.first, 2);
    let memory = sent.plan.memory.unwrap();
    assert!(!memory.contains("latest request of the user"), "{memory}");
}

#[test]
fn one_at_a_time() {
    let mut world = talk(CompactorChoice::Model);
    let first = world.compact(Some("numbers"), SwapTiming::AtOnce);
    let same = world.compact(Some("numbers"), SwapTiming::AtOnce);
    let any = world.compact(None, SwapTiming::AtOnce);
    let other = world.compact(Some("names"), SwapTiming::AtOnce);
    world.wait(60_000);
    is_committed(&world.outcome(first));
    assert_eq!(world.outcome(same), CompactionOutcome::Joined);
    assert_eq!(world.outcome(any), CompactionOutcome::Joined);
    assert!(matches!(
        world.outcome(other),
        CompactionOutcome::Refused { .. }
    ));
    assert_eq!(world.swaps(), 1);
    assert_eq!(world.update_orders.len(), 1);
}

#[test]
fn what_the_background_makes_is_joined_or_gives_way_to_a_focus() {
    for focus in [None, Some("numbers")] {
        let mut world = talk(CompactorChoice::Model);
        world.configure(|settings| settings.soft = Mark::Tokens(3_000));
        world.turn("One more.", &prose(9, 300));
        assert_eq!(world.update_orders.len(), 1);
        let id = world.compact(focus, SwapTiming::AtOnce);
        world.wait(60_000);
        is_committed(&world.outcome(id));
        assert_eq!(world.swaps(), 1);
        let (orders, cancelled) = if focus.is_some() { (2, 1) } else { (1, 0) };
        assert_eq!(world.update_orders.len(), orders);
        assert_eq!(world.cancelled.len(), cancelled);
    }
}

#[test]
fn a_cancelled_one_is_discarded_and_a_late_answer_dropped() {
    for is_rude in [false, true] {
        let mut world = talk(CompactorChoice::Model);
        world.is_rude = is_rude;
        let id = world.compact(None, SwapTiming::AtOnce);
        world.input(Input::Cancel);
        world.wait(60_000);
        assert_eq!(world.outcome(id), CompactionOutcome::Discarded);
        assert_eq!(world.swaps(), 0);
        assert_eq!(world.cancelled.len(), 1);
        assert!(world.kept.is_empty());
        let late = world.count(|event| {
            matches!(
                event,
                EngineEvent::Dropped {
                    reason: DropReason::NotOrdered,
                    ..
                }
            )
        });
        assert_eq!(late, usize::from(is_rude));
    }
}

#[test]
fn a_request_that_waits_goes_when_the_compaction_is_cancelled() {
    let mut world = World::new(CompactionSettings {
        mode: Mode::Traditional,
        compactor: CompactorChoice::Model,
        threshold: Mark::Tokens(3_000),
        ..settings(20_000)
    });
    more(&mut world, 0..4);
    world.user("Go on.");
    let count = world.sent.len();
    world.input(Input::RequestWanted);
    assert_eq!(world.waits.last(), Some(&BuildKind::Model));
    world.input(Input::Cancel);
    assert_eq!(world.sent.len(), count + 1);
}

#[test]
fn without_the_model_the_draft_is_swapped_in_and_reported() {
    let mut world = talk(CompactorChoice::Model);
    world.model = Model::Fails("overloaded", None);
    let id = world.compact(None, SwapTiming::AtOnce);
    world.wait(60_000);
    is_committed(&world.outcome(id));
    assert_eq!(world.engine.memory().unwrap().origin, VersionOrigin::Draft);
    assert!(world.events.iter().any(|event| matches!(
        event,
        EngineEvent::FellBack { reason } if reason.class.as_str() == "overloaded"
    )));
}

#[test]
fn a_preview_is_reviewed_and_then_swapped_in() {
    for compactor in [CompactorChoice::Extractive, CompactorChoice::Model] {
        let mut world = talk(compactor);
        let id = world.compact(Some("numbers"), SwapTiming::Preview);
        world.wait(60_000);
        assert_eq!(world.outcome(id), CompactionOutcome::Prepared);
        assert_eq!(world.swaps(), 0);
        let preview = world.engine.preview().unwrap();
        assert_eq!(preview.covers.0, 0);
        assert!(preview.tokens_after < preview.tokens_before);
        let sent = world.turn("Wait.", "Yes.");
        assert_eq!(sent.plan.first, 0, "it is only prepared");
        let id = world.compact(None, SwapTiming::AtOnce);
        assert_eq!(
            world.outcome(id),
            CompactionOutcome::Committed {
                version: preview.version.memory.version
            }
        );
        assert_eq!(world.memory(), &preview.version.memory);
        assert_eq!(world.draft_orders.len(), 1);
    }
}

#[test]
fn a_preview_lists_what_it_drops() {
    let mut world = talk(CompactorChoice::Extractive);
    world.compact(None, SwapTiming::AtOnce);
    more(&mut world, 10..20);
    world.compact(None, SwapTiming::Preview);
    let preview = world.engine.preview().unwrap();
    for (id, text) in &preview.drops {
        assert!(
            world
                .memory()
                .items
                .iter()
                .any(|item| item.id == *id && item.entry.text() == text)
        );
        assert!(
            preview
                .version
                .memory
                .items
                .iter()
                .all(|item| item.id != *id)
        );
    }
}

#[test]
fn undo_brings_back_what_was_and_does_not_swap_again() {
    let mut world = World::new(settings(20_000));
    let mut seed = 0;
    while world.swaps() == 0 {
        more(&mut world, seed..seed + 1);
        seed += 1;
    }
    let before = world.engine.status();
    world.input(Input::Undo);
    let status = world.engine.status();
    assert_eq!((status.cover, status.version), (0, None));
    assert!(status.tokens > before.tokens && status.epoch > before.epoch);
    assert_eq!(
        world.count(|event| matches!(event, EngineEvent::Undone { .. })),
        1
    );
    let sent = world.turn("Short.", "Yes.");
    assert_eq!(sent.plan.first, 0, "the same memory does not come back");
    assert!(!world.engine.can_undo());
    world.input(Input::Undo);
    assert_eq!(world.engine.status().cover, 0);
    // Growth by a step makes it due again.
    more(&mut world, 50..53);
    world.user("Go on.");
    assert!(world.request().plan.first > 0);
}

#[test]
fn undo_of_the_second_swap_brings_back_the_first_memory() {
    let mut world = talk(CompactorChoice::Extractive);
    world.compact(None, SwapTiming::AtOnce);
    let first = world.memory().clone();
    more(&mut world, 10..14);
    world.compact(None, SwapTiming::AtOnce);
    assert_ne!(world.memory(), &first);
    more(&mut world, 20..21);
    world.input(Input::Undo);
    assert_eq!(world.memory(), &first);
    let sent = world.turn("Go on.", "Yes.");
    assert_eq!(sent.plan.first, first.cover.messages);
    world.restart();
    let sent_again = world.turn("And on.", "Yes.");
    assert_eq!(sent_again.plan.epoch, sent.plan.epoch);
}

#[test]
fn the_previous_epoch_can_be_given_after_a_restart_if_it_fits() {
    let mut world = talk(CompactorChoice::Extractive);
    world.compact(None, SwapTiming::AtOnce);
    let first = world.engine.memory().unwrap().as_ref().clone();
    more(&mut world, 10..14);
    world.compact(None, SwapTiming::AtOnce);
    let (from, to) = (first.cover(), world.engine.status().cover);
    assert!(from < to);
    let fitting = PreviousEpoch {
        version: Some(first.clone()),
        quoted: None,
        chain: prefix_digests(&world.archive)[from - 1],
        messages: world.archive[from..to].to_vec(),
    };
    world.restart();
    let others = [
        PreviousEpoch {
            messages: world.archive[from..to - 1].to_vec(),
            ..fitting.clone()
        },
        PreviousEpoch {
            messages: world.archive[from + 1..to + 1].to_vec(),
            ..fitting.clone()
        },
        PreviousEpoch {
            chain: prefix_digests(&world.archive)[from],
            ..fitting.clone()
        },
        PreviousEpoch {
            version: None,
            ..fitting.clone()
        },
    ];
    for other in others {
        world.input(Input::Before(Box::new(other)));
        assert!(!world.engine.can_undo());
    }
    world.input(Input::Before(Box::new(fitting)));
    assert!(world.engine.can_undo());
    world.input(Input::Undo);
    assert_eq!(world.memory(), &first.memory);
    let sent = world.turn("Go on.", "Yes.");
    assert_eq!(sent.plan.first, from);
}

fn pin(id: &str, text: &str, message: usize) -> Input {
    Input::Pin(Pin {
        id: id.to_owned(),
        text: text.to_owned(),
        message,
    })
}

fn says(memory: &Memory, text: &str) -> usize {
    memory
        .items
        .iter()
        .filter(|item| matches!(&item.entry, Entry::Correction { text: said } if said == text))
        .count()
}

#[test]
fn pins_before_during_and_after_a_build_are_in_the_next_memory() {
    let mut world = talk(CompactorChoice::Model);
    world.input(pin("p1", "The port is 8431.", 2));
    let id = world.compact(None, SwapTiming::AtOnce);
    world.input(pin("p2", "Deploys are on Mondays.", 8));
    world.wait(60_000);
    is_committed(&world.outcome(id));
    assert_eq!(says(world.memory(), "The port is 8431."), 1);
    assert_eq!(says(world.memory(), "Deploys are on Mondays."), 1);
    world.input(pin("p3", "Ada signs off.", 9));
    assert_eq!(
        says(world.memory(), "Ada signs off."),
        0,
        "not in this epoch"
    );
    more(&mut world, 10..14);
    world.input(Input::Unpin {
        id: "p1".to_owned(),
    });
    world.compact(None, SwapTiming::AtOnce);
    world.wait(60_000);
    assert_eq!(says(world.memory(), "The port is 8431."), 0);
    assert_eq!(says(world.memory(), "Deploys are on Mondays."), 1);
    assert_eq!(says(world.memory(), "Ada signs off."), 1);
    // Many swaps later each is still there once.
    for round in 0..3 {
        more(&mut world, 20 + round * 4..24 + round * 4);
        world.compact(None, SwapTiming::AtOnce);
        world.wait(60_000);
    }
    assert_eq!(says(world.memory(), "Deploys are on Mondays."), 1);
    assert_eq!(says(world.memory(), "Ada signs off."), 1);
}

#[test]
fn a_memory_edited_by_a_person_is_used_and_its_edits_stay() {
    let mut world = talk(CompactorChoice::Model);
    world.user("Never touch folder vendor, please.");
    world.request();
    world.answered("I will not.");
    more(&mut world, 5..9);
    world.compact(None, SwapTiming::AtOnce);
    world.wait(60_000);
    let mut edited = world.memory().clone();
    let removed = edited
        .items
        .iter()
        .position(|item| matches!(item.entry, Entry::Correction { .. }))
        .unwrap();
    let removed = edited.items.remove(removed);
    // An update of the memory that is edited is running.
    more(&mut world, 10..14);
    world.is_rude = true;
    world.compact(None, SwapTiming::AtOnce);
    world.input(Input::Given(Box::new(edited.clone())));
    world.wait(60_000);
    assert_eq!(world.swaps(), 2);
    assert_eq!(says(world.memory(), removed.entry.text()), 0);
    assert_eq!(world.memory().cover, edited.cover);
    more(&mut world, 20..24);
    world.compact(None, SwapTiming::AtOnce);
    world.wait(60_000);
    assert_eq!(world.swaps(), 3);
    assert_eq!(says(world.memory(), removed.entry.text()), 0);
}

#[test]
fn a_memory_of_another_history_is_refused() {
    let mut world = talk(CompactorChoice::Extractive);
    world.compact(None, SwapTiming::Preview);
    let mut memory = world.engine.preview().unwrap().version.memory.clone();
    memory.cover.digest = Digest::UNKNOWN;
    world.input(Input::Given(Box::new(memory)));
    assert_eq!(world.swaps(), 0);
    assert!(world.events.iter().any(|event| matches!(
        event,
        EngineEvent::Skipped {
            due: DueReason::Given,
            reason: SkipReason::NothingToCover
        }
    )));
}

#[test]
fn a_compaction_that_a_swap_overtakes_is_committed() {
    let mut world = World::new(CompactionSettings {
        compactor: CompactorChoice::Model,
        ..settings(20_000)
    });
    world.latency_ms = 10_000_000;
    more(&mut world, 0..8);
    let id = world.compact(None, SwapTiming::AtOnce);
    more(&mut world, 10..20);
    assert!(world.swaps() > 0);
    is_committed(&world.outcome(id));
}

#[test]
fn an_answer_requested_before_a_swap_keeps_no_reasoning_after_it() {
    let mut world = World::new(CompactionSettings {
        binds_thinking: true,
        keep: Mark::Tokens(500),
        ..settings(60_000)
    });
    more(&mut world, 0..4);
    world.user("Think.");
    world.request();
    world.compact(None, SwapTiming::AtOnce);
    assert_eq!(world.swaps(), 1);
    world.append(
        &throughline_transcript::json::Raw::parse(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s1"},{"type":"text","text":"Yes."}]}"#,
        )
        .unwrap(),
    );
    world.report();
    world.user("And?");
    let sent = world.request();
    assert!(!sent.body.contains(r#""signature""#));
    let from = sent.plan.thinking_from;
    world.restart();
    assert_eq!(world.request().plan.thinking_from, from);
}
