//! Commands.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use throughline_transcript::text::head_and_tail;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::root::Root;
use crate::agent::approval::Approval;
use crate::agent::tool::{CallContext, Tool, ToolError};

/// How long a command may take by default, in seconds.
const TIMEOUT_S: u64 = 120;
/// How long a command may take at most; seconds.
const TIMEOUT_S_MAX: u64 = 600;
/// Above the command's own limit, so that it is this one that ends it.
const TIMEOUT_SLACK: Duration = Duration::from_secs(10);
/// How long is waited for the last output of what a command has left running.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// Of the output this much is kept of its beginning, and the same of its end; bytes.
const OUTPUT_HALF_BYTES_MAX: usize = 512 * 1024;
/// Of a command in a summary; bytes.
const SUMMARY_BYTES_MAX: usize = 4_000;
/// Variables with keys of the session's own, which no command of the model's has to see.
const KEYS: [&str; 3] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
];

/// The tool `run_command`.
#[derive(Clone, Debug)]
pub struct RunCommand {
    root: Root,
}

/// Runs commands of a shell, with the root as their folder. Needs approval: a command can do whatever the process may do,
/// outside of the root too.
#[must_use]
pub fn run_command(root: &Root) -> RunCommand {
    RunCommand { root: root.clone() }
}

/// What is to be run.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct CommandInput {
    /// The command line, for the shell.
    command: String,
    /// Seconds after which it is stopped; 120 unless said otherwise, at most 600.
    timeout_s: Option<u64>,
}

impl CommandInput {
    fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout_s.unwrap_or(TIMEOUT_S).clamp(1, TIMEOUT_S_MAX))
    }
}

impl Tool for RunCommand {
    type Input = CommandInput;

    fn name(&self) -> &str {
        "run_command"
    }

    fn description(&self) -> &str {
        "Runs a command line in the working folder and gives its output, both streams in order. It has no input and no \
         terminal. What it leaves running in the background is ended with it."
    }

    fn approval(&self, input: &CommandInput) -> Approval {
        // The person who approves it has to see all of it: only the middle of a very long one is left out.
        let line = input.command.trim().replace('\n', "\\n");
        Approval::Needed {
            summary: format!("run: {}", head_and_tail(&line, SUMMARY_BYTES_MAX)),
        }
    }

    fn timeout(&self, input: &CommandInput) -> Option<Duration> {
        Some(input.limit() + TIMEOUT_SLACK)
    }

    async fn call(&self, input: CommandInput, _: CallContext) -> Result<String, ToolError> {
        let limit = input.limit();
        let mut running = RunningCommand::start(&self.root, &input.command)?;
        let mut output = Output::default();
        let ended = tokio::time::timeout(limit, running.end(&mut output)).await;
        drop(running);
        let mut text = output.into_text();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        match ended {
            Ok(Ok(status)) if status.success() => Ok(text),
            Ok(Ok(status)) => Err(ToolError::new(match status.code() {
                Some(code) => format!("{text}Exit code: {code}"),
                None => format!("{text}Ended by the system: {status}"),
            })),
            Ok(Err(error)) => Err(ToolError::new(format!("{text}{error}"))),
            Err(_) => Err(ToolError::new(format!(
                "{text}Stopped after {} s, with everything that it had started",
                limit.as_secs()
            ))),
        }
    }
}

/// A command that runs. Dropping it ends it, and everything that it has started.
struct RunningCommand {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl RunningCommand {
    fn start(root: &Root, line: &str) -> Result<Self, ToolError> {
        let mut command = shell(line);
        command
            .current_dir(root.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env("NO_COLOR", "1")
            .env("TERM", "dumb")
            .env("PAGER", "cat")
            .env("GIT_PAGER", "cat")
            .env("GIT_TERMINAL_PROMPT", "0")
            .kill_on_drop(true);
        for key in KEYS {
            command.env_remove(key);
        }
        // A group of its own, so that it can be ended with everything in it.
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn()?;
        Ok(Self {
            #[cfg(unix)]
            group: child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(rustix::process::Pid::from_raw),
            child,
        })
    }

    async fn end(&mut self, output: &mut Output) -> std::io::Result<ExitStatus> {
        let Some(mut stream) = self.child.stdout.take() else {
            return self.child.wait().await;
        };
        let mut buffer = vec![0; 16 * 1024];
        let mut until = None;
        loop {
            tokio::select! {
                read = stream.read(&mut buffer) => match read? {
                    0 => break,
                    read => output.push(&buffer[..read]),
                },
                _ = self.child.wait(), if until.is_none() => {
                    // What it has left running may hold the stream open for ever.
                    until = Some(Instant::now() + LAST_OUTPUT);
                }
                () = sleep_until(until), if until.is_some() => break,
            }
        }
        self.child.wait().await
    }
}

#[cfg(unix)]
impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // It fails where nothing of the group is left.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// The shell with a command line, both streams in one.
#[cfg(unix)]
fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    // On a line of its own, so that the shell's messages about the next ones are seen too.
    command.arg("-c").arg(format!("exec 2>&1\n{line}"));
    command
}

/// The shell with a command line, both streams in one.
#[cfg(not(unix))]
fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd");
    command.arg("/C").arg(format!("({line}) 2>&1"));
    command
}

/// Beginning and end of an output.
#[derive(Default)]
struct Output {
    start: Vec<u8>,
    end: VecDeque<u8>,
    omitted: usize,
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        let room = OUTPUT_HALF_BYTES_MAX - self.start.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.start.extend_from_slice(first);
        self.end.extend(rest);
        let over = self.end.len().saturating_sub(OUTPUT_HALF_BYTES_MAX);
        self.end.drain(..over);
        self.omitted += over;
    }

    fn into_text(mut self) -> String {
        if self.omitted == 0 {
            self.start.extend(self.end);
            return String::from_utf8_lossy(&self.start).into_owned();
        }
        let end: Vec<u8> = self.end.into();
        format!(
            "{}\n[... {} bytes were left out and are not kept ...]\n{}",
            String::from_utf8_lossy(&self.start),
            self.omitted,
            String::from_utf8_lossy(&end)
        )
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
