//! Slash commands, as Claude Code writes them into messages of the user.
//!
//! ```text
//! <command-message>audit</command-message>
//! <command-name>/audit</command-name>
//! <command-args>the parser</command-args>
//! ```

/// The longest text that is read as a command, bytes. Its arguments can be a pasted text.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Lines that a command has at its beginning besides the name: the message and the arguments, in any order.
const ELEMENTS: [&str; 3] = ["command-message", "command-name", "command-args"];

/// Commands that the client carries out itself. What they are given is not asked of the model.
const LOCAL: [&str; 76] = [
    "add-dir",
    "advisor",
    "agents",
    "allowed-tools",
    "app",
    "background",
    "bashes",
    "branch",
    "bug",
    "chrome",
    "clear",
    "color",
    "compact",
    "config",
    "context",
    "continue",
    "copy",
    "cost",
    "desktop",
    "diff",
    "doctor",
    "effort",
    "exit",
    "export",
    "extra-usage",
    "fast",
    "feedback",
    "focus",
    "fork",
    "help",
    "hooks",
    "ide",
    "insights",
    "install-github-app",
    "install-slack-app",
    "keybindings",
    "login",
    "logout",
    "mcp",
    "memory",
    "mobile",
    "model",
    "new",
    "output-style",
    "passes",
    "permissions",
    "plugin",
    "plugins",
    "powerup",
    "privacy-settings",
    "quit",
    "recap",
    "release-notes",
    "reload-plugins",
    "remote-control",
    "remote-env",
    "rename",
    "reset",
    "resume",
    "rewind",
    "sandbox",
    "session",
    "settings",
    "skills",
    "stats",
    "status",
    "statusline",
    "stickers",
    "tag",
    "tasks",
    "terminal-setup",
    "theme",
    "think-back",
    "upgrade",
    "usage",
    "vim",
];

/// A slash command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    /// As the person typed it: `/audit the parser`.
    pub text: String,
    /// Whether the client carries it out itself (`/clear`, `/model opus`), so that it asks the model for nothing.
    pub is_local: bool,
}

/// The command that a text is; `None` for any other text.
#[must_use]
pub fn slash_command(text: &str) -> Option<SlashCommand> {
    let text = text.trim();
    if text.len() > TEXT_BYTES_MAX || !text.starts_with("<command-") {
        return None;
    }
    let mut found = [None; ELEMENTS.len()];
    let mut rest = text;
    while !rest.is_empty() {
        let (place, inside, after) = ELEMENTS.iter().enumerate().find_map(|(place, name)| {
            let inner = rest
                .strip_prefix('<')?
                .strip_prefix(name)?
                .strip_prefix('>')?;
            let closing = ["</", name, ">"].concat();
            // Arguments can hold anything: their end is the last one.
            let end = match place {
                2 => inner.rfind(&closing),
                _ => inner.find(&closing),
            }?;
            Some((place, &inner[..end], &inner[end + closing.len()..]))
        })?;
        found[place] = Some(inside.trim());
        rest = after.trim_start();
    }
    let [message, name, arguments] = found;
    let name = name.or(message)?.trim_start_matches('/');
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    let arguments = arguments.unwrap_or_default();
    Some(SlashCommand {
        text: format!("/{name} {arguments}").trim_end().to_owned(),
        is_local: LOCAL.contains(&name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, bool)>) {
        let found = slash_command(text);
        let found = found
            .as_ref()
            .map(|command| (command.text.as_str(), command.is_local));
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn commands_are_what_the_person_typed() {
        check(
            "<command-message>quay:check</command-message>\n<command-name>/quay:check</command-name>",
            Some(("/quay:check", false)),
        );
        check(
            "<command-name>/review</command-name>\n   <command-message>review</command-message>\n   <command-args>the quay</command-args>",
            Some(("/review the quay", false)),
        );
        check(
            "<command-message>review is running…</command-message>\n<command-name>/review</command-name>\n<command-args></command-args>",
            Some(("/review", false)),
        );
        check(
            "<command-name>/audit</command-name><command-args>what does </command-args> do?</command-args>",
            Some(("/audit what does </command-args> do?", false)),
        );
        check(
            "<command-name>/clear</command-name>",
            Some(("/clear", true)),
        );
        check(
            "<command-name>/model</command-name>\n<command-args>opus</command-args>",
            Some(("/model opus", true)),
        );
        check(
            "<command-message>tides</command-message>",
            Some(("/tides", false)),
        );
    }

    #[test]
    fn other_texts_are_no_commands() {
        for text in [
            "",
            "/review the quay",
            "<command-name>",
            "<command-name></command-name>",
            "<command-name>/a</command-name> and more",
            "What is <command-name>/a</command-name>?",
        ] {
            check(text, None);
        }
    }
}
