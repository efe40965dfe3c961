//! Random operations on a store and on its model.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test says so when something is wrong"
)]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::model::{Model, Session, places_of};
use super::{HOSTILE_TEXTS, Home, adoption, digest, memory, session, usage};
use crate::change::Change;
use crate::error::ErrorKind;
use crate::message::NewMessage;
use crate::search::{Scope, Search, Shelf};
use crate::session::{ForkPoint, SessionId};
use crate::store::{Page, Store};
use crate::usage::Purpose;

const IDS: [&str; 4] = ["alpha", "beta_2", "0", "Gamma-3"];

#[derive(Debug, Clone)]
enum Operation {
    Create {
        session: usize,
        fork_of: Option<usize>,
        share: u8,
    },
    Commit {
        session: usize,
        wishes: Vec<Wish>,
    },
    Delete {
        session: usize,
    },
    Search {
        session: Option<usize>,
        shelf: Shelf,
        text: String,
        limit: u32,
    },
    Reopen,
}

/// A change, before the counts of the session are known.
#[derive(Debug, Clone)]
enum Wish {
    Append {
        is_stale: bool,
        messages: Vec<(Vec<u8>, Option<Vec<u8>>, String)>,
    },
    Truncate {
        is_rash: bool,
        share: u8,
    },
    Memory {
        share: u8,
        text: String,
    },
    Adopt {
        is_stale: bool,
        version: u8,
        share: u8,
    },
    Undo,
    Head(Vec<u8>),
    Settings(String),
    Title(String),
    Model(String),
    Event(String),
    Usage {
        number: u8,
        is_update: bool,
    },
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(&HOSTILE_TEXTS[..]).prop_map(str::to_owned),
        "[a-dA-D \"*]{0,12}",
        "[ -~äß日本🦀\n\0]{0,40}",
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        text().prop_map(|text| serde_json::json!({"role": "user", "content": text})
            .to_string()
            .into_bytes()),
        text().prop_map(
            |text| format!("{{\r\n  \"content\": {}\n}}\n", serde_json::json!(text)).into_bytes()
        ),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    let messages = proptest::collection::vec(
        (body(), proptest::option::weighted(0.2, body()), text()),
        0..5,
    );
    prop_oneof![
        6 => (proptest::bool::weighted(0.1), messages)
            .prop_map(|(is_stale, messages)| Wish::Append { is_stale, messages }),
        2 => (proptest::bool::weighted(0.1), any::<u8>())
            .prop_map(|(is_rash, share)| Wish::Truncate { is_rash, share }),
        3 => (any::<u8>(), text()).prop_map(|(share, text)| Wish::Memory { share, text }),
        3 => (proptest::bool::weighted(0.1), any::<u8>(), any::<u8>())
            .prop_map(|(is_stale, version, share)| Wish::Adopt { is_stale, version, share }),
        1 => Just(Wish::Undo),
        1 => body().prop_map(Wish::Head),
        1 => text().prop_map(Wish::Settings),
        1 => text().prop_map(Wish::Title),
        1 => text().prop_map(Wish::Model),
        1 => text().prop_map(Wish::Event),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(number, is_update)| Wish::Usage { number, is_update }),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    // Most happens to one of them, so that much happens to it.
    let session = prop_oneof![3 => Just(0), 1 => 0..IDS.len()];
    let shelf = proptest::sample::select(vec![Shelf::Archive, Shelf::Memories, Shelf::Both]);
    prop_oneof![
        3 => (session.clone(), proptest::option::of(session.clone()), any::<u8>())
            .prop_map(|(session, fork_of, share)| Operation::Create { session, fork_of, share }),
        10 => (session.clone(), proptest::collection::vec(wish(), 0..4))
            .prop_map(|(session, wishes)| Operation::Commit { session, wishes }),
        1 => session.clone().prop_map(|session| Operation::Delete { session }),
        2 => (proptest::option::of(session), shelf, text(), 0..6u32)
            .prop_map(|(session, shelf, text, limit)| Operation::Search { session, shelf, text, limit }),
        1 => Just(Operation::Reopen),
    ]
}

/// Applies random operations to stores and to models of them in this many cases, and compares.
///
/// # Panics
/// When a store is not what its model is; with the operations that lead there.
pub fn agrees_with_model<H: Home>(make: impl Fn() -> H, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    // The same cases every time, so that a failure can be seen again and a test does not depend on luck.
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let operations = proptest::collection::vec(operation(), 1..60);
    let outcome = runner.run(&operations, |operations| {
        let home = make();
        runtime.block_on(async {
            let mut pair = Pair {
                store: home.open().await,
                model: Model::default(),
                now_ms: 10_000,
            };
            pair.create(id(0), None, 0).await;
            for operation in operations {
                pair.play(&home, operation).await;
            }
            pair.store = home.open().await;
            pair.compare_all().await;
        });
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

struct Pair {
    store: Arc<dyn Store>,
    model: Model,
    now_ms: i64,
}

fn id(index: usize) -> SessionId {
    SessionId::new(IDS[index]).unwrap()
}

/// A part of a count: 255 is a little more than all.
fn part(count: usize, share: u8) -> u64 {
    if share == 255 {
        count as u64 + 1
    } else {
        (count as u64 + 1) * u64::from(share) / 255
    }
}

impl Pair {
    async fn play(&mut self, home: &dyn Home, operation: Operation) {
        self.now_ms += 1;
        match operation {
            Operation::Create {
                session,
                fork_of,
                share,
            } => self.create(id(session), fork_of.map(id), share).await,
            Operation::Commit { session, wishes } => self.commit(&id(session), &wishes).await,
            Operation::Delete { session } => {
                let deleted = self
                    .store
                    .delete(&id(session))
                    .await
                    .map_err(|error| error.kind());
                let expected = self
                    .model
                    .sessions
                    .remove(&id(session))
                    .map(drop)
                    .ok_or(ErrorKind::NotFound);
                assert_eq!(deleted, expected);
            }
            Operation::Search {
                session,
                shelf,
                text,
                limit,
            } => self.search(session.map(id), shelf, text, limit).await,
            Operation::Reopen => {
                self.store = home.open().await;
                self.compare_all().await;
            }
        }
    }

    async fn create(&mut self, new_id: SessionId, fork_of: Option<SessionId>, share: u8) {
        let mut new = session(new_id.as_str(), self.now_ms);
        let parent = fork_of
            .as_ref()
            .map(|parent| self.model.sessions.get(parent));
        let count = parent
            .flatten()
            .map_or(0, |parent| part(parent.messages.len(), share));
        new.parent = fork_of.map(|session| ForkPoint {
            session,
            message_count: count,
        });
        let expected = match parent {
            _ if self.model.sessions.contains_key(&new_id) => Err(ErrorKind::Conflict),
            Some(None) => Err(ErrorKind::NotFound),
            Some(Some(parent)) => parent
                .messages
                .get(..count as usize)
                .map(<[_]>::to_vec)
                .ok_or(ErrorKind::Invalid),
            None => Ok(Vec::new()),
        };
        let created = self
            .store
            .create(new.clone(), vec![])
            .await
            .map_err(|error| error.kind());
        assert_eq!(
            created.map(|counts| counts.message_count),
            expected.as_ref().map(|m| m.len() as u64).map_err(|e| *e)
        );
        if let Ok(messages) = expected {
            self.model
                .sessions
                .insert(new_id.clone(), Session::new(new, messages));
            self.compare(&new_id).await;
        }
    }

    async fn commit(&mut self, id: &SessionId, wishes: &[Wish]) {
        let opened = self.store.open(id, Duration::ZERO).await;
        let Some(session) = self.model.sessions.get_mut(id) else {
            assert_eq!(
                opened.err().map(|error| error.kind()),
                Some(ErrorKind::NotFound)
            );
            return;
        };
        let mut writer = opened.unwrap();
        let mut after = session.clone();
        let mut changes = Vec::new();
        // The first rule that is broken decides; a cover that is too large only counts at the end.
        let mut broken = None;
        for wish in wishes {
            let (change, error) = change(&after, wish);
            if broken.is_none() {
                broken = error;
            }
            if broken.is_none() {
                after.commit(self.now_ms, std::slice::from_ref(&change));
            }
            changes.push(change);
        }
        let counts = after.counts();
        if broken.is_none() && counts.covered_count > counts.message_count {
            broken = Some(ErrorKind::Invalid);
        }
        let committed = writer
            .commit(self.now_ms, changes)
            .await
            .map_err(|error| error.kind());
        match broken {
            Some(kind) => assert_eq!(committed, Err(kind)),
            None => {
                after.commit(self.now_ms, &[]);
                *session = after;
                assert_eq!(committed, Ok(counts));
            }
        }
        let expected = self.model.sessions[id].loaded();
        assert_eq!(writer.load().await.unwrap(), expected);
        drop(writer);
        self.compare(id).await;
    }

    async fn search(&self, session: Option<SessionId>, shelf: Shelf, text: String, limit: u32) {
        let scope = session.clone().map_or(Scope::All, Scope::Session);
        let search = Search {
            text,
            scope,
            shelf,
            limit,
        };
        let found = self
            .store
            .search(&search)
            .await
            .map(places_of)
            .map_err(|error| error.kind());
        let expected = match session {
            None => Ok(self.model.places(&search)),
            Some(id) => match self.model.sessions.get(&id) {
                None => Err(ErrorKind::NotFound),
                Some(session) => {
                    let places = session.places(&search).into_iter().take(limit as usize);
                    Ok(places.map(|place| (id.clone(), place)).collect())
                }
            },
        };
        assert_eq!(found, expected, "{search:?}");
    }

    async fn compare_all(&self) {
        let page = Page::first(100);
        assert_eq!(self.store.sessions(page).await.unwrap(), self.model.infos());
        let second = Page { skip: 1, limit: 1 };
        assert_eq!(
            self.store.sessions(second).await.unwrap(),
            second.of(&self.model.infos())
        );
        for id in self.model.sessions.keys() {
            self.compare(id).await;
        }
    }

    async fn compare(&self, id: &SessionId) {
        let (store, session) = (&self.store, &self.model.sessions[id]);
        let (page, part) = (Page::first(1_000), Page { skip: 1, limit: 2 });
        assert_eq!(store.session(id).await.unwrap(), session.info());
        assert_eq!(store.load(id).await.unwrap(), session.loaded());
        let messages = session.stored();
        assert_eq!(store.messages(id, 0..u64::MAX).await.unwrap(), messages);
        assert_eq!(store.messages(id, 1..3).await.unwrap(), part.of(&messages));
        let past = messages.len() as u64;
        assert_eq!(
            store.message(id, past).await.map_err(|error| error.kind()),
            Err(ErrorKind::NotFound)
        );
        for page in [page, part] {
            assert_eq!(
                store.superseded(id, page).await.unwrap(),
                page.of(&session.superseded())
            );
            assert_eq!(
                store.memories(id, page).await.unwrap(),
                page.of(&session.memory_infos())
            );
            assert_eq!(
                store.events(id, page).await.unwrap(),
                page.of(session.events())
            );
            assert_eq!(
                store.usage(id, page).await.unwrap(),
                page.of(session.usage())
            );
        }
        for memory in &session.memories {
            assert_eq!(store.memory(id, memory.version).await.unwrap(), *memory);
        }
    }
}

/// The change that a wish means here, and the error that it must meet.
fn change(session: &Session, wish: &Wish) -> (Change, Option<ErrorKind>) {
    let counts = session.counts();
    let count = session.messages.len();
    match wish {
        Wish::Append { is_stale, messages } => {
            let messages =
                (counts.message_count..)
                    .zip(messages)
                    .map(|(number, (original, sent, text))| NewMessage {
                        sent: sent.clone().map(Into::into),
                        at_ms: number.is_multiple_of(2).then_some(-5),
                        ..NewMessage::new(
                            original.clone(),
                            digest(number),
                            "user",
                            text.clone(),
                            u32::MAX,
                        )
                    });
            let expected_count = counts.message_count + u64::from(*is_stale);
            let change = Change::Append {
                expected_count,
                messages: messages.collect(),
            };
            (change, is_stale.then_some(ErrorKind::Conflict))
        }
        Wish::Truncate { is_rash, share } => {
            // Mostly no deeper than the cover, which nothing may be cut below.
            let kept = if *is_rash { 0 } else { counts.covered_count };
            let to_count = kept + part(count.saturating_sub(kept as usize), *share);
            (
                Change::Truncate { to_count },
                (to_count > counts.message_count).then_some(ErrorKind::Invalid),
            )
        }
        Wish::Memory { share, text } => {
            let covered_count = part(count, *share);
            let change = Change::Memory(memory(counts.memory_version + 1, covered_count, text));
            (
                change,
                (covered_count > counts.message_count).then_some(ErrorKind::Invalid),
            )
        }
        Wish::Adopt {
            is_stale,
            version,
            share,
        } => {
            // Now and then one that does not exist, the first of all before there are any.
            let version = 1 + part(session.memories.len().saturating_sub(1), *version);
            let expected_epoch = counts.epoch + u64::from(*is_stale);
            let adoption = adoption(counts.epoch + 2, Some(version), part(count, *share));
            let error = match version {
                _ if *is_stale => Some(ErrorKind::Conflict),
                version if version == 0 || version > counts.memory_version => {
                    Some(ErrorKind::Invalid)
                }
                _ => None,
            };
            (
                Change::Adopt {
                    expected_epoch,
                    adoption,
                },
                error,
            )
        }
        Wish::Undo => {
            let adoption = adoption(counts.epoch + 1, None, 0);
            (
                Change::Adopt {
                    expected_epoch: counts.epoch,
                    adoption,
                },
                None,
            )
        }
        Wish::Head(head) => (Change::Head(head.clone().into()), None),
        Wish::Settings(settings) => (Change::Settings(settings.clone()), None),
        Wish::Title(title) => (Change::Title(title.clone()), None),
        Wish::Model(model) => (Change::Model(model.clone()), None),
        Wish::Event(json) => (
            Change::Event {
                kind: "swapped".into(),
                json: json.clone(),
            },
            None,
        ),
        Wish::Usage { number, is_update } => {
            let purpose = if *is_update {
                Purpose::Update
            } else {
                Purpose::Main
            };
            (Change::Usage(usage(u64::from(*number), purpose)), None)
        }
    }
}
