//! Processes that are killed while they write.

use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use throughline_store::testing::{adoption, digest, memory, message, session};
use throughline_store::{Change, Durability, Page, SessionId, Store, StoreError};

use crate::processes::{open, part, place};

const ID: &str = "killed";
/// Every commit adds this many messages and one event.
const MESSAGES: u64 = 3;
/// Every so many commits, a memory is made and adopted, in the same commit.
const ADOPT_EVERY: u64 = 4;

/// The commit with this number, from 0: everything in it follows from the number.
fn commit(number: u64) -> Vec<Change> {
    let count = number * MESSAGES;
    let messages = (count..count + MESSAGES)
        .map(|position| message(position, &text(position)))
        .collect();
    let mut changes = vec![
        Change::Append {
            expected_count: count,
            messages,
        },
        Change::Event {
            kind: "committed".into(),
            json: number.to_string(),
        },
    ];
    if number % ADOPT_EVERY == ADOPT_EVERY - 1 {
        let version = number / ADOPT_EVERY + 1;
        changes.push(Change::Memory(memory(
            version,
            count,
            &format!("memory {version}"),
        )));
        let adoption = adoption(version, Some(version), count);
        changes.push(Change::Adopt {
            expected_epoch: version - 1,
            adoption,
        });
        changes.push(Change::Settings(format!("settings {version}")));
    }
    changes
}

fn text(position: u64) -> String {
    format!(
        "message {position} {}",
        "some words ".repeat(position as usize % 50)
    )
}

#[tokio::test]
#[ignore = "a part, played in a process of its own"]
async fn writes_until_it_is_killed() {
    let Some(folder) = place() else {
        return;
    };
    let store = open(&folder, Durability::ProcessKill).await;
    let id = SessionId::new(ID).unwrap();
    let mut writer = store.open(&id, Duration::ZERO).await.unwrap();
    let mut number = writer.load().await.unwrap().counts.message_count / MESSAGES;
    loop {
        writer.commit(number as i64, commit(number)).await.unwrap();
        number += 1;
        let mut out = std::io::stdout().lock();
        writeln!(out, "\naccepted {number}").unwrap();
        out.flush().unwrap();
    }
}

/// What is stored is what so many commits make, whole.
async fn check(store: &dyn Store) -> u64 {
    let id = SessionId::new(ID).unwrap();
    let loaded = store.load(&id).await.unwrap();
    let counts = loaded.counts;
    let commits = counts.message_count / MESSAGES;
    let version = commits / ADOPT_EVERY;
    let covered = if version == 0 {
        0
    } else {
        (version * ADOPT_EVERY - 1) * MESSAGES
    };
    assert_eq!(
        (
            counts.message_count,
            counts.memory_version,
            counts.epoch,
            counts.covered_count
        ),
        (commits * MESSAGES, version, version, covered),
    );
    if version > 0 {
        assert_eq!(
            loaded.memory,
            Some(memory(version, covered, &format!("memory {version}")))
        );
        assert_eq!(
            loaded.adoption,
            Some(adoption(version, Some(version), covered))
        );
        assert_eq!(loaded.settings, format!("settings {version}"));
        assert_eq!(loaded.covered_digest, Some(digest(covered - 1)));
    }
    let messages = store.messages(&id, 0..u64::MAX).await.unwrap();
    for (position, stored) in (0..).zip(&messages) {
        let expected = message(position, &text(position));
        assert_eq!(
            (&stored.original, &stored.sent, stored.digest),
            (&expected.original, &expected.sent, expected.digest)
        );
    }
    assert_eq!(messages.len() as u64, counts.message_count);
    assert_eq!(messages[covered as usize..], loaded.tail);
    // One event for each commit: none is half there.
    let first_absent = Page {
        skip: commits,
        limit: 1,
    };
    assert_eq!(store.events(&id, first_absent).await.unwrap(), []);
    let last = Page {
        skip: commits.saturating_sub(1),
        limit: 1,
    };
    assert_eq!(
        store.events(&id, last).await.unwrap().len() as u64,
        commits.min(1)
    );
    commits
}

async fn survives(kills: u32) {
    let folder = tempfile::tempdir().unwrap();
    let id = SessionId::new(ID).unwrap();
    let store = open(folder.path(), Durability::ProcessKill).await;
    store.create(session(ID, 0), vec![]).await.unwrap();
    drop(store);
    let mut commits = 0;
    for kill in 0..kills {
        let accepted = write_and_kill(folder.path(), kill);
        let store = open(folder.path(), Durability::ProcessKill).await;
        let found = check(&*store).await;
        // At most the one that was under way may be there besides.
        let known = accepted.unwrap_or(commits);
        assert!(
            found >= known && (accepted.is_none() || found <= known + 1),
            "accepted {known}, found {found}"
        );
        // The killed process is in nobody's way, and the session goes on.
        let mut writer = store.open(&id, Duration::ZERO).await.unwrap();
        writer.commit(0, commit(found)).await.unwrap();
        commits = found + 1;
    }
    assert!(
        commits > u64::from(kills),
        "the processes were killed before they wrote anything"
    );
}

/// Gives what the process said last.
fn write_and_kill(folder: &Path, kill: u32) -> Option<u64> {
    let random = RandomState::new().hash_one(kill);
    let mut child = part("crash::writes_until_it_is_killed", folder, "")
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut accepted = out.lines().map_while(Result::ok).filter_map(|line| {
        line.strip_prefix("accepted ")
            .and_then(|number| number.parse().ok())
    });
    let mut last = None;
    // A third are killed while they open the store, or soon after; the others once they have begun to write.
    if !random.is_multiple_of(3) {
        last = accepted.next();
        assert!(
            last.is_some(),
            "the process could not write: {:?}",
            child.wait_with_output()
        );
    }
    std::thread::sleep(Duration::from_micros((random >> 8) % 30_000));
    child.kill().unwrap();
    child.wait().unwrap();
    accepted.last().or(last)
}

#[tokio::test]
#[ignore = "a part, played in a process of its own"]
async fn holds_the_right_to_write() {
    let Some(folder) = place() else {
        return;
    };
    let store = open(&folder, Durability::ProcessKill).await;
    let _writer = store
        .open(&SessionId::new(ID).unwrap(), Duration::ZERO)
        .await
        .unwrap();
    println!("\nholding");
    std::io::stdout().flush().unwrap();
    // Until it is killed, or nobody is there any more who would.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

#[tokio::test]
async fn a_second_process_is_told_who_writes_or_waits() {
    let folder = tempfile::tempdir().unwrap();
    let id = SessionId::new(ID).unwrap();
    let store = open(folder.path(), Durability::ProcessKill).await;
    store.create(session(ID, 0), vec![]).await.unwrap();
    let mut child = part("crash::holds_the_right_to_write", folder.path(), "")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(lines.any(|line| line == "holding"));

    let StoreError::Busy { pid, .. } = store.open(&id, Duration::ZERO).await.err().unwrap() else {
        panic!("two processes must not write one session");
    };
    assert_eq!(pid, Some(child.id()));
    assert_eq!(store.load(&id).await.unwrap().counts.message_count, 0);

    let waiting = store.open(&id, Duration::from_secs(60));
    let killing = async {
        child.kill().unwrap();
        child.wait().unwrap();
    };
    let (opened, ()) = futures_util::future::join(waiting, killing).await;
    opened.unwrap();
}

#[tokio::test]
async fn sqlite_survives_being_killed() {
    survives(20).await;
}

#[tokio::test]
#[ignore = "takes a minute; for docs/benchmarks.md"]
async fn sqlite_survives_being_killed_many_times() {
    survives(200).await;
}
