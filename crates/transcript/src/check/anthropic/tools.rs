//! Tool definitions and the choice among them.

use std::collections::HashSet;

use super::super::checker::{Checker, Object, TextQuote};
use super::super::path::Path;
use super::super::rule;
use super::cache::Markers;
use super::settings::{Settings, forces_tool};

/// Longest tool name.
const NAME_BYTES_MAX: usize = 128;

/// The tools that a request defines.
pub(crate) struct ToolDefinitions {
    names: HashSet<String>,
    /// Connectors define tools whose names are not in the body.
    has_unnamed: bool,
}

impl ToolDefinitions {
    /// Whether a tool of that name may be defined.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.has_unnamed || self.names.contains(name)
    }

    /// Whether a server tool that runs under `name` may be defined.
    pub(crate) fn has_server_tool(&self, name: &str) -> bool {
        let defining = match name {
            "bash_code_execution" | "text_editor_code_execution" => "code_execution",
            other => other,
        };
        self.has(defining) || self.has(name)
    }
}

pub(crate) fn check(
    body: &Object,
    settings: &Settings,
    markers: &mut Markers,
    checker: &mut Checker<'_>,
) -> Option<ToolDefinitions> {
    let root = Path::Root;
    let defined = checker.optional_array(body, "tools", &root).map(|tools| {
        let path = root.key("tools");
        let mut defined = ToolDefinitions {
            names: HashSet::new(),
            has_unnamed: body.has("mcp_servers"),
        };
        for (index, tool) in tools.array().enumerate() {
            let path = path.index(index);
            if let Some(tool) = checker.object(&tool, path) {
                check_tool(&tool, &mut defined, &path, checker);
                markers.cacheable(&tool, &path, checker);
            }
        }
        defined
    });
    check_choice(body, settings, defined.as_ref(), checker);
    defined
}

fn check_tool(
    tool: &Object,
    defined: &mut ToolDefinitions,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) {
    let kind = checker.optional_string(tool, "type", path);
    let is_custom = kind.is_none_or(|kind| kind.decode() == "custom");
    if is_custom {
        checker.optional_string(tool, "description", path);
        if let Some(schema) = checker.required_object(tool, "input_schema", path) {
            let path = path.key("input_schema");
            if let Some(kind) = checker.required_name(&schema, "type", &path)
                && kind.decode() != "object"
            {
                checker.add(
                    &rule::WRONG_TYPE,
                    path.key("type"),
                    format_args!("the input of a tool is an object, not {}", TextQuote(&kind)),
                );
            }
        }
    } else if tool.present("name").is_none() {
        defined.has_unnamed = true;
        return;
    }
    let Some(name) = checker.required_name(tool, "name", path) else {
        return;
    };
    let name = name.decode().into_owned();
    if is_custom && !is_plain_name(&name, NAME_BYTES_MAX) {
        checker.add(
            &rule::TOOL_NAME,
            path.key("name"),
            format_args!(
                "a tool name has 1 to {NAME_BYTES_MAX} letters, digits, `_` and `-`: rename the tool"
            ),
        );
    }
    if !defined.names.insert(name) {
        checker.add(
            &rule::DUPLICATE_TOOL_NAME,
            path.key("name"),
            "an earlier tool has the same name: rename or remove one",
        );
    }
}

/// Whether a name has only letters, digits, `_` and `-`.
pub(crate) fn is_plain_name(name: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn check_choice(
    body: &Object,
    settings: &Settings,
    defined: Option<&ToolDefinitions>,
    checker: &mut Checker<'_>,
) {
    let root = Path::Root;
    let Some(choice) = checker.optional_object(body, "tool_choice", &root) else {
        return;
    };
    let path = root.key("tool_choice");
    let Some(kind) = checker.required_name(&choice, "type", &path) else {
        return;
    };
    checker.optional_bool(&choice, "disable_parallel_tool_use", &path);
    match kind.decode().as_ref() {
        "auto" | "any" | "none" => {}
        "tool" => {
            if let Some(name) = checker.required_name(&choice, "name", &path)
                && defined.is_some_and(|defined| !defined.has(&name.decode()))
            {
                checker.add(
                    &rule::TOOL_CHOICE_UNKNOWN,
                    path.key("name"),
                    format_args!(
                        "no tool is named {}: define it or choose another",
                        TextQuote(&name)
                    ),
                );
            }
        }
        _ => checker.add(
            &rule::TOOL_CHOICE_TYPE,
            path.key("type"),
            format_args!(
                "{} is no tool choice: use auto, any, tool or none",
                TextQuote(&kind)
            ),
        ),
    }
    // The tools of a continued thread are on the server, those of a connector are not in `tools`.
    let has_none = defined.is_none_or(|defined| !defined.has_unnamed && defined.names.is_empty());
    if has_none && !settings.continues_thread && !body.has("mcp_servers") {
        checker.add(
            &rule::TOOL_CHOICE_WITHOUT_TOOLS,
            path,
            "there are no tools to choose from: add `tools` or remove `tool_choice`",
        );
    }
    if forces_tool(body) {
        if settings.thinks_with_budget {
            checker.add(
                &rule::FORCED_TOOL_WITH_THINKING,
                path.key("type"),
                "a tool cannot be forced while thinking is enabled: use auto or switch thinking off",
            );
        }
        if checker.ability(|can| can.forced_tool_choice) == Some(false) {
            checker.add(
                &rule::FORCED_TOOL,
                path.key("type"),
                "the model does not accept a forced tool: use auto",
            );
        }
    }
}
