//! `throughline config`, `doctor` and `models --provider`: what is settled, and whether it works.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::simulate::Running;
use crate::{command, fed, stderr, stdout};

/// A user without the settings and keys of others.
pub(crate) struct User {
    folder: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the data is.
    pub(crate) fn data(&self) -> PathBuf {
        self.path(".local/share/throughline")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.env("HOME", self.folder.path());
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "THROUGHLINE_CONFIG",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "GEMINI_API_KEY",
            "DEEPSEEK_API_KEY",
        ] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// With something that comes from a pipe.
    pub(crate) fn piped(&self, arguments: &[&str], input: &str) -> Output {
        fed(&mut self.command(arguments), input.as_bytes())
    }

    #[track_caller]
    pub(crate) fn printed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output).to_owned()
    }

    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str], code: i32, parts: &[&str]) {
        let output = self.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{part:?} is missing: {said}");
        }
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_set_is_kept_with_its_comments_for_its_owner_alone() {
    let user = User::new();
    let file = user.path(".config/throughline/config.toml");
    assert_eq!(
        user.printed(&["config", "path"]),
        format!("{}\n", file.display())
    );
    user.printed(&["config", "set", "model", "simulated"]);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let commented = fs::read_to_string(&file).unwrap() + "# small on purpose\nwindow = 1000\n";
    fs::write(&file, commented).unwrap();
    user.printed(&["config", "set", "window", "30k"]);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "model = \"simulated\"\n# small on purpose\nwindow = \"30k\"\n"
    );
    user.printed(&["config", "unset", "window"]);
    let shown = user.printed(&["config"]);
    assert!(shown.contains("\"simulated\""), "{shown}");

    let before = fs::read_to_string(&file).unwrap();
    user.refused(&["config", "set", "mode", "fast"], 2, &["instant"]);
    user.refused(&["config", "set", "modell", "x"], 2, &["`model`"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn a_file_with_a_mistake_is_named_with_its_line() {
    let user = User::new();
    let file = user.path("mine.toml");
    fs::write(&file, "model = \"m\"\nwindows = 1\n").unwrap();
    let said = |arguments: &[&str]| {
        let output = user
            .command(arguments)
            .env("THROUGHLINE_CONFIG", &file)
            .output()
            .unwrap();
        (output.status.code(), stderr(&output).to_owned())
    };
    let (code, text) = said(&["sessions"]);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("mine.toml:2: there is no key \"windows\""),
        "{text}"
    );
    assert!(text.contains("`window`"), "{text}");
    // A file that is named has to be there.
    fs::remove_file(&file).unwrap();
    assert_eq!(said(&["sessions"]).0, Some(2));
}

#[test]
fn the_doctor_says_what_is_missing_and_what_to_do() {
    let user = User::new();
    let output = user.run(&["doctor", "--model", "gpt-5"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(said.contains("FAIL  key"), "{said}");
    assert!(said.contains("OPENAI_API_KEY is not set"), "{said}");
    assert!(said.contains("--model simulated"), "{said}");
    assert!(!user.data().exists(), "it only looks");

    user.printed(&["doctor", "--model", "simulated"]);
    let file = user.path("notes");
    fs::write(&file, "").unwrap();
    user.printed(&[
        "config",
        "set",
        "data",
        file.join("below").to_str().unwrap(),
    ]);
    let output = user.run(&["doctor", "--model", "simulated", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["ok"], false);
    let failed: Vec<&str> = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["state"] == "failure")
        .map(|finding| finding["name"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["data"]);
}

#[test]
fn a_server_is_asked_what_it_has_and_never_shown_the_key_of_another() {
    let user = User::new();
    let record = user.path("record.jsonl");
    let server = Running::start(&["--record", record.to_str().unwrap()]);
    let url = format!("http://{}", server.address);
    let listed = user.printed(&["models", "--provider", "--base-url", &url, "gpt-4.1"]);
    assert!(listed.contains("gpt-4.1-mini"), "{listed}");

    let output = user
        .command(&["doctor", "--base-url", &url, "--model", "gpt-5"])
        .env("OPENAI_API_KEY", "not-for-this-server")
        .output()
        .unwrap();
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the provider has gpt-5"), "{said}");
    assert!(!said.contains("not-for-this-server"), "{said}");

    let key = user.path("key");
    fs::write(&key, "any").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let place = format!("file:{}", key.display());
    user.printed(&["config", "set", "credential", &place]);
    let output = user.run(&["doctor", "--base-url", &url, "--model", "gpt-5"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("chmod 600"), "{}", stdout(&output));
    server.end("-TERM");
}

#[test]
fn what_makes_no_sense_is_not_set() {
    let user = User::new();
    let check = |key: &str, value: &str, part: &str| {
        let output = user.run(&["config", "set", key, value]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{key} {value}: {said}");
        assert!(said.contains(part), "{part:?} is missing: {said}");
        // It is in no file.
        assert!(!said.contains("config.toml"), "{said}");
    };
    let address = "http:// or https://";
    check("base_url", "nonsense", address);
    check("base_url", "127.0.0.1:8080", address);
    check("base_url", "ftp://example.com", address);
    check(
        "tools",
        "recall,fly",
        "there is no tool \"fly\"; there are recall, ",
    );
    check("window", "1", "at least 1000 tokens");
    check("memory_tokens", "1", "at least 200 tokens");
    check(
        "soft",
        "90%",
        "soft (90%) must be lower than hard (80%, the default)",
    );
    check(
        "hard",
        "50%",
        "soft (50%, the default) must be lower than hard (50%)",
    );
    assert!(!user.path(".config").exists(), "nothing was written");

    user.printed(&["config", "set", "soft", "30%"]);
    user.printed(&["config", "set", "hard", "40%"]);
    check("soft", "40%", "lower than hard");
    let output = user.run(&["config", "unset", "soft"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    user.printed(&["config", "unset", "hard"]);
    user.printed(&["config", "set", "window", "20k"]);
    check("hard", "20000", "window of 20000 tokens never reaches");
    check("memory_tokens", "10001", "at most 10000");
    check("max_tokens", "30k", "at most 20000");
    // A file with two mistakes can be mended one after the other.
    let file = user.path(".config/throughline/config.toml");
    fs::write(&file, "window = 1\nbase_url = \"nonsense\"\n").unwrap();
    user.printed(&["config", "set", "window", "20k"]);
    user.printed(&["config", "unset", "base_url"]);
    user.printed(&["config"]);
}

/// A password in an address is neither stored nor shown, wherever it comes from.
#[test]
fn keys_in_addresses_are_refused_and_not_repeated() {
    let user = User::new();
    let secret = "hunter2";
    let silent = |output: &Output, what: &str| {
        let said = format!("{}{}", stdout(output), stderr(output));
        assert!(!said.contains(secret), "{what}: {said}");
        assert!(said.contains("`credential`"), "{what}: {said}");
    };
    for url in [
        "https://me:hunter2@gateway.example/v1",
        "https://hunter2@gateway.example/v1",
        "https://gateway.example/v1?key=hunter2",
    ] {
        let set = user.run(&["config", "set", "base_url", url]);
        assert_eq!(set.status.code(), Some(2), "{url}");
        silent(&set, url);
        assert!(!user.path(".config").exists());
        for command in [
            &["doctor", "--base-url", url][..],
            &["chat", "--print", "x", "--base-url", url],
            &["models", "--provider", "--base-url", url],
        ] {
            silent(&user.run(command), url);
        }
        let output = user
            .command(&["doctor"])
            .env("ANTHROPIC_API_KEY", "any")
            .env("ANTHROPIC_BASE_URL", url)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        silent(&output, url);
    }
    // It was written there by hand.
    let file = user.path("mine.toml");
    fs::write(
        &file,
        "base_url = \"https://me:hunter2@gateway.example/v1\"\n",
    )
    .unwrap();
    for command in [&["config"][..], &["config", "show", "--json"], &["doctor"]] {
        let output = user
            .command(command)
            .env("THROUGHLINE_CONFIG", &file)
            .output()
            .unwrap();
        assert_ne!(output.status.code(), Some(0), "{command:?}");
        silent(&output, &format!("{command:?}"));
    }
}

#[test]
fn a_folder_in_the_place_of_the_database_is_said_once_with_what_to_do() {
    let user = User::new();
    let database = user.data().join("sessions.db");
    fs::create_dir_all(&database).unwrap();
    let said = database.display().to_string();
    user.refused(
        &["sessions"],
        2,
        &[&said, "is a folder", "move it away", "config set data"],
    );
    let output = user.run(&["doctor", "--model", "simulated"]);
    assert_eq!(output.status.code(), Some(1));
    let line = stdout(&output)
        .lines()
        .find(|line| line.starts_with("FAIL  sessions"))
        .unwrap();
    assert_eq!(line.matches(&said).count(), 1, "{line}");
    assert!(stdout(&output).contains("-> move it away"));
}

#[test]
fn a_data_folder_that_others_can_look_into_is_found_and_new_ones_are_private() {
    let user = User::new();
    user.printed(&["sessions"]);
    assert_eq!(mode(&user.data()), 0o700);
    assert_eq!(mode(&user.data().join("sessions.db")), 0o600);
    fs::set_permissions(user.data(), fs::Permissions::from_mode(0o755)).unwrap();
    let output = user.run(&["doctor", "--model", "simulated"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    let folder = user.data().display().to_string();
    assert!(
        said.contains(&format!("others may look into {folder}")),
        "{said}"
    );
    assert!(
        said.contains(&format!("-> chmod go-rwx {folder}")),
        "{said}"
    );
}
