//! The memory of one session, to begin another one with: as the first message, or in the system prompt.
//!
//! `cargo run -p throughline --example memory_elsewhere`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use throughline::transcript::request::MemoryPlace;
use throughline::{Client, Credential, Session};
use throughline_simulator::{Options, SimulatedProvider};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    let client = Client::anthropic()
        .credential(Credential::new("any")?)
        .transport(provider.clone())
        .build()?;
    let builder = || Session::builder(client.clone(), "claude-opus-4-6").max_tokens(2_000);

    let first = builder().start().await?;
    first
        .ask("Remember: the deploy region is eu-north-3. Never use tabs.")
        .await?;
    for step in 0..4 {
        first
            .ask(format!("Step {step}: {}", "and then? ".repeat(200)))
            .await?;
    }
    first.compact(Some("deployment")).await?;
    let memory = first
        .memory()
        .ok_or("there is a memory now")?
        .memory
        .clone();
    first.close().await?;

    for place in [MemoryPlace::FirstUserMessage, MemoryPlace::SystemPrompt] {
        let session = builder()
            .memory_place(place)
            .memory(memory.clone())
            .start()
            .await?;
        let answer = session.ask("What is the deploy region?").await?;
        println!("{place:?}: {}", answer.text());
        let body = provider.ledger().pop().ok_or("a request was sent")?.body;
        println!(
            "{} bytes were sent, the rule is in them: {}",
            body.len(),
            String::from_utf8_lossy(&body).contains("Never use tabs")
        );
        session.close().await?;
    }
    Ok(())
}
