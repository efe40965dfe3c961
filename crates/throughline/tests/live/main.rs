//! Sessions against the simulator, in virtual time; and, if asked for, against a real server.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test that fails is a test that fails"
)]

mod compaction;
mod local;
mod world;
