//! Results of tools that Cline, Roo Code and Kilo Code write into the text of user messages.
//!
//! ```text
//! [read_file for 'a.rs'] Result:
//! fn main() {}
//! ```

/// The tool and the output of a text that begins like `[read_file for 'a.rs'] Result:`.
#[must_use]
pub fn heading(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('[')?;
    let line = rest.lines().next()?;
    let at = line.find("] Result:")?;
    let tool = line[..at].split(' ').next()?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    // Words behind the heading are a sentence about it.
    let is_heading = line[at + "] Result:".len()..].trim().is_empty();
    (is_heading && !tool.is_empty() && tool.bytes().all(is_name))
        .then(|| (tool, rest[at + "] Result:".len()..].trim()))
}

/// Tools whose results begin with third-party text: a file, a page, a server. Nothing in them is the user's.
const TOOLS_OF_OTHERS: &[&str] = &[
    "access_mcp_resource",
    "browser_action",
    "codebase_search",
    "fetch_instructions",
    "list_files",
    "read_file",
    "search_files",
    "use_mcp_tool",
    "web_fetch",
    "web_search",
];

/// Elements that hold what the user said.
pub const SPEECH: &[&str] = &["task", "feedback", "answer", "user_message"];

/// What the clients write before the user's words, where a result begins with it.
const LEADS: &[&str] = &[
    "The user denied this operation and provided the following feedback:",
    "The user approved this operation and provided the following context:",
    "The user provided the following feedback:",
    "The user has provided feedback on the results. Consider their input to continue the task, and then attempt completion again.",
    "The user provided feedback on the condensed conversation summary:",
    "You seem to be having trouble proceeding. The user has provided the following feedback to help guide you:",
];

/// How the result of a command begins that keeps running while the user writes something. The result contains its
/// output, then the user's words.
const RUNNING: &str = "Command is still running in the user's terminal.";
const SAID_MEANWHILE: &str = "The user provided the following feedback:";

/// The user's words about a call, which the client writes into its result: as the whole result, after one of the
/// client's own sentences at the beginning, or at the end of a command that keeps running. The output of a tool is not
/// searched.
#[must_use]
pub fn words<'t>(tool: &str, output: &'t str) -> Option<&'t str> {
    if TOOLS_OF_OTHERS.contains(&tool) || tool.is_empty() {
        return None;
    }
    let output = output.trim();
    let element = match LEADS.iter().find_map(|lead| output.strip_prefix(lead)) {
        Some(rest) => rest,
        None if output.starts_with(RUNNING) => output.rsplit_once(SAID_MEANWHILE)?.1,
        None => output,
    };
    let words = SPEECH
        .iter()
        .find_map(|tag| whole_element(element.trim(), tag))?;
    (!words.is_empty()).then_some(words)
}

/// The inside of a text that is one element.
#[must_use]
pub fn whole_element<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let rest = text
        .strip_prefix('<')?
        .strip_prefix(tag)?
        .strip_prefix('>')?;
    let inside = rest.trim_end().strip_suffix(&format!("</{tag}>"))?;
    Some(inside.trim())
}
