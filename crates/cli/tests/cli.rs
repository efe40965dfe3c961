//! The command as its users meet it: what it prints where, what it writes, how it ends.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

#[path = "cli/canned.rs"]
mod canned;
#[path = "cli/chat.rs"]
mod chat;
#[path = "cli/killed.rs"]
mod killed;
#[path = "cli/local.rs"]
mod local;
#[path = "cli/modules.rs"]
mod modules;
#[path = "cli/proxied.rs"]
mod proxied;
#[path = "cli/pty.rs"]
mod pty;
#[path = "cli/resumed.rs"]
mod resumed;
#[path = "cli/sessions.rs"]
mod sessions;
#[path = "cli/settings.rs"]
mod settings;
#[path = "cli/shown.rs"]
mod shown;
#[path = "cli/simulate.rs"]
mod simulate;
#[cfg(feature = "otel")]
#[path = "cli/spans.rs"]
mod spans;
#[path = "cli/stored.rs"]
mod stored;
#[path = "cli/written.rs"]
mod written;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::write::GzEncoder;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// A small session of every format.
const SESSIONS: &[(&str, &str)] = &[
    ("anthropic.json", "anthropic"),
    ("openai-chat.json", "openai-chat"),
    ("openai-responses.json", "openai-responses"),
    ("claude-code.jsonl", "claude-code"),
    ("cline.json", "cline"),
    ("codex.jsonl", "codex"),
    ("gemini-cli.json", "gemini-cli"),
    ("opencode.json", "opencode"),
    ("pi.jsonl", "pi"),
    ("openhands.jsonl", "openhands"),
    ("openhands", "openhands"),
    ("openhands/events", "openhands"),
    ("swe-agent.traj", "swe-agent"),
    ("mini-swe-agent.traj.json", "mini-swe-agent"),
    ("tau-bench.json", "tau-bench"),
    ("langchain.json", "langchain"),
    ("sharegpt.json", "sharegpt"),
    ("chatgpt.json", "chatgpt"),
    ("claude-ai.json", "claude-ai"),
    ("aider.chat.history.md", "aider"),
    ("specstory.md", "specstory"),
    ("dialogue.txt", "dialogue"),
];

fn data(name: &str) -> String {
    format!("{DATA}/{name}")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE");
    command
}

/// A database that is locked until this is dropped.
async fn locked(database: &Path) -> sqlx::Transaction<'static, sqlx::Sqlite> {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    pool.begin_with("BEGIN IMMEDIATE").await.unwrap()
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    fed(&mut command(arguments), input)
}

/// Runs a command that reads this from a pipe.
fn fed(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends early closes its input.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Ended well, and what it printed.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output).to_owned()
}

/// Ended with `code`, printed nothing, and said all `parts` on standard error.
#[track_caller]
fn refused(arguments: &[&str], code: i32, parts: &[&str]) {
    let output = run(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
    assert!(!said.contains("os error"), "{said}");
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn commands_print_what_their_cases_say() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

#[test]
fn every_format_becomes_a_memory() {
    for (name, format) in SESSIONS {
        let path = data(name);
        let output = run(&["compact", &path, "--budget", "1500"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        let memory = stdout(&output);
        let needle = if *format == "tau-bench" {
            "FX-2291"
        } else {
            "data/sailings.csv"
        };
        assert!(memory.contains(needle), "{name}: {memory}");
        let report = printed(&["inspect", &path, "--json"]);
        assert!(
            report.contains(&format!("\"format\": \"{format}\"")),
            "{name}: {report}"
        );
    }
}

#[test]
fn every_format_becomes_a_valid_request() {
    for (name, _) in SESSIONS {
        for wire in ["anthropic", "openai-chat", "openai-responses"] {
            let body = printed(&["convert", &data(name), "--to", wire]);
            let checked = run_with_input(&["check", "-", "--wire", wire], body.as_bytes());
            assert_eq!(
                checked.status.code(),
                Some(0),
                "{name} to {wire}: {}",
                stdout(&checked)
            );
        }
        let lines = printed(&["convert", &data(name), "--to", "jsonl"]);
        assert!(
            lines
                .lines()
                .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
        );
        let again = run_with_input(&["convert", "-", "--to", "jsonl"], lines.as_bytes());
        assert_eq!(stdout(&again), lines, "{name}");
    }
}

#[test]
fn every_form_is_within_the_budget_and_alone_on_standard_output() {
    for form in ["markdown", "json", "object", "system", "user-message"] {
        let text = printed(&[
            "compact",
            &data("torn.jsonl"),
            "--to",
            form,
            "--budget",
            "3000",
        ]);
        assert!(
            !text.contains('\u{1b}') && !text.contains("skipped"),
            "{text}"
        );
        assert!(text.contains("legacy/"), "{form}: {text}");
        let tokens = throughline_transcript::tokens::Counter::reference().text(&text);
        assert!(tokens <= 3000, "{form}: {tokens}");
        if matches!(form, "json" | "object") {
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let once = || printed(&["compact", &data("claude-code.jsonl"), "--to", "json"]);
    assert_eq!(once(), once());
}

#[test]
fn a_request_is_smaller_and_keeps_the_end_word_for_word() {
    let check = |name: &str, arguments: &[&str], kept: &str, gone: &str| {
        let path = data(name);
        let body = printed(
            &[
                &["compact", &path, "--to", "request", "--budget", "1000"],
                arguments,
            ]
            .concat(),
        );
        assert!(
            body.contains(kept) && !body.contains(gone),
            "{arguments:?}: {body}"
        );
        assert!(body.len() < fs::metadata(&path).unwrap().len() as usize);
        let checked = run_with_input(&["check", "-"], body.as_bytes());
        assert_eq!(checked.status.code(), Some(0), "{}", stdout(&checked));
    };
    let request = "keep the times as text, don't parse them";
    check("long.json", &[], request, "pier 12-29 berth");
    check(
        "long.json",
        &["--keep-tail", "5"],
        "pier 12-29 berth",
        "pier 11-29 berth",
    );
    check(
        "long.json",
        &["--keep-tail", "1500tok"],
        "pier 12-29 berth",
        "pier 10-29 berth",
    );
    check(
        "long.json",
        &["--wire", "openai-chat"],
        request,
        "pier 12-29 berth",
    );
    check(
        "long.json",
        &["--wire", "openai-responses", "--model", "gpt-5.1"],
        request,
        "pier 12-29 berth",
    );
    // The only request is covered: the memory quotes it.
    check(
        "loop.json",
        &["--keep-tail", "2"],
        "Please never edit anything under legacy/.",
        "pier 11-29 berth",
    );
    check(
        "loop.json",
        &[],
        "Please never edit anything under legacy/.",
        "pier 01-29 berth",
    );
}

#[test]
fn a_tail_is_left_out_of_the_other_forms() {
    let path = data("anthropic.json");
    let whole = printed(&["compact", &path]);
    let part = printed(&["compact", &path, "--keep-tail", "3"]);
    assert!(
        whole.contains("empty file") && !part.contains("empty file"),
        "{part}"
    );
    refused(
        &["compact", &path, "--keep-tail", "9"],
        3,
        &["no messages before the tail", "--keep-tail"],
    );
}

#[test]
fn a_prior_memory_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let prior = folder.path().join("prior.json");
    let prior = prior.to_str().unwrap();
    let path = data("anthropic.json");
    printed(&[
        "compact",
        &path,
        "--to",
        "json",
        "--keep-tail",
        "3",
        "-o",
        prior,
    ]);
    let updated = printed(&["compact", &path, "--prior", prior]);
    assert!(updated.contains("empty file"), "{updated}");

    let markdown = folder.path().join("memory.md");
    fs::write(&markdown, "# A memory\n").unwrap();
    refused(
        &["compact", &path, "--prior", markdown.to_str().unwrap()],
        2,
        &["memory.md", "--to json"],
    );
    refused(
        &["compact", &path, "--prior", "nowhere.json"],
        2,
        &["no file nowhere.json"],
    );
    refused(&["compact", &path, "--prior", DATA], 2, &["is a folder"]);
}

#[test]
fn a_prior_memory_of_another_session_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let prior = folder.path().join("prior.json");
    let prior = prior.to_str().unwrap();
    printed(&[
        "compact",
        &data("tau-bench.json"),
        "--to",
        "json",
        "-o",
        prior,
    ]);
    let output = run(&["compact", &data("anthropic.json"), "--prior", prior]);
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(
        said.contains("not the first messages of this conversation") && said.contains("hint"),
        "{said}"
    );
    assert!(stdout(&output).contains("empty file"));
}

#[test]
fn an_interrupt_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.md");
    let mut child = command(&["compact", "-", "-o", path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"User: Hello\n").unwrap();
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    assert!(!child.wait().unwrap().success());
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn several_conversations_are_asked_about_or_all_taken() {
    let path = data("several.json");
    let advice = &[
        "3 conversations",
        "ses_a1",
        "ses_b1",
        "Tide tables",
        "--session",
        "--all",
    ];
    refused(&["compact", &path], 2, advice);
    refused(
        &["convert", &path, "--to", "anthropic"],
        2,
        &["3 conversations", "--session"],
    );
    refused(
        &["compact", &path, "--session", "ses_a"],
        2,
        &["begins with", "ses_a1", "ses_a2"],
    );
    refused(
        &["compact", &path, "--session", "nope"],
        2,
        &["no conversation \"nope\"", "ses_a1"],
    );
    refused(
        &["compact", &path, "--session", "4"],
        2,
        &["no conversation \"4\""],
    );
    refused(
        &["compact", &path, "--session", "1", "--all", "x"],
        2,
        &["cannot be used with"],
    );
    assert!(printed(&["compact", &path, "--session", "ses_a2"]).contains("pier names"));
    assert!(printed(&["compact", &path, "--session", "2"]).contains("pier names"));
    assert_eq!(
        printed(&["compact", &path, "--session", "ses_b"]),
        printed(&["compact", &path, "--session", "3"])
    );

    let folder = tempfile::tempdir().unwrap();
    let memories = folder.path().join("new/memories");
    printed(&["compact", &path, "--all", memories.to_str().unwrap()]);
    assert_eq!(names(&memories), ["ses_a1.md", "ses_a2.md", "ses_b1.md"]);
    let finetune = folder.path().join("finetune");
    printed(&[
        "compact",
        &data("finetune.jsonl"),
        "--to",
        "object",
        "--all",
        finetune.to_str().unwrap(),
    ]);
    assert_eq!(
        names(&finetune),
        ["conversation-001.json", "conversation-002.json"]
    );
}

#[test]
fn of_a_session_and_those_it_started_the_session_is_taken() {
    let output = run(&["compact", &data("family.json")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("1 conversation started by it"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        stdout(&output),
        printed(&["compact", &data("family.json"), "--session", "ses_a1"])
    );
}

#[test]
fn a_folder_of_exports_is_one_input_and_other_folders_are_not() {
    assert!(printed(&["inspect", &data("exports")]).contains("Tide tables"));
    assert!(
        printed(&["compact", &data("exports"), "--session", "ses_b1"]).contains("sailings.csv")
    );
    refused(
        &["compact", DATA],
        2,
        &["is a folder", "give one of its", ".json"],
    );
    let empty = tempfile::tempdir().unwrap();
    refused(
        &["compact", empty.path().to_str().unwrap()],
        2,
        &["is a folder", "give a session file"],
    );
}

#[test]
fn what_is_skipped_is_told_with_its_line() {
    let output = run(&["compact", &data("torn.jsonl")]);
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    for part in ["line 3", "line 4", "line 10"] {
        assert!(said.contains(part), "{said}");
    }
    // The list is short, whatever the file is like.
    let mut broken = fs::read(data("claude-code.jsonl")).unwrap();
    broken.extend(b"what\n".repeat(500));
    let output = run_with_input(&["compact", "-"], &broken);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).lines().count() < 10, "{}", stderr(&output));
    assert!(stderr(&output).contains("more"), "{}", stderr(&output));
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_unpacked_from_files_and_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(data("long.json")).unwrap();
    let packed = zipped(&bytes);
    let path = folder.path().join("long.json.gz");
    fs::write(&path, &packed).unwrap();
    let expected = printed(&["compact", &data("long.json")]);
    assert_eq!(printed(&["compact", path.to_str().unwrap()]), expected);
    assert_eq!(
        stdout(&run_with_input(&["compact", "-"], &packed)),
        expected
    );
    assert_eq!(stdout(&run_with_input(&["compact", "-"], &bytes)), expected);

    let lines = fs::read(data("claude-code.jsonl")).unwrap().repeat(50);
    let packed = zipped(&lines);
    let torn = run_with_input(&["compact", "-"], &packed[..packed.len() - 12]);
    assert_eq!(torn.status.code(), Some(0), "{}", stderr(&torn));
    assert!(
        stderr(&torn).contains("gzip data is damaged"),
        "{}",
        stderr(&torn)
    );
    let broken = run_with_input(&["compact", "-"], &packed[..12]);
    assert_eq!(broken.status.code(), Some(2), "{}", stderr(&broken));
}

const OPENCODE: &[&str] = &[
    "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, directory TEXT, cost REAL)",
    "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT)",
    "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)",
    r#"INSERT INTO session VALUES ('ses_1', NULL, 'Ferry "times"', '/home/mo/ferry', 0.5), ('ses_2', NULL, 'Tides', NULL, 0)"#,
    r#"INSERT INTO message VALUES
                ('msg_2', 'ses_1', 2, '{"role":"assistant","modelID":"gpt-5.1","time":{"created":1772614860000}}'),
                ('msg_1', 'ses_1', 1, '{"role":"user","time":{"created":1772614800000}}'),
                ('msg_3', 'ses_2', 3, '{"role":"user","time":{"created":1772614800000}}'),
                ('msg_4', 'ses_2', 4, 'torn{')"#,
    r#"INSERT INTO part VALUES
                ('prt_0', 'msg_0', 'ses_1', '{"type":"text","text":"of a message that is gone"}'),
                ('prt_1', 'msg_1', 'ses_1', '{"type":"text","text":"Load the sailings from data/sailings.csv, never edit legacy/."}'),
                ('prt_3', 'msg_2', 'ses_1', '{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"sailings.csv"}}'),
                ('prt_2', 'msg_2', 'ses_1', '{"type":"text","text":"I look at the folder first."}'),
                ('prt_4', 'msg_3', 'ses_2', '{"type":"text","text":"When is the spring tide at Oban?"}')"#,
];

const GOOSE: &[&str] = &[
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, session_type TEXT, working_dir TEXT, created_at TIMESTAMP, model_config_json TEXT)",
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT)",
    r#"INSERT INTO sessions VALUES ('20260304_1', 'Jetty', '', 'user', '/home/mo/jetty', '2026-03-04 10:00:00', '{"model_name":"m-1"}')"#,
    r#"INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json) VALUES
        ('20260304_1', 'user', '[{"type":"text","text":"Mend the jetty, keep the lamp."}]', 1772614800, '{"userVisible":true,"agentVisible":true}'),
        ('20260304_1', 'assistant', '[{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}}]', 1772614801, '{}'),
        ('20260304_1', 'user', '[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":[{"type":"text","text":"planks"}]}}]', 1772614802, NULL),
        ('20260304_1', 'assistant', '[{"type":"text","text":"Mended."}]', 1772614803, 'torn{')"#,
];

const CRUSH: &[&str] = &[
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, created_at INTEGER)",
    "CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model TEXT, created_at INTEGER, is_summary_message INTEGER)",
    "INSERT INTO sessions VALUES ('s1', NULL, 'Jetty', 1772614800)",
    r#"INSERT INTO messages VALUES
        ('m1', 's1', 'user', '[{"type":"text","data":{"text":"Mend the jetty, keep the lamp."}}]', NULL, 1772614800, 0),
        ('m2', 's1', 'assistant', '[{"type":"tool_call","data":{"id":"c1","name":"bash","input":"{}","finished":true}},{"type":"finish","data":{"reason":"tool_use"}}]', 'm-1', 1772614801, 0),
        ('m3', 's1', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"c1","content":"planks","is_error":false}}]', NULL, 1772614801, 0),
        ('m4', 's1', 'assistant', '[{"type":"text","data":{"text":"Mended."}}]', 'm-1', 1772614802, 0)"#,
];

const CURSOR: &[&str] = &[
    "CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
    "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
    r#"INSERT INTO cursorDiskKV VALUES
        ('composerData:k1', '{"composerId":"k1","name":"Jetty","createdAt":1,"fullConversationHeadersOnly":[{"bubbleId":"b1","type":1},{"bubbleId":"b2","type":2},{"bubbleId":"gone","type":2},{"bubbleId":"b3","type":2}]}'),
        ('composerData:k2', '{"composerId":"k2","createdAt":2,"fullConversationHeadersOnly":[]}'),
        ('composerData:k3', NULL),
        ('bubbleId:k1:b3', '{"bubbleId":"b3","type":2,"text":"Mended."}'),
        ('bubbleId:k1:b2', '{"bubbleId":"b2","type":2,"text":"","toolFormerData":{"toolCallId":"c1","name":"list_dir","rawArgs":"{}","status":"completed","result":"planks"}}'),
        ('bubbleId:k1:b1', '{"bubbleId":"b1","type":1,"text":"Mend the jetty, keep the lamp."}')"#,
];

/// A database as opencode has it: two sessions.
fn opencode_database(path: &Path) {
    database(path, OPENCODE);
}

/// A database in WAL mode.
fn database(path: &Path, statements: &'static [&'static str]) {
    use sqlx::{ConnectOptions, Connection};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
            .connect()
            .await
            .unwrap();
        for statement in statements {
            sqlx::query(*statement)
                .execute(&mut connection)
                .await
                .unwrap();
        }
        connection.close().await.unwrap();
    });
}

#[test]
fn the_database_of_opencode_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    opencode_database(&path);
    let name = path.to_str().unwrap();
    refused(
        &["compact", name],
        2,
        &["2 conversations", "Ferry \"times\"", "ses_2", "--session"],
    );
    let lines = printed(&["convert", name, "--session", "ses_1", "--to", "jsonl"]);
    let roles: Vec<_> = lines
        .lines()
        .map(|line| line.split('"').nth(3).unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"], "{lines}");
    assert!(
        lines.contains("I look at the folder") && !lines.contains("that is gone"),
        "{lines}"
    );
    assert!(printed(&["compact", name, "--session", "2"]).contains("spring tide"));

    // Also where nothing may be written.
    let before = fs::read(&path).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let shown = printed(&["inspect", name]);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(shown.contains("opencode"), "{shown}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn databases_of_other_programs_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format, statements) in [
        ("sessions.db", "goose", GOOSE),
        ("crush.db", "crush", CRUSH),
        ("state.vscdb", "cursor", CURSOR),
    ] {
        let path = folder.path().join(name);
        database(&path, statements);
        let path = path.to_str().unwrap();
        assert!(printed(&["inspect", path]).contains(format), "{format}");
        let lines = printed(&["convert", path, "--to", "jsonl"]);
        let roles: Vec<_> = lines
            .lines()
            .map(|line| line.split('"').nth(3).unwrap())
            .collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant"], "{lines}");
        assert!(
            lines.contains("keep the lamp") && lines.contains("planks"),
            "{lines}"
        );
        assert!(printed(&["compact", path]).contains("keep the lamp"));
    }
    let empty = folder.path().join("empty.db");
    database(&empty, &CRUSH[..2]);
    refused(
        &["compact", empty.to_str().unwrap()],
        3,
        &["no session in the database"],
    );
}

/// A zip archive with deflated files.
fn zip_archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    use std::io::Write;
    let (mut archive, mut list) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let mut packer =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).unwrap();
        let packed = packer.finish().unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        // From the version that is needed to the lengths of the name and of what may follow it.
        let mut header = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        header.extend(crc.sum().to_le_bytes());
        header.extend((packed.len() as u32).to_le_bytes());
        header.extend((bytes.len() as u32).to_le_bytes());
        header.extend((name.len() as u16).to_le_bytes());
        header.extend([0, 0]);
        list.extend([b"PK\x01\x02\x14\x00".as_slice(), &header, &[0; 10]].concat());
        list.extend((archive.len() as u32).to_le_bytes());
        list.extend(name.as_bytes());
        archive.extend([b"PK\x03\x04".as_slice(), &header, name.as_bytes(), &packed].concat());
    }
    let start = archive.len() as u32;
    let count = (files.len() as u16).to_le_bytes();
    archive.extend(&list);
    archive.extend(b"PK\x05\x06\x00\x00\x00\x00");
    archive.extend([count, count].concat());
    archive.extend((list.len() as u32).to_le_bytes());
    archive.extend(start.to_le_bytes());
    archive.extend([0, 0]);
    archive
}

#[test]
fn packed_sessions_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path: PathBuf = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let session = fs::read(data("claude-code.jsonl")).unwrap();
    let shown = printed(&["convert", &data("claude-code.jsonl"), "--to", "jsonl"]);

    // One frame, two frames, and one that is torn.
    let (head, tail) = session.split_at(session.len() / 2);
    let packed = |bytes: &[u8]| {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    };
    let one = file("a.jsonl.zst", &packed(&session));
    assert_eq!(printed(&["convert", &one, "--to", "jsonl"]), shown);
    let two = file("b.jsonl.zst", &[packed(head), packed(tail)].concat());
    assert_eq!(printed(&["convert", &two, "--to", "jsonl"]), shown);
    let torn = [packed(&session), packed(tail)[..20].to_vec()].concat();
    let torn = run(&["inspect", &file("c.zst", &torn)]);
    assert_eq!(torn.status.code(), Some(0));
    assert!(
        stderr(&torn).contains("zstd data is damaged"),
        "{}",
        stderr(&torn)
    );
    let broken = file("d.zst", &packed(&session)[..6]);
    refused(&["inspect", &broken], 2, &["d.zst"]);

    let archive = |name: &str, files: &[(&str, &[u8])]| file(name, &zip_archive(files));
    let dialogue = fs::read(data("dialogue.txt")).unwrap();
    let single = archive(
        "a.zip",
        &[("s/claude-code.jsonl", &session), ("photo.png", b"\x89PNG")],
    );
    assert_eq!(printed(&["convert", &single, "--to", "jsonl"]), shown);
    let piped = run_with_input(
        &["convert", "-", "--to", "jsonl"],
        &fs::read(&single).unwrap(),
    );
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), shown);
    let several = archive(
        "b.zip",
        &[
            ("user.json", b"{\"name\":\"mo\"}"),
            ("c.jsonl", &session),
            ("d.txt", &dialogue),
        ],
    );
    refused(&["compact", &several], 2, &["2 conversations", "--session"]);
    assert_eq!(
        printed(&["convert", &several, "--session", "1", "--to", "jsonl"]),
        shown
    );
    refused(&["check", &several], 2, &["3 files", "unpack"]);
    refused(
        &["compact", &archive("e.zip", &[("photo.png", b"x")])],
        2,
        &["no session file", ".jsonl"],
    );
    refused(&["compact", &archive("f.zip", &[])], 2, &["zip archive"]);
    let mut damaged = fs::read(&single).unwrap();
    damaged[60..90].fill(0xff);
    refused(
        &["compact", &file("g.zip", &damaged)],
        2,
        &["claude-code.jsonl"],
    );
}

#[test]
fn what_is_not_understood_is_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path: PathBuf = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // Read as a format of its shape, this would be messages without words.
    let foreign = file(
        "a.jsonl",
        b"{\"role\":\"user\",\"body\":{\"text\":\"Hi\"}}\n",
    );
    refused(&["compact", &foreign], 2, &["known formats"]);
    let silent = file(
        "b.json",
        br#"{"model":"m","messages":[{"role":"user","content":[{"type":"hologram"}]}]}"#,
    );
    refused(
        &["compact", &silent],
        2,
        &["looks like openai-chat", "no", "content"],
    );
    let alone = file(
        "c.json",
        br#"{"model":"m","messages":[{"role":"assistant","content":"Done."}]}"#,
    );
    refused(
        &["compact", &alone],
        2,
        &["none of its messages is the user's"],
    );
    // A session in which nothing was said so far.
    for (name, text) in [
        (
            "d.jsonl",
            r#"{"type":"session.start","id":"e","timestamp":"t","data":{"sessionId":"s"}}"#,
        ),
        (
            "e.jsonl",
            r#"{"role":"_system_prompt","content":"You are Kimi."}"#,
        ),
        (
            "f.json",
            r#"{"sessionId":"s","projectHash":"h","messages":[]}"#,
        ),
    ] {
        refused(
            &["compact", &file(name, text.as_bytes())],
            3,
            &["no message"],
        );
    }
    let western = file("g.md", b"\n# aider chat started at 2026-09-01 10:00:00\n\n#### H\xf6he der Br\xfccke?\n\nDrei Meter, f\xfcr gr\xf6\xdfere F\xe4hren zu niedrig.\n");
    let memory = run(&["compact", &western]);
    assert!(String::from_utf8_lossy(&memory.stdout).contains("Höhe der Brücke"));
    assert!(
        stderr(&memory).contains("line 4: the text is not UTF-8"),
        "{}",
        stderr(&memory)
    );
}

#[test]
fn other_databases_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    fs::write(&path, b"SQLite format 3\0 and then nothing of the kind").unwrap();
    refused(&["compact", path.to_str().unwrap()], 2, &["database"]);
}

#[test]
fn files_belong_to_the_user_and_are_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.md");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let link = folder.path().join("link.md");
    std::os::unix::fs::symlink("memory.md", &link).unwrap();
    assert_eq!(
        printed(&["compact", &data("long.json"), "-o", link.to_str().unwrap()]),
        ""
    );
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        printed(&["compact", &data("long.json")])
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(link.is_symlink());
    assert_eq!(names(folder.path()), ["link.md", "memory.md"]);
    assert_eq!(
        printed(&["compact", &data("long.json"), "-o", "-"]),
        printed(&["compact", &data("long.json")])
    );
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let session = data("dialogue.txt");
    refused(
        &["compact", &session, "-o", &at("no/such/memory.md")],
        4,
        &["no folder", "mkdir -p"],
    );
    refused(
        &["compact", &session, "-o", &at("")],
        4,
        &["it is a folder"],
    );
    refused(
        &["compact", &session, "-o", "/dev/full"],
        4,
        &["/dev/full", "no space left", "make room"],
    );
    refused(
        &["compact", &session, "-o", "/proc/memory.md"],
        4,
        &["/proc/memory.md"],
    );
    refused(
        &["compact", &session, "--all", "/proc/memories"],
        4,
        &["/proc/memories"],
    );
    assert!(Path::new("/dev/full").exists());
    assert_eq!(names(folder.path()), [""; 0]);

    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = command(&["compact", &session])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write standard output"));
}

#[test]
fn inputs_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path: PathBuf = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for command in ["compact", "inspect", "check"] {
        refused(
            &[command, "nowhere.jsonl"],
            2,
            &["there is no file nowhere.jsonl", "hint"],
        );
        refused(
            &[command, "no/where.jsonl"],
            2,
            &["the folder no does not exist"],
        );
        refused(&[command, &file("empty", b"")], 2, &["the input is empty"]);
        refused(
            &[command, &file("blank", b" \n\n")],
            2,
            &["the input is empty"],
        );
        refused(
            &[command, &file("packed.zip", b"PK\x03\x04 and so on")],
            2,
            &["zip archive"],
        );
    }
    refused(&["compact", &file("nul", &[0; 4096])], 2, &["empty", "NUL"]);
    let noise: Vec<u8> = (0..9000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 | 0x80)
        .collect();
    refused(
        &["compact", &file("noise", &noise)],
        2,
        &["known formats", "binary"],
    );
    refused(
        &["compact", &file("code.rs", b"fn main() {}\n")],
        2,
        &["known formats", "--from"],
    );
    let session = data("dialogue.txt");
    refused(
        &["compact", &session, "--from", "codex"],
        2,
        &["not codex", "--from"],
    );
    refused(
        &["compact", &session, "--from", "fax"],
        2,
        &["invalid value 'fax'"],
    );
    for budget in ["0", "abc", "-3", ""] {
        refused(&["compact", &session, "--budget", budget], 2, &["--budget"]);
    }
    // A budget has no minimum.
    assert!(printed(&["compact", &session, "--budget", "3"]).contains("sailings.csv"));
    refused(
        &["compact", &session, "--keep-tail", "some"],
        2,
        &["--keep-tail", "8000tok"],
    );
    refused(
        &["check", &data("claude-code.jsonl")],
        2,
        &["not a request body", "claude-code", "throughline convert"],
    );
    refused(
        &["check", &data("specstory.md")],
        2,
        &["not JSON", "specstory"],
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    for arguments in [
        ["models"].as_slice(),
        &["compact", &data("long.json"), "--to", "json"],
        &["man"],
    ] {
        let mut child = command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(stderr(&output), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn secrets_are_taken_out_unless_asked() {
    let secret = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let text = format!(
        "User: Deploy the ferry page with the token {secret} please.\nAssistant: Deployed.\n"
    );
    let check = |arguments: &[&str], is_there: bool| {
        let output = run_with_input(arguments, text.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(
            stdout(&output).contains(&secret),
            is_there,
            "{arguments:?}: {}",
            stdout(&output)
        );
    };
    check(&["compact", "-"], false);
    check(&["compact", "-", "--no-redact"], true);
    check(&["inspect", "-"], false);
    check(&["inspect", "-", "--json"], false);
}

#[test]
fn colours_are_for_those_who_ask() {
    let check = |variables: &[(&str, &str)], is_coloured: bool| {
        let output = command(&["compact", "nowhere"])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert_eq!(
            stderr(&output).contains('\u{1b}'),
            is_coloured,
            "{variables:?}"
        );
    };
    check(&[], false);
    check(&[("CLICOLOR_FORCE", "1")], true);
    check(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false);
}

#[test]
fn manual_pages_and_completions_cover_every_command() {
    let folder = tempfile::tempdir().unwrap();
    printed(&["man", folder.path().to_str().unwrap()]);
    let pages = names(folder.path());
    for command in [
        "compact",
        "inspect",
        "check",
        "convert",
        "models",
        "sessions",
        "config",
        "doctor",
        "formats",
        "completions",
        "man",
    ] {
        assert!(
            pages.contains(&format!("throughline-{command}.1")),
            "{pages:?}"
        );
        let help = printed(&[command, "--help"]);
        assert!(help.contains("Usage:"), "{help}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            printed(&["completions", shell]).contains("keep-tail"),
            "{shell}"
        );
    }
}
