//! Writing rows, inside a transaction that the caller commits.

use sqlx::Transaction;
use sqlx::sqlite::{Sqlite, SqliteConnection};

use super::Inner;
use super::read::{SESSION_BY_ID, SessionRow};
use crate::change::{Change, Counts};
use crate::error::{Invalid, StoreError};
use crate::memory::{Adoption, MemoryRow};
use crate::message::NewMessage;
use crate::search::fold;
use crate::session::{ForkPoint, NewSession, SessionId};
use crate::usage::UsageRow;

/// One string, because each trip to the connection's thread costs as much as a statement. The last rowid is the
/// message's in all of them: the second row has the same, and the third has none.
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
    commit(store, transaction, &new.id, new.created_ms, changes).await
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

pub(super) async fn commit(
    store: &Inner,
    transaction: &mut Transaction<'static, Sqlite>,
    id: &SessionId,
    at_ms: i64,
    changes: &[Change],
) -> Result<Counts, StoreError> {
    let session = found(store, transaction, id).await?;
    let counts = session.counts.after(changes)?;
    let mut writing = Writing {
        store,
        connection: transaction,
        session,
        at_ms,
    };
    for change in changes {
        writing.apply(change).await?;
    }
    writing.finish(counts).await?;
    Ok(counts)
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

/// A commit under way. The counters of the session are moved in memory and written once, at the end.
struct Writing<'a> {
    store: &'a Inner,
    connection: &'a mut SqliteConnection,
    session: SessionRow,
    at_ms: i64,
}

impl Writing<'_> {
    async fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Append { messages, .. } => {
                for message in messages {
                    self.append(message).await?;
                }
                Ok(())
            }
            Change::Truncate { to_count } => self.truncate(*to_count).await,
            Change::Memory(memory) => self.put_memory(memory).await,
            Change::Adopt { adoption, .. } => self.adopt(adoption).await,
            Change::Head(head) => {
                let query = sqlx::query("UPDATE session_body SET head = ? WHERE session = ?");
                self.execute(query.bind(&head[..]).bind(self.session.key))
                    .await
            }
            Change::Settings(settings) => {
                let query = sqlx::query("UPDATE session_body SET settings = ? WHERE session = ?");
                self.execute(query.bind(settings).bind(self.session.key))
                    .await
            }
            Change::Title(title) => {
                self.session.info.title.clone_from(title);
                Ok(())
            }
            Change::Model(model) => {
                self.session.info.model.clone_from(model);
                Ok(())
            }
            Change::Event { kind, json } => self.event(kind, json).await,
            Change::Usage(usage) => self.usage(usage).await,
        }
    }

    async fn execute(
        &mut self,
        query: sqlx::query::Query<'_, Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<(), StoreError> {
        query
            .execute(&mut *self.connection)
            .await
            .map(drop)
            .map_err(|error| self.store.error(error))
    }

    async fn append(&mut self, new: &NewMessage) -> Result<(), StoreError> {
        let query = sqlx::query(APPEND)
            .bind(&new.digest[..])
            .bind(new.at_ms)
            .bind(&new.role)
            .bind(new.tokens)
            .bind(&new.original[..])
            .bind(new.sent.as_deref())
            .bind(&new.text)
            .bind(self.session.key)
            .bind(number(self.session.counts.message_count)?)
            .bind(fold(&new.text));
        self.execute(query).await?;
        self.session.counts.message_count += 1;
        self.session.info.tokens = self
            .session
            .info
            .tokens
            .saturating_add(u64::from(new.tokens));
        Ok(())
    }

    async fn truncate(&mut self, to_count: u64) -> Result<(), StoreError> {
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
        let query = sqlx::query(
            "INSERT INTO superseded (session, sequence, position, superseded_ms, message) \
             SELECT session, ? + position - ?, position, ?, message FROM placement \
             WHERE session = ? AND position >= ?",
        );
        let sequence = number(self.session.superseded_count)?;
        self.execute(
            query
                .bind(sequence)
                .bind(first)
                .bind(self.at_ms)
                .bind(session)
                .bind(first),
        )
        .await?;
        let query = sqlx::query("DELETE FROM placement WHERE session = ? AND position >= ?");
        self.execute(query.bind(session).bind(first)).await?;
        self.session.superseded_count += self.session.counts.message_count - to_count;
        self.session.counts.message_count = to_count;
        self.session.info.tokens = self
            .session
            .info
            .tokens
            .saturating_sub(tokens.unsigned_abs());
        Ok(())
    }

    async fn put_memory(&mut self, memory: &MemoryRow) -> Result<(), StoreError> {
        let key = sqlx::query(
            "INSERT INTO memory (session, version, covered_count, digest, origin, created_ms, tokens, json, markdown) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(self.session.key)
        .bind(number(memory.version)?)
        .bind(number(memory.covered_count)?)
        .bind(&memory.digest[..])
        .bind(&memory.origin)
        .bind(memory.created_ms)
        .bind(memory.tokens)
        .bind(&memory.json)
        .bind(&memory.markdown)
        .execute(&mut *self.connection)
        .await
        .map_err(|error| self.store.error(error))?
        .last_insert_rowid();
        let query = sqlx::query("INSERT INTO memory_search (rowid, folded) VALUES (?, ?)");
        self.execute(query.bind(key).bind(fold(&memory.markdown)))
            .await
    }

    async fn adopt(&mut self, adoption: &Adoption) -> Result<(), StoreError> {
        let query = sqlx::query(
            "INSERT OR REPLACE INTO adoption (session, epoch, memory_version, covered_count, state, at_ms) \
             VALUES (?, ?, ?, ?, ?, ?)",
        )
        .bind(self.session.key)
        .bind(number(adoption.epoch)?)
        .bind(adoption.memory_version.map(number).transpose()?)
        .bind(number(adoption.covered_count)?)
        .bind(&adoption.state)
        .bind(adoption.at_ms);
        self.execute(query).await
    }

    async fn event(&mut self, kind: &str, json: &str) -> Result<(), StoreError> {
        let query = sqlx::query(
            "INSERT INTO event (session, sequence, kind, json, at_ms) VALUES (?, ?, ?, ?, ?)",
        );
        let sequence = number(self.session.event_count)?;
        self.execute(
            query
                .bind(self.session.key)
                .bind(sequence)
                .bind(kind)
                .bind(json)
                .bind(self.at_ms),
        )
        .await?;
        self.session.event_count += 1;
        Ok(())
    }

    async fn usage(&mut self, usage: &UsageRow) -> Result<(), StoreError> {
        let query = sqlx::query(
            "INSERT INTO usage (session, sequence, at_ms, purpose, model, uncached, cache_write, cache_write_long, \
             cache_read, output, cost_nanodollars, request_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(self.session.key)
        .bind(number(self.session.usage_count)?)
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
        self.execute(query).await?;
        self.session.usage_count += 1;
        Ok(())
    }

    async fn finish(&mut self, counts: Counts) -> Result<(), StoreError> {
        let info = &self.session.info;
        let query = sqlx::query(
            "UPDATE session SET model = ?, title = ?, updated_ms = ?, message_count = ?, tokens = ?, \
             superseded_count = ?, memory_version = ?, epoch = ?, covered_count = ?, event_count = ?, usage_count = ? \
             WHERE key = ?",
        )
        .bind(info.model.clone())
        .bind(info.title.clone())
        .bind(self.at_ms)
        .bind(number(counts.message_count)?)
        .bind(number(info.tokens)?)
        .bind(number(self.session.superseded_count)?)
        .bind(number(counts.memory_version)?)
        .bind(number(counts.epoch)?)
        .bind(number(counts.covered_count)?)
        .bind(number(self.session.event_count)?)
        .bind(number(self.session.usage_count)?)
        .bind(self.session.key);
        self.execute(query).await
    }
}

fn number(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Invalid {
        reason: Invalid::NumberTooLarge,
    })
}
