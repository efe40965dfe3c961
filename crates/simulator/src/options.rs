//! Options of the simulated provider.

use throughline_transcript::catalogue::Catalogue;

use crate::faults::Faults;
use crate::headers::Keys;
use crate::latency::Latency;
use crate::limits::RateLimits;
use crate::stream::Chunking;

/// Options of the simulated provider.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Seed of everything random.
    pub seed: u64,
    /// Its models.
    pub catalogue: Catalogue,
    /// One window for all models instead of their own, tokens: conversations become too long sooner.
    pub window: Option<u64>,
    /// How fast it is.
    pub latency: Latency,
    /// The faults.
    pub faults: Faults,
    /// Rate limits; `None` is no limit.
    pub limits: Option<RateLimits>,
    /// The credentials that it accepts.
    pub keys: Keys,
    /// How streams are split into chunks.
    pub chunking: Chunking,
    /// The reaction to thinking that returns after another prefix than its own.
    pub prefix_mismatch: PrefixMismatch,
    /// Its count for a thousand tokens of our own counter. At other values than 1000, estimates are wrong by that much.
    pub tokens_permille: u32,
    /// Whether the ledger keeps request bodies.
    pub keeps_bodies: bool,
}

/// The reaction to thinking that returns after another prefix than its own, on models that bind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixMismatch {
    /// Refuse it with 400, as for accounts since 31 August 2026.
    #[default]
    Refuse,
    /// Accept and report it, as for older accounts.
    Allow,
}

impl Options {
    /// A provider with all models of the embedded catalogue, real latency and no faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            catalogue: Catalogue::embedded().clone(),
            window: None,
            latency: Latency::real(),
            faults: Faults::none(),
            limits: None,
            keys: Keys::Any,
            chunking: Chunking::default(),
            prefix_mismatch: PrefixMismatch::default(),
            tokens_permille: 1000,
            keeps_bodies: true,
        }
    }

    /// The same, answering at once.
    #[must_use]
    pub fn without_latency(self) -> Self {
        Self {
            latency: Latency::none(),
            ..self
        }
    }
}
