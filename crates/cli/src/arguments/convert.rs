//! What was typed behind `throughline convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use throughline_transcript::cut::Tail;

use super::Source;
use super::compact::{budget, keep_tail};

/// Write a conversation in another format: a request, or a session that an agent resumes
///
/// A request always passes `throughline check`. What had to be repaired or could not be carried over is reported on
/// standard error. `jsonl` writes one message a line, in a neutral form.
///
/// `claude-code` and `codex` write a session file that these programs resume: a memory in place of the old messages, and
/// the end of the conversation word for word. The agent continues at once with a small context. The original file stays
/// as it is.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline convert session.jsonl --to anthropic > request.json
  throughline convert request.json --to openai-responses --model gpt-5.1
  throughline convert export.json --session 2 --to jsonl -o messages.jsonl
  throughline convert session.jsonl --to claude-code --install
      Compact a session; prints the command that resumes it
  throughline convert rollout.jsonl --to claude-code --whole --install
      Continue a Codex session in Claude Code, with every message

", "\
Exit codes:
  0    done; losses are reported on standard error
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

    /// For agents: largest memory, in tokens
    #[arg(long, value_name = "TOKENS", default_value = "4000", value_parser = budget, allow_negative_numbers = true)]
    pub(crate) budget: usize,

    /// For agents: how much of the end is kept verbatim, in messages, or in tokens with `tok`
    ///
    /// Without it, the tail begins with the latest request.
    #[arg(long, value_name = "N|Ntok", value_parser = keep_tail, conflicts_with = "whole")]
    pub(crate) keep_tail: Option<Tail>,

    /// For agents: write every message and no memory
    #[arg(long)]
    pub(crate) whole: bool,

    /// For agents: put the file where the agent looks for sessions
    ///
    /// Claude Code: $CLAUDE_CONFIG_DIR or ~/.claude. Codex: $CODEX_HOME or ~/.codex.
    #[arg(long, conflicts_with = "output")]
    pub(crate) install: bool,

    /// For agents: folder that the session works in [default: the source's, or the present one]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

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
    /// Session file of Claude Code
    ClaudeCode,
    /// Session file of Codex
    Codex,
}
