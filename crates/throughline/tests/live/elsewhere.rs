//! A memory of one session in another one, and what else is done with memories.

use std::sync::Arc;

use throughline::{OpenError, Session, SessionError, SessionSearch};
use throughline_simulator::Options;
use throughline_store::{MemoryStore, SessionId, Store};
use throughline_transcript::request::MemoryPlace;
use throughline_transcript::wire::Wire;

use crate::world::{MODEL, World, chatter};

#[tokio::test(start_paused = true)]
async fn a_memory_goes_on_in_another_session_in_both_places() {
    for place in [MemoryPlace::FirstUserMessage, MemoryPlace::SystemPrompt] {
        let world = World::new(Options::new(2).without_latency());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let first = world.session().start().await.unwrap();
        first
            .ask("Never write to stdout — nie, ποτέ, 決して.")
            .await
            .unwrap();
        for turn in 0..4 {
            first.ask(chatter(turn, 200)).await.unwrap();
        }
        first.pin("The port is 8431.").await.unwrap();
        first.compact(None).await.unwrap();
        let memory = first.memory().unwrap().memory.clone();

        let builder = || {
            world
                .session()
                .store(Arc::clone(&store))
                .memory_place(place)
        };
        let session = builder().memory(memory).start().await.unwrap();
        let id = session.id().clone();
        // It is there although nothing was said yet.
        session.close().await.unwrap();
        let session = builder().resume(&id).await.unwrap();
        session.ask("Hello.").await.unwrap();
        let body = last_body(&world);
        assert!(
            body.contains("Never write to stdout — nie, ποτέ, 決して."),
            "{body}"
        );
        assert!(body.contains("The port is 8431."), "{body}");
        let system = body.split("\"messages\"").next().unwrap();
        assert_eq!(
            system.contains("Never write to stdout"),
            place == MemoryPlace::SystemPrompt
        );
        // Going back behind a later memory finds it again.
        for turn in 0..4 {
            session.ask(chatter(turn, 200)).await.unwrap();
        }
        session.compact(None).await.unwrap();
        assert!(session.status().cover > 2);
        session.truncate(2).await.unwrap();
        session.ask("Hello again.").await.unwrap();
        assert!(
            last_body(&world).contains("Never write to stdout"),
            "{place:?}"
        );
        // A new beginning has no memory, also if it is gone back in it.
        session.clear().await.unwrap();
        for turn in 0..4 {
            session.ask(chatter(turn, 200)).await.unwrap();
        }
        session.compact(None).await.unwrap();
        session.truncate(1).await.unwrap();
        session.ask("And again.").await.unwrap();
        assert!(
            !last_body(&world).contains("Never write to stdout"),
            "{place:?}"
        );
        assert_eq!(world.refused(), 0);
    }
}

fn last_body(world: &World) -> String {
    let body = world.provider.ledger().pop().unwrap().body;
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_previewed_is_what_a_compaction_swaps_in() {
    let world = World::new(Options::new(2).without_latency());
    let session = world.session().start().await.unwrap();
    for turn in 0..6 {
        session.ask(chatter(turn, 200)).await.unwrap();
    }
    let preview = session.preview(None).await.unwrap().unwrap();
    assert_eq!(session.status().epoch, 0);
    assert!(preview.tokens_after < preview.tokens_before);
    session.compact(None).await.unwrap();
    assert_eq!(session.memory().unwrap().text, preview.version.text);
}

#[tokio::test(start_paused = true)]
async fn pins_and_words_are_found_again() {
    let world = World::new(Options::new(2).without_latency());
    let session = world.session().start().await.unwrap();
    session
        .ask("Das Kennwort der Straße ist Übergröße.")
        .await
        .unwrap();
    for turn in 0..5 {
        session.ask(chatter(turn, 200)).await.unwrap();
    }
    session.pin_message(0).await.unwrap();
    assert!(matches!(
        session.pin_message(99).await,
        Err(SessionError::NoSuchMessage { .. })
    ));
    let pin = session.pin("The port is 8443.").await.unwrap();
    session.compact(None).await.unwrap();
    let text = session.memory().unwrap().text.clone();
    assert!(
        text.contains("Übergröße") && text.contains("8443"),
        "{text}"
    );
    session.unpin(&pin).await.unwrap();
    let hits = session
        .search(&SessionSearch {
            text: "Übergröße".to_owned(),
            in_all_sessions: false,
            limit: 5,
        })
        .await
        .unwrap();
    assert!(!hits.is_empty());
    // A fork begins with what was pinned.
    let fork = session.fork(4, world.session()).await.unwrap();
    assert_eq!(fork.pins().len(), 1);
    fork.ask("Go on here.").await.unwrap();
    assert_eq!(fork.status().messages, 6);
    assert_eq!(session.status().messages, 12);
}

#[tokio::test(start_paused = true)]
async fn opening_says_what_is_wrong() {
    let world = World::new(Options::new(2).without_latency());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builder = |world: &World| world.session().store(Arc::clone(&store));
    let session = builder(&world).start().await.unwrap();
    let id = session.id().clone();
    assert!(matches!(
        builder(&world).resume(&id).await,
        Err(OpenError::Store(_))
    ));
    assert!(matches!(
        builder(&world).id(id.clone()).start().await,
        Err(OpenError::Store(_))
    ));
    session.close().await.unwrap();
    let other = World::of_wire(Options::new(2), Wire::OpenAiChat);
    let opened = Session::builder(other.client.clone(), MODEL)
        .store(Arc::clone(&store))
        .resume(&id)
        .await;
    assert!(matches!(opened, Err(OpenError::OtherWire { .. })));
    let none = SessionId::new("none").unwrap();
    assert!(builder(&world).resume(&none).await.is_err());
    // Something that is no message and no settings.
    let mut writer = store.open(&id, std::time::Duration::ZERO).await.unwrap();
    let bad = throughline_store::Change::Settings("{".to_owned());
    writer.commit(0, vec![bad]).await.unwrap();
    drop(writer);
    assert!(matches!(
        builder(&world).resume(&id).await,
        Err(OpenError::Corrupt { .. })
    ));
}
