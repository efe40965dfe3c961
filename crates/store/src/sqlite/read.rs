//! Reading rows.

use std::ops::Range;

use bytes::Bytes;
use futures_util::TryStreamExt;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::connect::corrupt;
use super::{Inner, Reading};
use crate::change::Counts;
use crate::error::StoreError;
use crate::memory::{Adoption, MemoryInfo, MemoryRow};
use crate::message::{StoredMessage, SupersededMessage};
use crate::session::{ForkPoint, SessionId, SessionInfo};
use crate::store::{Loaded, Page};
use crate::usage::{EventRow, Purpose, UsageRow, UsageSum, UsageTotals};

/// A session's row.
#[derive(Debug, Clone)]
pub(super) struct SessionRow {
    pub(super) key: i64,
    pub(super) info: SessionInfo,
    pub(super) counts: Counts,
    pub(super) superseded_count: u64,
    pub(super) event_count: u64,
    pub(super) usage_count: u64,
}

pub(super) const SESSION_BY_ID: &str = "SELECT * FROM session WHERE id = ?";

impl Reading<'_> {
    pub(super) async fn session(&mut self, id: &SessionId) -> Result<SessionRow, StoreError> {
        let row = sqlx::query(SESSION_BY_ID)
            .bind(id.as_str())
            .fetch_optional(&mut *self.transaction)
            .await;
        let row = row.map_err(|error| self.store.error(error))?;
        let row = row.ok_or_else(|| StoreError::SessionNotFound {
            session: id.clone(),
        })?;
        self.store.read(&row).session()
    }

    pub(super) async fn sessions(&mut self, page: Page) -> Result<Vec<SessionInfo>, StoreError> {
        let rows =
            sqlx::query("SELECT * FROM session ORDER BY updated_ms DESC, id LIMIT ? OFFSET ?")
                .bind(page.rows())
                .bind(offset(page))
                .fetch_all(&mut *self.transaction)
                .await
                .map_err(|error| self.store.error(error))?;
        rows.iter()
            .map(|row| Ok(self.store.read(row).session()?.info))
            .collect()
    }

    pub(super) async fn load(&mut self, id: &SessionId) -> Result<Loaded, StoreError> {
        let session = self.session(id).await?;
        let store = self.store;
        let body = sqlx::query("SELECT head, settings FROM session_body WHERE session = ?")
            .bind(session.key)
            .fetch_one(&mut *self.transaction)
            .await
            .map_err(|error| store.error(error))?;
        let body = store.read(&body);
        let adoption = sqlx::query("SELECT * FROM adoption WHERE session = ?")
            .bind(session.key)
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(|error| store.error(error))?;
        let adoption = adoption
            .map(|row| store.read(&row).adoption())
            .transpose()?;
        let adopted = adoption
            .as_ref()
            .and_then(|adoption| adoption.memory_version);
        let memory = match adopted {
            Some(version) => self.memory(session.key, version).await?,
            None => None,
        };
        let newest = session.counts.memory_version;
        let newer_memory = match adopted {
            Some(version) if version == newest => None,
            _ => self.memory(session.key, newest).await?,
        };
        let covered_count = session.counts.covered_count;
        let covered_digest = match covered_count.checked_sub(1) {
            Some(last) => Some(self.digest(session.key, last).await?),
            None => None,
        };
        Ok(Loaded {
            head: body.bytes("head")?,
            settings: body.column("settings")?,
            adoption,
            memory,
            newer_memory,
            covered_digest,
            tail: self.messages(session.key, covered_count..u64::MAX).await?,
            usage: self.usage_totals(session.key).await?,
            counts: session.counts,
            session: session.info,
        })
    }

    async fn digest(&mut self, session: i64, position: u64) -> Result<[u8; 32], StoreError> {
        let row = sqlx::query(
            "SELECT digest FROM placement JOIN message ON key = message WHERE session = ? AND position = ?",
        )
        .bind(session)
        .bind(bounded(position))
        .fetch_one(&mut *self.transaction)
        .await
        .map_err(|error| self.store.error(error))?;
        self.store.read(&row).digest()
    }

    pub(super) async fn messages(
        &mut self,
        session: i64,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let store = self.store;
        let mut rows = sqlx::query(
            "SELECT position, digest, at_ms, role, tokens, original, sent FROM placement JOIN message ON key = message \
             WHERE session = ? AND position >= ? AND position < ? ORDER BY position",
        )
        .bind(session)
        .bind(bounded(positions.start))
        .bind(bounded(positions.end))
        .fetch(&mut *self.transaction);
        // Row by row, so that a long tail is not held twice.
        let mut messages = Vec::new();
        while let Some(row) = rows.try_next().await.map_err(|error| store.error(error))? {
            messages.push(store.read(&row).message()?);
        }
        Ok(messages)
    }

    pub(super) async fn digests(
        &mut self,
        session: i64,
        positions: Range<u64>,
    ) -> Result<Vec<[u8; 32]>, StoreError> {
        let store = self.store;
        let mut rows = sqlx::query(
            "SELECT digest FROM placement JOIN message ON key = message \
             WHERE session = ? AND position >= ? AND position < ? ORDER BY position",
        )
        .bind(session)
        .bind(bounded(positions.start))
        .bind(bounded(positions.end))
        .fetch(&mut *self.transaction);
        let mut digests = Vec::new();
        while let Some(row) = rows.try_next().await.map_err(|error| store.error(error))? {
            digests.push(store.read(&row).digest()?);
        }
        Ok(digests)
    }

    pub(super) async fn superseded(
        &mut self,
        session: i64,
        page: Page,
    ) -> Result<Vec<SupersededMessage>, StoreError> {
        const ROWS: &str = "SELECT sequence, superseded_ms, position, digest, at_ms, role, tokens, original, sent \
             FROM superseded JOIN message ON key = message \
             WHERE session = ?1 ORDER BY sequence LIMIT ?2 OFFSET ?3";
        self.page(ROWS, session, page, |row| row.superseded()).await
    }

    pub(super) async fn memories(
        &mut self,
        session: i64,
        page: Page,
    ) -> Result<Vec<MemoryInfo>, StoreError> {
        const ROWS: &str = "SELECT version, covered_count, digest, origin, created_ms, tokens FROM memory \
             WHERE session = ?1 ORDER BY version LIMIT ?2 OFFSET ?3";
        self.page(ROWS, session, page, |row| row.memory_info())
            .await
    }

    pub(super) async fn memory(
        &mut self,
        session: i64,
        version: u64,
    ) -> Result<Option<MemoryRow>, StoreError> {
        let row = sqlx::query("SELECT * FROM memory WHERE session = ? AND version = ?")
            .bind(session)
            .bind(bounded(version))
            .fetch_optional(&mut *self.transaction)
            .await
            .map_err(|error| self.store.error(error))?;
        row.map(|row| self.store.read(&row).memory()).transpose()
    }

    pub(super) async fn events(
        &mut self,
        session: i64,
        page: Page,
    ) -> Result<Vec<EventRow>, StoreError> {
        const ROWS: &str =
            "SELECT * FROM event WHERE session = ?1 AND sequence >= ?3 ORDER BY sequence LIMIT ?2";
        self.page(ROWS, session, page, |row| row.event()).await
    }

    pub(super) async fn usage(
        &mut self,
        session: i64,
        page: Page,
    ) -> Result<Vec<UsageRow>, StoreError> {
        const ROWS: &str =
            "SELECT * FROM usage WHERE session = ?1 AND sequence >= ?3 ORDER BY sequence LIMIT ?2";
        self.page(ROWS, session, page, |row| row.usage()).await
    }

    /// The rows of a session, `?1`, that are on a page: at most `?2` of them, after `?3`.
    async fn page<T>(
        &mut self,
        rows: &'static str,
        session: i64,
        page: Page,
        read: fn(&Columns<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = sqlx::query(rows)
            .bind(session)
            .bind(page.rows())
            .bind(offset(page))
            .fetch_all(&mut *self.transaction)
            .await
            .map_err(|error| self.store.error(error))?;
        rows.iter().map(|row| read(&self.store.read(row))).collect()
    }

    async fn usage_totals(&mut self, session: i64) -> Result<UsageTotals, StoreError> {
        let rows = sqlx::query(
            "SELECT purpose, count(*) AS calls, count(*) - count(cost_nanodollars) AS unpriced_calls, \
             sum(uncached) AS uncached, sum(cache_write) AS cache_write, sum(cache_write_long) AS cache_write_long, \
             sum(cache_read) AS cache_read, sum(output) AS output, \
             coalesce(sum(cost_nanodollars), 0) AS cost_nanodollars \
             FROM usage WHERE session = ? GROUP BY purpose",
        )
        .bind(session)
        .fetch_all(&mut *self.transaction)
        .await
        .map_err(|error| self.store.error(error))?;
        let mut totals = UsageTotals::default();
        for row in &rows {
            let row = self.store.read(row);
            *totals.of_mut(row.purpose()?) = UsageSum {
                calls: row.number("calls")?,
                unpriced_calls: row.number("unpriced_calls")?,
                uncached: row.number("uncached")?,
                cache_write: row.number("cache_write")?,
                cache_write_long: row.number("cache_write_long")?,
                cache_read: row.number("cache_read")?,
                output: row.number("output")?,
                cost_nanodollars: row.column("cost_nanodollars")?,
            };
        }
        Ok(totals)
    }
}

/// Positions beyond what a column holds are beyond every session.
fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn offset(page: Page) -> i64 {
    bounded(page.skip)
}

impl Inner {
    pub(super) fn read<'a>(&'a self, row: &'a SqliteRow) -> Columns<'a> {
        Columns { store: self, row }
    }
}

/// The columns of a row, as our types.
pub(super) struct Columns<'a> {
    store: &'a Inner,
    row: &'a SqliteRow,
}

impl<'a> Columns<'a> {
    pub(super) fn column<T>(&self, name: &'static str) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'a, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        self.row
            .try_get(name)
            .map_err(|error| self.store.error(error))
    }

    pub(super) fn number(&self, name: &'static str) -> Result<u64, StoreError> {
        let number: i64 = self.column(name)?;
        u64::try_from(number).map_err(|_| corrupt(&self.store.path, "a count is negative"))
    }

    fn optional_number(&self, name: &'static str) -> Result<Option<u64>, StoreError> {
        let number: Option<i64> = self.column(name)?;
        let number = number.map(u64::try_from).transpose();
        number.map_err(|_| corrupt(&self.store.path, "a count is negative"))
    }

    fn tokens(&self) -> Result<u32, StoreError> {
        u32::try_from(self.number("tokens")?)
            .map_err(|_| corrupt(&self.store.path, "a token count is too large"))
    }

    fn bytes(&self, name: &'static str) -> Result<Bytes, StoreError> {
        self.column::<Vec<u8>>(name).map(Bytes::from)
    }

    fn digest(&self) -> Result<[u8; 32], StoreError> {
        let digest: &[u8] = self.column("digest")?;
        digest
            .try_into()
            .map_err(|_| corrupt(&self.store.path, "a digest is not 32 bytes long"))
    }

    fn purpose(&self) -> Result<Purpose, StoreError> {
        Purpose::named(self.column("purpose")?)
            .ok_or_else(|| corrupt(&self.store.path, "a purpose is unknown"))
    }

    fn session_id(&self, name: &'static str) -> Result<Option<SessionId>, StoreError> {
        let id: Option<String> = self.column(name)?;
        let id = id.map(SessionId::new).transpose();
        id.map_err(|_| corrupt(&self.store.path, "a session id is none"))
    }

    pub(super) fn session(&self) -> Result<SessionRow, StoreError> {
        let parent = self
            .session_id("parent_id")?
            .zip(self.optional_number("parent_message_count")?);
        let id = self
            .session_id("id")?
            .ok_or_else(|| corrupt(&self.store.path, "a session has no id"))?;
        let counts = Counts {
            message_count: self.number("message_count")?,
            memory_version: self.number("memory_version")?,
            epoch: self.number("epoch")?,
            covered_count: self.number("covered_count")?,
        };
        Ok(SessionRow {
            key: self.column("key")?,
            info: SessionInfo {
                id,
                parent: parent.map(|(session, message_count)| ForkPoint {
                    session,
                    message_count,
                }),
                wire: self.column("wire")?,
                model: self.column("model")?,
                title: self.column("title")?,
                created_ms: self.column("created_ms")?,
                updated_ms: self.column("updated_ms")?,
                message_count: counts.message_count,
                tokens: self.number("tokens")?,
                memory_version: counts.memory_version,
            },
            counts,
            superseded_count: self.number("superseded_count")?,
            event_count: self.number("event_count")?,
            usage_count: self.number("usage_count")?,
        })
    }

    fn message(&self) -> Result<StoredMessage, StoreError> {
        Ok(StoredMessage {
            position: self.number("position")?,
            original: self.bytes("original")?,
            sent: self.column::<Option<Vec<u8>>>("sent")?.map(Bytes::from),
            digest: self.digest()?,
            at_ms: self.column("at_ms")?,
            role: self.column("role")?,
            tokens: self.tokens()?,
        })
    }

    fn superseded(&self) -> Result<SupersededMessage, StoreError> {
        Ok(SupersededMessage {
            sequence: self.number("sequence")?,
            superseded_ms: self.column("superseded_ms")?,
            message: self.message()?,
        })
    }

    fn memory_info(&self) -> Result<MemoryInfo, StoreError> {
        Ok(MemoryInfo {
            version: self.number("version")?,
            covered_count: self.number("covered_count")?,
            digest: self.digest()?,
            origin: self.column("origin")?,
            created_ms: self.column("created_ms")?,
            tokens: self.tokens()?,
        })
    }

    fn memory(&self) -> Result<MemoryRow, StoreError> {
        let info = self.memory_info()?;
        Ok(MemoryRow {
            version: info.version,
            covered_count: info.covered_count,
            digest: info.digest,
            origin: info.origin,
            json: self.column("json")?,
            markdown: self.column("markdown")?,
            created_ms: info.created_ms,
            tokens: info.tokens,
        })
    }

    fn adoption(&self) -> Result<Adoption, StoreError> {
        Ok(Adoption {
            epoch: self.number("epoch")?,
            memory_version: self.optional_number("memory_version")?,
            covered_count: self.number("covered_count")?,
            state: self.column("state")?,
            at_ms: self.column("at_ms")?,
        })
    }

    fn event(&self) -> Result<EventRow, StoreError> {
        Ok(EventRow {
            sequence: self.number("sequence")?,
            kind: self.column("kind")?,
            json: self.column("json")?,
            at_ms: self.column("at_ms")?,
        })
    }

    fn usage(&self) -> Result<UsageRow, StoreError> {
        Ok(UsageRow {
            at_ms: self.column("at_ms")?,
            purpose: self.purpose()?,
            model: self.column("model")?,
            uncached: self.number("uncached")?,
            cache_write: self.number("cache_write")?,
            cache_write_long: self.number("cache_write_long")?,
            cache_read: self.number("cache_read")?,
            output: self.number("output")?,
            cost_nanodollars: self.column("cost_nanodollars")?,
            request_id: self.column("request_id")?,
        })
    }
}
