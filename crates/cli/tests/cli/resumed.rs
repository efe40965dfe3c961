//! How a chat begins and how a session is resumed: which model, which tools, which system prompt, and what the
//! configuration says.

use std::fs;

use serde_json::{Value, json};

use crate::canned::{Canned, Said};
use crate::chat::Home;
use crate::settings::User;
use crate::simulate::Running;
use crate::{data, stderr, stdout};

impl User {
    /// A chat with the simulated model, or with whom the arguments say; what is typed comes from a pipe.
    fn chat(&self, arguments: &[&str], input: &str) -> (String, String) {
        let all: Vec<&str> = ["chat", "--latency", "none"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        let output = self.piped(&all, input);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            stderr(&output)
        );
        (stdout(&output).to_owned(), stderr(&output).to_owned())
    }

    /// The next request of the newest session.
    fn request(&self) -> Value {
        let request = self.printed(&["sessions", "export", "last", "--format", "request"]);
        serde_json::from_str(&request).unwrap()
    }
}

const SIMULATED: [&str; 4] = ["--model", "simulated", "--window", "20000"];

fn with<'a>(some: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    some.iter().chain(more).copied().collect()
}

#[test]
fn a_fork_has_the_system_prompt_and_the_tools_of_its_session() {
    let user = User::new();
    let prompt = user.path("prompt.md");
    fs::write(&prompt, "You are a ferryman.\n").unwrap();
    let arguments = [
        "--system",
        prompt.to_str().unwrap(),
        "--tools",
        "recall,update_plan",
    ];
    user.chat(&with(&SIMULATED, &arguments), "The port is 99.\n");
    let parent = user.request();
    assert_eq!(parent["system"][0]["text"], "You are a ferryman.");
    // What is configured meanwhile is for new sessions.
    let other = user.path("other.md");
    fs::write(&other, "You are somebody else.").unwrap();
    user.printed(&["config", "set", "system", other.to_str().unwrap()]);
    user.chat(
        &["--continue", "--model", "simulated"],
        "/fork\nThe owner is Tom.\n",
    );
    let fork = user.request();
    assert_eq!(fork["system"], parent["system"]);
    assert_eq!(fork["tools"], parent["tools"]);
    assert!(
        fork["messages"].as_array().unwrap().len() > parent["messages"].as_array().unwrap().len()
    );
    let list = user.printed(&["sessions", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["total"], 2);
}

#[test]
fn other_tools_than_those_of_the_session_are_said_in_a_line() {
    let user = User::new();
    let (_, said) = user.chat(
        &with(&SIMULATED, &["--tools", "recall,update_plan"]),
        "The port is 99.\n",
    );
    assert_eq!(said, "");
    let go_on = ["--continue", "--print", "What is the port?"];
    let (answer, said) = user.chat(&with(&go_on, &["--tools", "update_plan,recall"]), "");
    assert_eq!((answer.as_str(), said.as_str()), ("The port is 99.\n", ""));
    let (_, said) = user.chat(&go_on, "");
    assert!(
        said.contains("without effect: --tools recall,update_plan"),
        "{said}"
    );
    let (_, said) = user.chat(&with(&go_on, &["--tools", "recall,compact_context"]), "");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(
        said.contains("without effect: --tools update_plan\n"),
        "{said}"
    );
    assert!(said.contains("does not know of compact_context "), "{said}");
}

#[test]
fn another_model_makes_its_own_memories() {
    let user = User::new();
    let record = user.path("record.jsonl");
    let server = Running::start(&["--record", record.to_str().unwrap()]);
    let url = format!("http://{}", server.address);
    let long = "Please look at the module. ".repeat(40);
    let steps: String = (0..6)
        .map(|step| format!("Step {step}: {long}\n"))
        .collect();
    user.chat(
        &[
            "--base-url",
            &url,
            "--model",
            "claude-opus-4-6",
            "--window",
            "60000",
        ],
        &format!("{steps}/model claude-haiku-4-5\n/compact\n"),
    );
    let record = fs::read_to_string(record).unwrap();
    let last = record.lines().last().unwrap();
    assert!(last.contains("claude-haiku-4-5"), "{last}");
    server.end("-TERM");
}

#[test]
fn a_session_of_another_format_goes_on_with_the_simulated_model() {
    let user = User::new();
    user.printed(&[
        "sessions",
        "import",
        &data("dialogue.txt"),
        "--model",
        "gpt-5",
    ]);
    assert!(user.request().get("input").is_some());
    let go_on = ["--continue", "--model", "simulated", "--print"];
    user.chat(&with(&go_on, &["The port is 99."]), "");
    // It is found again under the name that was typed.
    let (answer, _) = user.chat(&["--continue", "--print", "What is the port?"], "");
    assert_eq!(answer, "The port is 99.\n");
    // A name that was not typed is not in the message.
    let output = user.piped(&["chat", "--continue"], "/model claude-opus\n");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("claude-opus is not a model of this provider")
            || said.contains("claude-opus is not known"),
        "{said}"
    );
}

#[test]
fn the_window_that_is_typed_counts_for_another_model_too() {
    let user = User::new();
    user.printed(&[
        "sessions",
        "import",
        &data("dialogue.txt"),
        "--model",
        "claude-opus-4-6",
    ]);
    let arguments = with(&["--continue"], &SIMULATED);
    let (answer, _) = user.chat(&with(&arguments, &["--json", "--print", "And now?"]), "");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let limit = answer["limit"].as_u64().unwrap();
    assert!((1..20_000).contains(&limit), "{limit}");
}

#[test]
fn without_a_key_every_place_of_one_is_named() {
    let user = User::new();
    user.refused(
        &["chat", "--print", "x"],
        2,
        &[
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "DEEPSEEK_API_KEY",
            "--model simulated",
        ],
    );
}

#[test]
fn the_configured_catalogue_is_the_one_that_is_listed() {
    let user = User::new();
    user.printed(&["config", "set", "catalogue", &data("models.toml")]);
    let mine = fs::read_to_string(data("models.toml")).unwrap();
    let id = mine
        .lines()
        .find_map(|line| line.strip_prefix("id = "))
        .unwrap()
        .trim_matches('"');
    let listed = user.printed(&["models", id]);
    assert!(listed.contains(id), "{listed}");
}

#[test]
fn the_configured_memory_model_makes_the_memories() {
    for (model, origin) in [("none", "draft"), ("simulated", "model")] {
        let user = User::new();
        user.printed(&["config", "set", "memory_model", model]);
        let long = "Please look at the module. ".repeat(40);
        let steps: String = (0..6)
            .map(|step| format!("Step {step}: {long}\n"))
            .collect();
        user.chat(&SIMULATED, &format!("{steps}/compact\n"));
        let shown = user.printed(&["sessions", "show", "last", "--json"]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let made_by: Vec<&str> = shown["versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|version| version["origin"].as_str().unwrap())
            .collect();
        assert!(made_by.contains(&origin), "{model}: {made_by:?}");
        let calls = shown["costs"]["memories"]["calls"].as_u64().unwrap();
        assert_eq!(calls > 0, model != "none", "{model}: {calls} calls");
    }
}

#[test]
fn the_configured_tools_are_offered_in_the_configured_folder() {
    let user = User::new();
    let root = user.path("work");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.txt"), "quantum ferry").unwrap();
    user.printed(&["config", "set", "tools", "read_file"]);
    user.printed(&["config", "set", "root", root.to_str().unwrap()]);
    let provider = Canned::start(vec![
        Said::call("read_file", &json!({"path": "a.txt"})),
        Said::text("It is there."),
    ]);
    user.chat(&with(&provider.flags(), &["--print", "Read a.txt."]), "");
    let bodies = provider.bodies();
    assert_eq!(bodies[0]["tools"][0]["name"], "read_file");
    assert!(
        bodies[1].to_string().contains("quantum ferry"),
        "{}",
        bodies[1]
    );
    // What is typed counts for more.
    user.chat(
        &with(&provider.flags(), &["--tools", "recall", "--print", "x"]),
        "",
    );
    let bodies = provider.bodies();
    assert_eq!(bodies.last().unwrap()["tools"][0]["name"], "recall");
}

#[test]
fn a_folder_belongs_to_one_session() {
    let user = User::new();
    let folder = user.path("notes");
    let folder = folder.to_str().unwrap();
    let flags = ["--model", "simulated", "--folder", folder, "--print"];
    user.chat(&with(&flags, &["The first ferry leaves at six."]), "");
    let mut arguments = vec!["chat"];
    arguments.extend(flags);
    arguments.push("Something else.");
    let refused = user.run(&arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("has the files of session"),
        "{}",
        stderr(&refused)
    );
    user.chat(&with(&flags, &["And then?", "--continue"]), "");
}

#[test]
fn the_configured_thinking_and_colours_are_what_is_shown() {
    let thought = json!({"type": "thinking", "thinking": "They want a number."});
    let provider = Canned::start(vec![Said::Blocks(vec![
        thought,
        json!({"type": "text", "text": "**Nine** of them."}),
    ])]);
    let shown = |config: &str, arguments: &[&str]| {
        let home = Home::new();
        home.configure(config);
        let all = with(&provider.flags(), arguments);
        let terminal = home.plain_terminal(&all, &[], (80, 24));
        terminal.until_prompt_after("/help");
        terminal.line("How many?");
        let text = terminal.until_prompt_after("soft");
        let dim = terminal.cell_of("They want").map(|cell| cell.dim());
        let bold = terminal.cell_of("Nine").map(|cell| cell.bold());
        assert!(text.contains("of them."), "{text}");
        (dim, bold)
    };
    assert_eq!(shown("", &[]), (Some(true), Some(true)));
    assert_eq!(
        shown("thinking = \"show\"\n", &[]),
        (Some(false), Some(true))
    );
    assert_eq!(shown("thinking = \"hide\"\n", &[]), (None, Some(true)));
    assert_eq!(
        shown("thinking = \"hide\"\n", &["--thinking", "dim"]),
        (Some(true), Some(true))
    );
    assert_eq!(
        shown("colours = \"never\"\n", &[]),
        (Some(false), Some(false))
    );
}
