//! Opening a database, and what its errors mean.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use tempfile::TempDir;

use super::checkpoint::Checkpoints;
use super::group::Commits;
use super::reserve::Reserve;
use super::{Access, Inner, SqliteStoreOptions};
use crate::error::{ErrorKind, StoreError};
use crate::lease::Lease;
use crate::private;
use crate::store::Durability;

/// The steps to the current format. A released step never changes: its checksum is stored with the database.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let steps = [(
        1,
        "sessions",
        include_str!("../../migrations/0001_sessions.sql"),
    )];
    Migrator::with_migrations(
        steps
            .into_iter()
            .map(|(version, name, sql)| {
                let sql = sql.into_sql_str();
                Migration::new(version, name.into(), MigrationType::Simple, sql, false)
            })
            .collect(),
    )
});

/// How many readers there are at a time in one process.
const READERS_MAX: u32 = 4;
/// How long one process waits for another that opens, and perhaps migrates, the same database.
const OPENING_WAIT: Duration = Duration::from_secs(60);
/// A commit carries the log into the database itself only when this many pages wait (32 MB): long after it should have
/// been done beside the commits.
const LOG_PAGES_MAX: u64 = 8_192;
/// The log is cut to this size when SQLite starts it from the beginning.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Statements that a connection keeps prepared. A batch of those that write takes about 100 KB.
const STATEMENTS_KEPT: usize = 24;
/// SQLite's own, and what the file is made with.
const PAGE_BYTES: u64 = 4096;

pub(super) async fn open(path: &Path, options: &SqliteStoreOptions) -> Result<Inner, StoreError> {
    match options.access {
        Access::ReadOnly => open_to_read(path, options).await,
        Access::ReadWrite => open_to_write(path, options).await,
        Access::AsAllowed => match open_to_write(path, options).await {
            Err(refused) if refused.kind() == ErrorKind::ReadOnly => {
                let reading = open_to_read(path, options).await;
                reading.map_err(|error| match error {
                    // There is nothing to read: what was wanted is to write.
                    StoreError::Unavailable { .. } => refused,
                    error => error,
                })
            }
            opened => opened,
        },
    }
}

async fn open_to_read(path: &Path, options: &SqliteStoreOptions) -> Result<Inner, StoreError> {
    let mut connect = connect_options(path, options).read_only(true);
    let mut copy = None;
    let connected = pool(READERS_MAX).connect_with(connect.clone()).await;
    let reading = match connected {
        Err(refused) if is_index_refused(&refused) && path.is_file() => {
            // Readers need to write the index of the log. Without a log, no process has the database open for writing,
            // so it can be read as immutable. With one, copies of both are read, in a folder where an index can be written.
            if log_bytes(path) == 0 {
                connect = connect.immutable(true);
            } else {
                let (folder, copied) = copied(path)?;
                connect = connect_options(&copied, options);
                copy = Some(folder);
            }
            pool(READERS_MAX).connect_with(connect.clone()).await
        }
        connected => connected,
    };
    let reading = reading.map_err(|e| error(path, e))?;
    check_format(path, &reading).await?;
    let checkpoints = Checkpoints::new(pool(1).connect_lazy_with(connect.clone()));
    let writing = pool(1).connect_lazy_with(connect);
    Ok(Inner {
        path: path.to_owned(),
        locks: beside(path, ".locks"),
        access: Access::ReadOnly,
        writing,
        reading,
        commits: Commits::default(),
        checkpoints,
        reserve: None,
        _copy: copy,
    })
}

/// Whether a database cannot be read because a file beside it cannot be made or written.
fn is_index_refused(error: &sqlx::Error) -> bool {
    matches!(
        code(error).map(|code| code & 0xff),
        Some(8 | 10 | CANNOT_OPEN)
    )
}

fn log_bytes(path: &Path) -> u64 {
    beside(path, "-wal")
        .metadata()
        .map_or(0, |metadata| metadata.len())
}

fn copied(path: &Path) -> Result<(TempDir, PathBuf), StoreError> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("sessions.db");
    for ending in ["", "-wal"] {
        let mut from = File::open(beside(path, ending))?;
        io::copy(&mut from, &mut private::open_file(&beside(&copy, ending))?)?;
    }
    Ok((folder, copy))
}

async fn open_to_write(path: &Path, options: &SqliteStoreOptions) -> Result<Inner, StoreError> {
    let reserve = Reserve::beside(path);
    let opened = match connect_to_write(path, options).await {
        // Even to open a database takes some room.
        Err(full) if full.kind() == ErrorKind::Full && reserve.give_up() => {
            connect_to_write(path, options).await
        }
        opened => opened,
    };
    let mut inner = opened?;
    reserve.make();
    inner.reserve = Some(reserve);
    Ok(inner)
}

async fn connect_to_write(path: &Path, options: &SqliteStoreOptions) -> Result<Inner, StoreError> {
    let locks = beside(path, ".locks");
    let connect = connect_options(path, options);
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        private::create_folder(folder)?;
    }
    // SQLite gives its other files the permissions of this one.
    drop(private::open_file(path)?);
    // Changing the journal mode and migrating do not wait for each other by themselves. No session has this name.
    let opening = Lease::acquire(&locks.join(".opening"), OPENING_WAIT).await?;
    let opening = opening.map_err(|_| StoreError::DatabaseBusy)?;
    let writing = pool(1).connect_with(connect.clone()).await.map_err(|e| {
        match code(&e).map(|code| code & 0xff) {
            // The database is there; the files that belong beside it cannot be made.
            Some(CANNOT_OPEN) => StoreError::ReadOnly {
                source: Some(said(e)),
            },
            _ => error(path, e),
        }
    })?;
    MIGRATIONS
        .run(&writing)
        .await
        .map_err(|e| migration_error(path, e))?;
    drop(opening);
    let checkpoints = Checkpoints::new(pool(1).connect_lazy_with(connect.clone()));
    let reading = pool(READERS_MAX)
        .connect_with(connect.pragma("query_only", "ON"))
        .await
        .map_err(|e| error(path, e))?;
    Ok(Inner {
        path: path.to_owned(),
        locks,
        access: Access::ReadWrite,
        writing,
        reading,
        commits: Commits::default(),
        checkpoints,
        reserve: None,
        _copy: None,
    })
}

pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn pool(connections_max: u32) -> SqlitePoolOptions {
    // A connection to a file does not go stale: nothing is gained by testing or replacing it.
    SqlitePoolOptions::new()
        .max_connections(connections_max)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
}

fn connect_options(path: &Path, options: &SqliteStoreOptions) -> SqliteConnectOptions {
    let synchronous = match options.durability {
        Durability::PowerLoss => SqliteSynchronous::Full,
        Durability::ProcessKill => SqliteSynchronous::Normal,
    };
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(Duration::from_millis(options.busy_wait_ms))
        .synchronous(synchronous)
        .statement_cache_capacity(STATEMENTS_KEPT)
        // What a user deletes is overwritten, not only forgotten.
        .pragma("secure_delete", "ON")
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", LOG_PAGES_MAX.to_string())
        .pragma("journal_size_limit", LOG_BYTES_MAX.to_string());
    let connect = match options.access {
        Access::ReadWrite | Access::AsAllowed => connect.journal_mode(SqliteJournalMode::Wal),
        Access::ReadOnly => connect,
    };
    match options.database_bytes_max {
        Some(bytes_max) => connect.pragma(
            "max_page_count",
            (bytes_max / PAGE_BYTES).max(1).to_string(),
        ),
        None => connect,
    }
}

/// Refuses a format that this program does not know; a reader cannot bring an older one up to date either.
async fn check_format(path: &Path, pool: &SqlitePool) -> Result<(), StoreError> {
    let found: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(pool)
        .await
        .map_err(|e| error(path, e))?;
    match (found.unwrap_or(0), known_format()) {
        (found, known) if found > known => Err(StoreError::Newer { found, known }),
        (found, known) if found < known => Err(StoreError::ReadOnly { source: None }),
        _ => Ok(()),
    }
}

fn known_format() -> i64 {
    MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}

fn migration_error(path: &Path, migrating: MigrateError) -> StoreError {
    match migrating {
        MigrateError::VersionMissing(found) => StoreError::Newer {
            found,
            known: known_format(),
        },
        MigrateError::VersionMismatch(_) | MigrateError::Dirty(_) => StoreError::Corrupt {
            path: path.to_owned(),
            what: "its format is not one that was ever released",
        },
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
            error(path, cause)
        }
        other => StoreError::Unavailable {
            source: other.into(),
        },
    }
}

/// SQLite's code of a commit for which there is no room, and of the index of the log for which there is none: it lies
/// in a file of its own, which is made larger before it is used.
const FULL: u32 = 13;
const INDEX_FULL: u32 = 10 | 19 << 8;
const CANNOT_OPEN: u32 = 14;

pub(super) fn error(path: &Path, error: sqlx::Error) -> StoreError {
    let code = code(&error);
    // The low byte is the class: https://www.sqlite.org/rescode.html
    match (error, code.map(|code| code & 0xff)) {
        (_, Some(5 | 6)) | (sqlx::Error::PoolTimedOut, _) => StoreError::DatabaseBusy,
        (error, Some(8)) => StoreError::ReadOnly {
            source: Some(said(error)),
        },
        (error, _) if matches!(code, Some(FULL | INDEX_FULL)) => StoreError::Full {
            source: said(error),
        },
        (_, Some(11)) => corrupt(path, "the database is damaged"),
        (_, Some(26)) => corrupt(path, "this is no database"),
        (sqlx::Error::Io(error), _) => error.into(),
        (sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_), _) => {
            corrupt(path, "a row has a value of another kind")
        }
        (error, _) => StoreError::Unavailable {
            source: said(error),
        },
    }
}

fn code(error: &sqlx::Error) -> Option<u32> {
    let sqlx::Error::Database(database) = error else {
        return None;
    };
    database.code()?.parse().ok()
}

/// What SQLite says, in its words: its numbers tell a reader nothing.
fn said(error: sqlx::Error) -> Box<dyn std::error::Error + Send + Sync> {
    match error {
        sqlx::Error::Database(database) => database.message().to_owned().into(),
        error => error.into(),
    }
}

pub(super) fn corrupt(path: &Path, what: &'static str) -> StoreError {
    StoreError::Corrupt {
        path: path.to_owned(),
        what,
    }
}
