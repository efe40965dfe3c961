//! What is in a session: the schema `throughline.inspect/1`, described in the help of the command.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use throughline_formats::source;
use throughline_memory::cues::{Outcome, OutputKind, headline_error, output_lines};
use throughline_memory::redact::Redactor;
use throughline_transcript::check::{CheckOptions, check};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::cut::legal_cuts;
use throughline_transcript::message::{
    Author, Block, Content, Message, Role, ToolInput, ToolResult,
};
use throughline_transcript::tokens::Counter;
use throughline_transcript::wire::Wire;

use super::pairs;
use crate::words;

const LARGEST_MAX: usize = 10;
const ERRORS_MAX: usize = 20;
const PROBLEMS_MAX: usize = 100;
const PREVIEW_CHARACTERS: usize = 60;
const ERROR_CHARACTERS: usize = 160;

/// Lines that score less are not clear enough to be counted as errors.
const ERROR_SCORE_MIN: u8 = 70;

#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) schema: &'static str,
    pub(super) file: &'a str,
    pub(super) format: &'static str,
    /// Of the text, unpacked.
    pub(super) bytes: usize,
    /// What tokens are counted.
    pub(super) counted_in: String,
    pub(super) skipped: Vec<SkippedRow<'a>>,
    pub(super) sessions: Vec<Session>,
}

#[derive(Serialize)]
pub(super) struct SkippedRow<'a> {
    line: usize,
    bytes: usize,
    reason: &'a str,
}

impl<'a> SkippedRow<'a> {
    pub(super) fn of(skipped: &'a source::SkippedPart) -> Self {
        Self {
            line: skipped.line,
            bytes: skipped.bytes,
            reason: &skipped.reason,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Session {
    /// Counted from 1; what `--session` takes.
    pub(super) number: usize,
    pub(super) id: String,
    pub(super) parent_id: Option<String>,
    pub(super) title: String,
    pub(super) model: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) messages: usize,
    pub(super) turns: usize,
    pub(super) steps: usize,
    /// RFC 3339, UTC.
    pub(super) first_at: Option<String>,
    pub(super) last_at: Option<String>,
    pub(super) tokens: Tokens,
    pub(super) usage: Usage,
    pub(super) largest_blocks: Vec<LargeBlock>,
    pub(super) tool_calls: Vec<Tool>,
    pub(super) errors: Errors,
    pub(super) problems: Vec<Problem>,
    pub(super) compactions: Vec<Compaction>,
    /// Places where a memory could end, the beginning not counted.
    pub(super) legal_cuts: usize,
}

#[derive(Default, Serialize)]
pub(super) struct Tokens {
    pub(super) total: usize,
    /// Of the system prompt.
    pub(super) system: usize,
    /// Of the tool definitions.
    pub(super) tools: usize,
    pub(super) messages: usize,
    /// `user`, `assistant`, `tool`, `client`, `compaction`, `system`. Results count as the tool's, whatever role they
    /// came in.
    pub(super) by_speaker: BTreeMap<&'static str, usize>,
    pub(super) by_kind: BTreeMap<&'static str, usize>,
}

/// What the provider reported, where the source has it.
#[derive(Default, Serialize)]
pub(super) struct Usage {
    pub(super) calls: usize,
    /// Largest prompt of a call, tokens.
    pub(super) prompt_max: u64,
    /// Prompt of the last call, tokens.
    pub(super) prompt_last: u64,
    pub(super) output: u64,
}

#[derive(Serialize)]
pub(super) struct LargeBlock {
    pub(super) tokens: usize,
    /// Index, counted from 0 as in all reports.
    pub(super) message: usize,
    pub(super) line: usize,
    pub(super) speaker: &'static str,
    pub(super) kind: &'static str,
    pub(super) tool: Option<String>,
    pub(super) start: String,
}

#[derive(Serialize)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) calls: usize,
    pub(super) failed: usize,
    /// Of its results.
    pub(super) tokens: usize,
}

#[derive(Default, Serialize)]
pub(super) struct Errors {
    /// Lines of tool output that are error messages.
    pub(super) total: usize,
    pub(super) lines: Vec<ErrorLine>,
}

#[derive(Serialize)]
pub(super) struct ErrorLine {
    /// Of the first time.
    pub(super) message: usize,
    pub(super) line: usize,
    pub(super) tool: String,
    pub(super) count: usize,
    pub(super) text: String,
}

#[derive(Serialize)]
pub(super) struct Problem {
    pub(super) code: Cow<'static, str>,
    pub(super) message: Option<usize>,
    pub(super) text: String,
}

#[derive(Serialize)]
pub(super) struct Compaction {
    pub(super) before_message: usize,
    pub(super) tokens_before: Option<u64>,
    pub(super) trigger: Option<String>,
}

impl Session {
    pub(super) fn of(number: usize, conversation: &Conversation, counter: &Counter) -> Self {
        let messages = &conversation.messages;
        let mut walk = Walk::new(conversation, counter);
        for (index, message) in messages.iter().enumerate() {
            walk.message(index, message);
        }
        let times = || messages.iter().filter_map(|message| message.at_ms);
        Self {
            number,
            id: redacted(&conversation.id),
            parent_id: conversation.parent_id.clone(),
            title: redacted(&words::title(conversation, 100)),
            model: conversation.model.clone(),
            cwd: conversation.cwd.as_deref().map(redacted),
            messages: messages.len(),
            turns: messages
                .iter()
                .filter(|message| message.begins_turn())
                .count(),
            steps: messages
                .iter()
                .filter(|message| message.role == Role::Assistant && message.author == Author::Role)
                .count(),
            first_at: times().min().and_then(words::rfc3339),
            last_at: times().max().and_then(words::rfc3339),
            tokens: walk.tokens,
            usage: walk.usage,
            largest_blocks: walk.largest,
            tool_calls: sorted(walk.tools),
            errors: walk.errors,
            problems: problems(conversation),
            compactions: conversation
                .compactions
                .iter()
                .map(|mark| Compaction {
                    before_message: mark.before_message,
                    tokens_before: mark.tokens_before,
                    trigger: mark.trigger.clone(),
                })
                .collect(),
            legal_cuts: legal_cuts(messages).len().saturating_sub(1),
        }
    }
}

/// One walk over the messages.
struct Walk<'a> {
    counter: &'a Counter,
    tokens: Tokens,
    usage: Usage,
    largest: Vec<LargeBlock>,
    tools: HashMap<String, Tool>,
    /// Which tool a call was of.
    tool_of: HashMap<&'a str, &'a str>,
    errors: Errors,
    /// The index of an error in the list.
    known_errors: HashMap<String, usize>,
}

impl<'a> Walk<'a> {
    fn new(conversation: &Conversation, counter: &'a Counter) -> Self {
        let mut tokens = Tokens {
            system: counter.system(&conversation.system),
            tools: conversation
                .tools
                .as_ref()
                .map_or(0, |tools| counter.tools(tools)),
            ..Tokens::default()
        };
        tokens.total = tokens.system + tokens.tools;
        Self {
            counter,
            tokens,
            usage: Usage::default(),
            largest: Vec::new(),
            tools: HashMap::new(),
            tool_of: HashMap::new(),
            errors: Errors::default(),
            known_errors: HashMap::new(),
        }
    }

    fn message(&mut self, index: usize, message: &'a Message) {
        let mut rest = self.counter.message(message);
        self.tokens.messages += rest;
        self.tokens.total += rest;
        if let Some(usage) = &message.usage {
            self.usage.calls += 1;
            self.usage.prompt_last = usage.prompt();
            self.usage.prompt_max = self.usage.prompt_max.max(usage.prompt());
            self.usage.output += usage.output;
        }
        for block in &message.blocks {
            let tokens = self.counter.block(block);
            rest = rest.saturating_sub(tokens);
            let speaker = speaker(message, &block.content);
            let kind = kind(&block.content);
            *self.tokens.by_speaker.entry(speaker).or_default() += tokens;
            *self.tokens.by_kind.entry(kind).or_default() += tokens;
            let tool = match &block.content {
                Content::ToolCall(call) => {
                    self.tool_of.insert(&call.id, &call.name);
                    self.tool(&call.name).calls += 1;
                    Some(call.name.to_string())
                }
                Content::ToolResult(result) => Some(self.result(index, message, result, tokens)),
                _ => None,
            };
            self.consider(
                LargeBlock {
                    tokens,
                    message: index,
                    line: message.position.line,
                    speaker,
                    kind,
                    tool,
                    start: String::new(),
                },
                block,
            );
        }
        // What is around the blocks.
        *self
            .tokens
            .by_speaker
            .entry(speaker(message, &Content::Compaction(None)))
            .or_default() += rest;
        *self.tokens.by_kind.entry("overhead").or_default() += rest;
    }

    fn tool(&mut self, name: &str) -> &mut Tool {
        self.tools.entry(name.to_owned()).or_insert_with(|| Tool {
            name: name.to_owned(),
            calls: 0,
            failed: 0,
            tokens: 0,
        })
    }

    /// Counts a result and its errors; gives the name of the tool.
    fn result(
        &mut self,
        index: usize,
        message: &Message,
        result: &ToolResult,
        tokens: usize,
    ) -> String {
        let name = self
            .tool_of
            .get(&*result.call_id)
            .copied()
            .unwrap_or("?")
            .to_owned();
        let tool = self.tool(&name);
        tool.tokens += tokens;
        let outcome = match result.is_error {
            Some(true) => {
                tool.failed += 1;
                Outcome::Failed
            }
            Some(false) => Outcome::Succeeded,
            None => Outcome::Unknown,
        };
        for text in result.texts() {
            let text = text.decode();
            let clear = output_lines(&text, outcome)
                .filter(|line| line.kind == OutputKind::Error && line.score >= ERROR_SCORE_MIN)
                .count();
            self.errors.total += clear;
            if let Some(error) = headline_error(&text, outcome)
                && (clear > 0 || outcome == Outcome::Failed)
            {
                self.error(error.text, index, message, &name);
            }
        }
        name
    }

    /// The line of a failure, one for all of its occurrences.
    fn error(&mut self, text: &str, index: usize, message: &Message, tool: &str) {
        let text = words::shortened(&redacted(text), ERROR_CHARACTERS);
        if let Some(known) = self.known_errors.get(&text) {
            if let Some(line) = self.errors.lines.get_mut(*known) {
                line.count += 1;
            }
        } else if self.errors.lines.len() < ERRORS_MAX {
            self.known_errors
                .insert(text.clone(), self.errors.lines.len());
            self.errors.lines.push(ErrorLine {
                message: index,
                line: message.position.line,
                tool: tool.to_owned(),
                count: 1,
                text,
            });
        }
    }

    /// Keeps the block if it is one of the largest.
    fn consider(&mut self, mut block: LargeBlock, source: &Block) {
        let smallest = self.largest.last().map_or(0, |last| last.tokens);
        if self.largest.len() >= LARGEST_MAX && block.tokens <= smallest {
            return;
        }
        block.start = start(source);
        let at = self
            .largest
            .partition_point(|other| other.tokens >= block.tokens);
        self.largest.insert(at, block);
        self.largest.truncate(LARGEST_MAX);
    }
}

fn speaker(message: &Message, content: &Content) -> &'static str {
    match (message.author, message.role, content) {
        (_, _, Content::ToolResult(_)) | (_, Role::Tool, _) => "tool",
        (Author::Client, _, _) => "client",
        (Author::Agent, _, _) => "agent",
        (Author::Compaction, _, _) => "compaction",
        (_, Role::System, _) => "system",
        (_, Role::User, _) => "user",
        (_, Role::Assistant, _) => "assistant",
    }
}

fn kind(content: &Content) -> &'static str {
    match content {
        Content::Text(_) => "text",
        Content::Thinking(_) => "thinking",
        Content::ToolCall(_) => "tool_call",
        Content::ToolResult(_) => "tool_result",
        Content::Image(_) => "image",
        Content::Document(_) => "document",
        Content::Compaction(_) => "compaction",
        _ => "other",
    }
}

/// The first words of a block.
fn start(block: &Block) -> String {
    // Secrets are recognised by their surroundings, so more is scanned than is shown.
    const LOOKED_AT_BYTES: usize = 2_000;
    let text = match &block.content {
        Content::Text(text) | Content::Thinking(text) | Content::Compaction(Some(text)) => {
            text.prefix(LOOKED_AT_BYTES)
        }
        Content::ToolCall(call) => match &call.input {
            ToolInput::Text(text) => text.prefix(LOOKED_AT_BYTES),
            ToolInput::Json(raw) => {
                let mut end = raw.len().min(LOOKED_AT_BYTES);
                while !raw.as_str().is_char_boundary(end) {
                    end -= 1;
                }
                raw.as_str().get(..end).unwrap_or_default().into()
            }
        },
        Content::ToolResult(result) => result
            .texts()
            .next()
            .map(|text| text.prefix(LOOKED_AT_BYTES))
            .unwrap_or_default(),
        Content::Image(media) | Content::Document(media) => {
            media.name.as_deref().unwrap_or_default().into()
        }
        _ => Cow::default(),
    };
    words::shortened(&redacted(&text), PREVIEW_CHARACTERS)
}

/// Secrets are not shown.
fn redacted(text: &str) -> String {
    Redactor::embedded().redact(text).into_owned()
}

fn sorted(tools: HashMap<String, Tool>) -> Vec<Tool> {
    let mut tools: Vec<Tool> = tools.into_values().collect();
    tools.sort_by(|a, b| (Reverse(a.calls), &a.name).cmp(&(Reverse(b.calls), &b.name)));
    tools
}

/// What is odd: found in reading, in the pairs of calls and results, and by the wire checker in a request body.
fn problems(conversation: &Conversation) -> Vec<Problem> {
    let read = conversation.problems.iter().map(|problem| Problem {
        code: problem.code.into(),
        message: Some(problem.message),
        text: problem.text.clone(),
    });
    let mut problems: Vec<Problem> = read.collect();
    // The checker knows the pairs of a request too.
    if let Some(body) = &conversation.body
        && let Some(wire) = Wire::detect(body)
    {
        let report = check(body, wire, &CheckOptions::default());
        problems.extend(report.errors().map(|finding| Problem {
            code: finding.code.into(),
            message: None,
            text: format!(
                "{}: {}",
                crate::convert::place(&finding.path),
                finding.message
            ),
        }));
    } else {
        problems.extend(
            pairs::broken(conversation)
                .into_iter()
                .map(|broken| Problem {
                    code: broken.code.into(),
                    message: Some(broken.message),
                    text: broken.text,
                }),
        );
    }
    problems.truncate(PROBLEMS_MAX);
    problems
}
