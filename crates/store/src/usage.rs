//! What calls cost, and what happened.

/// What a model call was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// The conversation itself.
    Main,
    /// The making of a memory.
    Update,
}

impl Purpose {
    /// The name under which it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Update => "update",
        }
    }

    /// The purpose of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "main" => Some(Self::Main),
            "update" => Some(Self::Update),
            _ => None,
        }
    }
}

/// What one model call used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// When the call ended, in milliseconds since 1970.
    pub at_ms: i64,
    /// What it was for.
    pub purpose: Purpose,
    /// The model that was called.
    pub model: String,
    /// Tokens read at the full price.
    pub uncached: u64,
    /// Tokens written into the cache at the short lifetime.
    pub cache_write: u64,
    /// Tokens written into the cache at the long lifetime.
    pub cache_write_long: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written by the model.
    pub output: u64,
    /// The price in billionths of a dollar, where it is known.
    pub cost_nanodollars: Option<i64>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

/// What several calls used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageSum {
    /// How many calls.
    pub calls: u64,
    /// How many of them have no known price.
    pub unpriced_calls: u64,
    /// Tokens read at the full price.
    pub uncached: u64,
    /// Tokens written into the cache at the short lifetime.
    pub cache_write: u64,
    /// Tokens written into the cache at the long lifetime.
    pub cache_write_long: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written by the models.
    pub output: u64,
    /// The known prices in billionths of a dollar.
    pub cost_nanodollars: i64,
}

impl UsageSum {
    fn add(&mut self, row: &UsageRow) {
        self.calls += 1;
        self.unpriced_calls += u64::from(row.cost_nanodollars.is_none());
        self.uncached = self.uncached.saturating_add(row.uncached);
        self.cache_write = self.cache_write.saturating_add(row.cache_write);
        self.cache_write_long = self.cache_write_long.saturating_add(row.cache_write_long);
        self.cache_read = self.cache_read.saturating_add(row.cache_read);
        self.output = self.output.saturating_add(row.output);
        self.cost_nanodollars = self
            .cost_nanodollars
            .saturating_add(row.cost_nanodollars.unwrap_or(0));
    }
}

/// What a session used, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// The conversation itself.
    pub main: UsageSum,
    /// The making of memories.
    pub update: UsageSum,
}

impl UsageTotals {
    /// Adds one call.
    pub fn add(&mut self, row: &UsageRow) {
        self.of_mut(row.purpose).add(row);
    }

    pub(crate) fn of_mut(&mut self, purpose: Purpose) -> &mut UsageSum {
        match purpose {
            Purpose::Main => &mut self.main,
            Purpose::Update => &mut self.update,
        }
    }
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Its place among the session's events, from 0.
    pub sequence: u64,
    /// What kind of thing it is.
    pub kind: String,
    /// Its numbers and reasons, in a form that is the caller's own.
    pub json: String,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
}
