//! What was typed behind `throughline demo`.

use std::path::PathBuf;

use clap::Args;

/// Play one long session three ways: without compaction, traditionally, instantly
///
/// A seeded user works with a simulated model for many turns, tells it facts, corrects some of them, and asks for all of
/// them at the end. The same session is played with no compaction, with traditional compaction (the request waits while a
/// summary is made) and with an instant swap of a memory from the background. The clock is virtual, so that the waits are
/// those of a real model and the demo takes seconds. What code takes at a swap is measured by the real clock. No key, no
/// network.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline demo
      A table of waits, tokens, cost and what was remembered
  throughline demo --turns 400 --seed 7 --svg chart.svg
      A longer session, and a picture of its context
  throughline demo --json
      The numbers, for scripts

", "\
Exit codes:
  0    done
  2    the arguments are wrong
  4    the chart cannot be written
  70   a mistake in this program
  130  interrupted"))]
pub(crate) struct Demo {
    /// Print the numbers as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Turns of the session
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = turns)]
    pub(crate) turns: usize,

    /// Seed of everything random: the same seed gives the same session
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Window of the model, in tokens
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = demo_window)]
    pub(crate) window: u64,

    /// File for a chart of the context, request by request
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

fn turns(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(turns) if (1..=10_000).contains(&turns) => Ok(turns),
        _ => Err("a number from 1 to 10000".to_owned()),
    }
}

/// Below that, system prompt, tools and one turn of the demo leave no room for a memory.
fn demo_window(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(window) if (32_000..=2_000_000).contains(&window) => Ok(window),
        _ => Err("a number from 32000 to 2000000".to_owned()),
    }
}
