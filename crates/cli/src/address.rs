//! Addresses of providers: what may be one, and what it must not contain.

use http::Uri;

/// Why requests cannot go to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There may be a user and a password in it.
    User,
    /// There may be a key behind it.
    Query,
    /// It is no address of the web.
    NoAddress,
}

/// What is wrong with an address, if anything is.
pub(crate) fn fault(base_url: &str) -> Option<Fault> {
    let text = base_url.trim();
    let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next();
    if authority.is_some_and(|authority| authority.contains('@')) {
        return Some(Fault::User);
    }
    if text.contains(['?', '#']) {
        return Some(Fault::Query);
    }
    let uri: Option<Uri> = text.parse().ok();
    let is_address = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.authority().is_some_and(|authority| {
                // A port that is none would be passed over in silence.
                let has_port = authority.as_str().len() > authority.host().len();
                authority.port_u16().is_some() == has_port
            })
    });
    (!is_address).then_some(Fault::NoAddress)
}

/// Checks that requests can be sent there. Errors do not contain the address: there may be a key in it, and errors
/// are shown to others.
pub(crate) fn check(base_url: &str) -> Result<(), String> {
    let said = match fault(base_url) {
        None => return Ok(()),
        Some(Fault::User) => {
            "an address has no user and no password in it: `credential` says where the key is"
        }
        Some(Fault::Query) => "an address ends before ? and #: `credential` says where the key is",
        Some(Fault::NoAddress) => {
            "give an address in ASCII that begins with http:// or https://, such as http://127.0.0.1:8080"
        }
    };
    Err(said.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_the_web_and_have_no_keys_in_them() {
        let check = |url: &str, expected: Option<&str>| match (check(url), expected) {
            (Ok(()), None) => {}
            (Err(said), Some(part)) => {
                assert!(said.contains(part), "{url}: {said}");
                assert!(!said.contains("hunter2"), "{url}: {said}");
            }
            (found, _) => panic!("{url}: {found:?}"),
        };
        check("http://127.0.0.1:8080", None);
        check("https://api.example.com/v1", None);
        check("http://[::1]:8000/v1/", None);
        check("http://LOCALHOST:11434", None);
        for none in [
            "nonsense",
            "https://bücher.example",
            "127.0.0.1:8080",
            "ftp://example.com",
            "http://",
            "http:///v1",
            "file:///etc/passwd",
            "https://example.com:99999/v1",
            "http://two words/",
        ] {
            check(none, Some("begins with http:// or https://"));
        }
        check("https://me:hunter2@example.com/v1", Some("no password"));
        check("https://hunter2@example.com", Some("no user"));
        check("https://example.com/v1?key=hunter2", Some("`credential`"));
        check("https://example.com/v1#hunter2", Some("`credential`"));
        // Behind the slash it is part of a path.
        check("https://example.com/@me/v1", None);
    }
}
