//! Agents: a session whose model has tools, and the loop that runs them.
//!
//! An [`Agent`] sends the user's message, runs the calls that the model answers with, sends their results, and so on until the
//! model has nothing to call. The session below it compacts as it always does, also between a result and the next call.
//!
//! What it deliberately does not do: it decides nothing about memories (the session does), it has no tool unless it is
//! given one ([`builtin`] has some), and it runs none that needs an approval without one.

pub mod builtin;

mod approval;
mod calls;
mod event;
mod run;
mod tool;
mod tools;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use throughline_store::SessionId;

pub use self::approval::{AllowAll, Approval, ApprovalRequest, Approver, Decision};
pub use self::event::{AgentError, AgentEvent, AgentOutcome};
pub use self::tool::{CallContext, Tool, ToolError};
pub use self::tools::Tools;
pub use self::turn::AgentTurn;
use crate::error::{OpenError, SessionError};
use crate::session::{Session, SessionBuilder, UserInput};

/// Requests to the model in one turn.
const STEPS_MAX: usize = 100;
/// How long a call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Calls that run at the same time.
const PARALLEL: usize = 8;

/// A session whose model has tools. Clones are handles to the same one.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<run::Inner>,
}

/// Settings of an agent.
#[must_use = "a builder does nothing until it is started"]
pub struct AgentBuilder {
    session: SessionBuilder,
    tools: Tools,
    approver: Option<Arc<dyn Approver>>,
    limits: run::Limits,
}

impl Agent {
    /// An agent on a session. See [`AgentBuilder`] for what can be set.
    pub fn builder(session: SessionBuilder) -> AgentBuilder {
        AgentBuilder {
            session,
            tools: Tools::new(),
            approver: None,
            limits: run::Limits {
                steps_max: STEPS_MAX,
                call_timeout: CALL_TIMEOUT,
                parallel: PARALLEL,
            },
        }
    }

    /// The session. Messages sent there directly run no tools.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &Tools {
        &self.inner.tools
    }

    /// Says something and works until the model has nothing more to call. Calls that are open are answered first: as not
    /// run, or as interrupted.
    pub fn send(&self, input: impl Into<UserInput>) -> AgentTurn {
        let inner = Arc::clone(&self.inner);
        let input = input.into();
        AgentTurn::new(|teller| inner.send(input, teller))
    }

    /// As [`Agent::send`], and waits for the end.
    ///
    /// # Errors
    /// If the turn failed.
    pub async fn ask(&self, input: impl Into<UserInput>) -> Result<AgentOutcome, AgentError> {
        self.send(input).outcome().await
    }

    /// Continues where the last turn ended or failed, also after a restart: calls that are open are asked about where
    /// they need it, and run; a message without an answer is sent again.
    ///
    /// A call that was running when the turn was dropped or the process ended is run again.
    pub fn go_on(&self) -> AgentTurn {
        let inner = Arc::clone(&self.inner);
        AgentTurn::new(|teller| inner.go_on(teller))
    }
}

impl AgentBuilder {
    /// The tools; none by default. They follow those that the session builder was given in the wire's
    /// form, such as tools that the provider runs.
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// What decides about calls that need an approval: an approver, or an [`Arc`] of one. Without one they are not run.
    pub fn approve(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// How often the model may be asked in one turn; 100 times by default.
    pub fn steps_max(mut self, steps: usize) -> Self {
        self.limits.steps_max = steps.max(1);
        self
    }

    /// How long a call may take, where its tool does not say; two minutes by default.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.limits.call_timeout = timeout;
        self
    }

    /// How many calls of one answer run at the same time; 8 by default.
    pub fn parallel(mut self, calls: usize) -> Self {
        self.limits.parallel = calls.max(1);
        self
    }

    /// Begins a session.
    ///
    /// # Errors
    /// As [`SessionBuilder::start`].
    pub async fn start(self) -> Result<Agent, OpenError> {
        let (session, agent) = self.split();
        Ok(agent.on(session.start().await?))
    }

    /// Resumes the session with this id if the store has it; otherwise starts it. The rules of [`AgentBuilder::resume`]
    /// hold for a session that is resumed.
    ///
    /// # Errors
    /// As [`SessionBuilder::open_or_start`].
    pub async fn open_or_start(self, id: &SessionId) -> Result<Agent, OpenError> {
        let (session, agent) = self.split();
        Ok(agent.on(session.open_or_start(id).await?))
    }

    /// Resumes a stored session. The model is shown the tools that are stored with it; calls are run with those that
    /// are given here.
    ///
    /// # Errors
    /// As [`SessionBuilder::resume`].
    pub async fn resume(self, id: &SessionId) -> Result<Agent, OpenError> {
        let (session, agent) = self.split();
        Ok(agent.on(session.resume(id).await?))
    }

    /// Begins a session with the first `messages` of another one.
    ///
    /// # Errors
    /// As [`Session::fork`].
    pub async fn fork_of(self, session: &Session, messages: usize) -> Result<Agent, SessionError> {
        let (builder, agent) = self.split();
        Ok(agent.on(session.fork(messages, builder).await?))
    }

    fn split(self) -> (SessionBuilder, run::Parts) {
        let session = self.session;
        let tools = self.tools.render(session.wire());
        let parts = run::Parts {
            tools: self.tools,
            approver: self.approver,
            limits: self.limits,
        };
        (session.more_tools(&tools), parts)
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("session", &self.inner.session)
            .field("tools", &self.inner.tools)
            .finish_non_exhaustive()
    }
}
