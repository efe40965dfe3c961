//! What a session does when its window fills.

use std::sync::Arc;

use throughline::engine::{CompactionOutcome, Mode};
use throughline::{ModelCompactor, Session, SessionError};
use throughline_simulator::Options;
use throughline_store::MemoryStore;

use crate::world::{MODEL, World, chatter};

#[tokio::test(start_paused = true)]
async fn a_session_goes_past_its_window_and_remembers_the_first_correction() {
    let world = World::new(Options::new(7));
    let session = world
        .session()
        .window(20_000)
        .compactor(ModelCompactor::new(world.client.clone(), MODEL))
        .start()
        .await
        .unwrap();
    session
        .ask("Remember: the deploy region is eu-north-3. Never write to stdout.")
        .await
        .unwrap();
    for turn in 0..40 {
        session.ask(chatter(turn, 250)).await.unwrap();
    }
    assert!(session.status().epoch >= 3, "{:?}", session.status());
    assert_eq!(world.refused(), 0);
    assert!(
        world.largest_prompt() <= 18_000,
        "{}",
        world.largest_prompt()
    );
    let answer = session.ask("What is the deploy region?").await.unwrap();
    assert!(answer.text().contains("eu-north-3"), "{}", answer.text());
    let memory = session.memory().unwrap();
    assert!(
        memory.text.contains("Never write to stdout"),
        "{}",
        memory.text
    );
    session.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_manual_compaction_swaps_and_can_be_taken_back() {
    let world = World::new(Options::new(7));
    let session = world.session().start().await.unwrap();
    assert!(matches!(
        session.compact(None).await.unwrap(),
        CompactionOutcome::Refused { .. }
    ));
    for turn in 0..6 {
        session.ask(chatter(turn, 300)).await.unwrap();
    }
    let before = session.status().tokens;
    let outcome = session.compact(Some("module_3")).await.unwrap();
    assert_eq!(outcome, CompactionOutcome::Committed { version: 1 });
    assert!(session.status().tokens < before);
    session.undo().await.unwrap();
    assert_eq!(session.status().cover, 0);
    assert!(session.undo().await.is_err());
    session.ask("Go on.").await.unwrap();
    assert_eq!(world.refused(), 0);
}

/// What a request is made of, by the bytes.
async fn asked(world: &World, session: &Session) -> String {
    session.ask("Go on.").await.unwrap();
    let body = world.provider.ledger().pop().unwrap().body;
    session
        .truncate(session.status().messages - 2)
        .await
        .unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn swaps_can_be_taken_back_one_after_the_other_also_after_a_restart() {
    let mut seen = Vec::new();
    for restarts in [false, true] {
        let world = World::new(Options::new(7).without_latency());
        let store = Arc::new(MemoryStore::new());
        let manual =
            |settings: &mut throughline::engine::CompactionSettings| settings.mode = Mode::Off;
        let mut session = world
            .session()
            .store(store.clone())
            .settings(manual)
            .start()
            .await
            .unwrap();
        let mut before = Vec::new();
        for swap in 0..3 {
            for turn in 0..4 {
                session.ask(chatter(swap * 4 + turn, 200)).await.unwrap();
            }
            let status = session.status();
            before.push((status.cover, status.version, session.memory()));
            let outcome = session.compact(None).await.unwrap();
            assert!(
                matches!(outcome, CompactionOutcome::Committed { .. }),
                "{outcome:?}"
            );
        }
        let mut bodies = Vec::new();
        for (cover, version, memory) in before.into_iter().rev() {
            if restarts {
                let id = session.id().clone();
                session.close().await.unwrap();
                session = world
                    .session()
                    .store(store.clone())
                    .resume(&id)
                    .await
                    .unwrap();
            }
            session.undo().await.unwrap();
            let status = session.status();
            assert_eq!((status.cover, status.version), (cover, version));
            let texts = [memory, session.memory()].map(|memory| memory.map(|of| of.text.clone()));
            assert_eq!(texts[0], texts[1]);
            bodies.push(asked(&world, &session).await);
        }
        assert!(matches!(
            session.undo().await,
            Err(SessionError::NothingToUndo)
        ));
        assert_eq!(session.status().cover, 0);
        assert_eq!(world.refused(), 0);
        seen.push((bodies, session.costs()));
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test(start_paused = true)]
async fn what_was_cleared_or_cut_off_does_not_come_back() {
    for is_cleared in [true, false] {
        let world = World::new(Options::new(7).without_latency());
        let store = Arc::new(MemoryStore::new());
        let mut session = world.session().store(store.clone()).start().await.unwrap();
        for swap in 0..2 {
            for turn in 0..4 {
                session.ask(chatter(swap * 4 + turn, 200)).await.unwrap();
            }
            session.compact(None).await.unwrap();
        }
        if is_cleared {
            session.clear().await.unwrap();
        } else {
            session.truncate(3).await.unwrap();
        }
        for _ in 0..2 {
            let error = session.undo().await.unwrap_err();
            assert!(matches!(error, SessionError::NothingToUndo), "{error:?}");
            let id = session.id().clone();
            session.close().await.unwrap();
            session = world
                .session()
                .store(store.clone())
                .resume(&id)
                .await
                .unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn traditional_mode_waits_for_the_summary_and_instant_does_not() {
    for (mode, waits) in [(Mode::Traditional, true), (Mode::Instant, false)] {
        let world = World::new(Options::new(3));
        let session = world
            .session()
            .window(20_000)
            .settings(move |settings| settings.mode = mode)
            .compactor(ModelCompactor::new(world.client.clone(), MODEL))
            .start()
            .await
            .unwrap();
        let mut events = Box::pin(session.events());
        for turn in 0..25 {
            session.ask(chatter(turn, 250)).await.unwrap();
        }
        session.close().await.unwrap();
        drop(session);
        let mut swaps = 0;
        let mut waited = 0;
        while let Some(event) = futures_util::StreamExt::next(&mut events).await {
            if let throughline::SessionEvent::Swap {
                waited_for_model, ..
            } = event
            {
                swaps += 1;
                waited += usize::from(!waited_for_model.is_zero());
            }
        }
        assert!(swaps >= 2, "{mode:?}: {swaps}");
        assert_eq!(waited > 0, waits, "{mode:?}: {waited} of {swaps}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_is_to_be_seen_at_once() {
    let world = World::new(Options::new(7));
    let session = world.session().start().await.unwrap();
    for turn in 0..6 {
        session.ask(chatter(turn, 300)).await.unwrap();
    }
    session.compact(None).await.unwrap();
    assert_eq!(session.status().epoch, 1);
    assert!(session.memory().is_some());
    session.pin("The port is 8431.").await.unwrap();
    assert_eq!(session.pins().len(), 1);
    session.undo().await.unwrap();
    assert!(session.memory().is_none());
    session.truncate(4).await.unwrap();
    assert_eq!(session.status().messages, 4);
    session.clear().await.unwrap();
    assert_eq!(session.status().messages, 0);
    session
        .configure(|settings| settings.window = 50_000)
        .await
        .unwrap();
    assert!(session.status().limit <= 50_000);
    let turn = session.send("Hello.").await.unwrap();
    assert_eq!(session.status().messages, 1);
    turn.answer().await.unwrap();
    assert_eq!(session.status().messages, 2);
}

#[tokio::test(start_paused = true)]
async fn the_own_client_makes_memories_with_the_own_or_a_named_model() {
    for (named, expected) in [
        (None, MODEL),
        (Some("claude-haiku-4-5"), "claude-haiku-4-5"),
    ] {
        let world = World::new(Options::new(7));
        let builder = world.session().window(20_000);
        let builder = match named {
            None => builder.compact_with_model(),
            Some(model) => builder.compact_with_model_named(model),
        };
        let session = builder.start().await.unwrap();
        for turn in 0..20 {
            session.ask(chatter(turn, 250)).await.unwrap();
        }
        assert!(session.costs().updates.calls > 0);
        session.close().await.unwrap();
        let of_model = format!("\"model\":\"{expected}\"");
        let ledger = world.provider.ledger();
        let asked = ledger
            .iter()
            .filter(|exchange| String::from_utf8_lossy(&exchange.body).contains(&of_model));
        let turns = if named.is_none() { 20 } else { 0 };
        assert!(asked.count() > turns);
    }
}
