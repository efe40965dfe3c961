//! Makes memories of conversations that were read from a file.

use std::path::Path;

use throughline_memory::compact::{CompactError, Form, Options, RenderedMemory, compact};
use throughline_memory::document::Memory;
use throughline_memory::redact::Redactor;
use throughline_memory::render::restoring;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::cut::{
    LatestRequest, Rules, Tail, cut_for_tail, cut_for_tail_by, latest_request,
};
use throughline_transcript::message::Message;
use throughline_transcript::tokens::Counter;

use crate::error::{Failure, Kind};
use crate::output::Console;
use crate::words;

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
    pub(crate) memory: Memory,
    pub(crate) path: &'a Path,
}

/// A memory that replaces the first messages of a conversation.
pub(crate) struct MemoryAndCut {
    pub(crate) memory: String,
    /// Tokens of the memory.
    pub(crate) tokens: usize,
    /// Index of the first message that it does not cover.
    pub(crate) cut: usize,
}

/// What the memory covers.
pub(crate) struct Cut {
    /// Index of the first message that it does not cover.
    pub(crate) at: usize,
    /// The latest request, word for word, if it is covered.
    pub(crate) quoted: Option<String>,
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

    pub(crate) fn memory(
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
    pub(crate) fn cut(&self, messages: &[Message], tail: Option<Tail>) -> Result<Cut, Failure> {
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

    pub(crate) fn tokens(&self, messages: &[Message]) -> usize {
        messages
            .iter()
            .map(|message| self.counter.message(message))
            .sum()
    }
}
