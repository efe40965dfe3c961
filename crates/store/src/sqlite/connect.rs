//! Opening a database, and what its errors mean.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::checkpoint::Checkpoints;
use super::{Access, Inner, SqliteStoreOptions};
use crate::error::StoreError;
use crate::lease::Lease;
use crate::private;
use crate::store::Durability;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// How many readers there are at a time in one process.
const READERS_MAX: u32 = 4;
/// How long one process waits for another that opens, and perhaps migrates, the same database.
const OPENING_WAIT: Duration = Duration::from_secs(60);
/// A commit carries the log into the database itself only when this many pages wait (32 MB): long after it should have
/// been done beside the commits.
const LOG_PAGES_MAX: u64 = 8_192;
/// The log is cut to this size when it begins anew.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// SQLite's own, and what the file is made with.
const PAGE_BYTES: u64 = 4096;

pub(super) async fn open(path: &Path, options: &SqliteStoreOptions) -> Result<Inner, StoreError> {
    let locks = beside(path, ".locks");
    let connect = connect_options(path, options);
    if options.access == Access::ReadOnly {
        let connect = connect.read_only(true);
        let reading = pool(READERS_MAX)
            .connect_with(connect.clone())
            .await
            .map_err(|e| error(path, e))?;
        check_format(path, &reading).await?;
        let checkpoints = Checkpoints::new(pool(1).connect_lazy_with(connect.clone()));
        let writing = pool(1).connect_lazy_with(connect);
        return Ok(Inner {
            path: path.to_owned(),
            locks,
            access: options.access,
            writing,
            reading,
            checkpoints,
        });
    }

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
    let writing = pool(1)
        .connect_with(connect.clone())
        .await
        .map_err(|e| error(path, e))?;
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
        access: options.access,
        writing,
        reading,
        checkpoints,
    })
}

fn beside(path: &Path, ending: &str) -> PathBuf {
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
        // What a user deletes is overwritten, not only forgotten.
        .pragma("secure_delete", "ON")
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", LOG_PAGES_MAX.to_string())
        .pragma("journal_size_limit", LOG_BYTES_MAX.to_string());
    let connect = match options.access {
        Access::ReadWrite => connect.journal_mode(SqliteJournalMode::Wal),
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

pub(super) fn error(path: &Path, error: sqlx::Error) -> StoreError {
    let code = match &error {
        sqlx::Error::Database(database) => {
            database.code().and_then(|code| code.parse::<u32>().ok())
        }
        _ => None,
    };
    // The low byte is the class: https://www.sqlite.org/rescode.html
    match (error, code.map(|code| code & 0xff)) {
        (_, Some(5 | 6)) | (sqlx::Error::PoolTimedOut, _) => StoreError::DatabaseBusy,
        (error, Some(8)) => StoreError::ReadOnly {
            source: Some(error.into()),
        },
        (error, Some(13)) => StoreError::Full {
            source: error.into(),
        },
        (_, Some(11)) => corrupt(path, "the database is damaged"),
        (_, Some(26)) => corrupt(path, "this is no database"),
        (sqlx::Error::Io(error), _) => error.into(),
        (sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_), _) => {
            corrupt(path, "a row has a value of another kind")
        }
        (error, _) => StoreError::Unavailable {
            source: error.into(),
        },
    }
}

pub(super) fn corrupt(path: &Path, what: &'static str) -> StoreError {
    StoreError::Corrupt {
        path: path.to_owned(),
        what,
    }
}
