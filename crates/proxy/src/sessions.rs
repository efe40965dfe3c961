//! Finds the session that a request belongs to.
//!
//! A conversation is known by how it begins: within a tenant, everything up to the first message of the user is its
//! *root*, and the id of a session begins with tenant and root. Of the sessions of a root, the request belongs to
//! the one with which it shares the most messages.

pub(crate) mod by_id;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline::OpenError;
use throughline::core::{Core, Effects, StoredSession};
use throughline_engine::Time;
use throughline_memory::redact::Redactor;
use throughline_store::{ForkPoint, NewSession, Page, SessionId, StoreError};
use throughline_transcript::client;
use throughline_transcript::digest::Digest;
use throughline_transcript::message::Message;
use throughline_transcript::outline::{Outline, OutlineError};
use tokio::time::Instant;

use crate::config::WINDOW_UNKNOWN;
use crate::headers::Tenant;
use crate::incoming::IncomingRequest;
use crate::known::KnownMessage;
use crate::reason::{Bypass, Reason};
use crate::shared::Shared;
use crate::tracked::{Claim, PlannedRequest, Rewind, SessionParts, TrackedSession};

/// Sessions of one root that are looked at.
const CANDIDATES_MAX: usize = 16;
/// Rows that are read at a time.
const PAGE_ROWS: u32 = 1_000;
/// How long a session that another process has begun may be unknown here.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Runs of clients that are remembered.
const RUNS_MAX: usize = 10_000;
/// A session that was used within this time stays in memory: its next request would wait for it to be loaded.
const RESTING: Duration = Duration::from_secs(5);
/// A session that was not used for this long is loaded when it is needed again: the cache of the provider has expired too.
const RESTING_MAX: Duration = Duration::from_secs(300);
/// Longest title, characters.
const TITLE_CHARS: usize = 80;

/// All sessions of a proxy.
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Those in memory, by the beginning of their ids.
    live: HashMap<String, Vec<Entry>>,
    count: usize,
    /// Those that are stored, by the beginning of their ids, the oldest first.
    stored: HashMap<String, Vec<SessionId>>,
    looked_at: Option<Instant>,
    /// The last session of each run of a client.
    runs: HashMap<(Tenant, String), SessionId>,
}

#[derive(Clone)]
struct Entry {
    session: Arc<TrackedSession>,
    used_at: Instant,
}

/// The part of an id that is the same for all sessions of a root, if it is one of a proxy.
fn prefix_of(id: &SessionId) -> Option<&str> {
    let id = id.as_str();
    // A UUID without hyphens ends it.
    let at = id.len().checked_sub(32)?;
    let prefix = id.get(..at)?;
    let is_ours = prefix.ends_with('-') && matches!(prefix.get(16..19), Some("-r-" | "-n-"));
    is_ours.then_some(prefix)
}

impl Sessions {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            inner: Mutex::new(Inner::default()),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads which sessions are stored.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) async fn look(&self) -> Result<(), StoreError> {
        let mut page = Page::first(PAGE_ROWS);
        loop {
            let rows = self.shared.store.sessions(page).await?;
            let is_last = rows.len() < PAGE_ROWS as usize;
            self.learn(rows.into_iter().map(|row| row.id));
            if is_last {
                return Ok(());
            }
            page.skip += u64::from(PAGE_ROWS);
        }
    }

    fn learn(&self, ids: impl Iterator<Item = SessionId>) {
        let mut inner = self.inner();
        for id in ids {
            let Some(prefix) = prefix_of(&id) else {
                continue;
            };
            let known = inner.stored.entry(prefix.to_owned()).or_default();
            if !known.contains(&id) {
                known.push(id);
            }
        }
    }

    /// The session of a request, and the request as that session plans it.
    ///
    /// # Errors
    /// If the request belongs to no session.
    pub(crate) async fn take(
        &self,
        request: &mut IncomingRequest,
    ) -> Result<(Arc<TrackedSession>, Box<PlannedRequest>), Bypass> {
        let prefix = request.prefix();
        let rewind = if request.name.is_some() {
            Rewind::ToTheMemory
        } else {
            Rewind::LastTurn
        };
        let mut nearest: Option<(usize, Arc<TrackedSession>)> = None;
        for attempt in 0..3 {
            let candidates = match attempt {
                0 => self.in_memory(&prefix),
                1 => self.load(&prefix, request.tenant).await?,
                // Another process may have begun it.
                _ if request.has_history()? && self.look_again().await? => {
                    self.load(&prefix, request.tenant).await?
                }
                _ => Vec::new(),
            };
            let mut best = 0;
            for (count, session) in ranked(candidates, request)? {
                if count < best {
                    // Another repeats more: what this one would leave out, that one has.
                    break;
                }
                if !session.is_healthy() {
                    self.forget(&session.id).await;
                    if attempt == 0 {
                        // What is stored of it, its memory too, is still good, although nothing can be added to it.
                        break;
                    }
                    return Err(Bypass::Forward(Reason::Store));
                }
                match session.take(request, rewind, false)? {
                    Claim::Other(count) => {
                        best = best.max(count);
                        if nearest.as_ref().is_none_or(|(best, _)| *best < count) {
                            nearest = Some((count, session));
                        }
                    }
                    Claim::Planned(planned) => {
                        self.used(&prefix, &session, request);
                        return Ok((session, planned));
                    }
                }
            }
        }
        let outline = request.messages.outline()?;
        if let Some(bypass) = Bypass::of(&outline, self.shared.config.mode) {
            return Err(bypass);
        }
        if nearest.is_none() && !outline.offers_tools() && !request.has_history()? {
            return Err(Bypass::Forward(Reason::SideCall));
        }
        // The first message alone is no conversation in common.
        let parent = nearest.filter(|(count, _)| *count >= 2);
        let session = self.begin(request, &outline, &prefix, parent)?;
        match session.take(request, rewind, true)? {
            Claim::Planned(planned) => Ok((session, planned)),
            Claim::Other(_) => Err(Bypass::Forward(Reason::Unreadable)),
        }
    }

    /// The session of a request that only counts.
    pub(crate) fn find(&self, request: &mut IncomingRequest) -> Option<Arc<TrackedSession>> {
        let candidates = self.in_memory(&request.prefix());
        let counts = candidates
            .into_iter()
            .filter_map(|session| Some((session.matches(request).ok()?, session)));
        counts
            .max_by_key(|(count, _)| *count)
            .map(|(_, session)| session)
    }

    fn in_memory(&self, prefix: &str) -> Vec<Arc<TrackedSession>> {
        let inner = self.inner();
        let entries = inner
            .live
            .get(prefix)
            .map(Vec::as_slice)
            .unwrap_or_default();
        entries
            .iter()
            .rev()
            .take(CANDIDATES_MAX)
            .map(|entry| Arc::clone(&entry.session))
            .collect()
    }

    fn used(&self, prefix: &str, session: &Arc<TrackedSession>, request: &IncomingRequest) {
        let mut inner = self.inner();
        inner.remember(request, &session.id);
        if let Some(entries) = inner.live.get_mut(prefix)
            && let Some(entry) = entries
                .iter_mut()
                .find(|entry| Arc::ptr_eq(&entry.session, session))
        {
            entry.used_at = Instant::now();
        }
    }

    /// Loads the sessions of a root that are stored and not in memory.
    async fn load(&self, prefix: &str, tenant: Tenant) -> Result<Vec<Arc<TrackedSession>>, Bypass> {
        let ids: Vec<SessionId> = {
            let inner = self.inner();
            let is_live = |id: &SessionId| {
                inner
                    .live
                    .get(prefix)
                    .is_some_and(|entries| entries.iter().any(|entry| entry.session.id == *id))
            };
            let stored = inner.stored.get(prefix).map(Vec::as_slice);
            stored
                .unwrap_or_default()
                .iter()
                .rev()
                .filter(|id| !is_live(id))
                .take(CANDIDATES_MAX)
                .cloned()
                .collect()
        };
        let mut loaded = Vec::new();
        for id in ids {
            match self.load_one(&id, tenant).await {
                Ok(session) => loaded.push(self.insert(prefix, session)),
                Err(StoreError::SessionNotFound { .. }) => {
                    if let Some(ids) = self.inner().stored.get_mut(prefix) {
                        ids.retain(|known| *known != id);
                    }
                }
                Err(StoreError::Busy { .. }) => return Err(Bypass::Forward(Reason::SessionBusy)),
                Err(error) => {
                    tracing::warn!(session = %id, %error, "a session cannot be loaded");
                    return Err(Bypass::Forward(Reason::Store));
                }
            }
        }
        Ok(loaded)
    }

    async fn look_again(&self) -> Result<bool, Bypass> {
        {
            let mut inner = self.inner();
            let now = Instant::now();
            if inner
                .looked_at
                .is_some_and(|at| now.saturating_duration_since(at) < LOOK_AGAIN)
            {
                return Ok(false);
            }
            inner.looked_at = Some(now);
        }
        let newest = self.shared.store.sessions(Page::first(PAGE_ROWS)).await;
        match newest {
            Ok(rows) => {
                self.learn(rows.into_iter().map(|row| row.id));
                Ok(true)
            }
            Err(error) => {
                tracing::warn!(%error, "the stored sessions cannot be listed");
                Err(Bypass::Forward(Reason::Store))
            }
        }
    }

    async fn load_one(
        &self,
        id: &SessionId,
        tenant: Tenant,
    ) -> Result<Arc<TrackedSession>, StoreError> {
        let store = self.shared.store.as_ref();
        let stored = match StoredSession::open(store, id, Duration::ZERO).await {
            Ok(stored) => stored,
            Err(error) => return Err(unloaded(error)),
        };
        let config = &self.shared.config;
        let wire = stored.wire;
        let answer_tokens = stored.answer_tokens();
        let settings = stored.settings(&config.catalogue, WINDOW_UNKNOWN, |settings| {
            config.apply(answer_tokens, settings);
        });
        let count = stored.loaded.counts.message_count;
        let digests = store.digests(id, 0..count).await?;
        let known = digests
            .into_iter()
            .map(|digest| KnownMessage::unseen(Digest::from_bytes(digest)))
            .collect();
        let (core, writer) = stored
            .restore(settings, self.shared.options())
            .map_err(unloaded)?;
        Ok(TrackedSession::new(
            Arc::clone(&self.shared),
            SessionParts {
                id: id.clone(),
                tenant,
                wire,
                core,
                known,
                health: self.shared.archive.go_on(id.clone(), writer),
            },
        ))
    }

    /// Begins a session with what it has in common with its parent, if it has one.
    fn begin(
        &self,
        request: &mut IncomingRequest,
        outline: &Outline,
        prefix: &str,
        parent: Option<(usize, Arc<TrackedSession>)>,
    ) -> Result<Arc<TrackedSession>, Bypass> {
        let wire = request.wire;
        let model = client::model(outline).unwrap_or_default();
        let limit = client::answer_tokens_max(outline);
        let config = &self.shared.config;
        let settings = config.settings(wire, &model, limit);
        let kept = config.begun(&config.basis(wire, &model, limit));
        let at = self.shared.clock.now();
        let id = format!("{prefix}{}", uuid::Uuid::now_v7().simple());
        let id = SessionId::new(id).map_err(|_| Bypass::Forward(Reason::Unreadable))?;
        let mut new = NewSession::new(id.clone(), wire.name(), model.clone(), at.ms());
        new.settings = kept.to_json();
        new.title = request.first().map(title).unwrap_or_default();
        new.parent = match &parent {
            Some((count, parent)) => Some(ForkPoint {
                session: parent.id.clone(),
                message_count: *count as u64,
            }),
            // Nothing in common but the run: the client has compacted the conversation, or works on something else beside it.
            None => self.inner().of_run(request).map(|session| ForkPoint {
                session,
                message_count: 0,
            }),
        };
        self.inner().remember(request, &id);
        let mut begun = SessionParts {
            id: id.clone(),
            tenant: request.tenant,
            wire,
            core: Core::new(settings, kept, model, self.shared.options()),
            known: Vec::new(),
            health: self.shared.archive.create(new),
        };
        let mut effects = Effects::default();
        if let Some((count, parent)) = &parent {
            effects = inherit(&mut begun, request, parent, *count, at)?;
        }
        self.shared.metrics.session_begun(parent.is_some());
        let session = TrackedSession::new(Arc::clone(&self.shared), begun);
        session.begin(effects);
        Ok(self.insert(prefix, session))
    }

    /// Keeps a session in memory. Returns the one that is there already, if there is one.
    fn insert(&self, prefix: &str, session: Arc<TrackedSession>) -> Arc<TrackedSession> {
        let mut inner = self.inner();
        let entries = inner.live.entry(prefix.to_owned()).or_default();
        if let Some(there) = entries.iter().find(|entry| entry.session.id == session.id) {
            return Arc::clone(&there.session);
        }
        entries.push(Entry {
            session: Arc::clone(&session),
            used_at: Instant::now(),
        });
        inner.count += 1;
        let id = session.id.clone();
        let stored = inner.stored.entry(prefix.to_owned()).or_default();
        if !stored.contains(&id) {
            stored.push(id);
        }
        if inner.count > self.shared.config.limits.sessions_max {
            self.evict(&mut inner);
        }
        session
    }

    /// Drops the sessions that were used least recently.
    fn evict(&self, inner: &mut Inner) {
        // Some at a time, so that this is not done for each new one.
        let goal = self.shared.config.limits.sessions_max * 9 / 10;
        let mut excess = inner.count.saturating_sub(goal);
        for entry in inner.by_use() {
            if excess == 0 {
                return;
            }
            if self.let_go(inner, &entry) {
                excess -= 1;
            }
        }
    }

    /// Lets sessions go that rest, until what the others keep of their messages is no more than it may be, and those
    /// that have rested long.
    pub(crate) fn tidy(&self) {
        let mut inner = self.inner();
        let by_use = inner.by_use();
        let kept: Vec<u64> = by_use
            .iter()
            .map(|entry| entry.session.kept_bytes())
            .collect();
        let bytes: u64 = kept.iter().sum();
        let mut excess = bytes.saturating_sub(self.shared.config.limits.kept_bytes_max);
        for (entry, kept) in by_use.iter().zip(kept) {
            let rested = entry.used_at.elapsed();
            if rested < RESTING || (excess == 0 && rested < RESTING_MAX) {
                return;
            }
            if self.let_go(&mut inner, entry) {
                excess = excess.saturating_sub(kept);
            }
        }
    }

    /// Removes a session from memory, unless some work of it is running.
    fn let_go(&self, inner: &mut Inner, entry: &Entry) -> bool {
        let session = &entry.session;
        // One is in the list, one here. Who holds it besides is a request that is under way.
        if Arc::strong_count(session) > 2 || !session.is_idle() {
            return false;
        }
        let is_gone = inner.remove(&session.id).is_some();
        if is_gone {
            self.shared.archive.close(&session.id);
        }
        is_gone
    }

    /// Removes a session from memory: the next request loads what is stored.
    pub(crate) async fn forget(&self, id: &SessionId) {
        let Some(gone) = self.inner().remove(id) else {
            return;
        };
        gone.stop();
        self.shared.archive.closed(id).await;
    }

    /// Sessions in memory.
    pub(crate) fn count(&self) -> usize {
        self.inner().count
    }

    /// Cancels the background work of all sessions, and releases them once everything is stored.
    pub(crate) async fn close(&self) {
        let all: Vec<Arc<TrackedSession>> = {
            let mut inner = self.inner();
            inner.count = 0;
            let live = std::mem::take(&mut inner.live);
            live.into_values()
                .flatten()
                .map(|entry| entry.session)
                .collect()
        };
        for session in &all {
            session.stop();
            self.shared.archive.close(&session.id);
        }
        if let Some(last) = all.last() {
            self.shared.archive.closed(&last.id).await;
        }
    }
}

impl Inner {
    /// Removes a session from memory, if it is there.
    fn remove(&mut self, id: &SessionId) -> Option<Arc<TrackedSession>> {
        let prefix = prefix_of(id)?;
        let entries = self.live.get_mut(prefix)?;
        let at = entries.iter().position(|entry| entry.session.id == *id)?;
        let gone = entries.remove(at);
        if entries.is_empty() {
            self.live.remove(prefix);
        }
        self.count -= 1;
        Some(gone.session)
    }

    /// Those in memory, the least recently used first.
    fn by_use(&self) -> Vec<Entry> {
        let mut by_use: Vec<Entry> = self.live.values().flatten().cloned().collect();
        by_use.sort_by_key(|entry| entry.used_at);
        by_use
    }

    fn of_run(&self, request: &IncomingRequest) -> Option<SessionId> {
        let run = request.run.clone()?;
        self.runs.get(&(request.tenant, run)).cloned()
    }

    fn remember(&mut self, request: &IncomingRequest, id: &SessionId) {
        let Some(run) = &request.run else { return };
        if self.runs.len() >= RUNS_MAX {
            self.runs.clear();
        }
        self.runs.insert((request.tenant, run.clone()), id.clone());
    }
}

/// Adds what both have in common, and what the fork inherits.
fn inherit(
    begun: &mut SessionParts,
    request: &mut IncomingRequest,
    parent: &TrackedSession,
    count: usize,
    at: Time,
) -> Result<Effects, Bypass> {
    let mut effects = Effects::default();
    let (known, first, in_memory) = parent.prefix(count);
    for index in 0..count {
        let there = index.checked_sub(first).and_then(|at| in_memory.get(at));
        let message = match there {
            Some(message) => message.clone(),
            None => {
                let message = request.messages.message(index)?.cloned();
                message.ok_or(Bypass::Forward(Reason::Unreadable))?
            }
        };
        effects.extend(begun.core.append_stored(at, vec![message.into()]));
        // The parent may have changed meanwhile.
        let chain = begun.core.engine().digest();
        let same = known.get(index).filter(|known| known.chain == chain);
        begun
            .known
            .push(same.copied().unwrap_or(KnownMessage::unseen(chain)));
    }
    // Behind all of them: what the model thought in them, it thought behind another prefix.
    effects.extend(begun.core.inherit(at, parent.heritage(count)));
    Ok(effects)
}

/// The decision for a session that cannot be opened.
fn unloaded(error: OpenError) -> StoreError {
    match error {
        OpenError::Store(error) => error,
        error => StoreError::Unavailable {
            source: error.to_string().into(),
        },
    }
}

/// How much of each a request repeats, in descending order. A single candidate is not measured.
fn ranked(
    candidates: Vec<Arc<TrackedSession>>,
    request: &mut IncomingRequest,
) -> Result<Vec<(usize, Arc<TrackedSession>)>, OutlineError> {
    let is_only = candidates.len() < 2;
    let mut counted = Vec::with_capacity(candidates.len());
    for session in candidates {
        let count = if is_only {
            0
        } else {
            session.matches(request)?
        };
        counted.push((count, session));
    }
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    Ok(counted)
}

/// The beginning of what the user said first, without secrets.
fn title(message: &Message) -> String {
    let texts: Vec<String> = message
        .texts()
        .map(|text| text.decode().into_owned())
        .collect();
    // Agents put notes of their own before what was said.
    let said = texts
        .iter()
        .rfind(|text| !text.trim_start().starts_with('<'))
        .or(texts.last())
        .map(String::as_str)
        .unwrap_or_default();
    let line = said.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().take(TITLE_CHARS * 2).collect();
    let line = Redactor::embedded().redact(&line).into_owned();
    line.chars()
        .filter(|c| !c.is_control())
        .take(TITLE_CHARS)
        .collect()
}
