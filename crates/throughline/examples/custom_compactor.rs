//! A compactor of one's own: here one that leaves out half of what code has drafted.
//!
//! `cargo run -p throughline --example custom_compactor`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use async_trait::async_trait;
use throughline::compactor::{Compactor, CompactorResult, LiveRequest};
use throughline::engine::UpdateOrder;
use throughline::{Client, Credential, Session};
use throughline_simulator::{Options, SimulatedProvider};
use tokio_util::sync::CancellationToken;

struct Shorter;

#[async_trait]
impl Compactor for Shorter {
    async fn compact(
        &self,
        order: UpdateOrder,
        live: LiveRequest,
        _stop: CancellationToken,
    ) -> CompactorResult {
        // One that asks a model waits until the conversation waits for nothing.
        live.quiet().await;
        let mut memory = order.draft.as_ref().clone();
        // What the user ruled is put back by the engine, whatever is left out here.
        let half = memory.items.len().div_ceil(2);
        memory.items.truncate(half);
        CompactorResult {
            result: Ok(memory),
            calls: Vec::new(),
            findings: Vec::new(),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    let client = Client::anthropic()
        .credential(Credential::new("any")?)
        .transport(provider)
        .build()?;
    let session = Session::builder(client, "claude-opus-4-6")
        .max_tokens(2_000)
        .compactor(Shorter)
        .start()
        .await?;
    session.ask("Never use tabs. The port is 8443.").await?;
    for step in 0..6 {
        session
            .ask(format!("Step {step}: {}", "and then? ".repeat(200)))
            .await?;
    }
    println!("{:?}", session.compact(None).await?);
    println!(
        "{}",
        session
            .memory()
            .map_or(String::new(), |memory| memory.text.clone())
    );
    session.close().await?;
    Ok(())
}
