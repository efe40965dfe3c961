//! `throughline chat` with a real llama.cpp server, if there is one: `scripts/test-local` starts one and runs this.
//!
//! With one that runs already:
//! `THROUGHLINE_LLAMA_URL=http://127.0.0.1:8080 cargo test -p throughline-cli --test cli -- --ignored --nocapture local`.
//! The window should be small (3,072 tokens are right), so that it is soon full.

use std::fmt::Write as _;

use serde_json::Value;

use crate::settings::User;
use crate::{fed, stderr, stdout};

const CORRECTION: &str =
    "No, that is wrong: the deploy region is eu-north-3, not us-east-1. Never write to stdout.";
/// Messages that are pasted after the first. So few of such a length are more than the window holds, so that a model on
/// a slow machine has little to answer.
const PASTED: usize = 13;
/// Lines of each; about 300 tokens.
const LINES: usize = 12;

/// Different words in each, in one line of input.
fn pasted(number: usize) -> String {
    let places = [
        "harbour",
        "quay",
        "ferry",
        "lighthouse",
        "bridge",
        "market",
        "mill",
    ];
    let mut text = format!(
        "Part {number} of the log of the {}: ",
        places[number % places.len()]
    );
    for line in 0..LINES {
        let place = places[(number * 3 + line) % places.len()];
        let (hour, berth) = (6 + line, number * LINES + line);
        write!(
            text,
            "at {hour}:30 the crew of the {place} moved {berth} crates to berth {berth}; "
        )
        .unwrap();
    }
    text
}

#[test]
#[ignore = "needs a server: THROUGHLINE_LLAMA_URL"]
fn a_piped_chat_goes_past_the_window_of_a_real_server() {
    let url = std::env::var("THROUGHLINE_LLAMA_URL").unwrap();
    let user = User::new();
    for (key, value) in [
        ("base_url", url.as_str()),
        ("wire", "openai-chat"),
        ("max_tokens", "24"),
        // So small a model makes no memory that can be used, and takes its time for that.
        ("memory_model", "none"),
    ] {
        user.printed(&["config", "set", key, value]);
    }
    let pasted = (0..PASTED).map(pasted);
    let lines: Vec<String> = std::iter::once(CORRECTION.to_owned())
        .chain(pasted)
        .collect();
    let said = lines.join("\n") + "\n";
    let output = fed(&mut user.command(&["chat"]), said.as_bytes());
    println!("answers\n{}", stdout(&output));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("error"), "{}", stderr(&output));

    let shown: Value =
        serde_json::from_str(&user.printed(&["sessions", "show", "last", "--json"])).unwrap();
    let events: Vec<String> = shown["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| format!("{} {}", event["kind"].as_str().unwrap(), event["numbers"]))
        .collect();
    println!("events\n{}\ncosts {}", events.join("\n"), shown["costs"]);
    // Each message was answered by the first call that was made for it.
    let said = PASTED as u64 + 1;
    assert_eq!(shown["messages"].as_array().unwrap().len() as u64, 2 * said);
    assert_eq!(shown["costs"]["conversation"]["calls"], said);
    // All of it is more than the window holds, and a memory has taken the place of the most.
    let tokens = shown["tokens"].as_u64().unwrap();
    assert!(tokens > 3_072, "the window was never full: {tokens}");
    assert!(shown["epoch"].as_u64().unwrap() >= 1, "no swap: {events:?}");
    let memory = shown["memory"].as_str().unwrap();
    let request = user.printed(&["sessions", "export", "last", "--format", "request"]);
    for words in ["eu-north-3", "Never write to stdout"] {
        assert!(memory.contains(words), "{words}: {memory}");
        assert!(request.contains(words), "{words}: {request}");
    }
}
