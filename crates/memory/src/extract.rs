//! The compactor that needs no model: it builds every section from verbatim spans of the transcript.
//!
//! An [`Extractor`] is fed message by message, each in time proportional to the message, and can be asked for a memory
//! at any point. The same messages give the same memory, byte for byte. It reads no clock, file or network.
//!
//! What it deliberately does not do: rephrase. Whatever stands in a memory stood in the transcript, apart from the few
//! words that say how it came there.

mod folder;
pub mod identifiers;
mod names;
mod pack;
pub mod rank;
mod tools;

use std::collections::HashMap;

use throughline_transcript::json::Text;
use throughline_transcript::message::{
    Author, Block, Content, Message, Role, ToolCall, ToolResult,
};

use crate::cues::{self, Circumstances, Cue, Outcome, OutputKind, StatementKind, Voice};
use names::{Class, Names};
pub use pack::Limit;
use tools::{FileUse, PlanStep};

/// Of a text from a person or the model this much is read, bytes; the rest is in the archive.
const SPOKEN_BYTES_MAX: usize = 40_000;
/// Of a tool result this much is read from its start and from its end, bytes.
const RESULT_HEAD_BYTES_MAX: usize = 20_000;
const RESULT_TAIL_BYTES_MAX: usize = 4_000;
/// Statements, errors and outcomes that are remembered, each; the oldest make room.
const FINDINGS_MAX: usize = 2000;

/// Builds memories from messages.
pub struct Extractor {
    messages: usize,
    turns: usize,
    until_ms: Option<i64>,
    texts: Vec<Spoken>,
    names: Names,
    requests: Vec<Request>,
    files: Vec<FileWork>,
    file_index: HashMap<String, usize>,
    folders: folder::Folders,
    /// What each call is, by its id.
    calls: HashMap<String, String>,
    errors: Vec<ErrorSeen>,
    /// The last error of each kind of call that has not gone well since: index into `errors`.
    open_errors: HashMap<String, usize>,
    plan: Option<Plan>,
    statements: Vec<Statement>,
    outcomes: Vec<OutcomeSeen>,
    is_interrupted: bool,
    last_said: Option<u32>,
    buffer: String,
}

/// A text of the transcript.
struct Spoken {
    message: usize,
    at_ms: Option<i64>,
    class: Class,
    text: Text,
}

/// What the person asked or said.
struct Request {
    message: usize,
    at_ms: Option<i64>,
    /// White space folded, so that it fits one line.
    text: String,
    /// How surely the message belongs in the ledger, 0 to 100.
    ledger: u8,
    /// The sentences that belong in the ledger, with how surely, where the message says other things too.
    rules: Vec<(String, u8)>,
    /// It asks for nothing and says nothing that later steps need.
    is_small_talk: bool,
}

/// A plan as it stood last.
struct Plan {
    message: usize,
    steps: Vec<PlanStep>,
}

/// A statement of the model.
struct Statement {
    kind: StatementKind,
    message: usize,
    at_ms: Option<i64>,
    text: String,
    claim: String,
    reason: Option<String>,
    constraint: Option<String>,
    confidence: u8,
}

/// A commit, a push, a test run or a build.
struct OutcomeSeen {
    kind: OutputKind,
    message: usize,
    at_ms: Option<i64>,
    text: String,
}

struct FileWork {
    path: String,
    reads: u32,
    changes: u32,
    last_use: FileUse,
    last_text: u32,
    message: usize,
    /// The text in which the model said what it was about to do.
    why: Option<u32>,
}

struct ErrorSeen {
    message: usize,
    at_ms: Option<i64>,
    text: String,
    /// Number of texts read when it came.
    texts: u32,
    score: u8,
    resolution: Option<String>,
}

impl Default for Extractor {
    fn default() -> Self {
        Self::new()
    }
}

impl Extractor {
    /// An extractor that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            messages: 0,
            turns: 0,
            until_ms: None,
            texts: Vec::new(),
            names: Names::default(),
            requests: Vec::new(),
            files: Vec::new(),
            file_index: HashMap::new(),
            folders: folder::Folders::default(),
            calls: HashMap::new(),
            errors: Vec::new(),
            open_errors: HashMap::new(),
            plan: None,
            statements: Vec::new(),
            outcomes: Vec::new(),
            is_interrupted: false,
            last_said: None,
            buffer: String::new(),
        }
    }

    /// Reads one more message.
    pub fn push(&mut self, message: &Message) {
        if message.begins_turn() {
            self.turns += 1;
        }
        self.until_ms = message.at_ms.or(self.until_ms);
        for block in &message.blocks {
            self.push_block(message, block);
        }
        self.messages += 1;
    }

    fn push_block(&mut self, message: &Message, block: &Block) {
        match &block.content {
            Content::Text(text) => match (message.role, message.author) {
                (Role::User, Author::Role) => self.user_text(message, text),
                (Role::Assistant, _) | (_, Author::Compaction) => {
                    self.assistant_text(message, text);
                }
                (Role::User | Role::System | Role::Tool, _) => {}
            },
            Content::ToolCall(call) => self.tool_call(message, call),
            Content::ToolResult(result) => self.tool_result(message, result),
            _ => {}
        }
    }

    /// Keeps a text and the names in it; returns its number.
    fn text(&mut self, message: &Message, class: Class, text: &Text) -> u32 {
        let number = self.texts.len() as u32;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        text.decode_into(&mut buffer);
        match class {
            Class::Result => {
                let head = buffer.floor_char_boundary(RESULT_HEAD_BYTES_MAX);
                self.names.note(number, class, &buffer[..head], 0);
                if buffer.len() > RESULT_HEAD_BYTES_MAX + RESULT_TAIL_BYTES_MAX {
                    let tail = buffer.ceil_char_boundary(buffer.len() - RESULT_TAIL_BYTES_MAX);
                    self.names.note(number, class, &buffer[tail..], tail);
                }
            }
            _ => {
                let end = buffer.floor_char_boundary(SPOKEN_BYTES_MAX);
                self.names.note(number, class, &buffer[..end], 0);
            }
        }
        self.buffer = buffer;
        self.texts.push(Spoken {
            message: self.messages,
            at_ms: message.at_ms,
            class,
            text: text.clone(),
        });
        number
    }

    fn user_text(&mut self, message: &Message, text: &Text) {
        self.text(message, Class::User, text);
        let buffer = std::mem::take(&mut self.buffer);
        self.read_request(message, &buffer);
        self.buffer = buffer;
    }

    /// Reads what came in the user's name: their words, or a client's report that they stopped or refused something.
    fn read_request(&mut self, message: &Message, text: &str) {
        let text = &text[..text.floor_char_boundary(SPOKEN_BYTES_MAX)];
        let circumstances = Circumstances {
            after_interruption: self.is_interrupted,
            is_first: self.requests.is_empty(),
        };
        let sentences = cues::user_sentences(text, circumstances);
        self.is_interrupted = cues::interruption(text).is_some();
        let mut own = sentences
            .iter()
            .filter(|sentence| sentence.voice != Voice::Injected);
        let Some(first) = own.next() else { return };
        let last = own.next_back().unwrap_or(first);
        // Between the first and the last of the person's words a client may have put something in.
        let mut words = String::new();
        let mut from = first.range.start;
        for injected in sentences
            .iter()
            .filter(|sentence| sentence.voice == Voice::Injected)
        {
            if injected.range.start >= from && injected.range.end <= last.range.end {
                words.push_str(&text[from..injected.range.start]);
                words.push(' ');
                from = injected.range.end;
            }
        }
        words.push_str(&text[from..last.range.end.max(from)]);
        let folded = fold(&words);
        if folded.is_empty() {
            return;
        }
        self.is_interrupted = false;
        let is_short = folded.len() <= 240;
        let rules: Vec<_> = sentences
            .iter()
            .filter(|sentence| sentence.voice != Voice::Injected && sentence.cues.ledger() >= 40)
            .map(|sentence| (fold(sentence.text), sentence.cues.ledger()))
            .collect();
        let ledger = rules
            .iter()
            .map(|(_, confidence)| *confidence)
            .max()
            .unwrap_or(0);
        let is_small_talk = sentences.iter().all(|sentence| {
            sentence.cues.has(Cue::SmallTalk, 50) && !sentence.cues.has(Cue::Request, 30)
        });
        self.requests.push(Request {
            message: self.messages,
            at_ms: message.at_ms,
            text: folded,
            ledger,
            rules: if is_short { Vec::new() } else { rules },
            is_small_talk,
        });
    }

    fn assistant_text(&mut self, message: &Message, text: &Text) {
        let number = self.text(message, Class::Assistant, text);
        self.last_said = Some(number);
        let buffer = std::mem::take(&mut self.buffer);
        let spoken = &buffer[..buffer.floor_char_boundary(SPOKEN_BYTES_MAX)];
        for statement in cues::assistant_statements(spoken) {
            if statement.confidence < 40 {
                continue;
            }
            keep(
                &mut self.statements,
                Statement {
                    kind: statement.kind,
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
        let action = tools::action(call);
        let number = self.text(message, Class::Call, &Text::plain(action.shown.clone()));
        for written in &action.written {
            self.names.note(number, Class::Written, written, 0);
        }
        let mut key = call.name.to_string();
        if let Some(command) = &action.command {
            key.push_str(command.lines().next().unwrap_or(""));
        } else if let Some((path, _)) = action.files.first() {
            key.push_str(path);
        }
        for (path, file_use) in action.files {
            self.folders.note(&path);
            self.names.note_file(&path, file_use != FileUse::Read);
            self.file(path, file_use, number);
        }
        if let Some(steps) = action.plan {
            self.plan = Some(Plan {
                message: self.messages,
                steps,
            });
        }
        if !call.id.is_empty() {
            self.calls.insert(call.id.to_string(), key);
        }
    }

    fn file(&mut self, path: String, file_use: FileUse, number: u32) {
        let index = *self.file_index.entry(path).or_insert_with_key(|path| {
            self.files.push(FileWork {
                path: path.clone(),
                reads: 0,
                changes: 0,
                last_use: file_use,
                last_text: number,
                message: self.messages,
                why: None,
            });
            self.files.len() - 1
        });
        let file = &mut self.files[index];
        file.last_text = number;
        file.message = self.messages;
        if file_use == FileUse::Read {
            file.reads += 1;
        } else {
            file.changes += 1;
            file.last_use = file_use;
            file.why = self.last_said;
        }
    }

    fn tool_result(&mut self, message: &Message, result: &ToolResult) {
        let key = self
            .calls
            .get(&*result.call_id)
            .cloned()
            .unwrap_or_default();
        for text in result.texts() {
            self.text(message, Class::Result, text);
            let buffer = std::mem::take(&mut self.buffer);
            if cues::interruption(&buffer).is_some() {
                self.read_request(message, &buffer);
            } else {
                self.read_output(message, &buffer, &key, result.is_error);
            }
            self.buffer = buffer;
        }
    }

    fn read_output(&mut self, message: &Message, output: &str, key: &str, is_error: Option<bool>) {
        let output = &output[..output.floor_char_boundary(RESULT_HEAD_BYTES_MAX)];
        let outcome = match is_error {
            Some(true) => Outcome::Failed,
            Some(false) => Outcome::Succeeded,
            None => Outcome::Unknown,
        };
        for line in cues::output_lines(output, outcome) {
            if line.kind != OutputKind::Error {
                keep(
                    &mut self.outcomes,
                    OutcomeSeen {
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
            self.errors.push(ErrorSeen {
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

    /// How many texts were read.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.texts.len()
    }

    /// The features of every name, for fitting [`rank`]: name, features, whether the name is only in written text.
    #[doc(hidden)]
    pub fn name_features(&self) -> Vec<(String, [f32; rank::FEATURES])> {
        let texts = self.texts.len() as u32;
        self.names
            .all
            .iter()
            .map(|name| (name.text.to_string(), rank::features(name, texts)))
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
