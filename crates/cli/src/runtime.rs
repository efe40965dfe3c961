//! What commands that wait for something run on.

use tokio::runtime::Runtime;

use crate::error::{Failure, Kind, reason};

/// Runs a command to its end.
pub(crate) fn run<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Runtime::new().map_err(|error| {
        Failure::new(
            Kind::Input,
            format!("cannot start threads: {}", reason(&error)),
        )
    })?;
    runtime.block_on(command)
}
