//! What was typed behind `throughline config`.

use clap::{Args, Subcommand};

use crate::config::keys;

/// Show and change what is configured
///
/// The file is $THROUGHLINE_CONFIG, else $XDG_CONFIG_HOME/throughline/config.toml, else ~/.config/throughline/config.toml.
/// Command-line options override it. It never contains a provider's key, only the place of the key.
#[derive(Args, Debug)]
#[command(after_long_help = keys::help())]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show every key with its value (the default)
    Show {
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a key a value; comments in the file stay
    #[command(after_long_help = "\
Examples:
  throughline config set model claude-opus-5-5
  throughline config set hard 70%
  throughline config set tools recall,read_file
  throughline config set credential file:~/.config/throughline/key")]
    Set {
        /// The key
        key: String,
        /// Its value; several are separated by commas
        value: String,
    },
    /// Remove a key, so that its default applies
    Unset {
        /// The key
        key: String,
    },
    /// Print the path of the file
    Path,
}
