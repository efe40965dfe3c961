//! Memory versions as a store keeps them.

/// One memory version. Versions of a session are numbered from 1 without gaps and never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// Its number.
    pub version: u64,
    /// How many messages it covers.
    pub covered_count: u64,
    /// The digest of the covered prefix.
    pub digest: [u8; 32],
    /// What made it.
    pub origin: String,
    /// The whole memory.
    pub json: String,
    /// The memory for readers; it is also what search looks through.
    pub markdown: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// Its size in tokens.
    pub tokens: u32,
}

/// What a list shows of a memory version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Its number.
    pub version: u64,
    /// How many messages it covers.
    pub covered_count: u64,
    /// The digest of the covered prefix.
    pub digest: [u8; 32],
    /// What made it.
    pub origin: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// Its size in tokens.
    pub tokens: u32,
}

impl From<&MemoryRow> for MemoryInfo {
    fn from(row: &MemoryRow) -> Self {
        Self {
            version: row.version,
            covered_count: row.covered_count,
            digest: row.digest,
            origin: row.origin.clone(),
            created_ms: row.created_ms,
            tokens: row.tokens,
        }
    }
}

/// Which memory represents the covered messages from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoption {
    /// The epoch that begins; greater than the one before, or the same if only the state is another. The first adoption
    /// replaces epoch 0.
    pub epoch: u64,
    /// The memory version, or none: a swap was undone.
    pub memory_version: Option<u64>,
    /// How many messages it covers: the tail begins there.
    pub covered_count: u64,
    /// The state that the caller needs to go on, in a form that is the caller's own.
    pub state: String,
    /// When it was adopted, in milliseconds since 1970.
    pub at_ms: i64,
}
