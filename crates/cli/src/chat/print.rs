//! `throughline chat --print`: one question, one answer.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use throughline::TurnAnswer;
use throughline::agent::{AgentEvent, AgentOutcome};
use throughline::futures::StreamExt;
use throughline::providers::reply::Event;
use throughline::store::Store;
use throughline::transcript::usage::Usage;

use super::talk::Talk;
use super::{interrupted, of_agent};
use crate::arguments::chat::Chat;
use crate::config::Config;
use crate::error::{Ending, Failure, Kind, reason};
use crate::output::Console;
use crate::terminal::harmless;

/// What is read from a pipe, bytes.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a memory that is being made is waited for, behind the answer.
const MEMORY_WAIT: Duration = Duration::from_secs(120);

pub(crate) async fn run(
    arguments: &Chat,
    config: &Config,
    store: &Arc<dyn Store>,
    text: &str,
    console: &Console,
) -> Result<Ending, Failure> {
    let question = question(text, console)?;
    let mut talk = Talk::begin(arguments, config, store, console, true).await?;
    let ending = ask(&mut talk, question, arguments, console).await;
    let closed = talk.close().await;
    let ending = ending?;
    closed?;
    Ok(ending)
}

async fn ask(
    talk: &mut Talk<'_>,
    question: String,
    arguments: &Chat,
    console: &Console,
) -> Result<Ending, Failure> {
    let agent = talk.agent(&question).await?;
    if arguments.show_id {
        console.note(&format!("session {}", agent.session().id()));
    }
    let mut turn = agent.send(question);
    let mut usage = None;
    let mut ends_line = true;
    let outcome = loop {
        let event = tokio::select! {
            biased;
            () = interrupted() => {
                drop(turn);
                return Ok(Ending::Interrupted);
            }
            event = turn.next() => event,
        };
        match event {
            Some(Ok(AgentEvent::Model(Event::Text(text)))) if !arguments.json => {
                if !text.is_empty() {
                    ends_line = text.ends_with('\n');
                    match console.is_stdout_terminal {
                        true => console.print(&harmless(&text))?,
                        false => console.print(&text)?,
                    }
                }
            }
            Some(Ok(AgentEvent::Answered(answer))) => {
                usage = answer.reply.usage.map(|usage| usage.last_pass);
                if !ends_line {
                    ends_line = true;
                    console.print("\n")?;
                }
            }
            Some(Ok(AgentEvent::Done(outcome))) => break outcome,
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(of_agent(error)),
            None => return Err(Failure::new(Kind::Bug, "the answer has no end")),
        }
    };
    if arguments.json {
        console.print_json(&Report::of(talk, &outcome, usage))?;
    }
    // Where each question has its own process, nothing else would ever end it.
    tokio::select! {
        () = talk.memory_made(MEMORY_WAIT) => {}
        () = interrupted() => {}
    }
    Ok(match outcome.as_ref() {
        AgentOutcome::Done(_) => Ending::Done,
        other => {
            console.warning(match name(other) {
                "cut-off" => "the answer was cut off: it reached the length limit",
                "declined" => "the model declined to answer",
                "step-limit" => "stopped: too many steps; --continue resumes",
                _ => "a call waits for an approval; --yes gives it",
            });
            Ending::Invalid
        }
    })
}

/// What was typed, and what comes from a pipe.
fn question(text: &str, console: &Console) -> Result<String, Failure> {
    let mut piped = Vec::new();
    if !console.is_stdin_terminal {
        let read = std::io::stdin()
            .lock()
            .take(INPUT_BYTES_MAX + 1)
            .read_to_end(&mut piped);
        read.map_err(|error| {
            Failure::new(
                Kind::Input,
                format!("cannot read standard input: {}", reason(&error)),
            )
        })?;
    }
    if piped.len() as u64 > INPUT_BYTES_MAX {
        return Err(
            Failure::new(Kind::Input, "the input from the pipe is too long to send")
                .hint("at most 16 MB; no model reads more"),
        );
    }
    let piped = String::from_utf8_lossy(&piped);
    let parts = [text.trim(), piped.trim_start_matches('\u{feff}').trim()];
    let question = parts
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>();
    if question.is_empty() {
        return Err(Failure::new(Kind::Arguments, "there is no question")
            .hint("throughline chat --print \"What is ...?\""));
    }
    Ok(question.join("\n\n"))
}

fn name(outcome: &AgentOutcome) -> &'static str {
    match outcome {
        AgentOutcome::Done(_) => "done",
        AgentOutcome::CutOff(_) => "cut-off",
        AgentOutcome::Declined { .. } => "declined",
        AgentOutcome::StepLimit { .. } => "step-limit",
        _ => "waits-for-approval",
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    session: String,
    model: String,
    text: String,
    outcome: &'static str,
    /// Tokens of the next request, estimated.
    tokens: u64,
    /// The largest prompt.
    limit: u64,
    messages: usize,
    usage: Option<UsageReport>,
    /// What the session has cost so far.
    cost_usd: f64,
}

#[derive(Serialize)]
struct UsageReport {
    uncached: u64,
    cache_write: u64,
    cache_read: u64,
    output: u64,
}

impl Report {
    fn of(talk: &Talk<'_>, outcome: &AgentOutcome, usage: Option<Usage>) -> Self {
        let session = talk.session();
        let status = session.map(|session| session.status());
        let costs = session.map(|session| session.costs()).unwrap_or_default();
        Self {
            schema: "throughline.answer/1",
            session: session
                .map(|session| session.id().to_string())
                .unwrap_or_default(),
            model: talk.connection.model.clone(),
            text: outcome.answer().map_or("", TurnAnswer::text).to_owned(),
            outcome: name(outcome),
            tokens: status.as_ref().map_or(0, |status| status.tokens),
            limit: status.as_ref().map_or(0, |status| status.limit),
            messages: status.as_ref().map_or(0, |status| status.messages),
            usage: usage.map(|usage| UsageReport {
                uncached: usage.uncached,
                cache_write: usage.cache_write,
                cache_read: usage.cache_read,
                output: usage.output,
            }),
            cost_usd: (costs.main.cost + costs.updates.cost).dollars(),
        }
    }
}
