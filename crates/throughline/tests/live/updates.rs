//! A provider that limits, is overloaded or falls silent while a memory is made: the conversation continues as if nothing
//! were.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use throughline::compactor::Styling;
use throughline::engine::{EngineEvent, Halt, VersionOrigin};
use throughline::{ModelCompactor, Session, SessionEvent};
use throughline_simulator::{Options, RateLimits};
use tokio::task::unconstrained;
use tokio::time::Instant;

use crate::world::{MODEL, World, chatter};

const WINDOW: u64 = 20_000;

/// What was seen of a conversation.
#[derive(Default)]
struct Seen {
    classes: Vec<String>,
    fell_back: usize,
    by_model: usize,
    by_draft: usize,
    halted: usize,
    resumed: usize,
}

/// Says something long now and then. A turn takes as long as its call, and no longer.
async fn talk(world: &World, session: &Session, turns: std::ops::Range<usize>, pause: Duration) {
    for turn in turns {
        let before = world.provider.ledger().len();
        let began = Instant::now();
        session.ask(chatter(turn, 250)).await.unwrap();
        let took = began.elapsed();
        let calls = world.provider.ledger();
        assert_eq!(calls.len(), before + 1, "turn {turn}");
        let of_call = calls.last().unwrap().took;
        // The clock of the runtime counts whole milliseconds, once for each piece of the answer.
        assert!(
            took <= of_call + Duration::from_millis(5),
            "turn {turn} took {took:?}, its call {of_call:?}"
        );
        let status = session.status();
        assert!(status.tokens <= WINDOW, "{status:?}");
        tokio::time::sleep(pause).await;
    }
}

fn seen(events: &mut (impl futures_util::Stream<Item = SessionEvent> + Unpin)) -> Seen {
    let mut seen = Seen::default();
    while let Some(Some(event)) = unconstrained(events.next()).now_or_never() {
        match event {
            SessionEvent::Swap {
                waited_for_model, ..
            } => assert_eq!(waited_for_model, Duration::ZERO),
            SessionEvent::Engine(event) => match event {
                EngineEvent::Failed { reason, .. } => {
                    assert!(!reason.message.is_empty());
                    seen.classes.push(reason.class.as_str().to_owned());
                }
                EngineEvent::FellBack { .. } => seen.fell_back += 1,
                EngineEvent::Swapped { origin, .. } => match origin {
                    VersionOrigin::Model => seen.by_model += 1,
                    _ => seen.by_draft += 1,
                },
                EngineEvent::Halted(Halt::Failures { .. }) => seen.halted += 1,
                EngineEvent::Resumed => seen.resumed += 1,
                _ => {}
            },
            _ => {}
        }
    }
    seen
}

/// A conversation with a healthy provider, and a summariser elsewhere that is ill.
async fn beside(faults: &str, styling: Styling) -> (World, World, Session) {
    let mut options = Options::new(11);
    options.faults = faults.parse().unwrap();
    let summariser = World::new(options);
    let world = World::new(Options::new(11));
    let made_by = ModelCompactor::new(summariser.client.clone(), MODEL).styling(styling);
    let session = world
        .session()
        .window(WINDOW)
        .compactor(made_by)
        .start()
        .await
        .unwrap();
    (world, summariser, session)
}

#[tokio::test(start_paused = true)]
async fn an_update_that_fails_holds_nothing_up_and_is_made_when_the_provider_is_well_again() {
    // The fault; how it is named, where the update ends before it is overtaken.
    let faults = [
        ("429=7", Some("rate_limit")),
        ("429=none", Some("rate_limit")),
        ("429=100", Some("rate_limit")),
        ("429=900", Some("rate_limit")),
        ("529", Some("overloaded")),
        ("500", Some("server")),
        ("cut=3", Some("connection")),
        ("error=3", None),
        ("stall=0", None),
        ("stall=6", None),
        ("slow=3000", None),
    ];
    let stylings = [Styling::Forked, Styling::PrefixSharing];
    for ((fault, class), styling) in faults.into_iter().zip(stylings.into_iter().cycle()) {
        let (world, summariser, session) = beside(fault, styling).await;
        let mut events = Box::pin(session.events());
        talk(&world, &session, 0..20, Duration::from_secs(20)).await;
        let ill = seen(&mut events);
        let of = format!("{fault}, {styling:?}: {:?}", ill.classes);
        assert!(!summariser.provider.ledger().is_empty(), "{of}");
        assert_eq!(ill.by_model, 0, "{of}");
        assert!(ill.by_draft >= 2, "{of}");
        assert_eq!(ill.fell_back, ill.by_draft, "{of}");
        if let Some(class) = class {
            assert!(!ill.classes.is_empty(), "{of}");
            assert!(ill.classes.iter().all(|found| found == class), "{of}");
        }

        summariser
            .provider
            .with(|simulator| simulator.set_faults("".parse().unwrap()));
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        talk(&world, &session, 20..36, Duration::from_secs(20)).await;
        let well = seen(&mut events);
        assert!(well.by_model >= 1, "{of}, then {:?}", well.classes);
        assert_eq!(ill.halted, ill.resumed + well.resumed, "{of}");
        assert_eq!(world.refused(), 0, "{of}");
        assert!(world.largest_prompt() <= WINDOW, "{of}");
    }
}

/// What a provider asks for is kept to, however long: not one call comes before.
#[tokio::test(start_paused = true)]
async fn a_provider_that_asks_for_a_long_wait_is_left_alone_for_so_long() {
    for (fault, wait_s) in [("429=45", 45), ("429=100", 100), ("429=900", 900)] {
        let (world, summariser, session) = beside(fault, Styling::Forked).await;
        talk(&world, &session, 0..50, Duration::from_secs(20)).await;
        let calls = summariser.provider.ledger();
        assert!(calls.len() >= 2, "{fault}: {}", calls.len());
        for pair in calls.windows(2) {
            let between = pair[1].at - pair[0].at;
            assert!(
                between >= Duration::from_secs(wait_s),
                "{fault}: {between:?}"
            );
        }
    }
}

/// One provider, one limit, for the conversation and for what is made beside it.
#[tokio::test(start_paused = true)]
async fn updates_let_the_conversation_go_first_where_both_have_one_limit() {
    let mut limited = (0, 0);
    let mut by_model = 0;
    for (seed, styling) in [
        (1, Styling::Forked),
        (2, Styling::PrefixSharing),
        (3, Styling::Forked),
    ] {
        let mut options = Options::new(seed);
        options.limits = Some(RateLimits {
            requests_per_min: 5,
            input_tokens_per_min: 14_000,
            output_tokens_per_min: 100_000,
        });
        let world = World::new(options);
        let session = world
            .session()
            .window(WINDOW)
            .compactor(ModelCompactor::new(world.client.clone(), MODEL).styling(styling))
            .start()
            .await
            .unwrap();
        let mut events = Box::pin(session.events());
        let mut asked_at = Vec::new();
        for turn in 0..60 {
            asked_at.push(world.provider.now());
            session.ask(chatter(turn, 250)).await.unwrap();
            tokio::time::sleep(Duration::from_secs(4 + turn as u64 % 20)).await;
        }
        let calls = world.provider.ledger();
        // The library holds no request of the user back, whatever happened to an update before.
        for at in asked_at {
            let went_out = calls
                .iter()
                .filter(|call| !call.is_summary && call.at >= at)
                .map(|call| call.at - at)
                .min()
                .unwrap();
            assert!(went_out < Duration::from_millis(5), "{went_out:?}");
        }
        // While one waits for the limit, no update takes what is left of it.
        let mut waits = false;
        for call in &calls {
            let is_limited = call.status.as_u16() == 429;
            assert!(!(call.is_summary && waits), "{:?}", call.at);
            if call.is_summary {
                limited.1 += usize::from(is_limited);
            } else {
                waits = is_limited;
                limited.0 += usize::from(is_limited);
            }
        }
        by_model += seen(&mut events).by_model;
        assert!(world.largest_prompt() <= WINDOW);
    }
    assert!(limited.0 >= 3 && limited.1 >= 3, "{limited:?}");
    assert!(by_model >= 1);
}

/// A watcher that does not read misses the oldest events. Nothing waits for it.
#[tokio::test(start_paused = true)]
async fn a_watcher_that_never_reads_holds_nothing_up() {
    let world = World::new(Options::new(5).without_latency());
    let session = world.session().start().await.unwrap();
    let mut slow = Box::pin(session.events());
    let mut quick = Box::pin(session.events());
    let id = |event: Option<SessionEvent>| match event {
        Some(SessionEvent::Engine(EngineEvent::Compaction { id, .. })) => id,
        other => panic!("{other:?}"),
    };
    // Each of these is refused, as there is nothing to compact, and tells so in one event.
    let mut told = Vec::new();
    for _ in 0..2_000 {
        session.compact(None).await.unwrap();
        told.push(id(quick.next().await));
    }
    session.ask("Hello.").await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = unconstrained(slow.next()).now_or_never() {
        seen.push(id(event));
    }
    assert!(seen.len() >= 1_000 && seen.len() < 2_000, "{}", seen.len());
    assert_eq!(seen, told[told.len() - seen.len()..]);
    // It continues with the next event.
    session.compact(None).await.unwrap();
    let next = [slow.next().await, quick.next().await];
    assert!(next[0].is_some());
    assert_eq!(format!("{:?}", next[0]), format!("{:?}", next[1]));
}
