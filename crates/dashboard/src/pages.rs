//! The pages of the dashboard.

use std::time::Duration;

use bytes::Bytes;
use http::header::SET_COOKIE;
use http::{Method, Response, StatusCode, request};
use minijinja::{Value, context};
use throughline_engine::SwapTiming;
use throughline_memory::render::markdown;
use throughline_store::{Page, SessionId, StoreError};

use crate::Dashboard;
use crate::act::{ActError, Action, Effect};
use crate::edit::Change;
use crate::form::Fields;
use crate::gate::{self, Refusal};
use crate::messages::{Extent, item_of};
use crate::read::{MemoryView, SearchShelf};
use crate::render::{Frame, problem, redirect, template_value};
use crate::view::{Detail, Session, SessionMode};
use crate::{ROOT, api, chart};

/// The paths for signing in and out.
pub(crate) const SIGN_IN: &str = "/throughline/sign-in";
pub(crate) const SIGN_OUT: &str = "/throughline/sign-out";
/// How long a wrong token takes, against guessing.
const WRONG_TOKEN_WAIT: Duration = Duration::from_millis(500);
/// Sessions, messages and hits on one page.
const SESSIONS_ROWS: u32 = 40;
const MESSAGES_ROWS: u32 = 50;
const HITS_ROWS: u32 = 100;
/// Events and requests in the lists: the newest ones.
const LISTED: usize = 60;
/// Widths of the chart: on a desktop and on a phone.
const WIDE: f64 = 1120.0;
const NARROW: f64 = 420.0;

/// Why there is no page.
enum PageError {
    NotFound,
    Store,
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        if api::is_missing(&error) {
            return Self::NotFound;
        }
        tracing::warn!(%error, "the store cannot be read");
        Self::Store
    }
}

type PageResult = Result<Response<Bytes>, PageError>;

impl Dashboard {
    /// The answer to a request for a page.
    pub(crate) async fn page(&self, head: &request::Parts, body: &Bytes) -> Response<Bytes> {
        let path = head.uri.path();
        let query = Fields::read(head.uri.query().unwrap_or_default().as_bytes());
        let is_reading = matches!(head.method, Method::GET | Method::HEAD);
        match path {
            SIGN_IN if is_reading => return sign_in(StatusCode::OK, false),
            SIGN_IN => return self.sign_in(head, body).await,
            SIGN_OUT => {
                let mut answer = redirect(SIGN_IN);
                if let Some(cookie) = gate::sign_out_cookie(head) {
                    answer.headers_mut().insert(SET_COOKIE, cookie);
                }
                return answer;
            }
            _ => {}
        }
        let frame = Frame {
            now_ms: self.backend.now_ms(),
            can_sign_out: self.gate.has_token(),
            done: query.filled("done").and_then(notice),
        };
        let rest = path.strip_prefix(ROOT).unwrap_or_default();
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        let answer = if is_reading {
            self.get(&parts, &query, &frame).await
        } else if head.method == Method::POST {
            self.post(&parts, &Fields::read(body), &frame).await
        } else {
            Err(PageError::NotFound)
        };
        answer.unwrap_or_else(|error| match error {
            PageError::NotFound => problem(
                StatusCode::NOT_FOUND,
                "There is nothing here",
                "The session may have been deleted, or the address is wrong.",
                ROOT,
                &frame,
            ),
            PageError::Store => problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "The store cannot be read",
                "The log of the proxy says why.",
                ROOT,
                &frame,
            ),
        })
    }

    async fn get(&self, parts: &[&str], query: &Fields, frame: &Frame) -> PageResult {
        match parts {
            [] | [""] => self.sessions_page(query, frame).await,
            ["search"] => self.search_page(query, frame).await,
            ["sessions", id] => self.session_page(&session(id)?, frame).await,
            ["sessions", id, "memory"] => self.memory_page(&session(id)?, query, frame).await,
            ["sessions", id, "edit"] => self.edit_page(&session(id)?, query, frame).await,
            ["sessions", id, "preview"] => self.preview_page(&session(id)?, frame).await,
            ["sessions", id, "messages"] => self.messages_page(&session(id)?, query, frame).await,
            ["sessions", id, "messages", position] => {
                let position = position.parse().map_err(|_| PageError::NotFound)?;
                self.message_page(&session(id)?, position, query, frame)
                    .await
            }
            _ => Err(PageError::NotFound),
        }
    }

    async fn sessions_page(&self, query: &Fields, frame: &Frame) -> PageResult {
        let skip = query.number("skip").unwrap_or(0);
        let page = Page {
            skip,
            limit: SESSIONS_ROWS,
        };
        let sessions = self.sessions_view(page).await?;
        let totals = self.backend.totals();
        let next =
            (sessions.len() == SESSIONS_ROWS as usize).then(|| skip + u64::from(SESSIONS_ROWS));
        Ok(frame.page(
            "sessions.html",
            context! {
                sessions => template_value(&sessions),
                skip, next,
                rows => SESSIONS_ROWS,
                totals => template_value(&totals),
            },
        ))
    }

    /// The session of a page, for its head.
    async fn head_of(&self, id: &SessionId) -> Result<(Session, Detail), StoreError> {
        let info = self.info(id).await?;
        Ok((self.session_view(&info).await?, self.detail(id).await?))
    }

    async fn session_page(&self, id: &SessionId, frame: &Frame) -> PageResult {
        let info = self.info(id).await?;
        let session = self.session_view(&info).await?;
        let detail = self.detail(id).await?;
        let timeline = self.timeline(&info).await?;
        let charts = [WIDE, NARROW].map(|width| chart::draw(&timeline, width));
        let [wide, narrow] = charts.map(Value::from_safe_string);
        let events: Vec<_> = timeline.events.iter().rev().take(LISTED).collect();
        let requests: Vec<_> = timeline
            .requests
            .iter()
            .enumerate()
            .rev()
            .take(LISTED)
            .map(|(index, point)| (index + 1, point))
            .collect();
        Ok(frame.page(
            "session.html",
            context! {
                session => template_value(&session),
                detail => template_value(&detail),
                wide, narrow,
                is_rewriting => timeline.is_rewriting,
                events => template_value(&events),
                event_count => timeline.events.len(),
                requests => template_value(&requests),
            },
        ))
    }

    async fn memory_page(&self, id: &SessionId, query: &Fields, frame: &Frame) -> PageResult {
        let (session, detail) = self.head_of(id).await?;
        let versions = self.versions(id).await?;
        let newest = Some(session.newest_version).filter(|version| *version > 0);
        let version = query.number("version").or(detail.version).or(newest);
        let against = query
            .number("against")
            .filter(|against| Some(*against) != version);
        let (memory, diff, read) = match version {
            Some(version) => {
                let (row, memory) = self.memory_at(id, version).await?;
                let diff = match against {
                    Some(against) => Some(self.diff_view(id, against, version).await?),
                    None => None,
                };
                let read = markdown::render(&memory);
                (Some(MemoryView::of(&row, &memory)), diff, Some(read))
            }
            None => (None, None, None),
        };
        let can_edit = session.is_ours && version.is_some() && version == detail.version;
        Ok(frame.page(
            "memory.html",
            context! {
                session => template_value(&session),
                detail => template_value(&detail),
                versions => template_value(&versions),
                memory => template_value(&memory),
                diff => template_value(&diff),
                markdown => read,
                version, against, can_edit,
            },
        ))
    }

    async fn edit_page(&self, id: &SessionId, query: &Fields, frame: &Frame) -> PageResult {
        let (session, detail) = self.head_of(id).await?;
        let version = query
            .number("version")
            .or(detail.version)
            .ok_or(PageError::NotFound)?;
        let prepared = self
            .preview_view(id)
            .filter(|preview| u64::from(preview.version) == version);
        let is_prepared = prepared.is_some() && detail.version != Some(version);
        let sections = match prepared {
            Some(preview) if is_prepared => preview.sections,
            _ => self.memory_view(id, version).await?.sections,
        };
        Ok(frame.page(
            "edit.html",
            context! {
                session => template_value(&session),
                detail => template_value(&detail),
                sections => template_value(&sections),
                version, is_prepared,
            },
        ))
    }

    async fn preview_page(&self, id: &SessionId, frame: &Frame) -> PageResult {
        let (session, detail) = self.head_of(id).await?;
        let preview = self.preview_view(id);
        Ok(frame.page(
            "preview.html",
            context! {
                session => template_value(&session),
                detail => template_value(&detail),
                preview => template_value(&preview),
            },
        ))
    }

    async fn messages_page(&self, id: &SessionId, query: &Fields, frame: &Frame) -> PageResult {
        let (session, detail) = self.head_of(id).await?;
        let rows = u64::from(MESSAGES_ROWS);
        let from = query
            .number("from")
            .unwrap_or_else(|| session.messages.saturating_sub(rows));
        let page = Page {
            skip: from,
            limit: MESSAGES_ROWS,
        };
        let messages = self.messages_view(id, page, Extent::Brief).await?;
        Ok(frame.page(
            "messages.html",
            context! {
                messages => template_value(&messages),
                from, rows,
                session => template_value(&session),
                detail => template_value(&detail),
            },
        ))
    }

    async fn message_page(
        &self,
        id: &SessionId,
        position: u64,
        query: &Fields,
        frame: &Frame,
    ) -> PageResult {
        let (session, detail) = self.head_of(id).await?;
        let page = Page {
            skip: position,
            limit: 1,
        };
        let mut messages = self.messages_view(id, page, Extent::Whole).await?;
        let message = messages.first_mut().ok_or(PageError::NotFound)?;
        let item = match (query.number("version"), query.filled("item")) {
            (Some(version), Some(item)) => {
                let memory = match self.memory_at(id, version).await {
                    Ok((_, memory)) => Some(memory),
                    Err(error) if api::is_missing(&error) => None,
                    Err(error) => return Err(error.into()),
                };
                memory.and_then(|memory| item_of(&memory, item))
            }
            _ => None,
        };
        if let Some(item) = &item {
            message.mark(item);
        }
        Ok(frame.page(
            "message.html",
            context! {
                message => template_value(&*message),
                item => template_value(&item),
                item_version => query.number("version"),
                session => template_value(&session),
                detail => template_value(&detail),
            },
        ))
    }

    async fn search_page(&self, query: &Fields, frame: &Frame) -> PageResult {
        let words = query.filled("q").unwrap_or_default();
        let id = match query.filled("session") {
            Some(id) => Some(session(id)?),
            None => None,
        };
        let shelf = query.filled("in").and_then(SearchShelf::named);
        let hits = if words.is_empty() {
            Some(Vec::new())
        } else {
            match self.search(words, id.clone(), shelf, HITS_ROWS).await {
                Ok(hits) => Some(hits),
                // More words than a search can take.
                Err(StoreError::TooLarge { .. }) => None,
                Err(error) => return Err(error.into()),
            }
        };
        let mut titles = std::collections::BTreeMap::new();
        for hit in hits.iter().flatten() {
            if !titles.contains_key(&hit.session)
                && let Ok(id) = SessionId::new(hit.session.clone())
                && let Ok(info) = self.info(&id).await
            {
                titles.insert(hit.session.clone(), info.title);
            }
        }
        Ok(frame.page(
            "search.html",
            context! {
                words,
                in_session => id.as_ref().map(ToString::to_string),
                shelf => shelf.map_or("both", SearchShelf::name),
                hits => template_value(&hits),
                titles => template_value(&titles),
                most => HITS_ROWS,
            },
        ))
    }

    /// Performs the action of a form.
    async fn post(&self, parts: &[&str], form: &Fields, frame: &Frame) -> PageResult {
        let ["sessions", id, what] = parts else {
            return Err(PageError::NotFound);
        };
        let id = session(id)?;
        let home = format!("{ROOT}/sessions/{id}");
        let filled = |name: &str| form.filled(name).map(str::to_owned);
        let version = || {
            form.number("version")
                .and_then(|version| u32::try_from(version).ok())
                .unwrap_or(0)
        };
        let action = match *what {
            "compact" => Action::Compact {
                focus: filled("focus"),
                swapping: if form.filled("how") == Some("at-once") {
                    SwapTiming::AtOnce
                } else {
                    SwapTiming::Preview
                },
            },
            "approve" => Action::Approve { version: version() },
            "undo" => Action::Undo,
            "pin" => Action::Pin {
                text: filled("text").unwrap_or_default(),
                message: form
                    .number("message")
                    .and_then(|message| usize::try_from(message).ok()),
            },
            "unpin" => Action::Unpin {
                id: filled("pin").unwrap_or_default(),
            },
            "memory" => Action::Edit {
                version: version(),
                changes: changes(form),
            },
            "mode" => {
                let mode = form.filled("mode").and_then(SessionMode::named);
                Action::Configure {
                    mode: mode.ok_or(PageError::NotFound)?.into(),
                }
            }
            "delete" => Action::Delete,
            _ => return Err(PageError::NotFound),
        };
        let effect = match self.act(&id, action).await {
            Ok(effect) => effect,
            Err(ActError::NoSession) => return Err(PageError::NotFound),
            Err(error) => {
                return Ok(problem(
                    error.status(),
                    "Not done",
                    &format!("{error}."),
                    &home,
                    frame,
                ));
            }
        };
        Ok(match effect {
            Effect::Swapped { .. } => redirect(&format!("{home}?done=swapped")),
            Effect::Prepared => redirect(&format!("{home}/preview?done=prepared")),
            Effect::Running => redirect(&format!("{home}/preview?done=running")),
            Effect::Undone => redirect(&format!("{home}?done=undone")),
            Effect::Pinned { .. } => redirect(&format!("{home}?done=pinned")),
            Effect::Unpinned => redirect(&format!("{home}?done=unpinned")),
            Effect::Edited { .. } => redirect(&format!("{home}/memory?done=edited")),
            Effect::Configured => redirect(&format!("{home}?done=configured")),
            Effect::Deleted => redirect(&format!("{ROOT}?done=deleted")),
        })
    }

    async fn sign_in(&self, head: &request::Parts, body: &Bytes) -> Response<Bytes> {
        let form = Fields::read(body);
        let is_token = self.gate.is_token(form.text("token").unwrap_or_default());
        let cookie = self.gate.sign_in_cookie(head, self.backend.now_ms());
        let (true, Some(cookie)) = (is_token, cookie) else {
            tracing::warn!("sign-in with a wrong token");
            tokio::time::sleep(WRONG_TOKEN_WAIT).await;
            return sign_in(StatusCode::UNAUTHORIZED, true);
        };
        tracing::info!("signed in");
        let mut answer = redirect(ROOT);
        answer.headers_mut().insert(SET_COOKIE, cookie);
        answer
    }
}

fn session(id: &str) -> Result<SessionId, PageError> {
    SessionId::new(id).map_err(|_| PageError::NotFound)
}

/// The changes that a form of a memory's items describes.
fn changes(form: &Fields) -> Vec<Change> {
    let mut changes = Vec::new();
    for item in 0.. {
        let Some(id) = form.text(&format!("id{item}")) else {
            break;
        };
        let texts: Vec<String> = (0..)
            .map_while(|at| form.text(&format!("t{item}-{at}")))
            .map(str::to_owned)
            .collect();
        changes.push(Change {
            id: id.to_owned(),
            texts: (!texts.is_empty()).then_some(texts),
            drop: form.text(&format!("d{item}")).is_some(),
            superseded_by: form.filled(&format!("s{item}")).map(str::to_owned),
        });
    }
    changes
}

/// What was done, in words. The address carries only its name.
fn notice(name: &str) -> Option<&'static str> {
    Some(match name {
        "swapped" => "The next request uses the memory.",
        "prepared" => "A memory is prepared. Requests do not change until you approve it.",
        "running" => "A model is making the memory.",
        "undone" => "The swap is undone: the next request contains the messages again.",
        "pinned" => "The fact is pinned: every later memory contains it.",
        "unpinned" => "The next swap removes the fact from the memory.",
        "edited" => "The next request uses the edited memory.",
        "configured" => "The setting is saved.",
        "deleted" => "The session and everything derived from it are deleted.",
        _ => return None,
    })
}

fn sign_in(status: StatusCode, is_wrong: bool) -> Response<Bytes> {
    let frame = Frame::signed_out();
    let mut answer = frame.page("sign-in.html", context! { is_wrong });
    *answer.status_mut() = status;
    answer
}

/// The answer to a request that the gate refuses.
pub(crate) fn refused(refusal: Refusal) -> Response<Bytes> {
    if refusal == Refusal::NoToken {
        return redirect(SIGN_IN);
    }
    let frame = Frame::signed_out();
    problem(
        refusal.status(),
        "Not answered",
        &format!("{refusal}."),
        ROOT,
        &frame,
    )
}
