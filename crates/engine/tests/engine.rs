//! The engine in a world of its own: a transcript, a store, compactors and a provider in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of the test functions"
)]

mod engine {
    mod cases;
    mod economy;
    mod history;
    mod invariants;
    mod messages;
    mod model;
    mod properties;
    mod requested;
    mod swaps;
    mod updates;
    mod world;
}
