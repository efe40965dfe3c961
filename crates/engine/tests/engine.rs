//! The engine in a world of its own: a transcript, a store, compactors and a provider in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of the test functions"
)]

mod engine {
    mod asked;
    mod cases;
    mod economy;
    mod history;
    mod model;
    mod properties;
    mod said;
    mod swaps;
    mod updates;
    mod world;
}
