//! Parses what Cline and Roo write into the text of messages: calls as XML, results, the state of the editor.
//!
//! ```text
//! assistant: I look into it. <read_file><path>a.rs</path></read_file>
//! user:      [read_file for 'a.rs'] Result:
//!            fn main() {}
//!            <environment_details> ... </environment_details>
//! ```

use std::collections::HashSet;

use bytestring::ByteString;
use throughline_transcript::json::{Raw, Text, write_string};
use throughline_transcript::message::{Author, Block, Content, ToolCall, ToolInput, ToolResult};
use throughline_transcript::text_result;

/// Names of tools whose calls can occur as XML in a text.
const TOOLS: &[&str] = &[
    "access_mcp_resource",
    "apply_diff",
    "apply_patch",
    "ask_followup_question",
    "attempt_completion",
    "browser_action",
    "codebase_search",
    "edit_file",
    "execute_command",
    "fetch_instructions",
    "insert_content",
    "list_code_definition_names",
    "list_files",
    "new_task",
    "plan_mode_respond",
    "read_file",
    "replace_in_file",
    "run_slash_command",
    "search_and_replace",
    "search_files",
    "switch_mode",
    "update_todo_list",
    "use_mcp_tool",
    "web_fetch",
    "write_to_file",
];

/// Longest text that is looked through for XML, in bytes.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many parameters a call may have.
const PARAMETERS_MAX: usize = 64;

/// Calls of the last response. Those in XML, which have no ids, wait for their result: the names, oldest first.
#[derive(Default)]
pub(super) struct PendingCalls {
    unnamed: Vec<ByteString>,
    /// Ids and names. Their results can be text, too.
    named: Vec<(ByteString, ByteString)>,
    /// Ids of those that have a result.
    answered: Vec<ByteString>,
}

/// Takes the calls out of the texts of a response. There is no id in XML: a call and its result have an empty one.
pub(super) fn take_calls(blocks: &mut Vec<Block>) -> PendingCalls {
    let mut pending = PendingCalls::default();
    let mut parted = Vec::with_capacity(blocks.len());
    for block in std::mem::take(blocks) {
        if let Content::ToolCall(call) = &block.content {
            pending.named.push((call.id.clone(), call.name.clone()));
        }
        let found = match &block.content {
            Content::Text(text) if text.encoded_len() <= TEXT_BYTES_MAX => calls(&text.decode()),
            _ => Vec::new(),
        };
        if found.is_empty() {
            parted.push(block);
            continue;
        }
        for piece in found {
            match piece {
                Piece::Text(text) => parted.push(Block {
                    content: Content::Text(text.into()),
                    raw: None,
                }),
                Piece::Call { name, input } => {
                    let name = ByteString::from(name);
                    pending.unnamed.push(name.clone());
                    parted.push(Block::new(Content::ToolCall(ToolCall {
                        id: ByteString::new(),
                        name,
                        input,
                        is_server_side: false,
                    })));
                }
            }
        }
    }
    *blocks = parted;
    pending
}

enum Piece {
    Text(String),
    Call { name: String, input: ToolInput },
}

/// Text and calls in their order; nothing if there is no call.
fn calls(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // A name whose closing tag is missing once is missing for the rest of the text.
    let mut unclosed: HashSet<&str> = HashSet::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + found;
        at = start + 1;
        let Some(name) = opening(text, start).filter(|name| TOOLS.contains(name)) else {
            continue;
        };
        if unclosed.contains(name) {
            continue;
        }
        let Some((inside, end)) = inside(text, start, name) else {
            unclosed.insert(name);
            continue;
        };
        push_text(&mut pieces, &text[from..start]);
        pieces.push(Piece::Call {
            name: name.to_owned(),
            input: parameters(inside),
        });
        (from, at) = (end, end);
    }
    if !pieces.is_empty() {
        push_text(&mut pieces, &text[from..]);
    }
    pieces
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    let text = text.trim();
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

/// The name of the element that opens at `start`.
fn opening(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start + 1..)?;
    // No name is longer than that.
    let head = &rest[..rest.floor_char_boundary(64)];
    let (name, _) = head.split_once('>')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// What is inside of the element `name` that opens at `start`, and where it ends.
fn inside<'a>(text: &'a str, start: usize, name: &str) -> Option<(&'a str, usize)> {
    let from = start + name.len() + 2;
    let rest = text.get(from..)?;
    let closing = format!("</{name}>");
    let length = memchr::memmem::find(rest.as_bytes(), closing.as_bytes())?;
    Some((&rest[..length], from + length + closing.len()))
}

/// The parameters of a call as a JSON object of strings; text without parameters stays text.
fn parameters(text: &str) -> ToolInput {
    let mut json = String::from("{");
    let mut at = 0;
    for _ in 0..PARAMETERS_MAX {
        let Some(found) = memchr::memchr(b'<', &text.as_bytes()[at..]) else {
            break;
        };
        let start = at + found;
        at = start + 1;
        let Some(name) = opening(text, start) else {
            continue;
        };
        let Some((value, end)) = inside(text, start, name) else {
            continue;
        };
        if json.len() > 1 {
            json.push(',');
        }
        write_string(name, &mut json);
        json.push(':');
        write_string(value.trim_matches('\n'), &mut json);
        at = end;
    }
    json.push('}');
    match Raw::parse(json) {
        Ok(raw) if raw.as_str() != "{}" => ToolInput::Json(raw),
        _ => ToolInput::Text(Text::from(text.trim())),
    }
}

/// Splits the blocks of a user message by who wrote them: results of tools, the state of the editor, the user.
pub(super) fn parted(blocks: Vec<Block>, pending: &mut PendingCalls) -> Vec<(Author, Vec<Block>)> {
    let mut parts = Parts::default();
    // The heading of a result can be a separate block; then the next text is the result.
    let mut headed: Option<(ByteString, String)> = None;
    for block in blocks {
        let text = match &block.content {
            Content::Text(text) if text.encoded_len() <= TEXT_BYTES_MAX => text.decode(),
            Content::ToolResult(result) => {
                pending.answered.push(result.call_id.clone());
                let tool = pending.tool_of(&result.call_id);
                let said = result
                    .texts()
                    .find_map(|text| text_result::words(tool, &text.decode()).map(str::to_owned));
                parts.add(Author::Role, block);
                parts.add_words(said);
                continue;
            }
            _ => {
                parts.add(Author::Role, block);
                continue;
            }
        };
        let trimmed = text.trim_start();
        if NOTICES.iter().any(|start| trimmed.starts_with(start)) {
            parts.add(Author::Client, block);
        } else if let Some((tool, output)) = text_result::heading(trimmed)
            && let Some(id) = pending.take(tool)
        {
            if output.is_empty() {
                headed = Some((id, tool.to_owned()));
            } else {
                parts.add_result(id, tool, output);
            }
        } else if let Some((id, tool)) = headed.take() {
            parts.add_result(id, &tool, trimmed);
        } else if let Some(words) = text_result::SPEECH
            .iter()
            .find_map(|tag| text_result::whole_element(trimmed, tag))
        {
            let content = Content::Text(words.to_owned().into());
            parts.add(
                Author::Role,
                Block {
                    content,
                    raw: block.raw.clone(),
                },
            );
        } else {
            parts.add(Author::Role, block);
        }
    }
    if let Some((id, tool)) = headed {
        parts.add_result(id, &tool, "");
    }
    parts.0
}

impl PendingCalls {
    /// The id of a call of `tool` that waits for its result, empty for a call in XML; it waits no longer.
    fn take(&mut self, tool: &str) -> Option<ByteString> {
        if let Some(place) = self.unnamed.iter().position(|name| name == tool) {
            self.unnamed.remove(place);
            return Some(ByteString::new());
        }
        let waits =
            |(id, name): &&(ByteString, ByteString)| name == tool && !self.answered.contains(id);
        let id = self.named.iter().find(waits)?.0.clone();
        self.answered.push(id.clone());
        Some(id)
    }

    /// The tool that a call with this id is of; nothing where that is not known.
    fn tool_of(&self, id: &str) -> &str {
        let call = self.named.iter().find(|(known, _)| known == id);
        call.map_or("", |(_, name)| name)
    }
}

#[derive(Default)]
struct Parts(Vec<(Author, Vec<Block>)>);

impl Parts {
    fn add(&mut self, author: Author, block: Block) {
        match self.0.last_mut() {
            Some((last, blocks)) if *last == author => blocks.push(block),
            _ => self.0.push((author, vec![block])),
        }
    }

    fn add_result(&mut self, call_id: ByteString, tool: &str, output: &str) {
        let output = output.trim();
        let is_error = output
            .starts_with("The tool execution failed")
            .then_some(true);
        let content = if output.is_empty() {
            Vec::new()
        } else {
            vec![Block::text(output.to_owned())]
        };
        let result = ToolResult {
            call_id,
            content,
            is_error,
            is_server_side: false,
        };
        self.add(Author::Role, Block::new(Content::ToolResult(result)));
        self.add_words(text_result::words(tool, output).map(str::to_owned));
    }

    fn add_words(&mut self, words: Option<String>) {
        if let Some(words) = words {
            self.add(Author::Role, Block::text(words));
        }
    }
}

/// Beginnings of texts that the client writes in the name of the user.
const NOTICES: &[&str] = &[
    "<environment_details>",
    "<explicit_instructions",
    "[ERROR]",
    "[TASK RESUMPTION]",
    "# task_progress",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = calls(text)
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Call { name, input } => format!("{name} {input:?}"),
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn calls_are_found_between_texts() {
        check("no call <b>here</b> a < b", &[]);
        check(
            "First.\n<write_to_file>\n<path>a.rs</path>\n<content>\nlet a = \"<b>\";\n</content>\n</write_to_file>\nThen <execute_command><command>ls</command></execute_command>",
            &[
                "First.",
                r#"write_to_file Json({"path":"a.rs","content":"let a = \"<b>\";"})"#,
                "Then",
                r#"execute_command Json({"command":"ls"})"#,
            ],
        );
        check(
            "<list_files> here </list_files>",
            &["list_files Text(\"here\")"],
        );
        check("<read_file><path>never closed", &[]);
    }

    #[test]
    fn many_open_elements_take_linear_time() {
        let text = "<read_file>".repeat(200_000);
        check(&text, &[]);
    }
}
