//! What was typed behind `throughline serve` and `throughline run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::tokens::window;

/// How a proxy treats what passes through it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Proxy")]
pub(crate) struct Proxying {
    /// Where requests in Anthropic's format go
    ///
    /// Without it https://api.anthropic.com; `run` takes ANTHROPIC_BASE_URL if that is set.
    #[arg(long, value_name = "URL")]
    pub(crate) anthropic_upstream: Option<String>,

    /// Where requests in OpenAI's formats go
    ///
    /// Without it https://api.openai.com; `run` takes OPENAI_BASE_URL if that is set.
    #[arg(long, value_name = "URL")]
    pub(crate) openai_upstream: Option<String>,

    /// Another upstream, under a path of its own: /groq=https://api.groq.com/openai
    #[arg(long = "route", value_name = "PATH=URL", value_parser = route)]
    pub(crate) routes: Vec<(String, String)>,

    /// The upstream for OpenAI's formats wants user and assistant strictly in turn
    ///
    /// So do the chat templates of many models on local servers. Requests that are rewritten keep to it then.
    #[arg(long)]
    pub(crate) strict_alternation: bool,

    /// What is done with requests
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeChoice>,

    /// Window of all models, in tokens; without it each has its own
    ///
    /// A model that nobody knows counts as one of a million tokens, until its provider says that a request is too large.
    #[arg(long, value_name = "TOKENS", value_parser = window)]
    pub(crate) window: Option<u64>,

    /// Who makes memories in the background
    ///
    /// `client`: the model of the conversation, with the client's own key. `code`: no model, no cost. Anything else is
    /// the name of a model that is asked with your key (ANTHROPIC_API_KEY, OPENAI_API_KEY).
    #[arg(long, value_name = "WHO")]
    pub(crate) updates: Option<String>,

    /// TOML file that corrects and extends the list of models
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeChoice {
    /// Put memories in the place of old messages
    Rewrite,
    /// Do everything but that, and tell what would be saved
    Observe,
    /// Only pass on
    Off,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object a line
    Json,
    /// Nothing
    Off,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What is broken in the proxy itself
    Error,
    /// What goes wrong: a store that fails, a request that had to be passed on as it is
    Warn,
    /// One line for each request, and one for each decision about memories
    #[default]
    Info,
    /// How connections and answers end, too
    Debug,
}

/// What is written about requests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Log")]
pub(crate) struct Logging {
    /// Form of the log on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) log: LogFormat,

    /// How much is logged
    ///
    /// Ids and numbers, whatever the level: never what was said, and no keys.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    pub(crate) log_level: LogLevel,
}

/// Give any client a session memory: a proxy before Anthropic's and OpenAI's APIs
///
/// Set a client's base URL to it, and go on as before. Requests and answers pass byte for byte; conversations are known
/// by what they say. Beside them a memory of each is made, and when a window is nearly full, the memory takes the place
/// of the old messages in the next request, without a wait. Every message stays in the archive (`throughline sessions`).
///
/// Whatever cannot be read, decided or stored is passed on as it came.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Set-up of clients (the proxy listens on 127.0.0.1:8787):
  Claude Code        ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude
  Codex              a provider in ~/.codex/config.toml: see docs/clients.md
  aider              aider --openai-api-base http://127.0.0.1:8787/v1
                     ANTHROPIC_API_BASE=http://127.0.0.1:8787 aider --model anthropic/...
  opencode, Cline    base URL of the provider: http://127.0.0.1:8787/v1
  Anthropic SDKs     ANTHROPIC_BASE_URL=http://127.0.0.1:8787
  OpenAI SDKs        OPENAI_BASE_URL=http://127.0.0.1:8787/v1
  LangChain          ChatAnthropic(base_url=\"http://127.0.0.1:8787\")
                     ChatOpenAI(base_url=\"http://127.0.0.1:8787/v1\")
  LiteLLM            api_base=\"http://127.0.0.1:8787\", with /v1 for OpenAI's models

Headers that a client can send:
  x-throughline: off           pass this request on as it is; so does /passthrough before the path
  x-throughline-session: NAME  this request belongs to the session of this name

Headers of answers: x-throughline (rewritten, tracked, passed), -reason, -session, -epoch,
-covered (messages that the memory stood for), -saved-tokens.

Other paths: /throughline (the dashboard, in a browser), /throughline/api/v1 (the same as JSON,
described by /throughline/api/v1/openapi.json), /metrics (Prometheus), /healthz, /readyz.

Examples:
  throughline serve
  throughline serve --mode observe
      See what would be saved
  throughline serve --openai-upstream http://127.0.0.1:8080 --window 32k
      Before a local llama.cpp server
  throughline serve --anthropic-upstream http://127.0.0.1:8484
      Before `throughline simulate`

", "\
Exit codes:
  0    ended by Ctrl-C or SIGTERM
  2    the arguments are wrong, or the address is not free
  4    the store cannot be written
  70   a mistake in this program"))]
pub(crate) struct Serve {
    /// Address of this machine, and port, to listen on; port 0 is a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787")]
    pub(crate) listen: String,

    /// Folder of the sessions; without it the one of `throughline chat`
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// TOML file with settings; what is typed counts for more
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// File with the token that the dashboard, the admin API and the metrics ask for
    ///
    /// Needed where the address is not this machine's alone. Without it they answer to this machine only. Only you may be
    /// able to read the file.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// File with the certificate chain, in PEM form: clients are answered over TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// File with the private key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// All credentials belong to one person: a conversation may change its key
    #[arg(long)]
    pub(crate) one_tenant: bool,

    #[command(flatten)]
    pub(crate) logging: Logging,

    #[command(flatten)]
    pub(crate) proxying: Proxying,
}

/// Run a program with a session memory: starts a proxy for it, and says at the end what was saved
///
/// The program sees the proxy in ANTHROPIC_BASE_URL and OPENAI_BASE_URL. It gets the terminal, and its exit code is
/// that of the command.
#[derive(Args, Debug)]
#[command(after_long_help = concat!("\
Examples:
  throughline run -- claude
  throughline run -- opencode
  throughline run --mode observe -- python agent.py
  throughline run --anthropic-upstream http://127.0.0.1:8484 -- python agent.py

", "\
Exit codes: those of the program, or
  2    the arguments are wrong, or there is no such program
  4    the store cannot be written
  70   a mistake in this program"))]
pub(crate) struct Run {
    /// Folder of the sessions; without it the one of `throughline chat`
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Say nothing at the end
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) proxying: Proxying,
}

fn route(text: &str) -> Result<(String, String), String> {
    let wrong =
        || "give a path and an address, such as /groq=https://api.groq.com/openai".to_owned();
    let (path, url) = text.split_once('=').ok_or_else(wrong)?;
    let is_path = path.starts_with('/') && path.len() > 1 && !path.starts_with("/v1");
    let is_address = url.starts_with("http://") || url.starts_with("https://");
    if is_path && is_address {
        Ok((path.to_owned(), url.to_owned()))
    } else {
        Err(wrong())
    }
}
