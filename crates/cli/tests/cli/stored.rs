//! Sessions that an earlier version stored are shown, searched and exported.

use std::fs;
use std::io::Read;

use serde_json::Value;

use crate::settings::User;
use crate::{stderr, stdout};

const STORED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../throughline/tests/data/stored"
);

fn json(user: &User, arguments: &[&str]) -> Value {
    serde_json::from_str(&user.printed(arguments)).unwrap()
}

/// Checks what is shown of `library-orders`.
fn check_orders(user: &User) {
    let shown = json(user, &["sessions", "show", "library-orders", "--json"]);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 24);
    assert_eq!(shown["versions"].as_array().unwrap().len(), 2);
    let text = user.printed(&["sessions", "show", "library-orders"]);
    assert!(text.contains("Never force-push to main."), "{text}");
    let memory = user.printed(&[
        "sessions",
        "export",
        "library-orders",
        "--format",
        "markdown",
    ]);
    assert!(memory.contains("- The port is 8443."), "{memory}");
    let found = json(user, &["sessions", "search", "eu-north-3", "--json"]);
    let hits = found["hits"].as_array().unwrap();
    assert!(
        hits.iter().any(|hit| hit["session"] == "library-orders"),
        "{found}"
    );
}

#[test]
fn a_database_of_an_earlier_version_is_shown() {
    let user = User::new();
    fs::create_dir_all(user.data()).unwrap();
    let packed = fs::read(format!("{STORED}/sessions.db.gz")).unwrap();
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    fs::write(user.data().join("sessions.db"), unpacked).unwrap();
    let listed = json(&user, &["sessions", "list", "--json"]);
    assert_eq!(listed["total"], 6);
    check_orders(&user);
}

#[test]
fn sessions_in_files_of_an_earlier_version_are_imported_once() {
    let user = User::new();
    user.printed(&["config", "set", "store", "files"]);
    let old = user.data().join("sessions/library-orders");
    fs::create_dir_all(&old).unwrap();
    for name in ["commits.log", "transcript.jsonl", "parts.bin"] {
        let from = format!("{STORED}/sessions/library-orders/{name}");
        fs::copy(from, old.join(name)).unwrap();
    }
    let damaged = user.data().join("sessions/damaged");
    fs::create_dir_all(&damaged).unwrap();
    fs::write(damaged.join("commits.log"), "no commit").unwrap();

    let listed = user.run(&["sessions", "list", "--json"]);
    let document: Value = serde_json::from_str(stdout(&listed)).unwrap();
    assert_eq!(document["total"], 1);
    let said = stderr(&listed);
    assert!(said.contains("session damaged is not imported"), "{said}");
    assert!(
        said.contains("1 session of an older version imported"),
        "{said}"
    );
    assert!(!user.data().join("sessions").exists());
    let kept = user.data().join("sessions-imported/library-orders");
    assert!(kept.join("commits.log").is_file());

    let again = user.run(&["sessions", "list"]);
    assert_eq!(stderr(&again), "");
    check_orders(&user);
}
