//! `throughline convert`: a conversation as a request of another format, or as a session of a coding agent.

use std::env;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use throughline_formats::convert::{self, Agent, Loss, SessionFile, to_jsonl};
use throughline_transcript::catalogue::{Catalogue, Model};
use throughline_transcript::check::{CheckOptions, check_text};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::Raw;
use throughline_transcript::tokens::Counter;
use throughline_transcript::wire::Wire;
use uuid::Uuid;

use crate::arguments::{self, ConvertTo};
use crate::error::{Ending, Failure, Kind};
use crate::memory_maker::MemoryMaker;
use crate::output::Console;
use crate::progress::Progress;
use crate::{config, output, selection, words};

/// How many findings an error names.
const FINDINGS_SHOWN_MAX: usize = 5;

pub(crate) fn run(arguments: &arguments::Convert, console: &Console) -> Result<Ending, Failure> {
    output::check_place(arguments.output.as_deref())?;
    let progress = Progress::new(console);
    let (source, input) = selection::read(&arguments.source, console, &progress)?;
    let session = arguments.session.as_deref();
    let conversation = selection::choose_begun(&source, &input, session, console)?;
    if !matches!(arguments.to, ConvertTo::ClaudeCode | ConvertTo::Codex) {
        refuse_agents_options(arguments)?;
    }
    let wire = match arguments.to {
        ConvertTo::ClaudeCode => {
            return agent_session(arguments, Agent::ClaudeCode, conversation, console)
                .map_err(|failure| failure.at(&input.name));
        }
        ConvertTo::Codex => {
            return agent_session(arguments, Agent::Codex, conversation, console)
                .map_err(|failure| failure.at(&input.name));
        }
        ConvertTo::Anthropic => Wire::Anthropic,
        ConvertTo::OpenaiChat => Wire::OpenAiChat,
        ConvertTo::OpenaiResponses => Wire::OpenAiResponses,
        ConvertTo::Jsonl => {
            output::write(arguments.output.as_deref(), &to_jsonl(conversation))?;
            return Ok(Ending::Done);
        }
    };
    let options = convert::Options {
        model: arguments.model.clone(),
        ..convert::Options::default()
    };
    let converted = convert::convert(conversation, wire, &options);
    tell_losses(&converted.losses, console);
    let name = arguments.model.as_deref().or(conversation.model.as_deref());
    let known = name.and_then(|name| Catalogue::embedded().find(name));
    let body = checked(converted.body, wire, known).map_err(|failure| failure.at(&input.name))?;
    output::write(arguments.output.as_deref(), &body)?;
    Ok(Ending::Done)
}

fn refuse_agents_options(arguments: &arguments::Convert) -> Result<(), Failure> {
    let options = [
        ("--whole", arguments.whole),
        ("--install", arguments.install),
        ("--keep-tail", arguments.keep_tail.is_some()),
        ("--folder", arguments.folder.is_some()),
    ];
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(Failure::new(
            Kind::Arguments,
            format!("{name} is for `--to claude-code` and `--to codex`"),
        )
        .hint("for a smaller request: throughline compact --to request")),
        None => Ok(()),
    }
}

/// Writes a session file that a coding agent resumes.
fn agent_session(
    arguments: &arguments::Convert,
    agent: Agent,
    conversation: &Conversation,
    console: &Console,
) -> Result<Ending, Failure> {
    let folder = session_folder(arguments.folder.as_deref(), conversation)?;
    let options = convert::Options {
        model: arguments.model.clone(),
        // Reasoning and sealed items belong to the prefix and the account that made them.
        drop_thinking: true,
        drop_sealed: true,
        ends_with_answer: true,
        ..convert::Options::default()
    };
    let wire = agent.wire();
    let converted = if arguments.whole {
        convert::convert(conversation, wire, &options)
    } else {
        let maker = MemoryMaker {
            counter: Counter::reference(),
            budget: arguments.budget,
            focus: None,
            removes_secrets: true,
            prior: None,
        };
        let made = maker
            .memory_and_cut(conversation, arguments.keep_tail, console)
            .map_err(|failure| failure.hint("--whole writes every message and no memory"))?;
        convert::request_with_memory(conversation, &made.memory, made.cut, wire, &options)
    };
    // What the agent brings itself is no loss.
    let mut losses = converted.losses;
    losses.retain(|loss| {
        !matches!(
            loss.code,
            "model" | "system-moved" | "tool-made" | "settings"
        )
    });
    tell_losses(&losses, console);
    let body = checked(converted.body, wire, None)?;
    let body = Raw::parse(body).map_err(|error| Failure::new(Kind::Bug, error.to_string()))?;
    let id = Uuid::now_v7().to_string();
    let file = SessionFile {
        agent,
        id: &id,
        cwd: &folder,
        at_ms: Timestamp::now().as_millisecond(),
        begins_with_memory: !arguments.whole,
    };
    let text = file.write(&body);
    let resume = match agent {
        Agent::ClaudeCode => format!(
            "cd {} && claude --resume {id}",
            words::shell_quoted(&folder)
        ),
        Agent::Codex => format!("codex resume {id}"),
    };
    if !arguments.install {
        output::write(arguments.output.as_deref(), &text)?;
        console.hint(&format!(
            "to resume it, put it at {} in the agent's folder (or use --install), then: {resume}",
            file.path()
        ));
        return Ok(Ending::Done);
    }
    let (variable, below_home) = match agent {
        Agent::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
        Agent::Codex => ("CODEX_HOME", ".codex"),
    };
    let path = config::user_folder(variable, below_home)?.join(file.path());
    if let Some(parent) = path.parent() {
        selection::folder(parent)?;
    }
    output::write(Some(&path), &text)?;
    console.note(&format!("written to {}", path.display()));
    console.print(&format!("{resume}\n"))?;
    Ok(Ending::Done)
}

/// The absolute folder that the session works in.
fn session_folder(named: Option<&Path>, conversation: &Conversation) -> Result<String, Failure> {
    let folder = match (named, &conversation.cwd) {
        (Some(folder), _) => folder.canonicalize().map_err(|error| {
            Failure::new(Kind::Arguments, format!("{}: {error}", folder.display()))
                .hint("--folder names an existing folder")
        })?,
        (None, Some(cwd)) => PathBuf::from(cwd),
        (None, None) => env::current_dir().map_err(|error| {
            Failure::new(
                Kind::Input,
                format!("the current folder is unknown: {error}"),
            )
            .hint("name one with --folder")
        })?,
    };
    Ok(folder.to_string_lossy().into_owned())
}

/// Says what could not be carried over.
pub(crate) fn tell_losses(losses: &[Loss], console: &Console) {
    for loss in losses {
        let place = match (loss.code, loss.count) {
            ("model", _) => "--model".to_owned(),
            (_, 1) => format!("messages[{}]", loss.message),
            (_, count) => format!(
                "{} times, first in messages[{}]",
                words::number(count as u64),
                loss.message
            ),
        };
        console.note(&format!("{}: {} ({place})", loss.code, loss.text));
    }
}

/// The body with a newline, if a provider would take it.
pub(crate) fn checked(
    mut body: String,
    wire: Wire,
    known: Option<&Model>,
) -> Result<String, Failure> {
    let options = CheckOptions {
        model: known,
        ..CheckOptions::default()
    };
    let report = check_text(&body, wire, &options);
    if !report.is_valid() {
        let findings: Vec<String> = report
            .errors()
            .take(FINDINGS_SHOWN_MAX)
            .map(|finding| {
                format!(
                    "\n  {} at {}: {}",
                    finding.code,
                    place(&finding.path),
                    finding.message
                )
            })
            .collect();
        return Err(Failure::new(
            Kind::NothingToDo,
            format!("the request would be refused and is not written:{}", findings.concat()),
        )
        .hint("if the source has these faults itself (`throughline check` tells), fix them there; otherwise this is a bug in throughline, please report it"));
    }
    body.push('\n');
    Ok(body)
}

/// The path of a finding; the body as a whole has none.
pub(crate) fn place(path: &str) -> &str {
    if path.is_empty() { "the body" } else { path }
}
