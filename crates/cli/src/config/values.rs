//! What the values of the configuration mean.

use std::fmt;
use std::path::{Path, PathBuf};

use throughline::agent::builtin;
use throughline::engine::{Mark, Mode};
use throughline_transcript::wire::Wire;
use toml_edit::Value;

use crate::address;
use crate::terminal::{Colours, Thinking};
use crate::tokens::{self as typed, TOKENS_MAX, WINDOW_MIN};

/// Where the key of the provider is. The key itself is never in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CredentialPlace {
    /// In this variable of the environment.
    Env(String),
    /// In this file, which only its owner can read.
    File(PathBuf),
    /// In the keyring of the system.
    Keyring { service: String, user: String },
}

impl fmt::Display for CredentialPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Keyring { service, user } => write!(f, "the keyring entry {service} of {user}"),
        }
    }
}

/// A mark: a share of the usable window, or a size of the whole context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkSetting(pub(crate) Mark);

/// What values are understood against.
pub(super) struct Context<'a> {
    /// Paths that are not absolute count from here.
    folder: &'a Path,
}

impl<'a> Context<'a> {
    /// Of a file at `path`.
    pub(super) fn of(path: &'a Path) -> Self {
        Self {
            folder: path.parent().unwrap_or(Path::new("")),
        }
    }

    fn path(&self, text: &str) -> Result<PathBuf, String> {
        match text.strip_prefix("~/") {
            Some(rest) => home()
                .map(|home| home.join(rest))
                .ok_or_else(|| "~ has no meaning: there is no home directory".to_owned()),
            None if text.is_empty() => Err("the path is empty".to_owned()),
            None => Ok(self.folder.join(text)),
        }
    }
}

pub(super) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

type Read<T> = Result<T, String>;

pub(super) fn text(value: &Value) -> Read<String> {
    match value.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        Some(_) => Err("the text is empty".to_owned()),
        None => Err("give a text in quotes".to_owned()),
    }
}

pub(super) fn path(value: &Value, context: &Context<'_>) -> Read<PathBuf> {
    context.path(&text(value)?)
}

pub(super) fn texts(value: &Value) -> Read<Vec<String>> {
    match value.as_array() {
        Some(array) => array.iter().map(text).collect(),
        None => Err("give a list of texts, such as [\"recall\"]".to_owned()),
    }
}

/// Names of tools that exist.
pub(super) fn tools(value: &Value) -> Read<Vec<String>> {
    let names = texts(value)?;
    match names
        .iter()
        .find(|name| !builtin::NAMES.contains(&name.as_str()))
    {
        Some(name) => Err(format!(
            "there is no tool {name:?}; there are {}",
            builtin::NAMES.join(", ")
        )),
        None => Ok(names),
    }
}

/// An address that requests can go to, without a key in it.
pub(super) fn base_url(value: &Value) -> Read<String> {
    let text = text(value)?;
    address::check(&text)?;
    Ok(text)
}

/// A window that a request fits into.
pub(super) fn window(value: &Value) -> Read<u64> {
    match tokens(value)? {
        count if count < WINDOW_MIN as u64 => {
            Err(format!("a window has at least {WINDOW_MIN} tokens"))
        }
        count => Ok(count),
    }
}

/// A memory of a few lines at least.
pub(super) fn memory_tokens(value: &Value) -> Read<u64> {
    tokens(value)?;
    typed::memory_tokens(&plain(value))
}

/// `true` or `false`, with quotes or without.
pub(super) fn flag(value: &Value) -> Read<bool> {
    match (value.as_bool(), value.as_str()) {
        (Some(flag), _) => Ok(flag),
        (_, Some("true")) => Ok(true),
        (_, Some("false")) => Ok(false),
        _ => Err("true or false is needed".to_owned()),
    }
}

/// A value without its quotes.
fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string().trim().to_owned(),
    }
}

/// `30000`, `"30k"`.
pub(super) fn tokens(value: &Value) -> Read<u64> {
    const NEEDED: &str = "a number of tokens is needed, such as 30000 or \"30k\"";
    let count = match (value.as_integer(), value.as_str()) {
        (Some(number), _) => u64::try_from(number).ok(),
        (_, Some(text)) => typed::tokens(text).map(|count| count as u64),
        _ => None,
    };
    match count {
        Some(0) | None => Err(NEEDED.to_owned()),
        Some(count) if count > TOKENS_MAX as u64 => Err(format!("more than {} tokens", TOKENS_MAX)),
        Some(count) => Ok(count),
    }
}

/// `"80%"`, or tokens.
pub(super) fn mark(value: &Value) -> Read<MarkSetting> {
    let text = value.as_str().unwrap_or_default();
    if text.trim().ends_with('%') {
        return typed::mark(text).map(MarkSetting);
    }
    match tokens(value) {
        Ok(count) => Ok(MarkSetting(Mark::Tokens(count))),
        Err(_) => Err("a share such as \"80%\" is needed, or a number of tokens".to_owned()),
    }
}

pub(super) fn wire(value: &Value) -> Read<Wire> {
    one_of(value, &Wire::ALL.map(|wire| (wire.name(), wire)))
}

pub(super) fn mode(value: &Value) -> Read<Mode> {
    const MODES: [(&str, Mode); 3] = [
        ("instant", Mode::Instant),
        ("traditional", Mode::Traditional),
        ("off", Mode::Off),
    ];
    one_of(value, &MODES)
}

/// There is one kind of store. `files`, of version 0.1, is still read: its sessions are imported.
pub(super) fn store(value: &Value) -> Read<()> {
    one_of(value, &[("sqlite", ()), ("files", ())])
}

pub(super) fn thinking(value: &Value) -> Read<Thinking> {
    const KINDS: [(&str, Thinking); 3] = [
        ("show", Thinking::Show),
        ("dim", Thinking::Dim),
        ("hide", Thinking::Hide),
    ];
    one_of(value, &KINDS)
}

pub(super) fn colours(value: &Value) -> Read<Colours> {
    const KINDS: [(&str, Colours); 3] = [
        ("auto", Colours::Auto),
        ("always", Colours::Always),
        ("never", Colours::Never),
    ];
    one_of(value, &KINDS)
}

/// `env:NAME`, `file:PATH`, `keyring:SERVICE/USER`. The value stays out of errors: it may be a key.
pub(super) fn credential(value: &Value, context: &Context<'_>) -> Read<CredentialPlace> {
    let text = text(value)?;
    match text.split_once(':') {
        Some(("env", name)) if is_variable(name) => Ok(CredentialPlace::Env(name.to_owned())),
        Some(("file", path)) => context.path(path).map(CredentialPlace::File),
        Some(("keyring", entry)) => match entry.rsplit_once('/') {
            _ if !cfg!(feature = "keyring") => {
                Err("this program was built without support for keyrings".to_owned())
            }
            Some((service, user)) if !service.is_empty() && !user.is_empty() => {
                Ok(CredentialPlace::Keyring {
                    service: service.to_owned(),
                    user: user.to_owned(),
                })
            }
            _ => Err("give keyring:SERVICE/USER".to_owned()),
        },
        _ => Err("give the place of the key, not the key itself: env:NAME or file:PATH".to_owned()),
    }
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part)
}

fn one_of<T: Copy>(value: &Value, known: &[(&str, T)]) -> Read<T> {
    let text = text(value)?;
    match known.iter().find(|(name, _)| *name == text) {
        Some((_, meant)) => Ok(*meant),
        None => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Err(format!("{text:?} is none of {}", names.join(", ")))
        }
    }
}
