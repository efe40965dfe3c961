//! The conformance suite over every store.

use std::sync::Arc;
use std::time::Duration;

use throughline_store::testing::{
    Home, adoption, agrees_with_model, conforms, id, memory, message, session,
};
use throughline_store::{Change, Durability, ErrorKind, Scope, Search, Shelf, Store};

use crate::homes::{InMemory, InSqlite};

#[tokio::test]
async fn memory_conforms() {
    conforms(&InMemory::default()).await;
}

#[tokio::test]
async fn sqlite_conforms() {
    conforms(&InSqlite::new(Durability::PowerLoss)).await;
}

#[test]
fn memory_agrees_with_the_model() {
    agrees_with_model(InMemory::default, 200);
}

#[test]
fn sqlite_agrees_with_the_model() {
    agrees_with_model(|| InSqlite::new(Durability::ProcessKill), 40);
}

/// A long archive is appended to and read in part; loading reads the tail alone.
async fn keeps_a_long_archive(home: &dyn Home, count: u64) {
    const TAIL: u64 = 7;
    let store = home.open().await;
    let id = id("long");
    store.create(session("long", 1), vec![]).await.unwrap();
    let mut writer = store.open(&id, Duration::ZERO).await.unwrap();
    for start in (0..count).step_by(1_000) {
        let messages = (start..start + 1_000)
            .map(|number| message(number, &format!("n{number}n")))
            .collect();
        writer.append(1, start, messages).await.unwrap();
    }
    let covered = count - TAIL;
    let changes = vec![
        Change::Memory(memory(1, covered, "all of it")),
        Change::Adopt {
            expected_epoch: 0,
            adoption: adoption(1, Some(1), covered),
        },
    ];
    writer.commit(2, changes).await.unwrap();
    drop(writer);
    let store = home.open().await;
    let loaded = store.load(&id).await.unwrap();
    assert_eq!(
        (loaded.counts.message_count, loaded.tail.len() as u64),
        (count, TAIL)
    );
    assert_eq!(
        loaded.tail[0].original,
        message(covered, &format!("n{covered}n")).original
    );
    let middle = store.message(&id, count / 2).await.unwrap();
    assert_eq!(
        middle.original,
        message(count / 2, &format!("n{}n", count / 2)).original
    );
    let search = Search {
        text: "N999N".into(),
        scope: Scope::All,
        shelf: Shelf::Both,
        limit: 9,
    };
    assert_eq!(store.search(&search).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_long_archive() {
    keeps_a_long_archive(&InMemory::default(), 100_000).await;
    keeps_a_long_archive(&InSqlite::new(Durability::ProcessKill), 5_000).await;
}

#[tokio::test]
#[ignore = "takes a minute; the program that measures does the same"]
async fn a_very_long_archive() {
    keeps_a_long_archive(&InSqlite::new(Durability::ProcessKill), 100_000).await;
}

/// Fills a store that has little room with long messages, and finds that what was accepted is there. What still has room
/// is still taken.
pub(crate) async fn loses_nothing_when_full(
    store: &dyn Store,
    reopened: impl Future<Output = Arc<dyn Store>>,
    word: &str,
) {
    store.create(session("full", 1), vec![]).await.unwrap();
    let mut writer = store.open(&id("full"), Duration::ZERO).await.unwrap();
    let text = word.repeat(1_000);
    let mut accepted = 0;
    let error = loop {
        match writer
            .append(2, accepted, vec![message(accepted, &text)])
            .await
        {
            Ok(counts) => accepted = counts.message_count,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    assert!(accepted > 2);
    assert_eq!(writer.load().await.unwrap().counts.message_count, accepted);
    writer
        .commit(3, vec![Change::Title("short".into())])
        .await
        .unwrap();
    drop(writer);
    let store = reopened.await;
    let messages = store.messages(&id("full"), 0..u64::MAX).await.unwrap();
    assert_eq!(messages.len() as u64, accepted);
    assert!(
        (0..)
            .zip(&messages)
            .all(|(number, stored)| stored.original == message(number, &text).original)
    );
}
