//! What was typed behind `throughline doctor`.

use clap::Args;

use super::connection::ConnectionOptions;

/// Check the set-up, and report how to fix it
///
/// Looks at the configuration, the key, the provider, the model and its window, sessions, permissions, disk, clock and
/// terminal. Each finding says what to do about it. Nothing is changed, no model is asked, and keys are not shown. The provider is
/// asked for its list of models, which costs nothing.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  throughline doctor
  throughline doctor --model gpt-5
  throughline doctor --base-url http://127.0.0.1:8080
  throughline doctor --json

The JSON (schema `throughline.doctor/1`) has `ok` and `findings[]`, each with `name`, `state`
(`ok`, `warning`, `failure`), `what` and `advice`.

Exit codes:
  0    nothing is in the way; there may be warnings
  1    something is
  2    the arguments are wrong
  70   a mistake in this program")]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) wanted: ConnectionOptions,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}
