//! Writing rows, inside a transaction that the caller commits.

use sqlx::error::BoxDynError;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Encode, Transaction, Type};

use super::Inner;
use super::read::{SESSION_BY_ID, SessionRow};
use crate::change::{Change, Counts};
use crate::error::{Invalid, StoreError};
use crate::memory::{Adoption, MemoryRow};
use crate::message::NewMessage;
use crate::search::fold;
use crate::session::{ForkPoint, NewSession, SessionId};
use crate::usage::UsageRow;

/// The last rowid is the message's in all of them: the second row has the same, and the third has none.
const APPEND: &str = "\
    INSERT INTO message (digest, at_ms, role, tokens, original, sent) VALUES (?, ?, ?, ?, ?, ?); \
    INSERT INTO message_text (message, text) VALUES (last_insert_rowid(), ?); \
    INSERT INTO placement (session, position, message) VALUES (?, ?, last_insert_rowid()); \
    INSERT INTO message_search (rowid, folded) VALUES (last_insert_rowid(), ?)";

pub(super) async fn create(
    store: &Inner,
    transaction: &mut Transaction<'static, Sqlite>,
    new: &NewSession,
    changes: &[Change],
) -> Result<Counts, StoreError> {
    if find(store, transaction, &new.id).await?.is_some() {
        return Err(StoreError::Exists {
            session: new.id.clone(),
        });
    }
    let parent = match &new.parent {
        Some(fork) => Some((
            parent_row(store, transaction, fork).await?,
            number(fork.message_count)?,
        )),
        None => None,
    };
    let session = sqlx::query(
        "INSERT INTO session (id, parent_id, parent_message_count, wire, model, title, created_ms, updated_ms) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(new.id.as_str())
    .bind(new.parent.as_ref().map(|fork| fork.session.as_str()))
    .bind(parent.as_ref().map(|(_, message_count)| *message_count))
    .bind(&new.wire)
    .bind(&new.model)
    .bind(&new.title)
    .bind(new.created_ms)
    .bind(new.created_ms)
    .execute(&mut **transaction)
    .await
    .map_err(|error| store.error(error))?
    .last_insert_rowid();
    sqlx::query("INSERT INTO session_body (session, head, settings) VALUES (?, ?, ?)")
        .bind(session)
        .bind(&new.head[..])
        .bind(&new.settings)
        .execute(&mut **transaction)
        .await
        .map_err(|error| store.error(error))?;
    if let Some((parent, message_count)) = parent {
        sqlx::query(
            "INSERT INTO placement (session, position, message) \
             SELECT ?, position, message FROM placement WHERE session = ? AND position < ?",
        )
        .bind(session)
        .bind(parent.key)
        .bind(message_count)
        .execute(&mut **transaction)
        .await
        .map_err(|error| store.error(error))?;
        sqlx::query(
            "UPDATE session SET message_count = ?1, tokens = (SELECT coalesce(sum(m.tokens), 0) \
             FROM placement JOIN message AS m ON m.key = message WHERE session = ?2) WHERE key = ?2",
        )
        .bind(message_count)
        .bind(session)
        .execute(&mut **transaction)
        .await
        .map_err(|error| store.error(error))?;
    }
    let session = commit(store, transaction, &new.id, None, new.created_ms, changes).await?;
    Ok(session.counts)
}

async fn parent_row(
    store: &Inner,
    transaction: &mut Transaction<'static, Sqlite>,
    fork: &ForkPoint,
) -> Result<SessionRow, StoreError> {
    let parent = found(store, transaction, &fork.session).await?;
    if fork.message_count > parent.counts.message_count {
        return Err(StoreError::Invalid {
            reason: Invalid::ForkPastEnd,
        });
    }
    Ok(parent)
}

/// Writes one commit and returns the session after it. `known` is the session after the last commit, if no other writer
/// can have changed it since.
pub(super) async fn commit(
    store: &Inner,
    transaction: &mut Transaction<'static, Sqlite>,
    id: &SessionId,
    known: Option<SessionRow>,
    at_ms: i64,
    changes: &[Change],
) -> Result<SessionRow, StoreError> {
    let session = match known {
        Some(session) => session,
        None => found(store, transaction, id).await?,
    };
    let counts = session.counts.after(changes)?;
    let mut writing = Writing {
        store,
        connection: transaction,
        session,
        at_ms,
        batch: Batch::default(),
        head: None,
        settings: None,
    };
    for change in changes {
        writing.apply(change).await?;
    }
    writing.finish(counts).await
}

async fn find(
    store: &Inner,
    connection: &mut SqliteConnection,
    id: &SessionId,
) -> Result<Option<SessionRow>, StoreError> {
    let row = sqlx::query(SESSION_BY_ID)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await;
    let row = row.map_err(|error| store.error(error))?;
    row.map(|row| store.read(&row).session()).transpose()
}

pub(super) async fn found(
    store: &Inner,
    connection: &mut SqliteConnection,
    id: &SessionId,
) -> Result<SessionRow, StoreError> {
    let session = find(store, connection, id).await?;
    session.ok_or_else(|| StoreError::SessionNotFound {
        session: id.clone(),
    })
}

/// Statements that go to the connection's thread at a time. A small number keeps the number of different batches small:
/// each is prepared once.
const BATCH_STATEMENTS: usize = 8;

/// Statements that go to the connection's thread together, because each trip there costs as much as a statement.
#[derive(Default)]
struct Batch {
    sql: String,
    arguments: SqliteArguments,
    statements: usize,
    refused: Option<BoxDynError>,
}

impl Batch {
    /// Begins a statement; what is bound from here on is its own.
    fn statement(&mut self, sql: &'static str) -> &mut Self {
        if self.statements > 0 {
            self.sql.push_str("; ");
        }
        self.sql.push_str(sql);
        self.statements += 1;
        self
    }

    fn bind<'v>(&mut self, value: impl Encode<'v, Sqlite> + Type<Sqlite>) -> &mut Self {
        if let Err(error) = self.arguments.add(value) {
            self.refused.get_or_insert(error);
        }
        self
    }
}

/// A commit under way. The session's row is changed in memory and written once, at the end.
struct Writing<'a> {
    store: &'a Inner,
    connection: &'a mut SqliteConnection,
    session: SessionRow,
    at_ms: i64,
    batch: Batch,
    /// The last of each counts.
    head: Option<&'a [u8]>,
    settings: Option<&'a str>,
}

impl<'a> Writing<'a> {
    async fn apply(&mut self, change: &'a Change) -> Result<(), StoreError> {
        match change {
            Change::Append { messages, .. } => {
                for message in messages {
                    self.append(message)?;
                    self.send_if_full().await?;
                }
            }
            Change::Truncate { to_count } => self.truncate(*to_count).await?,
            Change::Memory(memory) => self.put_memory(memory)?,
            Change::Adopt { adoption, .. } => self.adopt(adoption)?,
            Change::Head(head) => self.head = Some(head),
            Change::Settings(settings) => self.settings = Some(settings),
            Change::Title(title) => self.session.info.title.clone_from(title),
            Change::Model(model) => self.session.info.model.clone_from(model),
            Change::Event { kind, json } => self.event(kind, json)?,
            Change::Usage(usage) => self.usage(usage)?,
        }
        self.send_if_full().await
    }

    async fn send_if_full(&mut self) -> Result<(), StoreError> {
        if self.batch.statements < BATCH_STATEMENTS {
            return Ok(());
        }
        self.send().await
    }

    async fn send(&mut self) -> Result<(), StoreError> {
        let batch = std::mem::take(&mut self.batch);
        if let Some(refused) = batch.refused {
            return Err(self.store.error(sqlx::Error::Encode(refused)));
        }
        if batch.statements == 0 {
            return Ok(());
        }
        // Put together of the constants in this file.
        sqlx::query_with(AssertSqlSafe(batch.sql), batch.arguments)
            .execute(&mut *self.connection)
            .await
            .map(drop)
            .map_err(|error| self.store.error(error))
    }

    fn append(&mut self, new: &NewMessage) -> Result<(), StoreError> {
        let position = number(self.session.counts.message_count)?;
        self.batch
            .statement(APPEND)
            .bind(&new.digest[..])
            .bind(new.at_ms)
            .bind(&new.role)
            .bind(new.tokens)
            .bind(&new.original[..])
            .bind(new.sent.as_deref())
            .bind(&new.text)
            .bind(self.session.key)
            .bind(position)
            .bind(fold(&new.text));
        self.session.counts.message_count += 1;
        self.session.info.tokens = self
            .session
            .info
            .tokens
            .saturating_add(u64::from(new.tokens));
        Ok(())
    }

    async fn truncate(&mut self, to_count: u64) -> Result<(), StoreError> {
        // What was added before in the same commit may be cut off.
        self.send().await?;
        let (session, first) = (self.session.key, number(to_count)?);
        let tokens: i64 = sqlx::query_scalar(
            "SELECT coalesce(sum(tokens), 0) FROM placement JOIN message ON key = message \
             WHERE session = ? AND position >= ?",
        )
        .bind(session)
        .bind(first)
        .fetch_one(&mut *self.connection)
        .await
        .map_err(|error| self.store.error(error))?;
        let sequence = number(self.session.superseded_count)?;
        self.batch
            .statement(
                "INSERT INTO superseded (session, sequence, position, superseded_ms, message) \
                 SELECT session, ? + position - ?, position, ?, message FROM placement \
                 WHERE session = ? AND position >= ?",
            )
            .bind(sequence)
            .bind(first)
            .bind(self.at_ms)
            .bind(session)
            .bind(first)
            .statement("DELETE FROM placement WHERE session = ? AND position >= ?")
            .bind(session)
            .bind(first);
        self.session.superseded_count += self.session.counts.message_count - to_count;
        self.session.counts.message_count = to_count;
        self.session.info.tokens = self
            .session
            .info
            .tokens
            .saturating_sub(tokens.unsigned_abs());
        Ok(())
    }

    fn put_memory(&mut self, memory: &MemoryRow) -> Result<(), StoreError> {
        let (version, covered_count) = (number(memory.version)?, number(memory.covered_count)?);
        self.batch
            .statement(
                "INSERT INTO memory (session, version, covered_count, digest, origin, created_ms, tokens, json, markdown) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(self.session.key)
            .bind(version)
            .bind(covered_count)
            .bind(&memory.digest[..])
            .bind(&memory.origin)
            .bind(memory.created_ms)
            .bind(memory.tokens)
            .bind(&memory.json)
            .bind(&memory.markdown)
            .statement("INSERT INTO memory_search (rowid, folded) VALUES (last_insert_rowid(), ?)")
            .bind(fold(&memory.markdown));
        Ok(())
    }

    fn adopt(&mut self, adoption: &Adoption) -> Result<(), StoreError> {
        let (epoch, covered_count) = (number(adoption.epoch)?, number(adoption.covered_count)?);
        self.batch
            .statement(
                "INSERT OR REPLACE INTO adoption (session, epoch, memory_version, covered_count, state, at_ms) \
                 VALUES (?, ?, ?, ?, ?, ?)",
            )
            .bind(self.session.key)
            .bind(epoch)
            .bind(adoption.memory_version.map(number).transpose()?)
            .bind(covered_count)
            .bind(&adoption.state)
            .bind(adoption.at_ms);
        Ok(())
    }

    fn event(&mut self, kind: &str, json: &str) -> Result<(), StoreError> {
        let sequence = number(self.session.event_count)?;
        self.batch
            .statement(
                "INSERT INTO event (session, sequence, kind, json, at_ms) VALUES (?, ?, ?, ?, ?)",
            )
            .bind(self.session.key)
            .bind(sequence)
            .bind(kind)
            .bind(json)
            .bind(self.at_ms);
        self.session.event_count += 1;
        Ok(())
    }

    fn usage(&mut self, usage: &UsageRow) -> Result<(), StoreError> {
        let sequence = number(self.session.usage_count)?;
        self.batch
            .statement(
                "INSERT INTO usage (session, sequence, at_ms, purpose, model, uncached, cache_write, cache_write_long, \
                 cache_read, output, cost_nanodollars, request_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(self.session.key)
            .bind(sequence)
            .bind(usage.at_ms)
            .bind(usage.purpose.as_str())
            .bind(&usage.model)
            .bind(number(usage.uncached)?)
            .bind(number(usage.cache_write)?)
            .bind(number(usage.cache_write_long)?)
            .bind(number(usage.cache_read)?)
            .bind(number(usage.output)?)
            .bind(usage.cost_nanodollars)
            .bind(&usage.request_id);
        self.session.usage_count += 1;
        Ok(())
    }

    async fn finish(mut self, counts: Counts) -> Result<SessionRow, StoreError> {
        self.session.counts = counts;
        self.session.info.updated_ms = self.at_ms;
        self.session.info.message_count = counts.message_count;
        self.session.info.memory_version = counts.memory_version;
        let (session, info) = (&self.session, &self.session.info);
        if let Some(head) = self.head {
            self.batch
                .statement("UPDATE session_body SET head = ? WHERE session = ?")
                .bind(head)
                .bind(session.key);
        }
        if let Some(settings) = self.settings {
            self.batch
                .statement("UPDATE session_body SET settings = ? WHERE session = ?")
                .bind(settings)
                .bind(session.key);
        }
        self.batch
            .statement(
                "UPDATE session SET model = ?, title = ?, updated_ms = ?, message_count = ?, tokens = ?, \
                 superseded_count = ?, memory_version = ?, epoch = ?, covered_count = ?, event_count = ?, \
                 usage_count = ? WHERE key = ?",
            )
            .bind(&info.model)
            .bind(&info.title)
            .bind(self.at_ms)
            .bind(number(counts.message_count)?)
            .bind(number(info.tokens)?)
            .bind(number(session.superseded_count)?)
            .bind(number(counts.memory_version)?)
            .bind(number(counts.epoch)?)
            .bind(number(counts.covered_count)?)
            .bind(number(session.event_count)?)
            .bind(number(session.usage_count)?)
            .bind(session.key);
        self.send().await?;
        Ok(self.session)
    }
}

fn number(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Invalid {
        reason: Invalid::NumberTooLarge,
    })
}
