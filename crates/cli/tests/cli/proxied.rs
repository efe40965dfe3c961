//! `throughline serve` and `throughline run` as processes: set-up, a program behind it, and being killed.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::simulate::{Running, listening};
use crate::{command, stderr, stdout};

/// A proxy in a process of its own.
pub(crate) struct Proxied {
    child: Child,
    pub(crate) address: String,
}

impl Proxied {
    fn start(home: &Path, upstream: &str, arguments: &[&str]) -> Self {
        Self::start_with(home, upstream, arguments, &[])
    }

    /// With these variables in its environment.
    pub(crate) fn start_with(
        home: &Path,
        upstream: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let upstream = format!("http://{upstream}");
        let mut all = vec![
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--anthropic-upstream",
            &upstream,
            "--openai-upstream",
            &upstream,
        ];
        if !arguments.contains(&"--log") {
            all.extend(["--log", "off"]);
        }
        all.extend(arguments);
        let mut child = command(&all)
            .envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, home)))
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (address, hint) = listening(&mut output);
        assert!(hint.starts_with(&format!("(ANTHROPIC_BASE_URL=http://{address} ")));
        Self { address, child }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as an operator does; gives what it wrote to standard error, but for what it says about its end.
    pub(crate) fn end(self) -> String {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-TERM", &id])
            .status();
        assert!(sent.unwrap().success());
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        stderr(&output)
            .lines()
            .filter(|line| !line.contains("ending: answers"))
            .map(|line| format!("{line}\n"))
            .collect()
    }
}

/// Sends a request and reads the answer, as far as it comes.
pub(crate) fn ask(address: &str, body: &str) -> Option<(String, String)> {
    let mut connection = TcpStream::connect(address).ok()?;
    write!(
        connection,
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_lowercase(), body.to_owned()))
}

pub(crate) fn body(messages: &[Value]) -> String {
    json!({
        "model": "claude-opus-4-6",
        "max_tokens": 1000,
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "none"},
        "messages": messages,
    })
    .to_string()
}

pub(crate) fn said(number: usize) -> Value {
    let padding = "it is used wherever the importer looks things up ".repeat(60);
    json!({"role": "user", "content": format!("Remember: the item{number} is value-{number}-x. By the way, {padding}in part {number}.")})
}

#[test]
fn another_machine_reaches_a_proxy_only_with_a_token() {
    let output = command(&["serve", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--token-file"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn senseless_settings_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("serve.toml");
    for (text, expected) in [
        ("mode = \"fast\"", "there is no mode"),
        ("windw = 1", "unknown field `windw`"),
        ("window = 12", "at least 1000 tokens"),
        ("\n\nmode = 3", "line 3"),
        (
            "openai_upstream = \"http://u:p@host\"",
            "must not contain a key",
        ),
        (
            "[[routes]]\npath = \"/v1/x\"\nupstream = \"http://h\"",
            "a path begins with /",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = command(&["serve", "--config", file.to_str().unwrap()])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            stderr(&output).contains(expected),
            "{text}: {}",
            stderr(&output)
        );
    }
    for arguments in [
        &["--anthropic-upstream", "ftp://x"][..],
        &["--route", "groq=x"],
        &["--window", "12"],
    ] {
        let output = command(&[&["serve"], arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_program_runs_behind_a_proxy_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let simulator = Running::start(&[]);
    let upstream = format!("http://{}", simulator.address);
    let script = r#"
        test "$OPENAI_BASE_URL" = "$ANTHROPIC_BASE_URL/v1" || exit 9
        cat > /dev/null
        echo "base $ANTHROPIC_BASE_URL"
        exit 7
    "#;
    let output = command(&[
        "run",
        "--anthropic-upstream",
        &upstream,
        "--",
        "sh",
        "-c",
        script,
    ])
    .envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, home.path())))
    .stdin(Stdio::null())
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("base http://127.0.0.1:"));
    assert!(
        stderr(&output).contains("received no request"),
        "{}",
        stderr(&output)
    );
    let output = command(&["run", "--", "/nowhere/to/be/found"])
        .envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, home.path())))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    drop(simulator);
}

/// A conversation over several windows, and a proxy that is killed during it, `kills` times.
fn killed(kills: usize) {
    let home = tempfile::tempdir().unwrap();
    let record = home.path().join("bodies.jsonl");
    let simulator = Running::start(&["--record", record.to_str().unwrap()]);
    let arguments = ["--window", "20000", "--updates", "code"];
    let mut proxy = Proxied::start(home.path(), &simulator.address, &arguments);
    let mut messages: Vec<Value> = Vec::new();
    let mut killed = 0;
    let mut epoch = 0;
    let mut turn = 0;
    let mut last_killed = false;
    while killed < kills || epoch < 3 {
        assert!(turn < 600, "{epoch} epochs in {turn} turns");
        messages.push(said(turn));
        turn += 1;
        loop {
            // From at once to after everything.
            let delay = std::time::Duration::from_micros((killed as u64 * 7919) % 40_000);
            let will_kill = killed < kills && !last_killed;
            let address = proxy.address.clone();
            let text = body(&messages);
            let asking = std::thread::spawn(move || ask(&address, &text));
            if will_kill {
                std::thread::sleep(delay);
                proxy.kill();
                proxy = Proxied::start(home.path(), &simulator.address, &arguments);
                killed += 1;
            }
            last_killed = will_kill;
            let answer = asking.join().unwrap();
            let whole = answer.and_then(|(head, body)| {
                let answer: Value = serde_json::from_str(&body).ok()?;
                Some((head, answer))
            });
            let Some((head, answer)) = whole else {
                continue;
            };
            assert!(head.starts_with("http/1.1 200"), "{head}\n{answer}");
            let told = head.split("x-throughline-epoch: ").nth(1);
            if let Some(told) = told.and_then(|rest| rest.lines().next()) {
                let told: u64 = told.trim().parse().unwrap();
                assert!(told >= epoch, "the epoch went back from {epoch} to {told}");
                epoch = told;
            }
            messages.push(json!({"role": "assistant", "content": answer["content"]}));
            break;
        }
    }
    assert!(epoch >= 3, "{epoch}");
    // Everything that was sent is there once, and every request continues the one before or begins an epoch.
    let (status, _) = simulator.end("-TERM");
    assert_eq!(status, Some(0));
    let lines = std::fs::read_to_string(&record).unwrap();
    let mut before: Vec<Value> = Vec::new();
    let mut begun = 0;
    for line in lines.lines() {
        let sent: Value = serde_json::from_str(line).unwrap();
        let now = sent["body"]["messages"].as_array().unwrap().clone();
        let is_memory = |messages: &[Value]| messages[0].to_string().contains("session_memory");
        if !now.starts_with(&before) && !before.starts_with(&now) {
            begun += 1;
            assert!(is_memory(&now), "a prefix changed without a memory");
        }
        before = now;
    }
    assert!((3..=epoch + 1).contains(&begun), "{begun} of {epoch}");
    proxy.kill();
    let listed = command(&["sessions", "list", "--json"])
        .envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, home.path())))
        .output()
        .unwrap();
    let listed: Value = serde_json::from_str(stdout(&listed)).unwrap();
    assert_eq!(listed["total"], 1, "{listed}");
    let stored = listed["sessions"][0]["messages"].as_u64().unwrap();
    assert!(
        stored as usize + 2 >= messages.len(),
        "{stored} of {}",
        messages.len()
    );
}

#[test]
fn a_killed_proxy_loses_nothing_and_keeps_the_prefix() {
    killed(8);
}

#[test]
#[ignore = "takes minutes"]
fn two_hundred_kills() {
    killed(200);
}

/// The files of a closed database: with no log beside it.
fn is_closed(data: &Path) -> bool {
    let is_there = |name: &str| data.join(name).exists();
    is_there("sessions.db") && !is_there("sessions.db-wal") && !is_there("sessions.db-shm")
}

#[test]
fn the_database_is_closed_at_the_end() {
    let home = tempfile::tempdir().unwrap();
    let simulator = Running::start(&[]);
    let data = home.path().join("data");
    let folder = data.to_str().unwrap();
    let proxy = Proxied::start(home.path(), &simulator.address, &["--data", folder]);
    let (head, _) = ask(&proxy.address, &body(&[said(1)])).unwrap();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    proxy.end();
    assert!(is_closed(&data));
    for program in ["true", "/nowhere/to/be/found"] {
        command(&["run", "--data", folder, "--", program])
            .envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, home.path())))
            .output()
            .unwrap();
        assert!(is_closed(&data), "{program}");
    }
}

#[test]
fn sessions_are_kept_as_the_settings_say() {
    let home = tempfile::tempdir().unwrap();
    let simulator = Running::start(&[]);
    let as_at_home = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, home.path())));
        command.output().unwrap()
    };
    let set = as_at_home(&["config", "set", "store", "files"]);
    assert!(set.status.success(), "{}", stderr(&set));
    let proxy = Proxied::start(home.path(), &simulator.address, &[]);
    ask(&proxy.address, &body(&[said(1)])).unwrap();
    proxy.end();
    let listed = as_at_home(&["sessions", "list", "--json"]);
    let listed: Value = serde_json::from_str(stdout(&listed)).unwrap();
    assert_eq!(listed["total"], 1, "{listed}");
}

#[test]
fn each_request_is_a_line_of_the_log_with_nothing_that_was_said() {
    let home = tempfile::tempdir().unwrap();
    let simulator = Running::start(&[]);
    let logged = |arguments: &[&str]| {
        let proxy = Proxied::start(home.path(), &simulator.address, arguments);
        let body = body(&[said(1)]);
        let (head, _) = ask(&proxy.address, &body).unwrap();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        proxy.end()
    };
    let text = logged(&["--log", "json"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_requests: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"] == "request")
        .collect();
    assert_eq!(of_requests.len(), 1, "{text}");
    let line = of_requests[0];
    for (name, expected) in [
        ("level", json!("INFO")),
        ("wire", json!("anthropic")),
        ("kind", json!("answer")),
        ("done", json!("tracked")),
        ("status", json!(200)),
        ("ended", json!("whole")),
    ] {
        assert_eq!(line[name], expected, "{name} of {text}");
    }
    assert!(
        !text.contains("item1") && !text.contains("x-api-key"),
        "{text}"
    );
    // Nothing has to be known of a conversation for its requests to be told of.
    let text = logged(&["--log", "text", "--mode", "off"]);
    assert!(
        text.contains(" request wire=\"anthropic\" kind=\"answer\""),
        "{text}"
    );
    assert_eq!(
        logged(&["--log", "text", "--log-level", "warn", "--mode", "off"]),
        ""
    );
    assert_eq!(logged(&["--log", "off", "--mode", "off"]), "");
}
