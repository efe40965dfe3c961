//! What was typed behind `throughline sessions`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Source;
use super::connection::ConnectionOptions;

/// List, show, search, export, import and delete stored sessions
///
/// An ID may be shortened to a beginning that no other session shares; `last` is the most recently changed session.
/// Sessions are kept in the data folder of the configuration (`throughline config`).
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  throughline sessions
      The newest sessions
  throughline sessions show last
  throughline sessions search \"fiscal year\"
  throughline sessions import ~/.claude/projects/site/session.jsonl
      Go on with a session of another program: `throughline chat --resume ID`
  throughline sessions export last --format markdown -o memory.md
  throughline sessions gc --older-than 90d --keep 20 --dry-run

Messages are counted from 1; in JSON, and in memories, from 0.

Exit codes:
  0    done
  2    the arguments are wrong, or there is no such session
  3    nothing was found, or there is nothing to do
  4    the output or the store cannot be written
  5    the session is open elsewhere
  70   a mistake in this program
  130  interrupted")]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    List(List),
    Show(Show),
    Search(Search),
    Export(Export),
    Import(Box<Import>),
    Delete(Delete),
    Gc(Gc),
}

/// List sessions, most recently changed first (the default)
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Most sessions to list
    #[arg(long, value_name = "N", default_value_t = LISTED)]
    pub(crate) limit: usize,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// So many sessions fit into a window.
const LISTED: usize = 20;

impl Default for List {
    fn default() -> Self {
        Self {
            limit: LISTED,
            json: false,
        }
    }
}

/// Show a session: what it has cost, its memory and versions, what happened
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The session
    #[arg(value_name = "ID", default_value = "last")]
    pub(crate) id: String,

    /// List the messages too
    #[arg(long)]
    pub(crate) messages: bool,

    /// Write one message as it was received, by its number, from 1
    #[arg(long, value_name = "N", conflicts_with_all = ["messages", "events", "json"])]
    pub(crate) message: Option<u64>,

    /// Show all events, one sentence each
    #[arg(long)]
    pub(crate) events: bool,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Search all sessions: messages, messages that were undone, memories
///
/// Finds texts that contain all words, in any order and case; parts of words match too.
#[derive(Args, Debug)]
pub(crate) struct Search {
    /// The words
    #[arg(value_name = "TEXT", required = true)]
    pub(crate) text: Vec<String>,

    /// Only in this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Most places to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Export a session for other programs or people
///
/// Messages are written verbatim, including secrets; memories contain none.
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// The session
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Jsonl)]
    pub(crate) format: Format,

    /// File to write to, readable by you alone; replaced in one step
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// All messages, one a line; `sessions import` reads it back
    Jsonl,
    /// Request body: the memory and the messages after it, as the next request would have them
    Request,
    /// The memory, for people
    Markdown,
    /// The memory as a document that `compact --prior` reads
    Json,
}

/// Store a session of another program, to continue it here
///
/// Reads every format that `throughline formats` lists. The messages are converted for the model that continues it;
/// thinking and what only the old provider can read is left out. A memory is made at once, by code.
#[derive(Args, Debug)]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) source: Source,

    /// Conversation of the input: its id, the beginning of it, or its number in the list
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Title of the session [default: the source's]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    /// Make no memory yet
    #[arg(long)]
    pub(crate) no_memory: bool,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) wanted: ConnectionOptions,
}

/// Delete sessions, with everything that was derived from them
///
/// Removes a session's messages, memories, events, costs and search index. Its forks stay: they have their own copy.
#[derive(Args, Debug)]
pub(crate) struct Delete {
    /// The sessions
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,

    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Delete old sessions and free their disk space
///
/// Without --older-than and --keep no session is deleted.
#[derive(Args, Debug)]
pub(crate) struct Gc {
    /// Delete sessions unchanged for this long: 30d, 12h, 6w
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub(crate) older_than: Option<Duration>,

    /// Number of newest sessions to keep, regardless of age
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,

    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

fn age(text: &str) -> Result<Duration, String> {
    let seconds = |unit: char| match unit {
        'h' => Some(3600),
        'd' => Some(24 * 3600),
        'w' => Some(7 * 24 * 3600),
        _ => None,
    };
    let mut digits = text.trim().chars();
    digits
        .next_back()
        .and_then(seconds)
        .zip(digits.as_str().parse::<u64>().ok())
        .and_then(|(seconds, count)| count.checked_mul(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "give a number with h, d or w after it, such as 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_units() {
        let check = |text: &str, hours: Option<u64>| {
            let expected = hours.map(|hours| Duration::from_secs(hours * 3600));
            assert_eq!(age(text).ok(), expected, "{text}");
        };
        check("12h", Some(12));
        check("30d", Some(720));
        check("1w", Some(168));
        check("30", None);
        check("d", None);
        check("-1d", None);
        check("99999999999999999999d", None);
        check("9999999999999999999d", None);
        check("3ä", None);
    }
}
