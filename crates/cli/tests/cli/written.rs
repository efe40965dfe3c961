//! Session files that `throughline convert` writes for coding agents.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::settings::User;
use crate::{SESSIONS, data, stderr, stdout};

/// The only session file in the agent's folder.
fn written(folder: PathBuf) -> PathBuf {
    let mut place = folder;
    while place.is_dir() {
        let entries: Vec<PathBuf> = fs::read_dir(&place)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        let [entry] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        place = entry.clone();
    }
    place
}

fn messages(user: &User, file: &str) -> Vec<Value> {
    user.printed(&["convert", file, "--to", "jsonl"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn sessions_of_every_format_can_be_written_for_each_agent() {
    for (name, _) in SESSIONS {
        for (agent, home) in [("claude-code", ".claude"), ("codex", ".codex")] {
            let user = User::new();
            let folder = user.path("");
            let folder = folder.to_str().unwrap();
            let file = data(name);
            let output = user.run(&[
                "convert",
                &file,
                "--to",
                agent,
                "--whole",
                "--install",
                "--folder",
                folder,
            ]);
            assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
            let path = written(user.path(home));
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let resume = stdout(&output);
            let id = resume.trim().rsplit(' ').next().unwrap();
            assert!(stem.ends_with(id), "{resume}");
            let path = path.to_str().unwrap();
            let read = messages(&user, path);
            assert!(!read.is_empty(), "{name}");
            let listed: Value =
                serde_json::from_str(&user.printed(&["inspect", path, "--json"])).unwrap();
            assert_eq!(listed["format"], agent, "{name}");
        }
    }
}

#[test]
fn a_memory_takes_the_place_of_old_messages() {
    let user = User::new();
    let session = user.path("request.json");
    let mut said =
        vec![json!({"role": "user", "content": "Port the tide importer. Never touch vendor/."})];
    for step in 0..40 {
        said.push(
            json!({"role": "assistant", "content": format!("Step {step} is done. ").repeat(40)}),
        );
        said.push(json!({"role": "user", "content": format!("Now step {}.", step + 1)}));
    }
    said.push(json!({"role": "assistant", "content": "Step 40 is done, too."}));
    let body = json!({"model": "gpt-5", "messages": said});
    fs::write(&session, body.to_string()).unwrap();
    let session = session.to_str().unwrap();
    for agent in ["claude-code", "codex"] {
        let path = user.path("new.jsonl");
        let path = path.to_str().unwrap();
        let output = user.run(&[
            "convert",
            session,
            "--to",
            agent,
            "--keep-tail",
            "2",
            "--budget",
            "1000",
            "-o",
            path,
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let read = messages(&user, path);
        let text = |message: &Value| message["blocks"][0]["text"].as_str().unwrap().to_owned();
        assert!(text(&read[0]).contains("Never touch vendor/."), "{read:?}");
        let last = read.last().unwrap();
        assert_eq!(text(last), "Step 40 is done, too.", "nothing follows it");
        assert!(read.len() <= 4, "{read:?}");
    }
}

#[test]
fn options_for_agents_are_refused_for_requests() {
    let user = User::new();
    for option in [&["--whole"][..], &["--install"], &["--keep-tail", "4"]] {
        let mut arguments = vec!["convert", "-", "--to", "anthropic"];
        arguments.extend(option);
        let output = user.piped(&arguments, "user: Hello\n\nassistant: Good day.\n");
        assert_eq!(output.status.code(), Some(2), "{option:?}");
        assert!(stderr(&output).contains(option[0]), "{}", stderr(&output));
    }
}
