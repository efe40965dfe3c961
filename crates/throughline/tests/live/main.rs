//! Sessions against the simulator, in virtual time; and, if asked for, against a real server.
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a helper of a test that fails is a test that fails"
)]

mod agents;
mod begun;
mod builtins;
mod compaction;
mod elsewhere;
mod faults;
mod folder;
mod histories;
mod killed;
mod learnt;
mod local;
mod resume;
mod soak;
mod stored;
mod thinking;
mod turns;
mod updates;
mod windows;
mod world;
