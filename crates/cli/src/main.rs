//! `throughline`: session memory for conversations with language models, on the command line.
//!
//! This is the only crate that reads files, prints and exits. What was typed is in [`arguments`], what it does in one
//! file for each command; [`input`] gets at the conversations, [`selection`] picks the one that is meant, [`output`]
//! writes, [`error`] ends with a sentence, a hint and an exit code.

mod address;
mod arguments;
mod chat;
mod check;
mod compact;
mod completions;
mod config;
mod connect;
mod convert;
mod demo;
mod doctor;
mod error;
mod files;
mod formats;
mod input;
mod inspect;
mod listening;
mod man;
mod markdown;
mod memory_maker;
mod model;
mod models;
mod output;
mod progress;
mod quiet;
mod runtime;
mod selection;
mod serve;
mod sessions;
mod settings;
mod simulate;
mod spending;
mod storage;
mod terminal;
mod tokens;
mod words;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command};
use crate::output::Console;

/// The proxy makes and drops many small things of many conversations: the system's allocator takes a fifth more time for
/// that, and keeps half as much memory again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    error::report_panics_as_bugs();
    let arguments = Arguments::typed();
    let console = Console::from_environment();
    let ending = match &arguments.command {
        Command::Chat(arguments) => chat::run(arguments, &console),
        Command::Demo(arguments) => demo::run(arguments, &console),
        Command::Compact(arguments) => compact::run(arguments, &console),
        Command::Inspect(arguments) => inspect::run(arguments, &console),
        Command::Check(arguments) => check::run(arguments, &console),
        Command::Convert(arguments) => convert::run(arguments, &console),
        Command::Sessions(arguments) => sessions::run(arguments, &console),
        Command::Config(arguments) => settings::run(arguments, &console),
        Command::Doctor(arguments) => doctor::run(arguments, &console),
        Command::Models(arguments) => models::run(arguments, &console),
        Command::Serve(arguments) => serve::run(arguments, &console),
        Command::Run(arguments) => serve::run::run(arguments, &console),
        Command::Simulate(arguments) => simulate::run(arguments, &console),
        Command::Formats => formats::run(&console),
        Command::Completions(arguments) => completions::run(arguments, &console),
        Command::Man(arguments) => man::run(arguments, &console),
    };
    match ending {
        Ok(ending) => ending.code(),
        Err(failure) => console.report(&failure),
    }
}
