//! Room on the disk that is kept for when there is no other: a file beside the database that is given up then, so that
//! sessions can still be read and deleted.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::connect::beside;
use crate::private;

/// Enough to carry over the log that waits for that, which is half of it, and for the log of a step of a deletion; and
/// too little to matter.
const RESERVE_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(super) fn beside(database: &Path) -> Self {
        Self {
            path: beside(database, ".reserve"),
        }
    }

    /// Reserves the room, unless it is reserved already. If there is none, the store works without it.
    pub(super) fn make(&self) {
        let known = self.path.metadata().map_or(0, |metadata| metadata.len());
        if known < RESERVE_BYTES as u64 && self.write().is_err() {
            self.give_up();
        }
    }

    /// Not all zeros, which some file systems would not keep.
    fn write(&self) -> io::Result<()> {
        let mut file = private::open_file(&self.path)?;
        let block: Vec<u8> = (0..64 * 1024_u32)
            .map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0])
            .collect();
        for _ in 0..RESERVE_BYTES / block.len() {
            file.write_all(&block)?;
        }
        // It needs not reach the disk: the room is taken.
        Ok(())
    }

    /// Gives the room back. False if there was none.
    pub(super) fn give_up(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}
