//! A session that is resumed in another process. Run it twice with the same file.
//!
//! `cargo run -p throughline --example resume -- /tmp/sessions.db`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use throughline::prelude::*;
use throughline_simulator::{Options, SimulatedProvider};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("say where the sessions are to be kept: resume FILE")?;
    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    let client = Client::anthropic()
        .credential(Credential::new("any")?)
        .transport(provider)
        .build()?;
    let session = Session::builder(client, "claude-opus-4-6")
        .store(SqliteStore::open(path).await?)
        .open_or_start(&SessionId::new("example")?)
        .await?;
    println!("{} messages so far", session.status().messages);
    let answer = session
        .ask("Remember: the deploy region is eu-north-3. What else do you know?")
        .await?;
    println!("{}", answer.text());
    session.close().await?;
    Ok(())
}
