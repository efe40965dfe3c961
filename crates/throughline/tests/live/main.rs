//! Sessions against the simulator, in virtual time.

mod compaction;
mod elsewhere;
mod faults;
mod killed;
mod resume;
mod soak;
mod turns;
mod world;
