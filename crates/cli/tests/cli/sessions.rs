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
    assert!(text.contains("version 1 represents the first"), "{text}");

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
    let user = User::new();
    let file = user.path("talk.txt");
    fs::write(&file, source).unwrap();
    let model = ["--model", "simulated"];
    let arguments = [file.to_str().unwrap(), model[0], model[1]];
    let id = import(&user, &arguments)["id"].as_str().unwrap().to_owned();
    import(&user, &[&data("long.json"), "--model", "simulated"]);
    assert!(is_anywhere(&user.data(), words));
    let found = json(&user, &["sessions", "search", "ferry", "quantum", "--json"]);
    assert_eq!(found["hits"][0]["session"], id.as_str());

    user.refused(&["sessions", "delete", &id], 2, &["--yes"]);
    let output = user.run(&["sessions", "delete", &id, "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), format!("{id} is deleted\n"));
    assert!(!is_anywhere(&user.data(), words));
    user.refused(&["sessions", "search", "quantum"], 3, &["nothing"]);
    user.refused(&["sessions", "show", &id], 2, &["there is no session"]);
    user.printed(&["sessions", "show", "last"]);
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
    // Without a model, it could not be resumed.
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

/// Messages have the same numbers wherever people read them, and the one of a list is the one that is shown.
#[test]
fn messages_are_counted_from_1_for_people() {
    let user = User::new();
    let file = user.path("talk.txt");
    fs::write(&file, "User: The quantum ferry.\nAssistant: I see.\n").unwrap();
    import(&user, &[file.to_str().unwrap(), "--model", "simulated"]);
    let found = user.printed(&["sessions", "search", "quantum"]);
    assert!(found.contains("message 1 "), "{found}");
    let found = json(&user, &["sessions", "search", "quantum", "--json"]);
    assert_eq!(found["hits"][0]["message"], 0);
    let listed = user.printed(&["sessions", "show", "last", "--messages"]);
    let row = |words: &str| listed.lines().find(|line| line.contains(words)).unwrap();
    let rows = listed.split_once("Messages\n").unwrap().1;
    assert!(rows.contains(" 1  user"), "{listed}");
    assert!(row("I see.").trim_start().starts_with('2'), "{listed}");
    let shown = user.printed(&["sessions", "show", "last", "--message", "1"]);
    assert!(shown.contains("quantum ferry"), "{shown}");
    for number in ["0", "3"] {
        user.refused(
            &["sessions", "show", "last", "--message", number],
            2,
            &["the session has 2 messages", "counted from 1"],
        );
    }
}

/// One file is left behind: the log has been merged.
#[test]
fn every_command_closes_the_database() {
    let user = User::new();
    let is_closed = |after: &str| {
        let left: Vec<String> = fs::read_dir(user.data())
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with("-wal") || name.ends_with("-shm"))
            .collect();
        assert!(left.is_empty(), "{after}: {left:?}");
    };
    let dialogue = data("dialogue.txt");
    let simulated = ["--model", "simulated", "--latency", "none"];
    for (code, arguments) in [
        (0, &["sessions"][..]),
        (
            0,
            &["sessions", "import", &dialogue, "--model", "simulated"],
        ),
        (0, &["sessions", "show"]),
        (3, &["sessions", "search", "nobody-has-said-this"]),
        (2, &["sessions", "show", "nothing"]),
        (0, &["sessions", "export", "last"]),
        (2, &["sessions", "delete", "last"]),
        (0, &["sessions", "gc", "--keep", "9", "--yes"]),
        (
            1,
            &["doctor", "--model", "simulated", "--base-url", "nonsense"][..3],
        ),
        (0, &["chat", "--continue", "--print", "And now?"]),
        (
            2,
            &["chat", "--continue", "--model", "gpt-5", "--print", "x"],
        ),
        (2, &["chat", "--resume", "nothing", "--print", "x"]),
        (0, &["chat", "--continue"]),
    ] {
        let is_chat = arguments[0] == "chat" && !arguments.contains(&"--model");
        let more = if is_chat { &simulated[..] } else { &[] };
        let all: Vec<&str> = arguments.iter().chain(more).copied().collect();
        let output = user.piped(&all, "What is it?\n");
        let expected = if arguments[0] == "doctor" { 0 } else { code };
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{all:?}: {}",
            stderr(&output)
        );
        is_closed(&format!("{all:?}"));
    }
}

/// Sessions of two other programs are continued past the window, and nothing of them is forgotten.
#[test]
fn imported_messages_keep_their_times() {
    let user = User::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("times.jsonl");
    let line = |id: &str, parent: &str, kind: &str, minute: u32, content: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-03-04T10:0{minute}:00.000Z","message":{{"role":"{kind}","content":{content}}}}}"#
        )
    };
    let lines = [
        line("a", "null", "user", 1, r#""Count the ferries.""#),
        line(
            "b",
            r#""a""#,
            "assistant",
            2,
            r#"[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{}},{"type":"tool_use","id":"t2","name":"Bash","input":{}}]"#,
        ),
        line(
            "c",
            r#""b""#,
            "user",
            3,
            r#"[{"type":"tool_result","tool_use_id":"t1","content":"two"},{"type":"tool_result","tool_use_id":"t2","content":"three"}]"#,
        ),
        line(
            "d",
            r#""c""#,
            "assistant",
            4,
            r#"[{"type":"text","text":"Five."}]"#,
        ),
        line("e", r#""d""#, "user", 5, r#""And the buoys?""#),
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let file = file.to_str().unwrap().to_owned();
    for wire in ["anthropic", "openai-chat", "openai-responses"] {
        let arguments = [&file, "--no-memory", "--model", "simulated", "--wire", wire];
        let imported = import(&user, &arguments);
        let id = imported["id"].as_str().unwrap();
        let shown = json(&user, &["sessions", "show", id, "--json", "--messages"]);
        let mut minutes: Vec<String> = shown["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["at"].as_str().unwrap().to_owned())
            .map(|at| at[..16].to_owned())
            .collect();
        minutes.dedup();
        let expected = (1..=5).map(|minute| format!("2026-03-04T10:0{minute}"));
        assert_eq!(minutes, expected.collect::<Vec<_>>(), "{wire}: {shown}");
    }
}

#[test]
fn an_imported_session_is_answered_and_remembered() {
    for name in ["claude-code.jsonl", "codex.jsonl"] {
        let user = User::new();
        user.printed(&["config", "set", "soft", "20%"]);
        let file = data(name);
        let arguments = [
            file.as_str(),
            "--no-memory",
            "--model",
            "simulated",
            "--window",
            "8000",
        ];
        let imported = import(&user, &arguments);
        assert_eq!(imported["memory_version"], Value::Null, "{name}");
        let go_on = |text: &str| {
            let arguments = [
                "chat",
                "--continue",
                "--model",
                "simulated",
                "--window",
                "8000",
                "--latency",
                "none",
                "--json",
                "--print",
                text,
            ];
            json(&user, &arguments)
        };
        let answer = go_on("Remember: the owner is Tom. What is the owner?");
        assert_eq!(answer["text"], "The owner is Tom.", "{name}");
        assert_eq!(answer["session"], imported["id"], "{name}");
        let versions = || {
            let shown = json(&user, &["sessions", "show", "last", "--json"]);
            shown["versions"].as_array().unwrap().len()
        };
        // It is not past the soft mark yet. Later a memory is made and stored, though each process ends with its answer.
        assert_eq!(versions(), 0, "{name}");
        for _ in 0..4 {
            go_on(&"And what does this part do? ".repeat(200));
            if versions() > 0 {
                break;
            }
        }
        assert_eq!(versions(), 1, "{name}");
        let memory = user.printed(&["sessions", "export", "last", "--format", "markdown"]);
        for fact in [
            "data/sailings.csv",
            "never edit anything under legacy/",
            "keep the times as text",
        ] {
            assert!(memory.contains(fact), "{name}: {fact} is missing: {memory}");
        }
    }
}
