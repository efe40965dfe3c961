//! What was typed behind `throughline simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use throughline_simulator::Faults;

use crate::tokens::window;

/// Simulate a provider, to try programs without a key
///
/// Answers Anthropic Messages, OpenAI Chat Completions and OpenAI Responses as the providers do: it refuses what they
/// refuse, caches prompts by their rules, takes the time of a big model, and streams. What it says is made up; it uses
/// the tools that it is offered, answers questions from what it was sent, and writes a memory when asked for one. Nothing
/// leaves this machine.
///
/// The first line of the output says where it listens. Ctrl-C ends it.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline simulate
      On port 8484 of this machine
  throughline simulate --window 30000 --latency none
      Conversations soon become too long, and nothing takes time
  throughline simulate --listen 127.0.0.1:0 --record bodies.jsonl --seed 7
      On a free port; every body that comes is written down
  throughline simulate --faults \"429=20:0.05,529@3,cut=12@7,summary=empty@1\"
      Things go wrong

A client is pointed to it by ANTHROPIC_BASE_URL=http://127.0.0.1:8484 or
OPENAI_BASE_URL=http://127.0.0.1:8484/v1, with any key.

Faults are rules with commas between them. The first one that hits counts:
  429, 429=30, 429=none    rate limit, with `retry-after` (5 s), with 30 s, without
  spend-cap                the money is spent: no waiting helps
  500, 504, 529            error, timeout, overload
  cut, cut=12              the connection breaks anywhere, or after 12 events
  stall, stall=12          nothing comes any more, and the connection stays open
  error, error=12          an error event in the stream
  slow=30                  the first byte comes 30 s later
  pause                    `pause_turn`, if a tool of the provider's is offered
  refusal, truncated       the reply is refused, or cut off
  summary=KIND             a summary is bad: empty, null, blank, toolcall, refusal, error,
                           truncated, skeleton, language, larger, prose
After a rule comes how often it applies: `:0.05` of all calls, or `@3`, `@2+7`, `@3-5` for the
third, second and seventh, third to fifth; without either, each. Rules for summaries count
requests for summaries.

The file of --record has one JSON object a line: `at_ms` (since the start), `path`,
`headers` (without credentials) and `body`.

", "\
Exit codes:
  0    ended by Ctrl-C or SIGTERM
  2    the arguments are wrong, or the address is not free
  4    the recording cannot be written
  70   a mistake in this program"))]
pub(crate) struct Simulate {
    /// Address or host name, and port, to listen on; port 0 chooses a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8484", value_parser = listen)]
    pub(crate) listen: String,

    /// Window of all models, in tokens; without it each has its own
    #[arg(long, value_name = "N", value_parser = window)]
    pub(crate) window: Option<u64>,

    /// Seed of everything random: the same seed gives the same replies
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// How long answers take
    #[arg(long, value_enum, value_name = "LATENCY", default_value_t = SimulatedLatency::Real)]
    pub(crate) latency: SimulatedLatency,

    /// File that every received body is appended to, readable by you alone
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// What goes wrong, and when
    #[arg(
        long,
        value_name = "SPEC",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) faults: Faults,

    /// TOML file that corrects and extends the list of models
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
}

/// How long answers of `simulate` take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulatedLatency {
    /// As long as a large model
    Real,
    /// No time
    None,
}

/// A name is looked up when the server starts.
fn listen(text: &str) -> Result<String, String> {
    let is_address = text
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    match is_address {
        true => Ok(text.to_owned()),
        false => Err(
            "an address and a port are needed, such as 127.0.0.1:8484 or localhost:0".to_owned(),
        ),
    }
}
