//! Sessions against the simulator, in virtual time.

mod compaction;
mod world;
