//! What was typed behind `throughline inspect`.

use clap::Args;

use super::{ModelChoice, Source};

/// Report what is in a session file
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
lines[]}`, `problems[]`, `compactions[]` and `legal_cuts`. Messages are counted from 0 there
and from 1 in the text, lines always from 1. Fields may be added, never changed.

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
