//! Tool uses as SpecStory writes them for human readers, and the parts of the call that they reveal.

use bytestring::ByteString;
use throughline_transcript::json::{self, Raw, Text};
use throughline_transcript::message::{Block, Content, ToolCall, ToolInput, ToolResult};

const OPENING: &str = "<tool-use ";
const CLOSING: &str = "</tool-use>";
/// How older exports begin a tool use, which then extends to the next heading.
const BARE_OPENING: &str = "Tool use: **";

/// One tool use.
pub(super) struct ToolUse<'a> {
    /// What SpecStory takes it for: `shell`, `read`, `write`, `search`, `task`, ...
    kind: &'a str,
    name: &'a str,
    /// The text before the output.
    arguments: &'a str,
    /// The text of a first fence in a language: a script or the content of a file.
    code: Option<&'a str>,
    /// The inside of the fence with the output.
    output: Option<&'a str>,
}

/// The byte behind the tool use that is open at `from`.
pub(super) fn end(text: &str, from: usize) -> Option<usize> {
    let found = memchr::memmem::find(&text.as_bytes()[from..], b"</details></tool-use>")?;
    Some(from + found + "</details>".len() + CLOSING.len())
}

/// Where the next reasoning or tool use begins in `text`, not at its start; its length if there is none.
pub(super) fn next_block(text: &str) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\n', &text.as_bytes()[at..]) {
        at += found + 1;
        let rest = &text[at..];
        if rest.starts_with(OPENING)
            || rest.starts_with("<think>")
            || rest.starts_with(BARE_OPENING)
        {
            return at;
        }
    }
    text.len()
}

impl<'a> ToolUse<'a> {
    /// Reads the tool use at the start of `text` and returns what comes after it.
    pub(super) fn parse(text: &'a str) -> Option<(Self, &'a str)> {
        if let Some(rest) = text.strip_prefix(BARE_OPENING) {
            let (name, body) = rest.split_once("**")?;
            return Some((Self::new("", name, body), ""));
        }
        if !text.starts_with(OPENING) {
            return None;
        }
        let (opening, rest) = text.split_once('>')?;
        let (body, after) = match rest.split_once("</details></tool-use>") {
            Some((body, after)) => (body, after),
            None => rest.split_once(CLOSING).unwrap_or((rest, "")),
        };
        let name = attribute(opening, "data-tool-name").unwrap_or_default();
        let kind = attribute(opening, "data-tool-type").unwrap_or_default();
        let body = match body.split_once("</summary>") {
            Some((summary, body)) if !summary.contains("```") => body,
            _ => body,
        };
        Some((Self::new(kind, name, body), after))
    }

    fn new(kind: &'a str, name: &'a str, body: &'a str) -> Self {
        let mut found = Self {
            kind,
            name,
            arguments: body,
            code: None,
            output: None,
        };
        let Some(first) = fence(body, 0) else {
            return found;
        };
        found.arguments = &body[..first.start];
        let takes_code = match kind {
            "shell" => matches!(
                first.language,
                "bash" | "sh" | "shell" | "zsh" | "powershell"
            ),
            "write" => !matches!(first.language, "" | "text"),
            _ => false,
        };
        if takes_code {
            // The output, if any, is in a fence of its own kind after the code.
            let output = fence_of_output(body, first.inside);
            let code_end = output.as_ref().map_or(body.len(), |output| output.start);
            found.code = Some(inside(&body[first.inside..code_end]));
            found.output = output.map(|output| inside(&body[output.inside..]));
        } else {
            found.output = Some(inside(&body[first.inside..]));
        }
        found
    }

    /// The call and its result.
    pub(super) fn into_blocks(self, source: &ByteString, id: ByteString) -> (Block, Block) {
        let call = ToolCall {
            id: id.clone(),
            name: source.slice_ref(self.name),
            input: self.input(source),
            is_server_side: false,
        };
        let output = self.output.filter(|output| !output.trim().is_empty());
        let result = ToolResult {
            call_id: id,
            content: output
                .map(|output| Block::text(Text::plain(source.slice_ref(output))))
                .into_iter()
                .collect(),
            is_error: output.and_then(is_error),
            is_server_side: false,
        };
        (
            Block::new(Content::ToolCall(call)),
            Block::new(Content::ToolResult(result)),
        )
    }

    fn input(&self, source: &ByteString) -> ToolInput {
        let mut fields = Fields::default();
        let arguments = self.arguments.trim();
        match self.kind {
            "shell" => {
                let (description, command) = match arguments.split_once('`') {
                    Some((description, code)) => (description, code.strip_suffix('`')),
                    None => (arguments, None),
                };
                fields.add("command", command.or(self.code));
                fields.add("description", Some(description.trim()));
            }
            "" => fields.add("command", code_span(arguments)),
            "read" => fields.add(
                if code_span(arguments).is_some_and(|path| path.contains("://")) {
                    "url"
                } else {
                    "file_path"
                },
                code_span(arguments),
            ),
            "write" => {
                let path = code_span(arguments).or_else(|| written_path(self.output?));
                fields.add("file_path", path);
                fields.add("content", self.code);
            }
            "search" | "grep" | "glob" => {
                for key in ["pattern", "path"] {
                    fields.add(key, named_span(arguments, key));
                }
            }
            "task" => {
                if let Some(todos) = todos(arguments) {
                    return ToolInput::Json(todos);
                }
            }
            _ => {}
        }
        if fields.is_empty() {
            let text = if arguments.is_empty() {
                self.code.unwrap_or_default()
            } else {
                arguments
            };
            return ToolInput::Text(Text::plain(source.slice_ref(text)));
        }
        fields.into_input()
    }
}

#[derive(Default)]
struct Fields(String);

impl Fields {
    fn add(&mut self, key: &str, value: Option<&str>) {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return;
        };
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        json::write_string(key, &mut self.0);
        self.0.push(':');
        json::write_string(value, &mut self.0);
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn into_input(mut self) -> ToolInput {
        self.0.push('}');
        match Raw::parse(self.0.as_str()) {
            Ok(raw) => ToolInput::Json(raw),
            Err(_) => ToolInput::Text(Text::plain(self.0)),
        }
    }
}

/// A fence: where its line begins, where its inside does, and the language behind the back-ticks.
struct Fence<'a> {
    start: usize,
    inside: usize,
    language: &'a str,
}

/// The first fence that begins on a line from byte `from` on.
fn fence(body: &str, from: usize) -> Option<Fence<'_>> {
    let mut at = from;
    loop {
        let found = memchr::memmem::find(&body.as_bytes()[at..], b"```")?;
        let start = at + found;
        let is_line_start = start == 0 || body.as_bytes()[start - 1] == b'\n';
        let line_end = memchr::memchr(b'\n', &body.as_bytes()[start..])
            .map_or(body.len(), |found| start + found);
        if is_line_start {
            return Some(Fence {
                start,
                inside: (line_end + 1).min(body.len()),
                language: body[start..line_end].trim_start_matches('`').trim(),
            });
        }
        at = line_end;
    }
}

/// The fence with the output behind code that begins at `from`: the first that opens with `text` behind a closing one.
fn fence_of_output(body: &str, from: usize) -> Option<Fence<'_>> {
    let mut at = from;
    let mut has_closed = false;
    while let Some(found) = fence(body, at) {
        if has_closed
            && matches!(found.language, "text" | "")
            && found.inside < body.trim_end().len()
        {
            return Some(found);
        }
        has_closed |= found.language.is_empty();
        at = found.inside;
    }
    None
}

/// The text of a fence up to its closing line, which is the last one: output may contain fences.
fn inside(text: &str) -> &str {
    let text = text.trim_end();
    text.strip_suffix("```").map_or(text, |text| {
        text.strip_suffix('\n')
            .unwrap_or(text)
            .trim_end_matches('\r')
    })
}

fn attribute<'a>(opening: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = opening.split_once(name)?;
    rest.strip_prefix("=\"")?.split('"').next()
}

fn code_span(text: &str) -> Option<&str> {
    text.split('`').nth(1)
}

/// The code span behind a word: ``pattern `x` ``, ``Pattern: `x` ``.
fn named_span<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = text.split('`');
    loop {
        let before = parts.next()?.trim_end().trim_end_matches(':');
        let span = parts.next()?;
        let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
        if word.eq_ignore_ascii_case(name) {
            return Some(span);
        }
    }
}

/// The file that the output of a write names.
fn written_path(output: &str) -> Option<&str> {
    let line = output.lines().next()?;
    let path = line
        .strip_prefix("The file ")
        .and_then(|rest| rest.split_once(" has been "))
        .map(|(path, _)| path)
        .or_else(|| line.strip_prefix("File created successfully at: "))?;
    Some(path.trim())
}

/// A list of tasks, `- [X] done`, as the input that the tool took.
fn todos(arguments: &str) -> Option<Raw> {
    let mut list = String::from("{\"todos\":[");
    let mut count = 0;
    for line in arguments.lines() {
        let Some((mark, task)) = line
            .trim_start()
            .strip_prefix("- [")
            .and_then(|rest| rest.split_once("] "))
        else {
            continue;
        };
        let status = match mark.trim() {
            "" => "pending",
            "x" | "X" => "completed",
            _ => "in_progress",
        };
        if count > 0 {
            list.push(',');
        }
        count += 1;
        // A picture before the task tells its priority.
        let task = task.trim_start_matches(|c: char| !c.is_ascii() && !c.is_alphanumeric());
        list.push_str("{\"content\":");
        json::write_string(task.trim(), &mut list);
        list.push_str(",\"status\":\"");
        list.push_str(status);
        list.push_str("\"}");
    }
    list.push_str("]}");
    Raw::parse(list).ok().filter(|_| count > 0)
}

/// Whether the output says that the tool failed; the export does not tell otherwise.
fn is_error(output: &str) -> Option<bool> {
    let failed = [
        "Error: ",
        "<tool_use_error>",
        "The user doesn't want to proceed",
    ]
    .iter()
    .any(|start| output.starts_with(start));
    let code = output
        .strip_prefix("Exit code ")
        .and_then(|rest| rest.split_whitespace().next());
    match (failed, code) {
        (true, _) => Some(true),
        (false, Some(code)) => Some(code != "0"),
        _ => None,
    }
}
