//! A session that goes on in another process. Run it twice with the same file.
//!
//! `cargo run -p throughline --example resume -- /tmp/sessions.db`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use throughline::providers::client::Client;
use throughline::providers::credential::Credential;
use throughline::store::{SessionId, SqliteStore, Store, StoreError};
use throughline::transcript::wire::Wire;
use throughline::{OpenError, Session};
use throughline_simulator::{Options, SimulatedProvider};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("say where the sessions are to be kept: resume FILE")?;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path).await?);
    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    let client = Client::builder(Wire::Anthropic, "http://simulator")
        .credential(Credential::new("any")?)
        .transport(Arc::new(provider))
        .build()?;
    let builder = || Session::builder(client.clone(), "claude-opus-4-6").store(Arc::clone(&store));
    let id = SessionId::new("example")?;
    let session = match builder().resume(&id).await {
        Err(OpenError::Store(StoreError::SessionNotFound { .. })) => {
            println!("a new session");
            builder().id(id).start().await?
        }
        opened => opened?,
    };
    println!("{} messages so far", session.status().messages);
    let answer = session
        .ask("Remember: the deploy region is eu-north-3. What else do you know?")
        .await?;
    println!("{}", answer.text());
    session.close().await?;
    Ok(())
}
