//! Where the sessions of this user are kept, and which one is meant.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throughline::store::{
    Access, DamagedSession, ErrorKind, FileStore, Page, SessionId, SessionInfo, SqliteStore,
    SqliteStoreOptions, Store, StoreError,
};

use crate::config::{Config, StoreKind};
use crate::error::{Failure, Kind, reason};

/// Which session is the one that was changed last.
pub(crate) const LAST: &str = "last";

/// How long the end of a command waits for the database, which is whole without that too.
const CLOSING_WAIT: Duration = Duration::from_secs(5);

/// Does the work with the store of the configuration, making it if there is none, and closes it, however the work ends:
/// what is left is one file without a log beside it.
pub(crate) async fn using<T>(
    config: &Config,
    work: impl AsyncFnOnce(&Arc<dyn Store>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut options = SqliteStoreOptions::default();
    // One that cannot be written can be read.
    options.access = Access::AsAllowed;
    let folder = config.data_folder()?;
    using_at(&folder, config.store, options, work).await
}

/// The same with the store in a folder.
pub(crate) async fn using_at<T>(
    folder: &Path,
    kind: StoreKind,
    options: SqliteStoreOptions,
    work: impl AsyncFnOnce(&Arc<dyn Store>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let place = folder.join(name(kind));
    make_private_folder(folder)?;
    check_kind(kind, &place)?;
    match kind {
        StoreKind::Sqlite => {
            let opened = SqliteStore::open_with(&place, options).await;
            let database = opened.map_err(failure)?;
            let store: Arc<dyn Store> = Arc::new(database.clone());
            let result = work(&store).await;
            // Whoever still has it open closes it later.
            let _ = tokio::time::timeout(CLOSING_WAIT, database.close()).await;
            result
        }
        StoreKind::Files => {
            let store: Arc<dyn Store> = Arc::new(FileStore::open(&place).await.map_err(failure)?);
            work(&store).await
        }
    }
}

/// A database is a file, and the other kind of store a folder.
fn check_kind(store: StoreKind, place: &Path) -> Result<(), Failure> {
    let (is_wrong, is, needed) = match store {
        StoreKind::Sqlite => (place.is_dir(), "a folder", "the database is to be"),
        StoreKind::Files => (
            place.is_file(),
            "a file",
            "the folder of the sessions is to be",
        ),
    };
    match is_wrong {
        false => Ok(()),
        true => Err(Failure::new(
            Kind::Input,
            format!("{} is {is}, where {needed}", place.display()),
        )
        .hint("move it away, or `throughline config set data FOLDER` chooses another place")),
    }
}

/// Gives the room of what was deleted back to the disk; so many bytes. Files have given it back already.
pub(crate) async fn shrink(config: &Config) -> Result<u64, Failure> {
    let place = place(config)?;
    if config.store == StoreKind::Files {
        return Ok(0);
    }
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

/// The database, or the folder.
pub(crate) fn place(config: &Config) -> Result<PathBuf, Failure> {
    Ok(config.data_folder()?.join(name(config.store)))
}

fn name(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::Sqlite => "sessions.db",
        StoreKind::Files => "sessions",
    }
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
        let newest = newest.into_iter().next();
        // Where it is damaged, nobody is put into another one without a word.
        let damaged = store.damaged().await.map_err(failure)?;
        let changed = newest.as_ref().map(|session| session.updated_ms);
        if let Some(damaged) = damaged.into_iter().find(|one| one.changed_ms >= changed) {
            let hint = "another one can be named by its id: `throughline sessions list` shows them";
            return Err(
                Failure::new(Kind::Input, format!("the newest session, {}", of(&damaged)))
                    .hint(hint),
            );
        }
        return newest.ok_or_else(|| {
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
    const PAGE_ROWS: u32 = 1_000;
    let mut all = Vec::new();
    loop {
        let page = Page {
            skip: all.len() as u64,
            limit: PAGE_ROWS,
        };
        let found = store.sessions(page).await.map_err(failure)?;
        if found.is_empty() {
            return Ok(all);
        }
        all.extend(found);
    }
}

/// A session that cannot be read, and why.
pub(crate) fn of(damaged: &DamagedSession) -> String {
    format!(
        "{}, cannot be read: {}",
        damaged.id,
        crate::error::chain(&damaged.error)
    )
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
            .hint("restore it from a backup, or move it away to begin anew"),
        ErrorKind::Newer => Failure::new(Kind::Input, message).hint("update throughline"),
        ErrorKind::NotFound => Failure::new(Kind::Arguments, message)
            .hint("`throughline sessions list` shows the sessions"),
        ErrorKind::Unavailable => Failure::new(Kind::Unavailable, message),
        _ => Failure::new(Kind::Bug, message),
    }
}
