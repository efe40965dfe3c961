//! What the dashboard needs from the proxy behind it.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use throughline_engine::{Halt, Mode, Pin, Preview, SessionStatus, Version};
use throughline_store::{SessionId, StoreError};

use crate::act::{ActError, Action, Effect};

/// The sessions of a proxy, and what it has done since it started.
///
/// The dashboard reads stored messages, memories, events and usage from the store itself. A backend adds what only the
/// running proxy knows, and performs actions.
#[async_trait]
pub trait Backend: Send + Sync {
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// What the proxy does with requests.
    fn mode(&self) -> ProxyMode;

    /// Whether the proxy is shutting down.
    fn is_ending(&self) -> bool;

    /// What the proxy has done since it started.
    fn totals(&self) -> Totals;

    /// Metrics in Prometheus' text format.
    fn metrics(&self) -> String;

    /// The budget of a session that is not in memory, from its wire and model.
    fn marks(&self, wire: &str, model: &str) -> Marks;

    /// Whether a proxy began the session. Others can be read and deleted here, but not acted upon.
    fn is_ours(&self, id: &SessionId) -> bool;

    /// The session, if it is in memory.
    fn live(&self, id: &SessionId) -> Option<LiveSession>;

    /// The state of a session that is not in memory.
    ///
    /// # Errors
    /// What the store reports.
    async fn stored(&self, id: &SessionId) -> Result<SessionState, StoreError>;

    /// What a swap would do now, and the memory in use. None where no memory is ready or the session is not in memory.
    fn preview(&self, id: &SessionId) -> Option<(Preview, Option<Arc<Version>>)>;

    /// Performs an action on a session, which is loaded if it is not in memory.
    ///
    /// # Errors
    /// Why the session stays as it is.
    async fn act(&self, id: &SessionId, action: Action) -> Result<Effect, ActError>;
}

/// What a proxy does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProxyMode {
    /// Memories replace old messages.
    Rewrite,
    /// Memories are made but not used.
    Observe,
    /// Requests are forwarded unchanged.
    Off,
}

/// What a proxy has done since it started.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Status")]
pub struct Totals {
    /// What the proxy does with requests.
    pub mode: ProxyMode,
    /// Whether the proxy is shutting down.
    pub is_ending: bool,
    /// Sessions in memory.
    pub sessions_in_memory: u64,
    /// Bytes of messages that wait to be stored.
    pub unstored_bytes: u64,
    /// Requests that asked a model.
    pub requests: u64,
    /// Requests in which a memory replaced messages.
    pub rewritten: u64,
    /// Swaps.
    pub swaps: u64,
    /// Tokens of the messages that memories replaced, over all requests.
    pub saved_tokens: u64,
    /// Cost of the requests.
    pub main_nanodollars: u64,
    /// Cost of the calls that made memories.
    pub update_nanodollars: u64,
    /// Estimated cost of the requests with nothing left out.
    pub without_nanodollars: u64,
}

/// The sizes that matter to a session, in tokens.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Marks {
    /// Where a memory begins to be built.
    pub soft: u64,
    /// Where the memory is swapped in.
    pub hard: u64,
    /// The largest prompt.
    pub limit: u64,
    /// The window of the model.
    pub window: u64,
}

/// A session in memory.
#[derive(Clone, Debug)]
pub struct LiveSession {
    /// The model of the last request.
    pub model: String,
    /// Requests without a complete answer.
    pub in_flight: usize,
    /// Tokens of the next request.
    pub context_tokens: u64,
    /// The budget of the session.
    pub marks: Marks,
    /// Its memory and settings.
    pub state: SessionState,
}

/// The memory and the settings of a session.
#[derive(Clone, Debug)]
pub struct SessionState {
    /// When the session is compacted.
    pub mode: Mode,
    /// Number of the epoch.
    pub epoch: u64,
    /// Messages that the memory in the requests represents.
    pub covered: u64,
    /// Number of the memory in the requests.
    pub version: Option<u64>,
    /// Tokens of that memory.
    pub memory_tokens: u64,
    /// Tokens of system prompt and tools.
    pub overhead_tokens: u64,
    /// Messages that the memory that is ready would cover.
    pub ready_cover: Option<usize>,
    /// Whether a model is making a memory.
    pub is_updating: bool,
    /// Why nothing is compacted.
    pub halt: Option<Halt>,
    /// Whether the last swap can be undone.
    pub can_undo: bool,
    /// Facts that every memory contains.
    pub pins: Vec<Pin>,
}

impl SessionState {
    /// The state of a session whose engine has this status.
    #[must_use]
    pub fn new(status: &SessionStatus, mode: Mode, pins: Vec<Pin>, can_undo: bool) -> Self {
        Self {
            mode,
            epoch: status.epoch,
            covered: status.cover as u64,
            version: status.version.map(u64::from),
            memory_tokens: status.memory,
            overhead_tokens: status.overhead,
            ready_cover: status.ready_cover,
            is_updating: status.is_updating,
            halt: status.halt.clone(),
            can_undo,
            pins,
        }
    }
}

impl Marks {
    /// The marks of a session whose engine has this status.
    #[must_use]
    pub fn new(status: &SessionStatus, window: u64) -> Self {
        Self {
            soft: status.soft,
            hard: status.hard,
            limit: status.limit,
            window,
        }
    }
}
