//! `throughline simulate` as a process with a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Stdio};

use crate::{command, stderr};

/// Where a command says that it listens, and what it says behind that.
pub(crate) fn listening(output: &mut impl BufRead) -> (String, String) {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let rest = line.strip_prefix("listening on http://").unwrap();
    let (address, hint) = rest.split_once(' ').unwrap();
    (address.to_owned(), hint.to_owned())
}

pub(crate) struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) address: String,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut all = vec!["simulate", "--listen", "127.0.0.1:0", "--latency", "none"];
        all.extend(arguments);
        let mut child = command(&all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (address, hint) = listening(&mut output);
        assert_eq!(
            hint,
            format!(
                "(ANTHROPIC_BASE_URL=http://{address} OPENAI_BASE_URL=http://{address}/v1, any key)\n"
            )
        );
        Self {
            address,
            child,
            output,
        }
    }

    fn post(&self, path: &str, body: &str) -> String {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        write!(
            connection,
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\nanthropic-version: 2023-06-01\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a signal and waits for the end.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &id])
            .status();
        assert!(sent.unwrap().success());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), rest + stderr(&output))
    }
}

#[test]
fn it_answers_over_a_socket_and_ends_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("bodies.jsonl");
    let running = Running::start(&[
        "--window",
        "2k",
        "--seed",
        "3",
        "--faults",
        "529@2",
        "--record",
        record.to_str().unwrap(),
    ]);
    let body = r#"{"model":"claude-opus-5","max_tokens":300,
        "messages":[{"role":"user","content":"Remember: the port is 8431. What is the port?"}]}"#;
    let answer = running.post("/v1/messages", body);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("The port is 8431."), "{answer}");
    assert!(
        running
            .post("/v1/messages", body)
            .starts_with("HTTP/1.1 529")
    );
    let long = body.replace("port is 8431", &"long story ".repeat(2000));
    let answer = running.post("/v1/messages", &long);
    assert!(answer.contains("tokens > 2000 maximum"), "{answer}");
    let chat = r#"{"model":"gpt-5.4","messages":[{"role":"user","content":"hi"}]}"#;
    assert!(
        running
            .post("/v1/chat/completions", chat)
            .contains("chat.completion")
    );
    assert_eq!(running.end("-TERM"), (Some(0), String::new()));

    let recorded = std::fs::read_to_string(&record).unwrap();
    let lines: Vec<serde_json::Value> = recorded
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["body"]["max_tokens"], 300);
    assert!(!recorded.contains("Bearer"));
    let mode = std::fs::metadata(&record).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn interrupting_it_is_its_regular_end() {
    assert_eq!(Running::start(&[]).end("-INT"), (Some(0), String::new()));
}

#[test]
fn an_address_that_is_taken_is_said() {
    let running = Running::start(&[]);
    let output = command(&["simulate", "--listen", &running.address])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("cannot listen on"),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("port 0 takes a free one"));
    running.end("-TERM");
}

#[test]
fn names_of_this_machine_are_addresses_too() {
    let mut child = command(&["simulate", "--listen", "localhost:0", "--latency", "none"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("listening on http://"), "{line}");
}

#[test]
fn mistakes_are_told_with_what_helps() {
    let told = |arguments: &[&str]| {
        let output = command(&[&["simulate"], arguments].concat())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        stderr(&output).to_owned()
    };
    let faults = told(&["--faults", ","]);
    assert!(
        faults.contains("faults, character 1: a rule is missing"),
        "{faults}"
    );
    let catalogue = told(&["--catalogue", "/none.toml"]);
    assert!(catalogue.contains("hint: check the path\n"), "{catalogue}");
}

#[test]
fn a_recording_that_cannot_be_written_is_told_and_answers_go_on() {
    let running = Running::start(&["--record", "/dev/full"]);
    let body =
        r#"{"model":"claude-opus-5","max_tokens":300,"messages":[{"role":"user","content":"hi"}]}"#;
    for _ in 0..2 {
        let answer = running.post("/v1/messages", body);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
    let (code, told) = running.end("-TERM");
    assert_eq!(code, Some(4));
    assert_eq!(
        told,
        "warning: cannot write /dev/full: no space left on device; recording stops, answers continue\n\
         error: the recording in /dev/full is not complete\n"
    );
}
