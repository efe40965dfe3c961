//! Databases in which programs keep their sessions: opencode, Goose, Crush, Cursor.
//!
//! The sessions are put together as the program exports them, around the JSON in the rows. A database is only read, also
//! while its program uses it.

mod crush;
mod cursor;
mod goose;
mod opencode;

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use throughline_formats::source::SourceText;
use throughline_transcript::json::{Raw, write_string};

use super::{BYTES_MAX, Input};
use crate::error::{Failure, Kind};

pub(super) fn read(path: &Path, name: String) -> Result<Input, Failure> {
    let failed = |what: &str| Failure::new(Kind::Input, format!("{name}: {what}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error.to_string()))?;
    let text = runtime.block_on(async {
        let unreadable = |error| failed(&format!("the database cannot be read: {error}"));
        let mut connection = connect(path)
            .await
            .map_err(|error| failed(&format!("the database cannot be opened: {error}")))?;
        let Some(program) = Program::of(&mut connection).await.map_err(unreadable)? else {
            return Err(failed("this is a database, but of no program that is known").hint(
                "databases of opencode (opencode.db), Goose (sessions.db), Crush (crush.db) and Cursor (state.vscdb in \
                 globalStorage) are read",
            ));
        };
        let export = match program {
            Program::OpenCode => opencode::export(&mut connection).await,
            Program::Goose => goose::export(&mut connection).await,
            Program::Crush => crush::export(&mut connection).await,
            Program::Cursor => cursor::export(&mut connection).await,
        };
        let export = export.map_err(unreadable)?;
        // Nothing was written, so there is nothing to lose in closing.
        let _ = connection.close().await;
        match export.as_deref() {
            Some("[]") => Err(Failure::new(
                Kind::NothingToDo,
                format!("{name}: there is no session in the database"),
            )),
            Some(_) => Ok(export.unwrap_or_default()),
            None => Err(
                failed(&format!("the sessions have more than {} GiB", BYTES_MAX >> 30))
                    .hint("export one of them with the program that wrote them"),
            ),
        }
    })?;
    Ok(Input {
        text: SourceText::from_text(text),
        name,
        warnings: Vec::new(),
    })
}

/// Whose database it is.
enum Program {
    OpenCode,
    Goose,
    Crush,
    Cursor,
}

impl Program {
    /// Tells the programs apart by their tables.
    async fn of(connection: &mut SqliteConnection) -> Result<Option<Self>, sqlx::Error> {
        let tables = tables(connection).await?;
        let columns = columns(connection, "messages").await?;
        let has = |table: &str| tables.iter().any(|name| name == table);
        let has_column = |column: &str| columns.iter().any(|name| name == column);
        Ok(if has("session") && has("message") && has("part") {
            Some(Self::OpenCode)
        } else if has("sessions") && has_column("content_json") {
            Some(Self::Goose)
        } else if has("sessions") && has_column("parts") {
            Some(Self::Crush)
        } else if has("cursorDiskKV") {
            Some(Self::Cursor)
        } else {
            None
        })
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .create_if_missing(false)
        .disable_statement_logging();
    let mut connection = options.clone().connect().await?;
    // A database in WAL mode cannot be opened where nothing may be written, unless it is said that nobody else writes.
    match tables(&mut connection).await {
        Ok(_) => Ok(connection),
        Err(_) => options.immutable(true).connect().await,
    }
}

async fn tables(connection: &mut SqliteConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
        .fetch_all(connection)
        .await
}

async fn columns(
    connection: &mut SqliteConnection,
    table: &str,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT name FROM pragma_table_info(?)")
        .bind(table)
        .fetch_all(connection)
        .await
}

/// Whether the text has become too large.
fn is_too_large(text: &str) -> bool {
    text.len() as u64 > BYTES_MAX
}

/// Writes an object.
struct Object<'a> {
    text: &'a mut String,
    has_field: bool,
}

impl<'a> Object<'a> {
    fn open(text: &'a mut String) -> Self {
        text.push('{');
        Self {
            text,
            has_field: false,
        }
    }

    fn key(&mut self, name: &str) -> &mut String {
        if self.has_field {
            self.text.push(',');
        }
        self.has_field = true;
        write_string(name, self.text);
        self.text.push(':');
        self.text
    }

    /// A string, where there is one.
    fn string(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            write_string(value, self.key(name));
        }
    }

    /// JSON as it is written in a row. Half a row must not spoil the rest.
    fn json(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value
            && Raw::parse(value.to_owned()).is_ok()
        {
            self.key(name).push_str(value.trim());
        }
    }

    /// A number, where there is one.
    fn number(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.key(name).push_str(&value.to_string());
        }
    }

    fn close(self) {
        self.text.push('}');
    }
}

/// A column as text, where it is there and has a value.
fn string(row: &SqliteRow, column: &str) -> Option<String> {
    row.try_get::<Option<String>, _>(column).ok().flatten()
}

/// A column as a number, where it is there and has a value.
fn number(row: &SqliteRow, column: &str) -> Option<i64> {
    row.try_get::<Option<i64>, _>(column).ok().flatten()
}
