//! Where the sessions of this user are kept, and which one is meant.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throughline::store::{
    Access, ErrorKind, Page, SessionId, SessionInfo, SqliteStore, SqliteStoreOptions, Store,
    StoreError, old_files,
};

use crate::config::Config;
use crate::error::{Failure, Kind, chain, reason};
use crate::output::Console;
use crate::words;

const DATABASE: &str = "sessions.db";
/// Where version 0.1 kept sessions with `store = "files"`.
const OLD_FILES: &str = "sessions";

/// Which session is the one that was changed last.
pub(crate) const LAST: &str = "last";

/// How long the end of a command waits for the database, which is whole without that too.
const CLOSING_WAIT: Duration = Duration::from_secs(5);

/// Does the work with the user's store, making it if there is none, and closes it, however the work ends: what is left
/// is one file without a log next to it.
pub(crate) async fn using<T>(
    config: &Config,
    work: impl AsyncFnOnce(&Arc<dyn Store>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut options = SqliteStoreOptions::default();
    // One that cannot be written can be read.
    options.access = Access::AsAllowed;
    using_at(&config.data_folder()?, options, work).await
}

/// The same with the store in a folder.
pub(crate) async fn using_at<T>(
    folder: &Path,
    options: SqliteStoreOptions,
    work: impl AsyncFnOnce(&Arc<dyn Store>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let place = folder.join(DATABASE);
    make_private_folder(folder)?;
    if place.is_dir() {
        let message = format!(
            "{} is a folder, but the database belongs there",
            place.display()
        );
        let hint = "move it away, or `throughline config set data FOLDER` chooses another place";
        return Err(Failure::new(Kind::Input, message).hint(hint));
    }
    let opened = SqliteStore::open_with(&place, options).await;
    let database = opened.map_err(failure)?;
    import_old(&folder.join(OLD_FILES), &database).await;
    let store: Arc<dyn Store> = Arc::new(database.clone());
    let result = work(&store).await;
    // Another handle closes it later.
    let _ = tokio::time::timeout(CLOSING_WAIT, database.close()).await;
    result
}

/// Imports the sessions that version 0.1 kept in files, and renames their folder, so that this is done once. Nothing is
/// deleted.
async fn import_old(root: &Path, database: &SqliteStore) {
    if !old_files::is_old_store(root) {
        return;
    }
    let console = Console::from_environment();
    let imported = match old_files::import(root, database).await {
        Ok(imported) => imported,
        Err(error) => {
            return console.warning(&format!(
                "the sessions in {} are not imported: {}",
                root.display(),
                chain(&error)
            ));
        }
    };
    for (id, error) in &imported.failed {
        console.warning(&format!("session {id} is not imported: {}", chain(error)));
    }
    let mut to = root.with_file_name("sessions-imported");
    let mut number = 1;
    while to.exists() {
        number += 1;
        to = root.with_file_name(format!("sessions-imported-{number}"));
    }
    let is_busy = imported
        .failed
        .iter()
        .any(|(_, error)| error.kind() == ErrorKind::Busy);
    // The next command tries again with what another process is writing.
    let place = match !is_busy && fs::rename(root, &to).is_ok() {
        true => to,
        false => root.to_owned(),
    };
    console.note(&format!(
        "{} of an older version imported into the database; their files are in {}",
        words::counted(imported.sessions, "session"),
        place.display()
    ));
}

/// Gives the room of what was deleted back to the disk; the number of bytes.
pub(crate) async fn shrink(config: &Config) -> Result<u64, Failure> {
    let place = place(config)?;
    let of = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
    let mut log = place.clone().into_os_string();
    log.push("-wal");
    let size = || of(&place) + of(Path::new(&log));
    let before = size();
    let store = SqliteStore::open(&place).await.map_err(failure)?;
    store.shrink().await.map_err(failure)?;
    store.close().await;
    Ok(before.saturating_sub(size()))
}

/// The database.
pub(crate) fn place(config: &Config) -> Result<PathBuf, Failure> {
    Ok(config.data_folder()?.join(DATABASE))
}

/// The folder of everything, for its owner alone. One that exists is left as it is: it may be the user's own.
pub(crate) fn make_private_folder(folder: &Path) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        Failure::new(
            Kind::Output,
            format!(
                "cannot make the folder {}: {}",
                folder.display(),
                reason(&error)
            ),
        )
        .hint("`throughline config set data FOLDER` chooses another place")
    })
}

/// The session that `wanted` means: its id, the beginning of it that no other has, or `last`.
pub(crate) async fn find(store: &dyn Store, wanted: &str) -> Result<SessionInfo, Failure> {
    if wanted == LAST {
        let newest = store.sessions(Page::first(1)).await.map_err(failure)?;
        return newest.into_iter().next().ok_or_else(|| {
            Failure::new(Kind::NothingToDo, "there is no session yet")
                .hint("`throughline chat` begins one")
        });
    }
    let id = SessionId::new(wanted).map_err(|_| none(wanted))?;
    match store.session(&id).await {
        Ok(session) => return Ok(session),
        Err(StoreError::SessionNotFound { .. }) => {}
        Err(error) => return Err(failure(error)),
    }
    let mut begun: Vec<SessionInfo> = sessions(store)
        .await?
        .into_iter()
        .filter(|session| session.id.as_str().starts_with(wanted))
        .collect();
    match (begun.pop(), begun.len()) {
        (None, _) => Err(none(wanted)),
        (Some(only), 0) => Ok(only),
        (Some(_), others) => Err(Failure::new(
            Kind::Arguments,
            format!("{} sessions begin with {wanted}", others + 1),
        )
        .hint("give more of the id")),
    }
}

/// All sessions, the last changed first.
pub(crate) async fn sessions(store: &dyn Store) -> Result<Vec<SessionInfo>, Failure> {
    all(|page| store.sessions(page)).await
}

/// All rows of a store, read page by page.
pub(crate) async fn all<T, F>(read: impl Fn(Page) -> F) -> Result<Vec<T>, Failure>
where
    F: Future<Output = Result<Vec<T>, StoreError>>,
{
    const PAGE_ROWS: u32 = 1_000;
    let mut all = Vec::new();
    loop {
        let page = Page {
            skip: all.len() as u64,
            limit: PAGE_ROWS,
        };
        let found = read(page).await.map_err(failure)?;
        if found.is_empty() {
            return Ok(all);
        }
        all.extend(found);
    }
}

fn none(wanted: &str) -> Failure {
    Failure::new(Kind::Arguments, format!("there is no session {wanted}"))
        .hint("`throughline sessions list` shows them; `last` is the newest")
}

/// What a failure of the store means for the user.
pub(crate) fn failure(error: StoreError) -> Failure {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Busy => Failure::new(Kind::Unavailable, message)
            .hint("close it there, or wait: a session is written by one program at a time"),
        ErrorKind::Full => Failure::new(Kind::Output, message).hint("make room on the disk"),
        ErrorKind::ReadOnly => Failure::new(Kind::Output, message)
            .hint("`throughline doctor` looks at the place of the sessions"),
        ErrorKind::Corrupt => Failure::new(Kind::Input, message)
            .hint("restore it from a backup, or move it away to start with an empty one"),
        ErrorKind::Newer => Failure::new(Kind::Input, message).hint("update throughline"),
        ErrorKind::NotFound => Failure::new(Kind::Arguments, message)
            .hint("`throughline sessions list` shows the sessions"),
        ErrorKind::Unavailable => Failure::new(Kind::Unavailable, message),
        _ => Failure::new(Kind::Bug, message),
    }
}
