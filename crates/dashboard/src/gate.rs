//! Access control.
//!
//! With a token, a request must present it: in a header, or through the cookie that signing in sets. Without one, the
//! `Host` header must be an address of this machine, so that a web page cannot reach the proxy under a name that
//! resolves to it (DNS rebinding). Requests that change something must not come from another site.

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request};
use std::net::IpAddr;
use throughline_providers::credential::Credential;

/// Name of the cookie.
const COOKIE_NAME: &str = "throughline";
/// How long a browser stays signed in, seconds.
pub(crate) const SIGNED_IN_S: i64 = 12 * 60 * 60;
/// Contexts of key derivation: neither key reveals the other.
const TOKEN_CONTEXT: &str = "throughline 2026 admin token, compared";
const COOKIE_CONTEXT: &str = "throughline 2026 admin token, key of cookies";

/// Decides which requests are answered. The token cannot be recovered from it.
pub(crate) struct Gate(Option<Keys>);

struct Keys {
    token: blake3::Hash,
    cookies: [u8; 32],
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("a token is needed: Authorization: Bearer TOKEN")]
    NoToken,
    #[error(
        "without a token, only addresses of this machine are answered, such as 127.0.0.1 or localhost"
    )]
    OtherHost,
    #[error("requests from other sites change nothing here")]
    OtherSite,
    #[error("the request is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the request body ended early")]
    Broken,
}

impl Refusal {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::OtherHost | Self::OtherSite => StatusCode::FORBIDDEN,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::NoToken => "no-token",
            Self::OtherHost => "other-host",
            Self::OtherSite => "other-site",
            Self::TooLarge { .. } => "too-large",
            Self::Broken => "broken-body",
        }
    }
}

impl Gate {
    pub(crate) fn new(token: Option<&Credential>) -> Self {
        Self(token.map(|token| Keys {
            token: digest(token.expose()),
            cookies: blake3::derive_key(COOKIE_CONTEXT, token.expose().as_bytes()),
        }))
    }

    /// Whether there is a token.
    pub(crate) fn has_token(&self) -> bool {
        self.0.is_some()
    }

    /// Checks that the request is addressed to this machine and does not come from another site.
    pub(crate) fn check_site(&self, head: &request::Parts) -> Result<(), Refusal> {
        let host = host(head);
        if self.0.is_none() && !host.is_some_and(is_of_this_machine) {
            return Err(Refusal::OtherHost);
        }
        if matches!(head.method, Method::GET | Method::HEAD) {
            return Ok(());
        }
        let site = head
            .headers
            .get("sec-fetch-site")
            .map(HeaderValue::as_bytes);
        if !matches!(site, None | Some(b"same-origin" | b"none")) {
            return Err(Refusal::OtherSite);
        }
        let mut origins = head.headers.get_all(ORIGIN).iter();
        let is_same = origins.all(|origin| {
            let origin = origin.to_str().unwrap_or_default();
            let named = origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"));
            named.is_some() && named == host
        });
        if is_same {
            Ok(())
        } else {
            Err(Refusal::OtherSite)
        }
    }

    /// Checks that the request presents the token.
    pub(crate) fn check_token(&self, head: &request::Parts, now_ms: i64) -> Result<(), Refusal> {
        let Some(keys) = &self.0 else {
            return Ok(());
        };
        let bearer = bearer(&head.headers).is_some_and(|token| self.is_token(token));
        if bearer || cookies(&head.headers).any(|cookie| keys.is_signed_in(cookie, now_ms)) {
            return Ok(());
        }
        Err(Refusal::NoToken)
    }

    /// Whether this is the token, compared in constant time.
    pub(crate) fn is_token(&self, token: &str) -> bool {
        self.0
            .as_ref()
            .is_some_and(|keys| keys.token == digest(token.trim()))
    }

    /// The value of `Set-Cookie` that signs a browser in.
    pub(crate) fn sign_in_cookie(&self, head: &request::Parts, now_ms: i64) -> Option<HeaderValue> {
        let keys = self.0.as_ref()?;
        let until_s = now_ms / 1000 + SIGNED_IN_S;
        let value = format!("{until_s}.{}", keys.mac(until_s).to_hex());
        set_cookie(head, &value, SIGNED_IN_S)
    }
}

/// The value of `Set-Cookie` that signs a browser out.
pub(crate) fn sign_out_cookie(head: &request::Parts) -> Option<HeaderValue> {
    set_cookie(head, "", 0)
}

/// Tells clients how to present the token.
pub(crate) fn challenge(answer: &mut Response<Bytes>) {
    if answer.status() == StatusCode::UNAUTHORIZED {
        let value = HeaderValue::from_static("Bearer realm=\"throughline\"");
        answer.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
}

impl Keys {
    fn mac(&self, until_s: i64) -> blake3::Hash {
        blake3::keyed_hash(&self.cookies, &until_s.to_le_bytes())
    }

    fn is_signed_in(&self, cookie: &str, now_ms: i64) -> bool {
        let Some((until, mac)) = cookie.split_once('.') else {
            return false;
        };
        let (Ok(until_s), Ok(mac)) = (until.parse::<i64>(), blake3::Hash::from_hex(mac)) else {
            return false;
        };
        // Hashes are compared in constant time.
        mac == self.mac(until_s) && now_ms / 1000 < until_s
    }
}

fn digest(token: &str) -> blake3::Hash {
    blake3::Hash::from(blake3::derive_key(TOKEN_CONTEXT, token.as_bytes()))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|cookie| cookie.trim().strip_prefix(COOKIE_NAME)?.strip_prefix('='))
}

fn set_cookie(head: &request::Parts, value: &str, seconds: i64) -> Option<HeaderValue> {
    let forwarded = HeaderName::from_static("x-forwarded-proto");
    let is_tls = head.headers.get(forwarded).is_some_and(|it| it == "https");
    let secure = if is_tls { "; Secure" } else { "" };
    HeaderValue::try_from(format!(
        "{COOKIE_NAME}={value}; Path=/throughline; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    ))
    .ok()
}

/// The requested host, with its port.
fn host(head: &request::Parts) -> Option<&str> {
    match head.headers.get(HOST) {
        Some(host) => host.to_str().ok(),
        None => head.uri.authority().map(http::uri::Authority::as_str),
    }
}

fn is_of_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(method: &Method, headers: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::builder().method(method).uri("/throughline");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn with_token() -> Gate {
        Gate::new(Some(&Credential::new("a-long-word").unwrap()))
    }

    #[test]
    fn without_a_token_only_addresses_of_this_machine_are_answered() {
        let check = |host: &str, is_answered: bool| {
            let head = head(&Method::GET, &[("host", host)]);
            let open = Gate::new(None).check_site(&head);
            assert_eq!(open.is_ok(), is_answered, "{host}");
            assert!(with_token().check_site(&head).is_ok());
        };
        for host in [
            "127.0.0.1:8787",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8787",
            "127.8.9.1",
        ] {
            check(host, true);
        }
        for host in [
            "evil.example:8787",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1:8787",
            "[::2]",
            "",
            "0.0.0.0",
        ] {
            check(host, false);
        }
        let none = head(&Method::GET, &[]);
        assert_eq!(Gate::new(None).check_site(&none), Err(Refusal::OtherHost));
    }

    #[test]
    fn other_sites_change_nothing() {
        let check = |headers: &[(&str, &str)], is_answered: bool| {
            let mut headers = headers.to_vec();
            headers.push(("host", "127.0.0.1:8787"));
            for gate in [Gate::new(None), with_token()] {
                let answered = gate.check_site(&head(&Method::POST, &headers));
                assert_eq!(answered.is_ok(), is_answered, "{headers:?}");
                // Reading is guarded by what browsers let other sites see.
                assert!(gate.check_site(&head(&Method::GET, &headers)).is_ok());
            }
        };
        check(&[], true);
        check(&[("origin", "http://127.0.0.1:8787")], true);
        check(&[("sec-fetch-site", "same-origin")], true);
        check(&[("origin", "http://127.0.0.1:8788")], false);
        check(&[("origin", "http://evil.example")], false);
        check(&[("origin", "null")], false);
        check(&[("sec-fetch-site", "cross-site")], false);
        check(&[("sec-fetch-site", "same-site")], false);
        check(
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://evil.example"),
            ],
            false,
        );
    }

    #[test]
    fn the_token_or_a_cookie_opens() {
        let gate = with_token();
        let admits = |name: &str, value: &str, now_ms: i64| {
            gate.check_token(&head(&Method::GET, &[(name, value)]), now_ms)
                .is_ok()
        };
        assert!(admits("authorization", "Bearer a-long-word", 0));
        assert!(admits("authorization", "bearer a-long-word", 0));
        for wrong in [
            "Bearer a-long-wor",
            "Bearer ",
            "a-long-word",
            "Basic a-long-word",
        ] {
            assert!(!admits("authorization", wrong, 0), "{wrong}");
        }
        let set = gate
            .sign_in_cookie(&head(&Method::POST, &[]), 5_000)
            .unwrap();
        let set = set.to_str().unwrap();
        assert!(
            set.ends_with("; Path=/throughline; Max-Age=43200; HttpOnly; SameSite=Strict"),
            "{set}"
        );
        let cookie = set.split(';').next().unwrap();
        assert!(admits("cookie", &format!("other=1; {cookie}"), 5_000));
        let end_ms = 5_000 + SIGNED_IN_S * 1000;
        assert!(admits("cookie", cookie, end_ms - 1_000));
        assert!(!admits("cookie", cookie, end_ms));
        // A later end is another value.
        let later = cookie.replacen("throughline=4", "throughline=5", 1);
        assert_ne!(later, cookie);
        assert!(!admits("cookie", &later, 5_000));
        let other = Gate::new(Some(&Credential::new("another-word").unwrap()));
        assert!(
            other
                .check_token(&head(&Method::GET, &[("cookie", cookie)]), 5_000)
                .is_err()
        );
    }
}
