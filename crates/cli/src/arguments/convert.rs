//! What was typed behind `throughline convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Source;

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

    /// Model that the request is for [default: the source's]
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
