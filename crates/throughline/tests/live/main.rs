//! Sessions against the simulator, in virtual time; and, if asked for, against a real server.

mod compaction;
mod local;
mod world;
