//! `throughline compact`: from a conversation to its memory.

use std::path::Path;
use std::time::Instant;

use throughline_formats::convert;
use throughline_formats::source::Source;
use throughline_memory::compact::{CompactError, Form, Options, RenderedMemory, compact};
use throughline_memory::document::Memory;
use throughline_memory::redact::Redactor;
use throughline_memory::render::restoring;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::cut::{
    LatestRequest, Rules, Tail, cut_for_tail, cut_for_tail_by, latest_request,
};
use throughline_transcript::message::Message;
use throughline_transcript::tokens::Counter;
use throughline_transcript::wire::Wire;

use crate::arguments::{self, To};
use crate::convert::checked;
use crate::error::{Ending, Failure, Kind};
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

/// How memories are made.
pub(crate) struct MemoryMaker<'a> {
    pub(crate) counter: Counter,
    /// Cap of the memory, tokens.
    pub(crate) budget: usize,
    pub(crate) focus: Option<&'a str>,
    pub(crate) removes_secrets: bool,
    pub(crate) prior: Option<Prior<'a>>,
}

/// The memory to update, and the file that it is from.
pub(crate) struct Prior<'a> {
    memory: Memory,
    path: &'a Path,
}

/// A memory that replaces the first messages of a conversation.
pub(crate) struct MemoryAndCut {
    pub(crate) memory: String,
    /// Tokens of the memory.
    pub(crate) tokens: usize,
    /// Index of the first message that it does not cover.
    pub(crate) cut: usize,
}

/// A document, ready to be written.
struct CompactionOutput {
    text: String,
    /// Tokens of the memory in it, and of the tail if that is part of it.
    tokens: usize,
}

/// What the memory covers.
struct Cut {
    /// Index of the first message that it does not cover.
    at: usize,
    /// The latest request, word for word, if it is covered.
    quoted: Option<String>,
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

impl MemoryMaker<'_> {
    /// A memory for the start of a conversation, and where its tail begins: at `tail`, or at the latest request.
    pub(crate) fn memory_and_cut(
        &self,
        conversation: &Conversation,
        tail: Option<Tail>,
        console: &Console,
    ) -> Result<MemoryAndCut, Failure> {
        let messages = &conversation.messages;
        let cut = self.cut(messages, tail)?;
        let covered = &messages[..cut.at];
        let mut memory = self
            .memory(covered, conversation, Form::UserMessage, console)?
            .text;
        if let Some(request) = &cut.quoted {
            memory = restoring::with_latest_request(&memory, request);
        }
        let tokens = self.counter.text(&memory);
        let before: usize = self.tokens(covered);
        if tokens >= before {
            return Err(Failure::new(
                Kind::NothingToDo,
                format!(
                    "the request would not get smaller: the {} before the tail have {} tokens, their memory {}",
                    words::counted(cut.at, "message"),
                    words::number(before as u64),
                    words::number(tokens as u64)
                ),
            )
            .hint("send the conversation as it is, keep less of its end (--keep-tail), or use a smaller --budget"));
        }
        Ok(MemoryAndCut {
            memory,
            tokens,
            cut: cut.at,
        })
    }

    fn memory(
        &self,
        covered: &[Message],
        conversation: &Conversation,
        form: Form,
        console: &Console,
    ) -> Result<RenderedMemory, Failure> {
        let count = |text: &str| self.counter.text(text);
        let options = Options {
            form,
            focus: self.focus,
            redactor: self.removes_secrets.then(Redactor::embedded),
            prior: self.prior.as_ref().map(|prior| &prior.memory),
            cwd: conversation.cwd.as_deref(),
            ..Options::new(self.budget, &count)
        };
        let compacted = compact(covered, &options).map_err(|error| match error {
            CompactError::Empty => Failure::new(Kind::NothingToDo, error.to_string()),
            _ => Failure::new(Kind::Bug, error.to_string()),
        })?;
        if compacted.prior_fits == Some(false)
            && let Some(Prior { memory, path }) = &self.prior
        {
            console.warning(&format!(
                "{}: this memory covers {}, and they are not the first messages of this conversation; all messages \
                 were read",
                path.display(),
                words::counted(memory.cover.messages, "message"),
            ));
            console.hint("give the memory of the same session, or leave --prior out");
        }
        Ok(compacted)
    }

    /// Where the memory ends and the tail begins.
    fn cut(&self, messages: &[Message], tail: Option<Tail>) -> Result<Cut, Failure> {
        let tokens = |message: &Message| self.counter.message(message);
        let request = latest_request(messages);
        let at = match tail {
            Some(tail) => {
                let rules = Rules {
                    latest_request: LatestRequest::MayBeCovered,
                    ..Rules::default()
                };
                cut_for_tail_by(messages, rules, tail, tokens)
            }
            None => match cut_for_tail(messages, Tail::Messages(0), tokens) {
                // One request and a long run of tools: the run is cut, and the request quoted.
                0 => {
                    let rules = Rules {
                        latest_request: LatestRequest::MayBeCovered,
                        ..Rules::default()
                    };
                    cut_for_tail_by(messages, rules, Tail::Tokens(self.budget), tokens)
                }
                at => at,
            },
        };
        if at == 0 {
            let failure = Failure::new(
                Kind::NothingToDo,
                "there are no messages before the tail for a memory to cover",
            );
            return Err(failure.hint(match tail {
                Some(_) => "keep less of the end: a smaller --keep-tail",
                None => "the conversation is short, or calls at its beginning still run: send it as it is",
            }));
        }
        let quoted = request.filter(|request| *request < at).map(|request| {
            let length = messages[request..]
                .iter()
                .take_while(|message| message.begins_turn())
                .count();
            restoring::request_text(&messages[request..request + length])
        });
        Ok(Cut { at, quoted })
    }

    fn tokens(&self, messages: &[Message]) -> usize {
        messages
            .iter()
            .map(|message| self.counter.message(message))
            .sum()
    }
}
