//! What a provider says that a call used.

/// Tokens of one model call, by price class. The classes do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input neither read from nor written to the prompt cache, tokens.
    pub uncached: u64,
    /// Input written to the prompt cache, tokens.
    pub cache_write: u64,
    /// The part of [`Usage::cache_write`] that was written with the longer lifetime, tokens.
    pub cache_write_long: u64,
    /// Input read from the prompt cache, tokens.
    pub cache_read: u64,
    /// Output, reasoning included, tokens.
    pub output: u64,
}

impl Usage {
    /// Everything that the model was sent, tokens: what filled the window.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.uncached
            .saturating_add(self.cache_write)
            .saturating_add(self.cache_read)
    }
}
