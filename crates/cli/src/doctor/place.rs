//! What `doctor` finds on this machine.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::config::Config;
use crate::error::reason;
use crate::output::Console;
use crate::terminal;
use crate::{storage, words};

/// With less, not even a few sessions have room.
const ROOM_NEEDED_BYTES: u64 = 64 * 1024 * 1024;
/// With less, it is time to look.
const ROOM_WANTED_BYTES: u64 = 1024 * 1024 * 1024;

/// The data folder: there, writable, private, with room; and the paths of the configuration.
pub(super) fn files(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    match config.data_folder() {
        Ok(folder) => {
            findings.push(writable(&folder));
            if folder.is_dir() {
                findings.push(private(config, &folder));
            }
            findings.extend(room(&folder));
        }
        Err(failure) => findings.push(Finding::of_failure("data", &failure)),
    }
    for (key, path, is_folder) in [
        ("catalogue", &config.catalogue, false),
        ("system", &config.system, false),
        ("root", &config.root, true),
        ("save", &config.save, true),
    ] {
        let is_there = |path: &Path| match is_folder {
            true => path.is_dir(),
            false => path.is_file(),
        };
        if let Some(path) = path
            && !is_there(path)
        {
            let kind = if is_folder { "folder" } else { "file" };
            findings.push(Finding::failure(
                "paths",
                format!("{key}: there is no {kind} {}", path.display()),
                format!("`throughline config set {key} PATH`, or `unset {key}`"),
            ));
        }
    }
    findings
}

/// The first folder that exists, from this one upwards.
fn existing(folder: &Path) -> &Path {
    let mut here = folder;
    while !here.exists() {
        match here.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => here = parent,
            _ => return Path::new("."),
        }
    }
    here
}

fn writable(folder: &Path) -> Finding {
    let there = existing(folder);
    let advice = "`throughline config set data FOLDER` chooses another place";
    // Permission bits do not tell everything: only writing does.
    match tempfile::tempfile_in(there) {
        Ok(_) if there == folder => {
            Finding::ok("data", format!("{} is writable", folder.display()))
        }
        Ok(_) => Finding::ok(
            "data",
            format!("{} will be made when it is needed", folder.display()),
        ),
        Err(error) => Finding::failure(
            "data",
            format!("cannot write into {}: {}", there.display(), reason(&error)),
            advice,
        ),
    }
}

/// Only its owner can read it.
fn private(config: &Config, folder: &Path) -> Finding {
    let mut open: Vec<PathBuf> = Vec::new();
    let mut look = |path: &Path| {
        let mode = fs::metadata(path).map(|metadata| metadata.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o077 != 0) {
            open.push(path.to_owned());
        }
    };
    look(folder);
    if let Ok(place) = storage::place(config) {
        look(&place);
        for ending in ["-wal", "-shm"] {
            let mut name = place.clone().into_os_string();
            name.push(ending);
            look(Path::new(&name));
        }
    }
    match open.as_slice() {
        [] => Finding::ok("permissions", "only you can read what is stored"),
        [first, ..] => {
            let paths: Vec<String> = open.iter().map(|path| path.display().to_string()).collect();
            Finding::failure(
                "permissions",
                format!("others may look into {}", first.display()),
                format!("chmod go-rwx {}", paths.join(" ")),
            )
        }
    }
}

fn room(folder: &Path) -> Option<Finding> {
    let there = existing(folder);
    let disk = rustix::fs::statvfs(there).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let what = format!("{} MB are free", words::number(free / (1024 * 1024)));
    let advice = "make room, or choose another place: `throughline config set data FOLDER`; `throughline sessions gc` deletes old sessions";
    Some(match free {
        free if free < ROOM_NEEDED_BYTES => Finding::failure("disk", what, advice),
        free if free < ROOM_WANTED_BYTES => Finding::warning("disk", what, advice),
        _ => Finding::ok("disk", what),
    })
}

/// Whether the store opens.
pub(super) async fn sessions(config: &Config) -> Option<Finding> {
    let place = storage::place(config).ok()?;
    if !place.exists() {
        return Some(Finding::ok("sessions", "there is no session yet"));
    }
    let found = storage::using(config, async |store| {
        storage::sessions(store.as_ref()).await
    });
    Some(match found.await {
        Ok(sessions) => Finding::ok(
            "sessions",
            format!(
                "{} in {}",
                words::counted(sessions.len(), "session"),
                place.display()
            ),
        ),
        Err(failure) => {
            let place = place.display().to_string();
            let is_said = failure.message().contains(&place);
            let failure = if is_said { failure } else { failure.at(place) };
            Finding::of_failure("sessions", &failure)
        }
    })
}

pub(super) fn terminal(console: &Console) -> Finding {
    if !console.is_stdout_terminal {
        return Finding::ok("terminal", "none: output goes into a file or a pipe");
    }
    let width = terminal::width();
    let characters = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| env::var(name).ok())
        .find(|value| !value.is_empty())
        .unwrap_or_default();
    let is_utf8 = ["utf-8", "utf8"]
        .iter()
        .any(|name| characters.to_lowercase().ends_with(name));
    let kind = env::var("TERM").unwrap_or_default();
    let what = format!("{kind}, {width} columns");
    if kind.is_empty() || kind == "dumb" {
        return Finding::warning(
            "terminal",
            "it can neither move its cursor nor show colours",
            "set TERM to what your terminal is, such as xterm-256color",
        );
    }
    if !is_utf8 {
        return Finding::warning(
            "terminal",
            format!("{what}, no UTF-8"),
            "set LANG to a locale with UTF-8, such as C.UTF-8",
        );
    }
    Finding::ok("terminal", format!("{what}, UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    fn config(folder: &Path) -> Config {
        Config {
            data: Some(folder.to_owned()),
            ..Config::default()
        }
    }

    #[test]
    fn what_others_can_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("sessions.db");
        fs::write(&database, "").unwrap();
        let state = |folder_mode, file_mode| {
            let mode = fs::Permissions::from_mode;
            fs::set_permissions(folder.path(), mode(folder_mode)).unwrap();
            fs::set_permissions(&database, mode(file_mode)).unwrap();
            private(&config(folder.path()), folder.path())
        };
        assert_eq!(state(0o700, 0o600).state, State::Ok);
        let finding = state(0o700, 0o644);
        assert_eq!(finding.state, State::Failure);
        let advice = finding.advice.unwrap();
        assert_eq!(advice, format!("chmod go-rwx {}", database.display()));
        assert_eq!(state(0o755, 0o600).state, State::Failure);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(writable(&folder.path().join("new/newer")).state, State::Ok);
        assert_eq!(writable(&file.join("below")).state, State::Failure);
    }

    #[test]
    fn paths_of_the_configuration_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Config {
            system: Some(folder.path().join("prompt.md")),
            root: Some(folder.path().to_owned()),
            ..config(folder.path())
        };
        let found: Vec<String> = files(&missing)
            .into_iter()
            .filter(|finding| finding.name == "paths")
            .map(|finding| finding.what)
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("system: there is no file "),
            "{found:?}"
        );
    }
}
