//! The body of a request: unpacked and parsed.

use std::io::Read;

use bytes::Bytes;
use bytestring::ByteString;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};
use throughline_transcript::json::Raw;

use super::BODY_BYTES_MAX;
use crate::api_error::{ApiError, Vendor};

pub(super) const TOO_LARGE: &str = "Request exceeds the maximum size";

pub(crate) fn unpacked(headers: &HeaderMap, body: Bytes) -> Result<Bytes, ApiError> {
    let too_large = || ApiError::new(413, TOO_LARGE);
    if body.len() > BODY_BYTES_MAX {
        return Err(too_large());
    }
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity" | b"") => Ok(body),
        Some(b"gzip") => {
            let mut unpacked = Vec::new();
            let limit = BODY_BYTES_MAX as u64 + 1;
            flate2::read::MultiGzDecoder::new(body.as_ref())
                .take(limit)
                .read_to_end(&mut unpacked)
                .map_err(|_| {
                    ApiError::new(400, "The request body could not be decoded as gzip.")
                        .error_code("request_body_encoding_invalid")
                })?;
            if unpacked.len() > BODY_BYTES_MAX {
                return Err(too_large().error_code("request_body_too_large_after_decoding"));
            }
            Ok(Bytes::from(unpacked))
        }
        Some(_) => Err(
            ApiError::new(400, "The content encoding of the request is not supported.")
                .error_code("request_body_encoding_unsupported"),
        ),
    }
}

pub(super) fn parsed(bytes: Bytes, vendor: Vendor) -> Result<Raw, ApiError> {
    let invalid = |reason: String| match vendor {
        Vendor::Anthropic => {
            ApiError::new(400, format!("The request body is not valid JSON: {reason}"))
        }
        Vendor::OpenAi => ApiError::new(
            400,
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP \
             library correctly.)",
        ),
    };
    let text = ByteString::try_from(bytes).map_err(|_| invalid("invalid UTF-8".to_owned()))?;
    Raw::parse(text).map_err(|error| invalid(error.to_string()))
}
