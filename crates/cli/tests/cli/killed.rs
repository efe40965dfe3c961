//! A chat that is killed again and again: nothing that was said is lost, and it continues with the same bytes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::Value;

use crate::command;
use crate::simulate::Running;

/// Messages of the script.
const LINES: usize = 40;
const MODEL: &str = "claude-opus-4-6";

fn line(number: usize) -> String {
    let padding = "it is used wherever the importer looks things up ".repeat(12);
    format!(
        "Remember: the item{number} is value-{number}-x. By the way, {padding}in part {number}."
    )
}

/// A chat in a process of its own.
struct Chat {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Chat {
    fn start(home: &Path, address: &str, arguments: &[&str]) -> Self {
        let url = format!("http://{address}");
        let mut all = vec![
            "chat",
            "--model",
            MODEL,
            "--base-url",
            &url,
            "--window",
            "20000",
        ];
        all.extend(arguments);
        let mut child = command(&all)
            .envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, home)))
            .env("ANTHROPIC_API_KEY", "any")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn say(&mut self, line: &str) {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    /// What the session holds: who said what.
    fn messages(&mut self, file: &Path) -> Vec<(String, String)> {
        // What is there already is not written over.
        let _ = std::fs::remove_file(file);
        self.say(&format!("/save {}", file.display()));
        // What this prints says that the file is there.
        self.say("/model");
        let mut said = String::new();
        while !said.contains("prompts of up to") {
            said.clear();
            assert!(
                self.output.read_line(&mut said).unwrap() > 0,
                "it has ended"
            );
        }
        let text = std::fs::read_to_string(file).unwrap();
        text.lines()
            .map(|line| {
                let message: Value = serde_json::from_str(line).unwrap();
                (
                    message["role"].as_str().unwrap().to_owned(),
                    text_of(&message["content"]),
                )
            })
            .collect()
    }

    /// Reads so much of what is answered.
    fn read(&mut self, bytes: usize) {
        let mut read = vec![0; bytes];
        self.output.read_exact(&mut read).unwrap();
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// Numbers that look as if they came by chance, always the same ones.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

fn chat_with_kills(kills: usize, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("bodies.jsonl");
    let provider = Running::start(&["--record", record.to_str().unwrap()]);
    let mut dice = Dice(seed);
    let mut begun = false;
    for kill in 0..=kills {
        let arguments: &[&str] = if begun { &["--continue"] } else { &[] };
        let mut chat = Chat::start(folder.path(), &provider.address, arguments);
        let mut said = Vec::new();
        if begun {
            said = chat.messages(&folder.path().join(format!("{kill}.jsonl")));
            check(&said, &record);
        }
        let answered = said.iter().filter(|(role, _)| role == "assistant").count();
        let next = said.len() - answered;
        if next > answered {
            chat.say("/retry");
        }
        if kill == kills {
            chat.say("What is the item0?");
            drop(chat.input);
            let mut text = String::new();
            chat.output.read_to_string(&mut text).unwrap();
            assert!(text.ends_with("The item0 is value-0-x.\n"), "{text}");
            assert!(chat.child.wait().unwrap().success());
            break;
        }
        // A few more lines, and then the end at some byte of what is answered.
        let lines = 1 + dice.below(3);
        let is_open = next > answered;
        for number in next..next + lines {
            chat.say(&line(number % LINES));
        }
        // No answer has fewer bytes.
        let bytes = dice.below(80 * (lines + usize::from(is_open)));
        begun |= bytes > 0;
        chat.read(bytes);
        chat.kill();
        begun |= std::fs::read_to_string(&record).is_ok_and(|text| !text.is_empty());
    }
    provider.end("-TERM");
    same_bytes(&record);
}

/// Everything that the provider was sent is there, in order, each once, and all but the last is answered.
fn check(said: &[(String, String)], record: &Path) {
    for (at, (role, text)) in said.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        assert_eq!(role, expected, "message {at}: {text}");
        if at % 2 == 0 {
            assert_eq!(*text, line(at / 2 % LINES), "message {at}");
        }
    }
    let sent = bodies(record)
        .into_iter()
        .map(|(last, _)| last)
        .rfind(|last| last.starts_with("Remember"));
    if let Some(sent) = sent {
        assert!(
            said.iter().any(|(_, text)| *text == sent),
            "sent and not stored: {sent}"
        );
    }
}

/// What was last said in each request, and its bytes.
fn bodies(record: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(record).unwrap_or_default();
    text.lines()
        .map(|line| {
            let (_, body) = line.split_once("\"body\":").unwrap();
            let request: Value = serde_json::from_str(line).unwrap();
            let messages = request["body"]["messages"].as_array().unwrap();
            let last = messages.last().map(|message| text_of(&message["content"]));
            (last.unwrap_or_default(), body.to_owned())
        })
        .collect()
}

/// A request that was made again after a kill has the bytes that it had before.
fn same_bytes(record: &Path) {
    let mut known: HashMap<String, String> = HashMap::new();
    let mut repeated = 0;
    for (last, body) in bodies(record) {
        if !last.starts_with("Remember") {
            continue;
        }
        match known.get(&last) {
            Some(before) => {
                assert_eq!(*before, body);
                repeated += 1;
            }
            None => {
                known.insert(last, body);
            }
        }
    }
    assert!(repeated > 0, "no kill has hit an answer");
}

#[test]
fn five_kills_lose_nothing() {
    chat_with_kills(5, 7);
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_kills_lose_nothing() {
    chat_with_kills(100, 1);
}
