//! The dashboard: pages made here, which need no script but to keep themselves up to date.

use std::time::Duration;

use bytes::Bytes;
use http::header::SET_COOKIE;
use http::{Method, Response, StatusCode, request};
use minijinja::{Value, context};
use throughline_engine::Swapping;
use throughline_memory::render::markdown;
use throughline_store::{Page, SessionId, StoreError};

use crate::Dashboard;
use crate::act::{ActError, Action, Effect};
use crate::edit::Change;
use crate::form::Fields;
use crate::gate::{self, Refusal};
use crate::messages::{Extent, item_of};
use crate::read::MemoryView;
use crate::render::{Frame, problem, see, template_value};
use crate::view::{Detail, Session};
use crate::{ROOT, api, chart};

/// Where somebody signs in and out.
pub(crate) const SIGN_IN: &str = "/throughline/sign-in";
pub(crate) const SIGN_OUT: &str = "/throughline/sign-out";
/// Whoever guesses tokens does so slowly.
const WRONG_TOKEN_WAIT: Duration = Duration::from_millis(500);
/// Sessions, messages and hits of a page.
const SESSIONS_ROWS: u32 = 40;
const MESSAGES_ROWS: u32 = 50;
const HITS_ROWS: u32 = 100;
/// Events and requests that are listed, the last ones.
const LISTED: usize = 60;
/// Widths of the chart: on a desk, and on a phone.
const WIDE: f64 = 1120.0;
const NARROW: f64 = 420.0;

/// Why there is no page.
enum Missing {
    Nothing,
    Store,
}

impl From<StoreError> for Missing {
    fn from(error: StoreError) -> Self {
        if api::is_missing(&error) {
            return Self::Nothing;
        }
        tracing::warn!(%error, "the store cannot be read");
        Self::Store
    }
}

type Answer = Result<Response<Bytes>, Missing>;

impl Dashboard {
    /// The answer to a request for a page.
    pub(crate) async fn page(&self, head: &request::Parts, body: &Bytes) -> Response<Bytes> {
        let path = head.uri.path();
        let query = Fields::read(head.uri.query().unwrap_or_default().as_bytes());
        let is_reading = matches!(head.method, Method::GET | Method::HEAD);
        match path {
            SIGN_IN if is_reading => return sign_in(StatusCode::OK, false),
            SIGN_IN => return self.signed_in(head, body).await,
            SIGN_OUT => {
                let mut answer = see(SIGN_IN);
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
            done: query.said("done").and_then(notice),
        };
        let rest = path.strip_prefix(ROOT).unwrap_or_default();
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        let answer = if is_reading {
            self.shown_page(&parts, &query, &frame).await
        } else if head.method == Method::POST {
            self.posted(&parts, &Fields::read(body), &frame).await
        } else {
            Err(Missing::Nothing)
        };
        answer.unwrap_or_else(|missing| match missing {
            Missing::Nothing => problem(
                StatusCode::NOT_FOUND,
                "There is nothing here",
                "The session may have been deleted, or the address is wrong.",
                ROOT,
                &frame,
            ),
            Missing::Store => problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "The store cannot be read",
                "The log of the proxy says why.",
                ROOT,
                &frame,
            ),
        })
    }

    async fn shown_page(&self, parts: &[&str], query: &Fields, frame: &Frame) -> Answer {
        match parts {
            [] | [""] => self.sessions_page(query, frame).await,
            ["search"] => self.search_page(query, frame).await,
            ["sessions", id] => self.session_page(&session(id)?, frame).await,
            ["sessions", id, "memory"] => self.memory_page(&session(id)?, query, frame).await,
            ["sessions", id, "edit"] => self.edit_page(&session(id)?, query, frame).await,
            ["sessions", id, "preview"] => self.preview_page(&session(id)?, frame).await,
            ["sessions", id, "messages"] => self.messages_page(&session(id)?, query, frame).await,
            ["sessions", id, "messages", position] => {
                let position = position.parse().map_err(|_| Missing::Nothing)?;
                self.message_page(&session(id)?, position, query, frame)
                    .await
            }
            _ => Err(Missing::Nothing),
        }
    }

    async fn sessions_page(&self, query: &Fields, frame: &Frame) -> Answer {
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

    /// What the head of every page of a session shows.
    async fn of_session(&self, id: &SessionId) -> Result<(Session, Detail), StoreError> {
        let info = self.info(id).await?;
        Ok((self.session_view(&info).await?, self.detail(id).await?))
    }

    async fn session_page(&self, id: &SessionId, frame: &Frame) -> Answer {
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

    async fn memory_page(&self, id: &SessionId, query: &Fields, frame: &Frame) -> Answer {
        let (session, detail) = self.of_session(id).await?;
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

    async fn edit_page(&self, id: &SessionId, query: &Fields, frame: &Frame) -> Answer {
        let (session, detail) = self.of_session(id).await?;
        let version = query
            .number("version")
            .or(detail.version)
            .ok_or(Missing::Nothing)?;
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

    async fn preview_page(&self, id: &SessionId, frame: &Frame) -> Answer {
        let (session, detail) = self.of_session(id).await?;
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

    async fn messages_page(&self, id: &SessionId, query: &Fields, frame: &Frame) -> Answer {
        let (session, detail) = self.of_session(id).await?;
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
    ) -> Answer {
        let (session, detail) = self.of_session(id).await?;
        let page = Page {
            skip: position,
            limit: 1,
        };
        let mut messages = self.messages_view(id, page, Extent::Whole).await?;
        let message = messages.first_mut().ok_or(Missing::Nothing)?;
        let item = match (query.number("version"), query.said("item")) {
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

    async fn search_page(&self, query: &Fields, frame: &Frame) -> Answer {
        let words = query.said("q").unwrap_or_default();
        let id = match query.said("session") {
            Some(id) => Some(session(id)?),
            None => None,
        };
        let shelf = query
            .said("in")
            .filter(|it| matches!(*it, "messages" | "memories"));
        let hits = if words.is_empty() {
            Some(Vec::new())
        } else {
            match self.found(words, id.clone(), shelf, HITS_ROWS).await {
                Ok(hits) => Some(hits),
                // More words than can be looked for.
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
                shelf => shelf.unwrap_or("both"),
                hits => template_value(&hits),
                titles => template_value(&titles),
                most => HITS_ROWS,
            },
        ))
    }

    /// A form was sent.
    async fn posted(&self, parts: &[&str], form: &Fields, frame: &Frame) -> Answer {
        let ["sessions", id, what] = parts else {
            return Err(Missing::Nothing);
        };
        let id = session(id)?;
        let home = format!("{ROOT}/sessions/{id}");
        let said = |name: &str| form.said(name).map(str::to_owned);
        let version = || {
            form.number("version")
                .and_then(|version| u32::try_from(version).ok())
                .unwrap_or(0)
        };
        let action = match *what {
            "compact" => Action::Compact {
                focus: said("focus"),
                swapping: if form.said("how") == Some("at-once") {
                    Swapping::AtOnce
                } else {
                    Swapping::Preview
                },
            },
            "approve" => Action::Approve { version: version() },
            "undo" => Action::Undo,
            "pin" => Action::Pin {
                text: said("text").unwrap_or_default(),
                message: form
                    .number("message")
                    .and_then(|message| usize::try_from(message).ok()),
            },
            "unpin" => Action::Unpin {
                id: said("pin").unwrap_or_default(),
            },
            "memory" => Action::Edit {
                version: version(),
                changes: changes(form),
            },
            "mode" => {
                let mode = form.said("mode").and_then(api::mode_of);
                Action::Configure {
                    mode: mode.ok_or(Missing::Nothing)?,
                }
            }
            "delete" => Action::Delete,
            _ => return Err(Missing::Nothing),
        };
        let effect = match self.act(&id, action).await {
            Ok(effect) => effect,
            Err(ActError::NoSession) => return Err(Missing::Nothing),
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
            Effect::Swapped { .. } => see(&format!("{home}?done=swapped")),
            Effect::Prepared => see(&format!("{home}/preview?done=prepared")),
            Effect::Running => see(&format!("{home}/preview?done=running")),
            Effect::Undone => see(&format!("{home}?done=undone")),
            Effect::Pinned { .. } => see(&format!("{home}?done=pinned")),
            Effect::Unpinned => see(&format!("{home}?done=unpinned")),
            Effect::Edited { .. } => see(&format!("{home}/memory?done=edited")),
            Effect::Configured => see(&format!("{home}?done=configured")),
            Effect::Deleted => see(&format!("{ROOT}?done=deleted")),
        })
    }

    async fn signed_in(&self, head: &request::Parts, body: &Bytes) -> Response<Bytes> {
        let form = Fields::read(body);
        let is_token = self.gate.is_token(form.text("token").unwrap_or_default());
        let cookie = self.gate.sign_in_cookie(head, self.backend.now_ms());
        let (true, Some(cookie)) = (is_token, cookie) else {
            tracing::warn!("somebody tried to sign in with a wrong token");
            tokio::time::sleep(WRONG_TOKEN_WAIT).await;
            return sign_in(StatusCode::UNAUTHORIZED, true);
        };
        tracing::info!("somebody has signed in");
        let mut answer = see(ROOT);
        answer.headers_mut().insert(SET_COOKIE, cookie);
        answer
    }
}

fn session(id: &str) -> Result<SessionId, Missing> {
    SessionId::new(id).map_err(|_| Missing::Nothing)
}

/// What a form of a memory's items says.
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
            superseded_by: form.said(&format!("s{item}")).map(str::to_owned),
        });
    }
    changes
}

/// What was done, in words. Addresses carry only its name.
fn notice(name: &str) -> Option<&'static str> {
    Some(match name {
        "swapped" => "The memory is in the requests from the next one on.",
        "prepared" => "A memory is prepared. Nothing changes before you approve it.",
        "running" => "A model is making the memory.",
        "undone" => "The swap is taken back: the next request has the messages again.",
        "pinned" => "The fact is pinned: every memory from now on says it.",
        "unpinned" => "The fact leaves the memory with the next swap.",
        "edited" => "The memory is changed, and in the requests from the next one on.",
        "configured" => "Changed.",
        "deleted" => "The session and everything that was derived from it are deleted.",
        _ => return None,
    })
}

fn sign_in(status: StatusCode, is_wrong: bool) -> Response<Bytes> {
    let frame = Frame::of_a_stranger();
    let mut answer = frame.page("sign-in.html", context! { is_wrong });
    *answer.status_mut() = status;
    answer
}

/// The answer to a request that the gate refuses.
pub(crate) fn refused(refusal: Refusal) -> Response<Bytes> {
    if refusal == Refusal::NoToken {
        return see(SIGN_IN);
    }
    let frame = Frame::of_a_stranger();
    problem(
        refusal.status(),
        "Not answered",
        &format!("{refusal}."),
        ROOT,
        &frame,
    )
}
