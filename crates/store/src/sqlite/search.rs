//! Search: the index says which texts may have the words, the program looks.

use sqlx::sqlite::SqliteRow;
use std::collections::HashMap;

use super::Reading;
use super::connect::corrupt;
use crate::error::StoreError;
use crate::search::{Hit, Place, Scope, Search, Words};
use crate::session::SessionId;
use crate::store::Page;

/// How many texts are read in one statement.
const BATCH_ROWS: usize = 100;
/// The length of the index's tokens, in characters. Shorter words have none.
const TOKEN_CHARS: usize = 3;
/// How many tokens are asked for. The rest of a long query is left to the look at the text itself.
const TOKENS_MAX: usize = 64;

// Without words of three characters there is nothing to ask the index, and every text is looked through.
// `?1` is the question to the index, `?2` the session or null.
const MESSAGES: [&str; 2] = [
    "SELECT s.id, s.updated_ms, 0 AS shelf, p.position AS number, p.message AS key \
     FROM message_search JOIN placement AS p ON p.message = message_search.rowid JOIN session AS s ON s.key = p.session \
     WHERE message_search MATCH ?1 AND (?2 IS NULL OR s.id = ?2) \
     UNION ALL SELECT s.id, s.updated_ms, 1, p.sequence, p.message \
     FROM message_search JOIN superseded AS p ON p.message = message_search.rowid JOIN session AS s ON s.key = p.session \
     WHERE message_search MATCH ?1 AND (?2 IS NULL OR s.id = ?2) \
     ORDER BY 2 DESC, 1, 3, 4 DESC",
    "SELECT s.id, s.updated_ms, 0 AS shelf, p.position AS number, p.message AS key \
     FROM session AS s JOIN placement AS p ON p.session = s.key \
     WHERE ?1 IS NULL AND (?2 IS NULL OR s.id = ?2) \
     UNION ALL SELECT s.id, s.updated_ms, 1, p.sequence, p.message \
     FROM session AS s JOIN superseded AS p ON p.session = s.key \
     WHERE ?1 IS NULL AND (?2 IS NULL OR s.id = ?2) \
     ORDER BY 2 DESC, 1, 3, 4 DESC",
];
const MEMORIES: [&str; 2] = [
    "SELECT s.id, s.updated_ms, 2 AS shelf, m.version AS number, m.key AS key \
     FROM memory_search JOIN memory AS m ON m.key = memory_search.rowid JOIN session AS s ON s.key = m.session \
     WHERE memory_search MATCH ?1 AND (?2 IS NULL OR s.id = ?2) \
     ORDER BY 2 DESC, 1, 4 DESC",
    "SELECT s.id, s.updated_ms, 2 AS shelf, m.version AS number, m.key AS key \
     FROM session AS s JOIN memory AS m ON m.session = s.key \
     WHERE ?1 IS NULL AND (?2 IS NULL OR s.id = ?2) \
     ORDER BY 2 DESC, 1, 4 DESC",
];
const MESSAGE_TEXTS: &str = "SELECT message AS key, text FROM message_text WHERE message IN (SELECT value FROM json_each(?))";
const MEMORY_TEXTS: &str =
    "SELECT key, markdown AS text FROM memory WHERE key IN (SELECT value FROM json_each(?))";

/// A text that may have the words.
struct Candidate {
    updated_ms: i64,
    session: SessionId,
    place: Place,
    key: i64,
}

impl Reading<'_> {
    pub(super) async fn search(&mut self, search: &Search) -> Result<Vec<Hit>, StoreError> {
        let words = Words::of(search)?;
        let limit = Page::first(search.limit).rows();
        let session = match &search.scope {
            Scope::All => None,
            Scope::Session(id) => Some(self.session(id).await?.info.id),
        };
        if words.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let mut hits = Vec::new();
        if search.shelf.has_archive() {
            hits.extend(
                self.find(&words, MESSAGES, MESSAGE_TEXTS, session.as_ref(), limit)
                    .await?,
            );
        }
        if search.shelf.has_memories() {
            hits.extend(
                self.find(&words, MEMORIES, MEMORY_TEXTS, session.as_ref(), limit)
                    .await?,
            );
        }
        Ok(crate::search::in_order(hits, limit))
    }

    async fn find(
        &mut self,
        words: &Words,
        [by_index, all]: [&'static str; 2],
        texts: &'static str,
        session: Option<&SessionId>,
        limit: u32,
    ) -> Result<Vec<(i64, Hit)>, StoreError> {
        let question = question(words);
        let rows = sqlx::query(if question.is_some() { by_index } else { all })
            .bind(question)
            .bind(session.map(SessionId::as_str))
            .fetch_all(&mut *self.transaction)
            .await
            .map_err(|error| self.store.error(error))?;
        let candidates = rows
            .iter()
            .map(|row| self.candidate(row))
            .collect::<Result<Vec<_>, _>>()?;
        drop(rows);
        let mut hits = Vec::new();
        for candidates in candidates.chunks(BATCH_ROWS) {
            let keys: Vec<i64> = candidates.iter().map(|candidate| candidate.key).collect();
            let texts = self.texts(texts, &keys).await?;
            for candidate in candidates {
                if let Some(snippet) = texts
                    .get(&candidate.key)
                    .and_then(|text| words.snippet(text))
                {
                    let session = candidate.session.clone();
                    hits.push((
                        candidate.updated_ms,
                        Hit {
                            session,
                            place: candidate.place,
                            snippet,
                        },
                    ));
                }
            }
            // Candidates come in the order of the answer.
            if hits.len() >= limit as usize {
                break;
            }
        }
        Ok(hits)
    }

    fn candidate(&self, row: &SqliteRow) -> Result<Candidate, StoreError> {
        let row = self.store.read(row);
        let number = row.number("number")?;
        let id: String = row.column("id")?;
        Ok(Candidate {
            updated_ms: row.column("updated_ms")?,
            session: SessionId::new(id)
                .map_err(|_| corrupt(&self.store.path, "a session id is none"))?,
            place: match row.number("shelf")? {
                0 => Place::Message { position: number },
                1 => Place::Superseded { sequence: number },
                _ => Place::Memory { version: number },
            },
            key: row.column("key")?,
        })
    }

    async fn texts(
        &mut self,
        texts: &'static str,
        keys: &[i64],
    ) -> Result<HashMap<i64, String>, StoreError> {
        let keys = serde_json::to_string(keys).unwrap_or_default();
        let rows = sqlx::query(texts)
            .bind(keys)
            .fetch_all(&mut *self.transaction)
            .await;
        let rows = rows.map_err(|error| self.store.error(error))?;
        rows.iter()
            .map(|row| {
                let row = self.store.read(row);
                Ok((row.column("key")?, row.column("text")?))
            })
            .collect()
    }
}

/// Every three characters in a row of every word must occur: a text that has the words has these.
fn question(words: &Words) -> Option<String> {
    let mut tokens: Vec<String> = Vec::new();
    for word in words.iter() {
        let chars: Vec<char> = word.chars().collect();
        tokens.extend(
            chars
                .windows(TOKEN_CHARS)
                .map(|token| token.iter().collect()),
        );
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens.truncate(TOKENS_MAX);
    // Within quotes everything is taken as it is, save the quote.
    let quoted = tokens
        .iter()
        .map(|token| format!("\"{}\"", token.replace('"', "\"\"")))
        .collect::<Vec<_>>();
    (!quoted.is_empty()).then(|| quoted.join(" AND "))
}
