//! `throughline sessions`: what is stored, from its import to its deletion.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use throughline::store::{SessionId, SqliteStore, Store};

use crate::settings::User;
use crate::{SESSIONS, data, stderr, stdout};

fn json(user: &User, arguments: &[&str]) -> Value {
    serde_json::from_str(&user.printed(arguments)).unwrap()
}

fn import(user: &User, arguments: &[&str]) -> Value {
    let mut all = vec!["sessions", "import", "--json"];
    all.extend(arguments);
    json(user, &all)
}

/// Whether the bytes are in a file below the folder.
fn is_anywhere(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => is_anywhere(&path, bytes),
            false => {
                let content = fs::read(&path).unwrap();
                content.windows(bytes.len()).any(|part| part == bytes)
            }
        }
    })
}

#[test]
fn sessions_of_every_format_can_be_gone_on_with() {
    let user = User::new();
    let wires = ["anthropic", "openai-chat", "openai-responses"];
    for ((name, _), wire) in SESSIONS.iter().zip(wires.iter().cycle()) {
        let file = data(name);
        let arguments = [&file, "--no-memory", "--model", "simulated", "--wire", wire];
        let imported = import(&user, &arguments);
        let messages = imported["messages"].as_u64().unwrap();
        assert!(messages > 0, "{name}");
        let id = imported["id"].as_str().unwrap();
        let body = user.run(&["sessions", "export", id, "--format", "request"]);
        assert_eq!(
            body.status.code(),
            Some(0),
            "{name} {wire}: {}",
            stderr(&body)
        );
    }
    let listed = json(&user, &["sessions", "list", "--json", "--limit", "1000"]);
    let count = listed["sessions"].as_array().unwrap().len();
    assert_eq!(count, SESSIONS.len());
}

#[test]
fn a_long_session_gets_a_memory_at_once_and_is_whole_behind_it() {
    let user = User::new();
    let long = data("long.json");
    let imported = import(&user, &[&long, "--model", "simulated", "--window", "8000"]);
    assert_eq!(imported["memory_version"], 1);
    assert!(imported["covers"].as_u64().unwrap() > 0);

    let memory = user.printed(&["sessions", "export", "last", "--format", "markdown"]);
    assert!(memory.contains("## "), "{memory}");
    let shown = json(&user, &["sessions", "show", "last", "--json"]);
    assert_eq!(
        shown["messages"].as_array().unwrap().len() as u64,
        imported["messages"]
    );
    assert_eq!(shown["versions"].as_array().unwrap().len(), 1);
    let text = user.printed(&["sessions", "show"]);
    assert!(text.contains("version 1 stands for the first"), "{text}");

    // What is exported is read again, and is the same conversation.
    let copy = user.path("copy.jsonl");
    let arguments = ["sessions", "export", "last", "-o", copy.to_str().unwrap()];
    user.printed(&arguments);
    let again = import(
        &user,
        &[
            copy.to_str().unwrap(),
            "--model",
            "simulated",
            "--no-memory",
        ],
    );
    assert_eq!(again["messages"], imported["messages"]);
    assert_eq!(again["memory_version"], Value::Null);
}

#[test]
fn a_deleted_session_leaves_no_trace() {
    let words = b"quantum ferry 7431";
    let source = "User: Remember the quantum ferry 7431, please.\nAssistant: I will remember it.\n";
    for store in ["sqlite", "files"] {
        let user = User::new();
        user.printed(&["config", "set", "store", store]);
        let file = user.path("talk.txt");
        fs::write(&file, source).unwrap();
        let model = ["--model", "simulated"];
        let arguments = [file.to_str().unwrap(), model[0], model[1]];
        let id = import(&user, &arguments)["id"].as_str().unwrap().to_owned();
        import(&user, &[&data("long.json"), "--model", "simulated"]);
        assert!(is_anywhere(&user.data(), words), "{store}");
        let found = json(&user, &["sessions", "search", "ferry", "quantum", "--json"]);
        assert_eq!(found["hits"][0]["session"], id.as_str(), "{store}");

        user.refused(&["sessions", "delete", &id], 2, &["--yes"]);
        let output = user.run(&["sessions", "delete", &id, "--yes"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output), format!("{id} is deleted\n"));
        assert!(!is_anywhere(&user.data(), words), "{store}");
        user.refused(&["sessions", "search", "quantum"], 3, &["nothing"]);
        user.refused(&["sessions", "show", &id], 2, &["there is no session"]);
        user.printed(&["sessions", "show", "last"]);
    }
}

#[test]
fn old_sessions_are_deleted_and_their_room_is_given_back() {
    let user = User::new();
    for _ in 0..3 {
        import(&user, &[&data("long.json"), "--model", "simulated"]);
    }
    // The log beside the database may hold most of it.
    let size = || -> u64 {
        let files = fs::read_dir(user.data()).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    };
    let before = size();
    let count = || {
        let listed = json(&user, &["sessions", "list", "--json"]);
        listed["total"].as_u64().unwrap()
    };
    let dry = user.printed(&["sessions", "gc", "--keep", "1", "--dry-run"]);
    assert_eq!(dry.lines().count(), 2, "{dry}");
    assert_eq!(count(), 3);
    user.printed(&["sessions", "gc", "--older-than", "1d", "--yes"]);
    assert_eq!(count(), 3);
    user.printed(&["sessions", "gc", "--keep", "1", "--yes"]);
    assert_eq!(count(), 1);
    assert!(size() < before, "{} of {before} bytes", size());
    let found = user.run(&["sessions", "show", "last"]);
    assert_eq!(found.status.code(), Some(0));
}

#[test]
fn an_empty_store_says_how_to_begin() {
    let user = User::new();
    user.printed(&["sessions"]);
    user.refused(&["sessions", "show"], 3, &["throughline chat"]);
    user.refused(&["sessions", "show", "x"], 2, &["no session x"]);
    user.refused(&["sessions", "gc", "--older-than", "soon"], 2, &["30d"]);
    // Without a model, nobody could go on with it.
    let dialogue = data("dialogue.txt");
    user.refused(&["sessions", "import", &dialogue], 2, &["--model"]);
}

#[tokio::test]
async fn a_session_that_is_open_elsewhere_is_left_alone() {
    let user = User::new();
    let imported = import(&user, &[&data("dialogue.txt"), "--model", "simulated"]);
    let id = imported["id"].as_str().unwrap();
    let store = SqliteStore::open(user.data().join("sessions.db"))
        .await
        .unwrap();
    let session = SessionId::new(id).unwrap();
    let writer = store.open(&session, Duration::ZERO).await.unwrap();
    let parts = ["another process", "close it there"];
    user.refused(&["sessions", "delete", id, "--yes"], 5, &parts);
    let kept = user.run(&["sessions", "gc", "--keep", "0", "--yes"]);
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    assert!(
        stderr(&kept).contains("open elsewhere"),
        "{}",
        stderr(&kept)
    );
    user.printed(&["sessions", "show", id]);
    drop(writer);
    user.printed(&["sessions", "delete", id, "--yes"]);
}

#[test]
fn a_damaged_session_is_named_and_none_takes_its_place() {
    let user = User::new();
    user.printed(&["config", "set", "store", "files"]);
    let (name, _) = SESSIONS[0];
    let import = |title: &str| {
        let arguments = [
            &data(name),
            "--no-memory",
            "--model",
            "simulated",
            "--title",
            title,
        ];
        import(&user, &arguments)["id"].as_str().unwrap().to_owned()
    };
    let (older, newer) = (import("older"), import("newer"));
    let log = user
        .data()
        .join("sessions")
        .join(&newer)
        .join("commits.log");
    fs::write(&log, "").unwrap();

    let listed = user.run(&["sessions", "list", "--json"]);
    let document: Value = serde_json::from_str(stdout(&listed)).unwrap();
    assert_eq!(document["sessions"][0]["id"], *older);
    assert_eq!(document["damaged"][0]["id"], *newer);
    let listed = user.run(&["sessions", "list"]);
    assert!(stderr(&listed).contains(&newer), "{}", stderr(&listed));
    let go_on = [
        "chat",
        "--continue",
        "--print",
        "hello",
        "--latency",
        "none",
    ];
    user.refused(
        &go_on,
        2,
        &[&newer, "cannot be read", "the log has no whole commit"],
    );
    user.refused(&["sessions", "show", "last"], 2, &[&newer]);
    user.printed(&["sessions", "show", &older]);
}
