//! The configuration of a proxy.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use throughline::core::{Basis, DraftMaker, SessionRow, draft};
use throughline_engine::{CompactionSettings, Mark};
use throughline_providers::credential::Credential;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::check::Profile;
use throughline_transcript::wire::Wire;

/// The largest request that Anthropic takes, bytes; the same for all, as clients know it.
const BODY_BYTES_MAX: usize = throughline_transcript::check::ANTHROPIC_BODY_BYTES_MAX;

/// The configuration of a proxy.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where requests go.
    pub upstreams: Upstreams,
    /// What is done with them on the way.
    pub mode: Mode,
    /// The window of all models, tokens, instead of what the catalogue says.
    pub window: Option<u64>,
    /// Where building begins, instead of half of the window.
    pub soft: Option<Mark>,
    /// Where the memory is swapped in, instead of four fifths of the window.
    pub hard: Option<Mark>,
    /// The largest memory, tokens.
    pub memory_tokens_max: Option<u64>,
    /// Whether the memory is swapped in at the end of a phase of the work.
    pub phases: bool,
    /// Who makes memories.
    pub updates: Updates,
    /// Who is who.
    pub tenants: Tenants,
    /// What the dashboard, the admin API and the metrics ask for. Without one they answer only to addresses of this
    /// machine.
    pub token: Option<Credential>,
    /// How much of everything there may be.
    pub limits: Limits,
    /// Where each session gets a folder with its transcript and its memory, for people to read and edit.
    pub session_folder: Option<PathBuf>,
    /// Windows, prices and abilities of models.
    pub catalogue: Arc<Catalogue>,
    /// Makes drafts; another one for tests.
    #[doc(hidden)]
    pub draft: DraftMaker,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            upstreams: Upstreams::default(),
            mode: Mode::Rewrite,
            window: None,
            soft: None,
            hard: None,
            memory_tokens_max: None,
            phases: false,
            updates: Updates::default(),
            tenants: Tenants::ByCredential,
            token: None,
            limits: Limits::default(),
            session_folder: None,
            catalogue: Arc::new(Catalogue::embedded().clone()),
            draft,
        }
    }
}

/// Where requests go: a base URL for each family of wire formats, with or without `/v1` at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstreams {
    /// For Anthropic's format.
    pub anthropic: String,
    /// For OpenAI's formats.
    pub openai: String,
    /// What the upstream for OpenAI's formats asks for beyond the provider's rules: where it is a local server, the chat
    /// templates of its models often want user and assistant strictly in turn.
    pub openai_profile: Profile,
    /// Others, by the beginning of the path: what follows it is sent there.
    pub routes: Vec<Route>,
}

impl Default for Upstreams {
    fn default() -> Self {
        Self {
            anthropic: "https://api.anthropic.com".to_owned(),
            openai: "https://api.openai.com".to_owned(),
            openai_profile: Profile::Provider,
            routes: Vec::new(),
        }
    }
}

/// An upstream under a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The beginning of the path, such as `/groq`.
    pub prefix: String,
    /// Base URL.
    pub upstream: String,
    /// What it asks for beyond the provider's rules.
    pub profile: Profile,
}

/// What is done with requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are rewritten when a memory takes the place of old messages.
    #[default]
    Rewrite,
    /// The same without rewriting; the figures show what it would have saved.
    Observe,
    /// Nothing: a plain proxy.
    Off,
}

impl Mode {
    /// Its name in configurations and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rewrite => "rewrite",
            Self::Observe => "observe",
            Self::Off => "off",
        }
    }
}

/// Who makes memories in the background. Code makes one in any case.
#[derive(Clone, Debug, Default)]
pub enum Updates {
    /// Code alone: no call, no cost.
    Code,
    /// The model of the conversation, with the client's own credential.
    #[default]
    Client,
    /// A model of the operator's.
    Operator(Box<Operator>),
}

/// A model that makes memories for all sessions.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The format that it is asked in.
    pub wire: Wire,
    /// Base URL.
    pub base_url: String,
    /// The key.
    pub credential: Option<Credential>,
    /// The model.
    pub model: String,
}

/// Who is who.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tenants {
    /// Each credential is one: the same conversation under another key is another session.
    #[default]
    ByCredential,
    /// All requests belong together, for a proxy that one person uses: a credential may change in the middle.
    One,
}

/// How much of everything there may be.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Body of a request, also unpacked, bytes.
    pub body_bytes_max: usize,
    /// Answer that is read along, bytes. A longer one reaches the client, and the session takes it from the next request.
    pub answer_bytes_max: usize,
    /// Requests at a time.
    pub requests_max: usize,
    /// Sessions that are kept in memory.
    pub sessions_max: usize,
    /// Bytes of messages that are kept in memory. Beyond that, sessions that rest leave it, and are loaded with their
    /// next request.
    pub kept_bytes_max: u64,
    /// Bytes of messages that wait to be stored. Beyond that, requests are passed on as they are.
    pub unstored_bytes_max: usize,
    /// The part of a rate limit that updates may use, in thousandths.
    pub update_permille: u32,
    /// How long a request waits for a draft at most.
    pub draft_wait: Duration,
    /// How long the head of an answer may take.
    pub head_wait: Duration,
    /// How long nothing may come of an answer.
    pub idle_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: BODY_BYTES_MAX,
            answer_bytes_max: 32 << 20,
            requests_max: 1024,
            sessions_max: 512,
            kept_bytes_max: 64 << 20,
            unstored_bytes_max: 128 << 20,
            update_permille: 200,
            draft_wait: Duration::from_secs(2),
            head_wait: Duration::from_secs(600),
            idle_wait: Duration::from_secs(300),
        }
    }
}

/// The window of a model that is not in the catalogue, tokens: nothing is rewritten before the provider says that a request is too
/// large, and how large it may be.
pub(crate) const WINDOW_UNKNOWN: u64 = 1_000_000;

impl Config {
    /// What the settings of a session with a model follow from.
    pub(crate) fn basis<'a>(
        &'a self,
        wire: Wire,
        model: &str,
        answer_tokens: Option<u64>,
    ) -> Basis<'a> {
        Basis {
            wire,
            model: self.catalogue.find(model),
            unknown_window: WINDOW_UNKNOWN,
            answer_tokens,
        }
    }

    /// The settings of a session that begins with a model.
    pub(crate) fn settings(
        &self,
        wire: Wire,
        model: &str,
        answer_tokens: Option<u64>,
    ) -> CompactionSettings {
        let mut settings = self.basis(wire, model, answer_tokens).settings();
        self.apply(answer_tokens, &mut settings);
        settings
    }

    /// What is kept of a session that begins with a model.
    pub(crate) fn begun(&self, basis: &Basis<'_>) -> SessionRow {
        let plain = basis.settings();
        let mut settings = plain.clone();
        self.apply(basis.answer_tokens, &mut settings);
        let is_known = self.window.is_none() && basis.model.is_some();
        SessionRow::begun(&plain, &settings, is_known)
    }

    /// Changes what this configuration says.
    pub(crate) fn apply(&self, answer_tokens: Option<u64>, settings: &mut CompactionSettings) {
        if let Some(window) = self.window {
            *settings = settings.clone().with_window(window, answer_tokens);
        }
        // Providers say what was used, which corrects it; vocabularies would be most of the memory that the proxy takes.
        settings.counter = settings.counter.scanning();
        if let Some(soft) = self.soft {
            settings.soft = soft;
        }
        if let Some(hard) = self.hard {
            settings.hard = hard;
        }
        settings.triggers.phases = self.phases;
        if let Some(tokens) = self.memory_tokens_max {
            settings.memory_tokens_max = tokens;
        }
        settings.compactor = match self.updates {
            Updates::Code => throughline_engine::CompactorChoice::Extractive,
            Updates::Client | Updates::Operator(_) => throughline_engine::CompactorChoice::Model,
        };
    }
}
