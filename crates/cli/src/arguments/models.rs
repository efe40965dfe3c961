//! What was typed behind `throughline models`.

use clap::Args;

use super::connection::ConnectionOptions;

/// List the known models: windows, limits, prices, and where the figures come from
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline models
  throughline models claude
  throughline models --catalogue mine.toml --json
  throughline models --provider
      What the provider has whose key is found
  throughline models --provider --base-url http://127.0.0.1:11434

", "\
Exit codes:
  0    done
  2    the arguments are wrong, or the catalogue cannot be read
  3    no model matches
  5    the provider does not answer or refuses"))]
pub(crate) struct Models {
    /// Only models whose id, alias or provider contains this
    #[arg(value_name = "PART")]
    pub(crate) part: Option<String>,

    /// Ask the provider, or the server, which models it has
    #[arg(long)]
    pub(crate) provider: bool,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) wanted: ConnectionOptions,
}
