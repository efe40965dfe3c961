//! Reading what is stored of a session.

use std::collections::HashMap;
use std::str;

use bytestring::ByteString;
use throughline::store::{Loaded, SessionId, SessionInfo, Store, StoredMessage};
use throughline_transcript::body::read_message;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Block, Message};
use throughline_transcript::request::{Caching, Frame, MemoryPlace};
use throughline_transcript::wire::Wire;

use crate::error::{Failure, Kind};
use crate::{storage, words};

/// How many of the first messages a title is looked for in.
const TITLE_MESSAGES: u64 = 4;
const TITLE_CHARACTERS: usize = 60;
/// Messages that are read at a time.
const PAGE_MESSAGES: u64 = 200;

/// The title, or the first words of the user.
pub(super) async fn title(session: &SessionInfo, store: &dyn Store) -> Result<String, Failure> {
    if !session.title.trim().is_empty() {
        return Ok(words::shortened(&session.title, TITLE_CHARACTERS));
    }
    let first = store
        .messages(&session.id, 0..TITLE_MESSAGES)
        .await
        .map_err(storage::failure)?;
    let conversation = Conversation {
        messages: first.iter().filter_map(message).collect(),
        ..Conversation::default()
    };
    Ok(words::title(&conversation, TITLE_CHARACTERS))
}

/// All messages, as they were received.
pub(super) async fn messages(
    session: &SessionInfo,
    store: &dyn Store,
) -> Result<Vec<StoredMessage>, Failure> {
    let read = |from| store.messages(&session.id, from..from + PAGE_MESSAGES);
    storage::all(|page| read(page.skip)).await
}

/// The message, read.
pub(super) fn message(stored: &StoredMessage) -> Option<Message> {
    let mut message = read_message(&raw(&stored.original)?)?;
    message.at_ms = stored.at_ms;
    Some(message)
}

pub(super) fn raw(bytes: &[u8]) -> Option<Raw> {
    let text = str::from_utf8(bytes).ok()?;
    Raw::parse(ByteString::from(text)).ok()
}

/// What the requests of the session say besides their messages.
pub(crate) fn frame(loaded: &Loaded) -> Result<Frame, Failure> {
    let damaged = || {
        Failure::new(
            Kind::Input,
            format!(
                "what is stored of session {} cannot be read",
                loaded.session.id
            ),
        )
    };
    let wire: Wire = loaded.session.wire.parse().map_err(|_| damaged())?;
    let head = raw(&loaded.head).ok_or_else(damaged)?;
    Frame::read(wire, &head, Caching::Off, MemoryPlace::FirstUserMessage).map_err(|_| damaged())
}

/// The whole session as a conversation.
pub(super) async fn conversation(
    loaded: &Loaded,
    store: &dyn Store,
) -> Result<Conversation, Failure> {
    let frame = frame(loaded)?;
    let system = &frame.settings().system;
    let stored = messages(&loaded.session, store).await?;
    Ok(Conversation {
        id: loaded.session.id.to_string(),
        title: Some(loaded.session.title.clone()),
        model: Some(loaded.session.model.clone()),
        system: match system.is_empty() {
            true => Vec::new(),
            false => vec![Block::text(system.clone())],
        },
        messages: stored.iter().filter_map(message).collect(),
        ..Conversation::default()
    })
}

/// How far ids can be shortened.
pub(super) struct ShortenedIds(HashMap<SessionId, usize>);

/// The least that is shown of an id.
const ID_CHARACTERS_MIN: usize = 8;

/// Each id as short as it can be without being another's.
pub(super) fn shortened_ids(sessions: &[SessionInfo]) -> ShortenedIds {
    let mut ids: Vec<&SessionId> = sessions.iter().map(|session| &session.id).collect();
    ids.sort();
    let shared = |one: &SessionId, other: Option<&&SessionId>| {
        other.map_or(0, |other| {
            let pairs = one.as_str().bytes().zip(other.as_str().bytes());
            pairs.take_while(|(a, b)| a == b).count()
        })
    };
    let lengths = ids.iter().enumerate().map(|(at, id)| {
        let before = at.checked_sub(1).and_then(|at| ids.get(at));
        let longest = shared(id, before).max(shared(id, ids.get(at + 1)));
        ((*id).clone(), (longest + 1).max(ID_CHARACTERS_MIN))
    });
    ShortenedIds(lengths.collect())
}

impl ShortenedIds {
    pub(super) fn of(&self, id: &SessionId) -> String {
        let length = self.0.get(id).copied().unwrap_or(usize::MAX);
        id.as_str().chars().take(length).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_as_short_as_they_are_unique() {
        let session = |id: &str| SessionInfo {
            id: SessionId::new(id).unwrap(),
            parent: None,
            wire: String::new(),
            model: String::new(),
            title: String::new(),
            created_ms: 0,
            updated_ms: 0,
            message_count: 0,
            tokens: 0,
            memory_version: 0,
        };
        let sessions = ["0199-aaaa-1111", "0199-aaaa-1122", "0199", "other-session"].map(session);
        let ids = shortened_ids(&sessions);
        let shown: Vec<String> = sessions.iter().map(|session| ids.of(&session.id)).collect();
        assert_eq!(
            shown,
            ["0199-aaaa-111", "0199-aaaa-112", "0199", "other-se"]
        );
    }
}
