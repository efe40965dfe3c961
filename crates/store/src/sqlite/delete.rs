//! Taking sessions away.

use sqlx::sqlite::Sqlite;
use sqlx::{Row, Transaction};

use super::Inner;
use super::write::found;
use crate::error::StoreError;
use crate::search::fold;
use crate::session::SessionId;

/// How many texts are taken out of the index in one statement.
const BATCH_ROWS: usize = 200;
/// How many messages are taken away at once where there is little room for the log.
const STEP_ROWS: u32 = 16;

/// The messages that no other session has.
const OWN_MESSAGES: &str = "SELECT message FROM ( \
        SELECT message FROM placement WHERE session = ?1 UNION SELECT message FROM superseded WHERE session = ?1 \
     ) AS own \
     WHERE NOT EXISTS (SELECT 1 FROM placement AS p WHERE p.message = own.message AND p.session <> ?1) \
     AND NOT EXISTS (SELECT 1 FROM superseded AS s WHERE s.message = own.message AND s.session <> ?1)";

pub(super) async fn delete(
    store: &Inner,
    transaction: &mut Transaction<'static, Sqlite>,
    id: &SessionId,
) -> Result<(), StoreError> {
    let session = found(store, transaction, id).await?.key;
    let run = async {
        let own: Vec<i64> = sqlx::query_scalar(OWN_MESSAGES)
            .bind(session)
            .fetch_all(&mut **transaction)
            .await?;
        forget_messages(transaction, &own).await?;
        forget_memories(transaction, session).await?;
        for statement in [
            "DELETE FROM placement WHERE session = ?",
            "DELETE FROM superseded WHERE session = ?",
            "DELETE FROM memory WHERE session = ?",
            "DELETE FROM adoption WHERE session = ?",
            "DELETE FROM event WHERE session = ?",
            "DELETE FROM usage WHERE session = ?",
            "DELETE FROM session_body WHERE session = ?",
            "DELETE FROM session WHERE key = ?",
        ] {
            sqlx::query(statement)
                .bind(session)
                .execute(&mut **transaction)
                .await?;
        }
        Ok(())
    };
    run.await.map_err(|error| store.error(error))
}

/// Takes what was made of the messages, and then a few of these, from the end. What is left is a session like any other,
/// only shorter. False where no message is left.
pub(super) async fn shorten(
    store: &Inner,
    transaction: &mut Transaction<'static, Sqlite>,
    id: &SessionId,
) -> Result<bool, StoreError> {
    let session = found(store, transaction, id).await?.key;
    let run = async {
        forget_memories(transaction, session).await?;
        for statement in [
            "DELETE FROM memory WHERE session = ?",
            "DELETE FROM adoption WHERE session = ?",
        ] {
            sqlx::query(statement)
                .bind(session)
                .execute(&mut **transaction)
                .await?;
        }
        let steps = [
            (
                "DELETE FROM superseded WHERE session = ?1 AND sequence IN \
                 (SELECT sequence FROM superseded WHERE session = ?1 ORDER BY sequence DESC LIMIT ?2) RETURNING message",
                "UPDATE session SET superseded_count = superseded_count - ?2, memory_version = 0, covered_count = 0 \
                 WHERE key = ?1",
            ),
            (
                "DELETE FROM placement WHERE session = ?1 AND position IN \
                 (SELECT position FROM placement WHERE session = ?1 ORDER BY position DESC LIMIT ?2) RETURNING message",
                "UPDATE session SET message_count = message_count - ?2, memory_version = 0, covered_count = 0, \
                 tokens = (SELECT coalesce(sum(m.tokens), 0) FROM placement JOIN message AS m ON m.key = message \
                 WHERE session = ?1) WHERE key = ?1",
            ),
        ];
        for (take, count) in steps {
            let taken: Vec<i64> = sqlx::query_scalar(take)
                .bind(session)
                .bind(STEP_ROWS)
                .fetch_all(&mut **transaction)
                .await?;
            if taken.is_empty() {
                continue;
            }
            let own: Vec<i64> = sqlx::query_scalar(
                "SELECT value FROM json_each(?) \
                 WHERE NOT EXISTS (SELECT 1 FROM placement WHERE message = value) \
                 AND NOT EXISTS (SELECT 1 FROM superseded WHERE message = value)",
            )
            .bind(serde_json::to_string(&taken).unwrap_or_default())
            .fetch_all(&mut **transaction)
            .await?;
            forget_messages(transaction, &own).await?;
            sqlx::query(count)
                .bind(session)
                .bind(i64::try_from(taken.len()).unwrap_or_default())
                .execute(&mut **transaction)
                .await?;
            return Ok(true);
        }
        Ok(false)
    };
    run.await.map_err(|error| store.error(error))
}

async fn forget_messages(
    transaction: &mut Transaction<'static, Sqlite>,
    keys: &[i64],
) -> Result<(), sqlx::Error> {
    for keys in keys.chunks(BATCH_ROWS) {
        let keys = serde_json::to_string(keys).unwrap_or_default();
        forget(
            transaction,
            "SELECT message AS key, text FROM message_text WHERE message IN (SELECT value FROM json_each(?))",
            &keys,
            "INSERT INTO message_search (message_search, rowid, folded) \
             SELECT 'delete', json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)",
        )
        .await?;
        for statement in [
            "DELETE FROM message_text WHERE message IN (SELECT value FROM json_each(?))",
            "DELETE FROM message WHERE key IN (SELECT value FROM json_each(?))",
        ] {
            sqlx::query(statement)
                .bind(&keys)
                .execute(&mut **transaction)
                .await?;
        }
    }
    Ok(())
}

async fn forget_memories(
    transaction: &mut Transaction<'static, Sqlite>,
    session: i64,
) -> Result<(), sqlx::Error> {
    let memories: Vec<i64> = sqlx::query_scalar("SELECT key FROM memory WHERE session = ?")
        .bind(session)
        .fetch_all(&mut **transaction)
        .await?;
    for keys in memories.chunks(BATCH_ROWS) {
        forget(
            transaction,
            "SELECT key, markdown AS text FROM memory WHERE key IN (SELECT value FROM json_each(?))",
            &serde_json::to_string(keys).unwrap_or_default(),
            "INSERT INTO memory_search (memory_search, rowid, folded) \
             SELECT 'delete', json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)",
        )
        .await?;
    }
    Ok(())
}

/// Takes texts out of an index, which must be told what it was given.
async fn forget(
    transaction: &mut Transaction<'static, Sqlite>,
    select: &'static str,
    keys: &str,
    delete: &'static str,
) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(select)
        .bind(keys)
        .fetch_all(&mut **transaction)
        .await?;
    let texts = rows
        .iter()
        .map(|row| Ok((row.try_get::<i64, _>("key")?, fold(row.try_get("text")?))))
        .collect::<Result<Vec<_>, sqlx::Error>>()?;
    let texts = serde_json::to_string(&texts).unwrap_or_default();
    sqlx::query(delete)
        .bind(texts)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}
