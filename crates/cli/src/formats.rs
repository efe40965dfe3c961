//! `throughline formats`: what can be read.

use throughline_formats::ALL;

use crate::error::{Ending, Failure};
use crate::output::Console;

pub(crate) fn run(console: &Console) -> Result<Ending, Failure> {
    let rows = ALL
        .iter()
        .map(|format| vec![format.name().to_owned(), format.about().to_owned()])
        .collect();
    console.print(&console.table(&["format", "what it is"], rows))?;
    Ok(Ending::Done)
}
