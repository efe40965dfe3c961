//! Sessions against the simulator, in virtual time.

mod compaction;
mod resume;
mod soak;
mod turns;
mod world;
