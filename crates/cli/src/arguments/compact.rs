//! What was typed behind `throughline compact`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use throughline_transcript::cut::Tail;

use super::{ModelChoice, Source, wires_parser};
use crate::tokens::{TOKENS_MAX, tokens};

/// Write the memory of a session
///
/// Reads a conversation and writes what is needed to continue it: the task in the user's words, corrections,
/// decisions, errors, where work stopped, the next steps, and the names that later work needs. The same input gives
/// the same bytes. Secrets are removed.
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

    /// Largest memory, in tokens
    ///
    /// A hard cap on the memory as it is written. Tokens of cl100k_base are counted, exactly and the same on every
    /// machine, unless --model names a model. `4k` is 4000.
    #[arg(long, value_name = "TOKENS", default_value = "4000", value_parser = budget, allow_negative_numbers = true)]
    pub(crate) budget: usize,

    /// Memory to update, as written by `--to json`
    ///
    /// Only messages after the ones it covers are read; its items stay unchanged unless something superseded them.
    #[arg(long, value_name = "FILE")]
    pub(crate) prior: Option<PathBuf>,

    /// What the memory should focus on
    #[arg(long, value_name = "TEXT")]
    pub(crate) focus: Option<String>,

    /// How much of the end is kept verbatim: messages, or tokens with `tok`
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

    /// Wire format of `--to request` [default: the source's, or anthropic]
    #[arg(long, value_name = "WIRE", value_parser = wires_parser())]
    pub(crate) wire: Option<String>,

    /// Keep secrets in the memory
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

pub(super) fn budget(text: &str) -> Result<usize, String> {
    match tokens(text) {
        Some(0) => Err("a memory has at least some tokens".to_owned()),
        Some(count) if count > TOKENS_MAX => Err(format!("more than {TOKENS_MAX} tokens")),
        Some(count) => Ok(count),
        None => Err("give a number of tokens, such as 4000 or 4k".to_owned()),
    }
}

pub(super) fn keep_tail(text: &str) -> Result<Tail, String> {
    let number = text.trim();
    let parsed = match number.strip_suffix("tok") {
        Some(number) => tokens(number).map(Tail::Tokens),
        None => number.parse().ok().map(Tail::Messages),
    };
    parsed.ok_or_else(|| {
        "give a number of messages, such as 12, or of tokens, such as 8000tok".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
