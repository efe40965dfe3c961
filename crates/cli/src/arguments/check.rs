//! What was typed behind `throughline check`.

use std::path::PathBuf;

use clap::Args;

use super::wires_parser;

/// Check whether a provider would refuse a request
///
/// Checks a request body, or a file with one body a line, against every rule of the provider that the body alone can
/// break: pairs of tool calls and results, order of roles, empty texts, thinking blocks, cache markers, limits. Each
/// finding has a code, a path and a sentence. Nothing is sent.
///
/// What the model can do is looked up under the name in the body, or under --model.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline check request.json
  throughline check request.json --wire openai-chat --strict-alternation
  throughline check requests.jsonl --json
  throughline convert session.jsonl --to anthropic | throughline check -

The JSON (schema `throughline.check/1`) has `file`, `valid` and `bodies[]`, each with `line`
(null for a single body), `wire`, `model`, `valid`, `omitted` and `findings[]` of `{code,
severity, path, message, source}`. Fields may be added, never changed.

", "\
Exit codes:
  0    valid; there may be warnings
  1    the provider would refuse it
  2    the arguments are wrong, or the input cannot be read
  4    the output cannot be written
  70   a mistake in this program"))]
pub(crate) struct Check {
    /// Request body (JSON), or one body a line; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Wire format [default: detected]
    #[arg(long, value_name = "WIRE", value_parser = wires_parser())]
    pub(crate) wire: Option<String>,

    /// Check against this model's abilities instead of those of the model in the body
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// TOML file that corrects and extends the list of models
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,

    /// The `anthropic-version` header of the request
    #[arg(long, value_name = "VERSION")]
    pub(crate) anthropic_version: Option<String>,

    /// A name of the `anthropic-beta` header; without one, what needs a beta is only warned of
    #[arg(long = "beta", value_name = "NAME", value_delimiter = ',')]
    pub(crate) betas: Vec<String>,

    /// Also check the chat templates of many local models: one system message, then user and assistant alternate
    #[arg(long)]
    pub(crate) strict_alternation: bool,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}
