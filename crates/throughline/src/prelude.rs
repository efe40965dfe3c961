//! What nearly every program needs: `use throughline::prelude::*;`.
//!
//! `schemars` is part of it, because `#[derive(JsonSchema)]` wants that name in scope.

#[cfg(feature = "sqlite")]
pub use crate::SqliteStore;
pub use crate::agent::{
    Agent, AgentError, AgentEvent, AgentOutcome, Approval, CallContext, Tool, ToolError, Tools,
};
pub use crate::schemars::{self, JsonSchema};
pub use crate::{
    Client, Credential, MemoryStore, ModelCompactor, OpenError, SendError, Session, SessionBuilder,
    SessionError, SessionEvent, SessionId, Store, Turn, TurnAnswer, TurnEvent, UserInput, Wire,
};
pub use futures_util::StreamExt;
