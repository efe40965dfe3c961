//! `throughline compact`: from a conversation to its memory.

use std::path::Path;
use std::time::Instant;

use throughline_formats::convert;
use throughline_formats::source::Source;
use throughline_memory::compact::{Form, RenderedMemory};
use throughline_memory::document::Memory;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::message::Message;
use throughline_transcript::wire::Wire;

use crate::arguments::{self, To};
use crate::convert::checked;
use crate::error::{Ending, Failure, Kind};
use crate::memory_maker::{MemoryMaker, Prior};
use crate::output::Console;
use crate::progress::Progress;
use crate::{files, model, output, selection, words};

pub(crate) fn run(arguments: &arguments::Compact, console: &Console) -> Result<Ending, Failure> {
    let started = Instant::now();
    output::check_place(arguments.output.as_deref())?;
    let file = arguments.model.catalogue.as_deref();
    let prior = match arguments.prior.as_deref() {
        Some(path) => Some(Prior {
            memory: prior(path, console)?,
            path,
        }),
        None => None,
    };
    let focus = arguments.focus.as_deref();
    let wanted = CompactionRequest {
        maker: MemoryMaker {
            counter: model::counter(&arguments.model, console)?,
            budget: arguments.budget,
            focus: focus.filter(|focus| !focus.trim().is_empty()),
            removes_secrets: !arguments.no_redact,
            prior,
        },
        catalogue: file.map(|path| model::catalogue(Some(path))).transpose()?,
        arguments,
    };
    if arguments.wire.is_some() && arguments.to != To::Request {
        console.warning("--wire says nothing without `--to request`");
    }
    let progress = Progress::new(console);
    let (source, input) = selection::read(&arguments.source, console, &progress)?;
    if let Some(folder) = &arguments.all {
        return all(&wanted, &source, &input.name, folder, console, &progress);
    }
    let session = arguments.session.as_deref();
    let advice = ", or write a file for each with --all DIR";
    let (_, conversation) = selection::choose(&source, &input.name, session, advice, console)?;
    progress.working("writing the memory", input.text.text.len());
    let made = wanted.make(conversation, source.format, console);
    progress.finish();
    let made = made.map_err(|failure| failure.at(&input.name))?;

    match &arguments.output {
        Some(path) => output::write(Some(path), &made.text)?,
        None if arguments.to == To::Markdown => console.print_markdown(&made.text)?,
        None => output::write(None, &made.text)?,
    }
    if console.is_stderr_terminal {
        console.summary(&format!(
            "{}, {} -> {} tokens ({}) in {}",
            words::counted(conversation.messages.len(), "message"),
            words::number(wanted.maker.counter.conversation(conversation).messages as u64),
            words::number(made.tokens as u64),
            model::unit(&arguments.model, &wanted.maker.counter),
            words::duration(started.elapsed()),
        ));
    }
    Ok(Ending::Done)
}

/// One file for each conversation.
fn all(
    wanted: &CompactionRequest<'_>,
    source: &Source,
    name: &str,
    folder: &Path,
    console: &Console,
    progress: &Progress,
) -> Result<Ending, Failure> {
    selection::folder(folder)?;
    let mut failures = Vec::new();
    let mut written = 0;
    let conversations = source
        .conversations
        .iter()
        .enumerate()
        .filter(|(_, conversation)| !conversation.messages.is_empty());
    for (index, conversation) in conversations {
        let path = folder.join(format!(
            "{}.{}",
            selection::file_stem(index + 1, conversation),
            wanted.ending()
        ));
        match wanted.make(conversation, source.format, console) {
            Ok(made) => {
                output::write(Some(&path), &made.text)?;
                written += 1;
            }
            Err(failure) => failures.push(failure.at(format!("conversation {}", index + 1))),
        }
    }
    progress.finish();
    for failure in &failures {
        console.warning(failure.message());
    }
    match failures.into_iter().next() {
        Some(first) if written == 0 => Err(first.at(name)),
        None if written == 0 => Err(Failure::new(
            Kind::NothingToDo,
            format!("{name}: there is no message in it"),
        )),
        _ => {
            let files = words::counted(written, "file");
            console.summary(&format!("{files} in {}", folder.display()));
            Ok(Ending::Done)
        }
    }
}

fn prior(path: &Path, console: &Console) -> Result<Memory, Failure> {
    let json = files::small_file(path)?;
    let reading = throughline_memory::json_form::read(&json).map_err(|error| {
        Failure::new(Kind::Input, error.to_string())
            .at(path.display())
            .hint(error.hint())
    })?;
    if let Some(first) = reading.unread.first() {
        console.warning(&format!(
            "{}: {} not understood and dropped, the first is `{first}`",
            path.display(),
            words::counted(reading.unread.len(), "field"),
        ));
    }
    Ok(reading.memory)
}

/// What was asked for, once it is known what it means.
struct CompactionRequest<'a> {
    maker: MemoryMaker<'a>,
    /// The user's; the embedded one without it, which is only read where it is needed.
    catalogue: Option<Catalogue>,
    arguments: &'a arguments::Compact,
}

/// A document, ready to be written.
struct CompactionOutput {
    text: String,
    /// Tokens of the memory in it, and of the tail if that is part of it.
    tokens: usize,
}

impl CompactionRequest<'_> {
    fn make(
        &self,
        conversation: &Conversation,
        format: &str,
        console: &Console,
    ) -> Result<CompactionOutput, Failure> {
        if conversation.messages.is_empty() {
            return Err(Failure::new(
                Kind::NothingToDo,
                "the conversation has no messages",
            ));
        }
        if self.arguments.to == To::Request {
            return self.request(conversation, format, console);
        }
        let messages = &conversation.messages;
        let covered = match self.arguments.keep_tail {
            Some(tail) => &messages[..self.maker.cut(messages, Some(tail))?.at],
            None => messages,
        };
        let compacted = self
            .maker
            .memory(covered, conversation, self.form(), console)?;
        self.tell_if_larger(covered, &compacted, console);
        Ok(CompactionOutput {
            text: compacted.text,
            tokens: compacted.tokens,
        })
    }

    /// The memory as a request body: memory and tail.
    fn request(
        &self,
        conversation: &Conversation,
        format: &str,
        console: &Console,
    ) -> Result<CompactionOutput, Failure> {
        let wire = match &self.arguments.wire {
            Some(name) => name.parse().ok(),
            None => format.parse().ok(),
        }
        .unwrap_or(Wire::Anthropic);
        let tail = self.arguments.keep_tail;
        let made = self.maker.memory_and_cut(conversation, tail, console)?;
        let name = self
            .arguments
            .model
            .model
            .as_deref()
            .or(conversation.model.as_deref());
        let known = name.and_then(|name| match &self.catalogue {
            Some(catalogue) => catalogue.find(name),
            None => Catalogue::embedded().find(name),
        });
        let options = convert::Options {
            model: self.arguments.model.model.clone(),
            drop_thinking: known
                .is_some_and(|model| model.abilities.binds_thinking_to_prefix == Some(true)),
            ..convert::Options::default()
        };
        let converted =
            convert::request_with_memory(conversation, &made.memory, made.cut, wire, &options);
        crate::convert::tell_losses(&converted.losses, console);
        let body = checked(converted.body, wire, known)?;
        Ok(CompactionOutput {
            text: body,
            tokens: made.tokens + self.maker.tokens(&conversation.messages[made.cut..]),
        })
    }

    /// A memory larger than what it represents is no gain. It is written anyway, since it was requested.
    fn tell_if_larger(&self, covered: &[Message], compacted: &RenderedMemory, console: &Console) {
        let mut tokens = 0;
        let is_larger = covered.iter().all(|message| {
            tokens += self.maker.counter.message(message);
            tokens <= compacted.tokens
        });
        if is_larger && self.maker.prior.is_none() && self.form() != Form::Json {
            console.note(&format!(
                "the memory ({} tokens) is no smaller than the conversation ({})",
                words::number(compacted.tokens as u64),
                words::number(tokens as u64)
            ));
        }
    }

    fn form(&self) -> Form {
        match self.arguments.to {
            To::Markdown => Form::Markdown,
            To::Json => Form::Json,
            To::Object => Form::Object,
            To::System => Form::System,
            To::UserMessage | To::Request => Form::UserMessage,
        }
    }

    /// Of the names of files.
    fn ending(&self) -> &'static str {
        match self.arguments.to {
            To::Markdown => "md",
            To::Json | To::Object | To::Request => "json",
            To::System | To::UserMessage => "txt",
        }
    }
}
