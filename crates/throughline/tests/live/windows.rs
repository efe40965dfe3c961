//! Agents that work on past their windows: what was said is known, what was done is recorded, nothing is refused.

use throughline::agent::builtin::{NAMES, Root};
use throughline::agent::{Agent, AgentOutcome, AllowAll, Tools};
use throughline_simulator::{Options, Reply};

use crate::world::World;

/// What is said along the way, what is asked about it at the end, and what the answer has.
const FACTS: [(&str, &str, &str); 3] = [
    (
        "Remember: the deploy region is eu-north-3.",
        "What is the deploy region?",
        "eu-north-3",
    ),
    (
        "Remember: the staging port is 8431.",
        "What is the staging port?",
        "8431",
    ),
    (
        "Remember: the release name is Kittiwake.",
        "What is the release name?",
        "Kittiwake",
    ),
];

/// What is said at the very beginning.
const RULE: &str = "Never touch the directory vault_7.";

/// Calls that one turn makes, each with an answer of the model's of its own.
const STEPS: usize = 6;

/// The calls of one turn: it looks around, makes and changes a file, runs a command, and says how far its plan is.
fn script(world: &World, turn: usize) {
    let input = |value: serde_json::Value| value.to_string();
    let file = format!("src/part_{turn}.txt");
    let plan = |status: &str| {
        input(serde_json::json!({"plan": [
            {"step": format!("Write part {turn}"), "status": status},
            {"step": "Write the report", "status": "pending"},
        ]}))
    };
    let lines: String = (0..120)
        .map(|line| format!("part {turn} line {line}: value_{turn}_{line}\n"))
        .collect();
    world.provider.script(
        Reply::text("I begin with a plan.")
            .tool_call("update_plan", plan("in_progress"))
            .tool_call("list_files", "{}"),
    );
    world.provider.script(Reply::default().tool_call(
        "write_file",
        input(serde_json::json!({"path": file, "content": lines})),
    ));
    world.provider.script(
        Reply::default()
            .tool_call("read_file", input(serde_json::json!({"path": file})))
            .tool_call(
                "search_files",
                input(serde_json::json!({"pattern": format!("value_{turn}_7\\b")})),
            ),
    );
    world.provider.script(Reply::default().tool_call(
        "edit_file",
        input(serde_json::json!({
            "path": file,
            "old_text": format!("value_{turn}_7\n"),
            "new_text": format!("value_{turn}_seven\n"),
        })),
    ));
    world.provider.script(
        Reply::default()
            .tool_call(
                "run_command",
                input(serde_json::json!({"command": format!("grep -c seven {file}")})),
            )
            .tool_call(
                "recall",
                input(serde_json::json!({"search": "deploy region"})),
            ),
    );
    world
        .provider
        .script(Reply::default().tool_call("update_plan", plan("completed")));
    world
        .provider
        .script(Reply::text(format!("Part {turn} is written.")));
}

async fn works_over(windows: u64) {
    const WINDOW: u64 = 20_000;
    let mut options = Options::new(17).without_latency();
    options.keeps_bodies = false;
    let world = World::new(options);
    let folder = tempfile::tempdir().unwrap();
    let root = Root::open(folder.path()).unwrap();
    let mut tools = Tools::new();
    for name in NAMES {
        tools = tools.with_builtin(name, Some(&root)).unwrap();
    }
    let agent = Agent::builder(world.session().max_tokens(4_000).window(WINDOW))
        .tools(tools)
        .approve(AllowAll)
        .start()
        .await
        .unwrap();
    let session = agent.session();
    world.provider.script(Reply::text("I will not."));
    agent.ask(RULE).await.unwrap();
    let mut turns = 0;
    while session.status().epoch < windows {
        script(&world, turns);
        let said = match FACTS.get(turns) {
            Some((fact, _, _)) => format!("{fact} Then write part {turns}."),
            None => format!("Write part {turns}."),
        };
        let outcome = agent.ask(said).await.unwrap();
        let AgentOutcome::Done(answer) = &outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(answer.text(), format!("Part {turns} is written."));
        assert!(session.status().tokens <= WINDOW);
        turns += 1;
        assert!(turns < 60 * usize::try_from(windows).unwrap());
    }
    assert!(turns >= FACTS.len(), "{turns} turns");

    // Every step was one request, and the files are as the calls left them.
    let asked = world.provider.ledger().len();
    assert_eq!(asked, 1 + turns * (STEPS + 1));
    for turn in 0..turns {
        let file = root.path().join(format!("src/part_{turn}.txt"));
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.lines().count(), 120);
        assert!(text.contains(&format!("line 7: value_{turn}_seven\n")));
    }
    let memory = session.memory().unwrap();
    let has = |text: &str| memory.text.contains(text);
    // The first turn wrote nothing.
    let covered = memory.memory.cover.turns - 1;
    assert!(has(RULE), "{}", memory.text);
    assert!(
        has(&format!("src/part_{}.txt", covered - 1)),
        "{}",
        memory.text
    );
    assert!(has("Write the report"), "{}", memory.text);
    for (_, question, expected) in FACTS {
        let outcome = agent.ask(question).await.unwrap();
        assert!(
            outcome.text().contains(expected),
            "{question} {}\n{}",
            outcome.text(),
            memory.text
        );
    }
    assert_eq!(world.refused(), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn an_agent_works_over_three_windows() {
    works_over(3).await;
}

#[cfg(unix)]
#[tokio::test]
async fn an_agent_works_over_ten_windows() {
    works_over(10).await;
}
