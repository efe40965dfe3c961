//! Limits on what one row may hold. Exceeding one is [`StoreError::TooLarge`], before
//! anything is written.

use crate::change::Change;
use crate::error::StoreError;
use crate::session::NewSession;

/// Longest session id, in bytes.
pub const SESSION_ID_BYTES_MAX: usize = 128;
/// Longest title, in bytes.
pub const TITLE_BYTES_MAX: usize = 4 * 1024;
/// Longest short word: a wire, a model, a role, an origin, a kind of event, a request id; in bytes.
pub const NAME_BYTES_MAX: usize = 1024;
/// Largest message, original and sent form each, in bytes. Twice the 32 MB that a provider takes for a whole request.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest searchable text of a message, in bytes.
pub const MESSAGE_TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest memory, JSON and Markdown each, in bytes.
pub const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest request head (system, tools, settings of the request), in bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest settings, in bytes.
pub const SETTINGS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest state that is stored with an adoption, in bytes.
pub const STATE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest event, in bytes.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;
/// Most tokens of one class that one call can use: so few that the sum over all calls of a session stays a number.
pub const USAGE_TOKENS_MAX: u64 = 1 << 40;
/// Most that one call can cost, in billionths of a dollar: about a million dollars.
pub const USAGE_NANODOLLARS_MAX: u64 = 1 << 50;
/// Longest search text, in bytes.
pub const SEARCH_BYTES_MAX: usize = 4 * 1024;
/// Most rows that one page gives.
pub const PAGE_ROWS_MAX: u32 = 1_000;

pub(crate) fn check_session(new: &NewSession) -> Result<(), StoreError> {
    within("wire", new.wire.len(), NAME_BYTES_MAX)?;
    within("model", new.model.len(), NAME_BYTES_MAX)?;
    within("title", new.title.len(), TITLE_BYTES_MAX)?;
    within("head", new.head.len(), HEAD_BYTES_MAX)?;
    within("settings", new.settings.len(), SETTINGS_BYTES_MAX)
}

pub(crate) fn check_changes(changes: &[Change]) -> Result<(), StoreError> {
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
