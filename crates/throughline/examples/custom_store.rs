//! A store of one's own: here one that keeps sessions in memory and says what is stored when. One that keeps them
//! elsewhere implements the same two traits, and can be held against the rules with `throughline_store::testing`.
//!
//! `cargo run -p throughline --example custom_store`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use throughline::store::{
    Change, Counts, EventRow, Hit, Loaded, MemoryInfo, MemoryRow, MemoryStore, NewSession, Page,
    Search, SessionId, SessionInfo, Store, StoreError, StoredMessage, SupersededMessage, UsageRow,
    Writer,
};
use throughline::{Client, Credential, Session};
use throughline_simulator::{Options, SimulatedProvider};

struct Talkative {
    inner: MemoryStore,
}

/// The right to change one session: only one at a time has it.
struct TalkativeWriter {
    inner: Box<dyn Writer>,
}

#[async_trait]
impl Writer for TalkativeWriter {
    fn id(&self) -> &SessionId {
        self.inner.id()
    }

    async fn commit(&mut self, at_ms: i64, changes: Vec<Change>) -> Result<Counts, StoreError> {
        // All of them or none: that is what the session relies on.
        for change in &changes {
            match change {
                Change::Append { messages, .. } => println!("messages: {}", messages.len()),
                Change::Memory(row) => println!("memory version {}", row.version),
                Change::Adopt { .. } => println!("a memory takes the place of old messages"),
                Change::Truncate { to_count } => println!("back to {to_count} messages"),
                _ => {}
            }
        }
        self.inner.commit(at_ms, changes).await
    }

    async fn load(&mut self) -> Result<Loaded, StoreError> {
        self.inner.load().await
    }
}

#[async_trait]
impl Store for Talkative {
    async fn create(&self, new: NewSession, changes: Vec<Change>) -> Result<Counts, StoreError> {
        println!("session {}", new.title);
        self.inner.create(new, changes).await
    }

    async fn open(&self, id: &SessionId, wait: Duration) -> Result<Box<dyn Writer>, StoreError> {
        let inner = self.inner.open(id, wait).await?;
        Ok(Box::new(TalkativeWriter { inner }))
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    let client = Client::anthropic()
        .credential(Credential::new("any")?)
        .transport(provider)
        .build()?;
    let store = Talkative {
        inner: MemoryStore::new(),
    };
    let session = Session::builder(client, "claude-opus-4-6")
        .title("about a port")
        .max_tokens(2_000)
        .store(store)
        .start()
        .await?;
    session.ask("Remember: the port is 8443.").await?;
    for step in 0..4 {
        session
            .ask(format!("Step {step}: {}", "and then? ".repeat(200)))
            .await?;
    }
    session.compact(None).await?;
    session.ask("Which port?").await?;
    session.close().await?;
    Ok(())
}
