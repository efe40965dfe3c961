//! Many sessions, long sessions, and what the making of memories costs.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use throughline::compactor::Styling;
use throughline::engine::EngineEvent;
use throughline::{ModelCompactor, SessionEvent};
use throughline_simulator::{Latency, Options};
use throughline_transcript::catalogue::{Catalogue, cost};
use throughline_transcript::usage::Usage;

use crate::world::{MODEL, World, chatter};

/// Swaps and swaps that waited for a model, of one session.
async fn seeded(seed: u64) -> (usize, usize) {
    // Summaries take up to a minute: slow reading, slow writing.
    let latency = Latency {
        base: Duration::from_secs(seed * 7 % 45),
        output_tokens_per_s: 40 + u32::try_from(seed % 60).unwrap(),
        ..Latency::real()
    };
    let mut options = Options::new(seed);
    options.latency = latency;
    options.keeps_bodies = false;
    let world = World::new(options);
    let window = 16_000 + seed % 7 * 6_000;
    let session = world
        .session()
        .window(window)
        .compactor(ModelCompactor::new(world.client.clone(), MODEL))
        .start()
        .await
        .unwrap();
    let mut events = Box::pin(session.events());
    let words = 60 + usize::try_from(seed * 37 % 250).unwrap();
    for turn in 0..60 {
        session.ask(chatter(turn, words)).await.unwrap();
        // People read before they answer.
        tokio::time::sleep(Duration::from_secs(seed % 20)).await;
    }
    session.close().await.unwrap();
    let (mut swaps, mut waited) = (0, 0);
    while let Some(Some(event)) = events.next().now_or_never() {
        if let SessionEvent::Swap {
            waited_for_model, ..
        } = event
        {
            swaps += 1;
            waited += usize::from(!waited_for_model.is_zero());
        }
    }
    assert_eq!(world.refused(), 0, "seed {seed}");
    (swaps, waited)
}

async fn sessions(seeds: std::ops::Range<u64>) {
    let (mut swaps, mut waited) = (0, 0);
    for seed in seeds.clone() {
        let (more, waits) = seeded(seed).await;
        swaps += more;
        waited += waits;
    }
    eprintln!(
        "{} sessions, {swaps} swaps, {waited} waited for a model",
        seeds.end - seeds.start
    );
    assert!(swaps > 0);
    assert_eq!(waited, 0);
}

#[tokio::test(start_paused = true)]
async fn no_swap_waits_for_a_model() {
    sessions(0..8).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "some minutes"]
async fn no_swap_of_200_sessions_waits_for_a_model() {
    sessions(0..200).await;
}

#[tokio::test(start_paused = true)]
async fn fifty_swaps_stay_below_the_window_and_keep_every_correction() {
    let mut options = Options::new(9).without_latency();
    options.keeps_bodies = false;
    let world = World::new(options);
    let session = world.session().window(12_000).start().await.unwrap();
    let mut corrections = Vec::new();
    let mut turn = 0;
    while session.status().epoch < 50 {
        if turn % 60 == 0 && corrections.len() < 5 {
            let correction = format!("Never touch the directory vault_{turn}.");
            session.ask(correction.as_str()).await.unwrap();
            corrections.push(correction);
        }
        session.ask(chatter(turn, 250)).await.unwrap();
        let status = session.status();
        assert!(status.tokens <= 12_000, "{status:?}");
        turn += 1;
        assert!(turn < 2_000, "{status:?}");
    }
    assert_eq!(world.refused(), 0);
    assert!(
        world.largest_prompt() <= 10_000,
        "{}",
        world.largest_prompt()
    );
    let memory = session.memory().unwrap();
    for correction in &corrections {
        assert!(
            memory.text.contains(correction),
            "{correction}\n{}",
            memory.text
        );
    }
    assert!(memory.tokens <= 1_000, "{}", memory.tokens);
}

/// What updates cost against the same calls with nothing in the cache, in thousandths.
async fn shares(window: u64, words: usize, updates: usize) -> Vec<u128> {
    let mut options = Options::new(4);
    options.keeps_bodies = false;
    let world = World::new(options);
    let session = world
        .session()
        .max_tokens(8_000)
        .window(window)
        .compactor(ModelCompactor::new(world.client.clone(), MODEL).styling(Styling::PrefixSharing))
        .start()
        .await
        .unwrap();
    let mut events = Box::pin(session.events());
    let mut turn = 0;
    while session.costs().updates.calls < updates as u64 {
        session.ask(chatter(turn, words)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        turn += 1;
        assert!(turn < 1_000);
    }
    session.close().await.unwrap();
    let mut failed = 0;
    while let Some(Some(event)) = events.next().now_or_never() {
        failed += usize::from(matches!(
            event,
            SessionEvent::Engine(EngineEvent::Failed { .. } | EngineEvent::FellBack { .. })
        ));
    }
    assert_eq!(failed, 0);
    let model = Catalogue::embedded().find(MODEL).unwrap();
    let mut shares = Vec::new();
    for exchange in world.provider.ledger() {
        let Some(usage) = exchange.usage.filter(|_| exchange.is_summary) else {
            continue;
        };
        let uncached = Usage {
            uncached: usage.prompt(),
            output: usage.output,
            ..Usage::default()
        };
        let price = |usage: &Usage| u128::from(cost(usage, model).unwrap().nano_dollars());
        let share = price(&usage) * 1000 / price(&uncached);
        eprintln!(
            "{share:>4} permille: read {}, written {}, uncached {}, output {}",
            usage.cache_read, usage.cache_write, usage.uncached, usage.output
        );
        shares.push(share);
    }
    shares
}

#[tokio::test(start_paused = true)]
async fn updates_that_share_the_prefix_cost_a_fifth_on_the_first_and_later() {
    let shares = shares(200_000, 2_500, 8).await;
    assert!(shares.len() >= 4, "{shares:?}");
    for share in shares {
        assert!(share <= 200, "{share}");
    }
}
