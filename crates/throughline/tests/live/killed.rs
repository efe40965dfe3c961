//! Processes that are killed in the middle of a session.
//!
//! The test starts itself again as the process that is killed: see [`victim`].

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use throughline::Session;
use throughline_simulator::Options;
use throughline_store::{FileStore, SessionId, SqliteStore, Store, StoreError};

use crate::world::{World, chatter};

const STORE: &str = "THROUGHLINE_TEST_VICTIM_STORE";

async fn open(path: &Path) -> Arc<dyn Store> {
    if path.extension().is_some() {
        Arc::new(SqliteStore::open(path).await.unwrap())
    } else {
        Arc::new(FileStore::open(path).await.unwrap())
    }
}

fn id() -> SessionId {
    SessionId::new("victim").unwrap()
}

fn world() -> World {
    World::new(Options::new(21).without_latency())
}

/// Goes on with the session, or begins it.
async fn session(world: &World, store: Arc<dyn Store>) -> Session {
    let builder = || world.session().window(12_000).store(Arc::clone(&store));
    match builder().id(id()).start().await {
        Ok(session) => session,
        Err(_) => builder()
            .open_wait(Duration::from_secs(5))
            .resume(&id())
            .await
            .unwrap(),
    }
}

/// Talks for ever and says on its output after every step how many messages were acknowledged. Does nothing unless it
/// was started to be killed.
#[tokio::test]
async fn victim() {
    let Some(path) = std::env::var_os(STORE) else {
        return;
    };
    let world = world();
    let session = session(&world, open(Path::new(&path)).await).await;
    for turn in 0.. {
        session.ask(chatter(turn, 120)).await.unwrap();
        println!("acknowledged {}", session.status().messages);
        if turn % 7 == 5 {
            session.compact(None).await.unwrap();
        }
    }
}

/// Kills the process after this many of its steps and a moment, and looks at what is left.
async fn kill(path: &Path, steps: usize, moment: Duration) {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::victim", "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut acknowledged = 0;
    let mut seen = 0;
    for line in lines {
        let line = line.unwrap();
        if let Some((_, number)) = line.split_once("acknowledged ") {
            acknowledged = number.trim().parse().unwrap();
            seen += 1;
        }
        if seen == steps {
            break;
        }
    }
    std::thread::sleep(moment);
    let began = std::time::Instant::now();
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(seen, steps, "the process ended by itself");

    let store = open(path).await;
    let loaded = match store.load(&id()).await {
        Err(StoreError::SessionNotFound { .. }) if acknowledged == 0 => return,
        loaded => loaded.unwrap(),
    };
    assert!(
        loaded.counts.message_count >= acknowledged,
        "a message was lost"
    );
    let cover = loaded.counts.covered_count;
    assert_eq!(
        loaded.tail.len() as u64,
        loaded.counts.message_count - cover
    );
    assert_eq!(
        loaded.memory.as_ref().map_or(0, |row| row.covered_count),
        cover
    );
    // Whatever is opened of it sends the same, however often it is opened.
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let world = world();
        let session = session(&world, open(path).await).await;
        session.ask("Where were we?").await.unwrap();
        assert_eq!(world.refused(), 0);
        bodies.push(world.provider.ledger().pop().unwrap().body);
        session
            .truncate(loaded.counts.message_count as usize)
            .await
            .unwrap();
        session.close().await.unwrap();
    }
    eprintln!("{:?} after the kill", began.elapsed());
    assert!(bodies[0] == bodies[1], "the request is another one");
}

async fn kills(count: usize) {
    let folder = tempfile::tempdir().unwrap();
    for (index, name) in (0..count).zip(["files", "base.db"].into_iter().cycle()) {
        // A new session now and then, so that beginnings are hit too.
        let path = folder.path().join(format!("{}-{name}", index / 10));
        let moment = Duration::from_micros((index as u64 * 7_919) % 20_000);
        kill(&path, index % 5, moment).await;
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing() {
    kills(6).await;
}

#[tokio::test]
#[ignore = "some minutes"]
async fn two_hundred_killed_processes_lose_nothing() {
    kills(200).await;
}
