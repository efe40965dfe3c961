//! What a command line does to files.
//!
//! The words are split as a POSIX shell splits them, and nothing is run. What the text alone does not tell is left
//! out: the values of variables, what a pattern matches, what `xargs` is given, a branch that need not have run. A
//! command inside another (`bash -lc '...'`, `sudo`, `timeout`, `ssh`) is read like one that is typed.

mod programs;
pub(super) mod values;
mod words;

pub(super) use programs::quoted;

use super::tools::{FileUse, patched_files};
use programs::{Deed, Inner};
use words::{Break, Reader, Redirect, Token, Word};

/// Of a command this much is read, bytes.
const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// Commands inside commands, so deep.
const DEPTH_MAX: usize = 5;
/// Files of one command.
const FILES_MAX: usize = 200;
/// Longest path, bytes.
const PATH_BYTES_MAX: usize = 300;

/// The files that `command` changes, and how; `folder` is where it runs, if that is known.
pub(super) fn read(command: &str, folder: Option<&str>) -> Vec<(String, FileUse)> {
    let place = Place {
        folder: Some(folder.unwrap_or_default().trim_end_matches('/').to_owned()),
        host: None,
    };
    let mut files = Vec::new();
    run(command, place, 0, &mut files);
    if files.is_empty() && command.contains("apply_patch") && command.contains("*** Begin Patch") {
        // It comes through a pipe or a variable.
        return patched_files(command);
    }
    files
}

/// Where a command runs.
#[derive(Clone)]
struct Place {
    /// The folder that its paths are relative to: empty for the one where it all began, `None` if it is not known.
    folder: Option<String>,
    /// Another machine or container.
    host: Option<String>,
}

impl Place {
    fn enter(&mut self, folder: Option<&Word>) {
        self.folder = match folder {
            Some(word) if word.text != "-" => word.known().and_then(|path| self.path(path)),
            _ => None,
        };
    }

    /// The path as seen from where it all began.
    fn path(&self, path: &str) -> Option<String> {
        let path = path.strip_prefix("./").unwrap_or(path);
        // A place on another machine, or a drive.
        let has_host = path
            .split('/')
            .next()
            .is_some_and(|part| part.contains(':'));
        if path.starts_with('/') || path.starts_with('~') || has_host {
            return Some(path.to_owned());
        }
        let folder = self.folder.as_deref()?;
        if folder.is_empty() {
            return Some(path.to_owned());
        }
        let mut parts: Vec<&str> = folder.split('/').collect();
        for part in path.split('/') {
            match part {
                "." | "" => {}
                ".." if parts
                    .last()
                    .is_some_and(|last| !matches!(*last, ".." | "" | "~")) =>
                {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }

    /// The name of a changed file; `None` if it is none that a reader could look for.
    fn file(&self, path: &str) -> Option<String> {
        let path = path.trim_end_matches('/');
        let is_path = !path.is_empty()
            && path.len() < PATH_BYTES_MAX
            && !matches!(path, "." | ".." | "-" | "~")
            && !path.starts_with("/dev/")
            && !path.contains(char::is_control);
        let path = self.path(path).filter(|_| is_path)?;
        Some(match &self.host {
            Some(host) if !path.contains(':') => format!("{host}:{path}"),
            _ => path,
        })
    }
}

/// What encloses a command.
enum Block {
    /// `( ... )`, with the place outside.
    Subshell(Place),
    /// `{ ... }` and loops over a list: what is in it runs.
    Certain,
    /// Branches, bodies of functions, loops with a condition: what is in it need not run.
    Uncertain,
    /// `case ... esac`.
    Case,
}

/// How sure it is that a command of a list has run, if the whole has succeeded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    First,
    /// After `&&`.
    Later,
    /// After `&&` behind a test.
    AfterTest,
    /// After `||`.
    Alternative,
}

struct Run<'f> {
    place: Place,
    depth: usize,
    blocks: Vec<Block>,
    /// The deeds of the current list of commands, `a && b || c`.
    list: Vec<(String, FileUse, Certainty)>,
    /// How the current command of the list is joined to those before it.
    certainty: Certainty,
    /// An alternative hides that a command before it has failed.
    hides_failure: bool,
    is_list_over: bool,
    /// The last command only asked whether something is so.
    is_test: bool,
    /// The head of a function was read; its body comes.
    is_function: bool,
    files: &'f mut Vec<(String, FileUse)>,
}

fn run(command: &str, place: Place, depth: usize, files: &mut Vec<(String, FileUse)>) {
    if depth > DEPTH_MAX {
        return;
    }
    let text = &command[..command.floor_char_boundary(COMMAND_BYTES_MAX)];
    let mut run = Run {
        place,
        depth,
        blocks: Vec::new(),
        list: Vec::new(),
        certainty: Certainty::First,
        hides_failure: false,
        is_list_over: false,
        is_test: false,
        is_function: false,
        files,
    };
    let mut reader = Reader::new(text);
    let mut words: Vec<Word> = Vec::new();
    let mut targets: Vec<Word> = Vec::new();
    while let Some(token) = reader.next(words.is_empty()) {
        match token {
            Token::Word(word) => {
                if words.is_empty() && !word.is_quoted && run.keyword(&word, &mut reader) {
                    continue;
                }
                words.push(word);
            }
            Token::Redirect(Redirect::Into(word)) => targets.push(word),
            Token::Redirect(Redirect::Other) => {}
            Token::Document => reader.wait_for_document(programs::use_of_document(&words)),
            Token::Body { text, what } => run.document(text, what),
            Token::Break(Break::Close) if matches!(run.blocks.last(), Some(Block::Case)) => {
                words.clear();
            }
            Token::Break(end) => {
                run.command(&words, &targets);
                words.clear();
                targets.clear();
                run.end(end);
            }
        }
    }
    run.command(&words, &targets);
    run.flush(true);
}

impl Run<'_> {
    /// Takes a keyword of the shell; `false` if the word begins a command.
    fn keyword(&mut self, word: &Word, reader: &mut Reader<'_>) -> bool {
        match word.text.as_str() {
            "if" | "while" | "until" => self.blocks.push(Block::Uncertain),
            "for" | "select" => {
                self.blocks.push(Block::Certain);
                reader.skip_line();
            }
            "case" => {
                self.blocks.push(Block::Case);
                reader.skip_past("in");
            }
            "{" => {
                let is_body = std::mem::take(&mut self.is_function);
                self.blocks.push(if is_body {
                    Block::Uncertain
                } else {
                    Block::Certain
                });
            }
            "function" => {
                reader.skip_word();
                self.is_function = true;
            }
            "fi" | "done" | "esac" | "}" => {
                self.blocks.pop();
            }
            "then" | "else" | "elif" | "do" | "in" | "!" | "time" => {}
            name if name.ends_with("()") => self.is_function = true,
            _ => return false,
        }
        true
    }

    fn end(&mut self, end: Break) {
        match end {
            Break::And => match self.certainty {
                Certainty::Alternative => {}
                _ if self.is_test => self.certainty = Certainty::AfterTest,
                Certainty::First => self.certainty = Certainty::Later,
                Certainty::Later | Certainty::AfterTest => {}
            },
            Break::Or => {
                self.certainty = Certainty::Alternative;
                self.hides_failure = true;
            }
            Break::Pipe => {}
            Break::List => self.is_list_over = true,
            Break::Open => self.blocks.push(Block::Subshell(self.place.clone())),
            Break::Close => {
                if let Some(block) = self
                    .blocks
                    .pop_if(|block| matches!(block, Block::Subshell(_)))
                    && let Block::Subshell(place) = block
                {
                    self.place = place;
                }
            }
        }
    }

    fn is_uncertain(&self) -> bool {
        let is = |block: &Block| matches!(block, Block::Uncertain | Block::Case);
        self.blocks.iter().any(is)
    }

    fn command(&mut self, words: &[Word], targets: &[Word]) {
        if words.is_empty() && targets.is_empty() {
            return;
        }
        if self.is_list_over {
            self.flush(false);
        }
        for target in targets {
            let is_number = target.text.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number && !is_scratch(&target.text) {
                self.add(target, FileUse::Changed);
            }
        }
        self.is_test = false;
        let inner = programs::read(words, &mut |deed| match deed {
            Deed::File(word, file_use) => self.add(word, file_use),
            Deed::Path(path, file_use) => self.add_path(&path, file_use),
            Deed::Enter(folder) => self.place.enter(folder),
            Deed::Patch(text) => {
                for (path, file_use) in patched_files(text) {
                    self.add_path(&path, file_use);
                }
            }
        });
        match inner {
            Some(Inner::Script { script, host }) => {
                self.run_inside(&script, host);
            }
            Some(Inner::Exit) if self.certainty == Certainty::Alternative => {
                self.hides_failure = false;
            }
            Some(Inner::Test) => self.is_test = true,
            _ => {}
        }
    }

    /// Reads commands inside a command, which may run on another machine.
    fn run_inside(&mut self, script: &str, host: Option<String>) {
        let place = match host {
            Some(_) => Place {
                folder: Some(String::new()),
                host,
            },
            None => self.place.clone(),
        };
        let mut files = Vec::new();
        run(script, place, self.depth + 1, &mut files);
        if !self.is_uncertain() {
            let certainty = self.certainty;
            let deeds = files
                .into_iter()
                .map(|(path, file_use)| (path, file_use, certainty));
            self.list.extend(deeds);
        }
    }

    /// Reads what stands in a here-document.
    fn document(&mut self, text: &str, what: programs::DocumentUse) {
        match what {
            programs::DocumentUse::Text => {}
            programs::DocumentUse::Patch => {
                for (path, file_use) in patched_files(text) {
                    self.add_path(&path, file_use);
                }
            }
            programs::DocumentUse::Script { host } => {
                self.run_inside(text, host);
            }
        }
    }

    fn add(&mut self, word: &Word, file_use: FileUse) {
        for path in word.paths() {
            self.add_path(&path, file_use);
        }
    }

    fn add_path(&mut self, path: &str, file_use: FileUse) {
        if self.is_uncertain() || self.list.len() >= FILES_MAX {
            return;
        }
        if let Some(path) = self.place.file(path) {
            self.list.push((path, file_use, self.certainty));
        }
    }

    /// Takes over what the current list has surely done; `is_last` if the success of the whole is its success.
    fn flush(&mut self, is_last: bool) {
        for (path, file_use, certainty) in self.list.drain(..) {
            let is_sure = match certainty {
                Certainty::First => true,
                Certainty::Later => !self.hides_failure,
                Certainty::AfterTest => !self.hides_failure && is_last,
                Certainty::Alternative => false,
            };
            if is_sure && self.files.len() < FILES_MAX {
                self.files.push((path, file_use));
            }
        }
        self.certainty = Certainty::First;
        self.hides_failure = false;
        self.is_list_over = false;
    }
}

/// Whether a redirection goes to a place for output that nobody keeps.
fn is_scratch(path: &str) -> bool {
    ["/tmp/", "/var/tmp/", "/private/tmp/"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests;
