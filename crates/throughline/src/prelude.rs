//! What nearly every program needs: `use throughline::prelude::*;`.
//!
//! `schemars` is part of it, because `#[derive(JsonSchema)]` wants that name in scope.

#[cfg(feature = "sqlite")]
pub use crate::SqliteStore;
pub use crate::agent::{
    Agent, AgentError, AgentEvent, Approval, CallContext, Outcome, Tool, ToolError, Tools,
};
pub use crate::schemars::{self, JsonSchema};
pub use crate::{
    Answer, Client, Credential, MemoryStore, ModelCompactor, OpenError, SendError, Session,
    SessionBuilder, SessionError, SessionEvent, SessionId, Store, Turn, TurnEvent, UserInput, Wire,
};
pub use futures_util::StreamExt;
