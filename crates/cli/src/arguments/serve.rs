//! What was typed behind `throughline serve` and `throughline run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use throughline::engine::Mark;

use crate::tokens::{mark, memory_tokens, window};

/// The settings of a proxy: flags of the command line and, under the same names, keys of the file of `--config`.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[command(next_help_heading = "Proxy")]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Proxying {
    /// Base URL for requests in Anthropic's format
    ///
    /// Default: https://api.anthropic.com; for `run`, ANTHROPIC_BASE_URL if it is set.
    #[arg(long, value_name = "URL")]
    pub(crate) anthropic_upstream: Option<String>,

    /// Base URL for requests in OpenAI's formats
    ///
    /// Default: https://api.openai.com; for `run`, OPENAI_BASE_URL if it is set.
    #[arg(long, value_name = "URL")]
    pub(crate) openai_upstream: Option<String>,

    /// Another upstream, under its own path: /groq=https://api.groq.com/openai
    #[arg(long = "route", value_name = "PATH=URL", value_parser = route)]
    pub(crate) routes: Vec<RouteSetting>,

    /// Alternate user and assistant strictly in rewritten requests in OpenAI's formats
    ///
    /// The chat templates of many models on local servers require it.
    #[arg(long)]
    pub(crate) strict_alternation: bool,

    /// What the proxy does with requests
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeChoice>,

    /// Window of every model, in tokens [default: the model's own]
    ///
    /// An unknown model counts as one of a million tokens until its provider refuses a request as too large.
    #[arg(long, value_name = "TOKENS", value_parser = window)]
    #[serde(deserialize_with = "with_window")]
    pub(crate) window: Option<u64>,

    /// Where building of a memory starts: a share of the usable window, or tokens [default: when it pays, or 50%]
    #[arg(long, value_name = "MARK", value_parser = mark)]
    #[serde(deserialize_with = "with_mark")]
    pub(crate) soft: Option<Mark>,

    /// Where the memory is swapped in: a share of the usable window, or tokens [default: when it pays, or 80%]
    #[arg(long, value_name = "MARK", value_parser = mark)]
    #[serde(deserialize_with = "with_mark")]
    pub(crate) hard: Option<Mark>,

    /// Largest memory, in tokens [default: 5% of the window, 400 to 6000]
    #[arg(long, value_name = "TOKENS", value_parser = memory_tokens)]
    #[serde(deserialize_with = "with_memory_tokens")]
    pub(crate) memory_tokens: Option<u64>,

    /// Swap the memory in at the end of each phase of the work
    ///
    /// A phase ends when a list of tasks is completed, a commit is made, tests pass again or the subject changes.
    #[arg(long)]
    pub(crate) phases: bool,

    /// What makes memories in the background [default: client]
    ///
    /// `client`: the model of the conversation, with the client's own key. `code`: no model, no cost. Any other value is
    /// the name of a model that is called with your key (ANTHROPIC_API_KEY, OPENAI_API_KEY).
    #[arg(long, value_name = "WHO")]
    pub(crate) updates: Option<String>,

    /// TOML file that corrects and extends the list of models
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,

    /// Folder for files of each session: its transcript, and its memory to read and edit [default: none]
    ///
    /// Each session has a folder in it. An edit of session-memory.md is in the session's next request.
    #[arg(long, value_name = "DIR")]
    pub(crate) session_folder: Option<PathBuf>,

    /// Treat all credentials as one person's: a conversation may change its key
    #[arg(long)]
    pub(crate) one_tenant: bool,

    /// Only in the file.
    #[arg(skip)]
    pub(crate) limits: LimitSettings,
}

/// An upstream under its own path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteSetting {
    pub(crate) path: String,
    pub(crate) upstream: String,
    #[serde(default)]
    pub(crate) strict_alternation: bool,
}

/// The table `[limits]` of the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitSettings {
    pub(crate) body_bytes: Option<usize>,
    pub(crate) answer_bytes: Option<usize>,
    pub(crate) requests: Option<usize>,
    pub(crate) sessions_in_memory: Option<usize>,
    pub(crate) kept_bytes: Option<u64>,
    pub(crate) unstored_bytes: Option<usize>,
    pub(crate) update_percent: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeChoice {
    /// Replace old messages by a memory
    Rewrite,
    /// Make memories and report what they would save, but do not rewrite requests
    Observe,
    /// Only forward
    Off,
}

impl<'de> Deserialize<'de> for ModeChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        <Self as ValueEnum>::from_str(&name, false).map_err(|_| {
            D::Error::custom(format!(
                "there is no mode {name:?}; the modes are rewrite, observe and off"
            ))
        })
    }
}

/// Reads a number, or a text such as the flag of the same name takes.
fn with<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Number(u64),
        Text(String),
    }
    let text = match Value::deserialize(deserializer)? {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text,
    };
    parse(&text).map(Some).map_err(D::Error::custom)
}

fn with_window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    with(deserializer, window)
}

fn with_mark<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Mark>, D::Error> {
    with(deserializer, mark)
}

fn with_memory_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    with(deserializer, memory_tokens)
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
    /// Faults of the proxy itself
    Error,
    /// Problems: a store that fails, a request that is forwarded unchanged
    Warn,
    /// One line for each request and each decision about memories
    #[default]
    Info,
    /// Also how connections and answers end
    Debug,
}

/// What is written about requests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Log")]
pub(crate) struct Logging {
    /// Format of the log on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) log: LogFormat,

    /// How much is logged
    ///
    /// The log contains ids and numbers only, at every level: no text of conversations, no keys.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    pub(crate) log_level: LogLevel,
}

/// Give any client a session memory: a proxy before Anthropic's and OpenAI's APIs
///
/// Set a client's base URL to the proxy and use the client as before. Requests and answers are forwarded byte for byte.
/// The proxy recognises each conversation by its content and builds a memory of it in the background. When the window is
/// nearly full, the memory replaces the old messages in the next request, without a wait. Every message stays in the
/// archive (`throughline sessions`).
///
/// A request that the proxy cannot read, decide or store is forwarded unchanged.
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
  x-throughline: off           forward this request unchanged; so does /passthrough before the path
  x-throughline-session: NAME  this request belongs to the session of this name

Headers of answers: x-throughline (rewritten, tracked, passed), -reason, -session, -epoch,
-covered (messages that the memory represents), -saved-tokens.

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
    /// Address and port to listen on; port 0 chooses a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787")]
    pub(crate) listen: String,

    /// Folder of the sessions [default: that of `throughline chat`]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// TOML file with settings; command-line options override it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// File with the token that the dashboard, the admin API and the metrics ask for
    ///
    /// Required if other machines can reach the address. Without it, they answer only requests of this machine. The file
    /// must be readable by you alone.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// File with the certificate chain, in PEM form: clients are answered over TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// File with the private key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) logging: Logging,

    #[command(flatten)]
    pub(crate) proxying: Proxying,
}

/// Run a program with a session memory: starts a proxy for it, and reports the savings at the end
///
/// The program finds the proxy in ANTHROPIC_BASE_URL and OPENAI_BASE_URL. It gets the terminal, and its exit code becomes
/// that of the command.
#[derive(Args, Debug)]
#[command(mut_arg("one_tenant", |argument| argument.hide(true)))]
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
    /// Folder of the sessions [default: that of `throughline chat`]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Do not report the savings
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) proxying: Proxying,
}

fn route(text: &str) -> Result<RouteSetting, String> {
    let wrong =
        || "give a path and an address, such as /groq=https://api.groq.com/openai".to_owned();
    let (path, url) = text.split_once('=').ok_or_else(wrong)?;
    let is_path = path.starts_with('/') && path.len() > 1 && !path.starts_with("/v1");
    let is_address = url.starts_with("http://") || url.starts_with("https://");
    if is_path && is_address {
        Ok(RouteSetting {
            path: path.to_owned(),
            upstream: url.to_owned(),
            strict_alternation: false,
        })
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each flag is a key of the file under the same name, and both are in the documentation.
    #[test]
    fn flags_keys_and_documentation_agree() {
        let documentation = include_str!("../../../../docs/proxy.md");
        let command = Proxying::augment_args(clap::Command::new("proxy"));
        for argument in command.get_arguments() {
            let key = argument.get_id().as_str();
            let flag = argument.get_long().unwrap().replace('-', "_");
            assert_eq!(key.trim_end_matches('s'), flag.trim_end_matches('s'));
            let error = toml_edit::de::from_str::<Proxying>(&format!("{key} = {{}}"));
            let error = error.unwrap_err().to_string();
            assert!(!error.contains("unknown field"), "{key}: {error}");
            let is_documented = documentation.contains(&format!("\n{key} = "))
                || documentation.contains(&format!("[[{key}]]"));
            assert!(is_documented, "{key} is not in docs/proxy.md");
        }
    }

    #[test]
    fn the_file_in_the_documentation_is_read() {
        let documentation = include_str!("../../../../docs/proxy.md");
        let (_, rest) = documentation.split_once("```toml\n").unwrap();
        let (file, _) = rest.split_once("```").unwrap();
        let settings: Proxying = toml_edit::de::from_str(file).unwrap();
        assert_eq!(settings.routes.len(), 2);
        assert!(settings.limits.update_percent.is_some());
    }
}
