//! Sessions that an earlier version stored open, continue and are undone.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use throughline::Session;
use throughline::engine::Mode;
use throughline_simulator::Options;
use throughline_store::{MemoryStore, Page, SessionId, SqliteStore, Store, old_files};
use throughline_transcript::wire::Wire;

use crate::world::World;

const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/stored");

/// The database of the earlier version, in a folder that the test may write to.
async fn database(folder: &Path) -> Arc<dyn Store> {
    let packed = std::fs::read(format!("{STORED}/sessions.db.gz")).unwrap();
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    let path = folder.join("sessions.db");
    std::fs::write(&path, unpacked).unwrap();
    Arc::new(SqliteStore::open(path).await.unwrap())
}

async fn resume(store: &Arc<dyn Store>, world: &World, model: &str, id: &str) -> Session {
    Session::builder(world.client.clone(), model)
        .store(Arc::clone(store))
        .resume(&SessionId::new(id).unwrap())
        .await
        .unwrap()
}

fn last_body(world: &World) -> String {
    let last = world.provider.ledger().pop().unwrap();
    String::from_utf8(last.body.to_vec()).unwrap()
}

/// Opens `library-orders`, continues it with its memory and takes its swaps back.
async fn continue_orders(store: &Arc<dyn Store>) {
    let world = World::new(Options::new(7).without_latency());
    let session = resume(store, &world, "claude-opus-4-6", "library-orders").await;
    let status = session.status();
    assert_eq!(
        (
            status.epoch,
            status.cover,
            status.messages,
            status.version,
            status.overhead,
            status.limit
        ),
        (2, 19, 24, Some(2), 531, 58_000)
    );
    let pins: Vec<String> = session.pins().into_iter().map(|pin| pin.text).collect();
    assert_eq!(pins, ["The port is 8443."]);
    let costs = session.costs();
    assert_eq!((costs.main.calls, costs.updates.calls), (12, 0));
    assert_eq!(costs.main.usage.uncached, 24_822);
    assert_eq!(costs.main.cost.nano_dollars(), 140_185_000);
    assert_eq!(costs.without_compaction.calls, 12);
    assert_eq!(costs.without_compaction.cost.nano_dollars(), 54_711_500);

    session.ask("And the port?").await.unwrap();
    let body = last_body(&world);
    for fact in [
        "the deploy region is eu-north-3",
        "Never force-push to main.",
        "The port is 8443.",
        "You are a careful assistant.",
        "And the port?",
    ] {
        assert!(body.contains(fact), "{fact} is missing: {body}");
    }
    let of_a_covered_message = "line11x59";
    assert!(!body.contains(of_a_covered_message), "{body}");
    // Changed while it ran: the mode and how many failures are borne.
    session
        .configure(|settings| {
            assert_eq!(
                (settings.mode, settings.failures_max),
                (Mode::Traditional, 5)
            );
        })
        .await
        .unwrap();

    session.undo().await.unwrap();
    let status = session.status();
    assert_eq!((status.version, status.messages), (Some(1), 26));
    session.undo().await.unwrap();
    assert_eq!(session.status().version, None);
    session.ask("And now?").await.unwrap();
    let body = last_body(&world);
    assert!(body.contains(of_a_covered_message), "{body}");
    assert!(session.undo().await.is_err());
    assert_eq!(world.refused(), 0);
    session.close().await.unwrap();

    // What the new version stored, it opens again.
    let again = resume(store, &world, "claude-opus-4-6", "library-orders").await;
    let status = again.status();
    assert_eq!((status.version, status.messages), (None, 28));
    again.close().await.unwrap();
}

#[tokio::test]
async fn a_database_of_an_earlier_version_opens() {
    let folder = tempfile::tempdir().unwrap();
    let store = database(folder.path()).await;
    assert_eq!(store.sessions(Page::first(10)).await.unwrap().len(), 6);
    continue_orders(&store).await;

    let world = World::new(Options::new(7).without_latency());
    let fork = resume(&store, &world, "claude-opus-4-6", "library-fork").await;
    let status = fork.status();
    assert_eq!((status.messages, status.version), (8, None));
    fork.ask("Go on.").await.unwrap();
    assert!(last_body(&world).contains("Go another way."));
    fork.close().await.unwrap();
    let info = store.session(fork.id()).await.unwrap();
    let parent = info.parent.unwrap();
    assert_eq!(
        (
            parent.session.as_str(),
            parent.message_count,
            info.title.as_str()
        ),
        ("library-orders", 6, "Another way")
    );

    let world = World::of_wire(Options::new(7).without_latency(), Wire::OpenAiChat);
    let chat = resume(&store, &world, "gpt-4.1-mini", "library-chat").await;
    assert_eq!((chat.status().messages, chat.costs().main.calls), (4, 3));
    chat.ask("And then?").await.unwrap();
    assert!(last_body(&world).contains("What is my name?"));
    let superseded = store.superseded(chat.id(), Page::first(10)).await.unwrap();
    assert_eq!(superseded.len(), 2);
    chat.close().await.unwrap();
}

#[tokio::test]
async fn a_session_in_files_of_an_earlier_version_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("sessions");
    let (from, to) = (
        format!("{STORED}/sessions/library-orders"),
        root.join("library-orders"),
    );
    std::fs::create_dir_all(&to).unwrap();
    for name in ["commits.log", "transcript.jsonl", "parts.bin"] {
        std::fs::copy(format!("{from}/{name}"), to.join(name)).unwrap();
    }
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let imported = old_files::import(&root, store.as_ref()).await.unwrap();
    assert_eq!((imported.sessions, imported.failed.len()), (1, 0));
    continue_orders(&store).await;
}
