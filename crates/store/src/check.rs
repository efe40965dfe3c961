//! Refuses rows that are larger than the limits, before anything is written.

use crate::change::Change;
use crate::error::StoreError;
use crate::limits::{
    EVENT_BYTES_MAX, HEAD_BYTES_MAX, MEMORY_BYTES_MAX, MESSAGE_BYTES_MAX, MESSAGE_TEXT_BYTES_MAX,
    NAME_BYTES_MAX, SETTINGS_BYTES_MAX, STATE_BYTES_MAX, TITLE_BYTES_MAX,
};
use crate::session::NewSession;

pub(crate) fn session(new: &NewSession) -> Result<(), StoreError> {
    within("wire", new.wire.len(), NAME_BYTES_MAX)?;
    within("model", new.model.len(), NAME_BYTES_MAX)?;
    within("title", new.title.len(), TITLE_BYTES_MAX)?;
    within("head", new.head.len(), HEAD_BYTES_MAX)?;
    within("settings", new.settings.len(), SETTINGS_BYTES_MAX)
}

pub(crate) fn changes(changes: &[Change]) -> Result<(), StoreError> {
    changes.iter().try_for_each(|change| match change {
        Change::Append { messages, .. } => messages.iter().try_for_each(|message| {
            within("message", message.original.len(), MESSAGE_BYTES_MAX)?;
            within(
                "sent message",
                message.sent.as_ref().map_or(0, |sent| sent.len()),
                MESSAGE_BYTES_MAX,
            )?;
            within("message text", message.text.len(), MESSAGE_TEXT_BYTES_MAX)?;
            within("role", message.role.len(), NAME_BYTES_MAX)
        }),
        Change::Truncate { .. } => Ok(()),
        Change::Memory(memory) => {
            within("memory", memory.json.len(), MEMORY_BYTES_MAX)?;
            within("memory text", memory.markdown.len(), MEMORY_BYTES_MAX)?;
            within("origin", memory.origin.len(), NAME_BYTES_MAX)
        }
        Change::Adopt { adoption, .. } => within("state", adoption.state.len(), STATE_BYTES_MAX),
        Change::Head(head) => within("head", head.len(), HEAD_BYTES_MAX),
        Change::Settings(settings) => within("settings", settings.len(), SETTINGS_BYTES_MAX),
        Change::Title(title) => within("title", title.len(), TITLE_BYTES_MAX),
        Change::Model(model) => within("model", model.len(), NAME_BYTES_MAX),
        Change::Event { kind, json } => {
            within("kind of event", kind.len(), NAME_BYTES_MAX)?;
            within("event", json.len(), EVENT_BYTES_MAX)
        }
        Change::Usage(usage) => {
            within("model", usage.model.len(), NAME_BYTES_MAX)?;
            within(
                "request id",
                usage.request_id.as_ref().map_or(0, String::len),
                NAME_BYTES_MAX,
            )
        }
    })
}

fn within(what: &'static str, bytes: usize, bytes_max: usize) -> Result<(), StoreError> {
    if bytes <= bytes_max {
        Ok(())
    } else {
        Err(StoreError::TooLarge {
            what,
            bytes,
            bytes_max,
        })
    }
}
