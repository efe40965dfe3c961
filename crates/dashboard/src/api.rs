//! The admin API: what the dashboard shows and does, as JSON.
//!
//! [`ROUTES`] is the one list of what is served. Requests are dispatched by it, and [`openapi`](crate::openapi) makes
//! the document from it and from the types of requests and answers.

mod types;

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderValue, Method, Response, StatusCode, request};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use throughline_engine::SwapTiming;
use throughline_store::{ErrorKind, Page, SessionId, StoreError};

use crate::act::{ActError, Action, Effect};
use crate::backend::Totals;
use crate::diff::Diff;
use crate::form::Fields;
use crate::gate::{self, Refusal};
use crate::messages::{Extent, MessageView};
use crate::openapi::{self, LIMIT, Parameter, SKIP};
use crate::read::{MemoryView, SearchShelf};
use crate::timeline::Timeline;
use crate::{Dashboard, text};

pub(crate) use self::types::ErrorAnswer;
use self::types::{
    ApproveRequest, CompactRequest, ConfigureRequest, EditRequest, ErrorDetail, HitList,
    MemoryAnswer, MemoryList, MessageList, Outcome, OutcomeKind, PinRequest, PreviewAnswer,
    SessionAnswer, SessionList,
};

/// Rows of a list without `limit`.
pub(crate) const ROWS: u64 = 50;
/// Rows of a list at most.
pub(crate) const ROWS_MAX: u64 = 500;

/// A handler of the API.
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

/// The schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A route: how it is served and how the document describes it.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// The path, with names between braces.
    pub(crate) path: &'static str,
    endpoint: Endpoint,
    pub(crate) summary: &'static str,
    /// More than the summary; may be empty.
    pub(crate) description: &'static str,
    pub(crate) query: &'static [Parameter],
    pub(crate) body: Option<RequestBody>,
    /// Status and meaning of the answers, which have one type.
    pub(crate) answers: &'static [(u16, &'static str)],
    pub(crate) answer: SchemaOf,
    /// Status of errors besides 404, which every route below a session has.
    pub(crate) errors: &'static [u16],
}

/// The body that a route takes.
#[derive(Clone, Copy)]
pub(crate) struct RequestBody {
    pub(crate) schema: SchemaOf,
    pub(crate) is_required: bool,
}

impl Route {
    const fn new(
        method: &'static str,
        path: &'static str,
        endpoint: Endpoint,
        summary: &'static str,
        answer: SchemaOf,
    ) -> Self {
        Self {
            method,
            path,
            endpoint,
            summary,
            description: "",
            query: &[],
            body: None,
            answers: &[(200, "The answer.")],
            answer,
            errors: &[],
        }
    }

    /// A route that reads.
    const fn get(
        path: &'static str,
        endpoint: Endpoint,
        summary: &'static str,
        answer: SchemaOf,
    ) -> Self {
        Self::new("GET", path, endpoint, summary, answer)
    }

    /// A route that acts on a session.
    const fn act(
        method: &'static str,
        path: &'static str,
        endpoint: Endpoint,
        summary: &'static str,
    ) -> Self {
        Self::new(method, path, endpoint, summary, schema::<Outcome>)
    }

    const fn described(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    const fn query(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    const fn body(mut self, schema: SchemaOf, is_required: bool) -> Self {
        self.body = Some(RequestBody {
            schema,
            is_required,
        });
        self
    }

    const fn answers(mut self, answers: &'static [(u16, &'static str)]) -> Self {
        self.answers = answers;
        self
    }

    const fn errors(mut self, errors: &'static [u16]) -> Self {
        self.errors = errors;
        self
    }
}

/// All routes.
pub(crate) const ROUTES: [Route; 20] = [
    Route::get(
        "/openapi.json",
        Endpoint::Document,
        "This document.",
        schema::<serde_json::Map<String, Value>>,
    ),
    Route::get(
        "/status",
        Endpoint::Status,
        "What the proxy has done since it started.",
        schema::<Totals>,
    ),
    Route::get(
        "/sessions",
        Endpoint::Sessions,
        "All stored sessions, the most recently changed first.",
        schema::<SessionList>,
    )
    .query(&[SKIP, LIMIT]),
    Route::get(
        "/sessions/{id}",
        Endpoint::Session,
        "One session.",
        schema::<SessionAnswer>,
    ),
    Route::act(
        "DELETE",
        "/sessions/{id}",
        Endpoint::Delete,
        "Deletes the session and everything derived from it.",
    )
    .described("Forks keep their own messages. The next request of the client begins a new session.")
    .errors(&[409]),
    Route::act(
        "PATCH",
        "/sessions/{id}",
        Endpoint::Configure,
        "Sets when the session is compacted.",
    )
    .body(schema::<ConfigureRequest>, true)
    .errors(&[409, 422]),
    Route::get(
        "/sessions/{id}/timeline",
        Endpoint::Timeline,
        "Every request with its tokens and cost, and every decision.",
        schema::<Timeline>,
    ),
    Route::get(
        "/sessions/{id}/messages",
        Endpoint::Messages,
        "Messages, shortened.",
        schema::<MessageList>,
    )
    .query(&[SKIP, LIMIT]),
    Route::get(
        "/sessions/{id}/messages/{position}",
        Endpoint::Message,
        "One message in full. Secrets are replaced by markers.",
        schema::<MessageView>,
    ),
    Route::get(
        "/sessions/{id}/memories",
        Endpoint::Memories,
        "The memory versions, the oldest first.",
        schema::<MemoryList>,
    ),
    Route::get(
        "/sessions/{id}/memories/{version}",
        Endpoint::Memory,
        "One memory version: its items by section, and as Markdown.",
        schema::<MemoryAnswer>,
    ),
    Route::get(
        "/sessions/{id}/memories/{version}/diff",
        Endpoint::Diff,
        "The differences from another version.",
        schema::<Diff>,
    )
    .query(&[Parameter::integer(
        "against",
        "Number of the other version; the one before by default.",
    )]),
    Route::get(
        "/sessions/{id}/preview",
        Endpoint::Preview,
        "What a swap would do now.",
        schema::<PreviewAnswer>,
    ),
    Route::act(
        "PUT",
        "/sessions/{id}/memory",
        Endpoint::Edit,
        "Edits the memory in the requests, or the prepared one, and swaps it in.",
    )
    .described("At most 1 MiB. Items of the ledger cannot be dropped or reworded; a later statement supersedes them.")
    .body(schema::<EditRequest>, true)
    .errors(&[409, 422]),
    Route::act(
        "POST",
        "/sessions/{id}/compact",
        Endpoint::Compact,
        "Makes a memory and swaps it in, or only prepares it.",
    )
    .body(schema::<CompactRequest>, false)
    .answers(&[
        (200, "The memory is made."),
        (202, "A model is making the memory; the preview or the events show the result."),
    ])
    .errors(&[409, 422]),
    Route::act(
        "POST",
        "/sessions/{id}/approve",
        Endpoint::Approve,
        "Swaps in the prepared memory.",
    )
    .body(schema::<ApproveRequest>, true)
    .errors(&[409, 422]),
    Route::act(
        "POST",
        "/sessions/{id}/undo",
        Endpoint::Undo,
        "Undoes the last swap.",
    )
    .errors(&[409]),
    Route::act(
        "POST",
        "/sessions/{id}/pins",
        Endpoint::Pin,
        "Keeps a fact in every memory from now on.",
    )
    .body(schema::<PinRequest>, true)
    .answers(&[(201, "The fact is pinned.")])
    .errors(&[422]),
    Route::act(
        "DELETE",
        "/sessions/{id}/pins/{pin}",
        Endpoint::Unpin,
        "Removes a pinned fact with the next swap.",
    ),
    Route::get(
        "/search",
        Endpoint::Search,
        "Searches for words, in any order, in all sessions or in one.",
        schema::<HitList>,
    )
    .query(&[
        Parameter::text("q", "The words."),
        Parameter::text("session", "Id of the session; all sessions by default."),
        Parameter::choice("in", "What is searched; both by default.", &["messages", "memories"]),
        LIMIT,
    ]),
];

/// The names in a path, in order.
type Names<'a> = Vec<&'a str>;

impl Dashboard {
    /// The answer to a request for this path below the API.
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
                    "this path has other methods",
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
            Endpoint::Document => openapi::document(),
            Endpoint::Status => value(&self.backend.totals()),
            Endpoint::Sessions => value(&SessionList {
                sessions: self.sessions_view(page).await?,
            }),
            Endpoint::Session => {
                let info = self.info(&id()?).await?;
                value(&SessionAnswer {
                    session: self.session_view(&info).await?,
                    detail: self.detail(&info.id).await?,
                })
            }
            Endpoint::Timeline => value(&self.timeline(&self.info(&id()?).await?).await?),
            Endpoint::Messages => value(&MessageList {
                messages: self.messages_view(&id()?, page, Extent::Brief).await?,
            }),
            Endpoint::Message => {
                let page = Page {
                    skip: number(1)?,
                    limit: 1,
                };
                let messages = self.messages_view(&id()?, page, Extent::Whole).await?;
                value(messages.first().ok_or(ActError::NoSession)?)
            }
            Endpoint::Memories => value(&MemoryList {
                memories: self.versions(&id()?).await?,
            }),
            Endpoint::Memory => {
                let (row, memory) = self.memory_at(&id()?, number(1)?).await?;
                value(&MemoryAnswer {
                    memory: MemoryView::of(&row, &memory),
                    markdown: row.markdown,
                })
            }
            Endpoint::Diff => {
                let version = number(1)?;
                let before = query.number("against").unwrap_or(version.saturating_sub(1));
                value(&self.diff_view(&id()?, before, version).await?)
            }
            Endpoint::Preview => {
                self.info(&id()?).await?;
                value(&PreviewAnswer {
                    preview: self.preview_view(&id()?),
                })
            }
            Endpoint::Search => {
                let session = match query.filled("session") {
                    Some(id) => Some(SessionId::new(id).map_err(|_| ActError::NoSession)?),
                    None => None,
                };
                let words = query.filled("q").unwrap_or_default();
                let shelf = query.filled("in").and_then(SearchShelf::named);
                value(&HitList {
                    hits: self.search(words, session, shelf, limit(query)).await?,
                })
            }
            Endpoint::Delete
            | Endpoint::Configure
            | Endpoint::Edit
            | Endpoint::Compact
            | Endpoint::Approve
            | Endpoint::Undo
            | Endpoint::Pin
            | Endpoint::Unpin => {
                let action = action(endpoint, name(1), body)?;
                return Ok(outcome(self.act(&id()?, action).await?));
            }
        };
        Ok((StatusCode::OK, found))
    }
}

/// The action that a body describes.
fn action(endpoint: Endpoint, name: &str, body: &Bytes) -> Result<Action, ActError> {
    Ok(match endpoint {
        Endpoint::Delete => Action::Delete,
        Endpoint::Undo => Action::Undo,
        Endpoint::Unpin => Action::Unpin {
            id: name.to_owned(),
        },
        Endpoint::Configure => {
            let ConfigureRequest { mode } = read(body)?;
            Action::Configure { mode: mode.into() }
        }
        Endpoint::Edit => {
            let EditRequest { version, changes } = read(body)?;
            Action::Edit { version, changes }
        }
        Endpoint::Approve => {
            let ApproveRequest { version } = read(body)?;
            Action::Approve { version }
        }
        Endpoint::Pin => {
            let PinRequest { text, message } = read(body)?;
            Action::Pin { text, message }
        }
        _ => {
            let CompactRequest { focus, preview } = if body.is_empty() {
                CompactRequest::default()
            } else {
                read(body)?
            };
            Action::Compact {
                focus,
                swapping: if preview {
                    SwapTiming::Preview
                } else {
                    SwapTiming::AtOnce
                },
            }
        }
    })
}

fn outcome(effect: Effect) -> (StatusCode, Value) {
    let (status, kind) = match &effect {
        Effect::Swapped { .. } => (StatusCode::OK, OutcomeKind::Swapped),
        Effect::Prepared => (StatusCode::OK, OutcomeKind::Prepared),
        Effect::Running => (StatusCode::ACCEPTED, OutcomeKind::Running),
        Effect::Undone => (StatusCode::OK, OutcomeKind::Undone),
        Effect::Pinned { .. } => (StatusCode::CREATED, OutcomeKind::Pinned),
        Effect::Unpinned => (StatusCode::OK, OutcomeKind::Unpinned),
        Effect::Edited { .. } => (StatusCode::OK, OutcomeKind::Edited),
        Effect::Configured => (StatusCode::OK, OutcomeKind::Configured),
        Effect::Deleted => (StatusCode::OK, OutcomeKind::Deleted),
    };
    let (version, id) = match effect {
        Effect::Swapped { version } | Effect::Edited { version } => (Some(version), None),
        Effect::Pinned { id } => (None, Some(id)),
        _ => (None, None),
    };
    let outcome = Outcome {
        outcome: kind,
        version,
        id,
    };
    (status, value(&outcome))
}

/// The endpoint of a path; if it has none for this method, the methods that it has.
fn route<'a>(method: &Method, path: &'a str) -> Result<(Endpoint, Names<'a>), Vec<&'static str>> {
    let mut allowed = Vec::new();
    for route in &ROUTES {
        let Some(names) = names(route.path, path) else {
            continue;
        };
        if method == route.method {
            return Ok((route.endpoint, names));
        }
        allowed.push(route.method);
    }
    Err(allowed)
}

fn names<'a>(pattern: &str, path: &'a str) -> Option<Names<'a>> {
    let mut names = Vec::new();
    let mut parts = path.split('/');
    for expected in pattern.split('/') {
        let part = parts.next()?;
        if expected.starts_with('{') && !part.is_empty() {
            names.push(part);
        } else if expected != part {
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
    // The error is not repeated: it may quote the conversation.
    serde_json::from_slice(body).map_err(|_| {
        ActError::Invalid("the body does not fit this path: see /throughline/api/v1/openapi.json")
    })
}

fn value<T: Serialize>(view: &T) -> Value {
    // Numbers, texts and lists of them always serialise.
    serde_json::to_value(view).unwrap_or_default()
}

fn answer(status: StatusCode, value: &Value) -> Response<Bytes> {
    text(status, "application/json", value.to_string())
}

fn problem(status: StatusCode, code: &'static str, message: &str) -> Response<Bytes> {
    let error = ErrorDetail {
        code,
        message: message.to_owned(),
    };
    answer(status, &value(&ErrorAnswer { error }))
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
