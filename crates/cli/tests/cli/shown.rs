//! What a chat shows in terminals of all kinds, and what it keeps out of them.

use std::fs;

use serde_json::json;
use throughline::store::SqliteStore;

use crate::canned::{Canned, Said};
use crate::chat::Home;
use crate::{stderr, stdout};

const ASCII: [(&str, &str); 2] = [("NO_COLOR", "1"), ("LANG", "C")];

#[test]
fn costs_fit_into_narrow_terminals_and_into_pipes() {
    let home = Home::new();
    let simulated = ["--model", "simulated", "--latency", "none"];
    let narrow = home.plain_terminal(&simulated, &ASCII, (40, 24));
    narrow.until_prompt_after("/help");
    narrow.line("The port is 99.");
    narrow.until_prompt_after("]");
    narrow.line("/cost");
    let text = narrow.until_prompt_after("without compaction: $");
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains("\nconversation: 1 call, $0."), "{text}");
    assert!(text.contains("\n  cached    "), "{text}");
    drop(narrow);

    let wide = home.plain_terminal(&simulated, &ASCII, (80, 24));
    wide.until_prompt_after("/help");
    wide.line("The port is 99.");
    wide.until_prompt_after("soft");
    wide.line("/cost");
    let text = wide.until_prompt_after("without compaction: $");
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains("calls") && text.contains("-------"), "{text}");

    let text = home.answered(&[], "The port is 99.\n/cost\n");
    assert!(text.contains("\nwithout compaction: $0."), "{text}");
    assert!(text.ends_with(" for 1 request\n"), "{text}");
}

#[test]
fn a_terminal_that_can_do_nothing_gets_plain_text() {
    let home = Home::new();
    let terminal = home.terminal(&[], &[("TERM", "dumb")]);
    terminal.until_prompt_after("/help");
    terminal.line("Remember: the owner is Tom. Write **a lot**.");
    let text = terminal.until("the meter", |text| text.contains("soft"));
    assert!(text.contains("On \"Remember: the owner is Tom."), "{text}");
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    let (_, answer) = bytes.split_once("On \"Remember").unwrap();
    let (answer, _) = answer.split_once("soft").unwrap();
    // The answer and the meter: no colours, no cursor that moves. The line editor is another matter.
    assert!(!answer.contains('\u{1b}'), "{answer:?}");
}

#[test]
fn what_retries_say_is_of_use() {
    let home = Home::new();
    home.configure("memory_model = \"none\"\n");
    let provider = Canned::start(vec![Said::Refused]);
    let terminal = home.plain_terminal(&provider.flags(), &[], (80, 24));
    terminal.until_prompt_after("/help");
    terminal.line("Hello.");
    let text = terminal.until_prompt_after("hint: /retry asks again");
    assert!(text.contains("not today"), "{text}");
    terminal.line("/retry");
    let text = terminal.until_prompt_after("`throughline doctor` looks at the connection");
    assert_eq!(text.matches("/retry asks again").count(), 1, "{text}");
    drop(terminal);
    // Where nothing is open, there is nothing to advise.
    let home = Home::new();
    let output = home.pipe(&[], "The port is 99.\n/retry\n");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stderr(&output), "error: everything is answered\n");
}

#[test]
fn what_would_be_written_is_shown_before_it_is_allowed() {
    let home = Home::new();
    home.configure("memory_model = \"none\"\n");
    let key = format!("sk-ant-api03-{}", "a1B2".repeat(23));
    let content = format!("first line\nkey = \"{key}\"\n\u{1b}[31mred\n");
    let provider = Canned::start(vec![
        Said::call(
            "write_file",
            &json!({"path": "notes.txt", "content": content}),
        ),
        Said::text("I have written it."),
        Said::call(
            "edit_file",
            &json!({"path": "notes.txt", "old_text": "first line", "new_text": "another line"}),
        ),
        Said::text("I see."),
    ]);
    let arguments: Vec<&str> = provider
        .flags()
        .into_iter()
        .chain(["--tools", "write_file,edit_file", "--root", home.path()])
        .collect();
    let terminal = home.plain_terminal(&arguments, &[], (80, 24));
    terminal.until_prompt_after("/help");
    terminal.line("Write it, please.");
    let is_question = |text: &str| text.ends_with("[y/n/a]");
    let text = terminal.until("a question", is_question);
    assert!(
        text.contains("write notes.txt (") && text.contains("\n+ first line\n+ key = "),
        "{text}"
    );
    assert!(text.contains("\n+ [31mred\nAllow it?"), "{text}");
    assert!(!text.contains("a1B2a1B2"), "{text}");
    terminal.line("y");
    terminal.until_prompt_after("I have written it.");
    let file = std::path::Path::new(home.path()).join("notes.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
    terminal.line("Change it, please.");
    let text = terminal.until("a question", |text| {
        text.matches("Allow it?").count() == 2 && is_question(text)
    });
    assert!(
        text.contains(
            "edit notes.txt (10 bytes become 12)\n- first line\n+ another line\nAllow it?"
        ),
        "{text}"
    );
    // What is said to it is told to the model as it was said.
    terminal.line("Not in THIS File");
    terminal.until_prompt_after("I see.");
    let told = provider.bodies().last().unwrap().to_string();
    assert!(told.contains("\"text\":\"Not in THIS File\""), "{told}");
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
}

#[test]
fn an_answer_cannot_steer_the_terminal_of_print_either() {
    let home = Home::new();
    let provider = Canned::start(vec![Said::text(
        "\u{1b}]0;title\u{7}\u{1b}[2Jplain\u{202e}",
    )]);
    let arguments: Vec<&str> = provider
        .flags()
        .into_iter()
        .chain(["--print", "Say it."])
        .collect();
    let terminal = home.plain_terminal(&arguments, &[], (80, 24));
    let bytes = terminal.bytes_at_end();
    assert_eq!(String::from_utf8_lossy(&bytes), "]0;title[2Jplain\r\n");
    // For programs it is what was said.
    let output = home.piped(&arguments);
    assert_eq!(
        stdout(&output),
        "\u{1b}]0;title\u{7}\u{1b}[2Jplain\u{202e}\n"
    );
}

#[test]
fn a_mark_of_the_encoding_is_no_part_of_what_is_said() {
    let home = Home::new();
    let text = home.answered(&[], "\u{feff}/help\nThe port is 99.\n");
    assert!(text.contains("  /memory "), "{text}");
    let text = home.answered(
        &["--print", ""],
        "\u{feff}The port is 99. What is the port?",
    );
    assert_eq!(text, "The port is 99.\n");
}

/// Whether keys come while an answer does, or the terminal gets another size: the answer stays in one piece.
#[test]
fn typing_and_resizing_do_not_spoil_an_answer() {
    let home = Home::new();
    let terminal = home.terminal(&["--latency", "real"], &[]);
    terminal.until_prompt_after("/help");
    terminal.line("Remember: the owner is Tom. And write a lot about it.");
    terminal.until("the beginning of the answer", |text| {
        text.contains("On \"Remember")
    });
    terminal.press("What is the owner?");
    terminal.resize((50, 24));
    let text = terminal.until("the next line", |text| {
        text.contains(" of 18k") && text.ends_with("> What is the owner?")
    });
    assert_eq!(text.matches("What is the owner?").count(), 1, "{text}");
    terminal.line("");
    terminal.until_prompt_after("The owner is Tom.");
}

#[tokio::test]
async fn ctrl_c_while_a_session_begins_gives_the_message_back() {
    let home = Home::new();
    let terminal = home.terminal(&[], &[]);
    terminal.until_prompt_after("/help");
    let database = std::path::Path::new(home.path()).join("throughline/sessions.db");
    terminal.until_at_rest();
    let lock = crate::locked(&database).await;
    terminal.line("The port is 99.");
    terminal.until_keys_are_signals();
    // It waits for the database now.
    terminal.until_at_rest();
    terminal.press("\u{3}");
    terminal.until_shown("^C");
    lock.rollback().await.unwrap();
    terminal.until("the message in the line again", |text| {
        text.contains("stopped; your message is in the line again")
            && text.ends_with("> The port is 99.")
    });
    terminal.line("");
    terminal.until_prompt_after("soft");
    // It was said once.
    drop(terminal);
    let store = SqliteStore::open(&database).await.unwrap();
    let sessions = throughline::store::Store::sessions(&store, throughline::store::Page::first(9))
        .await
        .unwrap();
    let counts: Vec<u64> = sessions
        .iter()
        .map(|session| session.message_count)
        .collect();
    assert_eq!(counts, [2]);
}
