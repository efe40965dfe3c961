//! Goose: its sessions, in the form of its exports.

use sqlx::SqliteConnection;

use super::{Object, is_too_large, number, string};

/// All sessions as an array of exports; `None` if they are too large.
pub(super) async fn export(
    connection: &mut SqliteConnection,
) -> Result<Option<String>, sqlx::Error> {
    let sessions = sqlx::query("SELECT * FROM sessions ORDER BY created_at, id")
        .fetch_all(&mut *connection)
        .await?;
    let mut text = String::from("[");
    for (index, session) in sessions.iter().enumerate() {
        if index > 0 {
            text.push_str(",\n");
        }
        let id = string(session, "id").unwrap_or_default();
        let mut object = Object::open(&mut text);
        object.string("id", Some(&id));
        let folder = string(session, "working_dir").unwrap_or_default();
        object.string("working_dir", Some(&folder));
        for column in ["name", "description", "session_type"] {
            object.string(column, string(session, column).as_deref());
        }
        object.json(
            "model_config",
            string(session, "model_config_json").as_deref(),
        );
        object.key("conversation").push('[');
        // A compaction writes all messages again, so that their ids rise.
        let messages = sqlx::query(
            "SELECT *, CAST(content_json AS TEXT) AS content FROM messages WHERE session_id = ? ORDER BY id",
        )
        .bind(&id)
        .fetch_all(&mut *connection)
        .await?;
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                object.text.push_str(",\n");
            }
            let mut inner = Object::open(object.text);
            inner.string("id", string(message, "message_id").as_deref());
            inner.string("role", string(message, "role").as_deref());
            inner.number("created", number(message, "created_timestamp"));
            inner.json("content", string(message, "content").as_deref());
            inner.json("metadata", string(message, "metadata_json").as_deref());
            inner.close();
            if is_too_large(object.text) {
                return Ok(None);
            }
        }
        object.text.push(']');
        object.close();
    }
    text.push(']');
    Ok(Some(text))
}
