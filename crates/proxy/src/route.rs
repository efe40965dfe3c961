//! Where a request goes, by its path.

use http::{HeaderMap, Method, Uri};
use throughline_transcript::check::Profile;
use throughline_transcript::wire::Wire;

use crate::config::Upstreams;
use crate::headers;

/// Under this, requests are passed on as they are.
pub const PASS_PREFIX: &str = "/passthrough";

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It asks a model.
    Answer(Wire),
    /// It asks how many tokens a request has.
    Count(Wire),
    /// Anything else.
    Other,
}

impl Kind {
    /// Its name in logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Count(_) => "count",
            Self::Other => "other",
        }
    }
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// The format whose errors the client understands.
    pub(crate) wire: Wire,
    /// Base URL of the upstream, without `/v1` and without a slash at its end.
    pub(crate) base: String,
    /// The whole address.
    pub(crate) uri: Uri,
    /// Whether it is to be passed on as it is.
    pub(crate) is_passed: bool,
    /// What the upstream asks for beyond the provider's rules.
    pub(crate) profile: Profile,
}

/// The upstream of a request; `None` if there is none for its path.
pub(crate) fn target(
    upstreams: &Upstreams,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Option<Target> {
    let path = uri.path();
    let (path, is_passed) = match after_prefix(path, PASS_PREFIX) {
        Some(rest) => (rest, true),
        None => (path, headers::is_switched_off(headers)),
    };
    let route = upstreams
        .routes
        .iter()
        .filter_map(|route| Some((route, after_prefix(path, &route.prefix)?)))
        .max_by_key(|(route, _)| route.prefix.len());
    let (base, path) = match route {
        Some((route, rest)) => (Some(route.upstream.as_str()), rest),
        None => (None, path),
    };
    let known = known(method, path);
    let is_versioned = path == "/v1" || path.starts_with("/v1/");
    if !is_versioned && known.is_none() && base.is_none() {
        return None;
    }
    let is_anthropic = headers::is_anthropic(headers);
    let (kind, wire) = match known {
        Some(found) => found,
        None if is_anthropic => (Kind::Other, Wire::Anthropic),
        None => (Kind::Other, Wire::OpenAiChat),
    };
    let base = trimmed(base.unwrap_or(match wire {
        Wire::Anthropic => &upstreams.anthropic,
        Wire::OpenAiChat | Wire::OpenAiResponses => &upstreams.openai,
    }));
    let profile = match (route, wire) {
        (Some((route, _)), _) => route.profile,
        (None, Wire::Anthropic) => Profile::Provider,
        (None, Wire::OpenAiChat | Wire::OpenAiResponses) => upstreams.openai_profile,
    };
    let version = if is_versioned { "" } else { "/v1" };
    let query = uri
        .query()
        .map_or_else(String::new, |query| format!("?{query}"));
    let uri = format!("{base}{version}{path}{query}").parse().ok()?;
    Some(Target {
        kind,
        wire,
        base: base.to_owned(),
        uri,
        is_passed,
        profile,
    })
}

/// What is asked at the paths of the APIs.
fn known(method: &Method, path: &str) -> Option<(Kind, Wire)> {
    let endpoint = path.strip_prefix("/v1").unwrap_or(path);
    let endpoint = endpoint.strip_suffix('/').unwrap_or(endpoint);
    let (kind, wire) = match endpoint {
        "/messages" => (Kind::Answer(Wire::Anthropic), Wire::Anthropic),
        "/messages/count_tokens" => (Kind::Count(Wire::Anthropic), Wire::Anthropic),
        "/chat/completions" => (Kind::Answer(Wire::OpenAiChat), Wire::OpenAiChat),
        "/responses" => (Kind::Answer(Wire::OpenAiResponses), Wire::OpenAiResponses),
        "/responses/input_tokens" => (Kind::Count(Wire::OpenAiResponses), Wire::OpenAiResponses),
        "/responses/compact" => (Kind::Other, Wire::OpenAiResponses),
        _ => return None,
    };
    Some(if method == Method::POST {
        (kind, wire)
    } else {
        (Kind::Other, wire)
    })
}

fn after_prefix<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(prefix.trim_end_matches('/'))?;
    (rest.starts_with('/')).then_some(rest)
}

fn trimmed(base: &str) -> &str {
    let base = base.trim_end_matches('/');
    base.strip_suffix("/v1").unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::config::Route;

    #[track_caller]
    fn check(
        method: &Method,
        path: &str,
        is_anthropic: bool,
        expected: Option<(Kind, &str, bool)>,
    ) {
        let upstreams = Upstreams {
            anthropic: "https://a.example/".to_owned(),
            openai: "https://o.example/api/v1".to_owned(),
            openai_profile: Profile::Provider,
            routes: vec![Route {
                prefix: "/groq".to_owned(),
                upstream: "https://g.example/openai/v1/".to_owned(),
                profile: Profile::Provider,
            }],
        };
        let mut headers = HeaderMap::new();
        if is_anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        let found = target(&upstreams, method, &path.parse().unwrap(), &headers);
        let found = found.map(|target| (target.kind, target.uri.to_string(), target.is_passed));
        let expected = expected.map(|(kind, uri, passed)| (kind, uri.to_owned(), passed));
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn requests_go_where_their_path_says() {
        let (post, get) = (&Method::POST, &Method::GET);
        let anthropic = Kind::Answer(Wire::Anthropic);
        let chat = Kind::Answer(Wire::OpenAiChat);
        let responses = Kind::Answer(Wire::OpenAiResponses);
        for (method, path, is_anthropic, expected) in [
            (
                post,
                "/v1/messages",
                false,
                Some((anthropic, "https://a.example/v1/messages", false)),
            ),
            (
                post,
                "/v1/messages?beta=true",
                true,
                Some((anthropic, "https://a.example/v1/messages?beta=true", false)),
            ),
            (
                post,
                "/v1/messages/count_tokens",
                true,
                Some((
                    Kind::Count(Wire::Anthropic),
                    "https://a.example/v1/messages/count_tokens",
                    false,
                )),
            ),
            (
                post,
                "/v1/responses/input_tokens",
                false,
                Some((
                    Kind::Count(Wire::OpenAiResponses),
                    "https://o.example/api/v1/responses/input_tokens",
                    false,
                )),
            ),
            (
                post,
                "/v1/messages/batches",
                true,
                Some((Kind::Other, "https://a.example/v1/messages/batches", false)),
            ),
            (
                post,
                "/v1/chat/completions",
                false,
                Some((chat, "https://o.example/api/v1/chat/completions", false)),
            ),
            (
                post,
                "/chat/completions",
                false,
                Some((chat, "https://o.example/api/v1/chat/completions", false)),
            ),
            (
                post,
                "/v1/responses",
                false,
                Some((responses, "https://o.example/api/v1/responses", false)),
            ),
            (
                get,
                "/v1/responses/resp_1",
                false,
                Some((
                    Kind::Other,
                    "https://o.example/api/v1/responses/resp_1",
                    false,
                )),
            ),
            (
                post,
                "/v1/responses/compact",
                false,
                Some((
                    Kind::Other,
                    "https://o.example/api/v1/responses/compact",
                    false,
                )),
            ),
            (
                get,
                "/v1/models",
                false,
                Some((Kind::Other, "https://o.example/api/v1/models", false)),
            ),
            (
                get,
                "/v1/models",
                true,
                Some((Kind::Other, "https://a.example/v1/models", false)),
            ),
            (
                get,
                "/v1/messages",
                true,
                Some((Kind::Other, "https://a.example/v1/messages", false)),
            ),
            (
                post,
                "/groq/v1/chat/completions",
                false,
                Some((chat, "https://g.example/openai/v1/chat/completions", false)),
            ),
            (
                post,
                "/passthrough/v1/messages",
                true,
                Some((anthropic, "https://a.example/v1/messages", true)),
            ),
            (
                post,
                "/passthrough/groq/chat/completions",
                false,
                Some((chat, "https://g.example/openai/v1/chat/completions", true)),
            ),
            (get, "/", false, None),
            (get, "/v1x", false, None),
            (get, "/favicon.ico", false, None),
        ] {
            check(method, path, is_anthropic, expected);
        }
    }
}
