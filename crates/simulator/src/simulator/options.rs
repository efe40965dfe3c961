//! How the provider behaves.

use throughline_transcript::catalogue::Catalogue;

use crate::faults::Faults;
use crate::headers::Keys;
use crate::latency::Latency;
use crate::limits::RateLimits;
use crate::stream::Chunking;

/// How the provider behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What all chance comes from.
    pub seed: u64,
    /// The models that it has.
    pub catalogue: Catalogue,
    /// A window for all of them, tokens, in place of their own: conversations become "too long" sooner.
    pub window: Option<u64>,
    /// How fast it is.
    pub latency: Latency,
    /// What goes wrong.
    pub faults: Faults,
    /// Rate limits; `None` is no limit.
    pub limits: Option<RateLimits>,
    /// The credentials that it takes.
    pub keys: Keys,
    /// How streams are cut.
    pub chunking: Chunking,
    /// What happens when thinking comes back after another prefix than it was bound to.
    pub prefix_mismatch: PrefixMismatch,
    /// What it counts for a thousand tokens of our own counter: other than 1000, estimates are wrong by that much.
    pub tokens_permille: u32,
    /// Whether the ledger keeps request bodies.
    pub keeps_bodies: bool,
}

/// What happens when thinking comes back after another prefix than it was bound to, on models that bind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixMismatch {
    /// 400, as for accounts since 31 August 2026.
    #[default]
    Refuse,
    /// It is let through and reported, as for older accounts.
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
