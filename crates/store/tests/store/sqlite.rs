//! What is particular to SQLite.

use std::fs;
use std::time::Duration;

use sqlx::{Connection, SqliteConnection};
use throughline_store::testing::{Home, append, id, memory, session};
use throughline_store::{
    Access, Change, Durability, ErrorKind, Page, Scope, Search, Shelf, SqliteStore,
    SqliteStoreOptions, Store, StoreError,
};

use crate::homes::InSqlite;
use crate::suite::loses_nothing_when_full;

#[tokio::test]
async fn a_newer_format_is_refused() {
    let home = InSqlite::new(Durability::ProcessKill);
    let store = SqliteStore::open(home.path()).await.unwrap();
    store.create(session("kept", 1), vec![]).await.unwrap();
    store.close().await;
    let mut connection = SqliteConnection::connect(&format!("sqlite:{}", home.path().display()))
        .await
        .unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations VALUES (9999, 'later', CURRENT_TIMESTAMP, TRUE, x'00', 0)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    connection.close().await.unwrap();
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let mut options = SqliteStoreOptions::default();
        options.access = access;
        let error = SqliteStore::open_with(home.path(), options)
            .await
            .err()
            .unwrap();
        assert!(
            matches!(
                error,
                StoreError::Newer {
                    found: 9999,
                    known: 1
                }
            ),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_no_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let notes = "not a database ".repeat(1_000);
    fs::write(&path, &notes).unwrap();
    let error = SqliteStore::open(&path).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), notes);
}

#[tokio::test]
async fn a_read_only_store_is_read() {
    let home = InSqlite::new(Durability::PowerLoss);
    let store = home.open().await;
    store
        .create(session("seen", 1), vec![append(0, &["look at this"])])
        .await
        .unwrap();
    let mut options = SqliteStoreOptions::default();
    options.access = Access::ReadOnly;
    let reader = SqliteStore::open_with(home.path(), options.clone())
        .await
        .unwrap();
    assert_eq!(
        reader.sessions(Page::first(9)).await.unwrap(),
        store.sessions(Page::first(9)).await.unwrap()
    );
    let refused = reader
        .create(session("more", 1), vec![])
        .await
        .err()
        .unwrap();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert_eq!(
        reader
            .open(&id("seen"), Duration::ZERO)
            .await
            .err()
            .unwrap()
            .kind(),
        ErrorKind::ReadOnly
    );
    assert_eq!(
        reader.delete(&id("seen")).await.err().unwrap().kind(),
        ErrorKind::ReadOnly
    );
    let missing = home.path().with_file_name("missing.db");
    assert!(SqliteStore::open_with(&missing, options).await.is_err());
    assert!(!missing.exists());
}

#[tokio::test]
async fn a_full_database_loses_nothing() {
    let home = InSqlite::new(Durability::PowerLoss);
    let mut options = SqliteStoreOptions::default();
    options.database_bytes_max = Some(600 * 1024);
    let store = SqliteStore::open_with(home.path(), options).await.unwrap();
    let reopened = async {
        store.close().await;
        home.open().await
    };
    loses_nothing_when_full(&store, reopened, "longer words ").await;
}

#[tokio::test]
async fn what_is_deleted_is_overwritten() {
    let home = InSqlite::new(Durability::PowerLoss);
    let store = SqliteStore::open(home.path()).await.unwrap();
    let texts: Vec<String> = (0..300)
        .map(|number| format!("zebraquagga {number}"))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let changes = vec![
        append(0, &texts),
        Change::Memory(memory(1, 1, "zebraquagga")),
        Change::Title("zebraquagga".into()),
    ];
    store.create(session("secret", 1), changes).await.unwrap();
    store
        .create(session("other", 1), vec![append(0, &["an ordinary text"])])
        .await
        .unwrap();
    store.delete(&id("secret")).await.unwrap();
    store.close().await;
    let bytes = fs::read(home.path()).unwrap();
    let has = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    assert!(has(b"ordinary"), "the test looks at the wrong bytes");
    assert!(!has(b"zebraquagga"));
    // Nor is a token of it left in the index, where each stands by itself, after those that it begins like.
    let mut connection = SqliteConnection::connect(&format!("sqlite:{}", home.path().display()))
        .await
        .unwrap();
    sqlx::query("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, 'message_search', 'row')")
        .execute(&mut connection)
        .await
        .unwrap();
    let terms: Vec<String> = sqlx::query_scalar("SELECT term FROM temp.terms")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert!(
        terms.contains(&"ord".into()) && !terms.contains(&"zeb".into()),
        "{terms:?}"
    );
}

#[tokio::test]
async fn many_open_a_new_database_at_once() {
    let home = InSqlite::new(Durability::ProcessKill);
    let stores = futures_util::future::join_all((0..8).map(|_| home.open())).await;
    for (number, store) in stores.iter().enumerate() {
        store
            .create(session(&format!("s{number}"), 1), vec![])
            .await
            .unwrap();
    }
    assert_eq!(stores[0].sessions(Page::first(99)).await.unwrap().len(), 8);
}

#[tokio::test]
async fn the_room_of_deleted_sessions_is_given_back() {
    let home = InSqlite::new(Durability::ProcessKill);
    let store = SqliteStore::open(home.path()).await.unwrap();
    let long = "so many words ".repeat(20_000);
    for name in ["kept", "gone"] {
        store
            .create(session(name, 1), vec![append(0, &[&long, "ferry"])])
            .await
            .unwrap();
    }
    store.shrink().await.unwrap();
    let size = || fs::metadata(home.path()).unwrap().len();
    let before = size();
    store.delete(&id("gone")).await.unwrap();
    store.shrink().await.unwrap();
    assert!(size() < before * 3 / 4, "{} of {before} bytes", size());
    let found = store
        .search(&Search {
            text: "ferry".to_owned(),
            scope: Scope::All,
            shelf: Shelf::Archive,
            limit: 9,
        })
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].session, id("kept"));
}

/// Commits that come at the same time are made together; one that cannot be made does the others no harm.
#[tokio::test(flavor = "multi_thread")]
async fn commits_of_many_sessions_are_independent_of_each_other() {
    let home = InSqlite::new(Durability::ProcessKill);
    let store = SqliteStore::open(home.path()).await.unwrap();
    let mut writers = Vec::new();
    for number in 0..20 {
        let name = format!("s{number}");
        store.create(session(&name, 1), vec![]).await.unwrap();
        writers.push(store.open(&id(&name), Duration::ZERO).await.unwrap());
    }
    for round in 0..10 {
        let mut running = tokio::task::JoinSet::new();
        for (number, mut writer) in writers.drain(..).enumerate() {
            running.spawn(async move {
                let is_wrong = (number + round) % 5 == 0;
                let expected = if is_wrong { 1_000 } else { round as u64 };
                let first = writer.commit(1, vec![append(expected, &["a"])]).await;
                assert_eq!(first.is_err(), is_wrong, "{number} {round} {first:?}");
                if is_wrong {
                    let error = first.unwrap_err();
                    assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
                    writer
                        .commit(1, vec![append(round as u64, &["a"])])
                        .await
                        .unwrap();
                }
                (number, writer)
            });
        }
        let mut done = running.join_all().await;
        done.sort_by_key(|(number, _)| *number);
        writers = done.into_iter().map(|(_, writer)| writer).collect();
    }
    for number in 0..20 {
        let loaded = store.load(&id(&format!("s{number}"))).await.unwrap();
        assert_eq!((loaded.counts.message_count, loaded.tail.len()), (10, 10));
    }
}

/// What a caller no longer waits for is committed all the same, and the next commit knows of it.
#[tokio::test]
async fn a_commit_that_nobody_waits_for_is_made() {
    let home = InSqlite::new(Durability::ProcessKill);
    let store = SqliteStore::open(home.path()).await.unwrap();
    store.create(session("s", 1), vec![]).await.unwrap();
    let mut writer = store.open(&id("s"), Duration::ZERO).await.unwrap();
    {
        let mut commit = writer.commit(1, vec![append(0, &["a"])]);
        assert!(futures_util::poll!(&mut commit).is_pending());
    }
    let counts = writer.commit(2, vec![append(1, &["a"])]).await.unwrap();
    assert_eq!(counts.message_count, 2);
}
