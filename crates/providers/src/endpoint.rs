//! The addresses of a provider, from a base URL as users write it.

use http::Uri;
use http::uri::Scheme;
use throughline_transcript::wire::Wire;

/// Why a base URL cannot be used. The URL itself stays out: it may hold a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// Not a URL with a host.
    #[error("the base URL is not a URL such as https://api.example.com/v1")]
    Invalid,
    /// Neither `http` nor `https`.
    #[error("the base URL must begin with http:// or https://")]
    Scheme,
    /// `user:password@` in it.
    #[error("the base URL holds a credential: give it as a credential instead")]
    HasCredential,
    /// A `?` in it.
    #[error("the base URL must have no query")]
    HasQuery,
}

/// A parsed base URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Scheme, host and port.
    origin: String,
    /// Path up to the version, without slash at the end.
    root: String,
    /// The version and what follows it, without slashes at the ends.
    version: String,
}

impl Endpoint {
    /// Takes a base URL with or without `/v1` at its end.
    ///
    /// A path that names another version (`/v1beta/openai`, `/api/v4`) is taken as it is.
    pub(crate) fn parse(base_url: &str) -> Result<Self, BaseUrlError> {
        let uri: Uri = base_url.trim().parse().map_err(|_| BaseUrlError::Invalid)?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(BaseUrlError::Invalid);
        };
        if *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS {
            return Err(BaseUrlError::Scheme);
        }
        if authority.as_str().contains('@') {
            return Err(BaseUrlError::HasCredential);
        }
        if uri.query().is_some() {
            return Err(BaseUrlError::HasQuery);
        }
        let path = uri.path().trim_end_matches('/');
        let versioned = path
            .match_indices('/')
            .map(|(at, _)| at)
            .find(|at| is_version(path[at + 1..].split('/').next().unwrap_or_default()));
        let (root, version) = match versioned {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (path, "v1"),
        };
        Ok(Self {
            origin: format!("{scheme}://{authority}"),
            root: root.to_owned(),
            version: version.to_owned(),
        })
    }

    /// The address of `path` below the version.
    pub(crate) fn versioned(&self, path: &str) -> String {
        format!("{}{}/{}/{path}", self.origin, self.root, self.version)
    }

    /// The address of `path` next to the version.
    pub(crate) fn unversioned(&self, path: &str) -> String {
        format!("{}{}/{path}", self.origin, self.root)
    }

    /// The address for answers.
    pub(crate) fn answers(&self, wire: Wire) -> String {
        self.versioned(match wire {
            Wire::Anthropic => "messages",
            Wire::OpenAiChat => "chat/completions",
            Wire::OpenAiResponses => "responses",
        })
    }

    /// The address for token counts, if the wire has one.
    pub(crate) fn counts(&self, wire: Wire) -> Option<String> {
        match wire {
            Wire::Anthropic => Some(self.versioned("messages/count_tokens")),
            Wire::OpenAiChat => None,
            Wire::OpenAiResponses => Some(self.versioned("responses/input_tokens")),
        }
    }
}

/// `v1`, `v4`, `v1beta`.
fn is_version(segment: &str) -> bool {
    let mut chars = segment.chars();
    chars.next() == Some('v')
        && chars.next().is_some_and(|c| c.is_ascii_digit())
        && chars.all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_taken_as_people_write_them() {
        let check = |base_url: &str, wire, expected: &str| {
            let endpoint = Endpoint::parse(base_url).unwrap();
            assert_eq!(endpoint.answers(wire), expected, "{base_url}");
        };
        use Wire::{Anthropic, OpenAiChat, OpenAiResponses};
        for base_url in [
            "https://api.anthropic.com",
            "https://api.anthropic.com/",
            "https://api.anthropic.com/v1",
            "https://api.anthropic.com/v1/",
        ] {
            check(base_url, Anthropic, "https://api.anthropic.com/v1/messages");
        }
        check(
            "http://127.0.0.1:11434",
            OpenAiChat,
            "http://127.0.0.1:11434/v1/chat/completions",
        );
        check(
            " http://[::1]:8080/v1/ ",
            OpenAiResponses,
            "http://[::1]:8080/v1/responses",
        );
        check(
            "https://openrouter.ai/api/v1",
            OpenAiChat,
            "https://openrouter.ai/api/v1/chat/completions",
        );
        check(
            "https://router.example/anthropic",
            Anthropic,
            "https://router.example/anthropic/v1/messages",
        );
        check(
            "https://models.example/v1beta/openai/",
            OpenAiChat,
            "https://models.example/v1beta/openai/chat/completions",
        );
        check(
            "https://vendor.example/vault",
            OpenAiChat,
            "https://vendor.example/vault/v1/chat/completions",
        );
        let llama = Endpoint::parse("http://127.0.0.1:8080/v1").unwrap();
        assert_eq!(llama.unversioned("props"), "http://127.0.0.1:8080/props");
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for (base_url, expected) in [
            ("", BaseUrlError::Invalid),
            ("api.anthropic.com", BaseUrlError::Invalid),
            ("/v1", BaseUrlError::Invalid),
            ("ftp://host", BaseUrlError::Scheme),
            ("https://me:secret@host/v1", BaseUrlError::HasCredential),
            ("https://host/v1?key=1", BaseUrlError::HasQuery),
        ] {
            assert_eq!(Endpoint::parse(base_url), Err(expected), "{base_url}");
        }
    }
}
