//! What was typed after `throughline chat`.

use std::path::PathBuf;

use clap::Args;

use super::connection::ConnectionOptions;
use crate::terminal::Thinking;

/// Talk with a model, past its context window
///
/// While you talk, a memory of the conversation is built in the background. When the window is nearly full, the memory
/// replaces the old messages without a wait. Every message is stored before it is sent, so that a crash loses nothing.
///
/// In a terminal, answers are formatted as they stream, and /help lists the commands. In a pipe, each line is a message or
/// a command, and only the answers are printed.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline chat --model simulated
      Without a key, against a simulated model
  throughline chat --continue
      Resume the last session
  throughline chat --tools recall,read_file,search_files --root .
      With tools; what changes files or runs commands asks first
  git diff | throughline chat --print \"What is risky in this?\"
      One question, one answer
  throughline chat --continue --print \"And the tests?\" --json
      The next one in the same session, with numbers

The JSON of --print (schema `throughline.answer/1`) has `session`, `model`, `text`, `outcome`
(`done`, `cut-off`, `declined`, `step-limit`, `waits-for-approval`), `tokens`, `limit`, `messages`, `usage{}`
and `cost_usd`. Fields may be added, never changed.

", "\
Exit codes:
  0    done
  1    --print: the answer was cut off or declined, or waits for an approval
  2    the arguments are wrong, or there is no such session
  3    nothing to do: there is no session to resume
  4    the output cannot be written
  5    the provider does not answer or refuses, or the session is open elsewhere
  70   a mistake in this program
  130  interrupted"))]
pub(crate) struct Chat {
    /// Resume the newest session
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub(crate) go_on: bool,

    /// Resume this session: its id, or the beginning of it
    #[arg(short, long, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// File with the system prompt of a new session
    #[arg(long, value_name = "FILE")]
    pub(crate) system: Option<PathBuf>,

    /// Tools for the model, separated by commas
    ///
    /// recall, update_plan, compact_context, read_file, list_files, search_files, write_file, edit_file, run_command
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,

    /// Folder for files of this session: its transcript, and its memory to read and edit
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Folder that the tools for files and commands work in
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// Let the tools write files and run commands without asking
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Answer one question and exit: TEXT, followed by the text of a pipe
    #[arg(short, long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) print: Option<String>,

    /// With --print: write JSON
    #[arg(long, requires = "print")]
    pub(crate) json: bool,

    /// With --print: print the session's id on standard error
    #[arg(long, requires = "print")]
    pub(crate) show_id: bool,

    /// How the model's thinking is shown
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) thinking: Option<Thinking>,

    /// Swap the memory in at the end of each phase of the work (tasks completed, a commit, tests that pass again)
    #[arg(long)]
    pub(crate) phases: bool,

    #[command(flatten)]
    pub(crate) wanted: ConnectionOptions,
}
