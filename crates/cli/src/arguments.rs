//! What was typed. What it means is decided by the commands.

pub(crate) mod chat;
pub(crate) mod connection;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use throughline_simulator::Faults;
use throughline_transcript::cut::Tail;
use throughline_transcript::formats;
use throughline_transcript::wire::Wire;

use crate::error::EXIT_CODES;

#[derive(Debug, Parser)]
#[command(
    name = "throughline",
    version,
    about = "Session memory for conversations with language models",
    long_about = "Session memory for conversations with language models.\n\n\
        Reads the session files of coding agents, chat exports and request bodies, and writes a memory from which the \
        work can go on. Everything happens on this machine: no key, no network.",
    after_help = "Start with: throughline compact SESSION-FILE",
    after_long_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Chat(Box<chat::Chat>),
    Demo(Demo),
    Compact(Compact),
    Inspect(Inspect),
    Check(Check),
    Convert(Convert),
    Models(Models),
    Simulate(Simulate),
    /// List the formats that can be read
    #[command(after_long_help = EXIT_CODES)]
    Formats,
    Completions(Completions),
    Man(Man),
}

/// Where the conversations come from.
#[derive(Args, Debug)]
pub(crate) struct Source {
    /// Session file, chat export or request body; `-` for standard input
    ///
    /// Files that are compressed with gzip are unpacked. An opencode database (opencode.db), a folder of opencode
    /// exports (ses_*.json) and an OpenHands conversation folder are read too.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Format of the input; found out if not given
    ///
    /// `throughline formats` lists them.
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = formats_parser(), hide_default_value = true, hide_possible_values = true)]
    pub(crate) from: String,
}

/// Which model the tokens are counted for.
#[derive(Args, Debug)]
pub(crate) struct ModelChoice {
    /// Count tokens as this model does
    ///
    /// Exact for OpenAI's encodings; for Claude, whose tokenizers are not public, and for others an estimate that errs
    /// high. Without a model, tokens of cl100k_base are counted exactly, so that sizes are the same everywhere.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// TOML file that corrects and extends the list of models
    ///
    /// Of the form of the embedded list (`throughline models`): [[model]] entries with `id`, `window`, `tokenizer`, ...
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
}

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

    /// What all chance comes from: the same seed gives the same session
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Window of the model, in tokens
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = demo_window)]
    pub(crate) window: u64,

    /// File for a chart of the context, request by request
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Write the memory of a session
///
/// Reads a conversation and writes what is needed to go on with it: the task in the user's words, corrections,
/// decisions, errors, where work stopped, what is still to do, and the names that later work will need. The same input
/// gives the same bytes. Secrets are taken out.
///
/// In a terminal the memory is shown formatted, in a pipe only the document is written. What could not be read is
/// reported on standard error.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline compact session.jsonl
      Show the memory of a session
  throughline compact session.jsonl --budget 2000 -o memory.md
      At most 2,000 tokens, into a file that only you can read
  throughline compact session.jsonl --to json --prior memory.json -o memory.json
      Bring an existing memory up to date
  throughline compact request.json --to request --keep-tail 8000tok > smaller.json
      A smaller request: memory, and the end of the conversation word for word
  throughline compact exports/ --all memories/
      One memory for each conversation
  gunzip -c log.gz | throughline compact - --from claude-code --focus \"database migration\"
      From a pipe, with an eye on one matter

", "\
Exit codes:
  0    done
  2    the arguments are wrong, or the input cannot be read
  3    nothing to do (no messages, nothing before the tail), or the request that results
       would not be smaller, or would be refused
  4    the output cannot be written
  70   a mistake in this program
  130  interrupted"))]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) source: Source,

    /// What to write
    #[arg(long, value_enum, value_name = "FORM", default_value_t = To::Markdown)]
    pub(crate) to: To,

    /// Most tokens that the memory may have
    ///
    /// A hard cap on the memory as it is written. Tokens of cl100k_base are counted, exactly and the same on every
    /// machine, unless --model names a model. `4k` is 4000.
    #[arg(long, value_name = "TOKENS", default_value = "4000", value_parser = budget, allow_negative_numbers = true)]
    pub(crate) budget: usize,

    /// Memory to bring up to date, as written by `--to json`
    ///
    /// Only the messages after those that it covers are read; its items stay as they are unless something changed.
    #[arg(long, value_name = "FILE")]
    pub(crate) prior: Option<PathBuf>,

    /// What the memory should be about
    #[arg(long, value_name = "TEXT")]
    pub(crate) focus: Option<String>,

    /// How much of the end is kept word for word: messages, or tokens with `tok`
    ///
    /// `12` keeps at least 12 messages, `8000tok` at most 8,000 tokens. A tool call is never parted from its result.
    /// With `--to request` the tail is part of the output, secrets in it included; without --keep-tail it begins with the user's
    /// latest request. With every other form the memory covers only what is before the tail.
    #[arg(long, value_name = "N|Ntok", value_parser = keep_tail)]
    pub(crate) keep_tail: Option<Tail>,

    /// Conversation of the input: its id, the beginning of it, or its number in the list
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    pub(crate) session: Option<String>,

    /// Take all conversations and write one file each into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    pub(crate) all: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelChoice,

    /// Wire format of `--to request`; the source's own, or anthropic
    #[arg(long, value_name = "WIRE", value_parser = wires_parser())]
    pub(crate) wire: Option<String>,

    /// Leave secrets in
    #[arg(long)]
    pub(crate) no_redact: bool,

    /// File to write to, readable by you alone; replaced in one step
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What `compact` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// Session memory for people and models
    Markdown,
    /// The full document; the only form that can be read back (--prior)
    Json,
    /// Compact JSON object
    Object,
    /// Block for the end of a system prompt
    System,
    /// First user message of a restored session
    UserMessage,
    /// Request body: memory and tail, ready to be sent
    Request,
}

/// Tell what is in a session file
///
/// Format, conversations, messages, turns, steps, time, tokens by speaker and kind, the largest blocks, tool calls,
/// errors, broken pairs of calls and results, and where the session was compacted before. Secrets are not shown.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline inspect session.jsonl
  throughline inspect opencode.db
      List the conversations
  throughline inspect opencode.db --session 3
  throughline inspect session.jsonl --json | jq '.sessions[0].tokens.total'

The JSON (schema `throughline.inspect/1`) has `file`, `format`, `bytes`, `counted_in`,
`skipped[]` and `sessions[]`, each with `number`, `id`, `parent_id`, `title`, `model`, `cwd`,
`messages`, `turns`, `steps`, `first_at`, `last_at`, `tokens{total, system, tools, messages,
by_speaker{}, by_kind{}}`, `usage{}`, `largest_blocks[]`, `tool_calls[]`, `errors{total,
lines[]}`, `problems[]`, `compactions[]` and `legal_cuts`. Messages are counted from 0, lines
from 1. Fields may be added, never changed.

", "\
Exit codes:
  0    done
  2    the arguments are wrong, or the input cannot be read
  4    the output cannot be written
  70   a mistake in this program"))]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) source: Source,

    /// Conversation of the input: its id, the beginning of it, or its number in the list
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    #[command(flatten)]
    pub(crate) model: ModelChoice,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say whether a provider would refuse a request
///
/// Checks a request body, or a file with one body a line, against every rule of the provider that the body alone can
/// break: pairs of tool calls and results, order of roles, empty texts, thinking blocks, cache markers, limits. Each
/// finding has a code, a path and a sentence. Nothing is sent.
///
/// What the model can do is looked up under the name in the body, or under --model.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline check request.json
  throughline check request.json --wire openai-chat --strict-alternation
  throughline check requests.jsonl --json
  throughline convert session.jsonl --to anthropic | throughline check -

The JSON (schema `throughline.check/1`) has `file`, `valid` and `bodies[]`, each with `line`
(null for a single body), `wire`, `model`, `valid`, `omitted` and `findings[]` of `{code,
severity, path, message, source}`. Fields may be added, never changed.

", "\
Exit codes:
  0    valid; there may be warnings
  1    the provider would refuse it
  2    the arguments are wrong, or the input cannot be read
  4    the output cannot be written
  70   a mistake in this program"))]
pub(crate) struct Check {
    /// Request body (JSON), or one body a line; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Wire format; found out if not given
    #[arg(long, value_name = "WIRE", value_parser = wires_parser())]
    pub(crate) wire: Option<String>,

    /// Check against what this model can do, whatever the body names
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// TOML file that corrects and extends the list of models
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,

    /// The `anthropic-version` header of the request
    #[arg(long, value_name = "VERSION")]
    pub(crate) anthropic_version: Option<String>,

    /// A name of the `anthropic-beta` header; without one, what needs a beta is only warned of
    #[arg(long = "beta", value_name = "NAME", value_delimiter = ',')]
    pub(crate) betas: Vec<String>,

    /// Hold the request to the chat templates of many local models: one system message, then user and assistant in turn
    #[arg(long)]
    pub(crate) strict_alternation: bool,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a conversation as a request of another format
///
/// The result always passes `throughline check`. What had to be repaired or could not be carried over is said on
/// standard error. `jsonl` writes one message a line, in a neutral form.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline convert session.jsonl --to anthropic > request.json
  throughline convert request.json --to openai-responses --model gpt-5.1
  throughline convert export.json --session 2 --to jsonl -o messages.jsonl

", "\
Exit codes:
  0    done; losses are on standard error
  2    the arguments are wrong, or the input cannot be read
  3    nothing to do: no messages, or a request that would be refused
  4    the output cannot be written
  70   a mistake in this program"))]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) source: Source,

    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: ConvertTo,

    /// Conversation of the input: its id, the beginning of it, or its number in the list
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Model that the request is for; the source's own if not given
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// File to write to, readable by you alone; replaced in one step
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What `convert` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertTo {
    /// Anthropic Messages request
    Anthropic,
    /// OpenAI Chat Completions request
    OpenaiChat,
    /// OpenAI Responses request
    OpenaiResponses,
    /// One message a line
    Jsonl,
}

/// List the known models: windows, limits, prices, and where the figures come from
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline models
  throughline models claude
  throughline models --catalogue mine.toml --json

", "\
Exit codes:
  0    done
  2    the arguments are wrong, or the catalogue cannot be read
  3    no model matches"))]
pub(crate) struct Models {
    /// Only models whose id, alias or provider contains this
    #[arg(value_name = "PART")]
    pub(crate) part: Option<String>,

    /// TOML file that corrects and extends the list of models
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Play a provider, to try programs against without a key
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
Behind a rule stands how often: `:0.05` of all calls, or `@3`, `@2+7`, `@3-5` for the third,
second and seventh, third to fifth; without either, each. Rules for summaries count requests
for summaries.

The file of --record has one JSON object a line: `at_ms` (since the start), `path`,
`headers` (without credentials) and `body`.

", "\
Exit codes:
  0    ended by Ctrl-C or SIGTERM
  2    the arguments are wrong, or the address is not free
  4    the recording cannot be written
  70   a mistake in this program"))]
pub(crate) struct Simulate {
    /// Address or name of this machine, and port, to listen on; port 0 is a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8484", value_parser = listen)]
    pub(crate) listen: String,

    /// Window of all models, in tokens; without it each has its own
    #[arg(long, value_name = "N", value_parser = window)]
    pub(crate) window: Option<u64>,

    /// What all chance comes from: the same seed gives the same replies
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
    /// As with a big model
    Real,
    /// No time
    None,
}

/// Write a completion script for a shell
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  throughline completions bash > ~/.local/share/bash-completion/completions/throughline
  throughline completions zsh > ~/.zfunc/_throughline
  throughline completions fish > ~/.config/fish/completions/throughline.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  throughline man | man -l -
  throughline man ~/.local/share/man/man1
      One page for each command")]
pub(crate) struct Man {
    /// Folder for the pages; without it the main page is written to standard output
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

fn turns(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(turns) if (1..=10_000).contains(&turns) => Ok(turns),
        _ => Err("a number from 1 to 10000".to_owned()),
    }
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

/// Below that, system prompt, tools and one turn of the demo leave no room for a memory.
fn demo_window(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(window) if (32_000..=2_000_000).contains(&window) => Ok(window),
        _ => Err("a number from 32000 to 2000000".to_owned()),
    }
}

fn formats_parser() -> PossibleValuesParser {
    let auto = PossibleValue::new("auto").help("found out");
    std::iter::once(auto)
        .chain(
            formats::ALL
                .iter()
                .map(|format| PossibleValue::new(format.name()).help(format.about())),
        )
        .into()
}

fn wires_parser() -> PossibleValuesParser {
    Wire::ALL.map(Wire::name).into()
}

/// Above this, a number is a slip of the finger.
pub(crate) const TOKENS_MAX: usize = 100_000_000;

fn budget(text: &str) -> Result<usize, String> {
    match tokens(text) {
        Some(0) => Err("a memory has at least some tokens".to_owned()),
        Some(count) if count > TOKENS_MAX => Err(format!("more than {TOKENS_MAX} tokens")),
        Some(count) => Ok(count),
        None => Err("give a number of tokens, such as 4000 or 4k".to_owned()),
    }
}

/// Windows from a thousand tokens on: no request fits into less.
fn window(text: &str) -> Result<u64, String> {
    const WINDOW_MIN: usize = 1000;
    match tokens(text) {
        Some(count) if count < WINDOW_MIN => {
            Err(format!("a window has at least {WINDOW_MIN} tokens"))
        }
        Some(count) if count > TOKENS_MAX => Err(format!("more than {TOKENS_MAX} tokens")),
        Some(count) => Ok(count as u64),
        None => Err("give a number of tokens, such as 30000 or 30k".to_owned()),
    }
}

fn keep_tail(text: &str) -> Result<Tail, String> {
    let number = text.trim();
    let parsed = match number.strip_suffix("tok") {
        Some(number) => tokens(number).map(Tail::Tokens),
        None => number.parse().ok().map(Tail::Messages),
    };
    parsed.ok_or_else(|| {
        "give a number of messages, such as 12, or of tokens, such as 8000tok".to_owned()
    })
}

/// `4000`, `4_000`, `4,000` and `4k`.
pub(crate) fn tokens(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    let digits: String = digits.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(
        digits
            .parse::<usize>()
            .unwrap_or(usize::MAX)
            .saturating_mul(factor),
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn budgets_are_numbers_of_tokens() {
        let check =
            |text, expected: Option<usize>| assert_eq!(budget(text).ok(), expected, "{text}");
        check("4000", Some(4000));
        check("4_000", Some(4000));
        check("4,000", Some(4000));
        check("8k", Some(8000));
        check("0", None);
        check("-5", None);
        check("abc", None);
        check("", None);
        check("k", None);
        check("99999999999999999999999", None);
    }

    #[test]
    fn tails_are_messages_or_tokens() {
        let check =
            |text, expected: Option<Tail>| assert_eq!(keep_tail(text).ok(), expected, "{text}");
        check("12", Some(Tail::Messages(12)));
        check("0", Some(Tail::Messages(0)));
        check("8000tok", Some(Tail::Tokens(8000)));
        check("8ktok", Some(Tail::Tokens(8000)));
        check("tok", None);
        check("many", None);
    }
}
