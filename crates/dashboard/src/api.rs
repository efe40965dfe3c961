//! The admin API: the same as the dashboard, as JSON. `openapi.json` describes it.

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderValue, Method, Response, StatusCode, request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use throughline_engine::{Mode, Swapping};
use throughline_store::{ErrorKind, Page, SessionId, StoreError};

use crate::Dashboard;
use crate::act::{ActError, Action, Effect};
use crate::edit::Change;
use crate::form::Fields;
use crate::gate::{self, Refusal};
use crate::messages::Extent;
use crate::text;

/// Rows that are given where nobody says how many.
const ROWS: u64 = 50;
/// Rows that are given at most.
const ROWS_MAX: u64 = 500;

/// Something that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Document,
    Status,
    Sessions,
    Session,
    Delete,
    Configure,
    Timeline,
    Messages,
    Message,
    Memories,
    Memory,
    Diff,
    Preview,
    Edit,
    Compact,
    Approve,
    Undo,
    Pin,
    Unpin,
    Search,
}

/// All routes, with the names of what stands between slashes.
const ROUTES: [(&str, &str, Endpoint); 20] = [
    ("GET", "/openapi.json", Endpoint::Document),
    ("GET", "/status", Endpoint::Status),
    ("GET", "/sessions", Endpoint::Sessions),
    ("GET", "/sessions/{id}", Endpoint::Session),
    ("DELETE", "/sessions/{id}", Endpoint::Delete),
    ("PATCH", "/sessions/{id}", Endpoint::Configure),
    ("GET", "/sessions/{id}/timeline", Endpoint::Timeline),
    ("GET", "/sessions/{id}/messages", Endpoint::Messages),
    (
        "GET",
        "/sessions/{id}/messages/{position}",
        Endpoint::Message,
    ),
    ("GET", "/sessions/{id}/memories", Endpoint::Memories),
    ("GET", "/sessions/{id}/memories/{version}", Endpoint::Memory),
    (
        "GET",
        "/sessions/{id}/memories/{version}/diff",
        Endpoint::Diff,
    ),
    ("GET", "/sessions/{id}/preview", Endpoint::Preview),
    ("PUT", "/sessions/{id}/memory", Endpoint::Edit),
    ("POST", "/sessions/{id}/compact", Endpoint::Compact),
    ("POST", "/sessions/{id}/approve", Endpoint::Approve),
    ("POST", "/sessions/{id}/undo", Endpoint::Undo),
    ("POST", "/sessions/{id}/pins", Endpoint::Pin),
    ("DELETE", "/sessions/{id}/pins/{pin}", Endpoint::Unpin),
    ("GET", "/search", Endpoint::Search),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compacting {
    #[serde(default)]
    focus: Option<String>,
    /// Whether it is only prepared.
    #[serde(default)]
    preview: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approving {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pinning {
    text: String,
    #[serde(default)]
    message: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Editing {
    version: u32,
    changes: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuring {
    mode: String,
}

/// The names in a path, in order.
type Names<'a> = Vec<&'a str>;

impl Dashboard {
    /// The answer to a request whose path goes on like this.
    pub(crate) async fn api(
        &self,
        path: &str,
        head: &request::Parts,
        body: &Bytes,
    ) -> Response<Bytes> {
        let method = if head.method == Method::HEAD {
            &Method::GET
        } else {
            &head.method
        };
        let (endpoint, names) = match route(method, path) {
            Ok(found) => found,
            Err(allowed) if allowed.is_empty() => {
                return problem(
                    StatusCode::NOT_FOUND,
                    "no-route",
                    "there is nothing at this path",
                );
            }
            Err(allowed) => {
                let mut answer = problem(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "method",
                    "this cannot be done here",
                );
                if let Ok(allowed) = HeaderValue::try_from(allowed.join(", ")) {
                    answer.headers_mut().insert(ALLOW, allowed);
                }
                return answer;
            }
        };
        let query = Fields::read(head.uri.query().unwrap_or_default().as_bytes());
        match self.endpoint(endpoint, &names, &query, body).await {
            Ok((status, value)) => answer(status, &value),
            Err(error) => problem(error.status(), error.code(), &error.to_string()),
        }
    }

    async fn endpoint(
        &self,
        endpoint: Endpoint,
        names: &Names<'_>,
        query: &Fields,
        body: &Bytes,
    ) -> Result<(StatusCode, Value), ActError> {
        let name = |at: usize| names.get(at).copied().unwrap_or_default();
        let id = || SessionId::new(name(0)).map_err(|_| ActError::NoSession);
        let number = |at: usize| name(at).parse::<u64>().map_err(|_| ActError::NoSession);
        let page = Page {
            skip: query.number("skip").unwrap_or(0),
            limit: limit(query),
        };
        let found = match endpoint {
            Endpoint::Document => {
                serde_json::from_str(include_str!("openapi.json")).map_err(|_| ActError::Store)?
            }
            Endpoint::Status => self.status_value(),
            Endpoint::Sessions => json!({ "sessions": self.sessions_view(page).await? }),
            Endpoint::Session => {
                let info = self.info(&id()?).await?;
                let mut value = value(&self.session_view(&info).await?);
                value["detail"] = self::value(&self.detail(&info.id).await?);
                value
            }
            Endpoint::Timeline => value(&self.timeline(&self.info(&id()?).await?).await?),
            Endpoint::Messages => {
                let messages = self.messages_view(&id()?, page, Extent::Brief).await?;
                json!({ "messages": messages })
            }
            Endpoint::Message => {
                let page = Page {
                    skip: number(1)?,
                    limit: 1,
                };
                let messages = self.messages_view(&id()?, page, Extent::Whole).await?;
                value(messages.first().ok_or(ActError::NoSession)?)
            }
            Endpoint::Memories => json!({ "memories": self.versions(&id()?).await? }),
            Endpoint::Memory => {
                let (row, _) = self.memory_at(&id()?, number(1)?).await?;
                let mut value = value(&self.memory_view(&id()?, number(1)?).await?);
                value["markdown"] = json!(row.markdown);
                value
            }
            Endpoint::Diff => {
                let version = number(1)?;
                let before = query.number("against").unwrap_or(version.saturating_sub(1));
                value(&self.diff_view(&id()?, before, version).await?)
            }
            Endpoint::Preview => {
                self.info(&id()?).await?;
                json!({ "preview": self.preview_view(&id()?) })
            }
            Endpoint::Search => {
                let session = match query.said("session") {
                    Some(id) => Some(SessionId::new(id).map_err(|_| ActError::NoSession)?),
                    None => None,
                };
                let text = query.said("q").unwrap_or_default();
                let hits = self.found(text, session, query.said("in"), limit(query));
                json!({ "hits": hits.await? })
            }
            _ => {
                let action = action(endpoint, name(1), body)?;
                return Ok(told(self.act(&id()?, action).await?));
            }
        };
        Ok((StatusCode::OK, found))
    }

    fn status_value(&self) -> Value {
        value(&self.backend.totals())
    }
}

/// What a body asks for.
fn action(endpoint: Endpoint, name: &str, body: &Bytes) -> Result<Action, ActError> {
    Ok(match endpoint {
        Endpoint::Delete => Action::Delete,
        Endpoint::Undo => Action::Undo,
        Endpoint::Unpin => Action::Unpin {
            id: name.to_owned(),
        },
        Endpoint::Configure => {
            let Configuring { mode } = read(body)?;
            let mode =
                mode_of(&mode).ok_or(ActError::Invalid("mode is instant, traditional or off"))?;
            Action::Configure { mode }
        }
        Endpoint::Edit => {
            let Editing { version, changes } = read(body)?;
            Action::Edit { version, changes }
        }
        Endpoint::Approve => {
            let Approving { version } = read(body)?;
            Action::Approve { version }
        }
        Endpoint::Pin => {
            let Pinning { text, message } = read(body)?;
            Action::Pin { text, message }
        }
        _ => {
            let Compacting { focus, preview } = if body.is_empty() {
                Compacting {
                    focus: None,
                    preview: false,
                }
            } else {
                read(body)?
            };
            Action::Compact {
                focus,
                swapping: if preview {
                    Swapping::Preview
                } else {
                    Swapping::AtOnce
                },
            }
        }
    })
}

/// The mode of that name.
pub(crate) fn mode_of(name: &str) -> Option<Mode> {
    match name {
        "instant" => Some(Mode::Instant),
        "traditional" => Some(Mode::Traditional),
        "off" => Some(Mode::Off),
        _ => None,
    }
}

fn told(effect: Effect) -> (StatusCode, Value) {
    match effect {
        Effect::Swapped { version } => (
            StatusCode::OK,
            json!({ "outcome": "swapped", "version": version }),
        ),
        Effect::Prepared => (StatusCode::OK, json!({ "outcome": "prepared" })),
        Effect::Running => (StatusCode::ACCEPTED, json!({ "outcome": "running" })),
        Effect::Undone => (StatusCode::OK, json!({ "outcome": "undone" })),
        Effect::Pinned { id } => (
            StatusCode::CREATED,
            json!({ "outcome": "pinned", "id": id }),
        ),
        Effect::Unpinned => (StatusCode::OK, json!({ "outcome": "unpinned" })),
        Effect::Edited { version } => (
            StatusCode::OK,
            json!({ "outcome": "edited", "version": version }),
        ),
        Effect::Configured => (StatusCode::OK, json!({ "outcome": "configured" })),
        Effect::Deleted => (StatusCode::OK, json!({ "outcome": "deleted" })),
    }
}

/// The endpoint of a path; the methods that there are if it has others, or none.
fn route<'a>(method: &Method, path: &'a str) -> Result<(Endpoint, Names<'a>), Vec<&'static str>> {
    let mut allowed = Vec::new();
    for (known, pattern, endpoint) in ROUTES {
        let Some(names) = names(pattern, path) else {
            continue;
        };
        if method == known {
            return Ok((endpoint, names));
        }
        allowed.push(known);
    }
    Err(allowed)
}

fn names<'a>(pattern: &str, path: &'a str) -> Option<Names<'a>> {
    let mut names = Vec::new();
    let mut parts = path.split('/');
    for wanted in pattern.split('/') {
        let part = parts.next()?;
        if wanted.starts_with('{') && !part.is_empty() {
            names.push(part);
        } else if wanted != part {
            return None;
        }
    }
    parts.next().is_none().then_some(names)
}

fn limit(query: &Fields) -> u32 {
    let limit = query.number("limit").unwrap_or(ROWS).clamp(1, ROWS_MAX);
    u32::try_from(limit).unwrap_or(u32::MAX)
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ActError> {
    // What is wrong is not repeated: it may be something that was said.
    serde_json::from_slice(body).map_err(|_| {
        ActError::Invalid(
            "the body is not what this path takes: see /throughline/api/v1/openapi.json",
        )
    })
}

fn value<T: serde::Serialize>(view: &T) -> Value {
    // Numbers, texts and lists of them always serialise.
    serde_json::to_value(view).unwrap_or_default()
}

fn answer(status: StatusCode, value: &Value) -> Response<Bytes> {
    text(status, "application/json", value.to_string())
}

fn problem(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    answer(
        status,
        &json!({ "error": { "code": code, "message": message } }),
    )
}

/// The answer to a request that the gate refuses.
pub(crate) fn refused(refusal: Refusal) -> Response<Bytes> {
    let mut answer = problem(refusal.status(), refusal.code(), &refusal.to_string());
    gate::challenge(&mut answer);
    answer
}

/// Whether nothing is there.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    error.kind() == ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every route that is served is in the document, and the other way round.
    #[test]
    fn the_document_lists_what_is_served() {
        let document: Value = serde_json::from_str(include_str!("openapi.json")).unwrap();
        let mut described: Vec<(String, String)> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, methods)| {
                methods
                    .as_object()
                    .unwrap()
                    .keys()
                    .filter(|key| *key != "parameters")
                    .map(|method| (method.to_uppercase(), path.clone()))
            })
            .collect();
        let mut served: Vec<(String, String)> = ROUTES
            .iter()
            .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
            .collect();
        described.sort();
        served.sort();
        assert_eq!(described, served);
    }

    #[test]
    fn paths_are_told_apart() {
        let check =
            |method: Method, path: &str, expected: Result<(Endpoint, Names<'_>), Vec<&str>>| {
                assert_eq!(route(&method, path), expected, "{path}");
            };
        check(Method::GET, "/sessions", Ok((Endpoint::Sessions, vec![])));
        check(
            Method::GET,
            "/sessions/a",
            Ok((Endpoint::Session, vec!["a"])),
        );
        check(
            Method::DELETE,
            "/sessions/a/pins/b",
            Ok((Endpoint::Unpin, vec!["a", "b"])),
        );
        check(Method::GET, "/sessions/", Err(vec![]));
        check(Method::GET, "/sessions/a/", Err(vec![]));
        check(Method::GET, "", Err(vec![]));
        check(
            Method::POST,
            "/sessions/a",
            Err(vec!["GET", "DELETE", "PATCH"]),
        );
    }
}
