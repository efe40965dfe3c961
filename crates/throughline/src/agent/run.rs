//! The loop: the model is asked, its calls are run, it is asked again.

use std::sync::Arc;
use std::time::Duration;

use super::Agent;
use super::approval::Approver;
use super::event::{AgentError, Outcome};
use super::tools::Tools;
use super::turn::Teller;
use crate::session::{Session, UserInput};

/// What an agent may do at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) steps_max: usize,
    pub(super) call_timeout: Duration,
    pub(super) parallel: usize,
}

/// An agent without its session.
pub(super) struct Parts {
    pub(super) tools: Tools,
    pub(super) approver: Arc<dyn Approver>,
    pub(super) limits: Limits,
}

impl Parts {
    pub(super) fn on(self, session: Session) -> Agent {
        Agent {
            inner: Arc::new(Inner {
                session,
                tools: self.tools,
                approver: self.approver,
                limits: self.limits,
            }),
        }
    }
}

pub(super) struct Inner {
    pub(super) session: Session,
    pub(super) tools: Tools,
    approver: Arc<dyn Approver>,
    limits: Limits,
}

impl Inner {
    pub(super) async fn send(
        self: Arc<Self>,
        _input: UserInput,
        _teller: Teller,
    ) -> Result<Outcome, AgentError> {
        Err(AgentError::NothingOpen)
    }

    pub(super) async fn go_on(self: Arc<Self>, _teller: Teller) -> Result<Outcome, AgentError> {
        Err(AgentError::NothingOpen)
    }
}
