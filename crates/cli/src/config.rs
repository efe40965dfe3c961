//! What the user has settled: the configuration file.
//!
//! [`keys`] is the one table of its keys. Help, `throughline config show`, the documentation and the checks
//! are made from that table. Nothing is read from the file but what the table names.

pub(crate) mod keys;
mod values;

use std::env;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use throughline::SessionBuilder;
use throughline::engine::{CompactionSettings, Mark, Mode};
use throughline_transcript::wire::Wire;
use toml_edit::{Document, Item, Value};

use self::keys::{KEYS, Key};
use crate::error::{Failure, Kind};
use crate::files;
use crate::terminal::{Colours, Thinking};

pub(crate) use values::{CredentialPlace, MarkSetting};

/// The file with everything in it, understood. What is not said is `None`, or the default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) model: Option<String>,
    pub(crate) memory_model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) wire: Option<Wire>,
    pub(crate) credential: Option<CredentialPlace>,
    pub(crate) catalogue: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) session_folder: Option<PathBuf>,
    pub(crate) window: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) mode: Option<Mode>,
    pub(crate) soft: Option<MarkSetting>,
    pub(crate) hard: Option<MarkSetting>,
    pub(crate) memory_tokens: Option<u64>,
    pub(crate) phases: bool,
    pub(crate) system: Option<PathBuf>,
    pub(crate) tools: Vec<String>,
    pub(crate) root: Option<PathBuf>,
    pub(crate) thinking: Thinking,
    pub(crate) colours: Colours,
    pub(crate) save: Option<PathBuf>,
}

impl Config {
    /// Reads the user's file. One that does not exist is an empty one, unless `THROUGHLINE_CONFIG` names it.
    pub(crate) fn read() -> Result<Self, Failure> {
        let place = Place::from_environment()?;
        match place.text()? {
            Some(text) => Self::parse(&text, &place.path),
            None => Ok(Self::default()),
        }
    }

    /// Understands the text of the file at `path`.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        let config = Self::understand(text, path)?;
        match config.agrees() {
            Ok(()) => Ok(config),
            Err(Clash { name, what }) => {
                let document = Document::parse(text).ok();
                let span = document.and_then(|document| document.key_value_span(name));
                Err(broken(text, path, span, &format!("{name}: {what}")))
            }
        }
    }

    /// Understands each value for itself.
    pub(crate) fn understand(text: &str, path: &Path) -> Result<Self, Failure> {
        let document = Document::parse(text)
            .map_err(|error| broken(text, path, error.span(), error.message()))?;
        let mut config = Self::default();
        let mut context = values::Context::of(path);
        for (name, item) in document.iter() {
            let span = document.key_value_span(name);
            let Some(key) = keys::find(name) else {
                return Err(unknown(name).at(place(text, path, span)));
            };
            let value = item.as_value().ok_or_else(|| {
                broken(text, path, span.clone(), &format!("{name} is no value"))
                    .hint(key.takes_hint())
            })?;
            (key.set)(&mut config, value, &mut context).map_err(|what| {
                broken(text, path, span, &format!("{name}: {what}")).hint(key.takes_hint())
            })?;
        }
        Ok(config)
    }

    /// Whether the values go with each other.
    pub(crate) fn agrees(&self) -> Result<(), Clash> {
        let of_engine = CompactionSettings::new(self.window.unwrap_or(u64::MAX));
        let mark = |mark: Option<MarkSetting>, otherwise| mark.map_or(otherwise, |mark| mark.0);
        let soft = mark(self.soft, of_engine.soft);
        let hard = mark(self.hard, of_engine.hard);
        let is_soft_higher = match (soft, hard) {
            (Mark::Permille(soft), Mark::Permille(hard)) => soft >= hard,
            (Mark::Tokens(soft), Mark::Tokens(hard)) => soft >= hard,
            // A share of what, the model says.
            _ => false,
        };
        if is_soft_higher {
            let shown = |mark, said: bool| {
                let amount = match mark {
                    Mark::Permille(share) => format!("{}%", share / 10),
                    Mark::Tokens(count) => format!("{count} tokens"),
                };
                if said {
                    amount
                } else {
                    format!("{amount}, the default")
                }
            };
            return Err(Clash {
                name: if self.hard.is_some() { "hard" } else { "soft" },
                what: format!(
                    "soft ({}) must be lower than hard ({})",
                    shown(soft, self.soft.is_some()),
                    shown(hard, self.hard.is_some())
                ),
            });
        }
        let Some(window) = self.window else {
            return Ok(());
        };
        for (name, mark) in [("soft", soft), ("hard", hard)] {
            if let Mark::Tokens(count) = mark
                && count >= window
            {
                return Err(Clash {
                    name,
                    what: format!("a window of {window} tokens never reaches {count} tokens"),
                });
            }
        }
        for (name, count, part) in [
            ("memory_tokens", self.memory_tokens, 2),
            ("max_tokens", self.max_tokens, 1),
        ] {
            let most = window / part;
            if count.is_some_and(|count| count > most) {
                return Err(Clash {
                    name,
                    what: format!("in a window of {window} tokens it is at most {most}"),
                });
            }
        }
        Ok(())
    }

    /// Whether `value` is valid for `key` in the file at `path`.
    pub(crate) fn check(key: &Key, value: &Value, path: &Path) -> Result<(), Failure> {
        let mut context = values::Context::of(path);
        (key.set)(&mut Self::default(), value, &mut context).map_err(|what| {
            Failure::new(Kind::Arguments, format!("{}: {what}", key.name)).hint(key.takes_hint())
        })
    }

    /// A session as it is configured: its model, window, system prompt and tools are for others to say.
    pub(crate) fn apply(&self, builder: SessionBuilder) -> SessionBuilder {
        let builder = match self.max_tokens {
            Some(tokens) => builder.max_tokens(tokens),
            None => builder,
        };
        let (mode, soft, hard) = (self.mode, self.soft, self.hard);
        let (memory_tokens, phases) = (self.memory_tokens, self.phases);
        builder.settings(move |settings| {
            settings.mode = mode.unwrap_or(settings.mode);
            settings.soft = soft.map_or(settings.soft, |mark| mark.0);
            settings.hard = hard.map_or(settings.hard, |mark| mark.0);
            settings.memory_tokens_max = memory_tokens.unwrap_or(settings.memory_tokens_max);
            settings.triggers.phases |= phases;
        })
    }

    /// The system prompt that is configured.
    pub(crate) fn system_prompt(&self) -> Result<Option<String>, Failure> {
        self.system.as_deref().map(files::small_file).transpose()
    }

    /// The folder of everything that the program stores: sessions, the history of the prompt.
    pub(crate) fn data_folder(&self) -> Result<PathBuf, Failure> {
        match &self.data {
            Some(folder) => Ok(folder.clone()),
            None => folder_of_user("XDG_DATA_HOME", ".local/share"),
        }
    }
}

/// A value that does not go with another one.
pub(crate) struct Clash {
    pub(crate) name: &'static str,
    pub(crate) what: String,
}

/// Where the file of this user is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// The user has named it, so it has to exist.
    is_named: bool,
}

impl Place {
    /// `$THROUGHLINE_CONFIG`, else `throughline/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
    pub(crate) fn from_environment() -> Result<Self, Failure> {
        if let Some(path) = env::var_os("THROUGHLINE_CONFIG").filter(|path| !path.is_empty()) {
            return Ok(Self {
                path: path.into(),
                is_named: true,
            });
        }
        let folder = folder_of_user("XDG_CONFIG_HOME", ".config")?;
        Ok(Self {
            path: folder.join("config.toml"),
            is_named: false,
        })
    }

    /// The content of the file; `None` without one.
    pub(crate) fn text(&self) -> Result<Option<String>, Failure> {
        match self.path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.is_named => Ok(None),
            _ => files::small_file(&self.path).map(Some),
        }
    }
}

/// The folder of this program in one of the folders that the system gives to its users.
fn folder_of_user(variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
    Ok(user_folder(variable, below_home)?.join("throughline"))
}

/// The folder that `variable` names, else `below_home` in the user's home.
pub(crate) fn user_folder(variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
    let named = env::var_os(variable).map(PathBuf::from);
    let folder = match named.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder,
        None => values::home()
            .ok_or_else(|| {
                Failure::new(Kind::Arguments, "there is no home directory")
                    .hint(format!("set HOME, or {variable}"))
            })?
            .join(below_home),
    };
    Ok(folder)
}

trait KeyValueSpan {
    /// The place of the key and its value.
    fn key_value_span(&self, name: &str) -> Option<Range<usize>>;
}

impl KeyValueSpan for Document<&str> {
    fn key_value_span(&self, name: &str) -> Option<Range<usize>> {
        let (key, item) = self.get_key_value(name)?;
        key.span().or_else(|| Item::span(item))
    }
}

fn broken(text: &str, path: &Path, span: Option<Range<usize>>, what: &str) -> Failure {
    let what = what.lines().next().unwrap_or_default();
    Failure::new(Kind::Arguments, what).at(place(text, path, span))
}

/// The file and the line, as editors and terminals make a link of it.
fn place(text: &str, path: &Path, span: Option<Range<usize>>) -> String {
    let line = span.and_then(|span| text.get(..span.start)).map(|before| {
        let line = before.matches('\n').count() + 1;
        format!(":{line}")
    });
    format!("{}{}", path.display(), line.unwrap_or_default())
}

/// The key that is not in the table.
pub(crate) fn unknown(name: &str) -> Failure {
    let failure = Failure::new(Kind::Arguments, format!("there is no key {name:?}"));
    match nearest(name) {
        Some(key) => failure.hint(format!("do you mean `{}`?", key.name)),
        None => failure.hint("`throughline config show` lists the keys"),
    }
}

/// The key that was most likely meant.
fn nearest(name: &str) -> Option<&'static Key> {
    /// Below that, words have nothing to do with each other.
    const ALIKE: f64 = 0.75;
    let name = name.to_lowercase().replace('-', "_");
    KEYS.iter()
        .map(|key| (strsim::jaro_winkler(&name, key.name), key))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, key)| key)
}

#[cfg(test)]
mod tests;
