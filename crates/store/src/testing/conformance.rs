//! What can be said of every store, one by one.

#![expect(clippy::unwrap_used, reason = "a test says so when something is wrong")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{HOSTILE_TEXTS, Home, adoption, append, id, memory, message, session};
use crate::change::Change;
use crate::error::{ErrorKind, StoreError};
use crate::limits::{SEARCH_BYTES_MAX, TITLE_BYTES_MAX};
use crate::search::{Hit, Place, Scope, Search, Shelf};
use crate::session::ForkPoint;
use crate::store::{Page, Store};

/// Checks a store that has no sessions yet.
///
/// # Panics
/// When the store does not do what every store must do.
pub async fn conforms(home: &dyn Home) {
    commits_are_whole(home).await;
    an_epoch_may_change_its_state(home).await;
    one_writer_at_a_time(home).await;
    forks_outlive_their_parents(home).await;
    cut_off_messages_stay_readable(home).await;
    hostile_texts_are_only_texts(home).await;
    limits_are_said_before_anything_is_written(home).await;
    deleting_leaves_nothing(home).await;
    concurrent_writers_of_several_sessions(home).await;
}

fn kind<T>(result: Result<T, StoreError>) -> ErrorKind {
    result.err().unwrap().kind()
}

async fn commits_are_whole(home: &dyn Home) {
    let store = home.open().await;
    let id = id("whole");
    store
        .create(session("whole", 1), vec![append(0, &["one", "two"])])
        .await
        .unwrap();
    let mut writer = store.open(&id, Duration::ZERO).await.unwrap();
    let before = writer.load().await.unwrap();

    // The last change cannot be applied, so that none is.
    let changes = vec![
        append(2, &["three"]),
        Change::Memory(memory(1, 2, "a memory")),
        Change::Title("another".into()),
        Change::Adopt {
            expected_epoch: 9,
            adoption: adoption(10, Some(1), 2),
        },
    ];
    assert_eq!(kind(writer.commit(2, changes).await), ErrorKind::Conflict);
    assert_eq!(writer.load().await.unwrap(), before);

    let changes = vec![
        Change::Memory(memory(1, 2, "a memory")),
        Change::Adopt {
            expected_epoch: 0,
            adoption: adoption(1, Some(1), 2),
        },
        append(2, &["three"]),
    ];
    writer.commit(3, changes).await.unwrap();
    let after = writer.load().await.unwrap();
    assert_eq!(after.memory, Some(memory(1, 2, "a memory")));
    assert_eq!(after.newer_memory, None);
    assert_eq!(
        after
            .tail
            .iter()
            .map(|message| message.position)
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(after.covered_digest, Some(message(1, "two").digest));
    drop(writer);
    assert_eq!(home.open().await.load(&id).await.unwrap(), after);
}

async fn an_epoch_may_change_its_state(home: &dyn Home) {
    let store = home.open().await;
    let id = id("state");
    let changes = vec![append(0, &["one", "two"])];
    store.create(session("state", 1), changes).await.unwrap();
    let mut writer = store.open(&id, Duration::ZERO).await.unwrap();
    let adopt = |epoch, version, covered, state: &str| {
        let mut adoption = adoption(epoch, version, covered);
        adoption.state = state.to_owned();
        let expected_epoch = epoch;
        vec![Change::Adopt {
            expected_epoch,
            adoption,
        }]
    };
    // Nothing is adopted yet, and nothing is now.
    let changes = adopt(0, None, 0, "a");
    assert_eq!(writer.commit(2, changes).await.unwrap().epoch, 0);
    let changes = vec![
        Change::Memory(memory(1, 1, "a memory")),
        Change::Adopt {
            expected_epoch: 0,
            adoption: adoption(1, Some(1), 1),
        },
    ];
    writer.commit(3, changes).await.unwrap();
    writer.commit(4, adopt(1, Some(1), 1, "b")).await.unwrap();
    // Another cover is another epoch.
    let other = writer.commit(5, adopt(1, None, 0, "c")).await;
    assert_eq!(kind(other), ErrorKind::Invalid);
    let loaded = writer.load().await.unwrap();
    drop(writer);
    let adopted = loaded.adoption.as_ref().unwrap();
    assert_eq!((adopted.epoch, adopted.state.as_str()), (1, "b"));
    assert_eq!(loaded.counts.covered_count, 1);
    assert_eq!(home.open().await.load(&id).await.unwrap(), loaded);
}

async fn one_writer_at_a_time(home: &dyn Home) {
    let (store, other) = (home.open().await, home.open().await);
    let id = id("lease");
    assert_eq!(
        kind(store.open(&id, Duration::ZERO).await),
        ErrorKind::NotFound
    );
    store.create(session("lease", 1), vec![]).await.unwrap();
    assert_eq!(
        kind(store.create(session("lease", 1), vec![]).await),
        ErrorKind::Conflict
    );

    let writer = store.open(&id, Duration::ZERO).await.unwrap();
    for store in [&store, &other] {
        let StoreError::Busy { session, pid } =
            store.open(&id, Duration::ZERO).await.err().unwrap()
        else {
            panic!("a second writer must be told that there is a first");
        };
        assert_eq!((session, pid), (id.clone(), Some(std::process::id())));
    }
    assert_eq!(kind(other.delete(&id).await), ErrorKind::Busy);
    assert_eq!(other.session(&id).await.unwrap().message_count, 0);

    let started = Instant::now();
    let wait = Duration::from_millis(30);
    assert_eq!(kind(other.open(&id, wait).await), ErrorKind::Busy);
    assert!(started.elapsed() >= wait);
    drop(writer);
    other.open(&id, Duration::ZERO).await.unwrap();

    // One who waits gets it as soon as it is free.
    let writer = store.open(&id, Duration::ZERO).await.unwrap();
    let waiting = other.open(&id, Duration::from_secs(30));
    let (opened, ()) = futures_util::future::join(waiting, async { drop(writer) }).await;
    opened.unwrap();
}

async fn forks_outlive_their_parents(home: &dyn Home) {
    let store = home.open().await;
    store
        .create(
            session("parent", 1),
            vec![append(0, &["kept words", "also kept", "not taken along"])],
        )
        .await
        .unwrap();
    let mut fork = session("fork", 2);
    fork.parent = Some(ForkPoint {
        session: id("parent"),
        message_count: 2,
    });
    let changes = vec![
        Change::Memory(memory(1, 2, "what was kept")),
        Change::Adopt {
            expected_epoch: 0,
            adoption: adoption(1, Some(1), 2),
        },
    ];
    store.create(fork.clone(), changes).await.unwrap();

    let of_parent = store.messages(&id("parent"), 0..2).await.unwrap();
    let mut writer = store.open(&id("fork"), Duration::ZERO).await.unwrap();
    writer
        .append(3, 2, vec![message(90, "went another way")])
        .await
        .unwrap();
    drop(writer);
    store.delete(&id("parent")).await.unwrap();

    let messages = store.messages(&id("fork"), 0..9).await.unwrap();
    let digests = store.digests(&id("fork"), 1..9).await.unwrap();
    assert_eq!(
        digests,
        messages[1..]
            .iter()
            .map(|message| message.digest)
            .collect::<Vec<_>>()
    );
    assert_eq!((&messages[..2], messages.len()), (&of_parent[..], 3));
    assert_eq!(
        store.session(&id("fork")).await.unwrap().parent,
        fork.parent
    );
    assert_eq!(
        places(&store, "KEPT", Scope::Session(id("fork")), Shelf::Archive).await,
        [at(1), at(0)]
    );
    assert_eq!(places(&store, "taken", Scope::All, Shelf::Both).await, []);

    fork.parent = Some(ForkPoint {
        session: id("fork"),
        message_count: 4,
    });
    fork.id = id("fork-2");
    assert_eq!(
        kind(store.create(fork.clone(), vec![]).await),
        ErrorKind::Invalid
    );
    fork.parent = Some(ForkPoint {
        session: id("nobody"),
        message_count: 0,
    });
    assert_eq!(kind(store.create(fork, vec![]).await), ErrorKind::NotFound);
    assert_eq!(
        kind(store.session(&id("fork-2")).await),
        ErrorKind::NotFound
    );
}

async fn cut_off_messages_stay_readable(home: &dyn Home) {
    let store = home.open().await;
    store
        .create(
            session("cut", 1),
            vec![append(0, &["zero", "one wrong", "two wrong"])],
        )
        .await
        .unwrap();
    let mut writer = store.open(&id("cut"), Duration::ZERO).await.unwrap();
    let cut = store.messages(&id("cut"), 1..3).await.unwrap();
    writer
        .commit(
            5,
            vec![Change::Truncate { to_count: 1 }, append(1, &["one right"])],
        )
        .await
        .unwrap();
    assert_eq!(store.session(&id("cut")).await.unwrap().message_count, 2);
    let superseded = store.superseded(&id("cut"), Page::first(9)).await.unwrap();
    assert_eq!(
        superseded
            .iter()
            .map(|row| (row.sequence, row.superseded_ms))
            .collect::<Vec<_>>(),
        [(0, 5), (1, 5)]
    );
    assert_eq!(
        superseded
            .into_iter()
            .map(|row| row.message)
            .collect::<Vec<_>>(),
        cut
    );
    let scope = Scope::Session(id("cut"));
    assert_eq!(
        places(&store, "one", scope, Shelf::Archive).await,
        [at(1), Place::Superseded { sequence: 0 }],
    );
}

async fn hostile_texts_are_only_texts(home: &dyn Home) {
    let store = home.open().await;
    store
        .create(session("hostile", 1), vec![append(0, &HOSTILE_TEXTS)])
        .await
        .unwrap();
    let scope = || Scope::Session(id("hostile"));
    for (position, text) in (0..).zip(HOSTILE_TEXTS) {
        let stored = store.message(&id("hostile"), position).await.unwrap();
        assert_eq!(stored.original, message(position, text).original);
        let found = places(&store, text, scope(), Shelf::Both).await;
        assert_eq!(
            found.contains(&at(position)),
            !text.trim().is_empty(),
            "{text:?}: {found:?}"
        );
    }
    let mut writer = store.open(&id("hostile"), Duration::ZERO).await.unwrap();
    for text in HOSTILE_TEXTS {
        writer
            .commit(
                2,
                vec![Change::Title(text.into()), Change::Settings(text.into())],
            )
            .await
            .unwrap();
        let loaded = writer.load().await.unwrap();
        assert_eq!(
            (loaded.session.title.as_str(), loaded.settings.as_str()),
            (text, text)
        );
    }
    let long = "x".repeat(SEARCH_BYTES_MAX);
    assert_eq!(places(&store, &long, scope(), Shelf::Both).await, []);
    let various: String = ('\u{4e00}'..).take(SEARCH_BYTES_MAX / 3).collect();
    assert_eq!(places(&store, &various, scope(), Shelf::Both).await, []);
    assert_eq!(
        kind(search(&store, &format!("{long}x"), scope(), Shelf::Both).await),
        ErrorKind::TooLarge
    );
}

async fn limits_are_said_before_anything_is_written(home: &dyn Home) {
    let store = home.open().await;
    store.create(session("limits", 1), vec![]).await.unwrap();
    let mut writer = store.open(&id("limits"), Duration::ZERO).await.unwrap();
    let changes = vec![
        append(0, &["small"]),
        Change::Title("t".repeat(TITLE_BYTES_MAX + 1)),
    ];
    let StoreError::TooLarge {
        what,
        bytes,
        bytes_max,
    } = writer.commit(2, changes).await.err().unwrap()
    else {
        panic!("a title above the limit must be refused");
    };
    assert_eq!(
        (what, bytes, bytes_max),
        ("title", TITLE_BYTES_MAX + 1, TITLE_BYTES_MAX)
    );
    assert_eq!(store.session(&id("limits")).await.unwrap().message_count, 0);
    writer
        .commit(2, vec![Change::Title("t".repeat(TITLE_BYTES_MAX))])
        .await
        .unwrap();
}

async fn deleting_leaves_nothing(home: &dyn Home) {
    let store = home.open().await;
    let changes = vec![
        append(0, &["unforgettable", "b"]),
        Change::Memory(memory(1, 1, "unforgettable")),
    ];
    store.create(session("gone", 1), changes).await.unwrap();
    assert_eq!(
        places(&store, "forgettable", Scope::All, Shelf::Both)
            .await
            .len(),
        2
    );
    store.delete(&id("gone")).await.unwrap();
    assert_eq!(kind(store.delete(&id("gone")).await), ErrorKind::NotFound);
    for store in [store, home.open().await] {
        assert_eq!(kind(store.session(&id("gone")).await), ErrorKind::NotFound);
        assert_eq!(kind(store.load(&id("gone")).await), ErrorKind::NotFound);
        assert_eq!(
            places(&store, "forgettable", Scope::All, Shelf::Both).await,
            []
        );
    }
    // Another session of the same id begins with nothing.
    let store = home.open().await;
    store
        .create(session("gone", 9), vec![append(0, &["new"])])
        .await
        .unwrap();
    let loaded = store.load(&id("gone")).await.unwrap();
    assert_eq!(
        (
            loaded.tail.len(),
            loaded.newer_memory,
            loaded.session.created_ms
        ),
        (1, None, 9)
    );
}

async fn concurrent_writers_of_several_sessions(home: &dyn Home) {
    const COMMITS: u64 = 20;
    let stores: Vec<Arc<dyn Store>> = vec![home.open().await, home.open().await];
    let names = ["side-a", "side-b", "side-c"];
    for name in names {
        stores[0].create(session(name, 1), vec![]).await.unwrap();
    }
    let writing = names
        .iter()
        .zip(stores.iter().cycle())
        .map(|(name, store)| async move {
            let mut writer = store.open(&id(name), Duration::ZERO).await.unwrap();
            for number in 0..COMMITS {
                writer
                    .append(2, number, vec![message(number, name)])
                    .await
                    .unwrap();
            }
        });
    let reading = async {
        for _ in 0..COMMITS {
            for name in names {
                // A reader sees whole commits, whichever store it looks through.
                let loaded = stores[1].load(&id(name)).await.unwrap();
                assert_eq!(loaded.tail.len() as u64, loaded.counts.message_count);
            }
        }
    };
    futures_util::future::join(futures_util::future::join_all(writing), reading).await;
    for name in names {
        let messages = stores[1].messages(&id(name), 0..COMMITS + 1).await.unwrap();
        let expected: Vec<_> = (0..COMMITS)
            .map(|number| message(number, name).original)
            .collect();
        assert_eq!(
            messages
                .into_iter()
                .map(|message| message.original)
                .collect::<Vec<_>>(),
            expected
        );
    }
}

fn at(position: u64) -> Place {
    Place::Message { position }
}

async fn search(
    store: &Arc<dyn Store>,
    text: &str,
    scope: Scope,
    shelf: Shelf,
) -> Result<Vec<Hit>, StoreError> {
    store
        .search(&Search {
            text: text.into(),
            scope,
            shelf,
            limit: 100,
        })
        .await
}

async fn places(store: &Arc<dyn Store>, text: &str, scope: Scope, shelf: Shelf) -> Vec<Place> {
    search(store, text, scope, shelf)
        .await
        .unwrap()
        .into_iter()
        .map(|hit| hit.place)
        .collect()
}
