//! Tracks calls until their results. A call takes effect when its result reports success.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use throughline_transcript::json::Text;
use throughline_transcript::message::{Message, ToolCall, ToolResult};

use super::names::Class;
use super::tools::{self, Action, FileUse, PlanStep};
use super::{Extractor, FileWork, Plan, SPOKEN_BYTES_MAX, fold, shell};
use crate::authors::{self, Questions, wording};
use crate::{cues, notes};

/// A call whose result has not come.
struct OpenCall {
    /// The text in which it is shown.
    text: u32,
    message: usize,
    /// The text in which the model said what it was about to do.
    why: Option<u32>,
    files: Vec<(String, FileUse)>,
    plan: Option<Vec<PlanStep>>,
    /// What it asks the person.
    questions: Option<Questions>,
    /// It runs a command, which may have done something before it fails.
    is_command: bool,
    /// What its command sets.
    settings: Vec<(String, String)>,
    /// Its result names the files that it has patched.
    applies_patch: bool,
    /// It is a kind of call that is known here. Who writes the errors of others is not known.
    is_known: bool,
}

impl OpenCall {
    /// Without files and plan, which may hold secrets: the caller sets them.
    fn of(action: &Action, text: u32, message: usize, why: Option<u32>) -> Self {
        Self {
            text,
            message,
            why,
            files: Vec::new(),
            plan: None,
            settings: Vec::new(),
            questions: None,
            is_command: action.command.is_some(),
            applies_patch: action.applies_patch,
            is_known: action.command.is_some() || !action.files.is_empty() || action.plan.is_some(),
        }
    }

    /// Whether its result is written by the client alone: no file, page or program has a word in it.
    fn has_result_of_the_client(&self) -> bool {
        let changes = self
            .files
            .iter()
            .all(|(_, file_use)| *file_use != FileUse::Read);
        !self.is_command && changes && (self.plan.is_some() || !self.files.is_empty())
    }
}

/// The calls whose results have not come, in their order.
#[derive(Default)]
pub(super) struct OpenCalls {
    calls: BTreeMap<u32, OpenCall>,
    by_id: HashMap<String, VecDeque<u32>>,
    count: u32,
}

impl OpenCalls {
    fn push(&mut self, id: &str, call: OpenCall) {
        self.by_id
            .entry(id.to_owned())
            .or_default()
            .push_back(self.count);
        self.calls.insert(self.count, call);
        self.count += 1;
    }

    /// The call that a result answers, with its number. Where the source has no ids, results come in the order of the
    /// calls.
    fn take(&mut self, id: &str) -> Option<(u32, OpenCall)> {
        let number = self.pop(id).or_else(|| self.pop(""));
        match number {
            Some(number) => self.calls.remove(&number).map(|call| (number, call)),
            None if id.is_empty() => self.calls.pop_first(),
            None => None,
        }
    }

    fn pop(&mut self, id: &str) -> Option<u32> {
        let numbers = self.by_id.get_mut(id)?;
        let mut found = None;
        while let Some(number) = numbers.pop_front() {
            if self.calls.contains_key(&number) {
                found = Some(number);
                break;
            }
        }
        if numbers.is_empty() {
            self.by_id.remove(id);
        }
        found
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Failed,
    /// Nobody began it.
    NotRun,
    /// The person refused it. What they said to that is theirs only where nothing else can have written it.
    Denied {
        is_sure: bool,
    },
}

/// How the results of scripts begin, before what the script has printed: the first has run to its end.
const SCRIPT_HEADS: [&str; 3] = ["Script completed", "Script failed", "Script terminated"];
const SCRIPT_HEAD_BYTES: usize = 20;

/// How a call ended, according to its result.
///
/// A result that the format marks as a success is one, regardless of its text. If the format does not tell, the text
/// decides. A denial counts only if the result cannot contain third-party text: a file can hold anything. A failure
/// counts only in results where the client reports failures: an unknown tool may return any text.
fn end(result: &ToolResult, call: Option<&OpenCall>) -> End {
    if result.is_error == Some(false) {
        return End::Done;
    }
    let mut is_error = result.is_error == Some(true);
    let mut texts = result.texts();
    let Some(mut text) = texts.next() else {
        return if is_error { End::Failed } else { End::Done };
    };
    let head = text.prefix(SCRIPT_HEAD_BYTES);
    if SCRIPT_HEADS.iter().any(|start| head.starts_with(start)) {
        // What the client says about a script; what the script printed comes behind it.
        is_error |= !head.starts_with(SCRIPT_HEADS[0]);
        text = texts.next().unwrap_or(text);
    }
    let text = text.decode();
    if cues::denial(&text).is_some() {
        let is_sure =
            call.is_some_and(|call| (is_error && call.is_known) || call.has_result_of_the_client());
        return End::Denied { is_sure };
    }
    if notes::is_note(&text) {
        return if notes::is_of_half_done(&text) {
            End::Failed
        } else {
            End::NotRun
        };
    }
    if is_error || cues::says_failed(&text) {
        End::Failed
    } else {
        End::Done
    }
}

impl Extractor<'_> {
    /// Waits for the result of a call; returns what the call is.
    pub(super) fn open_call(
        &mut self,
        call: &ToolCall,
        action: Action,
        number: u32,
        message: usize,
    ) -> String {
        let mut key = call.name.to_string();
        if let Some(command) = &action.command {
            key.push(' ');
            key.push_str(command.lines().next().unwrap_or(""));
        } else if let Some((path, _)) = action.files.first() {
            key.push(' ');
            key.push_str(path);
        }
        let key = fold(&self.without_secrets(&key));
        let mut open = OpenCall::of(&action, number, message, self.last_said);
        if let Some(command) = &action.command {
            open.settings = shell::values::read(&self.without_secrets(command));
        }
        open.questions = Questions::of(call);
        open.is_known |= wording().is_client_tool(&call.name);
        for (path, file_use) in action.files {
            let path = self.without_secrets(&path).into_owned();
            open.files.push((path, file_use));
        }
        open.plan = action.plan.map(|mut steps| {
            for step in &mut steps {
                step.text = fold(&self.without_secrets(&step.text));
            }
            steps
        });
        self.open_calls.push(&call.id, open);
        if !call.id.is_empty() {
            self.calls.insert(call.id.to_string(), key.clone());
        }
        self.has_tools = true;
        key
    }

    /// Notes the calls of earlier messages that these do not answer: their results may come.
    pub(crate) fn expect_results(&mut self, earlier: &[Message]) {
        let answered: HashSet<&str> = earlier
            .iter()
            .flat_map(Message::tool_results)
            .map(|result| &*result.call_id)
            .collect();
        let first = self.messages.saturating_sub(earlier.len());
        for (index, message) in earlier.iter().enumerate() {
            for call in message.tool_calls() {
                if !call.id.is_empty() && !answered.contains(&*call.id) {
                    self.open_call(call, tools::action(call), 0, first + index);
                }
            }
        }
    }

    /// Adds the files that the result of a patch names and the patch, which was computed, did not.
    fn add_reported_files(&self, result: &ToolResult, call: &mut OpenCall) {
        for text in result.texts() {
            for (path, file_use) in tools::reported_files(&text.decode()) {
                let path = self.without_secrets(&path).into_owned();
                let is_known = |(known, _): &(String, FileUse)| {
                    let rest = known.strip_suffix(path.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
                };
                if !call.files.iter().any(is_known) {
                    call.files.push((path, file_use));
                }
            }
        }
    }

    /// What a call has done, now that its result is there.
    fn close_call(&mut self, number: u32, mut call: OpenCall, end: End) {
        let may_have_changed = match end {
            End::Done => false,
            End::Failed if call.is_command => true,
            End::Failed | End::NotRun | End::Denied { .. } => return,
        };
        if !may_have_changed {
            for (what, value) in std::mem::take(&mut call.settings) {
                self.note_setting(what, value, call.message);
            }
        }
        for (path, file_use) in &call.files {
            if !may_have_changed {
                self.names.note_file(path, *file_use != FileUse::Read);
            }
            self.file(path, *file_use, may_have_changed, &call);
        }
        // Results of calls that ran at the same time come in any order.
        let is_newer = self.plan.as_ref().is_none_or(|plan| plan.call <= number);
        if let (Some(steps), false, true) = (call.plan, may_have_changed, is_newer) {
            self.plan = Some(Plan {
                message: call.message,
                call: number,
                steps,
            });
        }
    }

    fn file(&mut self, path: &str, file_use: FileUse, has_failed: bool, call: &OpenCall) {
        // A file has one name, whether it is written from the folder on or in full.
        let inside = self
            .folder
            .as_deref()
            .and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/'))
            .filter(|rest| !rest.is_empty());
        let path = inside.unwrap_or(path);
        let path = path.strip_prefix("./").unwrap_or(path).to_owned();
        let path = path.as_str();
        let known = self.file_index.get(path).copied();
        let index = known.unwrap_or_else(|| {
            self.files.push(FileWork {
                path: path.to_owned(),
                reads: 0,
                changes: 0,
                failed_changes: 0,
                last_use: file_use,
                last_text: call.text,
                message: call.message,
                why: None,
            });
            self.file_index
                .insert(path.to_owned(), self.files.len() - 1);
            self.files.len() - 1
        });
        let file = &mut self.files[index];
        let is_newer = call.text >= file.last_text;
        if is_newer {
            file.last_text = call.text;
            file.message = call.message;
        }
        if file_use == FileUse::Read {
            file.reads += 1;
        } else if has_failed {
            file.failed_changes += 1;
        } else {
            file.changes += 1;
            if is_newer || file.changes == 1 {
                file.last_use = file_use;
                file.why = call.why;
            }
        }
    }

    pub(super) fn tool_result(&mut self, message: &Message, result: &ToolResult) {
        let call = self.open_calls.take(&result.call_id);
        let end = end(result, call.as_ref().map(|(_, call)| call));
        let mut questions = None;
        if let Some((number, mut call)) = call {
            questions = call.questions.take();
            if call.applies_patch && end == End::Done {
                self.add_reported_files(result, &mut call);
            }
            self.close_call(number, call, end);
        }
        if end == End::Done
            && let Some(questions) = questions
        {
            return self.answers(message, result, &questions);
        }
        match end {
            End::Denied { is_sure: true } => return self.denied(message, result),
            // What the agent says of it is no output.
            End::NotRun => return,
            End::Done | End::Failed | End::Denied { is_sure: false } => {}
        }
        let key = self
            .calls
            .get(&*result.call_id)
            .cloned()
            .unwrap_or_default();
        let source = self.source(&key);
        for text in result.texts() {
            if end != End::Done && notes::is_note(&text.decode()) {
                continue;
            }
            let number = self.text(message, Class::Result, text);
            self.texts[number as usize].source = source;
            let buffer = std::mem::take(&mut self.buffer);
            self.read_output(message, &buffer, &key, result.is_error);
            self.buffer = buffer;
        }
    }

    /// Reads the person's answers to the questions of a call.
    fn answers(&mut self, message: &Message, result: &ToolResult, questions: &Questions) {
        for text in result.texts().take(1) {
            let text = text.decode();
            let text = &text[..text.floor_char_boundary(SPOKEN_BYTES_MAX)];
            for answer in authors::answers(questions, text) {
                self.answer(message, &answer.question, &answer.text);
            }
        }
    }

    /// Reads the result of a call that the person refused: only their own words are kept.
    fn denied(&mut self, message: &Message, result: &ToolResult) {
        self.is_interrupted = true;
        for text in result.texts().take(1) {
            let text = text.decode();
            let said = cues::denial(&text).unwrap_or_default();
            if said.is_empty() {
                continue;
            }
            self.text(message, Class::User, &Text::plain(said.to_owned()));
            let buffer = std::mem::take(&mut self.buffer);
            self.read_request(message, &buffer);
            self.buffer = buffer;
        }
    }
}
