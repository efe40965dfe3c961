//! What was typed. What it means is decided by the commands: the arguments of each have a file here.

pub(crate) mod chat;
mod check;
mod compact;
pub(crate) mod config;
pub(crate) mod connection;
mod convert;
mod demo;
pub(crate) mod doctor;
mod inspect;
mod models;
pub(crate) mod serve;
pub(crate) mod sessions;
mod simulate;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use throughline_formats::ALL;
use throughline_transcript::wire::Wire;

pub(crate) use self::check::Check;
pub(crate) use self::compact::{Compact, To};
use self::config::Config;
pub(crate) use self::convert::{Convert, ConvertTo};
pub(crate) use self::demo::Demo;
use self::doctor::Doctor;
pub(crate) use self::inspect::Inspect;
pub(crate) use self::models::Models;
use self::sessions::Sessions;
pub(crate) use self::simulate::{Simulate, SimulatedLatency};
use crate::error::EXIT_CODES;

#[derive(Debug, Parser)]
#[command(
    name = "throughline",
    version,
    about = "Session memory for conversations with language models",
    long_about = "Session memory for conversations with language models.\n\n\
        Reads the session files of coding agents, chat exports and request bodies, and writes a memory from which the \
        work can go on. For that no key and no network is needed.",
    after_help = "Start with: throughline compact SESSION-FILE",
    after_long_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// What was typed; ends the program with a message if that is nothing that can be done.
    pub(crate) fn typed() -> Self {
        let matches = with_negative_numbers(Self::command()).get_matches();
        match Self::from_arg_matches(&matches) {
            Ok(arguments) => arguments,
            Err(error) => error.exit(),
        }
    }
}

/// A negative number is a value, and mostly a wrong one: it is not taken for an option that is not known.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes_a_value = |arg: clap::Arg| {
        let is_valued = arg.get_action().takes_values();
        if is_valued {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    };
    command
        .mut_args(takes_a_value)
        .mut_subcommands(with_negative_numbers)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Chat(Box<chat::Chat>),
    Serve(Box<serve::Serve>),
    Run(Box<serve::Run>),
    Demo(Demo),
    Compact(Compact),
    Inspect(Inspect),
    Check(Check),
    Convert(Convert),
    Sessions(Sessions),
    Models(Models),
    Config(Config),
    Doctor(Doctor),
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
    /// Files compressed with gzip are unpacked. An opencode database (opencode.db), a folder of opencode
    /// exports (ses_*.json) and an OpenHands conversation folder are read too.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Format of the input [default: detected]
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

fn formats_parser() -> PossibleValuesParser {
    let auto = PossibleValue::new("auto").help("detected");
    std::iter::once(auto)
        .chain(
            ALL.iter()
                .map(|format| PossibleValue::new(format.name()).help(format.about())),
        )
        .into()
}

fn wires_parser() -> PossibleValuesParser {
    Wire::ALL.map(Wire::name).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        with_negative_numbers(Arguments::command()).debug_assert();
    }

    #[test]
    fn negative_numbers_are_said_to_be_wrong_and_not_unknown() {
        let check = |arguments: &[&str], part: &str| {
            let all = std::iter::once("throughline").chain(arguments.iter().copied());
            let command = with_negative_numbers(Arguments::command());
            let said = command.try_get_matches_from(all).unwrap_err().to_string();
            assert!(said.contains(part), "{arguments:?}: {said}");
        };
        check(
            &["chat", "--window", "-5"],
            "give a number of tokens, such as 30000 or 30k",
        );
        check(
            &["sessions", "list", "--limit", "-5"],
            "invalid value '-5' for '--limit",
        );
        check(
            &["sessions", "gc", "--keep", "-1"],
            "invalid value '-1' for '--keep",
        );
        check(
            &["sessions", "gc", "--older-than", "-1d"],
            "unexpected argument",
        );
        check(
            &["compact", "x", "--budget", "-100"],
            "invalid value '-100' for '--budget",
        );
    }
}
