//! Other processes: this test program, started again to play a part in a store.
//!
//! A part is an ignored test that does nothing unless it is told, by the environment, in which folder to play.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use throughline_store::{Durability, SqliteStore, SqliteStoreOptions, Store};

const PLACE: &str = "THROUGHLINE_STORE_TEST_PLACE";

/// The store that parts play in.
pub(crate) async fn open(folder: &Path, durability: Durability) -> Arc<dyn Store> {
    let mut options = SqliteStoreOptions::default();
    options.durability = durability;
    let path = folder.join("sessions.db");
    Arc::new(SqliteStore::open_with(path, options).await.unwrap())
}

/// This program, to play the part with this name. What the shell is told comes first.
pub(crate) fn part(name: &str, folder: &Path, shell: &str) -> Command {
    let mut command = Command::new("sh");
    let program = std::env::current_exe().unwrap();
    command
        .arg("-c")
        .arg(format!("{shell} exec \"$0\" \"$@\""))
        .arg(program)
        .args([
            name,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(PLACE, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Where to play, if this process was started to.
pub(crate) fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// Runs a part to its end.
#[track_caller]
pub(crate) fn run(mut command: Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
