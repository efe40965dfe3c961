//! Folders that are one input: the events of an OpenHands conversation, the exports of opencode sessions.
//!
//! Any other folder is refused, with what to give instead.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use throughline_formats::source::SourceText;
use throughline_transcript::json::Raw;

use super::{BYTES_MAX, Input, modified};
use crate::error::{Failure, Kind};
use crate::files::unreadable;
use crate::words;

/// How many files of a folder that cannot be read as a whole are named.
const NAMED_MAX: usize = 5;

pub(super) fn read(path: &Path, name: String) -> Result<Input, Failure> {
    let files = files(path)?;
    let events_folder = path.join("events");
    if events_folder.is_dir() {
        let mut events = events(&self::files(&events_folder)?);
        if !events.is_empty() {
            let state = path.join("base_state.json");
            if state.is_file() {
                events.insert(0, state);
            }
            return joined(&events, name);
        }
    }
    let mut events = events(&files);
    if !events.is_empty() && path.file_name() == Some(OsStr::new("events")) {
        if let Some(state) = path
            .parent()
            .map(|parent| parent.join("base_state.json"))
            .filter(|state| state.is_file())
        {
            events.insert(0, state);
        }
        return joined(&events, name);
    }
    let exports: Vec<PathBuf> = files
        .iter()
        .filter(|file| {
            is_named(file, |name| {
                name.starts_with("ses_") && name.ends_with(".json")
            })
        })
        .cloned()
        .collect();
    if !exports.is_empty() {
        return array(&exports, name);
    }
    Err(refused(path, &files))
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|error| unreadable(folder, &error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    Ok(files)
}

/// The numbered events among the files (`event-00012-ID.json`, `12.json`), in their order.
fn events(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut numbered: Vec<(u64, &PathBuf)> = files
        .iter()
        .filter_map(|file| {
            let stem = file.file_name()?.to_str()?.strip_suffix(".json")?;
            let number = match stem.strip_prefix("event-") {
                Some(rest) => rest.split('-').next()?,
                None => stem,
            };
            Some((number.parse().ok()?, file))
        })
        .collect();
    numbered.sort();
    numbered.into_iter().map(|(_, file)| file.clone()).collect()
}

fn is_named(path: &Path, test: impl Fn(&str) -> bool) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(test)
}

/// The files one after the other.
fn joined(files: &[PathBuf], name: String) -> Result<Input, Failure> {
    let mut bytes = Vec::new();
    for file in files {
        bytes.extend(fs::read(file).map_err(|error| unreadable(file, &error))?);
        bytes.push(b'\n');
        check_size(bytes.len(), &name)?;
    }
    Ok(Input {
        text: SourceText::from_bytes(bytes),
        name,
        warnings: Vec::new(),
    })
}

/// The files as elements of one JSON array. One that is not JSON would spoil the others and is left out.
fn array(files: &[PathBuf], name: String) -> Result<Input, Failure> {
    let mut text = String::from("[");
    let mut warnings = Vec::new();
    for file in files {
        let export =
            SourceText::from_bytes(fs::read(file).map_err(|error| unreadable(file, &error))?);
        match Raw::parse(export.text) {
            Ok(export) => {
                if text.len() > 1 {
                    text.push_str(",\n");
                }
                text.push_str(export.as_str());
            }
            Err(error) => warnings.push(format!(
                "{}: left out, it is not whole: {error}; give it alone to read what there is",
                file.display()
            )),
        }
        check_size(text.len(), &name)?;
    }
    text.push(']');
    Ok(Input {
        text: SourceText::from_text(text),
        name,
        warnings,
    })
}

fn check_size(bytes: usize, name: &str) -> Result<(), Failure> {
    if bytes as u64 > BYTES_MAX {
        return Err(Failure::new(
            Kind::Input,
            format!("the files of {name} have more than {} GiB", BYTES_MAX >> 30),
        )
        .hint("give the files one by one"));
    }
    Ok(())
}

fn refused(path: &Path, files: &[PathBuf]) -> Failure {
    let name = path.display();
    let mut sessions: Vec<_> = files
        .iter()
        .filter(|file| {
            is_named(file, |name| {
                [
                    ".jsonl",
                    ".json",
                    ".jsonl.gz",
                    ".json.gz",
                    ".md",
                    ".db",
                    ".txt",
                ]
                .iter()
                .any(|ending| name.ends_with(ending))
            })
        })
        .map(|file| (file.metadata().ok().as_ref().and_then(modified), file))
        .collect();
    let failure = Failure::new(Kind::Input, format!("{name} is a folder, not a session"));
    if sessions.is_empty() {
        return failure.hint(
            "give a session file; of folders, only an OpenHands conversation (with `events/`) and opencode exports \
             (`ses_*.json`) are read as a whole",
        );
    }
    sessions.sort_by(|a, b| b.cmp(a));
    let count = words::counted(sessions.len(), "file");
    let named: Vec<String> = sessions
        .iter()
        .take(NAMED_MAX)
        .map(|(_, file)| format!("\n  {}", file.display()))
        .collect();
    failure.hint(format!(
        "give one of its {count}; the newest first:{}",
        named.concat()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_the_order_of_their_numbers() {
        let files: Vec<PathBuf> = [
            "10.json",
            "2.json",
            "event-00001-ab-3.json",
            "base_state.json",
            "x.txt",
        ]
        .iter()
        .map(PathBuf::from)
        .collect();
        let names: Vec<_> = events(&files)
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        assert_eq!(names, ["event-00001-ab-3.json", "2.json", "10.json"]);
    }
}
