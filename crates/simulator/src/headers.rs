//! The headers of a request: the credential, the version, the betas.

use http::HeaderMap;

use crate::api_error::{ApiError, Vendor};
use crate::prompt::{Key, digest};

/// The versions of Anthropic's API.
const VERSIONS: &[&str] = &["2023-01-01", "2023-06-01", "2026-10-21"];

/// Beta names that the API knows. Names not listed are refused with 400.
const BETAS: &[&str] = &[
    "advanced-tool-use-2025-11-20",
    "advisor-tool-2026-03-01",
    "cache-diagnosis-2026-04-07",
    "claude-code-20250219",
    "code-execution-2025-05-22",
    "code-execution-2025-08-25",
    "compact-2026-01-12",
    "compact-2026-09-04",
    "computer-use-2024-10-22",
    "computer-use-2025-01-24",
    "computer-use-2025-11-24",
    "context-1m-2025-08-07",
    "context-management-2025-06-27",
    "dangerous-tool-use-2026-09-03",
    "effort-2025-11-24",
    "extended-cache-ttl-2025-04-11",
    "fast-mode-2026-02-01",
    "files-api-2025-04-14",
    "fine-grained-tool-streaming-2025-05-14",
    "inline-tools-2026-09-15",
    "interleaved-thinking-2025-05-14",
    "mcp-client-2025-04-04",
    "mcp-client-2025-11-20",
    "message-threads-2026-08-12",
    "mid-conversation-output-config-2026-07-01",
    "mid-conversation-system-2026-04-07",
    "mid-conversation-system-clear-at-2026-08-21",
    "mid-conversation-tool-changes-2026-07-01",
    "model-context-window-exceeded-2025-08-26",
    "oauth-2025-04-20",
    "output-128k-2025-02-19",
    "output-300k-2026-03-24",
    "pdfs-2024-09-25",
    "per-turn-control-2026-07-01",
    "prompt-caching-2024-07-31",
    "prompt-caching-scope-2026-01-05",
    "server-side-fallback-2026-07-01",
    "skills-2025-10-02",
    "structured-outputs-2025-11-13",
    "task-budgets-2026-03-13",
    "thinking-binding-controls-2026-08-01",
    "thinking-display-updates-2026-08-18",
    "thinking-token-count-2026-05-13",
    "token-counting-2024-11-01",
    "token-efficient-tools-2025-02-19",
    "web-fetch-2025-09-10",
];

/// The credentials that the provider accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// Any that is not empty.
    #[default]
    Any,
    /// Only these.
    Only(Vec<String>),
}

/// The digest of the credential that a request brings.
pub(crate) fn credential(
    headers: &HeaderMap,
    vendor: Vendor,
    keys: &Keys,
) -> Result<Key, ApiError> {
    let bearer = header(headers, "authorization").and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then_some(token.trim())
    });
    let key = match vendor {
        Vendor::Anthropic => header(headers, "x-api-key").or(bearer),
        Vendor::OpenAi => bearer,
    };
    let Some(key) = key.map(str::trim).filter(|key| !key.is_empty()) else {
        return Err(match vendor {
            Vendor::Anthropic => ApiError::new(401, "x-api-key header is required"),
            Vendor::OpenAi => ApiError::new(
                401,
                "You didn't provide an API key. You need to provide your API key in an Authorization header using \
                 Bearer auth.",
            ),
        });
    };
    let is_known = match keys {
        Keys::Any => true,
        Keys::Only(known) => known.iter().any(|known| known == key),
    };
    if is_known {
        return Ok(digest(&[b"credential", key.as_bytes()]));
    }
    Err(match vendor {
        Vendor::Anthropic => ApiError::new(401, "invalid x-api-key"),
        Vendor::OpenAi => ApiError::new(401, "Incorrect API key provided.").code("invalid_api_key"),
    })
}

/// The version of Anthropic's API.
pub(crate) fn version(headers: &HeaderMap) -> Result<&str, ApiError> {
    match header(headers, "anthropic-version") {
        None => Err(ApiError::new(400, "anthropic-version: header is required")),
        Some(version) if VERSIONS.contains(&version) => Ok(version),
        Some(version) => Err(ApiError::new(
            400,
            format!("anthropic-version: \"{version}\" is not a valid version"),
        )),
    }
}

/// The betas that are switched on.
pub(crate) fn betas(headers: &HeaderMap) -> Result<Vec<&str>, ApiError> {
    let names: Vec<&str> = headers
        .get_all("anthropic-beta")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let unknown: Vec<String> = names
        .iter()
        .filter(|name| !BETAS.contains(name))
        .map(|name| format!("`{name}`"))
        .collect();
    if unknown.is_empty() {
        return Ok(names);
    }
    Err(ApiError::new(
        400,
        format!(
            "Unexpected value(s) {} for the `anthropic-beta` header. Please consult our documentation at \
             docs.anthropic.com or try again without the header.",
            unknown.join(", ")
        ),
    ))
}

pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}
