//! Other processes: this test program, started again to play a part in a store.
//!
//! A part is an ignored test that does nothing unless it is told, by the environment, which store to play in.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use throughline_store::{
    Durability, FileStore, FileStoreOptions, SqliteStore, SqliteStoreOptions, Store,
};

const PLACE: &str = "THROUGHLINE_STORE_TEST_PLACE";

/// The two kinds that outlive a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Files,
    Sqlite,
}

impl Kind {
    pub(crate) async fn open(self, folder: &Path, durability: Durability) -> Arc<dyn Store> {
        match self {
            Self::Files => {
                let mut options = FileStoreOptions::default();
                options.durability = durability;
                Arc::new(
                    FileStore::open_with(folder.join("sessions"), options)
                        .await
                        .unwrap(),
                )
            }
            Self::Sqlite => {
                let mut options = SqliteStoreOptions::default();
                options.durability = durability;
                Arc::new(
                    SqliteStore::open_with(folder.join("sessions.db"), options)
                        .await
                        .unwrap(),
                )
            }
        }
    }
}

/// This program, to play the part with this name. What the shell is told comes first.
pub(crate) fn part(name: &str, kind: Kind, folder: &Path, shell: &str) -> Command {
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
        .env(PLACE, format!("{kind:?}:{}", folder.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Which store to play in, if this process was started to.
pub(crate) fn place() -> Option<(Kind, PathBuf)> {
    let place = std::env::var(PLACE).ok()?;
    let (kind, folder) = place.split_once(':')?;
    let kind = if kind == "Files" {
        Kind::Files
    } else {
        Kind::Sqlite
    };
    Some((kind, PathBuf::from(folder)))
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
