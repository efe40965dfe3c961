//! Processes that are killed in the middle of a session.
//!
//! The test starts itself again as the process that is killed: see [`victim`].

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use throughline::Session;
use throughline_simulator::Options;
use throughline_store::{SessionId, SqliteStore, Store, StoreError};
use throughline_transcript::request::message;
use throughline_transcript::wire::Wire;

use crate::world::{World, chatter};

const STORE: &str = "THROUGHLINE_TEST_VICTIM_STORE";

async fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path).await.unwrap())
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

/// Talks for ever and says on its output what was acknowledged, as soon as it was: place and bytes of every message, and
/// each answered step. Does nothing unless it was started to be killed.
#[tokio::test]
async fn victim() {
    let Some(path) = std::env::var_os(STORE) else {
        return;
    };
    let world = world();
    let session = session(&world, open(Path::new(&path)).await).await;
    let mut place = session.status().messages;
    for turn in 0.. {
        let said = chatter(turn, 120);
        let answer = session.send(said.as_str()).await.unwrap();
        let said = message::user(Wire::Anthropic, &said);
        println!("message {place} {}", said.as_str());
        place += 1;
        for message in answer.answer().await.unwrap().reply.messages {
            println!("message {place} {}", message.as_str());
            place += 1;
        }
        println!("answered");
        if turn % 7 == 5 {
            session.compact(None).await.unwrap();
        }
    }
}

/// Reads what the process says of messages, up to an answered step; whether there was one.
fn read_step(lines: &mut impl BufRead, acknowledged: &mut Vec<(u64, String)>) -> bool {
    let mut line = String::new();
    // What has no end of line was being written when the process was killed.
    while lines.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        if let Some((_, message)) = line.trim_end().split_once("message ") {
            let (place, bytes) = message.split_once(' ').unwrap();
            acknowledged.push((place.parse().unwrap(), bytes.to_owned()));
        } else if line.trim_end().ends_with("answered") {
            return true;
        }
        line.clear();
    }
    false
}

/// Kills the process after this many of its steps and a moment, and looks at what is left. `acknowledged` are the
/// messages of this session so far.
async fn kill(path: &Path, steps: usize, moment: Duration, acknowledged: &mut Vec<(u64, String)>) {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::victim", "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap());
    for step in 0..steps {
        let is_there = read_step(&mut lines, acknowledged);
        assert!(is_there, "the process ended on its own after {step} steps");
    }
    std::thread::sleep(moment);
    let began = std::time::Instant::now();
    process.kill().unwrap();
    process.wait().unwrap();
    while read_step(&mut lines, acknowledged) {}

    let store = open(path).await;
    let loaded = match store.load(&id()).await {
        Err(StoreError::SessionNotFound { .. }) if acknowledged.is_empty() => return,
        loaded => loaded.unwrap(),
    };
    let count = loaded.counts.message_count;
    let kept = store.messages(&id(), 0..count).await.unwrap();
    assert!(kept.iter().map(|message| message.position).eq(0..count));
    for (place, bytes) in acknowledged.iter() {
        let message = kept.get(*place as usize);
        let message = message.unwrap_or_else(|| panic!("message {place} of {count} was lost"));
        assert_eq!(
            String::from_utf8_lossy(&message.original),
            *bytes,
            "message {place} is another one"
        );
    }
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
    let mut acknowledged: HashMap<PathBuf, Vec<(u64, String)>> = HashMap::new();
    for index in 0..count {
        // A new session now and then, so that beginnings are hit too.
        let path = folder.path().join(format!("{}.db", index / 10));
        let moment = Duration::from_micros((index as u64 * 7_919) % 20_000);
        let of_session = acknowledged.entry(path.clone()).or_default();
        kill(&path, index % 5, moment, of_session).await;
    }
    assert!(acknowledged.values().flatten().count() > count);
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
