//! Where lines come from: a line editor in a terminal, a pipe otherwise.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, ExternalPrinter,
    FileBackedHistory, Highlighter, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode,
    PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span, StyledText,
    Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};

use super::commands;

/// Lines that are remembered.
const HISTORY_LINES_MAX: usize = 2_000;
/// Notes that can wait to be shown above the line.
const NOTES_MAX: usize = 64;
const MENU: &str = "commands";

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    /// Ctrl-C, and whether there was nothing on the line.
    Interrupted {
        was_empty: bool,
    },
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// Reads lines.
pub(crate) enum Editor {
    Terminal(Box<TerminalEditor>),
    Pipe,
}

pub(crate) struct TerminalEditor {
    reedline: Reedline,
    prompt: Mark,
    notes: SyncSender<String>,
    was_typed: Arc<AtomicBool>,
}

impl Editor {
    /// An editor with the lines of earlier chats, where these can be read.
    pub(crate) fn in_terminal(history: Option<&Path>, has_colours: bool) -> Self {
        let notes = ExternalPrinter::new(NOTES_MAX);
        let sender = notes.sender();
        let was_typed = Arc::new(AtomicBool::new(false));
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![
                ReedlineEvent::Menu(MENU.to_owned()),
                ReedlineEvent::MenuNext,
            ]),
        );
        let menu = ReedlineMenu::EngineCompleter(Box::new(
            ColumnarMenu::default().with_name(MENU).with_columns(1),
        ));
        let mut reedline = Reedline::create()
            .with_ansi_colors(has_colours)
            .use_bracketed_paste(true)
            .with_external_printer(notes)
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_completer(Box::new(Commands))
            .with_menu(menu)
            .with_quick_completions(true)
            .with_validator(Box::new(GoesOn))
            .with_highlighter(Box::new(Watcher(Arc::clone(&was_typed))));
        // A history that cannot be kept is no reason not to talk.
        if let Some(path) = history
            && make_private(path).is_ok()
            && let Ok(kept) = FileBackedHistory::with_file(HISTORY_LINES_MAX, path.to_owned())
        {
            reedline = reedline.with_history(Box::new(kept));
        }
        Self::Terminal(Box::new(TerminalEditor {
            reedline,
            prompt: Mark("> ".to_owned()),
            notes: sender,
            was_typed,
        }))
    }

    /// Where notes go while a line is typed; they are shown above it.
    pub(crate) fn notes(&self) -> Option<SyncSender<String>> {
        match self {
            Self::Terminal(editor) => Some(editor.notes.clone()),
            Self::Pipe => None,
        }
    }

    /// Waits for a line that begins with `given`. Blocks.
    pub(crate) fn read(&mut self, given: &str) -> io::Result<Line> {
        match self {
            Self::Terminal(editor) => editor.read(given),
            Self::Pipe => read_pipe(&mut io::stdin().lock()),
        }
    }
}

impl TerminalEditor {
    fn read(&mut self, given: &str) -> io::Result<Line> {
        if !given.is_empty() {
            self.reedline.run_edit_commands(&[
                EditCommand::Clear,
                EditCommand::InsertString(given.to_owned()),
            ]);
        }
        self.was_typed.store(false, Ordering::Relaxed);
        let signal = self
            .reedline
            .read_line(&self.prompt)
            .map_err(|error| io::Error::other(error.to_string()))?;
        // What is not written yet would be lost if the program were killed.
        let _ = self.reedline.sync_history();
        Ok(match signal {
            Signal::Success(text) => Line::Text(joined(&text)),
            Signal::CtrlC => Line::Interrupted {
                was_empty: !self.was_typed.load(Ordering::Relaxed),
            },
            _ => Line::End,
        })
    }
}

/// Asks a question that is answered with a word. Blocks; nothing if it is not answered.
pub(crate) fn ask(question: &str, has_colours: bool) -> Option<String> {
    let mut reedline = Reedline::create().with_ansi_colors(has_colours);
    match reedline.read_line(&Mark(question.to_owned())) {
        Ok(Signal::Success(answer)) => Some(answer),
        _ => None,
    }
}

/// A line of a pipe; one that ends with a backslash continues in the next.
fn read_pipe(input: &mut impl BufRead) -> io::Result<Line> {
    let mut text = String::new();
    loop {
        let mut bytes = Vec::new();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        // Some programs begin a text with a mark of its encoding.
        let line = line.trim_start_matches('\u{feff}');
        let line = line.trim_end_matches(['\n', '\r']);
        text.push_str(line);
        if !goes_on(&text) {
            return Ok(Line::Text(joined(&text)));
        }
        text.push('\n');
    }
    Ok(match text.is_empty() {
        true => Line::End,
        false => Line::Text(joined(text.trim_end_matches(['\n', '\\']))),
    })
}

/// Whether a text ends with a backslash that is not itself escaped.
fn goes_on(text: &str) -> bool {
    let backslashes = text.len() - text.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

/// The text without the backslashes that only continued a line.
fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// Creates a file that only its owner may read, or restricts an existing one.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.flush()
}

/// The prompt before the line.
struct Mark(String);

impl Prompt for Mark {
    fn render_prompt_left(&self) -> std::borrow::Cow<'_, str> {
        self.0.as_str().into()
    }

    fn render_prompt_right(&self) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn render_prompt_multiline_indicator(&self) -> std::borrow::Cow<'_, str> {
        "  ".into()
    }

    fn render_prompt_history_search_indicator(
        &self,
        search: PromptHistorySearch,
    ) -> std::borrow::Cow<'_, str> {
        format!("(earlier: {}) ", search.term).into()
    }
}

/// Completes commands.
struct Commands;

impl Completer for Commands {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let typed = line.get(..position).unwrap_or_default();
        let suggestions: Vec<Suggestion> = commands::ALL
            .iter()
            .filter(|(name, ..)| typed.starts_with('/') && name.starts_with(typed))
            .map(|(name, arguments, about)| Suggestion {
                value: (*name).to_owned(),
                description: Some((*about).to_owned()),
                span: Span::new(0, position),
                append_whitespace: !arguments.is_empty(),
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// A line that ends with a backslash continues.
struct GoesOn;

impl Validator for GoesOn {
    fn validate(&self, line: &str) -> ValidationResult {
        if goes_on(line) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// Notes that something was typed: the line is empty again when Ctrl-C is reported.
struct Watcher(Arc<AtomicBool>);

impl Highlighter for Watcher {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        if !line.is_empty() {
            self.0.store(true, Ordering::Relaxed);
        }
        let mut text = StyledText::new();
        text.push((Default::default(), line.to_owned()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_pipe_go_on_after_a_backslash() {
        let mut input: &[u8] = b"\xef\xbb\xbfone\r\ntwo\\\nthree\\\\\n\nC:\\\\\nlast\\";
        let mut lines = Vec::new();
        loop {
            match read_pipe(&mut input).unwrap() {
                Line::Text(text) => lines.push(text),
                Line::End => break,
                Line::Interrupted { .. } => unreachable!("a pipe has no keys"),
            }
        }
        assert_eq!(lines, ["one", "two\nthree\\\\", "", "C:\\\\", "last"]);
    }

    #[test]
    fn commands_are_completed_and_messages_are_not() {
        let complete = |line: &str| -> Vec<String> {
            let found = Commands.complete(line, line.len());
            found
                .suggestions()
                .iter()
                .map(|one| one.value.clone())
                .collect()
        };
        assert_eq!(complete("/pre"), ["/preview"]);
        assert_eq!(complete("/un"), ["/undo", "/unpin"]);
        assert_eq!(complete("/").len(), commands::ALL.len());
        assert!(complete("pre").is_empty());
        assert!(complete("/pin x").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn the_history_belongs_to_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/history");
        make_private(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        make_private(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
