//! `throughline sessions import`: a session of another program is continued here.

use std::sync::Arc;

use serde::Serialize;
use throughline::engine::CompactionOutcome;
use throughline::{OpenError, Session, SessionError};
use throughline_formats::convert::{self, Loss};
use throughline_transcript::body::{list_name, read_message};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Block, Content};
use throughline_transcript::request::{Caching, Frame, MemoryPlace};
use throughline_transcript::wire::Wire;

use crate::arguments::sessions as arguments;
use crate::config::Config;
use crate::convert::tell_losses;
use crate::error::{Failure, Kind};
use crate::output::Console;
use crate::progress::Progress;
use crate::{connect, selection, storage, words};

/// Titles of sources can be whole messages.
const TITLE_CHARACTERS: usize = 80;
/// How many blocks further on the time of a converted message is looked for. A conversion leaves out only some.
const BLOCKS_SEARCHED_MAX: usize = 64;

pub(super) async fn run(
    arguments: &arguments::Import,
    config: &Config,
    console: &Console,
) -> Result<(), Failure> {
    let progress = Progress::new(console);
    let (source, input) = selection::read(&arguments.source, console, &progress)?;
    let wanted = arguments.session.as_deref();
    let conversation = selection::choose_begun(&source, &input, wanted, console)?;
    let model = conversation.model.as_deref();
    let connection = connect::unconnected(&arguments.wanted, config, model)?;
    let wire = connection.client.wire();
    let answer_tokens = connection.answer_tokens();
    progress.working("converting", input.text.text.len());
    let converted = ConvertedSession::of(conversation, wire, &connection.model)?;
    progress.finish();
    tell_losses(&converted.losses, console);

    let (id, status, memory) = storage::using(config, async |store| {
        let mut builder = Session::builder(connection.client, connection.model)
            .catalogue(connection.catalogue)
            .store(Arc::clone(store))
            .title(match &arguments.title {
                Some(title) => title.clone(),
                None => words::title(conversation, TITLE_CHARACTERS),
            })
            .system(match config.system_prompt()? {
                Some(system) => system,
                None => converted.system,
            })
            .history(converted.messages)
            .history_times(converted.times);
        if let Some(window) = connection.window {
            builder = builder.window(window);
        }
        if let Some(tokens) = answer_tokens {
            builder = builder.max_tokens(tokens);
        }
        let session = config.apply(builder).start().await.map_err(not_begun)?;
        let memory = match arguments.no_memory {
            true => None,
            false => Some(session.compact(None).await.map_err(not_compacted)?),
        };
        // The final state of the session is known once nothing of it runs any more.
        session.close().await.map_err(not_compacted)?;
        Ok((session.id().to_string(), session.status(), memory))
    })
    .await?;
    let imported = ImportReport {
        schema: "throughline.import/1",
        id,
        messages: status.messages,
        memory_version: status.version,
        covers: status.cover,
        tokens: status.tokens,
    };
    tell(&imported, memory.as_ref(), arguments.json, console)
}

/// The result.
#[derive(Serialize)]
struct ImportReport {
    schema: &'static str,
    id: String,
    messages: usize,
    memory_version: Option<u32>,
    /// Messages that the memory covers.
    covers: usize,
    /// Tokens of the next request, about.
    tokens: u64,
}

fn tell(
    imported: &ImportReport,
    memory: Option<&CompactionOutcome>,
    is_json: bool,
    console: &Console,
) -> Result<(), Failure> {
    if is_json {
        console.print_json(imported)?;
    } else {
        console.print(&format!("{}\n", imported.id))?;
    }
    let messages = words::counted(imported.messages, "message");
    console.note(&match (memory, imported.memory_version) {
        (_, Some(_)) => format!(
            "{messages}; a memory represents the first {}",
            words::number(imported.covers as u64)
        ),
        (Some(CompactionOutcome::Refused { reason }), None) => {
            format!("{messages}; no memory is needed yet: {reason}")
        }
        _ => format!("{messages}; a memory is made when it is needed"),
    });
    console.hint(&format!(
        "continue with: throughline chat --resume {}",
        imported.id
    ));
    Ok(())
}

/// The conversation in the form of the wire.
struct ConvertedSession {
    messages: Vec<Raw>,
    /// When each of them was said, milliseconds since 1970 UTC.
    times: Vec<Option<i64>>,
    system: String,
    losses: Vec<Loss>,
}

impl ConvertedSession {
    fn of(conversation: &Conversation, wire: Wire, model: &str) -> Result<Self, Failure> {
        let options = convert::Options {
            model: Some(model.to_owned()),
            // Both are bound to the account, and thinking to the request, in which they were made.
            drop_thinking: true,
            drop_sealed: true,
            ..convert::Options::default()
        };
        let converted = convert::convert(conversation, wire, &options);
        let bug = || Failure::new(Kind::Bug, "the converted conversation cannot be read back");
        let body = Raw::parse(converted.body).map_err(|_| bug())?;
        let frame = Frame::read(wire, &body, Caching::Off, MemoryPlace::FirstUserMessage)
            .map_err(|_| bug())?;
        let list = body.field(list_name(wire)).ok_or_else(bug)?;
        let mut messages: Vec<Raw> = list.array().collect();
        if wire == Wire::OpenAiChat && messages.first().is_some_and(is_system) {
            messages.remove(0);
        }
        let mut losses = converted.losses;
        if losses.iter().any(|loss| loss.code == "last-message") {
            // A request ends with the user. A session continues with what the user says next.
            messages.pop();
        }
        // Tools are not taken over: those of the session are for its program to offer.
        losses.retain(|loss| !matches!(loss.code, "last-message" | "tool-made"));
        Ok(Self {
            times: times(conversation, &messages),
            messages,
            system: frame.settings().system.clone(),
            losses,
        })
    }
}

/// When each of the converted messages was said. A conversion joins and parts messages, so they are found by what is in
/// them: the first of their blocks that follows in the conversation.
fn times(conversation: &Conversation, converted: &[Raw]) -> Vec<Option<i64>> {
    let blocks: Vec<(&Block, Option<i64>)> = conversation
        .messages
        .iter()
        .flat_map(|message| message.blocks.iter().map(|block| (block, message.at_ms)))
        .collect();
    let mut next = 0;
    let mut last = None;
    converted
        .iter()
        .map(|raw| {
            let mut first = None;
            for block in read_message(raw)
                .map(|message| message.blocks)
                .unwrap_or_default()
            {
                let mut following = blocks.iter().skip(next).take(BLOCKS_SEARCHED_MAX);
                if let Some(offset) = following.position(|(other, _)| is_same(&block, other)) {
                    first = first.or(blocks[next + offset].1);
                    next += offset + 1;
                }
            }
            last = first.or(last);
            last
        })
        .collect()
}

fn is_same(one: &Block, other: &Block) -> bool {
    match (&one.content, &other.content) {
        (Content::Text(one), Content::Text(other)) => one.decode() == other.decode(),
        (Content::ToolCall(one), Content::ToolCall(other)) => one.id == other.id,
        (Content::ToolResult(one), Content::ToolResult(other)) => one.call_id == other.call_id,
        _ => false,
    }
}

fn is_system(message: &Raw) -> bool {
    let role = message.string_field("role");
    matches!(role.as_deref(), Some("system" | "developer"))
}

fn not_begun(error: OpenError) -> Failure {
    match error {
        OpenError::Store(error) => storage::failure(error),
        OpenError::History { finding } => Failure::new(
            Kind::NothingToDo,
            format!("the provider would refuse these messages: {finding}"),
        )
        .hint("if `throughline convert` and `throughline check` say so too, fix the source; otherwise this is a bug in throughline, please report it"),
        error => Failure::new(Kind::Input, error.to_string()),
    }
}

fn not_compacted(error: SessionError) -> Failure {
    match error {
        SessionError::Store(error) => Failure::new(Kind::Output, error.to_string()),
        error => Failure::new(Kind::Bug, error.to_string()),
    }
}
