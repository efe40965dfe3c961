//! A conversation that goes past its window, against a simulated provider that needs no key.
//!
//! `cargo run -p throughline --example chat`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use throughline::engine::EngineEvent;
use throughline::futures::FutureExt;
use throughline::prelude::*;
use throughline_simulator::{Options, SimulatedProvider};

const MODEL: &str = "claude-opus-4-6";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    let client = Client::anthropic()
        .credential(Credential::new("any")?)
        .transport(provider)
        .build()?;
    let session = Session::builder(client, MODEL)
        .system("You are a careful assistant.")
        .max_tokens(2_000)
        .window(20_000)
        .compact_with_model()
        .start()
        .await?;
    let mut events = Box::pin(session.events());
    session
        .ask("Remember: the deploy region is eu-north-3. Never write to stdout.")
        .await?;
    for turn in 1..=40 {
        let question = format!("Step {turn}: {}", "what does this module do? ".repeat(60));
        session.ask(question).await?;
        while let Some(Some(event)) = events.next().now_or_never() {
            if let SessionEvent::Engine(EngineEvent::Swapped {
                tokens_before,
                tokens_after,
                waited_ms,
                ..
            }) = event
            {
                println!(
                    "turn {turn}: a memory took the place of the old messages, {tokens_before} -> {tokens_after} tokens, \
                     {waited_ms} ms of waiting"
                );
            }
        }
    }
    let answer = session.ask("What is the deploy region?").await?;
    println!("answer: {}", answer.text());
    println!(
        "memory:\n{}",
        session
            .memory()
            .map_or(String::new(), |memory| memory.text.clone())
    );
    let costs = session.costs();
    println!(
        "cost: {:?} for the conversation, {:?} for memories",
        costs.main.cost, costs.updates.cost
    );
    session.close().await?;
    Ok(())
}
