//! The fields of one input item.

use crate::json::{Kind, Raw};

use super::super::checker::{Checker, Object, Quote};
use super::super::openai_chat::{check_arguments, is_function_name};
use super::super::path::Path;
use super::super::rule;

/// What an item is, as far as the order of items goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A message of the model.
    ModelMessage,
    /// A message of anybody else.
    OtherMessage,
    Reasoning,
    /// A call, whose output has the same `call_id`.
    Call(Pair),
    /// The output of a call.
    Output(Pair),
    CompactionTrigger,
    Reference,
    /// Anything else: made by the model or the server, not paired here.
    Other,
}

/// The kinds of call that the client answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Function,
    Custom,
    Computer,
    LocalShell,
    Shell,
    ApplyPatch,
}

/// Item types that are known and have nothing more to check.
const OTHER_TYPES: &[&str] = &[
    "configuration_update",
    "additional_tools",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "tool_search_call",
    "tool_search_output",
    "tool_search_call_output",
    "program",
    "program_output",
];

/// Checks an item and says what it is.
pub(crate) fn check(item: &Object, path: &Path<'_>, checker: &mut Checker<'_>) -> Item {
    let kind = match item.string("type") {
        Some(kind) => kind,
        None if item.has("type") => {
            checker.optional_string(item, "type", path);
            return Item::Other;
        }
        None if item.has("role") => "message".to_owned(),
        None if item.has("id") => "item_reference".to_owned(),
        None => {
            checker.required_name(item, "type", path);
            return Item::Other;
        }
    };
    match kind.as_str() {
        "message" => check_message(item, path, checker),
        "reasoning" => {
            check_reasoning(item, path, checker);
            Item::Reasoning
        }
        "function_call" => {
            if let Some(name) = checker.required_name(item, "name", path)
                && !is_function_name(&name.decode())
            {
                super::report_function_name(path, checker);
            }
            if let Some(arguments) = checker.required_string(item, "arguments", path) {
                check_arguments(&arguments, &rule::RESPONSES_ARGUMENTS, path, checker);
            }
            Item::Call(Pair::Function)
        }
        "custom_tool_call" => {
            checker.required_name(item, "name", path);
            checker.required_string(item, "input", path);
            Item::Call(Pair::Custom)
        }
        "function_call_output" => {
            check_output(item, path, checker);
            Item::Output(Pair::Function)
        }
        "custom_tool_call_output" => {
            check_output(item, path, checker);
            Item::Output(Pair::Custom)
        }
        "computer_call" => Item::Call(Pair::Computer),
        "computer_call_output" => Item::Output(Pair::Computer),
        "local_shell_call" => Item::Call(Pair::LocalShell),
        "local_shell_call_output" => Item::Output(Pair::LocalShell),
        "shell_call" => Item::Call(Pair::Shell),
        "shell_call_output" => Item::Output(Pair::Shell),
        "apply_patch_call" => Item::Call(Pair::ApplyPatch),
        "apply_patch_call_output" => Item::Output(Pair::ApplyPatch),
        "compaction" => {
            checker.required_name(item, "encrypted_content", path);
            Item::Other
        }
        "compaction_trigger" => Item::CompactionTrigger,
        "item_reference" => {
            checker.required_name(item, "id", path);
            Item::Reference
        }
        other => {
            if !OTHER_TYPES.contains(&other) {
                checker.add(
                    &rule::UNKNOWN_BLOCK_TYPE,
                    path.key("type"),
                    "this type of item is not known here: it is not checked",
                );
            }
            Item::Other
        }
    }
}

fn check_output(item: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
    let what = "a string or an array of parts";
    let Some(output) = checker.required_value(item, "output", what, path) else {
        return;
    };
    let path = path.key("output");
    if checker.expect_kind(output, &[Kind::String, Kind::Array], what, path) {
        check_parts(output, INPUT_PARTS, &path, checker);
    }
}

fn check_reasoning(item: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
    if let Some(summary) = checker.required_array(item, "summary", path) {
        let path = path.key("summary");
        for (index, part) in summary.array().enumerate() {
            let path = path.index(index);
            if let Some(part) = checker.object(&part, path) {
                checker.required_string(&part, "text", &path);
                checker.known_value(&part, "type", &["summary_text"], &path);
            }
        }
    }
    checker.optional_string(item, "encrypted_content", path);
}

const INPUT_PARTS: &[&str] = &["input_text", "input_image", "input_file", "input_audio"];
const OUTPUT_PARTS: &[&str] = &["output_text", "refusal"];
/// Parts of other formats that are often left in by mistake.
const FOREIGN_PARTS: &[&str] = &[
    "text",
    "image_url",
    "tool_use",
    "tool_result",
    "thinking",
    "image",
    "document",
];

fn check_message(item: &Object, path: &Path<'_>, checker: &mut Checker<'_>) -> Item {
    let Some(role) = checker.required_name(item, "role", path) else {
        return Item::OtherMessage;
    };
    let role = role.decode();
    let (kind, parts) = match role.as_ref() {
        "assistant" => (Item::ModelMessage, OUTPUT_PARTS),
        "user" | "system" | "developer" => (Item::OtherMessage, INPUT_PARTS),
        other => {
            let advice = if other == "tool" {
                "send the output of a tool as an item of type function_call_output"
            } else {
                "use user, assistant, system or developer"
            };
            checker.add(
                &rule::RESPONSES_ROLE,
                path.key("role"),
                format_args!("{} is no role: {advice}", Quote(other)),
            );
            return Item::OtherMessage;
        }
    };
    checker.known_value(item, "phase", &["commentary", "final_answer"], path);
    let what = "a string or an array of parts";
    if let Some(content) = checker.required_value(item, "content", what, path) {
        let path = path.key("content");
        if checker.expect_kind(content, &[Kind::String, Kind::Array], what, path) {
            let count = check_parts(content, parts, &path, checker);
            if content.kind() == Kind::Array && count == 0 {
                checker.add(
                    &rule::RESPONSES_EMPTY_CONTENT,
                    path,
                    "an array of parts must have at least one: remove the message",
                );
            }
        }
    }
    kind
}

/// Returns how many parts there are.
fn check_parts(
    content: &Raw,
    allowed: &[&str],
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) -> usize {
    let mut count = 0;
    for part in content.array() {
        check_part(&part, allowed, &path.index(count), checker);
        count += 1;
    }
    count
}

fn check_part(part: &Raw, allowed: &[&str], path: &Path<'_>, checker: &mut Checker<'_>) {
    let Some(part) = checker.object(part, *path) else {
        return;
    };
    let Some(kind) = checker.required_name(&part, "type", path) else {
        return;
    };
    let kind = kind.decode();
    if !allowed.contains(&kind.as_ref()) {
        let is_known = [INPUT_PARTS, OUTPUT_PARTS, FOREIGN_PARTS]
            .iter()
            .any(|parts| parts.contains(&kind.as_ref()));
        if is_known {
            checker.add(
                &rule::RESPONSES_PART,
                path.key("type"),
                format_args!(
                    "a part of type {kind} is not allowed here: use {}",
                    allowed.join(", ")
                ),
            );
        } else {
            checker.add(
                &rule::UNKNOWN_BLOCK_TYPE,
                path.key("type"),
                "this type of part is not known here: it is not checked",
            );
        }
        return;
    }
    match kind.as_ref() {
        "input_text" | "output_text" => drop(checker.required_string(&part, "text", path)),
        "refusal" => drop(checker.required_string(&part, "refusal", path)),
        "input_image" if !part.has("image_url") && !part.has("file_id") => {
            checker.required_name(&part, "image_url", path);
        }
        "input_file"
            if !["file_id", "file_data", "file_url"]
                .iter()
                .any(|key| part.has(key)) =>
        {
            checker.required_name(&part, "file_id", path);
        }
        _ => {}
    }
}
