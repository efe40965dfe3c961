//! Cursor: the chats of its key-value table, each with its bubbles in order.

use sqlx::SqliteConnection;
use throughline_transcript::json::{Kind, Raw};

use super::{Object, is_too_large};

/// All chats as an array; `None` if they are too large.
pub(super) async fn export(
    connection: &mut SqliteConnection,
) -> Result<Option<String>, sqlx::Error> {
    let chats: Vec<String> = sqlx::query_scalar(
        "SELECT CAST(value AS TEXT) FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' AND value IS NOT NULL",
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut chats: Vec<Raw> = chats
        .into_iter()
        .filter_map(|chat| Raw::parse(chat).ok())
        .collect();
    let created = |chat: &Raw| {
        chat.field("createdAt")
            .and_then(|at| at.as_u64())
            .unwrap_or(0)
    };
    chats.sort_by_key(created);
    let mut text = String::from("[");
    for chat in &chats {
        let [id, name, model, headers, inline, map] = chat.fields([
            "composerId",
            "name",
            "modelConfig",
            "fullConversationHeadersOnly",
            "conversation",
            "conversationMap",
        ]);
        let Some(id) = id.and_then(|id| id.as_text()) else {
            continue;
        };
        let id = id.decode().into_owned();
        let mut bubbles: Vec<Raw> = inline.iter().flat_map(Raw::array).collect();
        if bubbles.is_empty() {
            for header in headers.iter().flat_map(Raw::array) {
                let Some(bubble) = header.string_field("bubbleId") else {
                    continue;
                };
                let stored: Option<Option<String>> = sqlx::query_scalar(
                    "SELECT CAST(value AS TEXT) FROM cursorDiskKV WHERE key = ?",
                )
                .bind(format!("bubbleId:{id}:{bubble}"))
                .fetch_optional(&mut *connection)
                .await?;
                let found = stored.flatten().and_then(|stored| Raw::parse(stored).ok());
                bubbles.extend(found.or_else(|| map.as_ref()?.field(&bubble)));
            }
        }
        bubbles.retain(|bubble| bubble.kind() == Kind::Object);
        // A chat that was opened and never used.
        if bubbles.is_empty() {
            continue;
        }
        if text.len() > 1 {
            text.push_str(",\n");
        }
        let mut object = Object::open(&mut text);
        let mut composer = Object::open(object.key("composer"));
        composer.string("composerId", Some(&id));
        composer.json("name", name.as_ref().map(Raw::as_str));
        composer.json("modelConfig", model.as_ref().map(Raw::as_str));
        composer.close();
        let list = object.key("bubbles");
        list.push('[');
        for (index, bubble) in bubbles.iter().enumerate() {
            if index > 0 {
                list.push_str(",\n");
            }
            list.push_str(bubble.as_str());
            if is_too_large(list) {
                return Ok(None);
            }
        }
        list.push(']');
        object.close();
    }
    text.push(']');
    Ok(Some(text))
}
