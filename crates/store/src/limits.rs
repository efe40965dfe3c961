//! Limits on what one row may hold. A larger one is refused as [`StoreError::TooLarge`](crate::StoreError::TooLarge)
//! before anything is written.

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
