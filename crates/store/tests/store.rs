//! The stores, from outside.

#![expect(clippy::unwrap_used, reason = "a test says so when something is wrong")]

#[path = "store/crash.rs"]
mod crash;
#[cfg(unix)]
#[path = "store/disk.rs"]
mod disk;
#[path = "store/homes.rs"]
mod homes;
#[path = "store/old_files.rs"]
mod old_files;
#[path = "store/processes.rs"]
mod processes;
#[path = "store/sqlite.rs"]
mod sqlite;
#[path = "store/suite.rs"]
mod suite;
