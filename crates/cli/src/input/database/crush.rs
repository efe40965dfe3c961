//! Crush: its sessions, in the form of `crush session show --json`.

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
        let mut meta = Object::open(object.key("meta"));
        for column in ["id", "parent_session_id", "title"] {
            meta.string(column, string(session, column).as_deref());
        }
        meta.close();
        object.key("messages").push('[');
        // Several messages are written in one second.
        let messages = sqlx::query(
            "SELECT *, CAST(parts AS TEXT) AS pieces FROM messages WHERE session_id = ? ORDER BY created_at, rowid",
        )
        .bind(&id)
        .fetch_all(&mut *connection)
        .await?;
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                object.text.push_str(",\n");
            }
            let mut inner = Object::open(object.text);
            for column in ["id", "role", "model"] {
                inner.string(column, string(message, column).as_deref());
            }
            for column in ["created_at", "is_summary_message"] {
                inner.number(column, number(message, column));
            }
            inner.json("parts", string(message, "pieces").as_deref());
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
