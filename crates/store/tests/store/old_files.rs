//! The import of sessions that version 0.1 kept in files.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use throughline_store::old_files::{import, is_old_store};
use throughline_store::testing::id;
use throughline_store::{
    ErrorKind, MemoryStore, Page, Purpose, Scope, Search, Shelf, SqliteStore, Store,
};

const STORED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../throughline/tests/data/stored/sessions"
);
const ORDERS: &str = "library-orders";

/// A copy of the old store.
fn old_store() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("sessions");
    copy(Path::new(STORED), &root);
    (folder, root)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

async fn check(store: &dyn Store) {
    let info = store.session(&id(ORDERS)).await.unwrap();
    assert_eq!(
        (info.title.as_str(), info.message_count, info.memory_version),
        ("Orders", 24, 2)
    );
    let loaded = store.load(&id(ORDERS)).await.unwrap();
    assert_eq!(
        (
            loaded.counts.epoch,
            loaded.counts.covered_count,
            loaded.tail.len()
        ),
        (2, 19, 5)
    );
    assert!(
        loaded
            .memory
            .unwrap()
            .markdown
            .contains("The port is 8443.")
    );
    assert!(loaded.settings.contains("8443"));
    assert_eq!(loaded.usage.main.calls, 12);
    let first = store.message(&id(ORDERS), 0).await.unwrap();
    // The transcript has one line for each message, as it was received.
    let transcript = fs::read_to_string(format!("{STORED}/{ORDERS}/transcript.jsonl")).unwrap();
    assert_eq!(
        Some(str::from_utf8(&first.original).unwrap()),
        transcript.lines().next()
    );
    let events = store.events(&id(ORDERS), Page::first(100)).await.unwrap();
    assert!(events.iter().any(|event| event.kind == "swapped"));
    assert!(events.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
    let usage = store.usage(&id(ORDERS), Page::first(100)).await.unwrap();
    assert!(
        usage
            .iter()
            .all(|row| row.purpose == Purpose::Main && row.cost_nanodollars.is_some())
    );
    let search = Search {
        text: "eu-north-3".to_owned(),
        scope: Scope::All,
        shelf: Shelf::Both,
        limit: 9,
    };
    assert!(!store.search(&search).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_session_comes_along_whole() {
    let (folder, root) = old_store();
    assert!(is_old_store(&root));
    assert!(!is_old_store(folder.path()));
    assert!(!is_old_store(&root.join("nothing")));
    let memory = MemoryStore::new();
    let sqlite = SqliteStore::open(folder.path().join("sessions.db"))
        .await
        .unwrap();
    for store in [&memory as &dyn Store, &sqlite] {
        // The second time everything is there already.
        for _ in 0..2 {
            let imported = import(&root, store).await.unwrap();
            assert_eq!((imported.sessions, imported.failed.len()), (1, 0));
            check(store).await;
        }
    }
}

#[tokio::test]
async fn an_import_that_was_interrupted_is_done_again() {
    let (_folder, root) = old_store();
    let log = root.join(ORDERS).join("commits.log");
    let whole = fs::read(&log).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    // Reads up to the last whole commit: half a commit at the end does not count.
    let begun = [&lines[..4].concat(), &lines[4][..20]].concat();
    fs::write(&log, begun).unwrap();
    let store = MemoryStore::new();
    assert_eq!(import(&root, &store).await.unwrap().sessions, 1);
    assert!(store.session(&id(ORDERS)).await.unwrap().message_count < 24);
    fs::write(&log, whole).unwrap();
    assert_eq!(import(&root, &store).await.unwrap().sessions, 1);
    check(&store).await;
}

#[tokio::test]
async fn a_damaged_session_is_named_and_the_others_are_imported() {
    let (_folder, root) = old_store();
    type Damage = (&'static str, fn(&Path));
    let damage: [Damage; 4] = [
        ("empty", |folder| {
            fs::write(folder.join("commits.log"), "").unwrap()
        }),
        ("torn", |folder| {
            let log = folder.join("commits.log");
            let mut bytes = fs::read(&log).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(log, bytes).unwrap();
        }),
        ("short", |folder| {
            fs::write(folder.join("parts.bin"), "").unwrap()
        }),
        ("renamed", |_| {}),
    ];
    for (name, damage) in damage {
        copy(&root.join(ORDERS), &root.join(name));
        damage(&root.join(name));
    }
    let store = MemoryStore::new();
    let imported = import(&root, &store).await.unwrap();
    assert_eq!(imported.sessions, 1);
    let mut failed: Vec<&str> = imported.failed.iter().map(|(id, _)| id.as_str()).collect();
    failed.sort_unstable();
    assert_eq!(failed, ["empty", "renamed", "short", "torn"]);
    assert!(
        imported
            .failed
            .iter()
            .all(|(_, error)| error.kind() == ErrorKind::Corrupt)
    );
    check(&store).await;
}
