//! `throughline completions`: scripts that complete its arguments in a shell.

use clap::CommandFactory;

use crate::arguments::{self, Arguments};
use crate::error::{Ending, Failure};
use crate::output::Console;

pub(crate) fn run(
    arguments: &arguments::Completions,
    console: &Console,
) -> Result<Ending, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "throughline",
        &mut script,
    );
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(Ending::Done)
}
