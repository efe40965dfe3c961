//! Headers: which pass, who sends them, which session they name.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use throughline_providers::credential::{AuthStyle, Credential};

use crate::config::Tenants;

/// The client's name for the session.
pub const SESSION: &str = "x-throughline-session";
/// `off` switches the proxy off for the request.
pub const SWITCH: &str = "x-throughline";
/// Session ids that clients send unasked: many conversations of one run may share one.
const CLIENT_SESSIONS: [&str; 3] = ["x-claude-code-session-id", "session-id", "session_id"];
/// Clients of Anthropic's API name its version in this.
const ANTHROPIC_VERSION: &str = "anthropic-version";
/// Everything that begins with this is between the client and the proxy.
const OURS: &str = "x-throughline";

/// Headers that belong to one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// Who a request belongs to: a one-way digest of its credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tenant([u8; 8]);

impl Tenant {
    /// The tenant of a request.
    pub(crate) fn of(headers: &HeaderMap, tenants: Tenants) -> Self {
        if tenants == Tenants::One {
            return Self([0; 8]);
        }
        let mut hasher = blake3::Hasher::new_derive_key("throughline 2026 tenant of a credential");
        for name in [header::AUTHORIZATION.as_str(), "x-api-key", "api-key"] {
            for value in headers.get_all(name) {
                // The same key counts as the same, however it is sent.
                let value = value.as_bytes();
                let key = value
                    .strip_prefix(b"Bearer ")
                    .or_else(|| value.strip_prefix(b"bearer "))
                    .unwrap_or(value);
                hasher.update(key);
                hasher.update(&[0]);
            }
        }
        let mut id = [0; 8];
        hasher.finalize_xof().fill(&mut id);
        Self(id)
    }

    /// The tenant whose text of 16 characters this is.
    pub(crate) fn from_hex(hex: &str) -> Option<Self> {
        let mut id = [0; 8];
        if hex.len() != 16 || !hex.is_ascii() {
            return None;
        }
        for (byte, at) in id.iter_mut().zip((0..16).step_by(2)) {
            *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(id))
    }

    /// As text of 16 characters.
    pub(crate) fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether the client wants the request passed on as it is.
pub(crate) fn is_switched_off(headers: &HeaderMap) -> bool {
    headers
        .get(SWITCH)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"off"))
}

/// The session that the client names for the proxy, if it is a name that can be one.
pub(crate) fn named_session(headers: &HeaderMap) -> Option<&str> {
    let name = headers.get(SESSION)?.to_str().ok()?;
    let is_name = (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_name.then_some(name)
}

/// The session id that some clients send with each request.
pub(crate) fn client_session(headers: &HeaderMap) -> Option<&str> {
    CLIENT_SESSIONS
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .filter(|id| !id.is_empty() && id.len() <= 128)
}

/// The headers of a request as they go upstream.
pub(crate) fn upstream(headers: &HeaderMap) -> HeaderMap {
    let mut out = passed(headers);
    out.remove(header::HOST);
    out.remove(header::CONTENT_LENGTH);
    out.remove(header::EXPECT);
    out
}

/// The headers of an answer as they go to the client.
pub(crate) fn downstream(headers: &HeaderMap) -> HeaderMap {
    passed(headers)
}

fn passed(headers: &HeaderMap) -> HeaderMap {
    let mut out = headers.clone();
    // What the connection header names belongs to the connection too.
    for value in headers.get_all(header::CONNECTION) {
        let Ok(value) = value.to_str() else { continue };
        for name in value.split(',') {
            if let Ok(name) = HeaderName::try_from(name.trim()) {
                out.remove(name);
            }
        }
    }
    for name in &HOP_BY_HOP {
        out.remove(name);
    }
    let ours: Vec<HeaderName> = out
        .keys()
        .filter(|name| name.as_str().starts_with(OURS))
        .cloned()
        .collect();
    for name in ours {
        out.remove(name);
    }
    out
}

/// Keeps only the encodings that the client accepts and the proxy can read.
pub(crate) fn narrow_encodings(headers: &mut HeaderMap) {
    let readable = |value: &HeaderValue| -> Vec<&'static str> {
        let Ok(value) = value.to_str() else {
            return Vec::new();
        };
        value
            .split(',')
            .filter_map(|coding| {
                let mut parts = coding.split(';');
                let name = parts.next()?.trim();
                let is_refused = parts
                    .any(|weight| matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
                (!is_refused).then_some(())?;
                ["gzip", "deflate"].into_iter().find(|known| *known == name)
            })
            .collect()
    };
    let kept: Vec<&str> = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .flat_map(readable)
        .collect();
    let value = if kept.is_empty() {
        "identity".to_owned()
    } else {
        kept.join(", ")
    };
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(header::ACCEPT_ENCODING, value);
    }
}

/// Whether the client asks for a web socket.
pub(crate) fn wants_web_socket(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::UPGRADE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|protocol| protocol.trim().eq_ignore_ascii_case("websocket"))
}

/// Whether the client speaks Anthropic's API: for paths that both have.
pub(crate) fn is_anthropic(headers: &HeaderMap) -> bool {
    headers.contains_key(ANTHROPIC_VERSION) || headers.contains_key("x-api-key")
}

/// The version of Anthropic's API that a request asks for.
pub(crate) fn anthropic_version(headers: &HeaderMap) -> Option<&str> {
    headers.get(ANTHROPIC_VERSION)?.to_str().ok()
}

/// The features of Anthropic's API in beta that a request asks for.
pub(crate) fn betas(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all("anthropic-beta")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

/// The length of a body as its sender announces it, bytes.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// The credential of a request, and how it is sent.
pub(crate) fn credential(headers: &HeaderMap) -> Option<(Credential, AuthStyle)> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let (key, style) = match text("x-api-key") {
        Some(key) => (key, AuthStyle::XApiKey),
        None => {
            let value = text("authorization")?;
            let key = value
                .strip_prefix("Bearer ")
                .or_else(|| value.strip_prefix("bearer "))?;
            (key, AuthStyle::Bearer)
        }
    };
    Some((Credential::new(key).ok()?, style))
}

/// The other headers that name the account and the version of the provider's API.
pub(crate) fn of_account(headers: &HeaderMap) -> impl Iterator<Item = (&'static str, String)> {
    const NAMES: [&str; 7] = [
        ANTHROPIC_VERSION,
        "anthropic-beta",
        "anthropic-workspace-id",
        "anthropic-user-profile-id",
        "openai-organization",
        "openai-project",
        "openai-beta",
    ];
    NAMES.into_iter().filter_map(|name| {
        let values: Vec<&str> = headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        (!values.is_empty()).then(|| (name, values.join(",")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::try_from(*name).unwrap(),
                    HeaderValue::try_from(*value).unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn what_belongs_to_a_connection_does_not_pass() {
        let sent = headers(&[
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("host", "here"),
            ("content-length", "3"),
            ("x-throughline", "off"),
            ("x-throughline-session", "s"),
            ("authorization", "Bearer k"),
            ("anthropic-beta", "a"),
            ("anthropic-beta", "b"),
            ("x-stainless-lang", "js"),
        ]);
        let mut names: Vec<String> = upstream(&sent)
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "anthropic-beta=a",
                "anthropic-beta=b",
                "authorization=Bearer k",
                "x-stainless-lang=js"
            ]
        );
    }

    #[test]
    fn tenants_are_told_apart_by_their_keys() {
        let tenant = |pairs: &[(&str, &str)]| Tenant::of(&headers(pairs), Tenants::ByCredential);
        let key = tenant(&[("x-api-key", "k1")]);
        assert_eq!(key, tenant(&[("authorization", "Bearer k1")]));
        assert_ne!(key, tenant(&[("x-api-key", "k2")]));
        assert_ne!(key, tenant(&[]));
        assert_ne!(
            key,
            tenant(&[("x-api-key", "k1"), ("authorization", "Bearer k2")])
        );
        assert!(!key.hex().contains("k1"));
        assert_eq!(
            Tenant::of(&headers(&[("x-api-key", "k1")]), Tenants::One),
            Tenant::of(&headers(&[]), Tenants::One)
        );
    }

    #[test]
    fn sessions_are_named_by_names() {
        for (value, expected) in [
            ("my-session_1", true),
            ("", false),
            ("../x", false),
            ("a b", false),
            (&"x".repeat(65), false),
        ] {
            let named = headers(&[(SESSION, value)]);
            assert_eq!(named_session(&named).is_some(), expected, "{value}");
        }
    }

    #[test]
    fn a_web_socket_is_known_by_the_protocol_that_is_wanted() {
        for (value, expected) in [
            ("websocket", true),
            ("h2c, WebSocket", true),
            ("h2c", false),
            ("websockets", false),
        ] {
            let wants = wants_web_socket(&headers(&[("upgrade", value)]));
            assert_eq!(wants, expected, "{value}");
        }
        assert!(!wants_web_socket(&HeaderMap::new()));
    }

    #[test]
    fn only_encodings_that_can_be_read_are_asked_for() {
        for (sent, expected) in [
            (Some("gzip, deflate, br, zstd"), "gzip, deflate"),
            (Some("br"), "identity"),
            (Some("gzip;q=0, deflate;q=0.5"), "deflate"),
            (Some("*"), "identity"),
            (None, "identity"),
        ] {
            let mut all = match sent {
                Some(sent) => headers(&[("accept-encoding", sent)]),
                None => HeaderMap::new(),
            };
            narrow_encodings(&mut all);
            assert_eq!(all["accept-encoding"], expected);
        }
    }
}
