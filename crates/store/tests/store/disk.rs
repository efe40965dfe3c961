//! Disks that are full, and places that cannot be written. Both are mounted for one process alone, where the system lets
//! an ordinary user do that; elsewhere these tests say nothing.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use throughline_store::testing::{append, id, memory, message, session};
use throughline_store::{
    Access, Change, Durability, ErrorKind, Page, Scope, Search, Shelf, SqliteStore,
    SqliteStoreOptions, Store, StoreError,
};

use crate::processes::{self, part, place, run};

/// Plays a part with mounts of its own, which the shell makes first. False where the system does not allow that.
fn run_mounted(name: &str, folder: &Path, mounts: &str) -> bool {
    let probe = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c"])
        .arg(format!("mount -t tmpfs none '{}'", folder.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        return false;
    }
    let part = part(name, folder, mounts);
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount"])
        .arg(part.get_program())
        .args(part.get_args())
        .stdin(Stdio::null());
    for (key, value) in part.get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    run(command);
    true
}

async fn open(folder: &Path) -> Result<Arc<dyn Store>, StoreError> {
    let mut options = SqliteStoreOptions::default();
    options.access = Access::AsAllowed;
    let store = SqliteStore::open_with(folder.join("sessions.db"), options).await?;
    Ok(Arc::new(store))
}

/// Takes all the room that there is.
fn fill(folder: &Path) {
    let mut filler = fs::File::create(folder.join("filler")).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while filler.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

#[tokio::test]
#[ignore = "a part, played in a process of its own"]
async fn deletes_where_there_is_no_room() {
    let Some(folder) = place() else {
        return;
    };
    let begin = async || {
        let path = folder.join("sessions.db");
        // Its log is written back to the database, as it is under a slower writer.
        let opened = SqliteStore::open(&path).await.unwrap();
        opened.close().await;
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).await.unwrap());
        store
    };
    let store = processes::open(&folder, Durability::PowerLoss).await;
    let words = "so many different words ".repeat(400);
    // The last is far larger than what is kept for such a day.
    for (name, messages) in [("small", 3), ("middle", 40), ("large", 900)] {
        store.create(session(name, 1), vec![]).await.unwrap();
        let mut writer = store.open(&id(name), Duration::ZERO).await.unwrap();
        for number in 0..messages {
            let appended = vec![message(number, &format!("{number} {words}"))];
            writer.append(2, number, appended).await.unwrap();
        }
    }
    drop(store);
    let store = begin().await;
    fill(&folder);
    let mut writer = store.open(&id("small"), Duration::ZERO).await.unwrap();
    let error = loop {
        let count = writer.load().await.unwrap().counts.message_count;
        let appended = vec![message(count, &words)];
        if let Err(error) = writer.append(3, count, appended).await {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    let said = format!(
        "{:?}",
        std::error::Error::source(&error).map(ToString::to_string)
    );
    assert!(!said.contains("code:"), "{said}");
    drop((writer, store));

    // A process that begins now can do it as well.
    for name in ["small", "middle", "large"] {
        let store = processes::open(&folder, Durability::PowerLoss).await;
        fill(&folder);
        let deleted = store.delete(&id(name)).await;
        deleted.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(
            store.session(&id(name)).await.err().unwrap().kind(),
            ErrorKind::NotFound
        );
    }
    let store = processes::open(&folder, Durability::PowerLoss).await;
    assert_eq!(store.sessions(Page::first(9)).await.unwrap(), []);
    fs::remove_file(folder.join("filler")).unwrap();
    store
        .create(session("next", 1), vec![append(0, &["and on"])])
        .await
        .unwrap();
}

#[test]
fn sessions_are_deleted_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    run_mounted(
        "disk::deletes_where_there_is_no_room",
        folder.path(),
        &format!(
            "mount -t tmpfs -o size=96m none '{}' &&",
            folder.path().display()
        ),
    );
}

#[tokio::test]
#[ignore = "a part, played in a process of its own"]
async fn reads_where_it_may_not_write() {
    let Some(folder) = place() else {
        return;
    };
    let store = open(&folder).await.unwrap();
    let sessions = store.sessions(Page::first(9)).await.unwrap();
    assert_eq!(sessions.len(), 1);
    let loaded = store.load(&id("seen")).await.unwrap();
    assert_eq!(loaded.counts.message_count, 2);
    let search = Search {
        text: "ferry".to_owned(),
        scope: Scope::All,
        shelf: Shelf::Both,
        limit: 9,
    };
    assert_eq!(store.search(&search).await.unwrap().len(), 1);
    let refused = [
        store.create(session("more", 1), vec![]).await.err(),
        store.open(&id("seen"), Duration::ZERO).await.err(),
        store.delete(&id("seen")).await.err(),
    ];
    for error in refused {
        assert_eq!(error.unwrap().kind(), ErrorKind::ReadOnly);
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_read() {
    for was_killed in [false, true] {
        let made = tempfile::tempdir().unwrap();
        let store = processes::open(made.path(), Durability::ProcessKill).await;
        let changes = vec![
            append(0, &["the ferry leaves", "at nine"]),
            Change::Memory(memory(1, 1, "m")),
        ];
        store.create(session("seen", 1), changes).await.unwrap();
        let killed = tempfile::tempdir().unwrap();
        let folder = if was_killed {
            // As a process leaves it that does not close it.
            for name in ["sessions.db", "sessions.db-wal"] {
                fs::copy(made.path().join(name), killed.path().join(name)).unwrap();
            }
            assert!(
                killed
                    .path()
                    .join("sessions.db-wal")
                    .metadata()
                    .unwrap()
                    .len()
                    > 0
            );
            killed.path()
        } else {
            made.path()
        };
        drop(store);
        if !was_killed {
            let store = SqliteStore::open(folder.join("sessions.db")).await.unwrap();
            store.close().await;
            assert!(!folder.join("sessions.db-wal").exists());
        }
        let shown = folder.display();
        run_mounted(
            "disk::reads_where_it_may_not_write",
            folder,
            &format!("mount --bind '{shown}' '{shown}' && mount -o remount,bind,ro '{shown}' &&"),
        );
    }
}

#[tokio::test]
async fn what_is_not_there_cannot_be_read_either() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut options = SqliteStoreOptions::default();
    options.access = Access::AsAllowed;
    assert!(
        SqliteStore::open_with(file.join("sessions.db"), options)
            .await
            .is_err()
    );
}

/// Every folder is 0700 and every file 0600.
fn check_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
        if path.is_dir() {
            check_private(&path);
        }
    }
}

#[tokio::test]
#[ignore = "a part, played in a process of its own"]
async fn makes_private_things() {
    let Some(folder) = place() else {
        return;
    };
    let store = processes::open(&folder.join("new"), Durability::PowerLoss).await;
    store
        .create(session("private", 1), vec![append(0, &["one"])])
        .await
        .unwrap();
    let mut writer = store.open(&id("private"), Duration::ZERO).await.unwrap();
    writer.put_memory(2, memory(1, 1, "m")).await.unwrap();
    check_private(&folder);
    // The log and the index of the log are looked at as well.
    assert!(
        folder.join("new/sessions.db-wal").exists() && folder.join("new/sessions.db-shm").exists()
    );
}

#[test]
fn only_the_owner_may_look_whatever_the_umask() {
    for umask in ["umask 000;", "umask 022;", "umask 277;"] {
        let folder = tempfile::tempdir().unwrap();
        run(part("disk::makes_private_things", folder.path(), umask));
    }
}
