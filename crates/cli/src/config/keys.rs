//! The table of keys of the configuration file.

use throughline::agent::builtin;
use toml_edit::Value;

use super::Config;
use super::values::{self, Context};

/// One key of the file.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// What kind of value it takes, for people.
    pub(crate) takes: Takes,
    /// What holds without it, in words.
    pub(crate) default: &'static str,
    /// One sentence without a full stop.
    pub(crate) about: &'static str,
    /// A value as it is written in the file.
    pub(crate) example: &'static str,
    pub(super) set: Set,
}

type Set = fn(&mut Config, &Value, &mut Context<'_>) -> Result<(), String>;

/// Kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    Address,
    Credential,
    Path,
    Tools,
    Tokens,
    Mark,
    OneOf(&'static [&'static str]),
}

impl Key {
    pub(super) fn takes_hint(&self) -> String {
        format!("for example: {} = {}", self.name, self.example)
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// All keys, in the order in which they are shown.
pub(crate) static KEYS: &[Key] = &[
    Key {
        name: "model",
        takes: Takes::Text,
        default: "by the key that is found",
        about: "Model that answers; `simulated` needs no key",
        example: r#""claude-opus-5-5""#,
        set: |config, value, _| values::text(value).map(|it| config.model = Some(it)),
    },
    Key {
        name: "memory_model",
        takes: Takes::Text,
        default: "the model that answers",
        about: "Model that writes the memories; `none`: no model, no cost",
        example: r#""claude-haiku-5-5""#,
        set: |config, value, _| values::text(value).map(|it| config.memory_model = Some(it)),
    },
    Key {
        name: "base_url",
        takes: Takes::Address,
        default: "the provider's",
        about: "Address of the provider, of a gateway or of a local server",
        example: r#""http://127.0.0.1:8080""#,
        set: |config, value, _| values::base_url(value).map(|it| config.base_url = Some(it)),
    },
    Key {
        name: "wire",
        takes: Takes::OneOf(&["anthropic", "openai-chat", "openai-responses"]),
        default: "by the model",
        about: "Format of the requests",
        example: r#""openai-chat""#,
        set: |config, value, _| values::wire(value).map(|it| config.wire = Some(it)),
    },
    Key {
        name: "credential",
        takes: Takes::Credential,
        default: "the provider's usual variable, such as ANTHROPIC_API_KEY",
        about: "Where the provider's key is; a file must be readable by you alone",
        example: r#""file:~/.config/throughline/key""#,
        set: |config, value, context| {
            values::credential(value, context).map(|it| config.credential = Some(it))
        },
    },
    Key {
        name: "catalogue",
        takes: Takes::Path,
        default: "the embedded list",
        about: "TOML file that corrects and extends the list of models",
        example: r#""models.toml""#,
        set: |config, value, context| {
            values::path(value, context).map(|it| config.catalogue = Some(it))
        },
    },
    Key {
        name: "window",
        takes: Takes::Tokens,
        default: "the model's",
        about: "Window of the model in tokens, if it is unknown or you want to use less",
        example: "200000",
        set: |config, value, _| values::window(value).map(|it| config.window = Some(it)),
    },
    Key {
        name: "max_tokens",
        takes: Takes::Tokens,
        default: "16000 for Anthropic, else the provider's",
        about: "Longest answer, tokens",
        example: "8000",
        set: |config, value, _| values::tokens(value).map(|it| config.max_tokens = Some(it)),
    },
    Key {
        name: "mode",
        takes: Takes::OneOf(&["instant", "traditional", "off"]),
        default: "instant",
        about: "When memories are made: in the background, while a request waits, or never",
        example: r#""instant""#,
        set: |config, value, _| values::mode(value).map(|it| config.mode = Some(it)),
    },
    Key {
        name: "soft",
        takes: Takes::Mark,
        default: "50%",
        about: "Where building of a memory starts: a share of the usable window, or tokens of context",
        example: r#""50%""#,
        set: |config, value, _| values::mark(value).map(|it| config.soft = Some(it)),
    },
    Key {
        name: "hard",
        takes: Takes::Mark,
        default: "80%",
        about: "Where the memory is swapped in: a share of the usable window, or tokens of context",
        example: "100000",
        set: |config, value, _| values::mark(value).map(|it| config.hard = Some(it)),
    },
    Key {
        name: "memory_tokens",
        takes: Takes::Tokens,
        default: "5% of the window, 400 to 6000",
        about: "Largest memory, tokens",
        example: "4000",
        set: |config, value, _| {
            values::memory_tokens(value).map(|it| config.memory_tokens = Some(it))
        },
    },
    Key {
        name: "phases",
        takes: Takes::OneOf(&["true", "false"]),
        default: "false",
        about: "Whether the memory is swapped in at the end of a phase of the work (tasks completed, a commit, tests that pass again)",
        example: "true",
        set: |config, value, _| values::flag(value).map(|it| config.phases = it),
    },
    Key {
        name: "data",
        takes: Takes::Path,
        default: "$XDG_DATA_HOME/throughline or ~/.local/share/throughline",
        about: "Folder for sessions and the history of the prompt",
        example: r#""~/throughline""#,
        set: |config, value, context| values::path(value, context).map(|it| config.data = Some(it)),
    },
    Key {
        name: "session_folder",
        takes: Takes::Path,
        default: "none",
        about: "Folder for files of each session: its transcript, and its memory to read and edit",
        example: r#""~/sessions""#,
        set: |config, value, context| {
            values::path(value, context).map(|it| config.session_folder = Some(it))
        },
    },
    Key {
        name: "store",
        takes: Takes::OneOf(&["sqlite"]),
        default: "sqlite",
        about: "How sessions are kept: in one database",
        example: r#""sqlite""#,
        set: |_, value, _| values::store(value),
    },
    Key {
        name: "system",
        takes: Takes::Path,
        default: "a short one",
        about: "File with the system prompt of new sessions",
        example: r#""prompt.md""#,
        set: |config, value, context| {
            values::path(value, context).map(|it| config.system = Some(it))
        },
    },
    Key {
        name: "tools",
        takes: Takes::Tools,
        default: "none",
        about: "Tools that the model is offered",
        example: r#"["recall", "read_file"]"#,
        set: |config, value, _| values::tools(value).map(|it| config.tools = it),
    },
    Key {
        name: "root",
        takes: Takes::Path,
        default: "the current folder",
        about: "Folder that the tools may work in",
        example: r#""~/projects/site""#,
        set: |config, value, context| values::path(value, context).map(|it| config.root = Some(it)),
    },
    Key {
        name: "thinking",
        takes: Takes::OneOf(&["show", "dim", "hide"]),
        default: "dim",
        about: "How the model's thinking is shown",
        example: r#""hide""#,
        set: |config, value, _| values::thinking(value).map(|it| config.thinking = it),
    },
    Key {
        name: "colours",
        takes: Takes::OneOf(&["auto", "always", "never"]),
        default: "auto: in a terminal, unless NO_COLOR is set",
        about: "Whether the chat has colours",
        example: r#""never""#,
        set: |config, value, _| values::colours(value).map(|it| config.colours = it),
    },
    Key {
        name: "save",
        takes: Takes::Path,
        default: "the current folder",
        about: "Folder that /save of the chat writes into",
        example: r#""~/notes""#,
        set: |config, value, context| values::path(value, context).map(|it| config.save = Some(it)),
    },
];

/// The end of `throughline config --help`.
pub(crate) fn help() -> String {
    let mut text = "Keys:\n".to_owned();
    for key in KEYS {
        text.push_str(&format!(
            "  {:14} {}\n{:17}{}; default: {}\n",
            key.name,
            key.about,
            "",
            key.takes.words(),
            key.default
        ));
    }
    text.push_str(
        "\nExamples:
  throughline config
  throughline config set model claude-opus-5-5
  throughline config path

Exit codes:
  0    done
  2    the arguments are wrong, or the file cannot be read or has a mistake
  4    the file cannot be written",
    );
    text
}

impl Takes {
    /// Kind of value, for people.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Address => "http:// or https://, without a key in it".to_owned(),
            Self::Credential => "env:NAME, file:PATH or keyring:SERVICE/USER".to_owned(),
            Self::Path => {
                "a path; ~/ is your home, other relative ones count from the file".to_owned()
            }
            Self::Tools => format!("a list of {}", builtin::NAMES.join(", ")),
            Self::Tokens => "a number of tokens, such as 30000 or \"30k\"".to_owned(),
            Self::Mark => "a share such as \"80%\", or a number of tokens".to_owned(),
            Self::OneOf(names) => names.join(", "),
        }
    }
}

/// The keys for docs/configuration.md.
#[cfg(test)]
pub(super) fn table() -> String {
    let mut text =
        "| key | what it is | values | default | example |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for key in KEYS {
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | `{}` |\n",
            key.name,
            key.about,
            key.takes.words(),
            key.default,
            key.example
        ));
    }
    text
}
