//! The file of `throughline serve --config`.

use std::path::Path;

use crate::arguments::serve::Proxying;
use crate::error::{Failure, Kind};
use crate::files;

/// Reads it.
pub(super) fn read(path: &Path) -> Result<Proxying, Failure> {
    let text = files::small_file(path)?;
    toml_edit::de::from_str(&text).map_err(|error| {
        let place = error.span().map(|span| {
            text.get(..span.start)
                .unwrap_or_default()
                .lines()
                .count()
                .max(1)
        });
        let place = place.map_or_else(
            || path.display().to_string(),
            |line| format!("{}, line {line}", path.display()),
        );
        Failure::new(Kind::Arguments, error.message().to_owned())
            .at(place)
            .hint("docs/proxy.md lists the keys")
    })
}
