//! Which model is meant: the catalogue that counts, and its tokens.

use std::path::Path;

use throughline_transcript::catalogue::{Catalogue, TokenizerFamily};
use throughline_transcript::tokens::Counter;

use crate::arguments::ModelChoice;
use crate::error::{Failure, Kind};
use crate::files;
use crate::output::Console;

/// The embedded catalogue, with the user's file over it.
pub(crate) fn catalogue(file: Option<&Path>) -> Result<Catalogue, Failure> {
    let Some(path) = file else {
        return Ok(Catalogue::embedded().clone());
    };
    let toml = files::small_file(path)?;
    Catalogue::with_overrides(&toml).map_err(|error| {
        Failure::new(Kind::Arguments, error.to_string())
            .at(path.display())
            .hint("`throughline models --json` shows the entries; a new one needs at least `id` and `window`")
    })
}

/// Counts tokens as the chosen model does, or in `cl100k_base`.
pub(crate) fn counter(choice: &ModelChoice, console: &Console) -> Result<Counter, Failure> {
    let Some(name) = &choice.model else {
        // A file with a mistake is refused even where nothing of it is needed; the embedded list takes time to read.
        choice
            .catalogue
            .as_deref()
            .map(|path| catalogue(Some(path)))
            .transpose()?;
        return Ok(Counter::reference());
    };
    let catalogue = catalogue(choice.catalogue.as_deref())?;
    Ok(match catalogue.find(name) {
        Some(model) => Counter::for_model(model),
        None => {
            console.warning(&format!(
                "the model {name:?} is not known; its tokens are estimated on the high side"
            ));
            console.hint("`throughline models` lists the known ones; --catalogue FILE adds yours");
            Counter::of_family(TokenizerFamily::Other)
        }
    })
}

/// What sizes are counted in, for reports.
pub(crate) fn unit(choice: &ModelChoice, counter: &Counter) -> String {
    match &choice.model {
        None => "cl100k_base".to_owned(),
        Some(model) if counter.is_exact() => model.clone(),
        Some(model) => format!("{model}, estimated"),
    }
}
