//! opencode: its sessions, in the form of its exports.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use throughline_transcript::json::write_string;

use super::{is_too_large, string};

/// Columns of a session, and the field of the export that each is.
const SESSION_FIELDS: [(&str, &str); 4] = [
    ("id", "id"),
    ("parent_id", "parentID"),
    ("title", "title"),
    ("directory", "directory"),
];

/// All sessions as an array of exports; `None` if they are too large.
pub(super) async fn export(
    connection: &mut SqliteConnection,
) -> Result<Option<String>, sqlx::Error> {
    let sessions = sqlx::query("SELECT * FROM session ORDER BY id")
        .fetch_all(&mut *connection)
        .await?;
    let mut text = String::from("[");
    for (number, session) in sessions.iter().enumerate() {
        if number > 0 {
            text.push_str(",\n");
        }
        text.push_str("{\"info\":{");
        let mut has_field = false;
        for (column, field) in SESSION_FIELDS {
            if let Some(value) = string(session, column) {
                push_field(field, &value, has_field, &mut text);
                has_field = true;
            }
        }
        if let Some(revert) = string(session, "revert").filter(|revert| revert.starts_with('{')) {
            text.push_str(",\"revert\":");
            text.push_str(&revert);
        }
        text.push_str("},\"messages\":[");
        let id = string(session, "id").unwrap_or_default();
        if !push_messages(connection, &id, &mut text).await? {
            return Ok(None);
        }
        text.push_str("]}");
    }
    text.push(']');
    Ok(Some(text))
}

/// The messages of a session with their parts; false if the text has become too large.
async fn push_messages(
    connection: &mut SqliteConnection,
    session: &str,
    text: &mut String,
) -> Result<bool, sqlx::Error> {
    // Ids rise with time.
    let messages = sqlx::query(
        "SELECT id, CAST(data AS TEXT) AS data FROM message WHERE session_id = ? ORDER BY id",
    )
    .bind(session)
    .fetch_all(&mut *connection)
    .await?;
    let mut parts = sqlx::query(
        "SELECT message_id, id, CAST(data AS TEXT) AS data FROM part WHERE session_id = ? ORDER BY message_id, id",
    )
    .bind(session)
    .fetch_all(&mut *connection)
    .await?
    .into_iter()
    .peekable();
    for (number, message) in messages.iter().enumerate() {
        let id = string(message, "id").unwrap_or_default();
        if number > 0 {
            text.push_str(",\n");
        }
        text.push_str("{\"info\":");
        push_with_id(message, &id, text);
        text.push_str(",\"parts\":[");
        // Parts of messages that are gone are passed over.
        while parts
            .next_if(|part| string(part, "message_id").is_some_and(|of| of < id))
            .is_some()
        {}
        let mut is_first = true;
        while let Some(part) =
            parts.next_if(|part| string(part, "message_id").as_ref() == Some(&id))
        {
            if !is_first {
                text.push(',');
            }
            is_first = false;
            push_with_id(&part, &string(&part, "id").unwrap_or_default(), text);
        }
        text.push_str("]}");
        if is_too_large(text) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The object in `data` with the `id` of its row, which it does not repeat. Data that is no object gives one with the
/// id alone.
fn push_with_id(row: &SqliteRow, id: &str, text: &mut String) {
    text.push('{');
    push_field("id", id, false, text);
    let data = string(row, "data").unwrap_or_default();
    let data = data.trim();
    // Half a row must not spoil the rest.
    if throughline_transcript::json::Raw::parse(data.to_owned()).is_ok()
        && let Some(fields) = data
            .strip_prefix('{')
            .and_then(|data| data.strip_suffix('}'))
        && !fields.trim().is_empty()
    {
        text.push(',');
        text.push_str(fields);
    }
    text.push('}');
}

fn push_field(name: &str, value: &str, is_next: bool, text: &mut String) {
    if is_next {
        text.push(',');
    }
    text.push('"');
    text.push_str(name);
    text.push_str("\":");
    write_string(value, text);
}
