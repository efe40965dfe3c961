//! What is particular to plain files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use throughline_store::testing::{Home, adoption, append, id, memory, message, session};
use throughline_store::{Change, Durability, ErrorKind, FileStore, NewMessage, Page, StoreError};

use crate::homes::InFiles;
use crate::processes::{Kind, part, place, run};
use crate::suite::loses_nothing_when_full;

#[tokio::test]
async fn people_can_read_a_session() {
    let home = InFiles::new(Durability::PowerLoss);
    let store = home.open().await;
    store
        .create(session("readable", 1), vec![append(0, &["one", "two"])])
        .await
        .unwrap();
    let mut writer = store.open(&id("readable"), Duration::ZERO).await.unwrap();
    let pretty = NewMessage::new("{\r\n  \"role\": \"user\"\n}", [3; 32], "user", "", 1);
    writer.append(2, 2, vec![pretty.clone()]).await.unwrap();
    writer
        .put_memory(3, memory(1, 2, "The export writes semicolons."))
        .await
        .unwrap();

    let folder = home.root().join("readable");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let lines = [
        message(0, "one").original,
        message(1, "two").original,
        "{    \"role\": \"user\" }".into(),
    ];
    assert_eq!(read("transcript.jsonl").lines().collect::<Vec<_>>(), lines);
    assert_eq!(
        read("session-memory.md"),
        memory(1, 2, "The export writes semicolons.").markdown
    );
    assert_eq!(
        read("memory/readable.json"),
        memory(1, 2, "The export writes semicolons.").json
    );
    let summary: serde_json::Value = serde_json::from_str(&read("session.json")).unwrap();
    assert_eq!(summary["session"]["message_count"], 3);
    assert_eq!(
        store.message(&id("readable"), 2).await.unwrap().original,
        pretty.original
    );

    // What is made from the log is made again.
    drop(writer);
    for name in ["session.json", "session-memory.md", "memory/readable.json"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let store = home.open().await;
    assert_eq!(
        store.sessions(Page::first(9)).await.unwrap()[0].message_count,
        3
    );
    drop(store.open(&id("readable"), Duration::ZERO).await.unwrap());
    assert_eq!(
        read("session-memory.md"),
        memory(1, 2, "The export writes semicolons.").markdown
    );
}

/// A session with two commits, and the lengths of its files after the first.
async fn two_commits(home: &InFiles) -> [(&'static str, usize); 3] {
    let store = home.open().await;
    store
        .create(session("torn", 1), vec![append(0, &["first"])])
        .await
        .unwrap();
    let folder = home.root().join("torn");
    let lengths = ["commits.log", "transcript.jsonl", "parts.bin"].map(|name| {
        (
            name,
            fs::metadata(folder.join(name)).unwrap().len() as usize,
        )
    });
    let mut writer = store.open(&id("torn"), Duration::ZERO).await.unwrap();
    let changes = vec![
        append(1, &["second"]),
        Change::Memory(memory(1, 1, "m")),
        Change::Adopt {
            expected_epoch: 0,
            adoption: adoption(1, Some(1), 1),
        },
    ];
    writer.commit(2, changes).await.unwrap();
    lengths
}

#[tokio::test]
async fn a_torn_commit_never_was() {
    let home = InFiles::new(Durability::ProcessKill);
    let [(_, log_first), _, _] = two_commits(&home).await;
    let folder = home.root().join("torn");
    let whole = fs::read(folder.join("commits.log")).unwrap();
    let transcript = fs::read(folder.join("transcript.jsonl")).unwrap();
    let parts = fs::read(folder.join("parts.bin")).unwrap();
    for length in log_first..whole.len() {
        // Every length, and at some of them what a file system may leave behind.
        let endings = [&b""[..], b"\0\0\0\0", b"garbage\n"];
        for ending in &endings[..if length % 8 == 0 { 3 } else { 1 }] {
            let log = [&whole[..length], *ending].concat();
            fs::write(folder.join("commits.log"), log).unwrap();
            fs::write(folder.join("transcript.jsonl"), &transcript).unwrap();
            fs::write(folder.join("parts.bin"), &parts).unwrap();
            let store = home.open().await;
            let loaded = store.load(&id("torn")).await.unwrap();
            assert_eq!(
                (loaded.counts.message_count, loaded.counts.memory_version),
                (1, 0),
                "{length} {ending:?}"
            );
            // The next commit is readable, here and after opening again.
            let mut writer = store.open(&id("torn"), Duration::ZERO).await.unwrap();
            writer
                .commit(3, vec![append(1, &["instead"])])
                .await
                .unwrap();
            drop(writer);
            let store = home.open().await;
            let messages = store.messages(&id("torn"), 0..9).await.unwrap();
            let originals: Vec<_> = messages
                .into_iter()
                .map(|message| message.original)
                .collect();
            assert_eq!(
                originals,
                [message(0, "first").original, message(1, "instead").original]
            );
        }
    }
}

#[tokio::test]
async fn damage_is_said_and_not_built_upon() {
    let home = InFiles::new(Durability::ProcessKill);
    let first = two_commits(&home).await;
    let folder = home.root().join("torn");
    let corrupt = async |what: &str| {
        let store = home.open().await;
        let loading = store
            .load(&id("torn"))
            .await
            .err()
            .map(|error| error.kind());
        let writing = store
            .open(&id("torn"), Duration::ZERO)
            .await
            .err()
            .map(|error| error.kind());
        assert!(
            [loading, writing].contains(&Some(ErrorKind::Corrupt)),
            "{what}: {loading:?} {writing:?}"
        );
        // The others are not hidden by it.
        store.sessions(Page::first(9)).await.unwrap();
    };
    for (name, length) in first {
        let whole = fs::read(folder.join(name)).unwrap();
        if name == "commits.log" {
            let mut damaged = whole.clone();
            damaged[length / 2] ^= 1;
            fs::write(folder.join(name), &damaged).unwrap();
        } else {
            fs::write(folder.join(name), &whole[..length]).unwrap();
        }
        corrupt(name).await;
        fs::write(folder.join(name), &whole).unwrap();
    }
    assert_eq!(
        home.open()
            .await
            .load(&id("torn"))
            .await
            .unwrap()
            .counts
            .message_count,
        2
    );
    fs::write(folder.join("commits.log"), "").unwrap();
    corrupt("an empty log").await;
}

#[tokio::test]
async fn a_session_that_cannot_be_read_is_named() {
    let home = InFiles::new(Durability::ProcessKill);
    two_commits(&home).await;
    let store = home.open().await;
    store.create(session("whole", 1), vec![]).await.unwrap();
    assert_eq!(store.damaged().await.unwrap().len(), 0);
    fs::create_dir(home.root().join("no-session")).unwrap();
    let log = home.root().join("torn").join("commits.log");
    let whole = fs::read(&log).unwrap();
    for damage in ["emptied", "torn in its first line", "removed"] {
        match damage {
            "emptied" => fs::write(&log, "").unwrap(),
            "removed" => fs::remove_file(&log).unwrap(),
            _ => fs::write(&log, &whole[20..]).unwrap(),
        }
        let store = home.open().await;
        let damaged = store.damaged().await.unwrap();
        let [one] = &damaged[..] else {
            panic!("{damage}: {damaged:?}");
        };
        assert_eq!(
            (one.id.as_str(), one.error.kind()),
            ("torn", ErrorKind::Corrupt),
            "{damage}"
        );
        assert!(one.changed_ms.is_some(), "{damage}");
        let listed = store.sessions(Page::first(9)).await.unwrap();
        assert_eq!(listed.len(), 1, "{damage}");
        assert_eq!(listed[0].id, id("whole"), "{damage}");
        fs::write(&log, &whole).unwrap();
    }
    fs::write(&log, "").unwrap();
    home.open().await.delete(&id("torn")).await.unwrap();
    assert_eq!(home.open().await.damaged().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let home = InFiles::new(Durability::ProcessKill);
    let store = home.open().await;
    store.create(session("newer", 1), vec![]).await.unwrap();
    let log = home.root().join("newer").join("commits.log");
    let line = fs::read_to_string(&log).unwrap();
    let json = line[17..]
        .trim_end()
        .replacen("\"format\":1", "\"format\":2", 1);
    let check = &blake3::hash(json.as_bytes()).to_hex()[..16];
    fs::write(&log, format!("{check} {json}\n")).unwrap();
    let error = home.open().await.load(&id("newer")).await.err().unwrap();
    assert!(
        matches!(error, StoreError::Newer { found: 2, known: 1 }),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_where_a_folder_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions");
    fs::write(&path, "").unwrap();
    let error = FileStore::open(&path).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[tokio::test]
async fn a_killed_deletion_is_finished() {
    let home = InFiles::new(Durability::ProcessKill);
    drop(home.open().await);
    let tomb = home.root().join(".deleted-x");
    fs::create_dir(&tomb).unwrap();
    fs::write(tomb.join("transcript.jsonl"), "{}").unwrap();
    drop(home.open().await);
    assert!(!tomb.exists());
}

/// Every folder is 0700 and every file 0600.
#[cfg(unix)]
pub(crate) fn check_private(path: &Path) {
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

#[cfg(unix)]
#[tokio::test]
#[ignore = "a part, played in a process of its own"]
async fn makes_private_things() {
    let Some((kind, folder)) = place() else {
        return;
    };
    let store = kind.open(&folder.join("new"), Durability::PowerLoss).await;
    store
        .create(session("private", 1), vec![append(0, &["one"])])
        .await
        .unwrap();
    let mut writer = store.open(&id("private"), Duration::ZERO).await.unwrap();
    writer.put_memory(2, memory(1, 1, "m")).await.unwrap();
    check_private(&folder);
    if kind == Kind::Sqlite {
        // The log and the index of the log are looked at as well.
        assert!(
            folder.join("new/sessions.db-wal").exists()
                && folder.join("new/sessions.db-shm").exists()
        );
    }
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_look_whatever_the_umask() {
    for kind in [Kind::Files, Kind::Sqlite] {
        for umask in ["umask 000;", "umask 022;", "umask 277;"] {
            let folder = tempfile::tempdir().unwrap();
            run(part(
                "files::makes_private_things",
                kind,
                folder.path(),
                umask,
            ));
        }
    }
}

/// Writes until there is no room, and finds that what was accepted is there.
#[tokio::test]
#[ignore = "a part, played in a process of its own"]
async fn fills_the_room() {
    let Some((kind, folder)) = place() else {
        return;
    };
    let store = kind.open(&folder, Durability::PowerLoss).await;
    let reopened = kind.open(&folder, Durability::PowerLoss);
    loses_nothing_when_full(store.as_ref(), reopened, "words ").await;
}

#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // No file may be larger than this many blocks of 512 bytes.
    run(part(
        "files::fills_the_room",
        Kind::Files,
        folder.path(),
        "trap '' XFSZ; ulimit -f 100;",
    ));
}
