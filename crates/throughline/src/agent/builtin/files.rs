//! Files: read, listed, searched.

use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use throughline_transcript::text::head;

use super::root::{Root, blocking, is_binary};
use crate::agent::tool::{CallContext, Tool, ToolError};

/// Lines that are read by default.
const LINES: usize = 2_000;
/// Of a file this much is read at a time; bytes.
const READ_BYTES_MAX: usize = 256 * 1024;
/// Files that are listed.
const LISTED_MAX: usize = 1_000;
/// Lines that a search gives.
const FOUND_MAX: usize = 200;
/// Of a line that was found; bytes.
const LINE_BYTES_MAX: usize = 300;

/// The tool `read_file`.
#[derive(Clone, Debug)]
pub struct ReadFile {
    root: Root,
}

/// The tool `list_files`.
#[derive(Clone, Debug)]
pub struct ListFiles {
    root: Root,
}

/// The tool `search_files`.
#[derive(Clone, Debug)]
pub struct SearchFiles {
    root: Root,
}

/// Reads text files.
#[must_use]
pub fn read_file(root: &Root) -> ReadFile {
    ReadFile { root: root.clone() }
}

/// Lists files, without those that ignore files name.
#[must_use]
pub fn list_files(root: &Root) -> ListFiles {
    ListFiles { root: root.clone() }
}

/// Looks for lines by a regular expression.
#[must_use]
pub fn search_files(root: &Root) -> SearchFiles {
    SearchFiles { root: root.clone() }
}

/// What is to be read.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct ReadInput {
    /// The file, relative to the working folder.
    path: String,
    /// The first line to read, from 1.
    offset: Option<usize>,
    /// How many lines to read; 2000 unless said otherwise.
    limit: Option<usize>,
}

impl Tool for ReadFile {
    type Input = ReadInput;

    fn name(&self) -> &str {
        "read_file"
    }

    fn description(&self) -> &str {
        "Reads a text file, or some lines of it."
    }

    async fn call(&self, input: ReadInput, _: CallContext) -> Result<String, ToolError> {
        let root = self.root.clone();
        blocking(move || {
            let place = root.place(&input.path)?;
            let bytes = root.read(&place)?;
            if is_binary(&bytes) {
                return Err(ToolError::new(format!(
                    "{} is no text: {} bytes",
                    place.display(),
                    bytes.len()
                )));
            }
            let text = String::from_utf8_lossy(&bytes);
            let first = input.offset.unwrap_or(1).max(1);
            lines(&text, first, input.limit.unwrap_or(LINES).max(1))
        })
        .await
    }
}

/// Some lines, and where to go on if there are more.
fn lines(text: &str, first: usize, limit: usize) -> Result<String, ToolError> {
    let total = text.lines().count();
    if first > total.max(1) {
        return Err(ToolError::new(format!("the file has {total} lines")));
    }
    let mut shown = String::new();
    let mut last = first - 1;
    for line in text.split_inclusive('\n').skip(first - 1).take(limit) {
        if shown.len() + line.len() > READ_BYTES_MAX {
            if shown.is_empty() {
                let start = head(line, READ_BYTES_MAX);
                return Ok(format!(
                    "{start}\n[line {first} of {total} has {} bytes; this is its beginning]",
                    line.len()
                ));
            }
            break;
        }
        shown.push_str(line);
        last += 1;
    }
    if first == 1 && last == total {
        return Ok(shown);
    }
    let more = if last < total {
        format!("; go on with offset {}", last + 1)
    } else {
        String::new()
    };
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    Ok(format!("{shown}[lines {first} to {last} of {total}{more}]"))
}

/// What is to be listed.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct ListInput {
    /// The folder, relative to the working folder; all of that unless said otherwise.
    path: Option<String>,
    /// Only files that this glob fits, such as *.rs or src/**/*.md.
    glob: Option<String>,
}

impl Tool for ListFiles {
    type Input = ListInput;

    fn name(&self) -> &str {
        "list_files"
    }

    fn description(&self) -> &str {
        "Lists the files in a folder and those below it, by path. Ignored files (.gitignore) are left out."
    }

    async fn call(&self, input: ListInput, context: CallContext) -> Result<String, ToolError> {
        let root = self.root.clone();
        blocking(move || {
            let place = root.place(input.path.as_deref().unwrap_or("."))?;
            let mut listed = String::new();
            let mut total = 0;
            root.walk(&place, input.glob.as_deref(), |path| {
                total += 1;
                if total <= LISTED_MAX {
                    listed.push_str(&path.display().to_string());
                    listed.push('\n');
                }
                !context.cancelled.is_cancelled()
            })?;
            match total {
                0 => Ok("(no files)".to_owned()),
                1..=LISTED_MAX => Ok(listed),
                _ => Ok(format!(
                    "{listed}[the first {LISTED_MAX} of {total} files; name a folder or a glob]"
                )),
            }
        })
        .await
    }
}

/// What is looked for.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct SearchInput {
    /// A regular expression (Rust's syntax), matched line by line.
    pattern: String,
    /// The folder or file to search, relative to the working folder; all of that unless said otherwise.
    path: Option<String>,
    /// Only files that this glob fits, such as *.rs.
    glob: Option<String>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
}

impl Tool for SearchFiles {
    type Input = SearchInput;

    fn name(&self) -> &str {
        "search_files"
    }

    fn description(&self) -> &str {
        "Looks for lines in files by a regular expression; gives path, line number and line. Ignored files (.gitignore) \
         and files that are no text are left out."
    }

    async fn call(&self, input: SearchInput, context: CallContext) -> Result<String, ToolError> {
        let root = self.root.clone();
        let pattern = RegexBuilder::new(&input.pattern)
            .case_insensitive(input.ignore_case)
            .build()?;
        blocking(move || {
            let place = root.place(input.path.as_deref().unwrap_or("."))?;
            let mut found = String::new();
            let mut total = 0;
            let mut skipped = Vec::new();
            root.walk(&place, input.glob.as_deref(), |path| {
                match root.read(path) {
                    Ok(bytes) if is_binary(&bytes) => {}
                    Ok(bytes) => {
                        let text = String::from_utf8_lossy(&bytes);
                        for (number, line) in text.lines().enumerate() {
                            if !pattern.is_match(line) {
                                continue;
                            }
                            total += 1;
                            if total <= FOUND_MAX {
                                let line = head(line, LINE_BYTES_MAX);
                                found.push_str(&format!(
                                    "{}:{}: {line}\n",
                                    path.display(),
                                    number + 1
                                ));
                            }
                        }
                    }
                    Err(error) => skipped.push(error.message().to_owned()),
                }
                !context.cancelled.is_cancelled()
            })?;
            if total == 0 {
                found.push_str("(nothing found)\n");
            } else if total > FOUND_MAX {
                found.push_str(&format!(
                    "[the first {FOUND_MAX} of {total} lines; narrow the search]\n"
                ));
            }
            if let Some(first) = skipped.first() {
                let count = skipped.len();
                found.push_str(&format!("[{count} files were not searched; {first}]\n"));
            }
            Ok(found)
        })
        .await
    }
}
