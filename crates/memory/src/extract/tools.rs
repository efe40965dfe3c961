//! The effects of a tool call, independent of the tool's name: files it touches, commands it runs, plans it records.

use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{ToolCall, ToolInput};

use super::{script, shell};

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
    /// It applies a patch: its result names the files.
    pub(crate) applies_patch: bool,
}

impl Action {
    /// Adds what a call inside this one does.
    fn add(&mut self, inner: Self) {
        self.files.extend(inner.files);
        if let Some(command) = inner.command {
            match &mut self.command {
                Some(commands) => {
                    commands.push('\n');
                    commands.push_str(&command);
                }
                none => *none = Some(command),
            }
        }
        self.plan = inner.plan.or(self.plan.take());
        self.shown.push_str(&inner.shown);
        self.written.extend(inner.written);
        self.applies_patch |= inner.applies_patch;
    }
}

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUse {
    Read,
    Changed,
    Created,
    Deleted,
    /// It is somewhere else now.
    Moved,
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
    let name = call.name.to_ascii_lowercase();
    match &call.input {
        ToolInput::Text(text) => {
            let mut action = Action::default();
            read_text_input(&name, &text.decode(), &mut action);
            action
        }
        ToolInput::Json(raw) => json_action(&name, raw),
    }
}

fn json_action(name: &str, raw: &Raw) -> Action {
    let mut action = Action {
        applies_patch: name.contains("apply_patch"),
        ..Action::default()
    };
    if raw.kind() == Kind::Object {
        read_fields(name, raw, &mut action);
    } else {
        let text = raw.as_text().map_or_else(
            || raw.as_str().to_owned(),
            |text| text.decode().into_owned(),
        );
        read_text_input(name, &text, &mut action);
    }
    action
}

/// Reads the calls in a script; `false` if there are none.
fn read_script(text: &str, action: &mut Action) -> bool {
    let calls = script::calls(text);
    for call in &calls {
        if let Ok(raw) = Raw::parse(call.input.as_str()) {
            action.add(json_action(&call.name.to_ascii_lowercase(), &raw));
        }
    }
    action.applies_patch |= text.contains("apply_patch");
    !calls.is_empty()
}

fn read_fields(name: &str, input: &Raw, action: &mut Action) {
    let kind = ToolKind::of(name);
    let mut path = None;
    let mut subcommand = None;
    let mut writes = false;
    let mut is_trial = false;
    let mut folder = None;
    // The whole command: what is shown of it may be cut.
    let mut command = None;
    let mut is_script = false;
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
                let line = shell_words(words);
                show(&line, action);
                action.command = Some(line.clone());
                command = Some(line);
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
            } else if value.kind() == Kind::Array && key == "changes" {
                changed_files(&value, action);
            } else if value.len() <= SHOWN_BYTES_MAX
                && matches!(value.kind(), Kind::Object | Kind::Array)
            {
                show(value.as_str(), action);
            } else if value.kind() == Kind::Number && !is_limit_key(key) {
                show(&format!("{key}={}", value.as_str()), action);
            } else if matches!(key, "dry_run" | "dryRun") {
                is_trial = value.as_bool() == Some(true);
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
                    command = Some(text.clone().into_owned());
                    action.command.clone_from(&command);
                }
            } else if is_folder_key(key) {
                folder = Some(text.into_owned());
                continue;
            } else if is_patch_key(key) {
                read_patch(&text, action);
            } else if matches!(key, "source" | "destination") && is_move(name) {
                let file_use = match key {
                    "destination" => FileUse::Created,
                    _ if name.contains("copy") => FileUse::Read,
                    _ => FileUse::Moved,
                };
                action.files.push((text.clone().into_owned(), file_use));
            } else if key == "code" && read_script(&text, action) {
                is_script = true;
                continue;
            }
            if text.len() <= SHOWN_BYTES_MAX {
                show(&text, action);
            }
        } else if is_command_key(key) {
            let text = text.decode();
            action.command = Some(text[..text.floor_char_boundary(SHOWN_BYTES_MAX)].to_owned());
            command = Some(text.clone().into_owned());
            written(text.into_owned(), action);
        } else if key == "code" {
            let text = text.decode();
            is_script = read_script(&text, action);
            written(text.into_owned(), action);
        } else if is_patch_key(key) {
            let text = text.decode();
            read_patch(&text, action);
            written(text.into_owned(), action);
        } else {
            written(text.decode().into_owned(), action);
        }
    }
    if let Some(command) = &command
        && (kind == ToolKind::Shell || action.files.is_empty())
        && !is_script
    {
        read_command(command, folder.as_deref(), action);
    }
    if is_trial {
        action.files.clear();
        return;
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

fn is_folder_key(key: &str) -> bool {
    matches!(
        key,
        "workdir"
            | "cwd"
            | "working_directory"
            | "workingDirectory"
            | "working_dir"
            | "directory"
            | "dir_path"
            | "Cwd"
    )
}

/// How long a call may take and how much of its result is wanted: nothing that a reader would look for.
fn is_limit_key(key: &str) -> bool {
    matches!(
        key,
        "yield_time_ms"
            | "timeout"
            | "timeout_ms"
            | "max_output_tokens"
            | "offset"
            | "limit"
            | "head_limit"
    )
}

fn is_patch_key(key: &str) -> bool {
    matches!(key, "patch" | "input" | "diff" | "patchText" | "patch_text")
}

fn is_move(name: &str) -> bool {
    ["move", "rename", "copy"]
        .iter()
        .any(|part| name.contains(part))
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

/// The command of a list of words, without the shell that it is given to.
fn shell_words(words: Vec<String>) -> String {
    match words.as_slice() {
        [shell, flag, rest]
            if shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c') =>
        {
            rest.clone()
        }
        _ => {
            let words: Vec<_> = words.iter().map(|word| shell::quoted(word)).collect();
            words.join(" ")
        }
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
                if let ("completed" | "done", Some(is_done)) = (&*key.decode(), value.as_bool()) {
                    has_state = true;
                    state = if is_done {
                        PlanState::Done
                    } else {
                        PlanState::Open
                    };
                }
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
    action.applies_patch |= name.contains("apply_patch");
    let kind = ToolKind::of(name);
    if kind == ToolKind::Shell && (read_script(text, action) || script::is_javascript(text)) {
        written(text.to_owned(), action);
        return;
    }
    if text.contains("*** ") && kind != ToolKind::Shell {
        read_patch(text, action);
    }
    if kind == ToolKind::Shell {
        read_command(text, None, action);
        let command = text[..text.floor_char_boundary(SHOWN_BYTES_MAX)].to_owned();
        show(&command, action);
        action.command = Some(command);
    } else if text.len() <= SHOWN_BYTES_MAX && action.files.is_empty() {
        show(text, action);
    } else {
        written(text.to_owned(), action);
    }
}

/// The files of a change: objects with a path and the kind of the change.
fn changed_files(changes: &Raw, action: &mut Action) {
    for change in changes.array().take(200) {
        let Some(path) = change.string_field("path") else {
            continue;
        };
        let kind = change.field("kind").and_then(|kind| {
            kind.string_field("type")
                .or_else(|| Some(kind.as_text()?.decode().into_owned()))
        });
        let file_use = match kind.as_deref() {
            Some("add" | "create") => FileUse::Created,
            Some("delete" | "remove") => FileUse::Deleted,
            _ => FileUse::Changed,
        };
        show(&path, action);
        action.files.push((path, file_use));
    }
}

fn read_patch(text: &str, action: &mut Action) {
    for (path, file_use) in patched_files(text) {
        show(&path, action);
        action.files.push((path, file_use));
    }
}

fn read_command(command: &str, folder: Option<&str>, action: &mut Action) {
    action.applies_patch |= command.contains("apply_patch");
    action.files.extend(shell::read(command, folder));
}

/// The files that a patch names: in the form with `*** Update File:` lines, or a unified diff.
pub(super) fn patched_files(text: &str) -> Vec<(String, FileUse)> {
    let mut files: Vec<(String, FileUse)> = Vec::new();
    let has_own_form = text.contains("*** Begin Patch") || text.contains(" File: ");
    let mut old = None;
    for line in text.lines() {
        let line = line.trim_end();
        let (path, file_use) = if has_own_form {
            let named = |start| line.strip_prefix("*** ")?.strip_prefix(start);
            if let Some(path) = named("Update File: ") {
                (path, FileUse::Changed)
            } else if let Some(path) = named("Add File: ") {
                (path, FileUse::Created)
            } else if let Some(path) = named("Delete File: ") {
                (path, FileUse::Deleted)
            } else if let Some(path) = named("Move to: ") {
                if let Some((_, source_use)) = files.last_mut() {
                    *source_use = FileUse::Moved;
                }
                (path, FileUse::Created)
            } else {
                continue;
            }
        } else if let Some(path) = line.strip_prefix("--- ") {
            old = Some(diff_path(path));
            continue;
        } else if let (Some(path), Some(old)) = (line.strip_prefix("+++ "), old.take()) {
            match (old, diff_path(path)) {
                ("/dev/null", path) => (path, FileUse::Created),
                (old, "/dev/null") => (old, FileUse::Deleted),
                (_, path) => (path, FileUse::Changed),
            }
        } else {
            continue;
        };
        add_patched(path, file_use, &mut files);
    }
    files
}

/// The files that the result of a patch names: lines of `M path`, `A path` and `D path`.
pub(super) fn reported_files(result: &str) -> Vec<(String, FileUse)> {
    const HEADING: &str = "Success. Updated the following files:";
    let mut files = Vec::new();
    let Some((_, report)) = result.split_once(HEADING) else {
        return files;
    };
    for line in report.trim_start().lines() {
        let (path, file_use) = match line.split_once(' ') {
            Some(("M", path)) => (path, FileUse::Changed),
            Some(("A", path)) => (path, FileUse::Created),
            Some(("D", path)) => (path, FileUse::Deleted),
            _ => break,
        };
        add_patched(path, file_use, &mut files);
    }
    files
}

fn add_patched(path: &str, file_use: FileUse, files: &mut Vec<(String, FileUse)>) {
    const FILES_MAX: usize = 200;
    const PATH_BYTES_MAX: usize = 300;
    let path = path.trim();
    let is_path = !path.is_empty()
        && path.len() < PATH_BYTES_MAX
        && !path.contains(['$', script::COMPUTED])
        && !path.contains(char::is_control);
    if is_path && files.len() < FILES_MAX {
        files.push((path.to_owned(), file_use));
    }
}

/// A path of a unified diff, without its prefix and without the time behind it.
fn diff_path(path: &str) -> &str {
    let path = path.split('\t').next().unwrap_or(path);
    path.strip_prefix("a/")
        .or_else(|| path.strip_prefix("b/"))
        .unwrap_or(path)
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
            "file_change",
            r#"{"changes":[{"path":"a.c","kind":"update"},{"path":"b.c","kind":{"type":"add"}},{"path":"c.c","kind":"delete"}]}"#,
            &[
                ("a.c", FileUse::Changed),
                ("b.c", FileUse::Created),
                ("c.c", FileUse::Deleted),
            ],
        );
        check(
            "move_file",
            r#"{"source":"a.c","destination":"b.c"}"#,
            &[("a.c", FileUse::Moved), ("b.c", FileUse::Created)],
        );
        check(
            "edit_file",
            r#"{"path":"a.c","edits":[{"oldText":"x","newText":"y"}],"dryRun":true}"#,
            &[],
        );
        check(
            "exec_command",
            r#"{"cmd":"rm pier.c","workdir":"/w/sub","yield_time_ms":1000}"#,
            &[("/w/sub/pier.c", FileUse::Deleted)],
        );
        check(
            "shell",
            r#"{"command":["apply_patch","*** Begin Patch
*** Add File: a b.c
+x
*** End Patch"]}"#,
            &[("a b.c", FileUse::Created)],
        );
        check(
            "Bash",
            r#"{"command":"ls -la > /dev/null; echo a > b"}"#,
            &[("b", FileUse::Changed)],
        );
    }

    /// A script of Codex: how the patch is written does not matter.
    #[test]
    fn patches_in_scripts() {
        let all = &[
            ("quay/lamp.py", FileUse::Changed),
            ("quay/test lamp.py", FileUse::Created),
            ("quay/old.py", FileUse::Deleted),
        ];
        let lines = r"*** Begin Patch\n*** Update File: quay/lamp.py\n@@\n-    return w > 40\n+    return w >= 40\n*** Add File: quay/test lamp.py\n+x\n*** Delete File: quay/old.py\n*** End Patch";
        let patch = lines.replace("\\n", "\n");
        let listed: Vec<_> = patch.lines().map(|line| format!("{line:?}")).collect();
        for script in [
            format!("const patch = \"{lines}\";\ntext(await tools.apply_patch(patch));"),
            format!("text(await tools.apply_patch(`{patch}`))"),
            format!("await tools.apply_patch('{lines}');"),
            format!("const p = String.raw`{patch}`; const r = await tools.apply_patch(p); text(r)"),
            format!(
                "let p = \"*** Begin\" + \" Patch\";\np += '{}';\ntools.apply_patch(p)",
                &lines["*** Begin Patch".len()..]
            ),
            format!(
                "await tools.apply_patch([{}].join('\\n'))",
                listed.join(", ")
            ),
            format!("await tools.apply_patch({{patch: \"{lines}\"}})"),
            format!("await tools.apply_patch({{input: `{patch}`}})"),
            format!("await tools.exec_command({{cmd: \"apply_patch <<'EOF'\\n{lines}\\nEOF\"}})"),
            format!(
                "await tools.exec_command({{cmd: `bash -lc 'apply_patch <<\"EOF\"\n{patch}\nEOF'`}})"
            ),
            format!(
                "try {{ await tools.apply_patch(`{patch}`); }} catch (e) {{ text(String(e)); }}"
            ),
        ] {
            check("exec", &script, all);
        }
        check(
            "exec",
            "const name = 'lamp.py'; await tools.apply_patch(`*** Begin Patch\n*** Update File: quay/${name}\n*** Add File: ${other}/x.py\n*** End Patch`)",
            &[("quay/lamp.py", FileUse::Changed)],
        );
        check(
            "exec",
            "const s = `*** Update File: quay/lamp.py`; text(s)",
            &[],
        );
    }

    #[test]
    fn plans_in_scripts() {
        let plan = |input: &str| {
            let call = ToolCall {
                id: "".into(),
                name: "exec".into(),
                input: ToolInput::Text(input.to_owned().into()),
                is_server_side: false,
            };
            let steps = action(&call).plan.unwrap_or_default();
            let steps = steps
                .into_iter()
                .map(|step| format!("{:?} {}", step.state, step.text));
            steps.collect::<Vec<_>>().join(", ")
        };
        let expected = "Done Dig, InProgress Fill";
        for script in [
            r#"await tools.update_plan({explanation:"Go",plan:[{step:"Dig",status:"completed"},{step:'Fill',status:`in_progress`}]});"#,
            r#"const plan = [{"step":"Dig","status":"completed"},{"step":"Fill","status":"in_progress"}]; text(await tools.update_plan({plan}))"#,
            r#"const p = {plan:[{step:"Dig",status:"completed"},{step:"Fill",status:"in_progress"}]};tools.update_plan(p);"#,
        ] {
            assert_eq!(plan(script), expected, "{script}");
        }
        let twice = "tools.update_plan({plan:[{step:'Dig',status:'pending'}]}); tools.update_plan({plan:[{step:'Dig',status:'completed'}]})";
        assert_eq!(plan(twice), "Done Dig");
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
