//! `throughline man`: the manual pages, made of the same texts as `--help`.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::arguments::{self, Arguments};
use crate::error::{Ending, Failure};
use crate::output::Console;
use crate::selection;

pub(crate) fn run(arguments: &arguments::Man, console: &Console) -> Result<Ending, Failure> {
    let command = Arguments::command();
    match &arguments.folder {
        Some(folder) => {
            selection::folder(folder)?;
            clap_mangen::generate_to(command, folder)
                .map_err(|error| Failure::writing(folder.display(), &error))?;
            console.summary(&format!("the pages are in {}", folder.display()));
        }
        None => {
            let mut page = Vec::new();
            Man::new(command)
                .render(&mut page)
                .map_err(|error| Failure::writing("standard output", &error))?;
            console.print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(Ending::Done)
}
