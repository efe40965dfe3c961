//! The tools that come with the library, as the model has them.

use throughline::agent::builtin::{NAMES, NoSuchTool, Root};
use throughline::agent::{Agent, AgentOutcome, AllowAll, Tools};
use throughline_simulator::{Options, Reply};
use throughline_transcript::body::read_message;
use throughline_transcript::json::Raw;

use crate::world::World;

struct Tried {
    world: World,
    agent: Agent,
    root: Root,
    _folder: tempfile::TempDir,
}

impl Tried {
    async fn new() -> Self {
        let world = World::new(Options::new(6).without_latency());
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let mut tools = Tools::new();
        for name in NAMES {
            tools = tools.with_builtin(name, Some(&root)).unwrap();
        }
        let session = world.session().result_bytes_max(4_000);
        let agent = Agent::builder(session)
            .tools(tools)
            .approve(AllowAll)
            .start()
            .await
            .unwrap();
        Self {
            world,
            agent,
            root,
            _folder: folder,
        }
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.root.path().join(path), content).unwrap();
    }

    /// What a call returns: its text as it is archived, and `Err` if it failed.
    async fn call(&self, name: &str, input: serde_json::Value) -> Result<String, String> {
        self.world
            .provider
            .script(Reply::default().tool_call(name, input.to_string()));
        self.world.provider.script(Reply::text("I see."));
        let outcome = self.agent.ask("Do it.").await.unwrap();
        assert!(matches!(outcome, AgentOutcome::Done(_)), "{outcome:?}");
        assert_eq!(self.world.refused(), 0);
        let session = self.agent.session();
        let stored = session
            .message_at(session.status().messages - 2)
            .await
            .unwrap();
        let raw = String::from_utf8(stored.original.to_vec()).unwrap();
        let message = read_message(&Raw::parse(raw).unwrap()).unwrap();
        let result = message.tool_results().next().unwrap();
        let text = result
            .texts()
            .map(|text| text.decode().into_owned())
            .collect();
        match result.is_error {
            Some(true) => Err(text),
            _ => Ok(text),
        }
    }
}

use serde_json::json;

#[tokio::test(start_paused = true)]
async fn files_are_read_in_pieces_that_lead_to_the_next() {
    let tried = Tried::new().await;
    tried.write("short.txt", "one\ntwo\n");
    let long: String = (1..=2_500).map(|line| format!("line {line}\n")).collect();
    tried.write("long.txt", long);
    tried.write("wide.txt", "x".repeat(300 * 1024));
    tried.write("picture.png", b"\x89PNG\0\0\0");
    let read = async |input| tried.call("read_file", input).await;
    assert_eq!(
        read(json!({"path": "short.txt"})).await.unwrap(),
        "one\ntwo\n"
    );
    let first = read(json!({"path": "long.txt"})).await.unwrap();
    assert!(first.ends_with("line 2000\n[lines 1 to 2000 of 2500; go on with offset 2001]"));
    let rest = read(json!({"path": "long.txt", "offset": 2001}))
        .await
        .unwrap();
    assert!(rest.starts_with("line 2001\n") && rest.ends_with("\n[lines 2001 to 2500 of 2500]"));
    let some = read(json!({"path": "long.txt", "offset": 7, "limit": 2}))
        .await
        .unwrap();
    assert_eq!(
        some,
        "line 7\nline 8\n[lines 7 to 8 of 2500; go on with offset 9]"
    );
    let wide = read(json!({"path": "wide.txt"})).await.unwrap();
    assert!(wide.ends_with("[line 1 of 1 has 307200 bytes; this is its beginning]"));
    for (input, expected) in [
        (
            json!({"path": "long.txt", "offset": 2501}),
            "the file has 2500 lines",
        ),
        (
            json!({"path": "picture.png"}),
            "picture.png is no text: 7 bytes",
        ),
        (json!({"path": "."}), ". is a folder"),
        (json!({"path": "none.txt"}), "none.txt: "),
        (
            json!({"path": "/etc/passwd"}),
            "/etc/passwd is outside of the folder",
        ),
        (json!({"path": "../x"}), "../x is outside of the folder"),
    ] {
        let error = read(input.clone()).await.unwrap_err();
        assert!(error.starts_with(expected), "{input}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn files_are_written_and_edited() {
    let tried = Tried::new().await;
    let text = |path: &str| std::fs::read_to_string(tried.root.path().join(path)).unwrap();
    let write = json!({"path": "a/b/c.txt", "content": "one\ntwo\none\n"});
    let written = tried.call("write_file", write.clone()).await.unwrap();
    assert_eq!(written, "created a/b/c.txt (3 lines, 12 bytes)");
    let written = tried.call("write_file", write).await.unwrap();
    assert_eq!(written, "replaced a/b/c.txt (3 lines, 12 bytes)");
    let edit = async |old: &str, new: &str, all: bool| {
        let input =
            json!({"path": "a/b/c.txt", "old_text": old, "new_text": new, "replace_all": all});
        tried.call("edit_file", input).await
    };
    edit("two", "2", false).await.unwrap();
    assert_eq!(text("a/b/c.txt"), "one\n2\none\n");
    let error = edit("one", "1", false).await.unwrap_err();
    assert!(error.contains("2 times, in lines 1, 3"), "{error}");
    assert_eq!(
        edit("one", "1", true).await.unwrap(),
        "edited a/b/c.txt (2 places)"
    );
    assert_eq!(text("a/b/c.txt"), "1\n2\n1\n");
    assert!(
        edit("three", "3", false)
            .await
            .unwrap_err()
            .contains("white space counts")
    );
    assert!(edit("", "3", false).await.unwrap_err().contains("is empty"));

    // Line ends stay those of the file.
    tried.write("dos.txt", "one\r\ntwo\r\n");
    let input = json!({"path": "dos.txt", "old_text": "one\ntwo", "new_text": "1\n2"});
    tried.call("edit_file", input).await.unwrap();
    assert_eq!(text("dos.txt"), "1\r\n2\r\n");

    tried.write("latin.txt", b"caf\xe9");
    let input = json!({"path": "latin.txt", "old_text": "caf", "new_text": "tea"});
    assert!(
        tried
            .call("edit_file", input)
            .await
            .unwrap_err()
            .contains("not UTF-8")
    );
    for path in ["../out.txt", "/tmp/out.txt"] {
        let input = json!({"path": path, "content": "x"});
        assert!(tried.call("write_file", input).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn files_are_listed_and_searched() {
    let tried = Tried::new().await;
    tried.write("a.rs", "fn one() {}\nfn two() {}\n");
    tried.write("b.md", "One or TWO\n");
    tried.write("c.bin", b"fn three\0");
    let list = async |input| tried.call("list_files", input).await;
    assert_eq!(list(json!({})).await.unwrap(), "a.rs\nb.md\nc.bin\n");
    assert_eq!(list(json!({"glob": "*.rs"})).await.unwrap(), "a.rs\n");
    assert_eq!(list(json!({"glob": "*.py"})).await.unwrap(), "(no files)");
    let search = async |input| tried.call("search_files", input).await;
    assert_eq!(
        search(json!({"pattern": "fn (one|three)"})).await.unwrap(),
        "a.rs:1: fn one() {}\n"
    );
    assert_eq!(
        search(json!({"pattern": "two", "ignore_case": true}))
            .await
            .unwrap(),
        "a.rs:2: fn two() {}\nb.md:1: One or TWO\n"
    );
    assert_eq!(
        search(json!({"pattern": "x{3}"})).await.unwrap(),
        "(nothing found)\n"
    );
    assert!(
        search(json!({"pattern": "("}))
            .await
            .unwrap_err()
            .contains("unclosed group")
    );
    let many: String = (0..300).map(|line| format!("hit {line}\n")).collect();
    tried.write("many.txt", many);
    let found = search(json!({"pattern": "hit"})).await.unwrap();
    assert!(
        found.ends_with("many.txt:200: hit 199\n[the first 200 of 300 lines; narrow the search]\n")
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_shortened_or_covered_is_recalled_whole() {
    let tried = Tried::new().await;
    let long: String = (0..1_500)
        .map(|line| format!("row {line} of zanzibar\n"))
        .collect();
    tried.write("long.txt", &long);
    let read = tried
        .call("read_file", json!({"path": "long.txt"}))
        .await
        .unwrap();
    assert_eq!(read, long);
    // The model was shown a part of it, and where the whole is.
    let body = tried.world.provider.ledger().pop().unwrap().body;
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(!body.contains("row 700 of zanzibar"));
    assert!(
        body.contains("all of it is message 3 in the archive"),
        "{body}"
    );
    tried.agent.session().compact(None).await.unwrap();

    let recall = async |input| tried.call("recall", input).await;
    let found = recall(json!({"search": "zanzibar row"})).await.unwrap();
    assert!(found.contains("Message 3 (user): "), "{found}");
    let mut whole = String::new();
    let mut part = 1;
    loop {
        let shown = recall(json!({"message": 3, "part": part})).await.unwrap();
        let (head, text) = shown.split_once("\n").unwrap();
        let parts = head.rsplit_once(" of ").unwrap().1;
        assert!(
            head.starts_with(&format!("Message 3 (user, part {part} of ")),
            "{head}"
        );
        whole.push_str(text);
        if parts == format!("{part}):") {
            break;
        }
        part += 1;
    }
    assert!(whole.contains(&long), "{} bytes", whole.len());
    // And no part was shortened on its way to the model.
    let body = tried.world.provider.ledger().pop().unwrap().body;
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert_eq!(
        body.matches("bytes left out here").count(),
        body.matches("message 3 in the archive").count()
    );

    // Calls of the tool itself are not found.
    let found = recall(json!({"search": "xylophone"})).await.unwrap();
    assert!(found.starts_with("Nothing was found."), "{found}");
    let found = recall(json!({"search": "xylophone zanzibar"}))
        .await
        .unwrap();
    assert!(
        found.starts_with("No message has all of these words. With one of them:\nMessage"),
        "{found}"
    );
    let error = recall(json!({"message": 0})).await.unwrap_err();
    assert!(
        error.starts_with("there is no message 0; they are numbered from 1 to "),
        "{error}"
    );
    assert_eq!(
        recall(json!({})).await.unwrap_err(),
        "give search or message"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_noted_and_carried_by_the_memory() {
    let tried = Tried::new().await;
    let plan = json!({"plan": [
        {"step": "Read the parser", "status": "completed"},
        {"step": "Write the lexer", "status": "in_progress"},
        {"step": "Publish the crate", "status": "pending"},
    ]});
    let wrong = json!({"plan": [{"step": "Read", "status": "half"}]});
    let error = tried.call("update_plan", wrong).await.unwrap_err();
    assert!(
        error.contains("plan[0].status: unknown variant `half`"),
        "{error}"
    );
    let noted = tried.call("update_plan", plan).await.unwrap();
    assert_eq!(
        noted,
        "The plan is noted: 1 completed, 1 in progress, 1 pending."
    );
    for turn in 0..8 {
        tried.world.provider.script(Reply::text("I see."));
        tried
            .agent
            .ask(crate::world::chatter(turn, 200))
            .await
            .unwrap();
    }
    tried.agent.session().compact(None).await.unwrap();
    let memory = tried.agent.session().memory().unwrap();
    for step in ["Write the lexer", "Publish the crate"] {
        assert!(memory.text.contains(step), "{}", memory.text);
    }
}

#[tokio::test]
async fn tools_that_need_a_root_say_so() {
    let needs = |name: &str| Tools::new().with_builtin(name, None).err();
    for name in NAMES {
        let expected = match name {
            "recall" | "update_plan" | "compact_context" => None,
            name => Some(NoSuchTool::NeedsRoot {
                name: name.to_owned(),
            }),
        };
        assert_eq!(needs(name), expected);
    }
    assert!(
        needs("fly")
            .unwrap()
            .to_string()
            .starts_with("there is no tool fly; there are recall,")
    );
}
