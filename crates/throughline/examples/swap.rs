//! How long a swap holds a request up, in real time: SQLite on disk, a context near the hard mark of a 200k window.
//! Then what a turn takes with a short and with a long archive.
//!
//! `cargo run --release -p throughline --example swap`
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use throughline::futures::FutureExt;
use throughline::prelude::*;
use throughline_simulator::{Options, Reply, SimulatedProvider};

const MODEL: &str = "claude-opus-4-6";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db")).await?);
    let mut options = Options::new(1).without_latency();
    options.keeps_bodies = false;
    let provider = SimulatedProvider::new(options);
    let client = Client::anthropic()
        .credential(Credential::new("any")?)
        .transport(provider.clone())
        .build()?;
    let session = Session::builder(client.clone(), MODEL)
        .store(store.clone())
        .window(200_000)
        .start()
        .await?;
    let mut events = Box::pin(session.events());
    let mut held: Vec<Duration> = Vec::new();
    let mut sends: Vec<(usize, Duration)> = Vec::new();
    for turn in 0..400_usize {
        provider.script(Reply::text(text(turn, 500)));
        let began = Instant::now();
        let sent = session.send(text(turn, 2_500)).await?;
        sends.push((turn, began.elapsed()));
        sent.answer().await?;
        while let Some(Some(event)) = events.next().now_or_never() {
            if let SessionEvent::Swap { held: wait, .. } = event {
                held.push(wait);
            }
        }
    }
    held.sort_unstable();
    println!(
        "{} swaps, held up: median {:?}, most {:?}",
        held.len(),
        held.get(held.len() / 2),
        held.last()
    );
    let id = session.id().clone();
    session.close().await?;
    let began = Instant::now();
    let session = Session::builder(client, MODEL)
        .store(store)
        .resume(&id)
        .await?;
    println!(
        "opening it again: {:?}, {} messages",
        began.elapsed(),
        session.status().messages
    );
    let median = |sends: &[(usize, Duration)]| {
        let mut times: Vec<Duration> = sends.iter().map(|(_, time)| *time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    };
    println!(
        "a message stored and its request made: {:?} at first, {:?} in the end",
        sends.get(..100).and_then(median),
        sends.get(300..).and_then(median)
    );
    session.close().await?;
    Ok(())
}

fn text(turn: usize, words: usize) -> String {
    (0..words)
        .map(|word| format!("word{} ", (turn * 31 + word * 7) % 997))
        .collect()
}
