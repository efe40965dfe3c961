//! The last look at a rewritten body before it is sent.

use bytestring::ByteString;
use http::HeaderMap;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::check::{CheckOptions, check};
use throughline_transcript::client;
use throughline_transcript::json::Raw;

use crate::headers;
use crate::rewrite::ClientBody;

/// A rewritten body that the provider accepts, as far as its model and headers tell.
///
/// # Errors
/// The first rule that it breaks, and where.
pub(super) fn rewritten(
    body: ByteString,
    client: &ClientBody,
    headers: &HeaderMap,
    catalogue: &Catalogue,
) -> Result<Raw, String> {
    let body = Raw::parse(body).map_err(|error| error.to_string())?;
    let model = client::model(&client.outline);
    let betas: Vec<&str> = headers::betas(headers).collect();
    let options = CheckOptions {
        model: model.as_deref().and_then(|model| catalogue.find(model)),
        anthropic_version: headers::anthropic_version(headers),
        betas: Some(&betas),
        profile: client.profile,
        body_bytes_max: None,
    };
    let report = check(&body, client.outline.wire(), &options);
    match report.errors().next() {
        Some(finding) => Err(format!("{} at {}", finding.code, finding.path)),
        None => Ok(body),
    }
}
