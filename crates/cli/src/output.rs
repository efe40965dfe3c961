//! Where things are written: standard output, standard error, files.
//!
//! Standard output carries the result and nothing else; everything about it goes to standard
//! error. Only this file looks at the environment: whether there is a terminal, and whether colours are wanted.
//!
//! A file is written next to its target, flushed to the disk and renamed in one step, so that neither a full disk nor
//! Ctrl-C leaves half a file. It belongs to the user alone: memories and transcripts are private.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle, presets};

use crate::error::{BUG_CODE, BUG_HINT, Failure, Kind};
use crate::markdown::Rendering;
use crate::terminal::{self, Colours, Look, harmless};

/// What is known about the streams.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    /// Standard input is a terminal.
    pub(crate) is_stdin_terminal: bool,
    /// Standard output is a terminal.
    pub(crate) is_stdout_terminal: bool,
    /// Standard error is a terminal.
    pub(crate) is_stderr_terminal: bool,
    stdout_has_colours: bool,
    stderr_has_colours: bool,
    /// The terminal can move its cursor.
    has_cursor: bool,
    /// The terminal shows more than ASCII.
    has_unicode: bool,
}

impl Console {
    /// Looks at the streams, `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM` and the locale.
    pub(crate) fn from_environment() -> Self {
        let has_colours = |choice| !matches!(choice, ColorChoice::Never);
        let term = std::env::var("TERM").unwrap_or_default();
        Self {
            is_stdin_terminal: io::stdin().is_terminal(),
            is_stdout_terminal: io::stdout().is_terminal(),
            is_stderr_terminal: io::stderr().is_terminal(),
            stdout_has_colours: has_colours(anstream::AutoStream::choice(&io::stdout())),
            stderr_has_colours: has_colours(anstream::AutoStream::choice(&io::stderr())),
            has_cursor: !matches!(term.as_str(), "" | "dumb"),
            has_unicode: locale_is_utf8(),
        }
    }

    /// The same, with colours as the user has settled.
    pub(crate) fn coloured(mut self, colours: Colours) -> Self {
        match colours {
            Colours::Auto => {}
            Colours::Always => {
                (self.stdout_has_colours, self.stderr_has_colours) = (true, true);
            }
            Colours::Never => {
                (self.stdout_has_colours, self.stderr_has_colours) = (false, false);
            }
        }
        self
    }

    /// What can be drawn on standard output; nothing in a pipe, and in a terminal that cannot move its cursor.
    pub(crate) fn look(&self) -> Option<Look> {
        (self.is_stdout_terminal && self.has_cursor).then(|| {
            let (columns, rows) = terminal::size();
            Look {
                columns: columns.max(20),
                rows: rows.max(2),
                has_colours: self.stdout_has_colours,
                has_unicode: self.has_unicode,
            }
        })
    }

    pub(crate) fn error(&self, text: &str) {
        self.say("error", Some(AnsiColor::Red), text);
    }

    pub(crate) fn warning(&self, text: &str) {
        self.say("warning", Some(AnsiColor::Yellow), text);
    }

    pub(crate) fn hint(&self, text: &str) {
        self.say("hint", Some(AnsiColor::Cyan), text);
    }

    pub(crate) fn note(&self, text: &str) {
        self.say("note", None, text);
    }

    /// A failure with its hints on standard error.
    pub(crate) fn failure(&self, failure: &Failure) {
        if failure.is_closed_pipe() {
            return;
        }
        self.error(failure.message());
        if let Some(hint) = failure.advice() {
            self.hint(hint);
        }
        if failure.kind() == Kind::Bug {
            self.hint(BUG_HINT);
        }
    }

    /// Reports the failure that ends the program, and returns its exit code.
    pub(crate) fn report(&self, failure: &Failure) -> ExitCode {
        self.failure(failure);
        ExitCode::from(match failure.kind() {
            Kind::Arguments | Kind::Input => 2,
            Kind::NothingToDo => 3,
            Kind::Output => 4,
            Kind::Unavailable => 5,
            Kind::Bug => BUG_CODE,
            Kind::ClosedPipe => 0,
        })
    }

    /// One line about the work that was done, for those who watch.
    pub(crate) fn summary(&self, text: &str) {
        if self.is_stderr_terminal {
            let style = if self.stderr_has_colours {
                Style::new().dimmed()
            } else {
                Style::new()
            };
            self.stderr(&format!("{style}{}{style:#}\n", harmless(text)));
        }
    }

    /// Asks the user about something. Text from elsewhere must be made [`harmless`] first.
    pub(crate) fn question(&self, text: &str) {
        self.stderr(text);
    }

    fn say(&self, label: &str, colour: Option<AnsiColor>, text: &str) {
        let style = match colour {
            Some(colour) if self.stderr_has_colours => {
                Style::new().bold().fg_color(Some(colour.into()))
            }
            None if self.stderr_has_colours => Style::new().bold(),
            _ => Style::new(),
        };
        self.stderr(&format!("{style}{label}:{style:#} {}\n", harmless(text)));
    }

    fn stderr(&self, text: &str) {
        // If standard error is closed, the error cannot be reported.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// A report on standard output. What comes from a transcript must be [`harmless`] in it.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        write_stdout(text.as_bytes())
    }

    /// A JSON document on standard output, indented.
    pub(crate) fn print_json(&self, document: &impl serde::Serialize) -> Result<(), Failure> {
        let mut json = serde_json::to_string_pretty(document)
            .map_err(|error| Failure::new(Kind::Bug, error.to_string()))?;
        json.push('\n');
        write_stdout(json.as_bytes())
    }

    /// A Markdown document on standard output: formatted in a terminal, as it is in a pipe.
    pub(crate) fn print_markdown(&self, markdown: &str) -> Result<(), Failure> {
        if !self.is_stdout_terminal {
            return write_stdout(markdown.as_bytes());
        }
        let (_, rows) = terminal::size();
        let mut rendering = Rendering::new(Look {
            columns: terminal::width(),
            rows,
            has_colours: self.stdout_has_colours,
            has_unicode: self.has_unicode,
        });
        let shown = rendering.push(markdown) + &rendering.end();
        write_stdout(shown.as_bytes())
    }

    /// A heading of a report on standard output.
    pub(crate) fn heading(&self, text: &str) -> String {
        if self.is_stdout_terminal && self.stdout_has_colours {
            let style = Style::new().bold();
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Columns on standard output: a drawn table in a terminal, plain columns in a pipe.
    pub(crate) fn table(&self, header: &[&str], rows: Vec<Vec<String>>) -> String {
        table(header, rows, self.drawn(self.is_stdout_terminal))
    }

    /// Columns inside an error message.
    pub(crate) fn error_table(&self, header: &[&str], rows: Vec<Vec<String>>) -> String {
        table(header, rows, self.drawn(self.is_stderr_terminal))
    }
}

impl Console {
    fn drawn(&self, is_terminal: bool) -> TableForm {
        match (is_terminal, self.has_unicode) {
            (false, _) => TableForm::Plain,
            (true, false) => TableForm::Ascii,
            (true, true) => TableForm::Unicode,
        }
    }
}

/// How a table is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableForm {
    /// Columns alone, for programs.
    Plain,
    /// With a line under the header.
    Ascii,
    Unicode,
}

/// Whether the locale's characters are UTF-8, by the first variable that says anything.
fn locale_is_utf8() -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty())
        .is_some_and(|value| {
            let value = value.to_ascii_lowercase();
            value.contains("utf-8") || value.contains("utf8")
        })
}

/// Tables in a terminal: one line, under the header.
const fn under_the_header(stroke: char) -> TableStyle {
    TableStyle::new().header_separator(LineStyle::none().fill(stroke).junction(stroke))
}

fn table(header: &[&str], rows: Vec<Vec<String>>, drawn: TableForm) -> String {
    let is_terminal = drawn != TableForm::Plain;
    let mut table = Table::new();
    table.force_no_tty();
    if is_terminal {
        let stroke = if drawn == TableForm::Unicode {
            '─'
        } else {
            '-'
        };
        table
            .load_style(under_the_header(stroke))
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(terminal::width()).unwrap_or(80));
    } else {
        table.load_style(presets::NOTHING);
    }
    let cells = |row: &[String]| -> Vec<String> {
        row.iter()
            .map(|cell| harmless(cell).replace(['\n', '\t'], " "))
            .collect()
    };
    if !header.is_empty() {
        table.set_header(header.to_vec());
    }
    for row in &rows {
        table.add_row(cells(row));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if !is_terminal {
            column.set_padding((0, 2));
        }
        // Numbers are compared by their ends.
        let is_number = |row: &Vec<String>| {
            row.get(index).is_none_or(|cell| {
                cell.chars()
                    .all(|c| c.is_ascii_digit() || matches!(c, ',' | '.' | '-' | '%' | '$'))
            })
        };
        if rows.iter().all(is_number) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    let mut text: String = table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn write_stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::writing("standard output", &error))
}

/// Writes a document to `path`, or to standard output without one or with `-`.
pub(crate) fn write(path: Option<&Path>, document: &str) -> Result<(), Failure> {
    match path {
        Some(path) if path.as_os_str() != "-" => write_file(path, document),
        _ => write_stdout(document.as_bytes()),
    }
}

/// The file that is being written, to be taken away on Ctrl-C.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Checks that `path` looks writable: better now than after the work.
pub(crate) fn check_place(path: Option<&Path>) -> Result<(), Failure> {
    match path {
        Some(path) if path.as_os_str() != "-" => place_of(path).map(drop),
        _ => Ok(()),
    }
}

/// Where a file is written.
enum Place {
    /// A file, or none yet.
    File(PathBuf),
    /// A device or pipe: it cannot be replaced, only written to.
    Device(PathBuf),
}

fn place_of(path: &Path) -> Result<Place, Failure> {
    // A link stays a link: its target is replaced.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match place.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            return Err(Failure::new(
                Kind::Output,
                format!("cannot write {}: it is a folder", path.display()),
            )
            .hint("name a file in it"));
        }
        Ok(metadata) if !metadata.is_file() => return Ok(Place::Device(place)),
        _ => {}
    }
    let folder = folder_of(&place);
    if !folder.is_dir() {
        return Err(Failure::new(
            Kind::Output,
            format!(
                "cannot write {}: there is no folder {}",
                path.display(),
                folder.display()
            ),
        )
        .hint(format!("create it first: mkdir -p {}", folder.display())));
    }
    Ok(Place::File(place))
}

fn folder_of(place: &Path) -> &Path {
    match place.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn write_file(path: &Path, document: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::writing(path.display(), &error);
    let place = match place_of(path)? {
        Place::File(place) => place,
        Place::Device(place) => {
            return std::fs::OpenOptions::new()
                .write(true)
                .open(&place)
                .and_then(|mut file| {
                    file.write_all(document.as_bytes())
                        .and_then(|()| file.flush())
                })
                .map_err(failed);
        }
    };
    let folder = folder_of(&place);
    clean_up_on_interrupt();
    // Readable by the owner alone from the first byte on.
    let mut file = tempfile::Builder::new()
        .prefix(".throughline-")
        .tempfile_in(folder)
        .map_err(failed)?;
    remember_unfinished(Some(file.path().to_owned()));
    let written = file
        .write_all(document.as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .and_then(|()| file.persist(&place).map(drop).map_err(|error| error.error));
    remember_unfinished(None);
    written.map_err(failed)?;
    // The move itself is on the disk once the folder is. Not every file system can do this, and the file is whole anyway.
    let _ = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn remember_unfinished(path: Option<PathBuf>) {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        *unfinished = path;
    }
}

/// Elsewhere an interrupt may leave a hidden file behind, never half of the one that was asked for.
#[cfg(not(unix))]
fn clean_up_on_interrupt() {}

/// Whether Ctrl-C means something else than the end of the program.
static INTERRUPTS_ARE_TAKEN: AtomicBool = AtomicBool::new(false);

/// From now on, Ctrl-C is handled elsewhere: it does not end the program while a file is written.
pub(crate) fn leave_interrupts_alone() {
    INTERRUPTS_ARE_TAKEN.store(true, Ordering::Relaxed);
}

/// From now on, Ctrl-C takes the unfinished file away before it ends the program.
#[cfg(unix)]
fn clean_up_on_interrupt() {
    static STARTED: std::sync::Once = std::sync::Once::new();
    if INTERRUPTS_ARE_TAKEN.load(Ordering::Relaxed) {
        return;
    }
    STARTED.call_once(|| {
        // Without the watcher an interrupt still ends the program; only a hidden file may stay.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
        else {
            return;
        };
        let Ok(mut interrupts) = ({
            let _entered = runtime.enter();
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
        }) else {
            return;
        };
        std::thread::spawn(move || {
            runtime.block_on(interrupts.recv());
            if let Ok(Some(path)) = UNFINISHED.lock().as_deref() {
                // If it was moved to its place meanwhile, it is whole and stays there.
                let _ = std::fs::remove_file(path);
            }
            std::process::exit(130);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_tables_have_columns_without_frames() {
        let rows = vec![
            vec!["a".to_owned(), "1".to_owned()],
            vec!["long".to_owned(), "1,000".to_owned()],
        ];
        assert_eq!(
            table(&["name", "n"], rows, TableForm::Plain),
            "name      n\na         1\nlong  1,000\n"
        );
    }

    #[test]
    fn tables_are_ascii_where_nothing_else_is_shown() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()]];
        let ascii = table(&["name", "n"], rows.clone(), TableForm::Ascii);
        assert!(ascii.is_ascii() && ascii.contains("---"), "{ascii}");
        let unicode = table(&["name", "n"], rows, TableForm::Unicode);
        assert!(unicode.contains("───"), "{unicode}");
    }
}
