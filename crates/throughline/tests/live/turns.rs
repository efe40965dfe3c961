//! Answers that are cancelled, cut or not stored, and what can be said afterwards.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use throughline::{SendError, SessionError, UserInput};
use throughline_simulator::{Options, Reply};
use throughline_store::{
    Change, Counts, EventRow, Hit, Loaded, MemoryInfo, MemoryRow, MemoryStore, NewSession, Page,
    Search, SessionId, SessionInfo, Store, StoreError, StoredMessage, SupersededMessage, UsageRow,
    Writer,
};
use throughline_transcript::json::Raw;
use throughline_transcript::request::message::ToolOutput;

use crate::world::{World, chatter};

#[tokio::test(start_paused = true)]
async fn a_turn_can_be_dropped_at_any_moment_and_the_next_one_sent_at_once() {
    for wait_ms in (0..6_000).step_by(150) {
        let world = World::new(Options::new(5));
        let session = world.session().start().await.unwrap();
        let mut turn = session.send(chatter(0, 20)).await.unwrap();
        assert!(matches!(
            session.send("Me too.").await,
            Err(SendError::Busy)
        ));
        assert!(matches!(session.clear().await, Err(SessionError::Busy)));
        let _ = tokio::time::timeout(Duration::from_millis(wait_ms), async {
            while turn.next().await.is_some() {}
        })
        .await;
        drop(turn);
        let answer = session.ask("Something else.").await.unwrap();
        assert!(!answer.text().is_empty());
        let messages = session.status().messages;
        assert!(messages == 3 || messages == 4, "{wait_ms} ms: {messages}");
        // An answer that was cut off is not stored.
        for index in 0..messages {
            session.message_at(index).await.unwrap();
        }
        assert_eq!(world.refused(), 0);
        session.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_not_waited_for_does_not_block_the_session() {
    let world = World::new(Options::new(5));
    let session = world.session().start().await.unwrap();
    let send = session.send("Hello.");
    drop(tokio::time::timeout(Duration::ZERO, send).await);
    session.ask("Hello again.").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_not_answered_can_be_asked_again() {
    let world = World::new(Options::new(4).without_latency());
    let session = world.session().start().await.unwrap();
    assert!(matches!(session.retry().await, Err(SendError::Empty)));
    world
        .provider
        .with(|simulator| simulator.set_faults("500@1-3".parse().unwrap()));
    assert!(session.ask("Remember: the port is 8431.").await.is_err());
    let answer = session.retry().await.unwrap().answer().await.unwrap();
    assert!(!answer.text().is_empty());
    assert_eq!(session.status().messages, 2);
    assert!(matches!(session.retry().await, Err(SendError::Empty)));
}

#[tokio::test(start_paused = true)]
async fn a_session_closes_while_nobody_reads_an_answer() {
    let world = World::new(Options::new(5));
    let session = world.session().max_tokens(16_000).start().await.unwrap();
    world.provider.script(Reply::text("word ".repeat(5_000)));
    let turn = session.send("Talk a lot.").await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    tokio::time::timeout(Duration::from_secs(600), session.close())
        .await
        .expect("it closes")
        .unwrap();
    drop(turn);
    assert!(matches!(
        session.send("More?").await,
        Err(SendError::Closed)
    ));
}

#[tokio::test(start_paused = true)]
async fn results_must_fit_the_open_calls() {
    let world = World::new(Options::new(5).without_latency());
    let tools = r#"[{"name":"look","input_schema":{"type":"object"}}]"#;
    let session = world
        .session()
        .tools(Raw::parse(tools.to_owned()).unwrap())
        .start()
        .await
        .unwrap();
    let call = Reply::text("Both.")
        .tool_call("look", "{}")
        .tool_call("look", "{}");
    world.provider.script(call);
    let calls = session.ask("Look.").await.unwrap().tool_calls();
    let output = |id: &str| ToolOutput {
        call_id: id.to_owned(),
        text: "seen".to_owned(),
        is_error: false,
    };
    let [one, two] = [&*calls[0].id, &*calls[1].id];
    let asked = [
        (vec![output(one)], "CallOpen"),
        (vec![output(one), output("none")], "NoSuchCall"),
        (vec![output(one), output(one), output(two)], "NoSuchCall"),
        (vec![], "CallOpen"),
    ];
    for (outputs, expected) in asked {
        let error = session.ask(UserInput::from(outputs)).await.unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{error:?}");
    }
    let wrong = Raw::parse(r#"{"role":"user","content":"no results"}"#.to_owned()).unwrap();
    let error = session.ask(UserInput::Messages(vec![wrong])).await;
    assert!(
        matches!(error, Err(SendError::NotSendable { .. })),
        "{error:?}"
    );
    assert_eq!(session.status().messages, 2);
    session
        .ask(UserInput::from(vec![output(two), output(one)]))
        .await
        .unwrap();
    assert_eq!(world.refused(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_while_an_answer_comes_is_stored_and_the_answer_too() {
    let world = World::new(Options::new(5));
    let store = Arc::new(MemoryStore::new());
    let session = world.session().store(store.clone()).start().await.unwrap();
    for turn in 0..6 {
        session.ask(chatter(turn, 200)).await.unwrap();
    }
    let turn = session.send("Go on.").await.unwrap();
    session.compact(None).await.unwrap();
    turn.answer().await.unwrap();
    session.ask("And on.").await.unwrap();
    let loaded = store.load(session.id()).await.unwrap();
    assert_eq!(
        loaded.counts.message_count as usize,
        session.status().messages
    );
    assert_eq!(loaded.counts.epoch, session.status().epoch);
    assert_eq!(world.refused(), 0);
}

/// A store in which writing can be made to fail.
struct Failing {
    inner: MemoryStore,
    fault: Arc<AtomicU8>,
}

/// Nothing is written; nothing is written and nothing can be said of it; it is written and nothing can be said of it.
const FULL: u8 = 1;
const LOST: u8 = 2;
const WRITTEN: u8 = 3;

struct FailingWriter {
    inner: Box<dyn Writer>,
    fault: Arc<AtomicU8>,
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        source: "the disk is gone".into(),
    }
}

#[async_trait]
impl Writer for FailingWriter {
    fn id(&self) -> &SessionId {
        self.inner.id()
    }

    async fn commit(&mut self, at_ms: i64, changes: Vec<Change>) -> Result<Counts, StoreError> {
        match self.fault.load(Ordering::SeqCst) {
            FULL => Err(StoreError::Full {
                source: "no space".into(),
            }),
            LOST => Err(unavailable()),
            WRITTEN => {
                self.inner.commit(at_ms, changes).await?;
                Err(unavailable())
            }
            _ => self.inner.commit(at_ms, changes).await,
        }
    }

    async fn load(&mut self) -> Result<Loaded, StoreError> {
        self.inner.load().await
    }
}

#[async_trait]
impl Store for Failing {
    async fn create(&self, new: NewSession, changes: Vec<Change>) -> Result<Counts, StoreError> {
        self.inner.create(new, changes).await
    }
    async fn open(&self, id: &SessionId, wait: Duration) -> Result<Box<dyn Writer>, StoreError> {
        Ok(Box::new(FailingWriter {
            inner: self.inner.open(id, wait).await?,
            fault: Arc::clone(&self.fault),
        }))
    }
    async fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        self.inner.delete(id).await
    }
    async fn sessions(&self, page: Page) -> Result<Vec<SessionInfo>, StoreError> {
        self.inner.sessions(page).await
    }
    async fn session(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        self.inner.session(id).await
    }
    async fn load(&self, id: &SessionId) -> Result<Loaded, StoreError> {
        self.inner.load(id).await
    }
    async fn messages(
        &self,
        id: &SessionId,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        self.inner.messages(id, positions).await
    }
    async fn superseded(
        &self,
        id: &SessionId,
        page: Page,
    ) -> Result<Vec<SupersededMessage>, StoreError> {
        self.inner.superseded(id, page).await
    }
    async fn memories(&self, id: &SessionId, page: Page) -> Result<Vec<MemoryInfo>, StoreError> {
        self.inner.memories(id, page).await
    }
    async fn memory(&self, id: &SessionId, version: u64) -> Result<MemoryRow, StoreError> {
        self.inner.memory(id, version).await
    }
    async fn events(&self, id: &SessionId, page: Page) -> Result<Vec<EventRow>, StoreError> {
        self.inner.events(id, page).await
    }
    async fn usage(&self, id: &SessionId, page: Page) -> Result<Vec<UsageRow>, StoreError> {
        self.inner.usage(id, page).await
    }
    async fn search(&self, search: &Search) -> Result<Vec<Hit>, StoreError> {
        self.inner.search(search).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_loses_nothing_and_is_caught_up_with() {
    for fault in [FULL, LOST, WRITTEN] {
        let world = World::new(Options::new(5));
        let faults = Arc::new(AtomicU8::new(0));
        let store = Arc::new(Failing {
            inner: MemoryStore::new(),
            fault: Arc::clone(&faults),
        });
        let session = world.session().store(store.clone()).start().await.unwrap();
        session.ask("One.").await.unwrap();

        // The answer comes and cannot be stored.
        let turn = session.send("Two.").await.unwrap();
        faults.store(fault, Ordering::SeqCst);
        let error = turn.answer().await.unwrap_err();
        assert!(matches!(error, SendError::AnswerNotStored(_)), "{error:?}");
        assert_eq!(session.status().messages, 4);

        // Nothing more can be said, and nothing is sent.
        let asked = world.provider.ledger().len();
        let error = session.ask("Lost?").await.unwrap_err();
        assert!(matches!(error, SendError::Store(_)), "{error:?}");
        assert_eq!(world.provider.ledger().len(), asked);
        assert!(session.pin("A fact.").await.is_err());

        faults.store(0, Ordering::SeqCst);
        session.ask("Three.").await.unwrap();
        assert_eq!(session.status().messages, 6, "fault {fault}");
        let id = session.id().clone();
        session.close().await.unwrap();
        let session = world.session().store(store).resume(&id).await.unwrap();
        assert_eq!(session.status().messages, 6, "fault {fault}");
        assert_eq!(session.pins().len(), 1);
        let mut said = Vec::new();
        for index in [0, 2, 4] {
            let message = session.message_at(index).await.unwrap();
            said.push(String::from_utf8_lossy(&message.original).into_owned());
        }
        assert!(said[0].contains("One.") && said[1].contains("Two.") && said[2].contains("Three."));
        assert_eq!(world.refused(), 0);
    }
}
