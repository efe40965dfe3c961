//! Models that make no memory, or a bad one: it is never used, the draft is, and an event says why.

use futures_util::{FutureExt, StreamExt};
use throughline::compactor::Styling;
use throughline::engine::{EngineEvent, Fallback, VersionOrigin};
use throughline::{ModelCompactor, Session, SessionEvent};
use throughline_memory::summarise::Form;
use throughline_simulator::Options;

use crate::world::{MODEL, World, chatter};

struct Seen {
    failed: usize,
    fell_back: usize,
    by_model: usize,
    by_draft: usize,
    reasons: Vec<String>,
}

/// Talks until the session is well past its window.
async fn talk(world: &World, session: &Session) -> Seen {
    let mut events = Box::pin(session.events());
    session
        .ask("Remember: the deploy region is eu-north-3. Never write to stdout.")
        .await
        .unwrap();
    for turn in 0..24 {
        session.ask(chatter(turn, 250)).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    }
    session.close().await.unwrap();
    let mut seen = Seen {
        failed: 0,
        fell_back: 0,
        by_model: 0,
        by_draft: 0,
        reasons: Vec::new(),
    };
    while let Some(Some(event)) = events.next().now_or_never() {
        let SessionEvent::Engine(event) = event else {
            continue;
        };
        match event {
            EngineEvent::Failed { reason, .. } => {
                seen.failed += 1;
                seen.reasons.push(reason.message);
            }
            EngineEvent::FellBack { .. } => seen.fell_back += 1,
            EngineEvent::Swapped { origin, .. } => match origin {
                VersionOrigin::Model => seen.by_model += 1,
                _ => seen.by_draft += 1,
            },
            _ => {}
        }
    }
    let _ = world;
    seen
}

fn world(seed: u64, faults: &str) -> World {
    let mut options = Options::new(seed);
    options.keeps_bodies = false;
    options.faults = faults.parse().unwrap();
    World::new(options)
}

#[tokio::test(start_paused = true)]
async fn a_bad_summary_is_never_used_and_the_draft_is() {
    // One that is `larger` meets the limit on output, or is smaller than the live request that it repeats: what is larger
    // than its input is in the tests of the guard.
    for fault in [
        "empty",
        "null",
        "blank",
        "toolcall",
        "refusal",
        "error",
        "truncated",
        "skeleton",
        "language",
        "prose",
    ] {
        let world = world(3, &format!("summary={fault}"));
        let session = world
            .session()
            .window(20_000)
            .compactor(ModelCompactor::new(world.client.clone(), MODEL))
            .start()
            .await
            .unwrap();
        let seen = talk(&world, &session).await;
        assert_eq!(seen.by_model, 0, "{fault}");
        assert!(seen.by_draft >= 1, "{fault}");
        assert!(seen.failed >= 1 && seen.fell_back >= 1, "{fault}");
        assert!(
            seen.reasons.iter().all(|reason| !reason.is_empty()),
            "{fault}"
        );
        let memory = session.memory().unwrap();
        assert!(
            memory.text.contains("Never write to stdout"),
            "{fault}: {}",
            memory.text
        );
    }
}

#[tokio::test(start_paused = true)]
async fn without_drafts_the_history_is_kept_until_a_memory_comes() {
    let world = world(3, "summary=empty");
    let session = world
        .session()
        .window(60_000)
        .settings(|settings| settings.fallback = Fallback::KeepHistory)
        .compactor(ModelCompactor::new(world.client.clone(), MODEL))
        .start()
        .await
        .unwrap();
    let seen = talk(&world, &session).await;
    assert_eq!((seen.by_model, seen.by_draft), (0, 0));
    assert_eq!(session.status().cover, 0);
}

#[tokio::test(start_paused = true)]
async fn every_way_to_ask_a_model_gives_memories() {
    let plain = |world: &World| ModelCompactor::new(world.client.clone(), MODEL);
    type Make = fn(ModelCompactor) -> ModelCompactor;
    let ways: [(&str, Make); 5] = [
        ("forked", |made| made.styling(Styling::Forked)),
        ("shared", |made| made.styling(Styling::PrefixSharing)),
        ("markdown", |made| {
            made.styling(Styling::Forked).form(Form::Markdown)
        }),
        ("structured", |made| {
            made.styling(Styling::Forked).structured()
        }),
        ("chunked", |made| {
            made.styling(Styling::Forked).window(8_000)
        }),
    ];
    for (name, make) in ways {
        let world = world(5, "");
        let session = world
            .session()
            .window(24_000)
            .compactor(make(plain(&world)))
            .start()
            .await
            .unwrap();
        let seen = talk(&world, &session).await;
        assert!(seen.by_model >= 1, "{name}: {:?}", seen.reasons);
        let memory = session.memory().unwrap();
        assert!(
            memory.text.contains("eu-north-3"),
            "{name}: {}",
            memory.text
        );
    }
}

#[tokio::test(start_paused = true)]
async fn another_model_takes_over_where_the_first_fails() {
    let broken = world(5, "500");
    let world = world(5, "");
    let session = world
        .session()
        .window(24_000)
        .compactor(
            ModelCompactor::new(broken.client.clone(), MODEL)
                .fallback(world.client.clone(), "claude-haiku-4-5"),
        )
        .start()
        .await
        .unwrap();
    let seen = talk(&world, &session).await;
    assert!(seen.by_model >= 1, "{:?}", seen.reasons);
}
