//! The compactor that needs no model: it builds every section from verbatim spans of the transcript.
//!
//! An [`Extractor`] takes one message at a time, in time proportional to the message, and can produce a memory
//! at any point. The same messages give the same memory, byte for byte. It reads no clock, file or network.
//!
//! What it deliberately does not do: rephrase. Everything in a memory was in the transcript, apart from the few
//! words that say how it came there.

mod answers;
mod antecedent;
mod attachments;
mod calls;
mod earlier;
mod excerpt;
pub mod identifiers;
mod names;
mod pack;
mod person;
pub mod rank;
mod script;
mod settings;
mod shell;
mod tools;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use throughline_transcript::digest::{Chain, message_digest};
use throughline_transcript::json::Text;
use throughline_transcript::message::{Author, Block, Content, Message, Role, ToolCall, ToolInput};

use crate::cues::{self, Outcome, OutputKind, StatementKind};
use crate::document::{Item, Memory, Origin};
use crate::redact::Redactor;

use answers::Waiting;
use calls::OpenCalls;
pub(crate) use excerpt::excerpt;
use names::{Class, Names};
pub use pack::Limit;
use pack::Preparation;
pub(crate) use pack::takes_the_place;
use person::{Request, Rule};
use tools::{FileUse, PlanStep};

/// Whether every step of the plan that a call writes down is done; `None` for a call that writes no plan.
#[must_use]
pub fn is_plan_done(call: &ToolCall) -> Option<bool> {
    let plan = tools::action(call).plan?;
    (!plan.is_empty()).then(|| plan.iter().all(|step| step.state == tools::PlanState::Done))
}

/// Of a text from a person or the model this much is read, bytes; the rest is in the archive.
const SPOKEN_BYTES_MAX: usize = 40_000;
/// Of a tool result this much is read from its start and from its end, bytes.
const RESULT_HEAD_BYTES_MAX: usize = 20_000;
const RESULT_TAIL_BYTES_MAX: usize = 4_000;
/// Statements, errors and outcomes that are remembered, each; the oldest make room.
const FINDINGS_MAX: usize = 2000;
/// Where tools are used, an entry of the ledger is kept from this sureness on: there is more to remember than what was
/// said.
const LEDGER_AT_WORK_MIN: u8 = 40;

/// Builds memories from messages.
pub struct Extractor<'r> {
    /// Learns the secrets of the conversation: its own copy from the first one on.
    redactor: Option<Cow<'r, Redactor>>,
    messages: usize,
    turns: usize,
    until_ms: Option<i64>,
    version: u32,
    chain: Chain,
    folder: Option<String>,
    texts: Vec<TranscriptText>,
    moment: rank::Moment,
    prepared: RefCell<Preparation>,
    /// What the texts of tool results are the results of.
    sources: Vec<String>,
    source_index: HashMap<String, u32>,
    names: Names,
    requests: Vec<Request>,
    ledger: Vec<Rule>,
    remarks: Vec<Remark>,
    attachments: Vec<attachments::Attachment>,
    settings: HashMap<String, settings::Setting>,
    files: Vec<FileWork>,
    file_index: HashMap<String, usize>,
    /// What each call is, by its id.
    calls: HashMap<String, String>,
    open_calls: OpenCalls,
    errors: Vec<ErrorReport>,
    /// The last error of each kind of call that has not gone well since: index into `errors`.
    open_errors: HashMap<String, usize>,
    plan: Option<Plan>,
    statements: Vec<Statement>,
    outcomes: Vec<WorkResult>,
    is_interrupted: bool,
    /// The language in which the person last wrote enough to tell.
    language: Option<&'static str>,
    last_said: Option<u32>,
    /// The last call since the person spoke.
    last_call: Option<String>,
    has_tools: bool,
    waiting: Waiting,
    /// What earlier memories and summaries in the transcript say.
    earlier: Vec<Item>,
    /// Whether the model has answered and called nothing since the person spoke.
    is_waiting: bool,
    buffer: String,
}

/// A text of the transcript.
struct TranscriptText {
    message: usize,
    at_ms: Option<i64>,
    class: Class,
    text: Text,
    /// Of a tool result: what it is the result of, as an index into the sources.
    source: Option<u32>,
}

/// A sentence of the person that is neither a question nor small talk nor an entry of the ledger.
struct Remark {
    message: usize,
    at_ms: Option<i64>,
    text: String,
}

/// A plan as it stood last.
struct Plan {
    message: usize,
    /// The number of the call that wrote it down.
    call: u32,
    steps: Vec<PlanStep>,
}

/// A statement of the model, or an answer of the person to its question.
struct Statement {
    kind: StatementKind,
    origin: Origin,
    message: usize,
    at_ms: Option<i64>,
    text: String,
    claim: String,
    reason: Option<String>,
    constraint: Option<String>,
    confidence: u8,
}

/// A commit, a push, a test run or a build.
struct WorkResult {
    kind: OutputKind,
    message: usize,
    at_ms: Option<i64>,
    text: String,
}

struct FileWork {
    path: String,
    reads: u32,
    changes: u32,
    /// Commands that would change it and have failed: what they did before that is not known.
    failed_changes: u32,
    last_use: FileUse,
    last_text: u32,
    message: usize,
    /// The text in which the model said what it was about to do.
    why: Option<u32>,
}

struct ErrorReport {
    message: usize,
    at_ms: Option<i64>,
    text: String,
    /// Number of texts read when it came.
    texts: u32,
    score: u8,
    resolution: Option<String>,
}

/// Learns the secrets in a text, and takes them out if there are any.
fn learned(redactor: &mut Cow<'_, Redactor>, text: &str) -> Option<String> {
    if !redactor.has_secret(text) {
        return None;
    }
    redactor.to_mut().learn(text);
    Some(redactor.redact(text).into_owned())
}

/// Learns the secrets in all texts of a message.
pub(crate) fn learn(redactor: &mut Cow<'_, Redactor>, message: &Message) {
    let mut learn = |text: &str| {
        if redactor.has_secret(text) {
            redactor.to_mut().learn(text);
        }
    };
    for block in &message.blocks {
        match &block.content {
            Content::Text(text) => learn(&text.decode()),
            Content::ToolCall(call) => match &call.input {
                ToolInput::Json(input) => learn(input.as_str()),
                ToolInput::Text(input) => learn(&input.decode()),
            },
            Content::ToolResult(result) => {
                for text in result.texts() {
                    learn(&text.decode());
                }
            }
            _ => {}
        }
    }
}

/// Takes the secrets out of a memory.
pub(crate) fn redact_memory(memory: &mut Memory, redactor: &Redactor) {
    for text in memory
        .items
        .iter_mut()
        .flat_map(|item| item.entry.texts_mut())
    {
        if let Cow::Owned(redacted) = redactor.redact(text) {
            *text = redacted;
        }
    }
}

impl Default for Extractor<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl Extractor<'_> {
    /// An extractor that has seen nothing. It keeps secrets as they are.
    #[must_use]
    pub fn new() -> Self {
        Self {
            redactor: None,
            messages: 0,
            turns: 0,
            until_ms: None,
            version: 1,
            chain: Chain::new(),
            folder: None,
            texts: Vec::new(),
            moment: rank::Moment::default(),
            prepared: RefCell::default(),
            sources: Vec::new(),
            source_index: HashMap::new(),
            names: Names::default(),
            requests: Vec::new(),
            ledger: Vec::new(),
            remarks: Vec::new(),
            attachments: Vec::new(),
            settings: HashMap::new(),
            files: Vec::new(),
            file_index: HashMap::new(),
            calls: HashMap::new(),
            open_calls: OpenCalls::default(),
            errors: Vec::new(),
            open_errors: HashMap::new(),
            plan: None,
            statements: Vec::new(),
            outcomes: Vec::new(),
            is_interrupted: false,
            language: None,
            last_said: None,
            last_call: None,
            has_tools: false,
            waiting: Waiting::default(),
            earlier: Vec::new(),
            is_waiting: false,
            buffer: String::new(),
        }
    }
}

impl<'r> Extractor<'r> {
    /// Takes secrets out of every text before it is looked at. What it finds once it knows from then on, whatever
    /// stands beside it, and memories made later have no secret that an earlier text gave away.
    #[must_use]
    pub fn with_redactor(mut self, redactor: &'r Redactor) -> Self {
        self.redactor = Some(Cow::Borrowed(redactor));
        self
    }

    /// Shows paths relative to `folder`, the one that the session worked in.
    #[must_use]
    pub fn with_folder(mut self, folder: &str) -> Self {
        let folder = self
            .without_secrets(folder.trim_end_matches('/'))
            .into_owned();
        self.folder = (folder.len() > 1).then_some(folder);
        self
    }

    /// Goes on where `prior` ends: messages are counted from there on.
    #[must_use]
    pub fn after(mut self, prior: &Memory, chain: Chain) -> Self {
        self.messages = prior.cover.messages;
        self.turns = prior.cover.turns;
        self.until_ms = prior.cover.until_ms;
        self.version = prior.version.saturating_add(1);
        self.chain = chain;
        self
    }

    /// Reads one more message.
    pub fn push(&mut self, message: &Message) {
        self.chain.push(message_digest(message));
        if message.begins_turn() {
            self.turns += 1;
        }
        self.until_ms = message.at_ms.or(self.until_ms);
        match message.role {
            Role::Assistant => {
                self.is_waiting = message.tool_calls().all(|call| call.is_server_side)
            }
            Role::User | Role::Tool => {
                self.waiting.is_over = self.is_waiting;
                self.is_waiting = false;
            }
            Role::System => {}
        }
        for block in &message.blocks {
            self.push_block(message, block);
        }
        self.note_attachments(message);
        self.messages += 1;
    }

    fn push_block(&mut self, message: &Message, block: &Block) {
        match &block.content {
            Content::Text(text) => match (message.role, message.author) {
                (Role::User, Author::Role) => self.user_text(message, text),
                (Role::Assistant, Author::Role | Author::Client) => {
                    self.assistant_text(message, text);
                }
                (Role::User | Role::Assistant, Author::Compaction) => {
                    self.compaction(message, text);
                }
                (Role::System, _) => {
                    self.without_memories(message, &text.decode());
                }
                (Role::User | Role::Assistant, Author::Agent)
                | (Role::User, Author::Client)
                | (Role::Tool, _) => {}
            },
            Content::Compaction(Some(text)) => self.compaction(message, text),
            Content::ToolCall(call) => self.tool_call(message, call),
            Content::ToolResult(result) => self.tool_result(message, result),
            _ => {}
        }
    }

    /// Keeps a text, without the secrets in it, and the names that it holds; returns its number. The text is in
    /// `self.buffer` afterwards.
    fn text(&mut self, message: &Message, class: Class, text: &Text) -> u32 {
        let number = self.texts.len() as u32;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        text.decode_into(&mut buffer);
        let mut kept = text.clone();
        if class == Class::Result && buffer.len() > RESULT_HEAD_BYTES_MAX + RESULT_TAIL_BYTES_MAX {
            // The middle of a long result is in the archive.
            let head = line_end(&buffer, RESULT_HEAD_BYTES_MAX);
            let tail = line_end(&buffer, buffer.len() - RESULT_TAIL_BYTES_MAX);
            buffer.replace_range(head..tail, "");
            kept = Text::plain(buffer.clone());
        } else if buffer.len() > SPOKEN_BYTES_MAX {
            buffer.truncate(line_end(&buffer, SPOKEN_BYTES_MAX));
        }
        if let Some(redactor) = &mut self.redactor
            && let Some(redacted) = learned(redactor, &buffer)
        {
            buffer = redacted;
            kept = Text::plain(buffer.clone());
        }
        self.names.note(number, class, &buffer, 0);
        self.moment.texts = number + 1;
        self.moment.last[class as usize] = number + 1;
        self.buffer = buffer;
        self.texts.push(TranscriptText {
            message: self.messages,
            at_ms: message.at_ms,
            class,
            text: kept,
            source: None,
        });
        number
    }

    fn assistant_text(&mut self, message: &Message, text: &Text) {
        let number = self.text(message, Class::Assistant, text);
        self.last_said = Some(number);
        if message.author == Author::Role {
            self.waiting.said(number);
        }
        let buffer = std::mem::take(&mut self.buffer);
        for statement in cues::assistant_statements(&buffer) {
            if statement.confidence < 40 {
                continue;
            }
            keep(
                &mut self.statements,
                Statement {
                    kind: statement.kind,
                    origin: Origin::Assistant,
                    message: self.messages,
                    at_ms: message.at_ms,
                    text: fold(statement.text),
                    claim: fold(statement.claim),
                    reason: statement.reason.map(fold),
                    constraint: statement.constraint.map(fold),
                    confidence: statement.confidence,
                },
            );
        }
        self.buffer = buffer;
    }

    fn tool_call(&mut self, message: &Message, call: &ToolCall) {
        let mut action = tools::action(call);
        let shown = std::mem::take(&mut action.shown);
        let number = self.text(message, Class::Call, &Text::plain(shown));
        for written in &action.written {
            let written = self.without_secrets(written);
            self.names.note(number, Class::Written, &written, 0);
        }
        let key = self.open_call(call, action, number, self.messages);
        self.last_call = Some(key);
        if !call.is_server_side {
            self.waiting.called();
        }
    }

    fn without_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.redactor {
            Some(redactor) => redactor.redact(text),
            None => Cow::Borrowed(text),
        }
    }

    /// Takes out what was learned to be a secret after it was read.
    fn redact_again(&self, memory: &mut Memory) {
        if let Some(redactor) = &self.redactor
            && redactor.learned() > 0
        {
            redact_memory(memory, redactor);
        }
    }

    fn source(&mut self, key: &str) -> Option<u32> {
        if key.is_empty() {
            return None;
        }
        let next = self.sources.len() as u32;
        let source = *self.source_index.entry(key.to_owned()).or_insert(next);
        if source == next {
            self.sources.push(key.to_owned());
        }
        Some(source)
    }

    fn read_output(&mut self, message: &Message, output: &str, key: &str, is_error: Option<bool>) {
        let outcome = match is_error {
            Some(true) => Outcome::Failed,
            Some(false) => Outcome::Succeeded,
            None => Outcome::Unknown,
        };
        for line in cues::output_lines(output, outcome) {
            if line.kind != OutputKind::Error {
                keep(
                    &mut self.outcomes,
                    WorkResult {
                        kind: line.kind,
                        message: self.messages,
                        at_ms: message.at_ms,
                        text: fold(line.text),
                    },
                );
            }
        }
        if let Some(line) = cues::headline_error(output, outcome) {
            let index = self.errors.len();
            self.errors.push(ErrorReport {
                message: self.messages,
                at_ms: message.at_ms,
                text: fold(line.text),
                texts: self.texts.len() as u32,
                score: line.score,
                resolution: None,
            });
            if !key.is_empty() {
                self.open_errors.insert(key.to_owned(), index);
            }
        } else if let Some(index) = self.open_errors.remove(key) {
            self.resolve(index);
        }
    }

    /// A call that had failed has gone well: what was changed in between?
    fn resolve(&mut self, index: usize) {
        let Some(error) = self.errors.get_mut(index) else {
            return;
        };
        let changed: Vec<_> = self
            .files
            .iter()
            .filter(|file| file.changes > 0 && file.last_text >= error.texts)
            .map(|file| file.path.rsplit('/').next().unwrap_or(&file.path))
            .take(3)
            .collect();
        error.resolution = Some(if changed.is_empty() {
            "the same call went well later".to_owned()
        } else {
            format!("went well after changes to {}", changed.join(", "))
        });
    }

    /// The folder that paths are relative to, without a slash at its end; empty if it cannot be told.
    ///
    /// A folder is it if names are used both with it in front and without it.
    fn root(&self) -> String {
        if let Some(folder) = &self.folder {
            return folder.clone();
        }
        let mut votes: HashMap<&str, u32> = HashMap::new();
        for name in self
            .names
            .all
            .iter()
            .filter(|name| name.text.starts_with('/'))
        {
            for (at, _) in name.text.match_indices('/').skip(2).take(12) {
                let rest = &name.text[at + 1..];
                if rest.contains('/') && self.names.find(rest).is_some() {
                    *votes.entry(&name.text[..at]).or_default() += 1;
                    break;
                }
            }
        }
        let best = votes
            .into_iter()
            .max_by_key(|(folder, count)| (*count, std::cmp::Reverse(*folder)));
        best.filter(|(_, count)| *count >= 2)
            .map_or(String::new(), |(folder, _)| folder.to_owned())
    }

    /// Whether the person has said anything in the messages read.
    pub(crate) fn has_heard(&self) -> bool {
        !self.requests.is_empty()
    }

    /// How many texts were read.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.texts.len()
    }

    /// The features of every name, for fitting [`rank`]: name, features, whether the name is only in written text.
    #[doc(hidden)]
    pub fn name_features(&self) -> Vec<(String, [f32; rank::FEATURES])> {
        self.names
            .all
            .iter()
            .map(|name| (name.text.to_string(), rank::features(name, self.moment)))
            .collect()
    }
}

/// Adds to a list that is not to grow without end.
fn keep<T>(list: &mut Vec<T>, element: T) {
    if list.len() >= FINDINGS_MAX {
        list.drain(..FINDINGS_MAX / 2);
    }
    list.push(element);
}

/// Where the last line before `at` ends, or `at` where a line is that long; on a character boundary.
fn line_end(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let floor = text.floor_char_boundary(at.saturating_sub(1000));
    text[floor..at]
        .rfind('\n')
        .map_or(at, |newline| floor + newline)
}

/// Folds white space: the text fits one line.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len().min(4096));
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
        if folded.len() > SPOKEN_BYTES_MAX {
            break;
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use throughline_transcript::message::{Block, Message, Role};

    use super::*;

    #[test]
    fn a_memory_does_not_depend_on_those_asked_for_before() {
        let count = |text: &str| text.len() / 4;
        let limit = |focus| Limit {
            tokens: 300,
            count: &count,
            focus,
        };
        let messages: Vec<Message> = (0..40)
            .map(|number| {
                let role = if number % 2 == 0 { Role::User } else { Role::Assistant };
                let text = format!(
                    "The parser in src/part_{number}.rs calls readToken{number} and writes logs.\n\
                     The network layer in /home/ann/shop/src/part_{}.rs retries with backOff{number} twice.",
                    number / 3
                );
                Message::new(role, vec![Block::text(text)])
            })
            .collect();
        let mut asked_often = Extractor::new();
        for message in &messages {
            asked_often.push(message);
            let _ = asked_often.memory(&limit(Some("network retries")));
            let _ = asked_often.memory(&limit(None));
        }
        let _ = asked_often.memory(&limit(Some("network retries")));
        let mut asked_once = Extractor::new();
        for message in &messages {
            asked_once.push(message);
        }
        assert_eq!(
            asked_often.memory(&limit(None)),
            asked_once.memory(&limit(None))
        );
    }
}
