//! `throughline config`: shows and changes the file.

use serde::Serialize;
use toml_edit::{Array, DocumentMut, Value};

use crate::arguments::config::{self as arguments, Action};
use crate::config::keys::{self, KEYS, Key, Takes};
use crate::config::{Config, Place, unknown};
use crate::error::{Ending, Failure, Kind};
use crate::output::{self, Console};
use crate::storage;
use crate::terminal;

pub(crate) fn run(arguments: &arguments::Config, console: &Console) -> Result<Ending, Failure> {
    let place = Place::from_environment()?;
    match &arguments.action {
        None => show(&place, false, console)?,
        Some(Action::Show { json }) => show(&place, *json, console)?,
        Some(Action::Set { key, value }) => {
            let key = keys::find(key).ok_or_else(|| unknown(key))?;
            change(&place, key, Some(value), console)?;
        }
        Some(Action::Unset { key }) => {
            let key = keys::find(key).ok_or_else(|| unknown(key))?;
            change(&place, key, None, console)?;
        }
        Some(Action::Path) => console.print(&format!("{}\n", place.path.display()))?,
    }
    Ok(Ending::Done)
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    file: String,
    exists: bool,
    keys: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    key: &'static str,
    /// As it is written in the file.
    value: Option<String>,
    default: &'static str,
    about: &'static str,
}

fn show(place: &Place, is_json: bool, console: &Console) -> Result<(), Failure> {
    let text = place.text()?;
    let exists = text.is_some();
    let text = text.unwrap_or_default();
    Config::parse(&text, &place.path)?;
    let document = document(&text)?;
    let value = |key: &Key| Some(document.get(key.name)?.as_value()?.clone());
    let rows: Vec<Row> = KEYS
        .iter()
        .map(|key| Row {
            key: key.name,
            value: value(key).map(|value| value.decorated("", "").to_string()),
            default: key.default,
            about: key.about,
        })
        .collect();
    if is_json {
        return console.print_json(&Report {
            schema: "throughline.config/1",
            file: place.path.display().to_string(),
            exists,
            keys: rows,
        });
    }
    let state = if exists { "" } else { " (there is none yet)" };
    let cells = rows
        .into_iter()
        .map(|row| {
            let value = match row.value {
                Some(value) => value,
                None => format!("({})", row.default),
            };
            vec![row.key.to_owned(), value, row.about.to_owned()]
        })
        .collect();
    console.print(&format!(
        "{}{state}\n\n{}",
        place.path.display(),
        terminal::harmless(&console.table(&["key", "value", "what it is"], cells))
    ))
}

fn change(
    place: &Place,
    key: &'static Key,
    value: Option<&str>,
    console: &Console,
) -> Result<(), Failure> {
    let before = place.text()?.unwrap_or_default();
    let after = changed(&before, key, value)?;
    if let Some(text) = value {
        Config::check(key, &meant(key, text), &place.path)?;
    }
    // A value can conflict with the others. A conflict from before is not this change's to fix.
    if Config::parse(&before, &place.path).is_ok()
        && let Err(clash) = Config::understand(&after, &place.path)?.agrees()
    {
        let what = format!("{}: {}", clash.name, clash.what);
        return Err(Failure::new(Kind::Arguments, what));
    }
    if let Some(folder) = place.path.parent() {
        storage::make_private_folder(folder)?;
    }
    output::write(Some(&place.path), &after)?;
    console.summary(&format!("{} is changed", place.path.display()));
    Ok(())
}

/// The text of the file with another value, or without one. Everything else stays as it is.
fn changed(before: &str, key: &'static Key, value: Option<&str>) -> Result<String, Failure> {
    let mut document = document(before)?;
    match value {
        None => {
            document.remove(key.name);
        }
        Some(text) => {
            let mut value = meant(key, text);
            if let Some(old) = document.get(key.name).and_then(|item| item.as_value()) {
                // The comment behind it.
                *value.decor_mut() = old.decor().clone();
            }
            document[key.name] = toml_edit::Item::Value(value);
        }
    }
    Ok(document.to_string())
}

fn document(text: &str) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        Failure::new(
            Kind::Arguments,
            format!("the file is no TOML: {}", error.message()),
        )
    })
}

/// The value that was typed, without the quotes that a shell has taken away.
fn meant(key: &Key, text: &str) -> Value {
    match (key.takes, text.parse::<i64>()) {
        (Takes::Tools, _) => {
            let list = text.trim().trim_start_matches('[').trim_end_matches(']');
            let names = list.split(',').map(|name| name.trim().trim_matches('"'));
            Value::Array(Array::from_iter(names.filter(|name| !name.is_empty())))
        }
        (Takes::Tokens | Takes::Mark, Ok(number)) => Value::from(number),
        (Takes::Path, _) => Value::from(from_here(text)),
        (Takes::Credential, _) => Value::from(match text.strip_prefix("file:") {
            Some(path) => format!("file:{}", from_here(path)),
            None => text.to_owned(),
        }),
        _ => Value::from(text),
    }
}

/// A path that is typed counts from the current folder, one in the file from there.
fn from_here(path: &str) -> String {
    if path.is_empty() || path.starts_with("~/") {
        return path.to_owned();
    }
    match std::path::absolute(path) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_value_changes() {
        let before = "# mine\nmodel = \"a\" # good\n\n# later\nwindow = 1000\n";
        let check = |name: &str, value: Option<&str>, expected: &str| {
            assert_eq!(
                changed(before, keys::find(name).unwrap(), value).unwrap(),
                expected,
                "{name}"
            );
        };
        check(
            "model",
            Some("b"),
            "# mine\nmodel = \"b\" # good\n\n# later\nwindow = 1000\n",
        );
        check(
            "window",
            Some("2000"),
            "# mine\nmodel = \"a\" # good\n\n# later\nwindow = 2000\n",
        );
        check(
            "tools",
            Some("recall, read_file"),
            "# mine\nmodel = \"a\" # good\n\n# later\nwindow = 1000\ntools = [\"recall\", \"read_file\"]\n",
        );
        let here = std::env::current_dir().unwrap();
        let expected = format!("{before}system = \"{}/p.md\"\n", here.display());
        check("system", Some("p.md"), &expected);
        let expected = format!("{before}credential = \"file:~/key\"\n");
        check("credential", Some("file:~/key"), &expected);
        check("window", None, "# mine\nmodel = \"a\" # good\n");
    }
}
