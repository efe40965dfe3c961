//! The files of the pages. They are part of the program.

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::text;

/// The file at that path.
pub(crate) fn answer(path: &str) -> Option<Response<Bytes>> {
    let (kind, content) = match path.strip_prefix("/throughline/assets/")? {
        "style.css" => ("text/css; charset=utf-8", include_str!("assets/style.css")),
        "script.js" => (
            "text/javascript; charset=utf-8",
            include_str!("assets/script.js"),
        ),
        "icon.svg" => ("image/svg+xml", include_str!("assets/icon.svg")),
        _ => return None,
    };
    Some(text(StatusCode::OK, kind, content))
}
