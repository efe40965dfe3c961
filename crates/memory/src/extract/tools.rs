//! The effects of a tool call, independent of the tool's name: files it touches, commands it runs, plans it records.

use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{ToolCall, ToolInput};

/// What a call does.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Action {
    /// Files and what happens to them.
    pub(crate) files: Vec<(String, FileUse)>,
    /// A command line.
    pub(crate) command: Option<String>,
    /// A plan or todo list, as it is after the call.
    pub(crate) plan: Option<Vec<PlanStep>>,
    /// The short arguments, one a line: what a reader sees of the call.
    pub(crate) shown: String,
    /// Text that is written into files.
    pub(crate) written: Vec<String>,
}

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUse {
    Read,
    Changed,
    Created,
    Deleted,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanStep {
    pub(crate) text: String,
    pub(crate) state: PlanState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanState {
    Open,
    InProgress,
    Done,
}

/// Arguments longer than this are content, not what a reader sees of the call; bytes.
const SHOWN_BYTES_MAX: usize = 1500;
/// Of content this much is looked at, bytes.
const WRITTEN_BYTES_MAX: usize = 20_000;

/// Reads a call.
pub(crate) fn action(call: &ToolCall) -> Action {
    let mut action = Action::default();
    let name = call.name.to_ascii_lowercase();
    match &call.input {
        ToolInput::Text(text) => read_text_input(&name, &text.decode(), &mut action),
        ToolInput::Json(raw) if raw.kind() == Kind::Object => read_fields(&name, raw, &mut action),
        ToolInput::Json(raw) => {
            let text = raw.as_text().map_or_else(
                || raw.as_str().to_owned(),
                |text| text.decode().into_owned(),
            );
            read_text_input(&name, &text, &mut action);
        }
    }
    action
}

fn read_fields(name: &str, input: &Raw, action: &mut Action) {
    let kind = ToolKind::of(name);
    let mut path = None;
    let mut subcommand = None;
    let mut writes = false;
    for (key, value) in input.object() {
        let key = key.decode();
        let key = key.as_ref();
        if is_plan_key(key) && value.kind() == Kind::Array {
            if let Some(plan) = plan(&value) {
                action.plan = Some(plan);
            }
            continue;
        }
        let Some(text) = value.as_text() else {
            if value.kind() == Kind::Array && is_command_key(key) {
                let words: Vec<_> = value
                    .array()
                    .filter_map(|word| Some(word.as_text()?.decode().into_owned()))
                    .collect();
                let command = shell_words(words);
                show(&command, action);
                action.command = Some(command);
            } else if value.kind() == Kind::Array && (key == "edits" || key == "replacements") {
                writes = true;
                for edit in value.array() {
                    for (_, part) in edit.object() {
                        if let Some(text) = part.as_text() {
                            written(text.decode().into_owned(), action);
                        }
                    }
                }
            } else if value.kind() == Kind::Array && is_path_key(key.trim_end_matches('s')) {
                for element in value.array().take(50) {
                    if let Some(text) = element.as_text() {
                        let text = text.decode().into_owned();
                        show(&text, action);
                        action.files.push((text, FileUse::Read));
                    }
                }
            } else if value.len() <= SHOWN_BYTES_MAX
                && matches!(value.kind(), Kind::Object | Kind::Array)
            {
                show(value.as_str(), action);
            } else if value.kind() == Kind::Number {
                show(&format!("{key}={}", value.as_str()), action);
            }
            continue;
        };
        if is_content_key(key) {
            writes = true;
            written(text.decode().into_owned(), action);
        } else if text.encoded_len() <= SHOWN_BYTES_MAX * 2 {
            let text = text.decode();
            if is_path_key(key) {
                path.get_or_insert_with(|| text.clone().into_owned());
            } else if is_command_key(key) {
                if is_subcommand(&text) {
                    subcommand = Some(text.clone().into_owned());
                } else {
                    action.command = Some(text.clone().into_owned());
                }
            } else if matches!(key, "patch" | "input" | "diff") && text.contains("***") {
                read_patch(&text, action);
            }
            if text.len() <= SHOWN_BYTES_MAX {
                show(&text, action);
            }
        } else if is_command_key(key) {
            let text = text.decode();
            action.command = Some(text[..text.floor_char_boundary(SHOWN_BYTES_MAX)].to_owned());
            written(text.into_owned(), action);
        } else if matches!(key, "patch" | "input" | "diff") {
            let text = text.decode();
            read_patch(&text, action);
            written(text.into_owned(), action);
        } else {
            written(text.decode().into_owned(), action);
        }
    }
    if let Some(command) = &action.command
        && (kind == ToolKind::Shell || action.files.is_empty())
    {
        let command = command.clone();
        read_command(&command, action);
    }
    if let Some(path) = path {
        let file_use = match (subcommand.as_deref(), kind) {
            (Some("view"), _) => FileUse::Read,
            (Some("create"), _) => FileUse::Created,
            (Some(_), _) => FileUse::Changed,
            (None, ToolKind::Create) => FileUse::Created,
            (None, ToolKind::Edit) => FileUse::Changed,
            (None, ToolKind::Delete) => FileUse::Deleted,
            (None, ToolKind::Shell | ToolKind::Read) => FileUse::Read,
            (None, ToolKind::Other) => {
                if writes {
                    FileUse::Changed
                } else {
                    FileUse::Read
                }
            }
        };
        action.files.push((path, file_use));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolKind {
    Read,
    Edit,
    Create,
    Delete,
    Shell,
    Other,
}

impl ToolKind {
    fn of(name: &str) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        if has(&["todo", "plan"]) {
            Self::Other
        } else if has(&["bash", "shell", "exec", "terminal", "command", "run_"]) {
            Self::Shell
        } else if has(&["delete", "remove"]) {
            Self::Delete
        } else if has(&[
            "edit",
            "replace",
            "patch",
            "insert",
            "apply",
            "update_file",
            "modify",
        ]) {
            Self::Edit
        } else if has(&["write", "create"]) {
            Self::Create
        } else if has(&[
            "read", "view", "open", "cat", "grep", "glob", "search", "list", "find", "ls",
        ]) {
            Self::Read
        } else {
            Self::Other
        }
    }
}

fn is_path_key(key: &str) -> bool {
    matches!(
        key,
        "file_path"
            | "path"
            | "filePath"
            | "filename"
            | "file_name"
            | "file"
            | "filepath"
            | "notebook_path"
            | "target_file"
            | "absolute_path"
            | "relative_path"
            | "AbsolutePath"
            | "TargetFile"
            | "relPath"
    )
}

fn is_command_key(key: &str) -> bool {
    matches!(
        key,
        "command"
            | "cmd"
            | "commands"
            | "script"
            | "CommandLine"
            | "shell_command"
            | "bash_command"
    )
}

fn is_content_key(key: &str) -> bool {
    matches!(
        key,
        "content"
            | "contents"
            | "new_string"
            | "old_string"
            | "newString"
            | "oldString"
            | "file_text"
            | "new_str"
            | "old_str"
            | "newText"
            | "oldText"
            | "new_text"
            | "old_text"
            | "new_source"
            | "code_edit"
            | "replacement"
            | "CodeContent"
    )
}

fn is_plan_key(key: &str) -> bool {
    matches!(
        key,
        "todos" | "plan" | "todo_list" | "todoList" | "tasks" | "steps" | "items"
    )
}

fn is_subcommand(text: &str) -> bool {
    matches!(
        text,
        "view" | "create" | "str_replace" | "insert" | "undo_edit" | "delete" | "rename"
    )
}

fn show(text: &str, action: &mut Action) {
    if action.shown.len() + text.len() < 2 * SHOWN_BYTES_MAX {
        action.shown.push_str(text);
        action.shown.push('\n');
    }
}

fn written(mut text: String, action: &mut Action) {
    text.truncate(text.floor_char_boundary(WRITTEN_BYTES_MAX));
    action.written.push(text);
}

fn shell_words(words: Vec<String>) -> String {
    match words.as_slice() {
        [shell, flag, rest]
            if shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c') =>
        {
            rest.clone()
        }
        _ => words.join(" "),
    }
}

fn plan(value: &Raw) -> Option<Vec<PlanStep>> {
    let mut steps = Vec::new();
    for element in value.array().take(200) {
        let mut text = None;
        let mut state = PlanState::Open;
        let mut has_state = false;
        for (key, value) in element.object() {
            let Some(value) = value.as_text() else {
                continue;
            };
            match key.decode().as_ref() {
                "content" | "step" | "text" | "title" | "description" | "task" | "subject" => {
                    text.get_or_insert_with(|| value.decode().into_owned());
                }
                "status" | "state" => {
                    has_state = true;
                    state = match value.decode().as_ref() {
                        "completed" | "done" | "complete" | "finished" | "cancelled"
                        | "canceled" => PlanState::Done,
                        "in_progress" | "in-progress" | "inProgress" | "active" | "doing" => {
                            PlanState::InProgress
                        }
                        _ => PlanState::Open,
                    };
                }
                _ => {}
            }
        }
        if let (Some(text), true) = (text, has_state) {
            steps.push(PlanStep { text, state });
        }
    }
    (!steps.is_empty()).then_some(steps)
}

fn read_text_input(name: &str, text: &str, action: &mut Action) {
    if text.contains("*** ") {
        read_patch(text, action);
    }
    if ToolKind::of(name) == ToolKind::Shell && action.files.is_empty() {
        let command = text[..text.floor_char_boundary(SHOWN_BYTES_MAX)].to_owned();
        read_command(&command, action);
        show(&command, action);
        action.command = Some(command);
    } else if text.len() <= SHOWN_BYTES_MAX && action.files.is_empty() {
        show(text, action);
    } else {
        written(text.to_owned(), action);
    }
}

/// The patch form with `*** Update File:` lines, and unified diffs.
fn read_patch(text: &str, action: &mut Action) {
    for line in text.lines() {
        let (path, file_use) = if let Some(path) = line.strip_prefix("*** Update File: ") {
            (path, FileUse::Changed)
        } else if let Some(path) = line.strip_prefix("*** Add File: ") {
            (path, FileUse::Created)
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            (path, FileUse::Deleted)
        } else if let Some(path) = line.strip_prefix("*** Move to: ") {
            (path, FileUse::Created)
        } else if let Some(path) = line.strip_prefix("+++ b/") {
            (path, FileUse::Changed)
        } else {
            continue;
        };
        let path = path.trim();
        if !path.is_empty() && path.len() < 300 && action.files.len() < 200 {
            action.files.push((path.to_owned(), file_use));
            show(path, action);
        }
    }
}

/// Files that a command line writes, moves or removes: redirections, `sed -i`, `tee`, `mv`, `rm`, `touch`, `apply_patch`.
fn read_command(command: &str, action: &mut Action) {
    if command.contains("*** Begin Patch") {
        read_patch(command, action);
        return;
    }
    let mut is_in_document = None::<String>;
    for line in command.lines().take(400) {
        if let Some(end) = &is_in_document {
            if line.trim() == end {
                is_in_document = None;
            }
            continue;
        }
        for part in line.split(['|', ';']).flat_map(|part| part.split("&&")) {
            read_simple_command(part.trim(), action);
        }
        if let Some((_, mark)) = line.split_once("<<") {
            let mark = mark.trim_start_matches(['-', '~']).trim();
            let mark = mark
                .split_whitespace()
                .next()
                .unwrap_or("")
                .trim_matches(['\'', '"', '\\']);
            if !mark.is_empty() && !mark.starts_with('<') {
                is_in_document = Some(mark.to_owned());
            }
        }
    }
}

fn read_simple_command(command: &str, action: &mut Action) {
    let words: Vec<&str> = command.split_whitespace().take(40).collect();
    let Some(program) = words.first() else { return };
    let mut add = |path: &str, file_use| {
        let path = path.trim_matches(['\'', '"']);
        let is_path = path.len() > 2
            && path.len() < 300
            && !path.starts_with(['-', '$', '&', '(', '/'].as_slice())
            && !path.contains(['*', '$', '=', '{', '<', '`'])
            && (path.contains('/') || path.contains('.'));
        if is_path && action.files.len() < 200 {
            action.files.push((path.to_owned(), file_use));
        }
    };
    for pair in words.windows(2) {
        if matches!(pair[0], ">" | ">>") {
            add(pair[1], FileUse::Changed);
        }
    }
    let operands = || {
        words[1..]
            .iter()
            .filter(|word| !word.starts_with('-'))
            .copied()
    };
    match *program {
        "sed" if words.iter().any(|word| word.starts_with("-i")) => {
            if let Some(path) = words.last() {
                add(path, FileUse::Changed);
            }
        }
        "tee" | "touch" => operands().for_each(|path| add(path, FileUse::Changed)),
        "rm" => operands().for_each(|path| add(path, FileUse::Deleted)),
        "mv" | "cp" => {
            if let Some(path) = words.last() {
                add(path, FileUse::Created);
            }
        }
        "git" if matches!(words.get(1), Some(&"rm")) => operands()
            .skip(1)
            .for_each(|path| add(path, FileUse::Deleted)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, input: &str, expected: &[(&str, FileUse)]) {
        let input = match Raw::parse(input) {
            Ok(raw) => ToolInput::Json(raw),
            Err(_) => ToolInput::Text(input.into()),
        };
        let call = ToolCall {
            id: "".into(),
            name: name.into(),
            input,
            is_server_side: false,
        };
        let files = action(&call).files;
        let files: Vec<_> = files
            .iter()
            .map(|(path, file_use)| (path.as_str(), *file_use))
            .collect();
        assert_eq!(files, expected);
    }

    #[test]
    fn files_of_calls() {
        check(
            "Edit",
            r#"{"file_path":"a/b.rs","old_string":"x","new_string":"y"}"#,
            &[("a/b.rs", FileUse::Changed)],
        );
        check(
            "Read",
            r#"{"file_path":"a/b.rs","offset":3}"#,
            &[("a/b.rs", FileUse::Read)],
        );
        check(
            "write_file",
            r#"{"path":"n.txt","content":"x"}"#,
            &[("n.txt", FileUse::Created)],
        );
        check(
            "str_replace_editor",
            r#"{"command":"view","path":"/r/a.py"}"#,
            &[("/r/a.py", FileUse::Read)],
        );
        check(
            "str_replace_editor",
            r#"{"command":"str_replace","path":"a.py","new_str":"x"}"#,
            &[("a.py", FileUse::Changed)],
        );
        check(
            "apply_patch",
            "*** Begin Patch\n*** Update File: src/x.go\n@@\n*** Add File: y.go\n",
            &[("src/x.go", FileUse::Changed), ("y.go", FileUse::Created)],
        );
        check(
            "shell",
            r#"{"command":["bash","-lc","sed -i 's/a/b/' src/x.py && rm old/y.py"]}"#,
            &[
                ("src/x.py", FileUse::Changed),
                ("old/y.py", FileUse::Deleted),
            ],
        );
        check(
            "Bash",
            r#"{"command":"cat > notes/todo.md <<'EOF'\nrm -rf x/y.z\nEOF\n"}"#,
            &[("notes/todo.md", FileUse::Changed)],
        );
        check(
            "Bash",
            r#"{"command":"ls -la > /dev/null; echo a > b"}"#,
            &[],
        );
    }

    #[test]
    fn plans() {
        let input = r#"{"todos":[{"content":"Write it","status":"completed"},{"content":"Test it","status":"in_progress"}]}"#;
        let input = ToolInput::Json(Raw::parse(input).unwrap());
        let call = ToolCall {
            id: "".into(),
            name: "TodoWrite".into(),
            input,
            is_server_side: false,
        };
        let plan = action(&call).plan.unwrap();
        assert_eq!(
            plan[0],
            PlanStep {
                text: "Write it".into(),
                state: PlanState::Done
            }
        );
        assert_eq!(plan[1].state, PlanState::InProgress);
    }
}
