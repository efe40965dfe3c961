//! To whom requests go.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use throughline_transcript::wire::Wire;

use super::{SimulatedLatency, wires_parser};
use crate::tokens::window;

/// What is wanted of a connection, before what is configured.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionOptions {
    /// Model that answers; `simulated` needs no key and no network
    ///
    /// Default: the configured model, or a large model of the first provider with a key, or the only model of a local
    /// server.
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Address of the provider, of a gateway or of a local server
    ///
    /// llama.cpp, Ollama, LM Studio and vLLM on this machine need no key: --base-url http://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Format of the requests [default: the model's]
    #[arg(long, value_name = "WIRE", value_parser = wires_parser().try_map(|name| name.parse::<Wire>()))]
    pub(crate) wire: Option<Wire>,

    /// Window of the model in tokens, if it is unknown or you want to use less
    #[arg(long, value_name = "TOKENS", value_parser = window)]
    pub(crate) window: Option<u64>,

    /// How long the simulated model takes to answer [default: as long as a large model]
    #[arg(long, value_enum, value_name = "LATENCY")]
    pub(crate) latency: Option<SimulatedLatency>,

    /// TOML file that corrects and extends the list of models
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
}
